// TMA: boxes between tensors and shared tiles.
#include <algorithm>
#include <cstring>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

constexpr int64_t kChunkBytes = SharedShadow::kSectorBytes;

}  // namespace

// Chunks of 16 bytes of a tile, panel by panel within a row of it: `shared` bytes from the start of shared memory, `global`
// elements from that of the tensor.
template <typename Visit>
void AsyncWork::ForEachChunk(const CTmaTile& tile, int64_t version, const std::vector<int64_t>& coords, int share,
                             Visit visit) const {
  const BufferInfo &tensor = kernel_.buffers[tile.tensor], &shared = kernel_.buffers[tile.tile];
  const size_t rank = tile.box.size();
  const int64_t columns = shared.shape.back(), rows = static_cast<int64_t>(shared.offsets.size()) / columns,
                step = kChunkBytes / shared.bytes;
  const int64_t start = shared.source->offset + version * shared.version_bytes;
  const int64_t rows_each = tile.by_panel ? rows : rows / tile.shares, first_row = tile.by_panel ? 0 : share * rows_each;
  const int64_t columns_each = tile.by_panel ? columns / tile.shares : columns,
                first_column = tile.by_panel ? share * columns_each : 0;
  for (int64_t row = first_row; row < first_row + rows_each; ++row) {
    int64_t rest = row, at = 0;
    bool inside = true;
    for (size_t d = rank - 1; d-- > 0;) {
      const int64_t c = coords[d] + rest % tile.box[d];
      rest /= tile.box[d];
      inside = inside && c >= 0 && c < tensor.shape[d];
      at += c * tensor.strides[d];
    }
    for (int64_t column = first_column; column < first_column + columns_each; column += step) {
      const int64_t c = coords[rank - 1] + column;
      Chunk chunk{start + shared.offsets[static_cast<size_t>(row * columns + column)], at + c, 0, 0};
      if (inside)
        chunk.begin = std::clamp<int64_t>(-c, 0, step),
        chunk.end = std::clamp<int64_t>(tensor.shape[rank - 1] - c, chunk.begin, step);
      visit(chunk);
    }
  }
}

std::vector<int64_t> AsyncWork::Coords(Warp& warp, const CTmaTile& tile) {
  std::vector<int64_t> coords;
  for (const Code& code : tile.coords) {
    // As box_start of the prelude has it.
    coords.push_back(std::clamp<int64_t>(block_.Uniform(warp, code).i, -(int64_t{1} << 30), int64_t{1} << 30));
  }
  const BufferInfo& tensor = kernel_.buffers[tile.tensor];
  if (!block_.failed() && coords.back() * tensor.bytes % kChunkBytes != 0)
    block_.Fail(warp, 0, Cat("TMA starts at element ", coords.back(), " of a row of ", tensor.source->name, ", between multiples of 16 bytes"));
  return coords;
}

Observer AsyncWork::AsyncObserver(const Warp& warp, int lane, int component, uint32_t epoch) const {
  Observer now = block_.ObserverOf(warp, lane);
  now.proxy = true;
  now.self.component = static_cast<int16_t>(component);
  now.self.epoch = epoch;
  now.self.lane = kNoLane;
  if (lane >= 0) now.own_fence = std::max(now.own_fence, warp.lane_fence[static_cast<size_t>(lane)]);
  return now;
}

// All of a version of a shared tile.
void AsyncWork::TouchTile(Warp& warp, BufferId tile, int64_t version, bool write, const Observer& now) {
  const BufferInfo& info = kernel_.buffers[tile];
  const int64_t first = (info.source->offset + version * info.version_bytes) / kChunkBytes;
  for (int64_t s = 0; s < info.source->shared.bytes() / kChunkBytes; ++s) {
    Agent other;
    if (const char* fault = block_.shared_shadow_.TouchAsync(static_cast<size_t>(first + s), write, now, &other))
      return block_.Fail(warp, 0,
                         Cat("version ", version, " of ", info.source->name, ", byte ", s * kChunkBytes, ": ", fault, " ",
                             block_.Describe(other)));
  }
  block_.run_.report->shared_accesses += static_cast<int64_t>(info.offsets.size());
}

