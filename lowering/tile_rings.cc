#include "lowering/tile_rings.h"

#include <algorithm>

#include "ir/status_util.h"
#include "lowering/fragment_uses.h"
#include "lowering/tile_access.h"

namespace tilert {
namespace {

constexpr int64_t kLargestBox = 256;   // elements of a box dimension
constexpr int64_t kTmaAlignment = 16;  // bytes, of addresses, strides and the innermost box extent
constexpr int64_t kTileAlignment = 128;  // bytes, of where a box starts in shared memory
constexpr size_t kLargestRank = 5;
constexpr int kMaxWarps = 32;  // of a block

bool Fail(std::string* why, std::string text) {
  if (why != nullptr) *why = std::move(text);
  return false;
}

// A copy's own view of where it stands.
struct Surroundings {
  std::vector<VarId> known;  // variables that the producer has
  int slots = 1;             // versions that the enclosing loop asks for
  bool pipelined = false;
  bool equal = true;         // every block comes here `trips` times
  Expr trips;
  kir::ClusterAxes control = 0;  // axes of the cluster along which it depends on the block whether, and how often, it comes here
};

class RingFinder {
 public:
  explicit RingFinder(TileState& state) : s_(state), launch_(state.program.launches[state.launch]) {}

  RingPlan Run() {
    if (s_.target.family != Family::kHopper) return {};
    if (Forbidden()) return NoRings("the program wants no warp specialisation");
    if (s_.warps >= kMaxWarps) return NoRings("a block has no room for a warp that loads");
    for (const Stmt& stmt : launch_.body) {
      for (BufferId id : BuffersWritten(stmt)) written_.insert(id);
    }
    std::vector<VarId> known = launch_.block_vars;
    for (size_t d = 0; d < known.size(); ++d) varies_[known[d]] = kir::ClusterAxes{1} << d;
    if (s_.split && s_.split->ways > 0) known.push_back(s_.split->rank), varies_[s_.split->rank] = kir::ClusterAxes{1} << launch_.grid.size();
    if (s_.split && s_.split->ways == 0) {  // all blocks of a cluster have the same share
      for (const VarId var : {s_.split->begin, s_.split->end}) known.push_back(var), varies_[var] = 0;
    }
    Visit(launch_.body, {known, 1, false, true, s_.Int(1)});
    DropUnsafe();
    for (const Candidate& candidate : candidates_) Add(candidate);
    if (!pipelined_) return NoRings("no pipelined loop has such a copy");
    if (!MakeRings()) return NoRings("tiles are filled by different groups of copies");
    ShareCopies();
    return std::move(plan_);
  }

 private:
  bool Forbidden() const {
    bool forbidden = false;
    ForEachStmt(launch_.body, [&](const Stmt& stmt) {
      auto* note = std::get_if<Annotate>(&stmt.op);
      forbidden |= note && note->kind == AnnotationKind::kNoWarpSpecialization;
      forbidden |= std::holds_alternative<ThreadRegion>(stmt.op) || std::holds_alternative<Roles>(stmt.op);
    });
    return forbidden;
  }

  // None, for `why` unless a copy has a reason of its own.
  RingPlan NoRings(const std::string& why) {
    RingPlan none;
    none.why_not = std::move(plan_.why_not);
    ForEachStmt(launch_.body, [&](const Stmt& stmt) {
      if (auto* copy = std::get_if<Copy>(&stmt.op)) none.why_not.try_emplace(copy, why);
    });
    return none;
  }

