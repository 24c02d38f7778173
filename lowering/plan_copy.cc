// Copies between memories and registers, and conversions of layouts through shared memory.
#include <algorithm>
#include <numeric>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kMinAsyncBytes = 4;

}  // namespace

// The kernel's view of `region`: its dims of extent other than 1 follow the iteration dims in order.
kir::TileAccess PlanBuilder::Access(const Region& region) {
  kir::TileAccess access;
  access.buffer = buffers_[region.buffer];
  if (s_.scope(region.buffer) == Scope::kShared && !s_.slots.contains(region.buffer)) {
    access.start.push_back(Slot(region.buffer));
    access.follows.push_back(-1);
  }
  int next = 0;
  for (size_t d = 0; d < region.start.size(); ++d) {
    access.start.push_back(Tr(region.start[d]));
    access.follows.push_back(s_.E().IsInt(region.extent[d], 1) ? -1 : next++);
  }
  access.inside.assign(access.start.size(), false);
  return access;
}

// All of a kernel buffer of `rank` dims, one iteration dim each.
kir::TileAccess PlanBuilder::WholeAccess(BufferId kernel_buffer, size_t rank) {
  kir::TileAccess access;
  access.buffer = kernel_buffer;
  const Expr zero = Int(0);
  if (k_.buffers[kernel_buffer].space == kir::Space::kShared) {
    access.start.push_back(zero);
    access.follows.push_back(-1);
  }
  for (size_t d = 0; d < rank; ++d) {
    access.start.push_back(zero);
    access.follows.push_back(static_cast<int>(d));
  }
  access.inside.assign(access.start.size(), true);
  return access;
}

// Elements that one thread may move at once on this side of a copy with `rank` iteration dims; registers set no limit here.
int64_t PlanBuilder::MemoryWidth(const kir::TileAccess& access, size_t rank) const {
  const kir::Buffer& buffer = k_.buffers[access.buffer];
  const int64_t bytes = DTypeBytes(buffer.dtype);
  if (buffer.space == kir::Space::kRegister) return kVectorBytes;
  if (access.start.empty() || rank == 0 || access.follows.back() != static_cast<int>(rank) - 1) return 1;
  int64_t aligned = kVectorBytes;
  if (buffer.space == kir::Space::kGlobal) {
    if (!k_.exprs.IsInt(buffer.strides.back(), 1)) return 1;
    aligned = std::min<int64_t>(aligned, buffer.alignment);
  } else if (!buffer.shared.swizzled) {
    aligned = std::gcd(aligned, buffer.shared.pitch);
  }
  return std::max<int64_t>(1, std::min(aligned / bytes, KnownPowerOfTwoDivisor(k_.exprs, access.start.back(), s_.args)));
}

bool PlanBuilder::IsAsync(const kir::TileAccess& dst, const kir::TileAccess& src, int64_t width, Expr fill) const {
  const kir::Buffer& to = k_.buffers[dst.buffer];
  const kir::Buffer& from = k_.buffers[src.buffer];
  return to.space == kir::Space::kShared && from.space == kir::Space::kGlobal && to.dtype == from.dtype && !fill &&
         width * DTypeBytes(to.dtype) >= kMinAsyncBytes;
}

// Whole 8×8 matrices in the order of tensor core accumulators, also of turned products, into 16-byte chunks of shared memory. PTX ISA "stmatrix".
bool PlanBuilder::TakesStmatrix(const kir::TileAccess& dst, const kir::TileAccess& src, const FragmentLayout& layout) const {
  const kir::Buffer &to = k_.buffers[dst.buffer], &from = k_.buffers[src.buffer];
  if (s_.target.family != Family::kHopper || from.space != kir::Space::kRegister || to.space != kir::Space::kShared) return false;
  const bool narrow = to.dtype == DType::kFloat16 || to.dtype == DType::kBFloat16;
  if (!narrow || (from.dtype != to.dtype && from.dtype != DType::kFloat32) || layout.dims.size() != 2) return false;
  const auto starts = [](const LayoutDim& dim, Factor first, Factor second) {
    const auto same = [](const Factor& a, const Factor& b) { return a.size == b.size && a.owner == b.owner && (a.owner == Owner::kReg || a.stride == b.stride); };
    return dim.extent == dim.padded() && dim.factors.size() >= 2 && same(dim.factors[0], first) && same(dim.factors[1], second);
  };
  const auto holds_pairs_along = [&](size_t d) {
    return starts(layout.dims[d], {2, Owner::kReg, 1}, {4, Owner::kLane, 1}) && layout.dims[d].factors[0].stride == 1 &&
           starts(layout.dims[1 - d], {8, Owner::kLane, 4}, {2, Owner::kReg, 2});
  };
  if (!holds_pairs_along(1) && !holds_pairs_along(0)) return false;
  return dst.follows.size() == 3 && dst.follows[1] == 0 && dst.follows[2] == 1 && to.shared.pitch % kVectorBytes == 0 &&
         k_.exprs.IsInt(dst.start[1], 0) && k_.exprs.IsInt(dst.start[2], 0) && to.shared.extents[0] == layout.dims[0].extent &&
         to.shared.extents[1] == layout.dims[1].extent;
}

