// Warp specialisation: the launch's body twice. The warps that compute run it without the copies that a producer thread issues through TMA; the producer
// runs what is left of it when only those copies, and the loops and conditions around them, are kept. Rings of tiles join the two (tile_rings.h).
#include <algorithm>
#include <functional>

#include "ir/status_util.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

constexpr int64_t kManyRegisters = 48;      // 32-bit accumulators of a thread
constexpr int kProducerRegisters = 40;      // 24 spills (measured)

// Registers a thread of the warps that compute may have, when the producer's warpgroup gives back what it does not need. PTX ISA "setmaxnreg".
int ComputeRegisters(int warpgroups, int registers_per_sm) {
  const int threads = (warpgroups + 1) * kWarpgroupWarps * kLanes;
  const int at_launch = std::min(255, registers_per_sm / threads) / 8 * 8;
  return std::min(240, (at_launch * (warpgroups + 1) - kProducerRegisters) / warpgroups / 8 * 8);
}

// True when `root`, or a statement nested in it, is an Op that `is` holds for.
template <typename Op>
bool HasAny(const kir::Stmt& root, const std::function<bool(const Op&)>& is) {
  if (auto* op = std::get_if<Op>(&root.op)) return is(*op);
  const std::vector<const kir::Block*> children = kir::ChildBlocks(root);
  return std::any_of(children.begin(), children.end(), [&](const kir::Block* block) {
    return std::any_of(block->begin(), block->end(), [&](const kir::Stmt& stmt) { return HasAny<Op>(stmt, is); });
  });
}

// Waits for single tiles after the last loop that waits, such as that of a residual, are moved to right behind it: work on results then
// follows the last wait. (What the producer fills before such a tile has been waited for by then, so that it comes all the same.)
void WaitTogether(kir::Block* tile) {
  const auto is_loop = [](const kir::Stmt& stmt) {
    return !std::holds_alternative<kir::Acquire>(stmt.op) && HasAny<kir::Acquire>(stmt, [](const kir::Acquire&) { return true; });
  };
  const auto loop = std::find_if(tile->rbegin(), tile->rend(), is_loop);
  if (loop == tile->rend()) return;
  auto behind = loop.base();
  for (auto at = behind; at != tile->end(); ++at) {
    auto* acquire = std::get_if<kir::Acquire>(&at->op);
    if (acquire == nullptr) continue;
    const kir::RingId ring = acquire->ring;
    const bool later_slot = std::any_of(behind, at, [ring](const kir::Stmt& stmt) {
      return HasAny<kir::Advance>(stmt, [ring](const kir::Advance& advance) { return advance.ring == ring; });
    });
    if (later_slot) return;
    std::rotate(behind, at, at + 1);
    ++behind;
  }
}

}  // namespace

void PlanBuilder::MakeRings() {
  for (const RingTiles& tiles : rings_.rings) {
    kir::Ring ring;
    ring.slots = tiles.slots;
    ring.consumers = s_.warps;
    for (BufferId id : tiles.buffers) {
      const Buffer& tile = s_.buffer(id);
      ring.name += Cat(ring.name.empty() ? "" : "_", tile.name);
      buffers_[id] = NewShared(tile.name, tile.dtype, s_.shared.at(id), tiles.slots);
      ring.buffers.push_back(buffers_[id]);
    }
    ring.slot = NewVar(ring.name + "_slot");
    for (BufferId id : tiles.buffers) slots_[id] = VarExpr(ring.slot);
    s_.report += Cat("  ring ", ring.name, ": ", ring.slots, " slots filled by TMA\n");
    ShareRing(k_.rings.size(), &ring);
    k_.rings.push_back(std::move(ring));
  }
}

