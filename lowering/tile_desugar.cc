// Statements that are shorthand for others: what remains for the later passes is Copy, Gemm on shared memory or fragments,
// Reduce on fragments, Fill of whole fragments, Parallel, and control flow.
#include <utility>

#include "ir/reduction.h"
#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/tile_access.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

class Desugar {
 public:
  explicit Desugar(TileState& state) : s_(state) {}

  absl::Status Run(Stmt stmt, Block& out) {
    const SourceLoc loc = stmt.loc;
    if (auto* fill = std::get_if<Fill>(&stmt.op)) return FillLoop(*fill, loc, out);
    if (auto* atomic = std::get_if<AtomicTile>(&stmt.op)) return AtomicLoop(*atomic, loc, out);
    if (auto* reduce = std::get_if<Reduce>(&stmt.op)) return FragmentReduce(*reduce, loc, out);
    if (auto* gemm = std::get_if<Gemm>(&stmt.op)) return LocalGemm(*gemm, loc, out);
    if (auto* scan = std::get_if<Scan>(&stmt.op)) return ScanLoop(*scan, loc, out);
    if (auto* atomic = std::get_if<Atomic>(&stmt.op); atomic != nullptr && atomic->prev != kNoId) {
      FetchForBlock(std::move(*atomic), loc, out);
      return absl::OkStatus();
    }
    const bool element = std::holds_alternative<Atomic>(stmt.op) ||
                         (std::holds_alternative<Store>(stmt.op) && s_.scope(std::get<Store>(stmt.op).buffer) != Scope::kVar);
    if (element) {  // one element: a loop without dimensions
      out.push_back({Parallel{{}, {}, {std::move(stmt)}, 0}, loc});
    } else {
      out.push_back(std::move(stmt));
    }
    return absl::OkStatus();
  }

 private:
  // A Parallel over `region` whose body `make` builds from the subscripts of the region's elements.
  template <typename Make>
  Stmt Loop(const Region& region, const SourceLoc& loc, Make make) {
    Parallel loop;
    std::vector<Expr> indices;
    for (size_t d = 0; d < region.start.size(); ++d) {
      if (s_.E().IsInt(region.extent[d], 1)) {
        indices.push_back(region.start[d]);
        continue;
      }
      loop.vars.push_back(s_.NewVar(Cat("i", d)));
      loop.extents.push_back(region.extent[d]);
      indices.push_back(AddIndex(s_.E(), region.start[d], s_.VarExpr(loop.vars.back())));
    }
    loop.body.push_back({make(indices, loop.vars), loc});
    return {std::move(loop), loc};
  }

  absl::Status FillLoop(const Fill& fill, const SourceLoc& loc, Block& out) {
    if (s_.scope(fill.dst.buffer) == Scope::kFragment && s_.IsWhole(fill.dst)) {
      out.push_back({fill, loc});
      return absl::OkStatus();
    }
    out.push_back(Loop(fill.dst, loc, [&](const std::vector<Expr>& at, const std::vector<VarId>&) {
      return Store{fill.dst.buffer, at, fill.value};
    }));
    return absl::OkStatus();
  }

  // Subscripts of `region` for the loop variables of another region of the same shape (unit extents dropped).
  std::vector<Expr> Follow(const Region& region, const std::vector<VarId>& vars) {
    std::vector<Expr> at;
    size_t next = 0;
    for (size_t d = 0; d < region.start.size(); ++d) {
      const bool unit = s_.E().IsInt(region.extent[d], 1);
      at.push_back(unit || next >= vars.size() ? region.start[d] : AddIndex(s_.E(), region.start[d], s_.VarExpr(vars[next++])));
    }
    return at;
  }

  absl::Status AtomicLoop(const AtomicTile& atomic, const SourceLoc& loc, Block& out) {
    out.push_back(Loop(atomic.dst, loc, [&](const std::vector<Expr>& at, const std::vector<VarId>& vars) {
      const Expr value = s_.E().Load(atomic.src.buffer, s_.buffer(atomic.src.buffer).dtype, Follow(atomic.src, vars));
      return Atomic{atomic.op, atomic.dst.buffer, at, value, atomic.order, MemoryScope::kDevice};
    }));
    return absl::OkStatus();
  }

