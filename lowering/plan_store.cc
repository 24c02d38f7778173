// Results leave by TMA where it can write the tensor: registers → a piece of shared memory → a box of the tensor. The piece is one of two, so that one is written while the other
// is being read; the thread that issues the stores waits for the reading, not for the memory.
#include <algorithm>
#include <functional>
#include <tuple>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

constexpr int64_t kPanelBytes = 128;
constexpr int64_t kLargestPiece = 32 * 1024;  // bytes
constexpr int64_t kLargestOddPiece = 16 * 1024;

// Rows an odd number of 16 bytes apart need no swizzle: matrices are stored to them without bank conflicts.
bool IsOdd(int64_t pitch) { return pitch % 32 == 16; }

}  // namespace

// Tiles that are only a way from a fragment to a tensor are left out: the store makes pieces of its own.
void PlanBuilder::FindStores() {
  const std::function<void(const Block&)> visit = [&](const Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (!std::holds_alternative<Parallel>(block[i].op)) {
        for (const Block* child : ChildBlocks(block[i])) visit(*child);
      }
      auto* out = std::get_if<Copy>(&block[i].op);
      if (out == nullptr || out->fill || s_.scope(out->src.buffer) != Scope::kShared || !s_.IsWhole(out->src)) continue;
      const BufferId tile = out->src.buffer;
      int uses = 0;
      ForEachStmt(s_.L().body, [&](const Stmt& stmt) { uses += ReadsDirectly(s_.program, stmt, tile) + WritesDirectly(stmt, tile); });
      if (uses != 2) continue;
      for (size_t j = i; j-- > 0;) {
        auto* in = std::get_if<Copy>(&block[j].op);
        if (in != nullptr && in->dst.buffer == tile) {
          const bool same_rounding = s_.buffer(tile).dtype == s_.buffer(out->dst.buffer).dtype || s_.buffer(tile).dtype == s_.buffer(in->src.buffer).dtype;
          Copy direct = *out;
          direct.src = in->src;
          if (in->fill || !s_.IsWhole(in->dst) || s_.scope(in->src.buffer) != Scope::kFragment || !same_rounding) break;
          if (!CanTmaStore(direct) && !CanLeaveInPieces(direct)) break;
          forwarded_[out] = in;
          skipped_.insert(in);
          forwarded_tiles_.insert(tile);
          break;
        }
        if (BuffersWritten(block[j]).contains(out->dst.buffer)) break;
      }
      // What the fragment holds must not change on the way.
      if (const auto it = forwarded_.find(out); it != forwarded_.end()) {
        for (size_t j = i; j-- > 0;) {
          if (auto* in = std::get_if<Copy>(&block[j].op); in == it->second) break;
          if (!BuffersWritten(block[j]).contains(it->second->src.buffer)) continue;
          skipped_.erase(it->second);
          forwarded_tiles_.erase(tile);
          forwarded_.erase(out);
          break;
        }
      }
    }
  };
  visit(s_.L().body);
  ForEachStmt(s_.L().body, [&](const Stmt& stmt) {
    auto* copy = std::get_if<Copy>(&stmt.op);
    if (copy == nullptr || !CanTmaStore(*copy)) return;
    ++store_stages_wanted_;
    const Copy direct = Direct(*copy);
    stores_by_warpgroup_ &= CanTmaStore(direct) && SplitsByWarpgroup(direct.src);
  });
}

// The store without the tile that it goes through.
Copy PlanBuilder::Direct(const Copy& store) const {
  Copy direct = store;
  if (const auto it = forwarded_.find(&store); it != forwarded_.end()) direct.src = it->second->src;
  return direct;
}

// A tensor that TMA cannot write takes the same pieces, each copied to its place by the threads that compute: the tile need not lie in
// shared memory as a whole, where rings want the room, and instances can take turns.
bool PlanBuilder::CanLeaveInPieces(const Copy& copy) const {
  return s_.scope(copy.dst.buffer) == Scope::kGlobal && s_.scope(copy.src.buffer) == Scope::kFragment && !rings_.groups.empty() &&
         !copy.is_async && StoreChunk(copy) > 0;
}

// True when each warpgroup holds a block of whole rows: it can store them without waiting for the others.
bool PlanBuilder::SplitsByWarpgroup(const Region& fragment) const {
  FragmentLayout layout;
  const int64_t warpgroups = s_.warps / kWarpgroupWarps;
  if (s_.scope(fragment.buffer) != Scope::kFragment || warpgroups < 2 || !FragmentBox(fragment, &layout) || layout.dims.size() != 2) return false;
  const LayoutDim& rows = layout.dims[0];
  if (rows.factors.empty() || rows.extent != rows.padded() || rows.extent % (warpgroups * kSwizzleRows) != 0) return false;
  return rows.factors.back() == Factor{warpgroups, Owner::kWarp, kWarpgroupWarps};
}

