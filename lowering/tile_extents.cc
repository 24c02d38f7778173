// Copies, fills, tile atomics and parallel loops with an extent that only a launch or a block knows: loops over a fixed number of
// points, of which those beyond the extent do nothing. And those over so many points of global memory that a thread could not
// hold its share in registers.
//
// A dimension that writes a tile goes over that dimension of the tile. One that has a bound goes over the bound. Any other is
// walked in pieces, and so are the outer dimensions of what is too large.
#include <algorithm>
#include <utility>

#include "ir/int_eval.h"
#include "lowering/affine.h"
#include "lowering/tile_access.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

constexpr int64_t kPiece = 128;          // points of a dimension that has no bound
constexpr int64_t kLargestBound = 1024;  // more than that is walked in pieces too
constexpr int64_t kMostPoints = 1024;    // of a thread at once; of what is more, it takes kFewPoints at a time
constexpr int64_t kFewPoints = 16;

class FixedExtents {
 public:
  explicit FixedExtents(TileState& state) : s_(state) {}

  void Run(Stmt stmt, Block& out) {
    loc_ = stmt.loc;
    if (auto* copy = std::get_if<Copy>(&stmt.op); copy != nullptr && !copy->is_async) return OfCopy(std::move(*copy), out);
    if (auto* fill = std::get_if<Fill>(&stmt.op); fill != nullptr && (!Known(fill->dst) || TooMany(fill->dst)))
      return OfFill(*fill, out);
    if (auto* atomic = std::get_if<AtomicTile>(&stmt.op);
        atomic != nullptr && (!Known(atomic->src) || !Known(atomic->dst) || (IsGlobal(atomic->src) && TooMany(atomic->dst))))
      return OfAtomic(*atomic, out);
    if (auto* loop = std::get_if<Parallel>(&stmt.op);
        loop != nullptr && (!AllKnown(s_.Extents(loop->extents)) || TooMany(loop->extents)))
      return OfLoop(std::move(*loop), out);
    out.push_back(std::move(stmt));
  }

 private:
  // A loop over the elements of a region that is written, and where they come from.
  struct Elements {
    Parallel loop;
    std::vector<Expr> to, from;
    Expr guard;
  };

  bool Known(const Region& region) const { return AllKnown(s_.Extents(region.extent)); }
  bool Known(Expr e) const { return s_.Extents({e})[0] >= 0; }
  bool IsGlobal(const Region& region) const { return s_.scope(region.buffer) == Scope::kGlobal; }
  bool TooMany(const Region& region) const { return IsGlobal(region) && TooMany(region.extent); }
  bool TooMany(const std::vector<Expr>& extents) const {
    int64_t points = 1;
    for (int64_t e : s_.Extents(extents)) points = MulIndex(points, e);
    return points > kMostPoints * kLanes * s_.warps;
  }
  Expr And(Expr a, Expr b) { return a ? s_.E().Make(ExprOp::kAnd, DType::kBool, {a, b}) : b; }
  Expr Less(Expr a, Expr b) { return s_.E().Binary(ExprOp::kLt, a, b); }
  Expr LessEqual(Expr a, Expr b) { return s_.E().Binary(ExprOp::kLe, a, b); }
  Expr Minus(Expr a, Expr b) { return Fold(s_.E(), s_.E().Binary(ExprOp::kSub, a, b)); }

  // Dimensions other than those that are 1 by what is written.
  std::vector<size_t> Moving(const Region& region) const {
    std::vector<size_t> dims;
    for (size_t d = 0; d < region.extent.size(); ++d) {
      if (!s_.E().IsInt(region.extent[d], 1)) dims.push_back(d);
    }
    return dims;
  }