  // One thread does it; the whole block gets the value before through shared memory.
  void FetchForBlock(Atomic atomic, const SourceLoc& loc, Block& out) {
    const DType dtype = s_.buffer(atomic.buffer).dtype;
    const BufferId told = s_.NewBuffer(s_.program.vars[atomic.prev].name + "_shared", dtype, Scope::kShared, {1});
    const VarId before = s_.NewVar(s_.program.vars[atomic.prev].name), for_all = std::exchange(atomic.prev, before);
    s_.program.vars[before].dtype = dtype;
    out.push_back({Alloc{told}, loc});
    out.push_back({Parallel{{}, {}, {{std::move(atomic), loc}, {Store{told, {s_.Int(0)}, s_.VarExpr(before)}, loc}}, 0}, loc});
    out.push_back({Let{for_all, s_.E().Load(told, dtype, {s_.Int(0)})}, loc});
  }

  // `region` as a whole new buffer of `scope`, filled by a copy; of elements of `dtype` if given.
  absl::StatusOr<Region> CopyInto(const Region& region, Scope scope, const SourceLoc& loc, Block& out, DType dtype = DType::kInvalid) {
    TILERT_ASSIGN_OR_RETURN(const Region copy, s_.NewTileLike(region, scope == Scope::kShared ? "_shared" : "_frag", scope, loc, out, dtype));
    out.push_back({Copy{region, copy}, loc});
    return copy;
  }

  // The type in which a reduction or scan computes: at least float32 and as wide as both sides for floats, the result's type for
  // integers.
  DType WorkType(BufferId src, BufferId dst) const {
    const DType from = s_.buffer(src).dtype, to = s_.buffer(dst).dtype;
    if (!IsFloat(from)) return IsInteger(to) ? to : from;
    return from == DType::kFloat64 || to == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  }

  // A copy of `region` in a fragment, with `neutral` for NaN.
  absl::StatusOr<Region> WithoutNan(const Region& region, Expr neutral, const SourceLoc& loc, Block& out) {
    TILERT_ASSIGN_OR_RETURN(const Region copy, CopyInto(region, Scope::kFragment, loc, out));
    const DType dtype = s_.buffer(copy.buffer).dtype;
    out.push_back(Loop(copy, loc, [&](const std::vector<Expr>& at, const std::vector<VarId>&) {
      const Expr value = s_.E().Load(copy.buffer, dtype, at);
      const Expr is_nan = s_.E().Make(ExprOp::kIsNan, DType::kBool, {value});
      return Store{copy.buffer, at, s_.E().Make(ExprOp::kSelect, dtype, {is_nan, neutral, value})};
    }));
    return copy;
  }

  // max, min or absmax that skips NaN, as one that does not.
  absl::Status SkipNan(Reduce* reduce, const SourceLoc& loc, Block& out) {
    const DType from = s_.buffer(reduce->src.buffer).dtype, to = s_.buffer(reduce->dst.buffer).dtype;
    TILERT_ASSIGN_OR_RETURN(reduce->src, WithoutNan(reduce->src, IdentityOf(reduce->op, from, s_.E()), loc, out));
    if (!reduce->clear && IsFloat(to)) {
      TILERT_ASSIGN_OR_RETURN(const Region old, WithoutNan(reduce->dst, IdentityOf(reduce->op, to, s_.E()), loc, out));
      out.push_back({Copy{old, reduce->dst}, loc});
    }
    reduce->nan_propagate = true;
    return absl::OkStatus();
  }

