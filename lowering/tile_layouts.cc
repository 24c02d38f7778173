// The layout solve: one layout for each fragment and each shared buffer, decided up front over all statements, strictest first:
// instruction operands, then what loops, reductions and register copies connect to them, then free fragments by size.
// What remains at odds is converted where it is used (plan_*.cc), never refused.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/fragment_uses.h"
#include "lowering/tile_access.h"
#include "lowering/tile_banks.h"
#include "lowering/tile_gemm.h"
#include "lowering/tile_roles.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

constexpr int64_t kVectorBytes = 16;

class LayoutSolver {
 public:
  explicit LayoutSolver(TileState& state) : s_(state) {}

  absl::Status Run() {
    TILERT_ASSIGN_OR_RETURN(const RoleParts parts, ProgramRoles(s_));
    if (parts.spans.empty()) {
      ForEachStmt(s_.L().body, [&](const Stmt& stmt) { Visit(stmt); });
      SolveFragments();
    }
    // Each part of the block has fragments of its own, spread over its threads.
    const int all = s_.warps;
    for (size_t i = 0; i < parts.spans.size(); ++i) {
      Forget();
      s_.warps = parts.spans[i].warps;
      absl::flat_hash_set<BufferId> touched;
      ForEachRoleStmt(s_, s_.L().body, parts, i, [&](const Stmt& stmt) {
        if (std::holds_alternative<Alloc>(stmt.op) || (EachPartRuns(stmt) && !std::holds_alternative<ThreadRegion>(stmt.op))) return;
        touched.merge(BuffersTouched(s_.program, stmt));
      });
      ForEachRoleStmt(s_, s_.L().body, parts, i, [&](const Stmt& stmt) {
        auto* alloc = std::get_if<Alloc>(&stmt.op);
        if (alloc == nullptr || touched.contains(alloc->buffer)) Visit(stmt);
      });
      SolveFragments();
    }
    s_.warps = all;
    if (!parts.spans.empty()) {
      Forget();
      ForEachStmt(s_.L().body, [&](const Stmt& stmt) { Visit(stmt); });
    }
    SolveShared();
    return absl::OkStatus();
  }

 private:
  void SolveFragments() {
    for (const Gemm* gemm : gemms_) Instruction(*gemm);
    Propagate();
    for (BufferId seed = NextSeed(); seed != kNoId; seed = NextSeed()) {
      Set(seed, Free(seed), "free");
      Propagate();
    }
  }
  void Forget() {
    allocated_.clear();
    gemms_.clear();
    copies_.clear();
    reduces_.clear();
    loops_.clear();
  }

 private:
  void Visit(const Stmt& stmt) {
    if (auto* alloc = std::get_if<Alloc>(&stmt.op)) allocated_.push_back(alloc->buffer);
    if (auto* gemm = std::get_if<Gemm>(&stmt.op)) gemms_.push_back(gemm);
    if (auto* copy = std::get_if<Copy>(&stmt.op)) copies_.push_back(copy);
    if (auto* reduce = std::get_if<Reduce>(&stmt.op)) reduces_.push_back(reduce);
    if (auto* loop = std::get_if<Parallel>(&stmt.op)) loops_.push_back(loop);
  }

  bool IsFragment(BufferId id) const { return s_.scope(id) == Scope::kFragment; }
  bool Unset(BufferId id) const { return IsFragment(id) && !s_.fragments.contains(id); }

  void Set(BufferId id, FragmentLayout layout, std::string_view why) {
    s_.report += Cat("  ", s_.buffer(id).name, ": ", why, ", ", ToString(layout), "\n");
    s_.fragments[id] = std::move(layout);
    changed_ = true;
  }

  void Instruction(const Gemm& gemm) {
    const GemmChoice choice = ChooseGemm(s_, gemm);
    if (choice.unit == GemmUnit::kSimt) return;
    const std::string_view unit = choice.unit == GemmUnit::kMma ? "mma" : choice.transposed ? "wgmma (transposed)" : "wgmma";
    if (Unset(gemm.c.buffer) && gemm.c.extent.size() == 2)
      Set(gemm.c.buffer, AccumulatorLayout(s_, gemm, choice), Cat(unit, " accumulator"));
    const auto operand = [&](const Region& region, FragmentLayout layout, std::string_view name) {
      if (Unset(region.buffer) && s_.IsWhole(region) && region.extent.size() == 2)
        Set(region.buffer, std::move(layout), Cat(unit, name));
    };
    operand(gemm.a, OperandALayout(s_, gemm, choice), " operand A");
    operand(gemm.b, OperandBLayout(s_, gemm, choice), " operand B");
  }

  void Propagate() {
    do {
      changed_ = false;
      for (const Parallel* loop : loops_) ThroughLoop(*loop);
      for (const Reduce* reduce : reduces_) ThroughReduce(*reduce);
      for (const Copy* copy : copies_) ThroughCopy(*copy);
    } while (changed_);
  }

  void ThroughLoop(const Parallel& loop) {
    if (!AllKnown(s_.Extents(loop.extents))) return;
    const auto layout = LoopLayout(s_, loop);
    if (!layout) return;
    for (const FragmentUse& use : FragmentUses(s_, loop)) {
      if (!Unset(use.buffer)) continue;
      if (auto wanted = WantedLayout(use, s_.Shape(use.buffer), *layout)) Set(use.buffer, std::move(*wanted), "follows its loop");
    }
  }