// One warpgroup that holds large accumulators leaves the tensor cores idle while it stores them: two instances of it take turns, each with tiles of its
// own, one computing while the other stores. Needs: rings that go round equally often in every tile, and no shared memory but theirs and the stores'.
bool PlanBuilder::TakesTurns() const {
  if (s_.warps != kWarpgroupWarps || store_stages_wanted_ == 0 || s_.split) return false;
  int64_t accumulators = 0;
  bool other_shared = false;
  ForEachStmt(s_.program.launches[s_.launch].body, [&](const Stmt& stmt) {
    auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc == nullptr) return;
    const BufferId id = alloc->buffer;
    if (s_.scope(id) == Scope::kFragment) accumulators += s_.fragments.at(id).regs() * DTypeBytes(s_.program.buffers[id].dtype) / 4;
    other_shared |= s_.scope(id) == Scope::kShared && !rings_.ring_of_buffer.contains(id) && !forwarded_tiles_.contains(id);
  });
  const bool equal = std::all_of(rings_.rings.begin(), rings_.rings.end(), [](const RingTiles& ring) { return ring.trips_known; });
  return equal && !other_shared && accumulators >= kManyRegisters;
}

absl::Status PlanBuilder::EmitRoles() {
  MakeRings();
  FindStores();
  instances_ = TakesTurns() ? 2 : 1;
  stores_by_warpgroup_ &= store_stages_wanted_ > 0 && instances_ == 1;
  kir::Role compute{.name = "compute", .warps = s_.warps, .instances = instances_}, load{.name = "load", .warps = 1, .one_thread = true};
  compute.stores_by_warpgroup = stores_by_warpgroup_;
  if (instances_ > 1) {
    compute.instance = NewVar("turn");
    turn_ = VarExpr(compute.instance);
  }
  const int warpgroups = s_.warps * instances_ / kWarpgroupWarps;
  if (s_.warps % kWarpgroupWarps == 0 && warpgroups > 1) {
    load.warps = kWarpgroupWarps;
    load.max_registers = kProducerRegisters;
    compute.max_registers = ComputeRegisters(warpgroups, s_.target.registers_per_sm);
  }
  kir::ForTiles tiles, fills;
  TILERT_RETURN_IF_ERROR(EmitBlock(s_.L().body, tiles.body));
  if (instances_ > 1) {
    SkipOthers(&compute.body, true);
    TakeTurns(&tiles.body);
  }
  if (!k_.cluster.empty()) TILERT_RETURN_IF_ERROR(OnlyInsideGrid(&tiles.body));
  const bool stores = std::any_of(tiles.body.begin(), tiles.body.end(), [](const kir::Stmt& stmt) {
    return HasAny<kir::TmaStore>(stmt, [](const kir::TmaStore&) { return true; });
  });
  compute.body.push_back({std::move(tiles), {}});
  if (stores) compute.body.push_back({kir::StoreWait{0, true, {}}, {}});
  SetProducerVars();
  TILERT_RETURN_IF_ERROR(EmitProducer(s_.L().body, fills.body));
  load.body.push_back({std::move(fills), {}});
  k_.warps = compute.warps * instances_ + load.warps;
  s_.report += Cat("  ", compute.warps, " warps", instances_ > 1 ? ", twice in turns," : "", " compute", compute.max_registers > 0 ? Cat(" (", compute.max_registers, " registers)") : "", ", ", load.warps,
                   load.warps == 1 ? " loads\n" : " load\n");
  k_.body.push_back({kir::Roles{{std::move(compute), std::move(load)}}, {}});
  // No block ends while others still fill or release its slots.
  const bool shares = std::any_of(k_.rings.begin(), k_.rings.end(), [](const kir::Ring& ring) { return !ring.multicasts.empty(); });
  if (shares) k_.body.push_back({kir::ClusterSync{}, {}});
  return absl::OkStatus();
}