  // The absolute value is taken in the source's type, of which the least value has none: before integers are converted to another.
  absl::Status TakeAbs(Reduce* reduce, const SourceLoc& loc, Block& out) {
    TILERT_ASSIGN_OR_RETURN(reduce->src, CopyInto(reduce->src, Scope::kFragment, loc, out));
    const BufferId copy = reduce->src.buffer;
    const DType dtype = s_.buffer(copy).dtype;
    out.push_back(Loop(reduce->src, loc, [&](const std::vector<Expr>& at, const std::vector<VarId>&) {
      return Store{copy, at, s_.E().Unary(ExprOp::kAbs, s_.E().Load(copy, dtype, at))};
    }));
    reduce->op = reduce->op == ReduceOp::kAbsSum ? ReduceOp::kSum : ReduceOp::kMax;
    return absl::OkStatus();
  }

  absl::Status FragmentReduce(Reduce reduce, const SourceLoc& loc, Block& out) {
    const DType work = WorkType(reduce.src.buffer, reduce.dst.buffer);
    // Absolute values may be negative as the destination has them: the least value, and what is beyond a signed type.
    const bool from_zero =
        reduce.op == ReduceOp::kAbsMax && reduce.clear && IsInteger(work) && KindOf(work) == DTypeKind::kSigned;
    const bool is_abs = reduce.op == ReduceOp::kAbsSum || reduce.op == ReduceOp::kAbsMax;
    if (is_abs && IsInteger(work) && s_.buffer(reduce.src.buffer).dtype != work) TILERT_RETURN_IF_ERROR(TakeAbs(&reduce, loc, out));
    const bool is_extreme = reduce.op == ReduceOp::kMax || reduce.op == ReduceOp::kMin || reduce.op == ReduceOp::kAbsMax;
    if (!reduce.nan_propagate && is_extreme && IsFloat(s_.buffer(reduce.src.buffer).dtype))
      TILERT_RETURN_IF_ERROR(SkipNan(&reduce, loc, out));
    // What is reduced into itself is read first: the destination begins with a value of its own.
    const bool ready = s_.scope(reduce.src.buffer) == Scope::kFragment && s_.IsWhole(reduce.src) && reduce.src.buffer != reduce.dst.buffer;
    if (!ready) {
      TILERT_ASSIGN_OR_RETURN(reduce.src, CopyInto(reduce.src, Scope::kFragment, loc, out));
    }
    if (work != s_.buffer(reduce.src.buffer).dtype) {
      const BufferId wide = s_.NewBuffer(s_.buffer(reduce.src.buffer).name + "_wide", work, Scope::kFragment, s_.Shape(reduce.src.buffer));
      out.push_back({Alloc{wide}, loc});
      out.push_back({Copy{reduce.src, s_.Whole(wide)}, loc});
      reduce.src = s_.Whole(wide);
    }
    const auto reduce_to = [&](const Region& dst) {
      reduce.dst = dst;
      if (from_zero) {
        out.push_back({Fill{dst, s_.E().Int(0, s_.buffer(dst.buffer).dtype)}, loc});
        reduce.clear = false;
      }
      out.push_back({std::move(reduce), loc});
    };
    if (s_.scope(reduce.dst.buffer) == Scope::kFragment && s_.IsWhole(reduce.dst)) {
      reduce_to(Region(reduce.dst));
      return absl::OkStatus();
    }
    const Region target = reduce.dst;
    if (reduce.clear) {
      const Buffer& buffer = s_.buffer(target.buffer);
      const BufferId result = s_.NewBuffer(buffer.name + "_frag", buffer.dtype, Scope::kFragment, s_.Extents(target.extent));
      out.push_back({Alloc{result}, loc});
      reduce.dst = s_.Whole(result);
    } else {
      TILERT_ASSIGN_OR_RETURN(reduce.dst, CopyInto(target, Scope::kFragment, loc, out));
    }
    const Region result = reduce.dst;
    reduce_to(result);
    out.push_back({Copy{result, target}, loc});
    return absl::OkStatus();
  }

