#include "ir/executor_memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "ir/int_eval.h"
#include "ir/int_math.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

constexpr int64_t kOutside = INT64_MIN;

bool IsLocal(const View& view) { return view.buffer->scope != Scope::kGlobal; }

// Calls f(first, end, step) for the runs of equally spaced offsets inside offsets[0, n); outside ones are a run of step kOutside.
template <typename F>
void ForEachRun(const int64_t* offsets, int n, F f) {
  for (int k = 0; k < n;) {
    int end = k + 1;
    if (offsets[k] == kOutside) {
      while (end < n && offsets[end] == kOutside) ++end;
      f(k, end, kOutside);
    } else {
      const int64_t step = end < n && offsets[end] != kOutside ? offsets[end] - offsets[k] : 0;
      while (end < n && offsets[end] != kOutside && offsets[end] - offsets[end - 1] == step) ++end;
      f(k, end, step);
    }
    k = end;
  }
}

Value Combine(AtomicOp op, DType type, Value a, Value b) {
  if (IsFloat(type)) {
    if (op == AtomicOp::kAdd) return {.f = RoundToType(type, a.f + b.f)};
    if (std::isnan(a.f) || std::isnan(b.f)) return {.f = std::nan("")};
    const bool first_less = a.f < b.f || (a.f == b.f && std::signbit(a.f));
    return first_less == (op == AtomicOp::kMin) ? a : b;
  }
  const ExprOp int_op = op == AtomicOp::kAdd ? ExprOp::kAdd : op == AtomicOp::kMax ? ExprOp::kMax : ExprOp::kMin;
  return {.i = EvalInt(int_op, type, a.i, b.i)};
}

}  // namespace

int64_t Box::size() const {
  int64_t n = 1;
  for (int64_t e : extent) n = MulIndex(n, e);
  return n;
}

Memory::Memory(const Program& program, const std::vector<BoundTensor>& tensors, const ExecOptions& options, SharedState* shared)
    : options_(options), shared_(shared), views_(program.buffers.size()) {
  for (size_t b = 0; b < views_.size(); ++b) {
    views_[b].buffer = &program.buffers[b];
    views_[b].tensor = tensors[b];
  }
}

void Memory::ReportIndex(absl::string_view op, int64_t a, int64_t b) {
  if (!error_.ok()) return;
  error_ = absl::FailedPreconditionError(absl::StrCat("an index does not fit 64 bits: ", op, " of ", a, " and ", b));
}

void Memory::StartBlock(int64_t block) {
  block_ = block;
  for (View& view : views_) {
    view.outside = Value{};
    view.held = 0;
  }
  held_.clear();
  lane_races_.on = parts_on_ = false;
}

absl::Status Memory::Charge(BufferId buffer, int64_t bytes) {
  View& view = views_[buffer];
  if (bytes <= view.capacity) return absl::OkStatus();
  if (AddIndex(allocated_ - view.capacity, bytes) > options_.max_bytes) {
    return absl::ResourceExhaustedError(Cat("buffer '", view.buffer->name, "' of ", bytes,
                                            " bytes: the block's buffers exceed the limit of ", options_.max_bytes, " bytes"));
  }
  allocated_ += bytes - view.capacity;
  view.capacity = bytes;
  return absl::OkStatus();
}

absl::Status Memory::Allocate(BufferId buffer, int lanes) {
  View& view = views_[buffer];
  int64_t elements = 1;
  for (int64_t e : view.tensor.shape) elements *= e;
  const int64_t total = MulIndex(elements, std::max(lanes, 1));
  const int64_t bytes = std::max<int64_t>(MulIndex(total, DTypeBytes(view.buffer->dtype)), 1);
  const bool grows = bytes > view.capacity;
  TILERT_RETURN_IF_ERROR(Charge(buffer, bytes));
  if (grows) view.storage.reset(new (std::nothrow) char[static_cast<size_t>(bytes)]);
  if (view.storage == nullptr) return absl::ResourceExhaustedError(Cat("no memory for buffer '", view.buffer->name, "'"));
  std::memset(view.storage.get(), 0, static_cast<size_t>(bytes));
  view.tensor.data = view.storage.get();
  view.lane_stride = lanes > 0 ? elements : 0;
  if (options_.check_unwritten) view.written.assign(static_cast<size_t>(total), 0);
  return absl::OkStatus();
}

// ---- lanes

