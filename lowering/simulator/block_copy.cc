// Copies of tiles, and cp.async: issued at the statement, landing at any time up to the wait that covers them.
#include <algorithm>
#include <cstring>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

// The widest vector instruction of the GPU; wider copies are several of them.
constexpr int64_t kMaxVectorBytes = 16;

bool FollowsLast(const CAccess& access, const LayoutTables& layout) {
  return !access.follows.empty() && layout.rank() > 0 && access.follows.back() == layout.rank() - 1;
}

}  // namespace

Side ThreadBlock::BeginSide(Warp& warp, const CAccess& access) {
  Side side;
  side.access = &access;
  for (const Code& start : access.start) side.start.push_back(Uniform(warp, start).i);
  side.rows.resize(access.start.size());
  for (const Row& row : side.rows) side.coords.push_back(row.data());
  return side;
}

void ThreadBlock::LocateSide(Warp& warp, const CCopy& copy, Side& side, int64_t reg, uint32_t mask) {
  for (size_t d = 0; d < side.rows.size(); ++d) {
    const int follows = side.access->follows[d];
    for (int l = 0; l < kLanes; ++l) {
      const int64_t within = follows < 0 ? 0 : copy.layout->Coord(reg, l, warp.index, follows);
      side.rows[d][static_cast<size_t>(l)].i =
          static_cast<int64_t>(static_cast<uint64_t>(side.start[d]) + static_cast<uint64_t>(within));
    }
  }
  side.places = Locate(warp, side.access->buffer, side.coords.data(), mask, &side.access->inside);
}

// Elements of the source, converted to the destination's type; the fill value where the source ends.
LaneData ThreadBlock::FetchElements(Warp& warp, const CCopy& copy, const Side& src, uint32_t mask, Value fill) {
  const BufferInfo &from = Info(copy.src.buffer), &to = Info(copy.dst.buffer);
  LaneData data = Read(warp, src.places, mask & ~src.places.outside);
  for (int l = 0; l < kLanes; ++l) {
    if (mask & src.places.outside & uint32_t{1} << l)
      StoreRow(from.source->dtype, &fill, 1, &data.raw[static_cast<size_t>(l)], 1);
  }
  data.defined |= mask & src.places.outside;
  if (from.source->dtype != to.source->dtype) {
    Row values;
    LoadRow(from.source->dtype, data.raw.data(), 8 / from.bytes, kLanes, values.data());
    ConvertRow(from.source->dtype, to.source->dtype, values.data(), kLanes);
    StoreRow(to.source->dtype, values.data(), kLanes, data.raw.data(), 8 / to.bytes);
  }
  return data;
}

// Where a whole vector that begins in `reg` lies inside the buffer, its elements are consecutive and its address aligned.
void ThreadBlock::CheckVectors(Warp& warp, const CCopy& copy, Side& side, int64_t reg, uint32_t mask) {
  const BufferInfo& info = Info(side.access->buffer);
  if (copy.width == 1 || info.layout != nullptr || !FollowsLast(*side.access, *copy.layout)) return;
  LocateSide(warp, copy, side, reg, mask);
  const Places first = side.places;
  uint32_t whole = mask & ~first.outside;
  for (int64_t i = 1; i < copy.width && !failed(); ++i) {
    whole &= copy.layout->Valid(reg + i, warp.index);
    LocateSide(warp, copy, side, reg + i, whole);
    whole &= ~side.places.outside;
    for (int l = 0; l < kLanes && !failed(); ++l) {
      const auto at = static_cast<size_t>(l);
      if ((whole >> l & 1) && side.places.at[at] != first.at[at] + i * info.bytes) {
        Fail(warp, l, Cat("a vector of ", copy.width, " elements is not contiguous in memory at ", Describe(side.places, l)));
      }
    }
  }
  if (failed()) return;
  const int64_t align = std::min(copy.width * info.bytes, kMaxVectorBytes);
  LocateSide(warp, copy, side, reg, whole);
  for (int l = 0; l < kLanes; ++l) {
    if ((whole >> l & 1) == 0) continue;
    const bool declared = info.source->space == kir::Space::kShared || info.source->alignment % align == 0;
    if (declared && first.at[static_cast<size_t>(l)] % align == 0) continue;
    return Fail(warp, l,
                Cat("a vector of ", align, " bytes at ", Describe(side.places, l), " is not aligned",
                    declared ? "" : Cat(": the buffer promises ", info.source->alignment, " bytes only")));
  }
}

