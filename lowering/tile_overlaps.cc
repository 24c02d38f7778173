// Copies and tile atomics from a buffer to itself, where what is written may be what is read: all of the source is read first,
// into a fragment. Threads that each take some elements would otherwise overwrite what others have not read yet.
#include <utility>

#include "ir/int_eval.h"
#include "ir/status_util.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

class Overlaps {
 public:
  explicit Overlaps(TileState& state) : s_(state) {}

  absl::Status Run(Stmt stmt, Block& out) {
    loc_ = stmt.loc;
    if (auto* copy = std::get_if<Copy>(&stmt.op); copy != nullptr && !copy->is_async) {
      TILERT_RETURN_IF_ERROR(Separate(copy->src, copy->dst, &copy->fill, out));
    } else if (auto* atomic = std::get_if<AtomicTile>(&stmt.op)) {
      TILERT_RETURN_IF_ERROR(Separate(atomic->src, atomic->dst, nullptr, out));
    }
    out.push_back(std::move(stmt));
    return absl::OkStatus();
  }

 private:
  bool MayOverlap(const Region& src, const Region& dst) const {
    if (src.buffer != dst.buffer || src == dst) return false;  // of equal regions each thread reads what it writes
    for (size_t d = 0; d < src.start.size(); ++d) {
      if (Apart(src.start[d], src.extent[d], dst.start[d], dst.extent[d])) return false;
    }
    return true;
  }

  // True when [a, a + a_extent) and [b, b + b_extent) are known to have nothing in common.
  bool Apart(Expr a, Expr a_extent, Expr b, Expr b_extent) const {
    const std::vector<int64_t> extents = s_.Extents({a_extent, b_extent});
    const auto [a_base, a_offset] = Split(a);
    const auto [b_base, b_offset] = Split(b);
    if (a_base != b_base || !AllKnown(extents)) return false;
    return a_offset < b_offset ? AddIndex(a_offset, extents[0]) <= b_offset : AddIndex(b_offset, extents[1]) <= a_offset;
  }

  // `e` as an expression, or none, and a number to add.
  std::pair<Expr, int64_t> Split(Expr e) const {
    int64_t number = 0;
    if (s_.program.exprs.AsInt(e, &number)) return {Expr{}, number};
    const ExprNode& node = s_.program.exprs[e];
    if (node.op == ExprOp::kAdd && s_.program.exprs.AsInt(node.args[1], &number)) return {node.args[0], number};
    return {e, 0};
  }

  // Makes `src` a fragment that holds what it is now; where its extents are not known, the whole tile that it is a part of.
  absl::Status Separate(Region& src, const Region& dst, Expr* fill, Block& out) {
    if (!MayOverlap(src, dst)) return absl::OkStatus();
    const bool is_known = AllKnown(s_.Extents(src.extent)) && AllKnown(s_.Extents(dst.extent));
    const Buffer buffer = s_.buffer(src.buffer);
    if (is_known && buffer.scope == Scope::kFragment) return absl::OkStatus();  // goes through shared memory as a whole
    if (!is_known && buffer.scope == Scope::kGlobal) {
      return absl::UnimplementedError(
          Cat("a region of '", buffer.name, "' with an extent that only a launch knows is copied onto one that it may overlap",
              Where(s_.program, loc_), "; copy it through a tile in pieces"));
    }
    const std::vector<int64_t> extents = is_known ? s_.Extents(src.extent) : s_.Shape(src.buffer);
    const BufferId held = s_.NewBuffer(buffer.name + "_held", buffer.dtype, Scope::kFragment, extents);
    Copy copy{is_known ? src : s_.Whole(src.buffer), s_.Whole(held)};
    if (is_known && fill != nullptr) copy.fill = std::exchange(*fill, {});
    src = is_known ? s_.Whole(held) : Region{held, src.start, src.extent};
    out.push_back({Alloc{held}, loc_});
    out.push_back({std::move(copy), loc_});
    return absl::OkStatus();
  }

  TileState& s_;
  SourceLoc loc_;
};

}  // namespace

absl::Status SeparateOverlaps(TileState& state) {
  Overlaps overlaps(state);
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) { return overlaps.Run(std::move(stmt), out); });
}

}  // namespace tilert