void Memory::Offsets(const View& view, absl::Span<const Value* const> index, const Lanes& lanes, const Value* mask) {
  offsets_.resize(static_cast<size_t>(lanes.n));
  int64_t* offsets = offsets_.data();
  for (int k = 0; k < lanes.n; ++k) {
    const bool wanted = lanes.active[k] != 0 && (mask == nullptr || mask[k].i != 0);
    offsets[k] = wanted ? (lanes.first_lane + k) * view.lane_stride : kOutside;
  }
  for (size_t d = 0; d < index.size(); ++d) {
    const uint64_t extent = static_cast<uint64_t>(view.tensor.shape[d]);
    const int64_t stride = view.tensor.strides[d];
    for (int k = 0; k < lanes.n; ++k) {
      const int64_t i = index[d][k].i;
      offsets[k] = offsets[k] != kOutside && static_cast<uint64_t>(i) < extent ? offsets[k] + i * stride : kOutside;
    }
  }
}

void Memory::Load(BufferId buffer, absl::Span<const Value* const> index, const Lanes& lanes, const Value* mask, Value* out) {
  const View& view = views_[buffer];
  Offsets(view, index, lanes, mask);
  if (Checked(view)) {
    for (int k = 0; k < lanes.n; ++k) {
      if (offsets_[static_cast<size_t>(k)] != kOutside)
        CheckRead(buffer, offsets_[static_cast<size_t>(k)], lanes.first_agent + k);
    }
  }
  ForEachRun(offsets_.data(), lanes.n, [&](int k, int end, int64_t step) {
    if (step == kOutside) {
      std::fill(out + k, out + end, view.outside);
    } else {
      LoadRow(view.buffer->dtype, At(view, offsets_[static_cast<size_t>(k)]), step, end - k, out + k);
    }
  });
}

void Memory::Store(BufferId buffer, absl::Span<const Value* const> index, const Lanes& lanes, const Value* values) {
  const View& view = views_[buffer];
  Offsets(view, index, lanes, nullptr);
  const bool checked = Checked(view);
  ForEachRun(offsets_.data(), lanes.n, [&](int k, int end, int64_t step) {
    if (step == kOutside) return;
    if (!checked) return StoreRow(view.buffer->dtype, values + k, end - k, At(view, offsets_[static_cast<size_t>(k)]), step);
    for (; k < end; ++k) {
      const int64_t offset = offsets_[static_cast<size_t>(k)];
      CheckWrite(buffer, offset, lanes.first_agent + k, values + k);
      StoreRow(view.buffer->dtype, values + k, 1, At(view, offset), 0);
    }
  });
}

void Memory::Atomic(AtomicOp op, BufferId buffer, absl::Span<const Value* const> index, const Lanes& lanes, const Value* values,
                    Value* before) {
  const View& view = views_[buffer];
  Offsets(view, index, lanes, nullptr);
  const bool checked = Checked(view);
  for (int k = 0; k < lanes.n; ++k) {
    const int64_t offset = offsets_[static_cast<size_t>(k)];
    if (before != nullptr && lanes.active[k] != 0) before[k] = {};
    if (offset == kOutside) continue;
    if (checked) Touch(buffer, offset, lanes.first_agent + k, TouchKind::kAtomic, true);
    const Value old = AtomicElement(op, buffer, offset, values[k]);
    if (before != nullptr) before[k] = old;
  }
}

// Returns the element's old value.
Value Memory::AtomicElement(AtomicOp op, BufferId buffer, int64_t offset, Value value) {
  View& view = views_[buffer];
  char* address = At(view, offset);
  const auto update = [&] {
    Value old;
    LoadRow(view.buffer->dtype, address, 0, 1, &old);
    const Value combined = Combine(op, view.buffer->dtype, old, value);
    StoreRow(view.buffer->dtype, &combined, 1, address, 0);
    return old;
  };
  if (!view.written.empty()) view.written[static_cast<size_t>(offset)] = 1;
  if (IsLocal(view)) return update();
  const std::lock_guard lock(shared_->atomic_locks[reinterpret_cast<uintptr_t>(address) / 8 % shared_->atomic_locks.size()]);
  return update();
}

// ---- boxes