// The elements of a row of an 8×8 matrix of 16 bits lie in one aligned 16-byte chunk.
void ThreadBlock::CheckMatrixRows(Warp& warp, const CCopy& copy, const Side& src, int64_t reg, uint32_t mask) {
  const int64_t bytes = Info(copy.method == kir::CopyMethod::kStmatrix ? copy.dst.buffer : copy.src.buffer).bytes;
  const int along = copy.method == kir::CopyMethod::kLdmatrixTrans ? 0 : 1;
  for (int l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) == 0) continue;
    const int64_t in_row = copy.layout->Coord(reg, l, warp.index, along) % (16 / bytes);
    if ((src.places.at[static_cast<size_t>(l)] - bytes * in_row) % 16 != 0) {
      return Fail(warp, l, Cat("the matrix row of ", Describe(src.places, l), " is not an aligned 16-byte chunk"));
    }
  }
}

void ThreadBlock::RunCopy(Warp& warp, const CCopy& copy) {
  Side dst = BeginSide(warp, copy.dst), src = BeginSide(warp, copy.src);
  Value fill{.i = 0};
  if (copy.has_fill) fill = Uniform(warp, copy.fill);
  const LayoutTables& layout = *copy.layout;
  const bool to_memory = Info(copy.dst.buffer).layout == nullptr;
  const bool is_matrix = copy.method == kir::CopyMethod::kLdmatrix || copy.method == kir::CopyMethod::kLdmatrixTrans;
  for (int64_t reg = 0; reg < layout.regs() && !failed(); ++reg) {
    uint32_t mask = layout.Valid(reg, warp.index);
    if (to_memory) mask &= layout.ReplicaZero(warp.index);
    if (mask == 0) continue;
    if (copy.method == kir::CopyMethod::kCpAsync) {
      if (reg % copy.width == 0) IssueAsync(warp, copy, dst, src, reg, fill);
      continue;
    }
    if (copy.method == kir::CopyMethod::kVector && reg % copy.width == 0) {
      CheckVectors(warp, copy, src, reg, mask);
      CheckVectors(warp, copy, dst, reg, mask);
    }
    LocateSide(warp, copy, src, reg, mask);
    LocateSide(warp, copy, dst, reg, mask);
    if (failed()) return;
    if (is_matrix) CheckMatrixRows(warp, copy, src, reg, mask);
    if (copy.method == kir::CopyMethod::kStmatrix) CheckMatrixRows(warp, copy, dst, reg, mask);
    const LaneData data = FetchElements(warp, copy, src, mask & ~dst.places.outside, fill);
    if (!failed()) Write(warp, dst.places, mask & ~dst.places.outside, data);
  }
}