  void Visit(const Block& block, Surroundings around) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (auto* let = std::get_if<Let>(&block[i].op)) {
        if (ProducerCanCompute(s_, let->value, around.known)) around.known.push_back(let->var);
        varies_[let->var] = AxesOf(let->value);
      } else if (auto* loop = std::get_if<For>(&block[i].op)) {
        bool known = !HasJump(loop->body);
        for (Expr e : {loop->begin, loop->end, loop->step}) known &= ProducerCanCompute(s_, e, around.known);
        if (!known) continue;
        Surroundings inside = around;
        inside.known.push_back(loop->var);
        for (Expr e : {loop->begin, loop->end, loop->step}) varies_[loop->var] |= AxesOf(e);
        inside.control |= varies_[loop->var];
        const int64_t stages = NumStages(s_.program.exprs, *loop);
        inside.pipelined = loop->kind == ForKind::kPipelined && stages > 0;
        inside.slots = inside.pipelined ? static_cast<int>(std::max<int64_t>(2, stages)) : 1;
        // Without variables in its bounds the loop is the same for every block.
        for (Expr e : {loop->begin, loop->end, loop->step}) inside.equal &= ProducerCanCompute(s_, e, {}) && !LoadsAny(e);
        inside.equal &= s_.E().IsInt(loop->step, 1);
        if (inside.equal) inside.trips = Times(around.trips, Fold(s_.E(), s_.E().Binary(ExprOp::kSub, loop->end, loop->begin)));
        Visit(loop->body, std::move(inside));
      } else if (auto* branch = std::get_if<If>(&block[i].op)) {
        if (!ProducerCanCompute(s_, branch->cond, around.known)) continue;
        Surroundings inside{around.known, 1, false, false, {}, around.control | AxesOf(branch->cond)};
        Visit(branch->then_body, inside);
        Visit(branch->else_body, std::move(inside));
      } else if (auto* copy = std::get_if<Copy>(&block[i].op)) {
        std::string why = WhyNot(*copy, around);
        if (why.empty()) {
          candidates_.push_back({&block, i, copy, around});
        } else {
          plan_.why_not[copy] = std::move(why);
        }
      }
    }
  }

  // The dims of the grid along which `e` may differ from block to block, as axes. What is loaded is the same where the place is the same: the launch
  // does not write it.
  kir::ClusterAxes AxesOf(Expr e) const {
    kir::ClusterAxes axes = 0;
    ForEachNode(s_.program.exprs, e, [&](Expr, const ExprNode& node) {
      if (node.op != ExprOp::kVar) return;
      const auto var = varies_.find(static_cast<VarId>(node.i));
      axes |= var == varies_.end() ? ~kir::ClusterAxes{0} : var->second;
    });
    return axes;
  }

  bool LoadsAny(Expr e) const {
    bool loads = false;
    ForEachNode(s_.program.exprs, e, [&](Expr, const ExprNode& node) { loads |= node.op == ExprOp::kLoad; });
    return loads;
  }

  // At least zero times each.
  Expr Times(Expr a, Expr b) {
    ExprArena& exprs = s_.E();
    return Fold(exprs, exprs.Binary(ExprOp::kMul, a, exprs.Binary(ExprOp::kMax, b, exprs.Int(0))));
  }

  // Empty for a candidate.
  std::string WhyNot(const Copy& copy, const Surroundings& around) const {
    const BufferId src = copy.src.buffer, dst = copy.dst.buffer;
    if (s_.scope(src) != Scope::kGlobal || s_.scope(dst) != Scope::kShared) return "it is not from global to shared memory";
    if (copy.disable_tma || copy.is_async) return "the program asks for another way";
    if (copy.fill) return "what is outside the tensor is not zero";
    if (!s_.IsWhole(copy.dst)) return "it fills a part of its tile";
    if (written_.contains(src)) return "the launch writes the tensor";
    std::string why;
    if (TmaPanel(s_, copy.src, s_.Extents(copy.src.extent), s_.shared.at(dst), s_.buffer(dst).dtype, &why) == 0) return why;
    const bool known = std::all_of(copy.src.start.begin(), copy.src.start.end(), [&](Expr e) { return ProducerCanCompute(s_, e, around.known); });
    return known ? "" : "where it starts depends on what is computed";
  }

  struct Candidate {
    const Block* block = nullptr;
    size_t at = 0;
    const Copy* copy = nullptr;
    Surroundings around;
  };

  // A tile must be written by candidates only, and read only by later statements of a writer's block, so that a slot lives no longer than an iteration.
  void DropUnsafe() {
    absl::flat_hash_map<BufferId, int> writers, readers, writers_here, readers_here;
    const auto count_reads = [&](const Block& block, size_t from, absl::flat_hash_map<BufferId, int>& sum, BufferId only) {
      for (size_t i = from; i < block.size(); ++i) {
        ForEachStmt(block[i], [&](const Stmt& stmt) { sum[only] += ReadsDirectly(s_.program, stmt, only); });
      }
    };
    for (const Candidate& c : candidates_) {
      const BufferId tile = c.copy->dst.buffer;
      ++writers_here[tile];
      count_reads(*c.block, c.at + 1, readers_here, tile);
      if (writers_here[tile] > 1) continue;
      count_reads(launch_.body, 0, readers, tile);
      ForEachStmt(launch_.body, [&](const Stmt& stmt) { writers[tile] += WritesDirectly(stmt, tile); });
    }
    std::erase_if(candidates_, [&](const Candidate& c) {
      const BufferId tile = c.copy->dst.buffer;
      const bool unsafe = writers[tile] != writers_here[tile] || readers[tile] == 0 || readers[tile] != readers_here[tile];
      if (unsafe) plan_.why_not[c.copy] = "its tile is written by others, or read where it may be of another iteration";
      return unsafe;
    });
  }

