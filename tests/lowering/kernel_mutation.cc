#include "kernel_mutation.h"

#include <functional>

namespace tilert {
namespace {

enum class Kind : uint8_t { kRemoveBarrier, kRemoveWait, kWeakenWait };

bool Matches(const kir::Stmt& stmt, Kind kind, bool in_loop) {
  if (kind == Kind::kRemoveBarrier) return std::holds_alternative<kir::BarSync>(stmt.op);
  return std::holds_alternative<kir::CpAsyncWait>(stmt.op) && (in_loop || kind == Kind::kRemoveWait);
}

// Mutates match number `n` (counted down through the text); true when it was there.
bool Mutate(kir::Block& block, Kind kind, int& n, bool in_loop = false) {
  for (size_t i = 0; i < block.size(); ++i) {
    if (Matches(block[i], kind, in_loop) && n-- == 0) {
      if (kind == Kind::kWeakenWait) {
        auto& wait = std::get<kir::CpAsyncWait>(block[i].op);
        ++wait.pending;
        wait.retires.clear();
      } else {
        block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
      }
      return true;
    }
    const bool loop = std::holds_alternative<kir::For>(block[i].op) || std::holds_alternative<kir::While>(block[i].op);
    for (kir::Block* child : kir::ChildBlocks(block[i])) {
      if (Mutate(*child, kind, n, in_loop || loop)) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Mutant> SynchronisationMutants(const kir::Kernel& kernel) {
  static constexpr std::pair<Kind, const char*> kKinds[] = {{Kind::kRemoveBarrier, "without BarSync "},
                                                            {Kind::kRemoveWait, "without CpAsyncWait "},
                                                            {Kind::kWeakenWait, "with a weaker CpAsyncWait "}};
  std::vector<Mutant> mutants;
  for (const auto& [kind, what] : kKinds) {
    for (int n = 0;; ++n) {
      Mutant mutant{what + std::to_string(n), kernel};
      int countdown = n;
      if (!Mutate(mutant.kernel.body, kind, countdown)) break;
      mutants.push_back(std::move(mutant));
    }
  }
  return mutants;
}

}  // namespace tilert