  // The extents of two regions that are paired, as numbers where one of them is a number.
  void Agree(Region& src, Region& dst) {
    const std::vector<size_t> a = Moving(src), b = Moving(dst);
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (Known(src.extent[a[i]])) dst.extent[b[i]] = src.extent[a[i]];
      src.extent[a[i]] = dst.extent[b[i]];
    }
  }

  // `src`: none, or of a shape like `dst`.
  Elements Over(const Region& dst, const Region* src) {
    Elements over{{}, dst.start, src != nullptr ? src->start : std::vector<Expr>(), {}};
    const std::vector<size_t> dims = Moving(dst), src_dims = src != nullptr ? Moving(*src) : std::vector<size_t>();
    const bool is_tile = s_.scope(dst.buffer) != Scope::kGlobal;
    const std::vector<int64_t> shape = s_.Shape(dst.buffer);
    for (size_t i = 0; i < dims.size(); ++i) {
      const size_t d = dims[i];
      const Expr start = dst.start[d], extent = dst.extent[d];
      over.loop.vars.push_back(s_.NewVar("i"));
      const Expr at = s_.VarExpr(over.loop.vars.back());
      Expr offset = at;  // from the start of the region
      if (Known(extent) || !is_tile) {
        over.loop.extents.push_back(extent);
        over.to[d] = AddIndex(s_.E(), start, at);
      } else {
        over.loop.extents.push_back(s_.Int(shape[d]));
        over.to[d] = at;
        offset = Minus(at, start);
        if (!s_.E().IsInt(start, 0)) over.guard = And(over.guard, LessEqual(start, at));
        over.guard = And(over.guard, Less(at, AddIndex(s_.E(), start, extent)));
      }
      if (i < src_dims.size()) over.from[src_dims[i]] = AddIndex(s_.E(), src->start[src_dims[i]], offset);
    }
    return over;
  }

  void Emit(Elements over, StmtOp element, Block& out) {
    Block& body = over.loop.body;
    body.push_back({std::move(element), loc_});
    if (over.guard) body = {Stmt(If{over.guard, std::exchange(body, {}), {}}, loc_)};
    OfLoop(std::move(over.loop), out);
  }

  Expr As(Expr value, DType type) { return s_.E()[value].dtype == type ? value : Fold(s_.E(), s_.E().Cast(value, type)); }

  void OfCopy(Copy copy, Block& out) {
    if (!Known(copy.src) || !Known(copy.dst)) Agree(copy.src, copy.dst);
    const bool is_large = IsGlobal(copy.src) && TooMany(copy.dst);
    if (Known(copy.src) && Known(copy.dst) && !is_large) return out.push_back({std::move(copy), loc_});
    Elements over = Over(copy.dst, &copy.src);
    const Buffer& from = s_.buffer(copy.src.buffer);
    Expr value = s_.E().Load(copy.src.buffer, from.dtype, over.from);
    if (copy.fill) {
      Expr inside;
      for (size_t d = 0; d < over.from.size(); ++d) {
        inside = And(inside, LessEqual(s_.Int(0), over.from[d]));
        inside = And(inside, Less(over.from[d], from.shape[d]));
      }
      if (inside) value = s_.E().Make(ExprOp::kSelect, from.dtype, {inside, value, As(copy.fill, from.dtype)});
    }
    Store store{copy.dst.buffer, over.to, value};
    Emit(std::move(over), std::move(store), out);
  }

  void OfFill(const Fill& fill, Block& out) {
    Elements over = Over(fill.dst, nullptr);
    Store store{fill.dst.buffer, over.to, As(fill.value, s_.buffer(fill.dst.buffer).dtype)};
    Emit(std::move(over), std::move(store), out);
  }

  void OfAtomic(AtomicTile atomic, Block& out) {
    Agree(atomic.src, atomic.dst);
    Elements over = Over(atomic.dst, &atomic.src);
    const Expr value = s_.E().Load(atomic.src.buffer, s_.buffer(atomic.src.buffer).dtype, over.from);
    Atomic element{atomic.op, atomic.dst.buffer, over.to, value, atomic.order, MemoryScope::kDevice};
    Emit(std::move(over), std::move(element), out);
  }

  // The largest value of an extent that is a minimum with a number; −1 where there is none.
  int64_t Bound(Expr e) const {
    int64_t value = -1;
    if (s_.program.exprs.AsInt(e, &value)) return std::max<int64_t>(value, 0);
    const ExprNode& node = s_.program.exprs[e];
    if (node.op != ExprOp::kMin) return -1;
    const int64_t a = Bound(node.args[0]), b = Bound(node.args[1]);
    return a < 0 ? b : b < 0 ? a : std::min(a, b);
  }

  // What a loop becomes: loops over pieces, outermost first; what follows from their variables; the condition for a point.
  struct Walk {
    Block pieces, lets;
    Expr guard;
  };

  // Dimension `d` of `loop`, of `extent`, is walked `size` points at a time.
  void InPieces(Parallel& loop, size_t d, Expr extent, int64_t size, Walk& walk) {
    const VarId piece = s_.NewVar("piece"), inner = s_.NewVar("i");
    const Expr end = Fold(s_.E(), s_.E().Binary(ExprOp::kFloorDiv, AddIndex(s_.E(), extent, size - 1), s_.Int(size)));
    walk.pieces.push_back({For{ForKind::kSerial, piece, s_.Int(0), end, s_.Int(1), s_.Int(0), {}, {}, {}}, loc_});
    const Expr begin = s_.E().Binary(ExprOp::kMul, s_.VarExpr(piece), s_.Int(size));
    walk.lets.push_back({Let{loop.vars[d], AddIndex(s_.E(), begin, s_.VarExpr(inner))}, loc_});
    loop.vars[d] = inner;
    loop.extents[d] = s_.Int(size);
  }

  // Of a loop that is too large: the inner dimensions that fit stay, a part of the next one, and one point of each before it. One
  // that touches fragments stays as it is: they lie as the whole loop does.
  void CutOuter(Parallel& loop, Walk& walk) {
    const Stmt whole(loop, loc_);
    absl::flat_hash_set<BufferId> touched = BuffersTouched(s_.program, whole);
    ForEachStmt(loop.body, [&](const Stmt& stmt) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.op)) touched.erase(alloc->buffer);  // a point's own
    });
    if (std::any_of(touched.begin(), touched.end(), [&](BufferId id) { return s_.scope(id) == Scope::kFragment; })) return;
    int64_t room = kFewPoints * kLanes;
    while (room * 2 <= kFewPoints * kLanes * s_.warps) room *= 2;
    std::vector<int64_t> sizes = s_.Extents(loop.extents);
    for (size_t d = sizes.size(); d-- > 0;) {
      int64_t size = 1;
      while (size * 2 <= room) size *= 2;
      sizes[d] = std::min(sizes[d], size);
      room /= sizes[d];
    }
    for (size_t d = 0; d < sizes.size(); ++d) {
      const Expr extent = loop.extents[d], here = s_.VarExpr(loop.vars[d]);
      const int64_t points = s_.Extents({extent})[0];
      if (sizes[d] == points) continue;
      if (points % sizes[d] != 0) walk.guard = And(walk.guard, Less(here, extent));
      InPieces(loop, d, extent, sizes[d], walk);
    }
  }

  void OfLoop(Parallel loop, Block& out) {
    Walk walk;
    if (AllKnown(s_.Extents(loop.extents)) && TooMany(loop.extents)) CutOuter(loop, walk);
    for (size_t d = 0; d < loop.extents.size(); ++d) {
      if (Known(loop.extents[d])) continue;
      // Evaluated once, before what the loop writes.
      const VarId count = s_.NewVar("count");
      out.push_back({Let{count, loop.extents[d]}, loc_});
      const int64_t bound = Bound(loop.extents[d]);
      const Expr extent = s_.VarExpr(count);
      walk.guard = And(walk.guard, Less(s_.VarExpr(loop.vars[d]), extent));
      if (bound >= 0 && bound <= kLargestBound) {
        loop.extents[d] = s_.Int(bound);
      } else {
        InPieces(loop, d, extent, kPiece, walk);
      }
    }
    if (walk.guard) loop.body = {Stmt(If{walk.guard, std::exchange(loop.body, {}), {}}, loc_)};
    loop.body.insert(loop.body.begin(), walk.lets.begin(), walk.lets.end());
    Stmt nest(std::move(loop), loc_);
    for (; !walk.pieces.empty(); walk.pieces.pop_back()) {
      std::get<For>(walk.pieces.back().op).body.push_back(std::move(nest));
      nest = std::move(walk.pieces.back());
    }
    out.push_back(std::move(nest));
  }

  TileState& s_;
  SourceLoc loc_;
};

}  // namespace

absl::Status FixExtents(TileState& state) {
  FixedExtents fixed(state);
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    fixed.Run(std::move(stmt), out);
    return absl::OkStatus();
  });
}

}  // namespace tilert
