#include "ir/bundle.h"

#include <tuple>

namespace tilert {

const Program* Bundle::Find(std::string_view name) const {
  for (const Program& program : programs) {
    if (program.name == name) return &program;
  }
  return nullptr;
}

bool operator==(const Bundle& a, const Bundle& b) {
  return std::tie(a.programs, a.metadata, a.variants, a.tuning, a.cubins) ==
         std::tie(b.programs, b.metadata, b.variants, b.tuning, b.cubins);
}

bool CodeMatchesHash(const PrebuiltCubin& cubin) { return Sha256Of(cubin.code) == cubin.code_sha256; }

}  // namespace tilert
