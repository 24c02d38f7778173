#include "lowering/simulator/shadow.h"

#include <bit>

namespace tilert::sim {
namespace {

const char* UnorderedWith(AccessKind kind) {
  return kind == AccessKind::kRead ? "reads what is written, not ordered before it, by"
                                   : "writes what is also written, not ordered before it, by";
}
const char* Unfenced(AccessKind kind) {
  return kind == AccessKind::kRead
             ? "reads through the async proxy what is written, without a ProxyFence and a barrier since, by"
             : "overwrites through the async proxy what is written, without a ProxyFence and a barrier since, by";
}
constexpr const char* kOverwritesReads = "overwrites what is read, not ordered before it, by";

}  // namespace

const char* Shadow::Check(const Cell& cell, AccessKind kind, const Observer& now, Agent* other) const {
  *other = cell.write;
  if (cell.in_flight)
    return kind == AccessKind::kRead ? "reads data still in flight, copied by" : "overwrites data still in flight, copied by";
  const bool atomics = kind == AccessKind::kAtomic && cell.atomic;
  if (cell.has_write && !atomics) {
    if (!Ordered(cell.write, now)) return UnorderedWith(kind);
    if (!Fenced(cell.write, now)) return Unfenced(kind);
    if (cell.writes >= 0) {
      for (const Agent& write : rows_[static_cast<size_t>(cell.writes)]) {
        *other = write;
        if (!Ordered(write, now)) return UnorderedWith(kind);
        if (!Fenced(write, now)) return Unfenced(kind);
      }
    }
  }
  if (kind == AccessKind::kRead || !cell.has_read) return nullptr;
  *other = cell.read;
  if (cell.many_blocks || !Ordered(cell.read, now)) return kOverwritesReads;
  if (cell.reads < 0) return nullptr;
  for (const Agent& read : rows_[static_cast<size_t>(cell.reads)]) {
    *other = read;
    if (!Ordered(read, now)) return kOverwritesReads;
  }
  return nullptr;
}

// One entry a component: its latest event, by several lanes when the one before was another lane's and is not ordered before it.
void Shadow::AddTo(int32_t& row, const Agent& agent, const Observer* now) {
  if (row < 0) {
    if (free_rows_.empty()) {
      row = static_cast<int32_t>(rows_.size());
      rows_.emplace_back();
    } else {
      row = free_rows_.back();
      free_rows_.pop_back();
    }
  }
  for (Agent& known : rows_[static_cast<size_t>(row)]) {
    if (known.component != agent.component) continue;
    const bool several = known.lane != agent.lane && (now == nullptr || !Ordered(known, *now));
    known = agent;
    if (several) known.lane = kSeveralLanes;
    return;
  }
  rows_[static_cast<size_t>(row)].push_back(agent);
}

void Shadow::Free(int32_t& row) {
  if (row < 0) return;
  rows_[static_cast<size_t>(row)].clear();
  free_rows_.push_back(row);
  row = -1;
}

void Shadow::RecordRead(Cell& cell, const Observer& now) {
  const Agent before = cell.read;
  const bool had = cell.has_read;
  cell.has_read = true;
  cell.read = now.self;
  if (!had) return;
  if (before.block != now.self.block) {
    cell.many_blocks = true;
    Free(cell.reads);
    return;
  }
  // Whoever comes after the new reader comes after what is ordered before that.
  if (cell.reads < 0 && Ordered(before, now)) return;
  if (cell.reads < 0 && before.component == now.self.component) {
    cell.read.lane = before.lane == now.self.lane ? before.lane : kSeveralLanes;
    return;
  }
  if (cell.reads < 0) AddTo(cell.reads, before, nullptr);
  AddTo(cell.reads, now.self, &now);
}

void Shadow::RecordWrite(Cell& cell, AccessKind kind, const Observer& now) {
  const Agent before = cell.write;
  // Atomics need no order among each other: the writer may be several at once.
  const bool atomics = kind == AccessKind::kAtomic && cell.atomic && cell.has_write;
  cell.has_write = true;
  cell.write = now.self;
  if (!atomics) {
    Free(cell.writes);
  } else if (before.block != now.self.block) {
    cell.write.block = kSeveralBlocks;
  } else if (cell.writes >= 0 || !Ordered(before, now)) {
    if (cell.writes < 0) AddTo(cell.writes, before, nullptr);
    AddTo(cell.writes, now.self, &now);
  }
  cell.atomic = kind == AccessKind::kAtomic;
  cell.in_flight = kind == AccessKind::kAsyncWrite;
  cell.has_read = cell.many_blocks = false;
  Free(cell.reads);
}

const char* Shadow::Touch(size_t index, AccessKind kind, const Observer& now, Agent* other) {
  Cell& cell = cells_[index];
  if (const char* fault = Check(cell, kind, now, other)) return fault;
  if (kind == AccessKind::kRead) {
    RecordRead(cell, now);
  } else {
    RecordWrite(cell, kind, now);
  }
  return nullptr;
}

void Shadow::Settle(size_t index, const Agent& agent, bool defined) {
  Cell& cell = cells_[index];
  cell.in_flight = false;
  cell.write = agent;
  cell.defined = defined;
}

void Shadow::Forget(size_t index) {
  Cell& cell = cells_[index];
  Free(cell.reads);
  Free(cell.writes);
  cell = Cell();
  cell.defined = true;
}

SharedShadow::SharedShadow(int64_t bytes, int cell_bytes)
    : cells_a_sector_(cell_bytes == 0 ? 1 : static_cast<size_t>(kSectorBytes / cell_bytes)),
      sector_shift_(std::countr_zero(cells_a_sector_)),
      cells_(cell_bytes == 0 ? 0 : static_cast<size_t>(bytes / cell_bytes)),
      sectors_(cell_bytes == 0 ? 0 : static_cast<size_t>((bytes + kSectorBytes - 1) / kSectorBytes)) {}

const char* SharedShadow::CheckReads(const Sector& sector, const Observer& now, Agent* other) const {
  for (const Agent& read : sector.reads) {
    *other = read;
    if (!Ordered(read, now)) return "overwrites what is still read, as far as this thread knows, by";
  }
  return nullptr;
}

const char* SharedShadow::TouchSector(Sector& sector, AccessKind kind, const Observer& now, Agent* other) {
  if (sector.has_write && !Ordered(sector.write, now)) {
    *other = sector.write;
    return kind == AccessKind::kRead ? "reads what may not have arrived yet, written by"
                                     : "overwrites what may not have arrived yet, written by";
  }
  if (kind != AccessKind::kRead && !sector.reads.empty()) {
    if (const char* fault = CheckReads(sector, now, other)) return fault;
  }
  sector.generic = true;
  return nullptr;
}

const char* SharedShadow::Touch(size_t first, size_t count, AccessKind kind, const Observer& now, Agent* other, bool* defined) {
  for (size_t cell = first; cell < first + count; ++cell) {
    if (cell == first || (cell & (cells_a_sector_ - 1)) == 0) {
      if (const char* fault = TouchSector(sectors_[cell >> sector_shift_], kind, now, other)) return fault;
    }
    if (const char* fault = cells_.Touch(cell, kind, now, other)) return fault;
    *defined = *defined && cells_.defined(cell);
  }
  return nullptr;
}

const char* SharedShadow::TouchAsync(size_t index, bool write, const Observer& now, Agent* other) {
  Sector& sector = sectors_[index];
  const size_t first = index * cells_a_sector_, end = first + cells_a_sector_;
  if (sector.has_write && !Ordered(sector.write, now)) {
    *other = sector.write;
    return write ? "overwrites what may not have arrived yet, written by" : "reads what may not have arrived yet, written by";
  }
  if (sector.generic) {
    for (size_t cell = first; cell < end; ++cell) {
      if (const char* fault = cells_.Check(cells_.at(cell), write ? AccessKind::kWrite : AccessKind::kRead, now, other))
        return fault;
    }
  }
  if (!write) {
    for (Agent& read : sector.reads) {
      if (read.component != now.self.component) continue;
      read = now.self;
      return nullptr;
    }
    sector.reads.push_back(now.self);
    return nullptr;
  }
  if (const char* fault = CheckReads(sector, now, other)) return fault;
  sector.reads.clear();
  if (sector.generic || !sector.has_write) {
    for (size_t cell = first; cell < end; ++cell) cells_.Forget(cell);
  }
  sector.generic = false;
  sector.has_write = true;
  sector.write = now.self;
  return nullptr;
}

bool SharedShadow::SectorDefined(size_t index) const {
  if (!sectors_[index].generic) return sectors_[index].has_write;
  for (size_t cell = index * cells_a_sector_; cell < (index + 1) * cells_a_sector_; ++cell) {
    if (!cells_.defined(cell)) return false;
  }
  return true;
}

}  // namespace tilert::sim