  void Add(const Candidate& c) {
    size_t first = c.block->size(), last = 0;
    for (size_t i = c.at + 1; i < c.block->size(); ++i) {
      if (!BuffersRead(s_.program, (*c.block)[i]).contains(c.copy->dst.buffer)) continue;
      first = std::min(first, i);
      last = i;
    }
    size_t group = 0;
    while (group < plan_.groups.size() && (plan_.groups[group].block != c.block || plan_.groups[group].first_use != first)) ++group;
    if (group == plan_.groups.size()) {
      plan_.groups.push_back({c.block, {}, first, last, 0});
      around_.push_back(c.around);
    }
    plan_.groups[group].copies.push_back(c.copy);
    plan_.groups[group].last_use = std::max(plan_.groups[group].last_use, last);
    plan_.group_of[c.copy] = group;
    pipelined_ |= c.around.pipelined;
  }

  // False when two groups have some tiles in common but not all: then one barrier cannot stand for a group.
  bool MakeRings() {
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      RingTiles tiles;
      for (const Copy* copy : plan_.groups[g].copies) tiles.buffers.push_back(copy->dst.buffer);
      tiles.slots = around_[g].slots;
      tiles.trips_known = around_[g].equal;
      tiles.trips = around_[g].trips;
      tiles.walked_alike = ~around_[g].control;
      const auto known = std::find_if(plan_.rings.begin(), plan_.rings.end(), [&](const RingTiles& r) { return r.buffers == tiles.buffers; });
      plan_.groups[g].ring = static_cast<size_t>(known - plan_.rings.begin());
      if (known != plan_.rings.end()) {
        known->slots = std::max(known->slots, tiles.slots);
        known->trips_known &= tiles.trips_known;
        known->walked_alike &= tiles.walked_alike;
        if (known->trips_known) known->trips = s_.E().Binary(ExprOp::kAdd, known->trips, tiles.trips);
        continue;
      }
      for (BufferId tile : tiles.buffers) {
        if (!plan_.ring_of_buffer.try_emplace(tile, plan_.rings.size()).second) return false;
      }
      plan_.rings.push_back(std::move(tiles));
    }
    return true;
  }

  // A copy whose box does not move with an axis of the cluster is the same for the blocks along it; they can share it if all of them go round its ring in step,
  // and if its parts are whole periods of the swizzle.
  void ShareCopies() {
    const std::vector<int> cluster = ClusterWanted(s_);
    for (const RingGroup& group : plan_.groups) {
      for (const Copy* copy : group.copies) {
        kir::ClusterAxes axes = plan_.rings[group.ring].walked_alike;
        for (Expr e : copy->src.start) axes &= ~AxesOf(e);
        SharedCopy shared;
        for (size_t d = 0; d < cluster.size(); ++d) {
          if (cluster[d] == 1 || (axes >> d & 1) == 0) continue;
          shared.axes |= kir::ClusterAxes{1} << d;
          shared.parts *= cluster[d];
        }
        if (shared.axes != 0 && CanDivide(*copy, &shared)) plan_.shared[copy] = shared;
      }
    }
  }

  bool CanDivide(const Copy& copy, SharedCopy* shared) const {
    const SharedLayout& tile = s_.shared.at(copy.dst.buffer);
    const std::vector<int64_t> box = s_.Extents(copy.src.extent);
    const int64_t panel = TmaPanel(s_, copy.src, box, tile, s_.buffer(copy.dst.buffer).dtype), panels = box.back() / panel;
    shared->by_panel = panels % shared->parts == 0;
    if (shared->by_panel) return true;
    const auto rows = std::find_if(box.begin(), box.end() - 1, [](int64_t extent) { return extent != 1; });
    if (rows == box.end() - 1 || *rows % shared->parts != 0) return false;
    const int64_t part = tile.rows() / shared->parts;
    return tile.swizzled ? part % kSwizzleRows == 0 : part * tile.pitch % kTileAlignment == 0;
  }

  TileState& s_;
  const Launch& launch_;
  absl::flat_hash_set<BufferId> written_;
  absl::flat_hash_map<VarId, kir::ClusterAxes> varies_;  // variables known so far: axes along which they may differ
  std::vector<Candidate> candidates_;
  std::vector<Surroundings> around_;  // of the groups
  RingPlan plan_;
  bool pipelined_ = false;
};

}  // namespace

