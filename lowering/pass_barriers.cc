#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "lowering/global_order.h"
#include "lowering/kernel_pass.h"

namespace tilert {
namespace {

// Which version of a buffer an access means, as far as it can be told: a number, (var + c) mod versions, or anything.
struct Version {
  enum class Kind : uint8_t { kNumber, kModular, kAny };
  Kind kind = Kind::kAny;
  VarId var = kNoId;  // of a number: the loop that has come no further than to its first iteration since then
  int64_t c = 0;
  int64_t mod = 1;
  int64_t first = 0;  // the value of a number's var in that iteration
  auto Key() const { return std::tuple(kind, var, c, mod, first); }
};

Version ParseVersion(const ExprArena& arena, Expr e) {
  Version v;
  if (!e) return v;
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
  if (a.kind == Version::Kind::kAny || b.kind == Version::Kind::kAny) return true;
  if (a.kind != b.kind) {
    const Version &number = a.kind == Version::Kind::kNumber ? a : b, &modular = a.kind == Version::Kind::kNumber ? b : a;
    return number.var == kNoId || number.var != modular.var || (number.first + modular.c - number.c) % modular.mod == 0;
  }
  if (a.kind == Version::Kind::kNumber) return a.c == b.c;
  if (a.var != b.var || a.mod != b.mod) return true;
  return (a.c - b.c) % a.mod == 0;
}

struct Use {
  BufferId buffer = kNoId;
  Version version;
  bool write = false;
  bool unfenced = false;  // a write that the async proxy does not see yet, barrier or not
  bool settled = false;   // behind a barrier: only the async proxy still has to wait for it
  GlobalOrder::Earlier global = {};  // of an access to global memory, which has no buffer here
  Expr under = {};        // the condition of the branch that it stood in, in this iteration of the loops around; none: not known
  bool in_global() const { return global.access >= 0; }
  auto Key() const {
    return std::tuple(buffer, write, unfenced, settled, version.Key(), global.access, global.loop, global.loose, under.id);
  }
};
bool operator<(const Use& a, const Use& b) { return a.Key() < b.Key(); }
bool operator==(const Use& a, const Use& b) { return a.Key() == b.Key(); }

// What has happened in shared and global memory since the last barrier; sorted, without duplicates.
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

class BarrierPlacer {
 public:
  explicit BarrierPlacer(kir::Kernel& kernel) : k_(kernel), global_(kernel) {}
  void Run() {
    for (const kir::Ring& ring : k_.rings) in_ring_.insert(ring.buffers.begin(), ring.buffers.end());
    Pending pending;
    Process(k_.body, pending);
  }

 private:
  int64_t Bytes(const kir::Buffer& b) const { return b.shared.version_bytes() * b.versions; }

  // `b` came before `a`.
  bool Conflict(const Use& a, const Use& b) const {
    if (a.in_global() || b.in_global()) return a.in_global() && b.in_global() && global_.Conflict(b.global, a.global.access);
    if (!a.write && !b.write) return false;
    if (a.buffer == b.buffer) return MayBeEqual(a.version, b.version);
    const kir::Buffer &x = k_.buffers[a.buffer], &y = k_.buffers[b.buffer];
    return x.offset < y.offset + Bytes(y) && y.offset < x.offset + Bytes(x);
  }

  // What a statement touches now. Tiles of rings are left out: their barriers order all that happens to them.
  struct Uses {
    std::vector<Use> all;
    std::vector<Use> lasting;  // done with when the statement ends
    bool proxy = false;        // by the async proxy
  };
  Uses UsesOf(const kir::Stmt& stmt) {
    Uses uses;
    for (const kir::SharedUse& use : kir::SharedUses(k_, stmt)) {
      if (in_ring_.contains(use.buffer)) continue;
      const Use u{use.buffer, ParseVersion(k_.exprs, use.version), use.write, use.write && !use.proxy && fences_, false};
      uses.all.push_back(u);
      if (!use.async) uses.lasting.push_back(u);
      uses.proxy |= use.proxy;
    }
    for (int access : global_.Accesses(stmt)) {
      Use use;
      use.global.access = access;
      uses.all.push_back(use);
      uses.lasting.push_back(use);
    }
    return uses;
  }

