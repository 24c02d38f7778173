/* Lists what a bundle holds, over the C ABI.
 *
 *   example_inspect path/to/std.tilert
 */
#include <stdio.h>

#include "tilert/tilert.h"

static int Fail(const tilert_api* api, tilert_status* status) {
  fprintf(stderr, "%s\n", api->status_message(status));
  api->status_release(status);
  return 1;
}

int main(int argc, char** argv) {
  const tilert_api* api = tilert_get_api(TILERT_API_VERSION);
  tilert_bundle* bundle = NULL;
  tilert_status* status = api->bundle_open_file(argc > 1 ? argv[1] : "std.tilert", &bundle);
  if (status != NULL) return Fail(api, status);
  for (size_t i = 0; i < api->bundle_entry_count(bundle); ++i) {
    const char* entry = api->bundle_entry_name(bundle, i);
    size_t count = 0;
    printf("%s\n", entry);
    status = api->bundle_param_count(bundle, entry, &count);
    for (size_t p = 0; status == NULL && p < count; ++p) {
      tilert_param_info info = {0};
      info.struct_size = sizeof info;
      status = api->bundle_get_param(bundle, entry, p, &info);
      if (status == NULL) {
        printf("  %-10s %s of rank %u, dtype %d%s\n", info.name, info.kind == TILERT_TENSOR ? "tensor" : "scalar", info.rank,
               (int)info.dtype, info.access == TILERT_IN ? "" : ", written");
      }
    }
    if (status != NULL) return Fail(api, status);
  }
  api->bundle_release(bundle);
  return 0;
}
