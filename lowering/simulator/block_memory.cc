// Elements of buffers: where they are, whether the access is allowed, and their bytes.
#include <algorithm>
#include <cstring>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

template <typename F>
void ForLanes(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

}  // namespace

std::string ThreadBlock::Describe(const Places& places, int lane) const {
  std::string text;
  for (size_t d = 0; d < Info(places.buffer).shape.size(); ++d) text += Cat(d == 0 ? "" : ", ", places.coords[d][lane].i);
  return Cat(Info(places.buffer).source->name, "[", text, "]");
}

Agent ThreadBlock::AgentOf(const Warp& warp, int lane) const {
  return {number_, warp.epoch, static_cast<int16_t>(warp.number), static_cast<int16_t>(lane), warp.stmt->number};
}

Observer ThreadBlock::ObserverOf(const Warp& warp, int lane) const {
  Observer now{AgentOf(warp, lane),        &warp.clock, static_cast<int16_t>(warp.number),
               static_cast<int16_t>(lane), false,       warp.own_fence};
  if (lane != 0) return now;  // lane 0 issues the TMA stores
  now.store_read = static_cast<int16_t>(components_.StoreRead(warp.number));
  now.store_write = static_cast<int16_t>(components_.StoreWrite(warp.number));
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
  registers.needs_fence = true;
  return registers;
}

uint32_t ThreadBlock::CheckBounds(Warp& warp, const Places& places, uint32_t mask, const std::vector<bool>* inside) {
  const BufferInfo& info = Info(places.buffer);
  uint32_t outside = 0;
  for (size_t d = 0; d < info.shape.size(); ++d) {
    uint32_t wrong = 0;
    ForLanes(mask, [&](int l) { wrong |= uint32_t{places.coords[d][l].i < 0 || places.coords[d][l].i >= info.shape[d]} << l; });
    outside |= wrong;
    const bool is_version = info.source->space == kir::Space::kShared && d == 0;
    const bool claimed = is_version || (inside == nullptr ? info.layout != nullptr : (*inside)[d]);
    if (wrong != 0 && claimed) {
      const int lane = __builtin_ctz(wrong);
      Fail(warp, lane,
           Cat("accesses ", Describe(places, lane), " outside its extent ", info.shape[d], " in dimension ", d,
               is_version          ? ": no such version"
               : inside == nullptr ? ""
                                   : ", which is declared to be inside"));
      break;
    }
  }
  return outside;
}

Places ThreadBlock::Locate(Warp& warp, BufferId buffer, const Value* const* coords, uint32_t mask,
                           const std::vector<bool>* inside) {
  const BufferInfo& info = Info(buffer);
  Places places;
  places.buffer = buffer;
  places.coords = coords;
  places.outside = CheckBounds(warp, places, mask, inside);
  if (failed()) return places;
  const size_t rank = info.shape.size();
  if (info.layout != nullptr && info.layout->warps() <= warp.index) {
    Fail(warp, 0, Cat(info.source->name, " is laid out over ", info.layout->warps(), " warps only"));
    return places;
  }
  ForLanes(mask & ~places.outside, [&](int l) {
    int64_t at = 0;
    if (info.source->space == kir::Space::kGlobal) {
      for (size_t d = 0; d < rank; ++d) at += coords[d][l].i * info.strides[d];
      at *= info.bytes;
    } else if (info.source->space == kir::Space::kShared) {
      for (size_t d = 1; d < rank; ++d) at += coords[d][l].i * info.strides[d - 1];
      at = info.source->offset + coords[0][l].i * info.version_bytes + info.offsets[static_cast<size_t>(at)];
    } else {
      at = info.layout->RegOf(l, warp.index, [&](int d) { return coords[d][l].i; });
      if (at < 0) Fail(warp, l, Cat("accesses ", Describe(places, l), ", which another thread holds"));
    }
    places.at[static_cast<size_t>(l)] = at;
  });
  return places;
}

uint8_t* ThreadBlock::Memory(const Places& places, int lane) {
  uint8_t* base =
      Info(places.buffer).source->space == kir::Space::kShared ? shared_.data() : run_.globals[places.buffer].data.data();
  return base + places.at[static_cast<size_t>(lane)];
}