// Shared memory that rings, and tiles that are not only a way to a tensor, leave.
int64_t PlanBuilder::SharedLeft() const {
  int64_t left = s_.target.max_shared_bytes;
  for (const RingTiles& ring : rings_.rings) {
    left -= 2 * kir::kBarrierBytes * ring.slots;
    for (BufferId id : ring.buffers) left -= ring.slots * s_.shared.at(id).version_bytes();
  }
  ForEachStmt(s_.program.launches[s_.launch].body, [&](const Stmt& stmt) {
    auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc == nullptr || s_.scope(alloc->buffer) != Scope::kShared) return;
    if (!rings_.ring_of_buffer.contains(alloc->buffer) && !forwarded_tiles_.contains(alloc->buffer)) left -= s_.shared.at(alloc->buffer).version_bytes();
  });
  return left;
}

// The widest piece of such rows that there is room for; 0: none.
int64_t PlanBuilder::OddChunk(const FragmentLayout& layout, int64_t rows, int64_t bytes) const {
  const int64_t columns = layout.dims[1].extent, most_instances = s_.warps == kWarpgroupWarps ? 2 : 1;
  const int64_t most = std::min(kLargestOddPiece, SharedLeft() / most_instances);
  for (int64_t pieces = 2; pieces < columns; ++pieces) {
    const int64_t width = columns / pieces;
    FragmentLayout piece = layout;
    if (columns % pieces == 0 && IsOdd(width * bytes) && rows * width * bytes <= most && CutColumns(&piece, width)) return width;
  }
  return 0;
}

// Columns of a piece; 0: the fragment cannot leave in pieces.
int64_t PlanBuilder::StoreChunk(const Copy& copy) const {
  FragmentLayout layout;
  const std::vector<int64_t> extents = s_.Extents(copy.dst.extent);
  if (!AllKnown(extents) || !s_.IsWhole(copy.src) || !FragmentBox(copy.src, &layout) || layout.dims.size() != 2) return 0;
  const std::vector<int> moving = MovingDims(extents);
  if (moving.size() != 2 || moving.back() + 1 != static_cast<int>(extents.size())) return 0;
  const int64_t bytes = DTypeBytes(s_.buffer(copy.dst.buffer).dtype);
  for (int64_t width = kPanelBytes / bytes; width * bytes >= 32; width /= 2) {
    FragmentLayout piece = layout;
    if (extents.back() % width != 0 || !CutColumns(&piece, width)) continue;
    return width * bytes == kPanelBytes ? width : std::max(width, OddChunk(layout, extents[moving[0]], bytes));
  }
  // All at once, when the columns are spread over warps.
  return extents[moving[0]] * extents[moving[1]] * bytes <= kLargestPiece ? extents.back() : 0;
}

bool PlanBuilder::CanTmaStore(const Copy& copy, std::string* why) const {
  const auto no = [why](const char* text) {
    if (why != nullptr) *why = text;
    return false;
  };
  if (s_.scope(copy.dst.buffer) != Scope::kGlobal) return no("it does not lead to global memory");
  if (rings_.groups.empty()) return no("no copy to shared memory is by TMA");
  if (forwarded_.contains(&copy)) return true;  // its tile is left out: it leaves in pieces, by TMA or not
  if (copy.disable_tma || copy.is_async) return no("the program asks for another way");
  int writers = 0;
  bool read = false;
  ForEachStmt(s_.program.launches[s_.launch].body, [&](const Stmt& stmt) {
    writers += WritesDirectly(stmt, copy.dst.buffer);
    read |= ReadsDirectly(s_.program, stmt, copy.dst.buffer);
  });
  if (writers != 1 || read) return no("the launch reads the tensor, or writes it elsewhere too");
  if (s_.scope(copy.src.buffer) == Scope::kFragment) {
    const int64_t width = StoreChunk(copy);
    if (width == 0) return no("the fragment cannot be cut into pieces of whole rows");
    std::vector<int64_t> box = s_.Extents(copy.dst.extent);
    const DType dtype = s_.buffer(copy.dst.buffer).dtype;
    const SharedLayout stage = SwizzledShared({box[MovingDims(box)[0]], width}, DTypeBytes(dtype));
    box.back() = width;
    return TmaPanel(s_, copy.dst, box, stage, dtype, why) > 0;
  }
  if (s_.scope(copy.src.buffer) != Scope::kShared) return no("it is from global to global memory");
  if (!s_.IsWhole(copy.src)) return no("it is a part of its tile");
  if (rings_.ring_of_buffer.contains(copy.src.buffer)) return no("its tile is filled by TMA");
  return TmaPanel(s_, copy.dst, s_.Extents(copy.dst.extent), s_.shared.at(copy.src.buffer), s_.buffer(copy.src.buffer).dtype, why) > 0;
}