// Emits the copy by the best method; asynchronous ones are not committed here.
void PlanBuilder::EmitTileCopy(kir::TileAccess dst, kir::TileAccess src, FragmentLayout layout, Expr fill) {
  const size_t rank = layout.dims.size();
  const bool registers_only = k_.buffers[dst.buffer].space == kir::Space::kRegister && k_.buffers[src.buffer].space == kir::Space::kRegister;
  const int64_t limit = std::min(MemoryWidth(dst, rank), MemoryWidth(src, rank));
  const int64_t width = registers_only || rank == 0 ? 1 : ContiguousRegs(layout, limit);
  kir::CopyMethod method = kir::CopyMethod::kVector;
  if (registers_only) method = kir::CopyMethod::kRegister;
  if (IsAsync(dst, src, width, fill)) method = kir::CopyMethod::kCpAsync;
  if (TakesStmatrix(dst, src, layout)) method = kir::CopyMethod::kStmatrix;
  Emit(kir::Copy{method, std::move(dst), std::move(src), std::move(layout), width, fill});
}

absl::Status PlanBuilder::EmitCopy(const Copy& copy) {
  if (rings_.Has(copy) || skipped_.contains(&copy)) return absl::OkStatus();  // the producer's; or done with the store it leads to
  if (CanTmaStore(copy)) return EmitTmaStore(copy);
  const size_t first = block_->size();
  TILERT_RETURN_IF_ERROR(EmitPlainCopy(copy));
  ReportPlainCopy(copy, first);
  return absl::OkStatus();
}

// By the threads that compute.
absl::Status PlanBuilder::EmitPlainCopy(const Copy& copy) {
  const std::vector<int64_t> src = s_.Extents(copy.src.extent), dst = s_.Extents(copy.dst.extent);
  if (!AllKnown(src) || !AllKnown(dst)) {
    return InvalidArgument("a copy from '", s_.buffer(copy.src.buffer).name, "' to '", s_.buffer(copy.dst.buffer).name,
                           "' has an extent that is not fixed at specialisation", Where(s_.program, loc_));
  }
  const bool from_fragment = s_.scope(copy.src.buffer) == Scope::kFragment, to_fragment = s_.scope(copy.dst.buffer) == Scope::kFragment;
  if (from_fragment || to_fragment) return EmitFragmentCopy(copy);
  std::vector<int64_t> extents;
  for (int d : MovingDims(dst)) extents.push_back(dst[d]);
  const Expr fill = copy.fill ? Tr(copy.fill) : Expr{};
  kir::TileAccess to = Access(copy.dst), from = Access(copy.src);
  int64_t vector = std::min(MemoryWidth(to, extents.size()), MemoryWidth(from, extents.size()));
  if (!extents.empty()) vector = std::min(vector, extents.back() & -extents.back());
  const bool async = IsAsync(to, from, vector, fill);
  const BufferId target = to.buffer;
  EmitTileCopy(std::move(to), std::move(from), BlockedLayout(extents, s_.warps, std::max<int64_t>(vector, 1)), fill);
  if (async) {
    Emit(kir::CpAsyncCommit{});
    outstanding_.push_back(target);
    sources_in_flight_.insert(copy.src.buffer);
  }
  return absl::OkStatus();
}

// When `region` is the fragment's corner box that can be reached in the fragment's own layout: that layout, of its moving dims.
bool PlanBuilder::FragmentBox(const Region& region, FragmentLayout* layout) const {
  const FragmentLayout& whole = s_.fragments.at(region.buffer);
  const std::vector<int64_t> extents = s_.Extents(region.extent);
  const std::vector<int> moving = MovingDims(extents);
  for (size_t d = 0; d < extents.size(); ++d) {
    if (!s_.program.exprs.IsInt(region.start[d], 0)) return false;
    if (extents[d] != 1) continue;
    for (const Factor& factor : whole.dims[d].factors) {
      if (factor.owner != Owner::kReg && factor.size > 1) return false;
    }
  }
  *layout = moving.size() == extents.size() ? whole : Project(whole, moving);
  for (size_t i = 0; i < moving.size(); ++i) {
    if (extents[moving[i]] > whole.dims[moving[i]].extent) return false;
    layout->dims[i].extent = extents[moving[i]];
  }
  return true;
}