void ThreadBlock::IssueAsync(Warp& warp, const CCopy& copy, Side& dst, Side& src, int64_t reg, Value fill) {
  CheckVectors(warp, copy, src, reg, copy.layout->Valid(reg, warp.index));
  CheckVectors(warp, copy, dst, reg, copy.layout->Valid(reg, warp.index));
  const int bytes = Info(copy.src.buffer).bytes;
  const uint32_t first = copy.layout->Valid(reg, warp.index) & copy.layout->ReplicaZero(warp.index);
  std::array<AsyncPiece, kLanes> pieces;
  uint32_t ended = 0, dropped = 0;
  for (int64_t i = 0; i < copy.width && !failed(); ++i) {
    const uint32_t mask = copy.layout->Valid(reg + i, warp.index) & copy.layout->ReplicaZero(warp.index);
    if (mask != first)
      return Fail(warp, __builtin_ctz(mask ^ first), "a vector of cp.async reaches over the valid extent of the tile");
    LocateSide(warp, copy, src, reg + i, mask);
    LocateSide(warp, copy, dst, reg + i, mask);
    if (failed()) return;
    if (i == 0) dropped = dst.places.outside;
    if (dst.places.outside != dropped)
      return Fail(warp, __builtin_ctz(dst.places.outside ^ dropped), "a vector of cp.async is partly outside its destination");
    for (int l = 0; l < kLanes && !failed(); ++l) {
      const uint32_t bit = uint32_t{1} << l;
      if ((mask & ~dropped & bit) == 0) continue;
      const auto at = static_cast<size_t>(l);
      AsyncPiece& piece = pieces[at];
      if (i == 0) {
        piece = {copy.dst.buffer,
                 copy.src.buffer,
                 dst.start[0],
                 dst.places.at[at],
                 src.places.at[at],
                 static_cast<int32_t>(copy.width * bytes),
                 0,
                 l,
                 warp.stmt->number};
      }
      if (src.places.outside & bit) {
        ended |= bit;
        if (fill.i != 0) Fail(warp, l, "cp.async can fill with zero only");
      } else {
        if (ended & bit)
          Fail(
              warp, l,
              Cat("cp.async can leave out the end of a vector only, but ", Describe(src.places, l), " follows elements outside"));
        piece.valid += bytes;
        TouchCells(warp, src.places, bit, AccessKind::kRead);
      }
      TouchCells(warp, dst.places, bit, AccessKind::kAsyncWrite);
    }
  }
  for (int l = 0; l < kLanes && !failed(); ++l) {
    if ((first & ~dropped & uint32_t{1} << l) == 0) continue;
    AsyncPiece& piece = pieces[static_cast<size_t>(l)];
    if (piece.dst % piece.bytes != 0 || (piece.valid > 0 && piece.src % piece.bytes != 0))
      Fail(warp, l, Cat("a cp.async of ", piece.bytes, " bytes is not aligned"));
    warp.open.push_back(piece);
    ++run_.report->async_copies;
  }
}

void ThreadBlock::Land(AsyncPiece& piece) {
  if (piece.landed) return;
  piece.landed = true;
  async_.SharedWritten(piece.dst_buffer);
  uint8_t* to = shared_.data() + piece.dst;
  std::memset(to, 0, static_cast<size_t>(piece.bytes));
  if (piece.valid > 0) std::memcpy(to, run_.globals[piece.src_buffer].data.data() + piece.src, static_cast<size_t>(piece.valid));
}

// Some copies complete early.
void ThreadBlock::LandSome() {
  Warp& warp = warps_[run_.random() % warps_.size()];
  if (warp.groups.empty()) return;
  std::vector<AsyncPiece>& group = warp.groups[run_.random() % warp.groups.size()];
  for (AsyncPiece& piece : group) {
    if (run_.random() & 1) Land(piece);
  }
}

void ThreadBlock::Settle(Warp& warp, std::vector<AsyncPiece>& pieces) {
  for (AsyncPiece& piece : pieces) {
    Land(piece);
    const Agent agent{cluster_.number_, warp.epoch, static_cast<int16_t>(warp.component), static_cast<int16_t>(piece.lane), piece.stmt};
    const int64_t cell_bytes = kernel_.shared_cell_bytes;
    for (int64_t cell = piece.dst / cell_bytes; cell < (piece.dst + piece.bytes) / cell_bytes; ++cell) {
      shared_shadow_.Settle(static_cast<size_t>(cell), agent, true);
    }
  }
}

void ThreadBlock::Commit(Warp& warp) { warp.groups.push_back(std::move(warp.open)), warp.open.clear(); }

void ThreadBlock::Wait(Warp& warp, const CWait& wait) {
  while (warp.groups.size() > static_cast<size_t>(wait.pending)) {
    Settle(warp, warp.groups.front());
    warp.groups.pop_front();
  }
  for (const CRetired& retired : wait.retires) {
    const int64_t version = retired.has_version ? Uniform(warp, retired.version).i : 0;
    auto check = [&](const std::vector<AsyncPiece>& pieces) {
      for (const AsyncPiece& piece : pieces) {
        if (piece.dst_buffer != retired.buffer || piece.version != version) continue;
        return Fail(warp, piece.lane,
                    Cat("declares version ", version, " of ", Info(piece.dst_buffer).source->name, " complete, but the copy at ",
                        kernel_.paths[static_cast<size_t>(piece.stmt)], " is still in flight"));
      }
    };
    check(warp.open);
    for (const std::vector<AsyncPiece>& group : warp.groups) check(group);
  }
}

}  // namespace tilert::sim