// A part of a version of a tile, in the shared memory of `owner`.
void AsyncWork::TouchShare(Warp& warp, ThreadBlock& owner, const CTmaTile& tile, int64_t version,
                           const std::vector<int64_t>& coords, int share, bool write, const Observer& now) {
  ForEachChunk(tile, version, coords, share, [&](const Chunk& chunk) {
    Agent other;
    const char* fault = owner.shared_shadow_.TouchAsync(static_cast<size_t>(chunk.shared / kChunkBytes), write, now, &other);
    if (fault == nullptr || block_.failed()) return;
    block_.Fail(warp, 0,
                Cat("version ", version, " of ", kernel_.buffers[tile.tile].source->name, ", byte ", chunk.shared,
                    " of shared memory: ", fault, " ", block_.Describe(other)));
  });
}

void AsyncWork::TouchTensor(Warp& warp, const CTmaTile& tile, int64_t version, const std::vector<int64_t>& coords, int share,
                            AccessKind kind, const Observer& now) {
  const BufferInfo& tensor = kernel_.buffers[tile.tensor];
  Shadow* shadow = block_.run_.globals[tile.tensor].shadow.get();
  if (shadow == nullptr && kind != AccessKind::kRead)
    return block_.Fail(warp, 0, Cat("writes ", tensor.source->name, ", which is declared to be read only"));
  ForEachChunk(tile, version, coords, share, [&](const Chunk& chunk) {
    block_.run_.report->global_accesses += chunk.end - chunk.begin;
    for (int64_t e = chunk.begin; e < chunk.end && shadow != nullptr && !block_.failed(); ++e) {
      Agent other;
      if (const char* fault = shadow->Touch(static_cast<size_t>(chunk.global + e), kind, now, &other))
        block_.Fail(warp, 0,
                    Cat(tensor.source->name, ", element ", chunk.global + e, " of memory: ", fault, " ", block_.Describe(other)));
    }
    if (kind != AccessKind::kRead && chunk.end > chunk.begin && !block_.failed() &&
        !block_.shared_shadow_.SectorDefined(static_cast<size_t>(chunk.shared / kChunkBytes)))
      block_.Fail(
          warp, 0,
          Cat("stores from version ", version, " of ", kernel_.buffers[tile.tile].source->name, " what was never written"));
  });
}

void AsyncWork::Run(Warp& warp, const CStmt& stmt, const CTmaLoad& load) {
  if (!Issues(warp)) return;
  if (load.barrier != kNoId) return LoadAt(warp, stmt, load);
  const int64_t position = warp.positions[load.ring];
  PendingLoad work{
      &stmt, SlotOf(load.ring, position), RoundOf(load.ring, position), position % kernel_.kernel->rings[load.ring].slots,
      0,     Coords(warp, load.tile)};
  const std::vector<int> receivers = Receivers(load.multicast);
  while (receivers[static_cast<size_t>(work.share)] != block_.rank_) ++work.share;
  for (int rank : receivers) {
    if (!block_.failed()) block_.cluster_.block(rank).async_.Receive(warp, block_, work);
  }
  if (!block_.failed())
    TouchTensor(warp, load.tile, work.version, work.coords, work.share, AccessKind::kRead,
                AsyncObserver(warp, 0, SlotComponent(work.slot), work.round + 1));
  ++block_.run_.report->tma_loads;
}

// Into a tile of its own, counted by a declared barrier.
void AsyncWork::LoadAt(Warp& warp, const CStmt& stmt, const CTmaLoad& load) {
  const int number = BarrierSlot(warp, load.barrier, block_.Uniform(warp, load.index).i, 0);
  if (number < 0) return;
  const int64_t version = load.has_version ? block_.Uniform(warp, load.version).i : 0;
  PendingLoad work{&stmt, number, slots_[static_cast<size_t>(number)].full.phase, version, 0, Coords(warp, load.tile)};
  if (block_.failed()) return;
  if (version < 0 || version >= kernel_.buffers[load.tile.tile].source->versions)
    return block_.Fail(warp, 0, Cat("there is no version ", version, " of ", kernel_.buffers[load.tile.tile].source->name));
  Receive(warp, block_, work);
  if (!block_.failed())
    TouchTensor(warp, load.tile, work.version, work.coords, work.share, AccessKind::kRead,
                AsyncObserver(warp, 0, SlotComponent(work.slot), work.round + 1));
  ++block_.run_.report->tma_loads;
}

