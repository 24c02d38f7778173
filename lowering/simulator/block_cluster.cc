// Sums over the blocks of a cluster: each thread's place in its block's part, and its neighbours' reads of it.
#include <cstring>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

constexpr int64_t kWordsAChunk = 4, kWordBytes = 4;

}  // namespace

uint64_t AddWords(DType type, uint64_t a, uint64_t b) {
  if (!IsFloat(type)) return static_cast<uint32_t>(a + b);
  const auto a_word = static_cast<uint32_t>(a), b_word = static_cast<uint32_t>(b);
  float x, y;
  std::memcpy(&x, &a_word, sizeof(x)), std::memcpy(&y, &b_word, sizeof(y));
  x += y;
  uint32_t word;
  std::memcpy(&word, &x, sizeof(word));
  return word;
}

// Where the lanes' register `reg` is in the part; `coords` holds what the places refer to.
Places ThreadBlock::PartPlaces(const Warp& warp, BufferId part, int64_t reg, PartCoords& coords) const {
  const BufferInfo& info = Info(part);
  const std::vector<int64_t>& extents = info.source->shared.extents;
  Places places;
  places.buffer = part;
  for (int l = 0; l < kLanes; ++l) {
    const int64_t thread = int64_t{warp.index} * kLanes + l, at[] = {0, reg / kWordsAChunk, thread, reg % kWordsAChunk};
    for (size_t d = 0; d < coords.rows.size(); ++d) coords.rows[d][static_cast<size_t>(l)].i = at[d];
    places.at[static_cast<size_t>(l)] = info.source->offset + ((at[1] * extents[1] + thread) * kWordsAChunk + at[3]) * kWordBytes;
  }
  for (size_t d = 0; d < coords.rows.size(); ++d) coords.list[d] = coords.rows[d].data();
  places.coords = coords.list.data();
  return places;
}

void ThreadBlock::RunPartStore(Warp& warp, const CPartStore& store) {
  Places from;
  from.buffer = store.src;
  for (int64_t reg = 0; reg < Info(store.src).layout->regs() && !failed(); ++reg) {
    PartCoords coords;
    from.at.fill(reg);
    Write(warp, PartPlaces(warp, store.part, reg, coords), kAllLanes, Read(warp, from, kAllLanes));
  }
}

void ThreadBlock::RunPartAdd(Warp& warp, const CPartAdd& add) {
  const int64_t peer = Uniform(warp, add.peer).i;
  if (failed()) return;
  if (peer < 0 || peer >= cluster_.size()) return Fail(warp, 0, Cat("reads from block ", peer, " of a cluster of ", cluster_.size()));
  ThreadBlock& other = cluster_.block(static_cast<int>(peer));
  Places sum;
  sum.buffer = add.acc;
  for (int64_t reg = 0; reg < Info(add.acc).layout->regs() && !failed(); ++reg) {
    PartCoords coords;
    sum.at.fill(reg);
    LaneData data = Read(warp, sum, kAllLanes);
    const LaneData part = other.Read(warp, PartPlaces(warp, add.part, reg, coords), kAllLanes);
    for (size_t l = 0; l < kLanes; ++l) data.raw[l] = AddWords(Info(add.acc).source->dtype, data.raw[l], part.raw[l]);
    data.defined &= part.defined;
    Write(warp, sum, kAllLanes, data);
  }
  other.ReachedBy(warp, warp.epoch);
}

}  // namespace tilert::sim
