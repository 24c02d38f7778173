#include "kernel_mutation.h"

namespace tilert {
namespace {

// Changes a statement for the worse; false: it is none of those that this mutation is about. `in_loop`: it runs many times.
using Damage = bool (*)(kir::Stmt& stmt, bool in_loop);

template <typename Op>
bool Removes(kir::Stmt& stmt, bool) {
  return std::holds_alternative<Op>(stmt.op);
}
template <typename Op>
bool Weakens(kir::Stmt& stmt, bool in_loop) {
  auto* wait = std::get_if<Op>(&stmt.op);
  if (wait == nullptr || !in_loop) return false;
  ++wait->pending;
  wait->retires.clear();
  return true;
}
bool ReleasesEarly(kir::Stmt& stmt, bool) {
  auto* release = std::get_if<kir::Release>(&stmt.op);
  if (release == nullptr || release->behind == 0) return false;
  --release->behind;
  return true;
}
template <int64_t bytes>
bool Miscounts(kir::Stmt& stmt, bool) {
  auto* expect = std::get_if<kir::ExpectTx>(&stmt.op);
  if (expect != nullptr) expect->bytes += bytes;
  return expect != nullptr;
}

struct Mutation {
  const char* what;
  Damage damage;
  enum { kChange, kRemove, kRepeat } how;
};
constexpr Mutation kMutations[] = {
    {"without BarSync ", Removes<kir::BarSync>, Mutation::kRemove},
    {"without CpAsyncWait ", Removes<kir::CpAsyncWait>, Mutation::kRemove},
    {"with a weaker CpAsyncWait ", Weakens<kir::CpAsyncWait>, Mutation::kChange},
    {"without WgmmaFence ", Removes<kir::WgmmaFence>, Mutation::kRemove},
    {"without WgmmaCommit ", Removes<kir::WgmmaCommit>, Mutation::kRemove},
    {"without WgmmaWait ", Removes<kir::WgmmaWait>, Mutation::kRemove},
    {"with a weaker WgmmaWait ", Weakens<kir::WgmmaWait>, Mutation::kChange},
    {"without ProxyFence ", Removes<kir::ProxyFence>, Mutation::kRemove},
    {"without StoreCommit ", Removes<kir::StoreCommit>, Mutation::kRemove},
    {"without StoreWait ", Removes<kir::StoreWait>, Mutation::kRemove},
    {"with a weaker StoreWait ", Weakens<kir::StoreWait>, Mutation::kChange},
    {"without Acquire ", Removes<kir::Acquire>, Mutation::kRemove},
    {"without ExpectTx ", Removes<kir::ExpectTx>, Mutation::kRemove},
    {"with too few bytes in ExpectTx ", Miscounts<-16>, Mutation::kChange},
    {"with too many bytes in ExpectTx ", Miscounts<16>, Mutation::kChange},
    {"without Release ", Removes<kir::Release>, Mutation::kRemove},
    {"with an early Release ", ReleasesEarly, Mutation::kChange},
    {"without Advance ", Removes<kir::Advance>, Mutation::kRemove},
    {"with twice the Advance ", Removes<kir::Advance>, Mutation::kRepeat},
    {"without OrderWait ", Removes<kir::OrderWait>, Mutation::kRemove},
    {"without OrderPass ", Removes<kir::OrderPass>, Mutation::kRemove},
    {"without ClusterSync ", Removes<kir::ClusterSync>, Mutation::kRemove},
    {"without SumsGive ", Removes<kir::SumsGive>, Mutation::kRemove},
    {"with twice the SumsGive ", Removes<kir::SumsGive>, Mutation::kRepeat},
    {"without SumsTake ", Removes<kir::SumsTake>, Mutation::kRemove},
    {"with twice the SumsTake ", Removes<kir::SumsTake>, Mutation::kRepeat},
    {"without MbarArrive ", Removes<kir::MbarArrive>, Mutation::kRemove},
    {"without MbarWait ", Removes<kir::MbarWait>, Mutation::kRemove},
    {"without MbarExpect ", Removes<kir::MbarExpect>, Mutation::kRemove},
    {"without MbarComplete ", Removes<kir::MbarComplete>, Mutation::kRemove},
};

bool IsLoop(const kir::Stmt& stmt) {
  return std::holds_alternative<kir::For>(stmt.op) || std::holds_alternative<kir::While>(stmt.op) ||
         std::holds_alternative<kir::ForTiles>(stmt.op);
}

// Mutates match number `n` (counted down through the text); true when it was there.
bool Mutate(kir::Block& block, const Mutation& mutation, int& n, bool in_loop = false) {
  for (size_t i = 0; i < block.size(); ++i) {
    kir::Stmt changed = block[i];
    if (mutation.damage(changed, in_loop) && n-- == 0) {
      const auto at = block.begin() + static_cast<std::ptrdiff_t>(i);
      if (mutation.how == Mutation::kRemove) {
        block.erase(at);
      } else if (mutation.how == Mutation::kRepeat) {
        block.insert(at, std::move(changed));
      } else {
        *at = std::move(changed);
      }
      return true;
    }
    for (kir::Block* child : kir::ChildBlocks(block[i])) {
      if (Mutate(*child, mutation, n, in_loop || IsLoop(block[i]))) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Mutant> SynchronisationMutants(const kir::Kernel& kernel) {
  std::vector<Mutant> mutants;
  for (const Mutation& mutation : kMutations) {
    for (int n = 0;; ++n) {
      Mutant mutant{mutation.what + std::to_string(n), kernel};
      int countdown = n;
      if (!Mutate(mutant.kernel.body, mutation, countdown)) break;
      mutants.push_back(std::move(mutant));
    }
  }
  return mutants;
}

}  // namespace tilert