// Ranks of the blocks that differ from this one along `axes` only, ascending.
std::vector<int> AsyncWork::Receivers(kir::ClusterAxes axes) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < block_.cluster_.size(); ++rank) {
    int mine = block_.rank_, other = rank;
    bool receives = true;
    for (size_t d = 0; d < kernel_.kernel->cluster.size(); ++d) {
      const int extent = kernel_.kernel->cluster[d];
      receives = receives && ((axes >> d & 1) != 0 || mine % extent == other % extent);
      mine /= extent, other /= extent;
    }
    if (receives) ranks.push_back(rank);
  }
  return ranks;
}

// What `warp` of `sender` loads for this block.
void AsyncWork::Receive(Warp& warp, ThreadBlock& sender, const PendingLoad& work) {
  const auto& load = std::get<CTmaLoad>(work.stmt->op);
  Slot& slot = slots_[static_cast<size_t>(work.slot)];
  slot.filled = std::max(slot.filled, work.round + 1);
  const Observer now = sender.async_.AsyncObserver(warp, 0, SlotComponent(work.slot), work.round + 1);
  if (load.tile.shares == 1) {
    TouchTile(warp, load.tile.tile, work.version, true, now);
  } else {
    sender.async_.TouchShare(warp, block_, load.tile, work.version, work.coords, work.share, true, now);
  }
  if (&sender != &block_) block_.ReachedBy(warp, warp.epoch);
  loads_.push_back(work);
}

void AsyncWork::Land(const PendingLoad& load) {
  const CTmaTile& tile = std::get<CTmaLoad>(load.stmt->op).tile;
  const BufferInfo& info = kernel_.buffers[tile.tile];
  const uint8_t* tensor = block_.run_.globals[tile.tensor].data.data();
  ForEachChunk(tile, load.version, load.coords, load.share, [&](const Chunk& chunk) {
    uint8_t* to = block_.shared_.data() + chunk.shared;
    std::memset(to, 0, kChunkBytes);
    if (chunk.end == chunk.begin) return;
    std::memcpy(to + chunk.begin * info.bytes, tensor + (chunk.global + chunk.begin) * info.bytes,
                static_cast<size_t>((chunk.end - chunk.begin) * info.bytes));
  });
  for (BufferId other : kernel_.overlaps[tile.tile]) {
    if (other != tile.tile) ++written_[other];
  }
  ++landed_[tile.tile][static_cast<size_t>(load.version)];

  Mbarrier& full = slots_[static_cast<size_t>(load.slot)].full;
  const auto bytes = static_cast<int64_t>(info.offsets.size()) * info.bytes / tile.shares;
  full.bytes -= bytes;
  // What another block sends may come before this one has announced it.
  if (full.phase != load.round || (full.bytes < 0 && (full.pending == 0 || (tile.shares == 1 && !IsByHand(load.slot))))) {
    return FailAt(load.stmt->number, Cat(bytes, " bytes of round ", load.round, " arrive at ", SlotName(load.slot),
                                         ", whose full barrier is in phase ", full.phase, " and expects ", full.bytes + bytes,
                                         ": not announced by an ExpectTx, or by one of too few bytes"));
  }
  uint32_t& seen = full.arriving.seen[static_cast<size_t>(SlotComponent(load.slot))];
  seen = std::max(seen, load.round + 1);
  full.TryComplete();
}