// Calls row(offset, stride, n, at) for the parts of elements [first, first + count) of `box` that lie in one row of its last
// dimension: n elements from position `at` of the range; offset is kOutside when they are outside the buffer.
template <typename F>
void Memory::ForEachRow(const Box& box, int64_t first, int64_t count, F row) {
  const BoundTensor& tensor = views_[box.buffer].tensor;
  const int64_t base = views_[box.buffer].lane_stride * box.lane;
  const size_t rank = box.extent.size();
  if (rank == 0) {
    if (count > 0) row(base, 0, 1, 0);
    return;
  }
  const int64_t inner = box.extent[rank - 1];
  for (int64_t at = 0; at < count;) {
    int64_t rest = (first + at) / inner;
    const int64_t column = (first + at) % inner;
    const int64_t n = std::min(inner - column, count - at);
    int64_t offset = base;
    for (size_t d = rank - 1; d-- > 0;) {
      const int64_t i = AddIndex(box.start[d], rest % box.extent[d]);
      rest /= box.extent[d];
      if (i < 0 || i >= tensor.shape[d]) offset = kOutside;
      if (offset != kOutside) offset += i * tensor.strides[d];
    }
    // Columns [begin, end) of the part are inside.
    const int64_t start = AddIndex(box.start[rank - 1], column);
    const int64_t begin = offset == kOutside ? n : std::clamp<int64_t>(SubIndex(0, start), 0, n);
    const int64_t end = std::clamp<int64_t>(SubIndex(tensor.shape[rank - 1], start), begin, n);
    const int64_t stride = tensor.strides[rank - 1];
    if (begin > 0) row(kOutside, 0, begin, at);
    if (end > begin) row(offset + (start + begin) * stride, stride, end - begin, at + begin);
    if (end < n) row(kOutside, 0, n - end, at + end);
    at += n;
  }
}

void Memory::Read(const Box& box, int64_t first, int64_t count, Value fill, Value* out) {
  const View& view = views_[box.buffer];
  const bool checked = Checked(view);
  ForEachRow(box, first, count, [&](int64_t offset, int64_t stride, int64_t n, int64_t at) {
    if (offset == kOutside) {
      std::fill(out + at, out + at + n, fill);
      return;
    }
    for (int64_t k = 0; checked && k < n; ++k) CheckRead(box.buffer, offset + k * stride, lane_races_.agent);
    LoadRow(view.buffer->dtype, At(view, offset), stride, n, out + at);
  });
}

void Memory::Write(const Box& box, int64_t first, int64_t count, const Value* values) {
  const View& view = views_[box.buffer];
  const bool checked = Checked(view);
  ForEachRow(box, first, count, [&](int64_t offset, int64_t stride, int64_t n, int64_t at) {
    if (offset == kOutside) return;
    for (int64_t k = 0; checked && k < n; ++k) CheckWrite(box.buffer, offset + k * stride, lane_races_.agent, values + at + k);
    StoreRow(view.buffer->dtype, values + at, n, At(view, offset), stride);
  });
}

void Memory::Atomic(AtomicOp op, const Box& box, int64_t first, int64_t count, const Value* values) {
  const bool checked = Checked(views_[box.buffer]);
  ForEachRow(box, first, count, [&](int64_t offset, int64_t stride, int64_t n, int64_t at) {
    for (int64_t k = 0; offset != kOutside && k < n; ++k) {
      if (checked) Touch(box.buffer, offset + k * stride, lane_races_.agent, TouchKind::kAtomic, true);
      AtomicElement(op, box.buffer, offset + k * stride, values[at + k]);
    }
  });
}

// ---- checks

bool Memory::Checked(const View& view) const {
  if (!view.written.empty() || view.held != 0) return true;
  return ((lane_races_.on || parts_on_) && view.lane_stride == 0) || (shared_->check_races && !IsLocal(view));
}

void Memory::CheckRead(BufferId buffer, int64_t offset, int64_t agent) {
  const View& view = views_[buffer];
  if (!view.written.empty() && view.written[static_cast<size_t>(offset)] == 0) {
    Report(buffer, offset, "is read but was never written");
  }
  Touch(buffer, offset, agent, TouchKind::kRead, false);
}

void Memory::CheckWrite(BufferId buffer, int64_t offset, int64_t agent, const Value* value) {
  View& view = views_[buffer];
  char bytes[8] = {};
  StoreRow(view.buffer->dtype, value, 1, bytes, 0);
  const bool changes = std::memcmp(bytes, At(view, offset), static_cast<size_t>(DTypeBytes(view.buffer->dtype))) != 0;
  if (!view.written.empty()) view.written[static_cast<size_t>(offset)] = 1;
  Touch(buffer, offset, agent, TouchKind::kWrite, changes);
}

