#include "lowering/simulator/shadow.h"

namespace tilert::sim {
namespace {

constexpr int32_t kSeveral = -1;
constexpr uint32_t kSeveralBlocks = 0xffffffff;

bool Unordered(const Agent& earlier, const Agent& later) {
  if (earlier.block != later.block) return true;
  return earlier.thread != later.thread && earlier.phase >= later.phase;
}

bool ReadsUnordered(const Shadow::Cell& cell, const Agent& agent) {
  if (!cell.has_read) return false;
  if (cell.many_blocks || Unordered(cell.read, agent)) return true;
  return cell.many_threads && cell.read.phase >= agent.phase;
}

void RecordRead(Shadow::Cell& cell, const Agent& agent) {
  if (cell.has_read && cell.read.block != agent.block) cell.many_blocks = true;
  const bool same_phase = cell.has_read && cell.read.block == agent.block && cell.read.phase == agent.phase;
  cell.many_threads = same_phase && (cell.many_threads || cell.read.thread != agent.thread);
  cell.has_read = true;
  cell.read = agent;
}

}  // namespace

const char* Shadow::Touch(size_t index, AccessKind kind, const Agent& agent, Agent* other) {
  Cell& cell = cells_[index];
  *other = cell.write;
  if (cell.in_flight)
    return kind == AccessKind::kRead ? "reads data still in flight, copied by" : "overwrites data still in flight, copied by";
  const bool atomics = kind == AccessKind::kAtomic && cell.atomic;
  if (cell.has_write && !atomics && Unordered(cell.write, agent)) {
    return kind == AccessKind::kRead ? "reads what is written, not ordered before it, by"
                                     : "writes what is also written, not ordered before it, by";
  }
  if (kind == AccessKind::kRead) {
    RecordRead(cell, agent);
    return nullptr;
  }
  if (ReadsUnordered(cell, agent)) {
    *other = cell.read;
    return "overwrites what is read, not ordered before it, by";
  }
  const Agent before = cell.write;
  const bool joins = atomics && cell.has_write && Unordered(before, agent);
  cell.has_write = true;
  cell.write = agent;
  if (joins) {  // the writer is now several at once: ordered before nobody of the same phase, or of any block
    cell.write.thread = kSeveral;
    if (before.block != agent.block) cell.write.block = kSeveralBlocks;
  }
  cell.atomic = kind == AccessKind::kAtomic;
  cell.in_flight = kind == AccessKind::kAsyncWrite;
  return nullptr;
}

void Shadow::Settle(size_t index, const Agent& agent, bool defined) {
  Cell& cell = cells_[index];
  cell.in_flight = false;
  cell.write = agent;
  cell.defined = defined;
}

}  // namespace tilert::sim