  absl::Status LocalGemm(Gemm gemm, const SourceLoc& loc, Block& out) {
    for (Region* operand : {&gemm.a, &gemm.b}) {
      const bool global = s_.scope(operand->buffer) == Scope::kGlobal, changes = operand->buffer == gemm.c.buffer;
      if (!global && !changes && DimsOf(*operand).front() + 2 == operand->extent.size()) continue;
      const Region from = *operand;
      TILERT_ASSIGN_OR_RETURN(*operand, NewMatrix(from, global ? Scope::kShared : s_.scope(from.buffer), loc, out));
      out.push_back({Copy{from, *operand}, loc});
    }
    if (s_.scope(gemm.c.buffer) == Scope::kFragment && s_.IsWhole(gemm.c) && gemm.c.extent.size() == 2) {
      out.push_back({std::move(gemm), loc});
      return absl::OkStatus();
    }
    TILERT_ASSIGN_OR_RETURN(const Region result, NewMatrix(gemm.c, Scope::kFragment, loc, out));
    const Region target = std::exchange(gemm.c, result);
    if (!gemm.clear_accum) out.push_back({Copy{target, result}, loc});
    out.push_back({std::move(gemm), loc});
    out.push_back({Copy{result, target}, loc});
    return absl::OkStatus();
  }

  std::vector<size_t> DimsOf(const Region& matrix) const {
    return MatrixDims(matrix.extent.size(), [&](size_t d) { return s_.program.exprs.IsInt(matrix.extent[d], 1); });
  }
  // A new buffer of `scope` that has the matrix's dims alone.
  absl::StatusOr<Region> NewMatrix(const Region& region, Scope scope, const SourceLoc& loc, Block& out) {
    Region matrix{region.buffer, {}, {}};
    for (size_t d : DimsOf(region)) matrix.extent.push_back(region.extent[d]);
    return s_.NewTileLike(matrix, scope == Scope::kShared ? "_shared" : "_frag", scope, loc, out);
  }

  // Prefix sums: the tile goes to shared memory, where one element thread walks each line.
  absl::Status ScanLoop(const Scan& scan, const SourceLoc& loc, Block& out) {
    const DType dtype = WorkType(scan.src.buffer, scan.dst.buffer);
    TILERT_ASSIGN_OR_RETURN(Region work, CopyInto(scan.src, Scope::kShared, loc, out, dtype));
    Region line = work;
    const int64_t length = s_.Shape(work.buffer)[scan.axis];
    line.extent[scan.axis] = s_.Int(1);
    out.push_back(Loop(line, loc, [&](std::vector<Expr> at, const std::vector<VarId>&) -> StmtOp {
      For walk;
      walk.kind = ForKind::kSerial;
      walk.var = s_.NewVar("t");
      walk.begin = s_.Int(1);
      walk.end = s_.Int(length);
      walk.step = s_.Int(1);
      Expr here = s_.VarExpr(walk.var), before = AddIndex(s_.E(), here, -1);
      if (scan.reverse) {
        const auto mirrored = [&](Expr e) { return s_.E().Binary(ExprOp::kSub, s_.Int(length - 1), e); };
        here = mirrored(here);
        before = mirrored(before);
      }
      std::vector<Expr> from = at, to = at;
      from[scan.axis] = before;
      to[scan.axis] = here;
      const Expr sum = s_.E().Binary(ExprOp::kAdd, s_.E().Load(work.buffer, dtype, from), s_.E().Load(work.buffer, dtype, to));
      walk.body.push_back({Store{work.buffer, to, sum}, loc});
      return walk;
    }));
    out.push_back({Copy{work, scan.dst}, loc});
    return absl::OkStatus();
  }

  TileState& s_;
};

// Drops fragments that nothing reads or writes: a constant of the program may leave out the code that did.
absl::Status DropUnused(TileState& state) {
  absl::flat_hash_set<BufferId> used;
  for (const Stmt& stmt : state.L().body) used.merge(BuffersTouched(state.program, stmt));
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc == nullptr || (state.scope(alloc->buffer) != Scope::kFragment && state.scope(alloc->buffer) != Scope::kShared) || used.contains(alloc->buffer)) out.push_back(std::move(stmt));
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status DesugarTiles(TileState& state) {
  Desugar desugar(state);
  TILERT_RETURN_IF_ERROR(RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) { return desugar.Run(std::move(stmt), out); }));
  return DropUnused(state);
}

}  // namespace tilert
