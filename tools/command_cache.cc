// tilert cache: the compiled kernels on this machine.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <ctime>

#include "ir/status_util.h"
#include "runtime/cache_directory.h"
#include "runtime/cubin_cache.h"
#include "tools/command.h"

namespace tilert::tool {
namespace {

// The value of the "name value" line of a cache key.
std::string Field(const std::string& key, const std::string& name) {
  const size_t at = key.rfind(name + " ", 0) == 0 ? 0 : key.find("\n" + name + " ");
  if (at == std::string::npos) return "";
  const size_t begin = key.find(' ', at) + 1;
  return key.substr(begin, key.find('\n', begin) - begin);
}

std::string Time(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  char text[32] = "?";
  if (localtime_r(&time, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

absl::Status List(CubinCache& cache) {
  const auto entries = cache.List();
  TILERT_RETURN_IF_ERROR(cache.status());
  uint64_t total = 0;
  for (const CacheListing& entry : entries) {
    total += entry.bytes;
    std::string what = "damaged";
    if (!entry.key.empty()) {
      const std::string arch = Field(entry.key, "arch"), constants = Field(entry.key, "constants");
      what = Cat(arch.substr(0, arch.find(' ')), "  program ", Field(entry.key, "program").substr(0, 16),
                 constants.empty() ? "" : "  ", constants);
    }
    std::printf("%s  %9llu bytes  %s  %s\n", entry.file.substr(0, 16).c_str(), static_cast<unsigned long long>(entry.bytes),
                Time(entry.last_used).c_str(), what.c_str());
  }
  std::printf("%s: %zu entries, %llu bytes\n", cache.directory().c_str(), entries.size(), static_cast<unsigned long long>(total));
  return absl::OkStatus();
}

absl::Status RunCache(const Args& args) {
  const std::string& action = args.positional()[0];
  if (action != "list" && action != "clear") return UsageError(Cat("tilert cache can list and clear, not '", action, "'"));
  CacheOptions options;
  options.directory = args.Get("--dir", DefaultCacheDirectory());
  if (options.directory.empty())
    return absl::FailedPreconditionError("there is no cache: TILERT_CACHE_DIR is empty, or there is no home directory");
  if (options.directory[0] != '/') return UsageError("--dir needs an absolute path");
  struct stat info;
  if (stat(options.directory.c_str(), &info) != 0 && errno == ENOENT) {  // to ask for a cache does not make one
    std::printf("%s: %s0 bytes\n", options.directory.c_str(), action == "list" ? "0 entries, " : "freed ");
    return absl::OkStatus();
  }
  CubinCache cache(options);
  if (action == "list") return List(cache);
  TILERT_ASSIGN_OR_RETURN(const uint64_t freed, cache.Clear());
  std::printf("%s: freed %llu bytes\n", cache.directory().c_str(), static_cast<unsigned long long>(freed));
  return absl::OkStatus();
}

constexpr Option kCacheOptions[] = {
    {"--dir", "DIRECTORY", "another cache than $TILERT_CACHE_DIR, $XDG_CACHE_HOME/tilert or ~/.cache/tilert"}};

}  // namespace

const Command kCacheCommand = {
    "cache",
    "list|clear",
    "list or clear the compiled kernels on this machine",
    "",
    kCacheOptions,
    "  tilert cache list\n"
    "  tilert cache clear\n",
    1,
    1,
    RunCache,
};

}  // namespace tilert::tool