  // A barrier: what was pending is seen by all, but writes that were not fenced are still unseen by the async proxy.
  // `by_warpgroup`: only of what each warpgroup keeps to itself.
  void Settle(Pending* pending, bool by_warpgroup = false) const {
    Pending left;
    for (Use use : *pending) {
      if (by_warpgroup && !KeptByWarpgroups(use.buffer)) {
        left.push_back(use);
      } else if (use.unfenced) {
        use.settled = true;
        left.push_back(use);
      }
    }
    *pending = std::move(left);
    Normalise(pending);
  }
  bool KeptByWarpgroups(BufferId id) const { return id < k_.buffers.size() && k_.buffers[id].by_warpgroup; }
  static void Fence(Pending* pending) {
    Pending fenced;
    for (Use use : *pending) {
      use.unfenced = false;
      // Settled writes were seen by every thread; after this thread's fence another barrier is needed.
      use.settled = false;
      fenced.push_back(use);
    }
    *pending = std::move(fenced);
    Normalise(pending);
  }
  bool Clash(const Use& use, bool proxy, const Pending& pending) const {
    return std::any_of(pending.begin(), pending.end(), [&](const Use& other) { return (proxy || !other.settled) && Conflict(use, other); });
  }

  // The statement without its nested blocks: what its own operands read.
  static kir::Stmt Shell(const kir::Stmt& stmt) {
    kir::Stmt shell = stmt;
    for (kir::Block* child : kir::ChildBlocks(shell)) child->clear();
    return shell;
  }

  void Process(kir::Block& block, Pending& pending) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (Synchronises(block[i], pending)) continue;
      if (auto* let = std::get_if<kir::Let>(&block[i].op)) global_.Bind(*let);
      if (std::holds_alternative<kir::Break>(block[i].op) && !exits_.empty()) exits_.back() = Union(exits_.back(), pending);
      if (std::holds_alternative<kir::Continue>(block[i].op) && !continues_.empty()) continues_.back() = Union(continues_.back(), pending);
      // What only some warps come to holds no barrier for all: what is needed stands before it.
      const auto* branch = std::get_if<kir::If>(&block[i].op);
      const bool by_warp = branch != nullptr && branch->by_warp;
      const bool nested = !by_warp && !kir::ChildBlocks(block[i]).empty() && !std::holds_alternative<kir::Elementwise>(block[i].op);
      const Uses uses = UsesOf(nested ? Shell(block[i]) : block[i]);
      bool conflict = false, unfenced = false, by_warpgroup = true;
      std::vector<Use> touched = uses.all;
      if (const auto* loop = std::get_if<kir::For>(&block[i].op)) AddReads(*loop, touched);
      for (const Use& use : touched) {
        for (const Use& other : pending) {
          if ((!uses.proxy && other.settled) || !Conflict(use, other)) continue;
          conflict = true;
          by_warpgroup &= use.buffer == other.buffer && KeptByWarpgroups(use.buffer);
        }
        for (const Use& other : pending) unfenced |= uses.proxy && other.unfenced && Conflict(use, other);
      }
      const SourceLoc loc = block[i].loc;
      if (unfenced) block.insert(block.begin() + static_cast<std::ptrdiff_t>(i++), kir::Stmt{kir::ProxyFence{}, loc});
      if (unfenced) Fence(&pending);
      if (conflict) block.insert(block.begin() + static_cast<std::ptrdiff_t>(i++), kir::Stmt{kir::BarSync{by_warpgroup}, loc});
      if (conflict) Settle(&pending, by_warpgroup);
      pending.insert(pending.end(), uses.lasting.begin(), uses.lasting.end());
      Normalise(&pending);
      if (nested) Nested(block[i], uses.all, pending);
    }
  }

  // What a loop that only reads waits for, it waits for before its first iteration: in the loop the barrier would stand in each.
  void AddReads(const kir::For& loop, std::vector<Use>& uses) {
    if (Trips(loop) < 2) return;
    std::vector<Use> reads;
    for (const kir::Stmt& stmt : loop.body) {
      if (std::holds_alternative<kir::Elementwise>(stmt.op) || !kir::ChildBlocks(stmt).empty()) return;
      const Uses touched = UsesOf(stmt);
      const bool only_reads = std::none_of(touched.all.begin(), touched.all.end(), [](const Use& use) { return use.write || use.in_global(); });
      if (!only_reads || touched.proxy) return;
      reads.insert(reads.end(), touched.all.begin(), touched.all.end());
    }
    uses.insert(uses.end(), reads.begin(), reads.end());
  }