// Issues the store of one tile; `column`: where it starts in `to`'s last dimension.
kir::MapId PlanBuilder::EmitBoxStore(const Region& to, BufferId from, Expr version, int64_t column) {
  const kir::Buffer& tile = k_.buffers[from];
  std::vector<int64_t> box = s_.Extents(to.extent);
  box.back() = tile.shared.extents.back();
  const int64_t panel = TmaPanel(s_, to, box, tile.shared, tile.dtype);
  if (stores_by_warpgroup_) box[static_cast<size_t>(MovingDims(box)[0])] /= s_.warps / kWarpgroupWarps;
  const kir::MapId map = MapOf(to.buffer, box, panel, tile.shared.swizzled ? static_cast<int>(tile.shared.panel) : 0);
  std::vector<Expr> coords = Tr(to.start);
  coords.back() = AddIndex(k_.exprs, coords.back(), column);
  Emit(kir::TmaStore{map, from, version, std::move(coords)});
  Emit(kir::StoreCommit{});
  return map;
}

absl::Status PlanBuilder::EmitTmaStore(const Copy& store) {
  const Copy copy = Direct(store);
  const bool by_tma = CanTmaStore(copy);
  const int64_t width = s_.scope(copy.src.buffer) == Scope::kFragment ? StoreChunk(copy) : 0, columns = s_.Extents(copy.dst.extent).back();
  const Pieces pieces = width > 0 && width < columns ? TakePieces(columns, width) : Pieces{};
  // A store of an earlier iteration to the same place must have arrived.
  if (loops_ > 0 && by_tma) Emit(kir::StoreWait{0, false, {}});
  if (s_.scope(copy.src.buffer) == Scope::kShared) {
    const BufferId tile = buffers_[copy.src.buffer];
    ReportTma(store, EmitBoxStore(copy.dst, tile, Int(0), 0));
    Emit(kir::StoreWait{0, true, {{tile, Int(0)}}});
    return absl::OkStatus();
  }
  const DType dtype = s_.buffer(copy.dst.buffer).dtype;
  FragmentLayout piece;
  if (!FragmentBox(copy.src, &piece) || (width < columns && !CutColumns(&piece, width))) {
    return Internal("a piece of '", s_.buffer(copy.src.buffer).name, "' cannot be cut out");
  }
  const int64_t rows = piece.dims[0].extent, pitch = width * DTypeBytes(dtype);
  const bool fits_twice = !IsOdd(pitch) || 2 * instances_ * rows * pitch <= SharedLeft();
  const int64_t versions = width < columns && by_tma && fits_twice ? 2 : 1;
  const auto key = std::tuple(rows, width, versions, dtype);
  if (!store_stages_.contains(key)) {
    store_stages_[key] = NewShared(s_.buffer(copy.dst.buffer).name + "_stage", dtype, SwizzledShared({rows, width}, DTypeBytes(dtype)), versions * instances_);
    k_.buffers[store_stages_[key]].by_warpgroup = stores_by_warpgroup_;
  }
  const BufferId stage = store_stages_[key];
  const kir::TileAccess whole = Access(copy.src);
  EmitPiece(pieces.loads, 0, width);
  for (int64_t column = 0, i = 0; column < columns; column += width, ++i) {
    Expr version = Int(i % versions);
    if (instances_ > 1) version = Fold(k_.exprs, AddIndex(k_.exprs, k_.exprs.Binary(ExprOp::kMul, turn_, Int(versions)), i % versions));
    EmitPiece(pieces.work, column, width);
    if (column + width == columns) block_->insert(block_->end(), pieces.after.begin(), pieces.after.end());
    // Where versions take turns without end, the one to be reused was stored `versions` pieces ago; else the first piece waits for all.
    const bool in_turn = store_stages_wanted_ == 1 && columns / width % versions == 0;
    if (by_tma) Emit(kir::StoreWait{i == 0 && !in_turn ? 0 : static_cast<int>(versions - 1), true, {{stage, version}}});
    kir::TileAccess from = whole, to = WholeAccess(stage, 2);
    from.start.back() = AddIndex(k_.exprs, from.start.back(), column);
    to.start[0] = version;
    EmitTileCopy(std::move(to), std::move(from), piece);
    // Into registers that this piece leaves, while it is being stored.
    if (column + width < columns) EmitPiece(pieces.loads, column + width, width);
    if (by_tma) {
      ReportTma(store, EmitBoxStore(copy.dst, stage, version, column));
      continue;
    }
    const size_t first = block_->size();
    kir::TileAccess piece_of = WholeAccess(stage, 2), place = Access(copy.dst);
    piece_of.start[0] = version;
    place.start.back() = AddIndex(k_.exprs, place.start.back(), column);
    const int64_t vector = std::min(MemoryWidth(place, 2), MemoryWidth(piece_of, 2));
    EmitTileCopy(std::move(place), std::move(piece_of), BlockedLayout({rows, width}, s_.warps, vector));
    ReportPlainCopy(copy, first);
  }
  return absl::OkStatus();
}

}  // namespace tilert
