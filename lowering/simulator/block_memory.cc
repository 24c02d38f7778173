// Elements of buffers: where they are, whether the access is allowed, and their bytes.
#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

template <typename F>
void ForLanes(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

// memcpy of an element of 1, 2, 4 or 8 bytes.
void CopyElement(void* to, const void* from, int bytes) {
  switch (bytes) {
    case 1: std::memcpy(to, from, 1); return;
    case 2: std::memcpy(to, from, 2); return;
    case 4: std::memcpy(to, from, 4); return;
    default: std::memcpy(to, from, 8); return;
  }
}

// Lanes, of all 32, whose coordinate lies outside [0, extent).
uint32_t Outside(const Value* coords, int64_t extent) {
  uint32_t wrong = 0;
  for (int l = 0; l < kLanes; ++l) wrong |= uint32_t{static_cast<uint64_t>(coords[l].i) >= static_cast<uint64_t>(extent)} << l;
  return wrong;
}

// at[l] += coords[l] · stride; lanes that do not take part may hold anything.
void AddScaled(std::array<int64_t, kLanes>& at, const Value* coords, int64_t stride) {
  for (size_t l = 0; l < kLanes; ++l)
    at[l] = static_cast<int64_t>(static_cast<uint64_t>(at[l]) + static_cast<uint64_t>(coords[l].i) * static_cast<uint64_t>(stride));
}

}  // namespace

std::string ThreadBlock::Describe(const Places& places, int lane) const {
  std::string text;
  for (size_t d = 0; d < Info(places.buffer).shape.size(); ++d) text += Cat(d == 0 ? "" : ", ", places.coords[d][lane].i);
  return Cat(Info(places.buffer).source->name, "[", text, "]");
}

Agent ThreadBlock::AgentOf(const Warp& warp, int lane) const {
  return {cluster_.number_, warp.epoch, static_cast<int16_t>(warp.component), static_cast<int16_t>(lane), warp.stmt->number};
}

Observer ThreadBlock::ObserverOf(const Warp& warp, int lane) const {
  Observer now{AgentOf(warp, lane),        &warp.KnownTo(lane), static_cast<int16_t>(warp.component),
               static_cast<int16_t>(lane), false,       warp.own_fence};
  if (lane != 0) return now;  // lane 0 issues the TMA stores
  now.store_read = static_cast<int16_t>(components_.StoreRead(warp.component));
  now.store_write = static_cast<int16_t>(components_.StoreWrite(warp.component));
  now.stores_read = warp.stores_read;
  now.stores_written = warp.stores_written;
  return now;
}

Registers& ThreadBlock::Touch(Warp& warp, BufferId buffer) {
  Registers& registers = warp.registers[buffer];
  if (registers.data.empty()) Declare(warp, {buffer, false});
  if (const uint32_t group = std::max(registers.wgmma_acc, registers.wgmma_a); group > warp.wgmma_retired)
    Fail(warp, 0,
         Cat("touches ", Info(buffer).source->name, " while the wgmma at ", PathOf(async_.StmtOf(warp, group)),
             " may still use its registers"));
  registers.needs_fence = registers.unnamed = true;
  return registers;
}

uint32_t ThreadBlock::CheckBounds(Warp& warp, const Places& places, uint32_t mask, const std::vector<bool>* inside) {
  const BufferInfo& info = Info(places.buffer);
  uint32_t outside = 0;
  for (size_t d = 0; d < info.shape.size(); ++d) {
    const uint32_t wrong = Outside(places.coords[d], info.shape[d]) & mask;
    outside |= wrong;
    const bool is_version = info.source->space == kir::Space::kShared && d == 0;
    const bool claimed = is_version || (*inside)[d];
    if (wrong != 0 && claimed) {
      const int lane = __builtin_ctz(wrong);
      Fail(warp, lane,
           Cat("accesses ", Describe(places, lane), " outside its extent ", info.shape[d], " in dimension ", d,
               is_version               ? ": no such version"
               : info.layout != nullptr ? ""
                                        : ", which is relied on to be inside: nothing guards the access"));
      break;
    }
  }
  return outside;
}

// Whether the coordinates are those of the point that each lane runs, in a buffer that is laid out as the points are.
bool ThreadBlock::IsPoint(Warp& warp, const BufferInfo& info, const Value* const* coords) {
  if (points_ == nullptr || info.layout != points_->layout) return false;
  for (size_t d = 0; d < points_->vars.size(); ++d) {
    if (coords[d] != RowOf(warp, static_cast<Slot>(points_->vars[d]))) return false;
  }
  return true;
}

