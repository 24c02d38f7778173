/* An outside program in C11: the header stands alone, the library answers, and mistakes are values. */
#include <stdio.h>
#include <string.h>

#include "tilert/tilert.h"

static int Fail(const char* what) {
  fprintf(stderr, "consumer.c: %s\n", what);
  return 1;
}

int main(void) {
  const tilert_api* api = tilert_get_api(TILERT_API_VERSION);
  if (api == NULL || api->version < TILERT_API_VERSION || api->struct_size < sizeof(tilert_api)) return Fail("no API table");
  if (tilert_get_api(1000) != NULL) return Fail("a version from the future was accepted");

  tilert_runtime_options options = {0};
  options.struct_size = sizeof options;
  options.device = TILERT_DEVICE_CPU;
  options.cache_directory = "";
  tilert_runtime* runtime = NULL;
  tilert_status* status = api->runtime_create(&options, &runtime);
  if (status != NULL) return Fail(api->status_message(status));
  tilert_runtime_info info = {0};
  info.struct_size = sizeof info;
  status = api->runtime_get_info(runtime, &info);
  if (status != NULL || strcmp(info.device_name, "CPU") != 0) return Fail("the CPU runtime does not say so");

  tilert_bundle* bundle = (tilert_bundle*)runtime; /* must be cleared */
  status = api->bundle_open_memory("not a bundle", 12, 1, &bundle);
  if (api->status_code(status) != TILERT_INVALID_ARGUMENT || bundle != NULL) return Fail("garbage was taken for a bundle");
  printf("consumer.c: tilert %s; garbage is refused: %s\n", api->library_version, api->status_message(status));
  api->status_release(status);
  api->bundle_release(bundle);
  api->runtime_release(runtime);
  return 0;
}