void Memory::Touch(BufferId buffer, int64_t offset, int64_t agent, TouchKind kind, bool changes) {
  const View& view = views_[buffer];
  if (view.held != 0) CheckHeld(buffer, offset, kind != TouchKind::kRead);
  if (lane_races_.on && view.lane_stride == 0 && lane_races_.table.Touch(buffer, offset, agent, kind, changes)) {
    Report(buffer, offset,
           lane_races_.threads
               ? "is accessed by two threads without a barrier between them, and one of them writes"
               : "is accessed by two points of one parallel loop, and one of them writes: their order is not defined");
  }
  if (parts_on_ && view.lane_stride == 0 && part_races_.Touch(buffer, offset, part_, *now_, kind, changes)) {
    Report(buffer, offset, "is accessed by two roles without a barrier between them, and one of them writes");
  }
  if (!shared_->check_races || IsLocal(view)) return;
  const std::lock_guard lock(shared_->race_lock);
  if (shared_->races.Touch(buffer, offset, block_, kind, changes)) {
    Report(buffer, offset, "is accessed by two blocks of one launch, and one of them writes: their order is not defined");
  }
}

void Memory::BeginLaneRaces(bool threads) {
  lane_races_.table.Clear();
  lane_races_.on = options_.check_races;
  lane_races_.threads = threads;
}

// ---- what asynchronous statements hold

namespace {

bool Overlap(const Box& a, const Box& b) {
  if (a.buffer != b.buffer) return false;
  for (size_t d = 0; d < a.start.size(); ++d) {
    if (AddIndex(a.start[d], a.extent[d]) <= b.start[d] || AddIndex(b.start[d], b.extent[d]) <= a.start[d]) return false;
  }
  return a.size() > 0 && b.size() > 0;
}

bool SameBox(const HeldBox& a, const HeldBox& b) {
  return a.writes == b.writes && a.box.buffer == b.box.buffer && a.box.start == b.box.start && a.box.extent == b.box.extent;
}

}  // namespace

void Memory::Hold(const std::vector<HeldBox>& boxes) {
  for (const HeldBox& held : held_) {
    for (const HeldBox& box : boxes) {
      if (!(held.writes || box.writes) || (held.accumulates && box.accumulates) || !Overlap(held.box, box.box)) continue;
      if (error_.ok()) {
        error_ = absl::FailedPreconditionError(absl::StrCat("two unfinished asynchronous statements touch '",
                                                            views_[box.box.buffer].buffer->name,
                                                            "', and one of them writes: wait for the first"));
      }
    }
  }
  for (const HeldBox& box : boxes) ++views_[box.box.buffer].held;
  held_.insert(held_.end(), boxes.begin(), boxes.end());
}

void Memory::Release(const std::vector<HeldBox>& boxes) {
  for (const HeldBox& box : boxes) {
    const auto at = std::find_if(held_.begin(), held_.end(), [&](const HeldBox& held) { return SameBox(held, box); });
    if (at == held_.end()) continue;
    --views_[box.box.buffer].held;
    held_.erase(at);
  }
}

// The subscripts of an offset, largest stride first; ambiguous only where elements overlap.
std::vector<int64_t> Memory::SubscriptsOf(const View& view, int64_t offset) {
  if (view.lane_stride != 0) offset %= view.lane_stride;
  std::vector<size_t> order;
  for (size_t d = 0; d < view.tensor.shape.size(); ++d) {
    if (view.tensor.shape[d] > 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return view.tensor.strides[a] > view.tensor.strides[b]; });
  std::vector<int64_t> subscripts(view.tensor.shape.size(), 0);
  for (size_t d : order) {
    if (view.tensor.strides[d] <= 0) continue;
    subscripts[d] = offset / view.tensor.strides[d];
    offset -= subscripts[d] * view.tensor.strides[d];
  }
  return subscripts;
}

void Memory::CheckHeld(BufferId buffer, int64_t offset, bool writes) {
  if (!checks_held_ || !error_.ok()) return;
  const std::vector<int64_t> at = SubscriptsOf(views_[buffer], offset);
  for (const HeldBox& held : held_) {
    if (held.box.buffer != buffer || !(writes || held.writes)) continue;
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d)
      inside &= at[d] >= held.box.start[d] && at[d] < AddIndex(held.box.start[d], held.box.extent[d]);
    if (!inside) continue;
    return Report(buffer, offset,
                  held.writes ? "is touched while an asynchronous statement may still write it: wait for that first"
                              : "is written while an asynchronous statement may still read it: wait for that first");
  }
}

void Memory::Report(BufferId buffer, int64_t offset, absl::string_view what) {
  if (!error_.ok()) return;
  const View& view = views_[buffer];
  std::string text;
  for (int64_t s : SubscriptsOf(view, offset)) absl::StrAppend(&text, text.empty() ? "[" : ", ", s);
  error_ = absl::FailedPreconditionError(absl::StrCat("element ", view.buffer->name, text, text.empty() ? "" : "]", " ", what));
}

}  // namespace tilert::exec
