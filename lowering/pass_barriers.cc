#include <algorithm>
#include <tuple>
#include <vector>

#include "lowering/kernel_pass.h"

namespace tilert {
namespace {

// Which version of a buffer an access means, as far as it can be told: a number, (var + c) mod versions, or anything.
struct Version {
  enum class Kind : uint8_t { kNumber, kModular, kAny };
  Kind kind = Kind::kAny;
  VarId var = kNoId;
  int64_t c = 0;
  int64_t mod = 1;
  auto Key() const { return std::tuple(kind, var, c, mod); }
};

Version ParseVersion(const ExprArena& arena, Expr e) {
  Version v;
  if (arena.AsInt(e, &v.c)) {
    v.kind = Version::Kind::kNumber;
    return v;
  }
  const ExprNode& node = arena[e];
  if (node.op != ExprOp::kFloorMod || !arena.AsInt(node.args[1], &v.mod)) return v;
  const ExprNode& sum = arena[node.args[0]];
  if (sum.op == ExprOp::kVar) {
    v.var = static_cast<VarId>(sum.i);
  } else if (sum.op == ExprOp::kAdd && arena[sum.args[0]].op == ExprOp::kVar && arena.AsInt(sum.args[1], &v.c)) {
    v.var = static_cast<VarId>(arena[sum.args[0]].i);
    v.c %= v.mod;
  } else {
    return v;
  }
  v.kind = Version::Kind::kModular;
  return v;
}

bool MayBeEqual(const Version& a, const Version& b) {
  if (a.kind == Version::Kind::kAny || b.kind == Version::Kind::kAny || a.kind != b.kind) return true;
  if (a.kind == Version::Kind::kNumber) return a.c == b.c;
  if (a.var != b.var || a.mod != b.mod) return true;
  return (a.c - b.c) % a.mod == 0;
}

struct Use {
  BufferId buffer = kNoId;
  Version version;
  bool write = false;
  auto Key() const { return std::tuple(buffer, write, version.Key()); }
};
bool operator<(const Use& a, const Use& b) { return a.Key() < b.Key(); }
bool operator==(const Use& a, const Use& b) { return a.Key() == b.Key(); }

// What has happened in shared memory since the last barrier; sorted, without duplicates.
using Pending = std::vector<Use>;

void Normalise(Pending* pending) {
  std::sort(pending->begin(), pending->end());
  pending->erase(std::unique(pending->begin(), pending->end()), pending->end());
}

Pending Union(const Pending& a, const Pending& b) {
  Pending all = a;
  all.insert(all.end(), b.begin(), b.end());
  Normalise(&all);
  return all;
}

constexpr int64_t kManyTrips = INT64_MAX;

class BarrierPlacer {
 public:
  explicit BarrierPlacer(kir::Kernel& kernel) : k_(kernel) {}
  void Run() {
    Pending pending;
    Process(k_.body, pending);
  }

 private:
  int64_t Bytes(const kir::Buffer& b) const { return (b.shared.bytes() + 127) / 128 * 128 * b.versions; }

  bool Conflict(const Use& a, const Use& b) const {
    if (!a.write && !b.write) return false;
    if (a.buffer == b.buffer) return MayBeEqual(a.version, b.version);
    const kir::Buffer &x = k_.buffers[a.buffer], &y = k_.buffers[b.buffer];
    return x.offset < y.offset + Bytes(y) && y.offset < x.offset + Bytes(x);
  }

  std::vector<Use> UsesOf(const kir::Stmt& stmt, std::vector<Use>* in_flight) const {
    std::vector<Use> uses;
    for (const kir::SharedUse& use : kir::SharedUses(k_, stmt)) {
      const Use u{use.buffer, ParseVersion(k_.exprs, use.version), use.write};
      uses.push_back(u);
      if (use.async) in_flight->push_back(u);
    }
    return uses;
  }

  // The statement without its nested blocks: what its own operands read.
  static kir::Stmt Shell(const kir::Stmt& stmt) {
    kir::Stmt shell = stmt;
    for (kir::Block* child : kir::ChildBlocks(shell)) child->clear();
    return shell;
  }