void AsyncWork::Run(Warp& warp, const CStmt& stmt, const CTmaStore& store) {
  if (!Issues(warp)) return;
  PendingStore work;
  work.stmt = &stmt;
  work.group = warp.store_group;
  work.version = store.has_version ? block_.Uniform(warp, store.version).i : 0;
  work.coords = Coords(warp, store.tile);
  if (block_.failed()) return;
  if (work.version < 0 || work.version >= kernel_.buffers[store.tile.tile].source->versions)
    return block_.Fail(warp, 0, Cat("there is no version ", work.version, " of ", kernel_.buffers[store.tile.tile].source->name));
  work.share = store.tile.shares > 1 ? warp.index / kWarpgroupWarps : 0;
  const Observer reader = AsyncObserver(warp, 0, block_.components_.StoreRead(warp.component), work.group);
  if (store.tile.shares == 1) TouchTile(warp, store.tile.tile, work.version, false, reader);
  if (store.tile.shares > 1) TouchShare(warp, block_, store.tile, work.version, work.coords, work.share, false, reader);
  if (block_.failed()) return;
  TouchTensor(warp, store.tile, work.version, work.coords, work.share, store.add ? AccessKind::kAtomic : AccessKind::kWrite,
              AsyncObserver(warp, 0, block_.components_.StoreWrite(warp.component), work.group));
  ++block_.run_.report->tma_stores;
  warp.stores.push_back(std::move(work));
}

// The reads of a store happen, or else its writes.
void AsyncWork::Step(Warp& warp, PendingStore& store) {
  (void)warp;
  const auto& op = std::get<CTmaStore>(store.stmt->op);
  const BufferInfo& info = kernel_.buffers[op.tile.tile];
  size_t next = 0;
  if (store.stage == PendingStore::Stage::kIssued) {
    store.stage = PendingStore::Stage::kRead;
    store.data.resize(info.offsets.size() * static_cast<size_t>(info.bytes));
    ForEachChunk(op.tile, store.version, store.coords, store.share, [&](const Chunk& chunk) {
      std::memcpy(store.data.data() + kChunkBytes * next++, block_.shared_.data() + chunk.shared, kChunkBytes);
    });
    return;
  }
  store.stage = PendingStore::Stage::kWritten;
  uint8_t* tensor = block_.run_.globals[op.tile.tensor].data.data();
  const Instr add{.op = ExprOp::kAdd, .type = info.source->dtype, .result = info.source->dtype};
  ForEachChunk(op.tile, store.version, store.coords, store.share, [&](const Chunk& chunk) {
    const uint8_t* from = store.data.data() + kChunkBytes * next++ + chunk.begin * info.bytes;
    uint8_t* to = tensor + (chunk.global + chunk.begin) * info.bytes;
    if (!op.add && chunk.end > chunk.begin) std::memcpy(to, from, static_cast<size_t>((chunk.end - chunk.begin) * info.bytes));
    for (int64_t e = chunk.begin; e < chunk.end && op.add; ++e, from += info.bytes, to += info.bytes) {
      Value old, value, sum;
      LoadRow(info.source->dtype, to, 1, 1, &old);
      LoadRow(info.source->dtype, from, 1, 1, &value);
      EvalOp(add, &old, &value, nullptr, &sum, 1);
      StoreRow(info.source->dtype, &sum, 1, to, 1);
    }
  });
  store.data.clear();
}

void AsyncWork::Run(Warp& warp, const CStoreWait& wait) {
  if (Issues(warp)) {
    const uint32_t committed = warp.store_group - 1;
    const uint32_t done = committed > static_cast<uint32_t>(wait.pending) ? committed - static_cast<uint32_t>(wait.pending) : 0;
    const auto stage = wait.read ? PendingStore::Stage::kRead : PendingStore::Stage::kWritten;
    for (PendingStore& store : warp.stores) {
      while (store.group <= done && store.stage < stage) Step(warp, store);
    }
    warp.stores_read = std::max(warp.stores_read, done);
    if (!wait.read) warp.stores_written = std::max(warp.stores_written, done);
    while (!warp.stores.empty() && warp.stores.front().group <= warp.stores_read &&
           warp.stores.front().stage == PendingStore::Stage::kWritten)
      warp.stores.pop_front();
  }
  for (const CRetired& retired : wait.retires) {
    const int64_t version = retired.has_version ? block_.Uniform(warp, retired.version).i : 0;
    for (const PendingStore& store : warp.stores) {
      if (store.group <= warp.stores_read || std::get<CTmaStore>(store.stmt->op).tile.tile != retired.buffer ||
          store.version != version)
        continue;
      return block_.Fail(warp, 0,
                         Cat("declares version ", version, " of ", kernel_.buffers[retired.buffer].source->name,
                             " read, but the store at ", block_.PathOf(store.stmt->number), " may still read it"));
    }
  }
}

}  // namespace tilert::sim
