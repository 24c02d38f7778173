// One publish and one read of the cubin cache, for fault injection: a tracer makes system calls of this program fail
// or kills it at one of them, and whatever happens the exit code says whether something wrong was read.
//
//   cache_publish DIRECTORY [load]
//
// 0: the entry that was loaded is right (built, or read from the cache; stdout says which).  1: it is wrong.
// "load" builds nothing: 3 when there is no entry.
#include <cstdio>
#include <cstring>

#include "runtime/cubin_cache.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  tilert::CacheOptions options;
  options.directory = argv[1];
  tilert::CubinCache cache(options);
  const tilert::CacheEntry expected = {tilert::Sha256Of("source"), "record", std::string(20000, 'c')};
  const bool load_only = argc > 2 && std::strcmp(argv[2], "load") == 0;
  if (load_only) {
    const auto found = cache.Find("key");
    if (!found) return 3;
    return *found == expected ? 0 : 1;
  }
  absl::Status published;
  const auto entry = cache.FindOrBuild(
      "key", [&] { return expected; }, &published);
  if (!entry.ok() || !(*entry == expected)) return 1;
  // What the cache holds now is either right or absent.
  const auto again = cache.Find("key");
  if (again && !(*again == expected)) return 1;
  std::printf("built=%d stored=%d publish=%s\n", static_cast<int>(cache.stats().builds), again.has_value() ? 1 : 0,
              published.ok() ? "ok" : "failed");
  return 0;
}
