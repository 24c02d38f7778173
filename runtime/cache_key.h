// What a compiled kernel depends on, as text: the quick key of the cubin cache.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/sha256.h"
#include "lowering/lowered.h"
#include "lowering/target.h"

namespace tilert {

struct CacheKeyParts {
  Sha256Digest program_digest{};
  std::map<std::string, int64_t> constants;  // every constant of the program, resolved
  std::map<std::string, int64_t> dims;       // those that are fixed
  ArgClass arg_class;
  Target target;
  std::string lowering_build_id;
  std::string nvrtc_version;
  std::vector<std::string> flags;  // of the compiler
};

// One "name value" line a part. Injective: two keys are equal only if all parts are. Holds no path and no time.
std::string CacheKeyText(const CacheKeyParts& parts);

}  // namespace tilert
