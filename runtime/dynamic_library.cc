#include "runtime/dynamic_library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "absl/strings/str_cat.h"

namespace tilert {

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const char* what, const char* override_variable,
                                                    const std::vector<std::string>& candidates) {
  const char* forced = secure_getenv(override_variable);
  const bool is_forced = forced != nullptr && *forced != '\0';
  const std::vector<std::string> names = is_forced ? std::vector<std::string>{forced} : candidates;
  std::string tried;
  for (const std::string& name : names) {
    // RTLD_LOCAL keeps the library's symbols out of the host's name space.
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle, name);
    const char* why = dlerror();
    absl::StrAppend(&tried, "\n  ", name, ": ", why != nullptr ? why : "unknown error");
  }
  return absl::NotFoundError(
      absl::StrCat(what, " could not be opened; tried:", tried, "\n",
                   is_forced ? absl::StrCat("(", override_variable, " is set: correct or unset it)")
                             : absl::StrCat("Install it, or set ", override_variable, " to the path of the library.")));
}

void* DynamicLibrary::Find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace tilert