  void Process(kir::Block& block, Pending& pending) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (std::holds_alternative<kir::BarSync>(block[i].op)) {
        pending.clear();
        continue;
      }
      if (auto* wait = std::get_if<kir::CpAsyncWait>(&block[i].op)) {  // complete, but only this thread's copies are visible to it
        for (const kir::Retired& r : wait->retires) pending.push_back({r.buffer, ParseVersion(k_.exprs, r.version), true});
        Normalise(&pending);
        continue;
      }
      if (std::holds_alternative<kir::Break>(block[i].op) && !exits_.empty()) exits_.back() = Union(exits_.back(), pending);
      if (std::holds_alternative<kir::Continue>(block[i].op) && !continues_.empty()) continues_.back() = Union(continues_.back(), pending);
      const bool nested = !kir::ChildBlocks(block[i]).empty() && !std::holds_alternative<kir::Elementwise>(block[i].op);
      std::vector<Use> in_flight;
      const std::vector<Use> uses = UsesOf(nested ? Shell(block[i]) : block[i], &in_flight);
      const bool conflict = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return std::any_of(pending.begin(), pending.end(), [&](const Use& other) { return Conflict(use, other); });
      });
      if (conflict) {
        block.insert(block.begin() + i, kir::Stmt{kir::BarSync{}, block[i].loc});
        pending.clear();
        ++i;
      }
      for (const Use& use : uses) {
        if (std::find(in_flight.begin(), in_flight.end(), use) == in_flight.end()) pending.push_back(use);
      }
      Normalise(&pending);
      if (!nested) continue;
      if (auto* branch = std::get_if<kir::If>(&block[i].op)) {
        Pending other = pending;
        Process(branch->then_body, pending);
        Process(branch->else_body, other);
        pending = Union(pending, other);
      } else if (auto* loop = std::get_if<kir::For>(&block[i].op)) {
        Loop(loop->body, loop->var, Trips(*loop), uses, pending);
      } else if (auto* loop = std::get_if<kir::While>(&block[i].op)) {
        Loop(loop->body, kNoId, kUnknownTrips, uses, pending);
      }
    }
  }

  static constexpr int64_t kUnknownTrips = -1;
  int64_t Trips(const kir::For& loop) const {
    int64_t begin = 0, end = 0, step = 0;
    const bool known = k_.exprs.AsInt(loop.begin, &begin) && k_.exprs.AsInt(loop.end, &end) && k_.exprs.AsInt(loop.step, &step);
    return known && step > 0 && end > begin ? (end - begin + step - 1) / step : kUnknownTrips;
  }

  // Until what is pending at the head of the loop, from before it and from around it, no longer grows. Each round stands for one
  // iteration more: a loop of `trips` iterations needs no more rounds than that.
  void Loop(kir::Block& body, VarId var, int64_t trips, const std::vector<Use>& header, Pending& pending) {
    Pending head = pending, end;
    exits_.emplace_back();
    for (int64_t round = 1;; ++round) {
      end = head;
      continues_.emplace_back();
      Process(body, end);
      end = Union(end, continues_.back());
      continues_.pop_back();
      // The header's own reads (a While condition in shared memory) happen again before the body.
      const bool reread = std::any_of(header.begin(), header.end(), [&](const Use& use) {
        return std::any_of(end.begin(), end.end(), [&](const Use& other) { return Conflict(use, other); });
      });
      if (reread) {
        body.push_back({kir::BarSync{}, {}});
        end.clear();
      }
      Pending around = end;
      for (Use& use : around) {
        if (use.version.kind == Version::Kind::kModular && use.version.var == var) {
          use.version.c = (use.version.c - 1 + use.version.mod) % use.version.mod;  // an iteration ago
        }
      }
      const Pending next = Union(head, around);
      if (next == head || round == trips) break;
      head = next;
    }
    pending = Union(Union(pending, end), exits_.back());
    exits_.pop_back();
    for (Use& use : pending) {
      if (use.version.var == var && var != kNoId) use.version = Version{};
    }
    Normalise(&pending);
  }

  kir::Kernel& k_;
  std::vector<Pending> exits_, continues_;
};

}  // namespace

absl::Status PlaceBarriers(KernelState& state) {
  BarrierPlacer(state.kernel).Run();
  return absl::OkStatus();
}

}  // namespace tilert