Places ThreadBlock::Locate(Warp& warp, BufferId buffer, const Value* const* coords, uint32_t mask,
                           const std::vector<bool>* inside) {
  const BufferInfo& info = Info(buffer);
  Places places;
  places.buffer = buffer;
  places.coords = coords;
  if (IsPoint(warp, info, coords)) {
    places.at.fill(point_reg_);
    return places;
  }
  places.outside = CheckBounds(warp, places, mask, inside);
  if (failed()) return places;
  const size_t rank = info.shape.size();
  if (info.layout != nullptr && info.layout->warps() <= warp.index) {
    Fail(warp, 0, Cat(info.source->name, " is laid out over ", info.layout->warps(), " warps only"));
    return places;
  }
  const uint32_t inside_lanes = mask & ~places.outside;
  if (info.layout != nullptr) {
    ForLanes(inside_lanes, [&](int l) {
      const int64_t reg = info.layout->RegOf(l, warp.index, [&](int d) { return coords[d][l].i; });
      if (reg < 0) Fail(warp, l, Cat("accesses ", Describe(places, l), ", which another thread holds"));
      places.at[static_cast<size_t>(l)] = reg;
    });
    return places;
  }
  const bool is_shared = info.source->space == kir::Space::kShared;
  places.at.fill(0);
  for (size_t d = is_shared ? 1 : 0; d < rank; ++d) AddScaled(places.at, coords[d], info.strides[is_shared ? d - 1 : d]);
  ForLanes(inside_lanes, [&](int l) {
    int64_t& at = places.at[static_cast<size_t>(l)];
    at = is_shared ? info.source->offset + coords[0][l].i * info.version_bytes + info.offsets[static_cast<size_t>(at)]
                   : at * info.bytes;
  });
  return places;
}

uint8_t* ThreadBlock::Memory(BufferId buffer) {
  return Info(buffer).source->space == kir::Space::kShared ? shared_.data() : run_.globals[buffer].data.data();
}

// Several threads of a block that execute one statement may leave the same value in one place.
bool ThreadBlock::LeavesTheSame(const Places& places, uint32_t mask, int lane, const LaneData& data) {
  const auto l = static_cast<size_t>(lane);
  const auto bytes = static_cast<size_t>(Info(places.buffer).bytes);
  if (std::memcmp(Memory(places.buffer) + places.at[l], &data.raw[l], bytes) == 0) return true;
  bool same = false;
  ForLanes(mask & ((uint32_t{1} << lane) - 1), [&](int other) {
    const auto o = static_cast<size_t>(other);
    same |= places.at[o] == places.at[l] && std::memcmp(&data.raw[o], &data.raw[l], bytes) == 0;
  });
  return same;
}

uint32_t ThreadBlock::TouchCells(Warp& warp, const Places& places, uint32_t mask, AccessKind kind, const LaneData* data) {
  if (mask == 0) return 0;
  const BufferInfo& info = Info(places.buffer);
  const bool is_shared = info.source->space == kir::Space::kShared;
  Shadow* shadow = is_shared ? nullptr : run_.globals[places.buffer].shadow.get();
  (is_shared ? run_.report->shared_accesses : run_.report->global_accesses) += std::popcount(mask);
  if (shadow == nullptr && !is_shared) {
    const int lane = __builtin_ctz(mask);
    if (kind != AccessKind::kRead)
      Fail(warp, lane, Cat("writes ", Describe(places, lane), ", which is declared to be read only"));
    return mask;
  }
  const int shift = CellShift(info);
  Observer now = ObserverOf(warp, __builtin_ctz(mask));
  uint32_t defined = 0;
  ForLanes(mask, [&](int l) {
    now.self.lane = now.lane = static_cast<int16_t>(l);
    now.clock = &warp.KnownTo(l);
    if (l != 0) now.store_read = now.store_write = -1;
    const auto first = static_cast<size_t>(places.at[static_cast<size_t>(l)]) >> shift;
    Agent other;
    bool all_defined = true;
    const char* fault = is_shared ? shared_shadow_.Touch(first, static_cast<size_t>(info.bytes) >> shift, kind, now, &other, &all_defined)
                                  : shadow->Touch(first, kind, now, &other);
    if (fault != nullptr && data != nullptr && other.stmt == warp.stmt->number && other.block == now.self.block && LeavesTheSame(places, mask, l, *data)) fault = nullptr;
    if (fault != nullptr) Fail(warp, l, Cat(Describe(places, l), ": ", fault, " ", Describe(other)));
    if (!is_shared) all_defined = shadow->defined(first);
    defined |= uint32_t{all_defined} << l;
  });
  return defined;
}

