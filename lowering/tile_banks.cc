#include "lowering/tile_banks.h"

#include "lowering/affine.h"
#include "lowering/fragment_uses.h"

namespace tilert {
namespace {

// The subscripts of every access of `loop` to `buffer`.
std::vector<std::vector<Expr>> Accesses(const TileState& state, const Parallel& loop, BufferId buffer) {
  std::vector<std::vector<Expr>> accesses;
  ForEachStmt(loop.body, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](Expr root) {
      ForEachNode(state.program.exprs, root, [&](Expr, const ExprNode& node) {
        if (node.op == ExprOp::kLoad && node.i == buffer) accesses.emplace_back(node.args.begin(), node.args.end());
      });
    });
    if (auto* store = std::get_if<Store>(&stmt.op); store != nullptr && store->buffer == buffer) accesses.push_back(store->indices);
  });
  return accesses;
}

// Byte addresses of the lanes of warp 0, up to a constant that all share; empty when they cannot be told.
std::vector<int64_t> LaneAddresses(const TileState& state, const Parallel& loop, const FragmentLayout& lanes, absl::Span<const Expr> indices,
                                   const SharedLayout& layout) {
  std::vector<int64_t> addresses;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::vector<int64_t> at = lanes.Coords({0, lane, 0});
    std::vector<int64_t> coords;
    for (size_t d = 0; d < indices.size(); ++d) {
      int64_t coordinate = 0;
      for (size_t v = 0; v < loop.vars.size(); ++v) {
        const std::optional<int64_t> scale = Coefficient(state.program.exprs, indices[d], loop.vars[v]);
        if (!scale) return {};
        coordinate += *scale * at[v];
      }
      if (coordinate < 0 || coordinate >= layout.extents[d]) return {};
      coords.push_back(coordinate);
    }
    addresses.push_back(layout.ByteOffset(coords));
  }
  return addresses;
}

}  // namespace

bool FoldingPays(const TileState& state, absl::Span<const Parallel* const> loops, BufferId buffer, const SharedLayout& layout) {
  if (!layout.swizzled || layout.panel != 128) return false;
  SharedLayout folded = layout;
  folded.folded = true;
  int as_it_is = 0, when_folded = 0;
  for (const Parallel* loop : loops) {
    const std::vector<std::vector<Expr>> accesses = Accesses(state, *loop, buffer);
    if (accesses.empty()) continue;
    const std::optional<FragmentLayout> lanes = LoopLayout(state, *loop);
    if (!lanes || lanes->dims.size() != loop->vars.size()) continue;
    for (const std::vector<Expr>& indices : accesses) {
      as_it_is += BankConflictWays(LaneAddresses(state, *loop, *lanes, indices, layout), layout.element_bytes);
      when_folded += BankConflictWays(LaneAddresses(state, *loop, *lanes, indices, folded), layout.element_bytes);
    }
  }
  return when_folded < as_it_is;
}

}  // namespace tilert