RingPlan FindRings(TileState& state) { return RingFinder(state).Run(); }

std::vector<int> ClusterWanted(const TileState& state) {
  const Launch& launch = state.program.launches[state.launch];
  std::vector<int> cluster(launch.grid.size(), 1);
  if (state.target.family != Family::kHopper || launch.cooperative) return cluster;
  for (size_t d = 0; d < launch.cluster.size(); ++d) {
    int64_t extent = 1;
    if (state.program.exprs.AsInt(launch.cluster[d], &extent)) cluster[d] = static_cast<int>(extent);
  }
  return cluster;
}

int64_t TmaPanel(const TileState& state, const Region& place, const std::vector<int64_t>& box, const SharedLayout& tile, DType tile_dtype, std::string* why) {
  const Buffer& tensor = state.buffer(place.buffer);
  const int64_t bytes = DTypeBytes(tensor.dtype);
  const auto no = [&](std::string text) { return Fail(why, std::move(text)), 0; };
  if (tensor.dtype != tile_dtype) return no("the copy converts");
  if (tensor.shape.empty() || tensor.shape.size() > kLargestRank) return no("a tensor map has 1 to 5 dimensions");
  if (!tensor.strides.empty() && !state.program.exprs.IsInt(tensor.strides.back(), 1)) return no("elements of a row are not side by side");
  if (state.Alignment(place.buffer) % kTmaAlignment != 0) return no("the tensor is not known to be aligned to 16 bytes");
  if (state.KnownDivisor(place.start.back()) * bytes % kTmaAlignment != 0) return no("it is not known to start at a multiple of 16 bytes of a row");
  if (!AllKnown(box) || tile.extents.empty()) return no("an extent is not fixed");
  std::vector<int64_t> moving, stored;
  for (int d : MovingDims(box)) moving.push_back(box[d]);
  for (int d : MovingDims(tile.extents)) stored.push_back(tile.extents[d]);
  if (moving != stored || moving.empty() || box.back() != tile.extents.back()) return no("the last dimension of tensor and tile differ");
  const int64_t panel_bytes = tile.swizzled ? tile.panel : box.back() * bytes;
  if (tile.folded) return no("threads read the tile across its rows, for which it is laid out");
  if (!tile.swizzled && (tile.pitch != panel_bytes || tile.panel < panel_bytes)) return no("the tile's rows are padded");
  if (panel_bytes % kTmaAlignment != 0) return no("rows of the tile are no multiple of 16 bytes");
  if (tile.swizzled && tile.extents.back() * bytes > panel_bytes && tile.rows() % kSwizzleRows != 0) return no("panels of the tile do not start on swizzle patterns");
  if (panel_bytes / bytes > kLargestBox) return no("a row of the tile is longer than 256 elements");
  for (size_t d = 0; d + 1 < box.size(); ++d) {
    if (box[d] > kLargestBox) return no("the tile has more than 256 rows");
  }
  return panel_bytes / bytes;
}

bool ProducerCanCompute(const TileState& state, Expr e, const std::vector<VarId>& known) {
  absl::flat_hash_set<BufferId> written;
  bool can = true;
  ForEachNode(state.program.exprs, e, [&](Expr, const ExprNode& node) {
    if (node.op == ExprOp::kVar) can &= std::count(known.begin(), known.end(), static_cast<VarId>(node.i)) > 0;
    if (node.op != ExprOp::kLoad) return;
    const BufferId id = static_cast<BufferId>(node.i);
    can &= state.scope(id) == Scope::kGlobal;
    for (const Stmt& stmt : state.program.launches[state.launch].body) can = can && !BuffersWritten(stmt).contains(id);
  });
  return can;
}

}  // namespace tilert