// True when every cell of the element holds a defined value.
bool ThreadBlock::TouchCells(Warp& warp, const Places& places, int lane, AccessKind kind) {
  const BufferInfo& info = Info(places.buffer);
  const bool is_shared = info.source->space == kir::Space::kShared;
  Shadow* shadow = is_shared ? nullptr : run_.globals[places.buffer].shadow.get();
  ++(is_shared ? run_.report->shared_accesses : run_.report->global_accesses);
  if (shadow == nullptr && !is_shared) {
    if (kind != AccessKind::kRead)
      Fail(warp, lane, Cat("writes ", Describe(places, lane), ", which is declared to be read only"));
    return true;
  }
  const int cell_bytes = is_shared ? kernel_.shared_cell_bytes : info.bytes;
  const auto first = static_cast<size_t>(places.at[static_cast<size_t>(lane)] / cell_bytes);
  const Observer now = ObserverOf(warp, lane);
  bool defined = true;
  for (size_t cell = first; cell < first + static_cast<size_t>(info.bytes / cell_bytes); ++cell) {
    Agent other;
    if (const char* fault = is_shared ? shared_shadow_.Touch(cell, kind, now, &other) : shadow->Touch(cell, kind, now, &other)) {
      Fail(warp, lane, Cat(Describe(places, lane), ": ", fault, " ", Describe(other)));
    }
    defined = defined && (is_shared ? shared_shadow_.defined(cell) : shadow->defined(cell));
  }
  return defined;
}

// Within one Elementwise an element that one point writes may be touched by no other point of the thread.
void ThreadBlock::TouchPoint(Warp& warp, const Places& places, int lane, bool write) {
  if (point_ == 0) return;
  Registers& registers = warp.registers[places.buffer];
  const auto at = static_cast<size_t>(places.at[static_cast<size_t>(lane)] * kLanes + lane);
  auto other_point = [&](uint64_t point) { return point > point_base_ && point != point_; };
  if (other_point(registers.write_point[at]) || (write && other_point(registers.read_point[at]))) {
    Fail(warp, lane, Cat("points of one Elementwise depend on each other through ", Describe(places, lane)));
  }
  (write ? registers.write_point : registers.read_point)[at] = point_;
}

LaneData ThreadBlock::Read(Warp& warp, const Places& places, uint32_t mask) {
  const BufferInfo& info = Info(places.buffer);
  LaneData data;
  data.raw.fill(0);
  const auto bytes = static_cast<size_t>(info.bytes);
  if (info.layout == nullptr) {
    ForLanes(mask, [&](int l) {
      data.defined |= uint32_t{TouchCells(warp, places, l, AccessKind::kRead)} << l;
      std::memcpy(&data.raw[static_cast<size_t>(l)], Memory(places, l), bytes);
    });
    return data;
  }
  if (mask == 0) return data;
  const Registers& registers = Touch(warp, places.buffer);
  ForLanes(mask, [&](int l) {
    const auto reg = static_cast<size_t>(places.at[static_cast<size_t>(l)]);
    TouchPoint(warp, places, l, false);
    data.defined |= registers.defined[reg] & uint32_t{1} << l;
    std::memcpy(&data.raw[static_cast<size_t>(l)], &registers.data[(reg * kLanes + static_cast<size_t>(l)) * bytes], bytes);
  });
  return data;
}

void ThreadBlock::Write(Warp& warp, const Places& places, uint32_t mask, const LaneData& data) {
  const BufferInfo& info = Info(places.buffer);
  const auto bytes = static_cast<size_t>(info.bytes);
  const bool is_shared = info.source->space == kir::Space::kShared;
  if (mask == 0) return;
  if (is_shared) async_.SharedWritten(places.buffer);
  if (info.layout != nullptr) Touch(warp, places.buffer);
  ForLanes(mask, [&](int l) {
    const bool defined = data.defined >> l & 1;
    if (info.layout != nullptr) {
      Registers& registers = warp.registers[places.buffer];
      const auto reg = static_cast<size_t>(places.at[static_cast<size_t>(l)]);
      TouchPoint(warp, places, l, true);
      registers.defined[reg] = (registers.defined[reg] & ~(uint32_t{1} << l)) | uint32_t{defined} << l;
      std::memcpy(&registers.data[(reg * kLanes + static_cast<size_t>(l)) * bytes], &data.raw[static_cast<size_t>(l)], bytes);
      return;
    }
    TouchCells(warp, places, l, AccessKind::kWrite);
    if (failed()) return;
    if (!is_shared && !defined) return Fail(warp, l, Cat("writes to ", Describe(places, l), " a value that was never written"));
    std::memcpy(Memory(places, l), &data.raw[static_cast<size_t>(l)], bytes);
    if (!is_shared) return;
    const auto first = static_cast<size_t>(places.at[static_cast<size_t>(l)] / kernel_.shared_cell_bytes);
    for (size_t c = first; c < first + bytes / static_cast<size_t>(kernel_.shared_cell_bytes); ++c)
      shared_shadow_.SetDefined(c, defined);
  });
}

}  // namespace tilert::sim