  // Waits, fences and barriers: what they make of what is pending. False for other statements.
  bool Synchronises(const kir::Stmt& stmt, Pending& pending) {
    const auto retire = [&](const std::vector<kir::Retired>& retires, bool write) {
      for (const kir::Retired& r : retires) {
        if (k_.buffers[r.buffer].space != kir::Space::kShared || in_ring_.contains(r.buffer)) continue;
        pending.push_back({r.buffer, ParseVersion(k_.exprs, r.version), write, write && fences_, false});
      }
      Normalise(&pending);
      return true;
    };
    // Complete, but other threads know only after a barrier.
    if (auto* wait = std::get_if<kir::CpAsyncWait>(&stmt.op)) return retire(wait->retires, true);
    if (auto* wait = std::get_if<kir::WgmmaWait>(&stmt.op)) return retire(wait->retires, false);
    if (auto* wait = std::get_if<kir::StoreWait>(&stmt.op)) return retire(wait->retires, false);
    if (std::holds_alternative<kir::ProxyFence>(stmt.op)) return Fence(&pending), true;
    if (auto* sync = std::get_if<kir::BarSync>(&stmt.op)) return Settle(&pending, sync->by_warpgroup), true;
    if (std::holds_alternative<kir::ClusterSync>(stmt.op)) return Settle(&pending), true;
    return false;
  }

  void Nested(kir::Stmt& stmt, const std::vector<Use>& uses, Pending& pending) {
    if (auto* branch = std::get_if<kir::If>(&stmt.op)) {
      Pending other = pending;
      Process(branch->then_body, pending);
      for (Use& use : pending) {
        if (!std::binary_search(other.begin(), other.end(), use)) use.under = branch->cond;
      }
      Normalise(&pending);
      Process(branch->else_body, other);
      pending = Union(pending, other);
    } else if (auto* loop = std::get_if<kir::For>(&stmt.op)) {
      global_.Bind(*loop);
      Loop(loop->body, loop->var, Trips(*loop), uses, pending, true, loop);
    } else if (auto* loop = std::get_if<kir::While>(&stmt.op)) {
      Loop(loop->body, kNoId, kUnknownTrips, uses, pending);
    } else if (auto* tiles = std::get_if<kir::ForTiles>(&stmt.op)) {
      Loop(tiles->body, kNoId, kUnknownTrips, uses, pending, false);
    } else if (auto* roles = std::get_if<kir::Roles>(&stmt.op)) {
      // Roles share only what rings guard; each is a block of its own.
      for (kir::Role& role : roles->roles) {
        Pending own = pending;
        if (!role.one_thread) Process(role.body, own);
      }
    }
  }

  static constexpr int64_t kUnknownTrips = -1;
  int64_t Trips(const kir::For& loop) const {
    int64_t begin = 0, end = 0, step = 0;
    const bool known = k_.exprs.AsInt(loop.begin, &begin) && k_.exprs.AsInt(loop.end, &end) && k_.exprs.AsInt(loop.step, &step);
    return known && step > 0 && end > begin ? (end - begin + step - 1) / step : kUnknownTrips;
  }

  // True for the condition begin < end of a loop; `another`: var + c < end, c at least the step.
  bool NeedsIteration(const kir::For& loop, Expr cond, bool another) const {
    bool loads = false;  // of what may have changed since
    for (Expr e : {loop.begin, loop.end}) ForEachNode(k_.exprs, e, [&](Expr, const ExprNode& node) { loads |= node.op == ExprOp::kLoad; });
    if (!cond || loads) return false;
    const auto same = [this](Expr a, Expr b) {
      int64_t x = 0, y = 0;
      return a.id == b.id || (k_.exprs.AsInt(a, &x) && k_.exprs.AsInt(b, &y) && x == y);
    };
    const ExprNode& less = k_.exprs[cond];
    if (less.op != ExprOp::kLt || !same(less.args[1], loop.end)) return false;
    if (!another) return same(less.args[0], loop.begin);
    const ExprNode& sum = k_.exprs[less.args[0]];
    int64_t ahead = 0, step = 0;
    return sum.op == ExprOp::kAdd && k_.exprs[sum.args[0]].op == ExprOp::kVar && static_cast<VarId>(k_.exprs[sum.args[0]].i) == loop.var &&
           k_.exprs.AsInt(sum.args[1], &ahead) && k_.exprs.AsInt(loop.step, &step) && step > 0 && ahead >= step;
  }