absl::Status PlanBuilder::EmitFragmentCopy(const Copy& copy) {
  const auto is_fragment = [&](const Region& region) { return s_.scope(region.buffer) == Scope::kFragment; };
  FragmentLayout src_layout, dst_layout;
  const bool src_box = is_fragment(copy.src) && FragmentBox(copy.src, &src_layout);
  const bool dst_box = is_fragment(copy.dst) && FragmentBox(copy.dst, &dst_layout);
  const Expr fill = copy.fill ? Tr(copy.fill) : Expr{};
  kir::TileAccess from = Access(copy.src), to = Access(copy.dst);
  if (is_fragment(copy.src) && !src_box) {  // any part of a fragment can be read from a copy in shared memory
    from.buffer = StageOut(from.buffer);
    from.start.insert(from.start.begin(), Int(0));
    from.follows.insert(from.follows.begin(), -1);
    from.inside.insert(from.inside.begin(), true);
  }
  BufferId stage = kNoId;
  const BufferId fragment = to.buffer;
  if (is_fragment(copy.dst) && !dst_box) {
    to.buffer = stage = StageOut(to.buffer);
    to.start.insert(to.start.begin(), Int(0));
    to.follows.insert(to.follows.begin(), -1);
    to.inside.insert(to.inside.begin(), true);
  }
  if (src_box && dst_box) {
    if (CanRead(src_layout, dst_layout)) {
      EmitTileCopy(std::move(to), std::move(from), std::move(dst_layout));
    } else {
      s_.report += Cat("  ", k_.buffers[from.buffer].name, " → ", k_.buffers[to.buffer].name, ": converted through shared memory\n");
      const BufferId scratch = NewScratch(k_.buffers[from.buffer].name, k_.buffers[from.buffer].dtype, ExtentsOf(src_layout));
      const size_t rank = src_layout.dims.size();
      EmitTileCopy(WholeAccess(scratch, rank), std::move(from), std::move(src_layout));
      EmitTileCopy(std::move(to), WholeAccess(scratch, rank), std::move(dst_layout));
    }
    return absl::OkStatus();
  }
  FragmentLayout layout = src_box ? src_layout : dst_layout;
  if (!src_box && !dst_box) {
    std::vector<int64_t> extents;
    for (int64_t e : s_.Extents(copy.dst.extent)) {
      if (e != 1) extents.push_back(e);
    }
    layout = BlockedLayout(extents, s_.warps, 1);
  }
  EmitTileCopy(std::move(to), std::move(from), std::move(layout), fill);
  if (stage == kNoId) return absl::OkStatus();
  if (std::get<kir::Copy>(block_->back().op).method == kir::CopyMethod::kCpAsync) {
    Emit(kir::CpAsyncCommit{});
    outstanding_.push_back(stage);
    FlushAsync();
  }
  StageIn(stage, fragment);
  return absl::OkStatus();
}

BufferId PlanBuilder::NewScratch(const std::string& name, DType dtype, const std::vector<int64_t>& extents) {
  const int bytes = DTypeBytes(dtype);
  return NewShared(name + "_stage", dtype, extents.size() < 2 ? RowMajorShared(extents, bytes) : SwizzledShared(extents, bytes));
}

BufferId PlanBuilder::StageOut(BufferId fragment) {
  const FragmentLayout layout = k_.buffers[fragment].layout;
  const std::vector<int64_t> extents = ExtentsOf(layout);
  const BufferId shared = NewScratch(k_.buffers[fragment].name, k_.buffers[fragment].dtype, extents);
  s_.report += Cat("  ", k_.buffers[fragment].name, ": read and written through shared memory", Where(s_.program, loc_), "\n");
  EmitTileCopy(WholeAccess(shared, extents.size()), WholeAccess(fragment, extents.size()), layout);
  return shared;
}

void PlanBuilder::StageIn(BufferId shared, BufferId fragment) {
  const FragmentLayout layout = k_.buffers[fragment].layout;
  EmitTileCopy(WholeAccess(fragment, layout.dims.size()), WholeAccess(shared, layout.dims.size()), layout);
}

// Waits for every copy in flight outside a pipeline.
void PlanBuilder::FlushAsync() {
  if (outstanding_.empty()) return;
  kir::CpAsyncWait wait;
  for (BufferId id : outstanding_) wait.retires.push_back({id, Int(0)});
  outstanding_.clear();
  sources_in_flight_.clear();
  Emit(std::move(wait));
}

// A copy in flight is waited for just before the first statement that touches its tile or overwrites its source.
void PlanBuilder::FlushAsyncFor(const Stmt& stmt) {
  if (outstanding_.empty()) return;
  absl::flat_hash_set<BufferId> touched = BuffersRead(s_.program, stmt);
  for (BufferId id : BuffersWritten(stmt)) {
    if (sources_in_flight_.contains(id)) return FlushAsync();
    touched.insert(id);
  }
  const auto* loop = std::get_if<For>(&stmt.op);
  if (loop && loop->kind == ForKind::kPipelined) return;  // its first wait covers older copies too
  const bool needed = std::any_of(touched.begin(), touched.end(), [&](BufferId id) {
    const auto it = buffers_.find(id);
    return it != buffers_.end() && std::count(outstanding_.begin(), outstanding_.end(), it->second) > 0;
  });
  if (needed) FlushAsync();
}

}  // namespace tilert