int ThreadBlock::CellShift(const BufferInfo& info) const {
  return __builtin_ctz(
      static_cast<unsigned>(info.source->space == kir::Space::kShared ? kernel_.shared_cell_bytes : info.bytes));
}

// Within one Elementwise an element that one point writes may be touched by no other point of the thread.
void ThreadBlock::TouchPoints(Warp& warp, Registers& registers, const Places& places, uint32_t mask, bool write) {
  if (point_ == 0) return;
  const auto other_point = [this](uint64_t point) { return point > point_base_ && point != point_; };
  uint64_t* const reads = registers.read_point.data();
  uint64_t* const writes = registers.write_point.data();
  ForLanes(mask, [&](int l) {
    const auto at = static_cast<size_t>(places.at[static_cast<size_t>(l)] * kLanes + l);
    if (other_point(writes[at]) || (write && other_point(reads[at])))
      Fail(warp, l, Cat("points of one Elementwise depend on each other through ", Describe(places, l)));
    (write ? writes : reads)[at] = point_;
  });
}

LaneData ThreadBlock::Read(Warp& warp, const Places& places, uint32_t mask) {
  const BufferInfo& info = Info(places.buffer);
  LaneData data;
  data.raw.fill(0);
  if (mask == 0) return data;
  if (info.layout == nullptr) {
    data.defined = TouchCells(warp, places, mask, AccessKind::kRead);
    const uint8_t* const memory = Memory(places.buffer);
    ForLanes(mask, [&](int l) {
      CopyElement(&data.raw[static_cast<size_t>(l)], memory + places.at[static_cast<size_t>(l)], info.bytes);
    });
    return data;
  }
  Registers& registers = Touch(warp, places.buffer);
  TouchPoints(warp, registers, places, mask, false);
  const uint8_t* const elements = registers.data.data();
  const uint32_t* const defined = registers.defined.data();
  ForLanes(mask, [&](int l) {
    const int64_t reg = places.at[static_cast<size_t>(l)];
    data.defined |= defined[reg] & uint32_t{1} << l;
    CopyElement(&data.raw[static_cast<size_t>(l)], elements + (reg * kLanes + l) * info.bytes, info.bytes);
  });
  return data;
}

void ThreadBlock::WriteRegisters(Warp& warp, const Places& places, uint32_t mask, const LaneData& data) {
  const int bytes = Info(places.buffer).bytes;
  Registers& registers = Touch(warp, places.buffer);
  TouchPoints(warp, registers, places, mask, true);
  uint8_t* const elements = registers.data.data();
  uint32_t* const defined = registers.defined.data();
  ForLanes(mask, [&](int l) {
    const int64_t reg = places.at[static_cast<size_t>(l)];
    const uint32_t bit = uint32_t{1} << l;
    defined[reg] = (defined[reg] & ~bit) | (data.defined & bit);
    CopyElement(elements + (reg * kLanes + l) * bytes, &data.raw[static_cast<size_t>(l)], bytes);
  });
}

void ThreadBlock::Write(Warp& warp, const Places& places, uint32_t mask, const LaneData& data) {
  const BufferInfo& info = Info(places.buffer);
  if (mask == 0) return;
  if (info.layout != nullptr) return WriteRegisters(warp, places, mask, data);
  const bool is_shared = info.source->space == kir::Space::kShared;
  if (is_shared) async_.SharedWritten(places.buffer);
  TouchCells(warp, places, mask, AccessKind::kWrite, &data);
  if (failed()) return;
  if (const uint32_t undefined = mask & ~data.defined; undefined != 0 && !is_shared) {
    const int lane = __builtin_ctz(undefined);
    return Fail(warp, lane, Cat("writes to ", Describe(places, lane), " a value that was never written"));
  }
  uint8_t* const memory = Memory(places.buffer);
  const int shift = CellShift(info);
  ForLanes(mask, [&](int l) {
    const int64_t at = places.at[static_cast<size_t>(l)];
    CopyElement(memory + at, &data.raw[static_cast<size_t>(l)], info.bytes);
    for (int64_t cell = at >> shift; is_shared && cell < (at + info.bytes) >> shift; ++cell)
      shared_shadow_.SetDefined(static_cast<size_t>(cell), data.defined >> l & 1);
  });
}

}  // namespace tilert::sim