  void ThroughReduce(const Reduce& reduce) {
    if (Unset(reduce.src.buffer) || !Unset(reduce.dst.buffer)) return;
    const FragmentLayout& src = s_.fragments[reduce.src.buffer];
    std::vector<int> keep;
    for (size_t d = 0; d < src.dims.size(); ++d) {
      if (d != reduce.axis) keep.push_back(static_cast<int>(d));
    }
    FragmentLayout dst = Project(src, keep);
    const std::vector<int64_t> shape = s_.Shape(reduce.dst.buffer);
    if (shape.size() == src.dims.size()) dst.dims.insert(dst.dims.begin() + reduce.axis, LayoutDim{1, {}});
    if (ExtentsOf(dst) != shape) dst = WithShape(dst, shape);
    if (ExtentsOf(dst) == shape) Set(reduce.dst.buffer, std::move(dst), "result of a reduction");
  }

  // `layout` of a shape that differs in dims of one element alone; as it is, if there are fewer or more others.
  static FragmentLayout WithShape(const FragmentLayout& layout, const std::vector<int64_t>& shape) {
    const std::vector<int> from = MovingDims(ExtentsOf(layout)), to = MovingDims(shape);
    if (from.size() != to.size()) return layout;
    FragmentLayout result{{}, layout.warps};
    for (size_t d = 0, next = 0; d < shape.size(); ++d) {
      const bool moves = next < to.size() && to[next] == static_cast<int>(d);
      result.dims.push_back(moves ? layout.dims[static_cast<size_t>(from[next++])] : LayoutDim{1, {}});
    }
    return result;
  }

  void ThroughCopy(const Copy& copy) {
    const BufferId src = copy.src.buffer, dst = copy.dst.buffer;
    if (!IsFragment(src) || !IsFragment(dst) || Unset(src) == Unset(dst) || !s_.IsWhole(copy.src) || !s_.IsWhole(copy.dst))
      return;
    const BufferId known = Unset(src) ? dst : src, open = Unset(src) ? src : dst;
    FragmentLayout layout = WithShape(s_.fragments[known], s_.Shape(open));
    if (ExtentsOf(layout) != s_.Shape(open)) return;
    layout.warps = s_.warps;
    Set(open, std::move(layout), "follows its copy");
  }

  // The largest fragment without a layout: loops and reductions connect the smaller ones to it.
  BufferId NextSeed() const {
    BufferId best = kNoId;
    for (BufferId id : allocated_) {
      if (Unset(id) && (best == kNoId || Product(s_.Shape(id)) > Product(s_.Shape(best)))) best = id;
    }
    return best;
  }

  // Coalesced and as wide as the memory it is copied from or to allows.
  FragmentLayout Free(BufferId id) const {
    const std::vector<int64_t> shape = s_.Shape(id);
    int64_t vector = kVectorBytes / DTypeBytes(s_.buffer(id).dtype);
    for (const Copy* copy : copies_) {
      if (copy->src.buffer != id && copy->dst.buffer != id) continue;
      const BufferId other = copy->src.buffer == id ? copy->dst.buffer : copy->src.buffer;
      const int64_t bytes =
          s_.scope(other) == Scope::kGlobal ? std::min<int64_t>(kVectorBytes, s_.Alignment(other)) : kVectorBytes;
      vector = std::max<int64_t>(1, bytes / DTypeBytes(s_.buffer(other).dtype));
      if (s_.scope(other) == Scope::kGlobal) break;
    }
    if (!shape.empty()) vector = std::min(vector, shape.back() & -shape.back());
    // All threads first, then wide vectors.
    while (vector > 1 && Product(shape) < vector * s_.warps * kLanes && vector * DTypeBytes(s_.buffer(id).dtype) > 4) vector /= 2;
    return BlockedLayout(shape, s_.warps, vector);
  }

  void SolveShared() {
    for (BufferId id : allocated_) {
      if (s_.scope(id) != Scope::kShared) continue;
      const std::vector<int64_t> shape = s_.TileShape(id);
      const int bytes = DTypeBytes(s_.buffer(id).dtype);
      SharedLayout& layout = s_.shared[id];
      layout = shape.size() < 2 || s_.RowMajorWanted(id) ? RowMajorShared(shape, bytes) : SwizzledShared(shape, bytes);
      const bool operand = absl::c_any_of(gemms_, [&](const Gemm* gemm) { return gemm->a.buffer == id || gemm->b.buffer == id; });
      if (!operand && !s_.slots.contains(id)) layout.folded = FoldingPays(s_, loops_, id, layout);
      s_.report += Cat("  ", s_.buffer(id).name, ": shared, ", ToString(s_.shared[id]), "\n");
    }
  }

  TileState& s_;
  std::vector<BufferId> allocated_;
  std::vector<const Gemm*> gemms_;
  std::vector<const Copy*> copies_;
  std::vector<const Reduce*> reduces_;
  std::vector<const Parallel*> loops_;
  bool changed_ = false;
};

}  // namespace

absl::Status SolveLayouts(TileState& state) { return LayoutSolver(state).Run(); }

}  // namespace tilert
