// The memory that one block of a launch sees: bounds, conversion-free loads and stores, and the optional checks for races and for
// reads of what was never written.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "ir/bind_args.h"
#include "ir/executor.h"
#include "ir/executor_races.h"
#include "ir/program.h"

namespace tilert::exec {

// A buffer as one block sees it. A buffer allocated inside a parallel loop or thread region has a copy for each lane.
struct View {
  const Buffer* buffer = nullptr;
  BoundTensor tensor;
  Value outside = {};            // what a read outside the buffer gives
  int64_t lane_stride = 0;       // elements between the copies of two lanes; 0: one for all
  std::vector<uint8_t> written;  // a flag an element when reads of unwritten elements are reported
  std::unique_ptr<char[]> storage;
  int64_t capacity = 0;  // bytes of storage
  int held = 0;          // boxes of it that are held
};

// A box of a view, seen by one lane.
struct Box {
  BufferId buffer = kNoId;
  absl::InlinedVector<int64_t, 4> start, extent;
  int lane = 0;
  int64_t size() const;
};

// Lanes that execute a statement together. `active`: n flags. Lane k speaks for agent `first_agent` + k in race reports, and has
// copy `first_lane` + k of buffers with a copy for each lane.
struct Lanes {
  int n = 1;
  const uint8_t* active = nullptr;
  int64_t first_agent = 0;
  int64_t first_lane = 0;
};

// A box that an unfinished asynchronous statement reads or writes.
struct HeldBox {
  Box box;
  bool writes = false;
  bool accumulates = false;  // by the tensor cores, which take gemms in order
};

// What the blocks of a launch share. Thread-safe through its locks.
struct SharedState {
  std::array<std::mutex, 64> atomic_locks;  // by address
  std::mutex race_lock;
  RaceTable races;  // agents are blocks
  bool check_races = false;
};

class Memory {
 public:
  // `tensors`: every buffer's memory and shape, by id; those of local buffers have no memory yet.
  Memory(const Program& program, const std::vector<BoundTensor>& tensors, const ExecOptions& options, SharedState* shared);

  void StartBlock(int64_t block);
  // Counts `bytes` as those of `buffer`. ResourceExhausted: more than a block may have.
  absl::Status Charge(BufferId buffer, int64_t bytes);
  // Makes `buffer` exist, zeroed and unwritten: one for the block (`lanes` 0), or one for each of `lanes` lanes.
  absl::Status Allocate(BufferId buffer, int lanes);
  const View& view(BufferId buffer) const { return views_[buffer]; }
  // From here on, reads outside `buffer` give `value` (of its type) instead of what they gave, which is returned.
  Value SetOutside(BufferId buffer, Value value) { return std::exchange(views_[buffer].outside, value); }

  // Element accesses of lanes: `index` has one register a dimension. Elements outside load the view's `outside` and are not
  // stored. `mask`: lanes that load, in addition to being active; null: all.
  void Load(BufferId buffer, absl::Span<const Value* const> index, const Lanes& lanes, const Value* mask, Value* out);
  void Store(BufferId buffer, absl::Span<const Value* const> index, const Lanes& lanes, const Value* values);
  // `before`, if given: takes each lane's old element, zero where there is none.
  void Atomic(AtomicOp op, BufferId buffer, absl::Span<const Value* const> index, const Lanes& lanes, const Value* values,
              Value* before);

  // Elements [first, first + count) of a box in row-major order. Outside elements read as `fill` and are not written.
  void Read(const Box& box, int64_t first, int64_t count, Value fill, Value* out);
  void Write(const Box& box, int64_t first, int64_t count, const Value* values);
  void Atomic(AtomicOp op, const Box& box, int64_t first, int64_t count, const Value* values);

  // Race reports among the lanes of a parallel loop or thread region, from here to the matching End.
  void BeginLaneRaces(bool threads);
  void EndLaneRaces() { lane_races_.on = false; }
  // The lanes go on behind all that these threads have done.
  void OrderLanes(const std::vector<int64_t>& threads) {
    if (lane_races_.on) lane_races_.table.Forget(threads);
  }
  // One of them does.
  void OrderLane(int64_t agent, const std::vector<int64_t>& threads) {
    if (lane_races_.on) lane_races_.table.Learn(agent, threads);
  }
  // The lanes whose past an arrival of this one tells.
  std::vector<int64_t> KnownTo(int64_t agent) const { return lane_races_.table.WithKnown(agent); }
  void SetLane(int64_t agent) { lane_races_.agent = agent; }  // the agent of the box accesses to come
  struct LaneRaces {
    bool on = false, threads = false;
    int64_t agent = 0;
    RaceTable table;
  };
  void Exchange(LaneRaces* other) { std::swap(lane_races_, *other); }  // when another role goes on

  // Race reports among the concurrent parts of the block; what follows is done by `part`, whose clock `now` must live on.
  void BeginParts() { part_races_.Clear(), parts_on_ = options_.check_races; }
  void EndParts() { parts_on_ = false; }
  void SetPart(size_t part, const Clock* now) { part_ = part, now_ = now; }

  // What an asynchronous statement touches until it has had its effect: accesses in between are reported, whatever the options.
  void Hold(const std::vector<HeldBox>& boxes);
  void Release(const std::vector<HeldBox>& boxes);  // boxes held before
  void SetChecksHeld(bool on) { checks_held_ = on; }

  // The first race, unwritten read or index that does not fit 64 bits since the last call.
  absl::Status TakeError() { return std::exchange(error_, absl::OkStatus()); }
  bool ok() const { return error_.ok(); }
  bool checks_index() const { return options_.check_index; }
  void ReportIndex(absl::string_view op, int64_t a, int64_t b);

 private:
  template <typename F>
  void ForEachRow(const Box& box, int64_t first, int64_t count, F row);
  void Offsets(const View& view, absl::Span<const Value* const> index, const Lanes& lanes, const Value* mask);
  Value AtomicElement(AtomicOp op, BufferId buffer, int64_t offset, Value value);
  bool Checked(const View& view) const;
  void CheckRead(BufferId buffer, int64_t offset, int64_t agent);
  void CheckWrite(BufferId buffer, int64_t offset, int64_t agent, const Value* value);
  void Touch(BufferId buffer, int64_t offset, int64_t agent, TouchKind kind, bool changes);
  void CheckHeld(BufferId buffer, int64_t offset, bool writes);
  static std::vector<int64_t> SubscriptsOf(const View& view, int64_t offset);
  void Report(BufferId buffer, int64_t offset, absl::string_view what);
  char* At(const View& view, int64_t offset) const {
    return static_cast<char*>(view.tensor.data) + offset * DTypeBytes(view.buffer->dtype);
  }

  const ExecOptions& options_;
  SharedState* shared_;
  std::vector<View> views_;
  std::vector<int64_t> offsets_;  // scratch: one a lane
  int64_t allocated_ = 0;
  int64_t block_ = 0;
  LaneRaces lane_races_;
  bool parts_on_ = false, checks_held_ = true;
  size_t part_ = 0;
  const Clock* now_ = nullptr;
  PartRaces part_races_;
  std::vector<HeldBox> held_;
  absl::Status error_;
};

}  // namespace tilert::exec