// Skips the slots that the other instance's tiles use, and lets one instance at a time issue to the tensor cores: a parity wait is only right
// when it is at most one phase late.
void PlanBuilder::TakeTurns(kir::Block* tile) {
  WaitTogether(tile);
  // The token is held from the first statement that waits for a tile to the last.
  const auto waits = [](const kir::Stmt& stmt) { return HasAny<kir::Acquire>(stmt, [](const kir::Acquire&) { return true; }); };
  const auto last = std::find_if(tile->rbegin(), tile->rend(), waits).base();
  tile->insert(last, {kir::OrderPass{}, {}});
  tile->insert(std::find_if(tile->begin(), tile->end(), waits), {kir::OrderWait{}, {}});
  SkipOthers(tile, false);
}

// Past the slots of the other instance's tile, those of the tiles before the instance's first if `before`.
void PlanBuilder::SkipOthers(kir::Block* out, bool before) {
  for (size_t ring = 0; ring < rings_.rings.size(); ++ring) {
    Expr count = Tr(rings_.rings[ring].trips);
    if (before) count = k_.exprs.Binary(ExprOp::kMul, turn_, count);
    out->push_back({kir::Advance{static_cast<kir::RingId>(ring), Fold(k_.exprs, count)}, {}});
  }
}

// What a producer knows when it begins.
void PlanBuilder::SetProducerVars() {
  producer_vars_ = s_.L().block_vars;
  if (s_.split) {
    for (const VarId var : {s_.split->rank, s_.split->begin, s_.split->end}) {
      if (var != kNoId) producer_vars_.push_back(var);
    }
  }
}

// What the producer keeps of `block`.
absl::Status PlanBuilder::EmitProducer(const Block& block, kir::Block& out) {
  kir::Block* const outer = block_;
  block_ = &out;
  const auto has_copies = [&](const Stmt& root) {
    bool found = false;
    const std::function<void(const Block&)> visit = [&](const Block& b) {
      for (const Stmt& stmt : b) {
        if (auto* copy = std::get_if<Copy>(&stmt.op)) found |= rings_.Has(*copy);
        if (!std::holds_alternative<Parallel>(stmt.op)) {
          for (const Block* child : ChildBlocks(stmt)) visit(*child);
        }
      }
    };
    for (const Block* child : ChildBlocks(root)) visit(*child);
    return found;
  };
  for (const Stmt& stmt : block) {
    loc_ = stmt.loc;
    if (auto* let = std::get_if<Let>(&stmt.op)) {
      if (ProducerCanCompute(s_, let->value, producer_vars_)) {
        producer_vars_.push_back(let->var);
        Emit(kir::Let{let->var, Tr(let->value)});
      }
    } else if (auto* copy = std::get_if<Copy>(&stmt.op)) {
      const auto group = rings_.group_of.find(copy);
      if (group != rings_.group_of.end()) EmitFills(rings_.groups[group->second], *copy);
    } else if (auto* loop = std::get_if<For>(&stmt.op)) {
      if (!has_copies(stmt)) continue;
      producer_vars_.push_back(loop->var);
      kir::For walk{loop->var, Tr(loop->begin), Tr(loop->end), Tr(loop->step), kir::Unroll::kNo, {}};
      NameEnd(&walk, s_.program.vars[loop->var].name);
      TILERT_RETURN_IF_ERROR(EmitProducer(loop->body, walk.body));
      Emit(std::move(walk));
    } else if (auto* branch = std::get_if<If>(&stmt.op)) {
      if (!has_copies(stmt)) continue;
      kir::If fork{Tr(branch->cond), {}, {}};
      TILERT_RETURN_IF_ERROR(EmitProducer(branch->then_body, fork.then_body));
      TILERT_RETURN_IF_ERROR(EmitProducer(branch->else_body, fork.else_body));
      Emit(std::move(fork));
    }
  }
  block_ = outer;
  return absl::OkStatus();
}

// Between which blocks of the cluster slots of the ring go.
void PlanBuilder::ShareRing(size_t number, kir::Ring* ring) const {
  for (const RingGroup& group : rings_.groups) {
    for (const Copy* copy : group.copies) {
      const auto shared = rings_.shared.find(copy);
      if (group.ring != number || shared == rings_.shared.end()) continue;
      const kir::ClusterAxes axes = shared->second.axes;
      if (std::find(ring->multicasts.begin(), ring->multicasts.end(), axes) == ring->multicasts.end()) ring->multicasts.push_back(axes);
    }
  }
  ring->consumers *= static_cast<int>(PeersOf(k_, *ring, 0).size());
}