  // Until what is pending at the head of the loop, from before it and from around it, no longer grows. Each round stands for one
  // iteration more: a loop of `trips` iterations needs no more rounds than that. Tiles of a grid have no order in global memory.
  void Loop(kir::Block& body, VarId var, int64_t trips, const std::vector<Use>& header, Pending& pending, bool ordered = true, const kir::For* counted = nullptr) {
    const std::vector<VarId> inner = BoundIn(body);
    Pending head = pending, end;
    for (Use& use : head) {
      if (use.version.kind == Version::Kind::kNumber && counted != nullptr && k_.exprs.AsInt(counted->begin, &use.version.first)) use.version.var = var;
    }
    Normalise(&head);
    exits_.emplace_back();
    for (int64_t round = 1;; ++round) {
      end = head;
      continues_.emplace_back();
      Process(body, end);
      end = Union(end, continues_.back());
      continues_.pop_back();
      // The header's own reads (a While condition in shared memory) happen again before the body.
      const bool reread = std::any_of(header.begin(), header.end(), [&](const Use& use) { return Clash(use, false, end); });
      if (reread) {
        body.push_back({kir::BarSync{}, {}});
        Settle(&end);
      }
      Pending around = end;
      if (!ordered) std::erase_if(around, [](const Use& use) { return use.in_global(); });
      for (Use& use : around) {
        use.under = {};
        if (use.in_global()) use.global = global_.Around(use.global, var, inner);
        if (use.version.kind == Version::Kind::kModular && use.version.var == var) {
          use.version.c = (use.version.c - 1 + use.version.mod) % use.version.mod;  // an iteration ago
        }
        if (use.version.kind == Version::Kind::kNumber) use.version.var = kNoId, use.version.first = 0;
      }
      const Pending next = Union(head, around);
      if (next == head || round == trips) break;
      head = next;
    }
    // Without iterations nothing happened that needs one, and after the last one nothing that needs another.
    if (counted != nullptr) {
      std::erase_if(pending, [&](const Use& use) { return trips > 0 || NeedsIteration(*counted, use.under, false); });
      std::erase_if(end, [&](const Use& use) { return NeedsIteration(*counted, use.under, true); });
    }
    pending = Union(Union(pending, end), exits_.back());
    exits_.pop_back();
    for (Use& use : pending) {
      if (use.in_global()) use.global = global_.Behind(use.global, var, inner);
      if (use.version.kind == Version::Kind::kNumber) {
        use.version.var = kNoId, use.version.first = 0;
      } else if (use.version.var == var && var != kNoId) {
        use.version = Version{};
      }
    }
    Normalise(&pending);
  }

  kir::Kernel& k_;
  GlobalOrder global_;
  // Fences matter only where something is read by the async proxy; without them settled writes would pile up for nothing.
  const bool fences_ = !k_.tensor_maps.empty() || UsesWgmma(k_.body);
  static bool UsesWgmma(const kir::Block& block) {
    return std::any_of(block.begin(), block.end(), [](const kir::Stmt& stmt) {
      const std::vector<const kir::Block*> children = kir::ChildBlocks(stmt);
      return std::holds_alternative<kir::Wgmma>(stmt.op) || std::any_of(children.begin(), children.end(), [](const kir::Block* b) { return UsesWgmma(*b); });
    });
  }
  absl::flat_hash_set<BufferId> in_ring_;
  std::vector<Pending> exits_, continues_;
};

}  // namespace

absl::Status PlaceBarriers(KernelState& state) {
  BarrierPlacer(state.kernel).Run();
  return absl::OkStatus();
}

}  // namespace tilert