// One copy of a group: the first waits for the slot, the last moves on.
void PlanBuilder::EmitFills(const RingGroup& group, const Copy& copy) {
  const auto ring = static_cast<kir::RingId>(group.ring);
  if (drains_) {
    if (&copy != group.copies.back()) return;
    Emit(kir::Acquire{ring, false});
    Emit(kir::Release{ring, 0});
    return Emit(kir::Advance{ring, Int(1)});
  }
  if (&copy == group.copies.front()) {
    int64_t bytes = 0;
    for (const Copy* each : group.copies) {
      const SharedLayout& tile = s_.shared.at(each->dst.buffer);
      bytes += Product(tile.extents) * tile.element_bytes;
    }
    Emit(kir::Acquire{ring, true});
    Emit(kir::ExpectTx{ring, bytes});
  }
  const SharedLayout& tile = s_.shared.at(copy.dst.buffer);
  std::vector<int64_t> box = s_.Extents(copy.src.extent);
  const int64_t panel = TmaPanel(s_, copy.src, box, tile, s_.buffer(copy.dst.buffer).dtype);
  const auto shared = rings_.shared.find(&copy);
  const kir::ClusterAxes multicast = shared == rings_.shared.end() ? 0 : shared->second.axes;
  if (multicast != 0 && !shared->second.by_panel) {
    *std::find_if(box.begin(), box.end(), [](int64_t extent) { return extent != 1; }) /= shared->second.parts;
  }
  const kir::MapId map = MapOf(copy.src.buffer, box, panel, tile.swizzled ? static_cast<int>(tile.panel) : 0);
  Emit(kir::TmaLoad{map, buffers_[copy.dst.buffer], ring, Tr(copy.src.start), multicast});
  ReportTma(copy, map);
  if (&copy == group.copies.back()) Emit(kir::Advance{ring, Int(1)});
}

kir::MapId PlanBuilder::MapOf(BufferId program_buffer, const std::vector<int64_t>& box, int64_t panel, int swizzle) {
  kir::TensorMap map{buffers_[program_buffer], box, swizzle};
  map.box.back() = panel;
  const auto known = std::find(k_.tensor_maps.begin(), k_.tensor_maps.end(), map);
  if (known != k_.tensor_maps.end()) return static_cast<kir::MapId>(known - k_.tensor_maps.begin());
  k_.tensor_maps.push_back(std::move(map));
  return static_cast<kir::MapId>(k_.tensor_maps.size() - 1);
}

// Before statement `at` of `block`: waits for the tiles that it is the first to need.
void PlanBuilder::Acquire(const Block& block, size_t at) {
  for (const RingGroup& group : rings_.groups) {
    if (group.block == &block && group.first_use == at) Emit(kir::Acquire{static_cast<kir::RingId>(group.ring), false});
  }
}

// After statement `at`: gives back the slots that it is the last to need, at once or when the tensor cores have read them.
void PlanBuilder::Release(const Block& block, size_t at) {
  for (const RingGroup& group : rings_.groups) {
    if (group.block != &block || group.last_use != at) continue;
    const auto ring = static_cast<kir::RingId>(group.ring);
    // A single slot that is kept for an iteration more would never be filled again.
    if (rings_.rings[group.ring].slots == 1) RetireAll();
    if (open_.empty()) {
      Emit(kir::Release{ring, 0});
    } else {
      open_.back().releases.push_back({ring, 0});
    }
    Emit(kir::Advance{ring, Int(1)});
    for (OpenGroup& open : open_) {
      for (PendingRelease& release : open.releases) release.behind += release.ring == ring;
    }
  }
}

}  // namespace tilert
