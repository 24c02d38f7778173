#include "lowering/simulator.h"

#include <algorithm>
#include <memory>
#include <set>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert {
namespace sim {
namespace {

// Bytes from the start of a tensor to its end.
int64_t SpanBytes(const BufferInfo& info) {
  int64_t last = 0;
  for (size_t d = 0; d < info.shape.size(); ++d) {
    if (info.shape[d] <= 0) return 0;
    last += (info.shape[d] - 1) * info.strides[d];
  }
  return (last + 1) * info.bytes;
}

absl::Status CheckArgs(const kir::Kernel& kernel, const SimArgs& args) {
  if (args.dims.size() != kernel.dims.size() || args.scalars.size() != kernel.scalars.size()) {
    return InvalidArgument("kernel ", kernel.name, " takes ", kernel.dims.size(), " dims and ", kernel.scalars.size(),
                           " scalars; given ", args.dims.size(), " and ", args.scalars.size());
  }
  if (kernel.grid.size() != kernel.block_vars.size() || kernel.warps < 1)
    return Internal("kernel ", kernel.name, " has no well-formed grid or no warps");
  return absl::OkStatus();
}

absl::Status BindTensors(const Compiled& kernel, const SimArgs& args, Run& run) {
  run.globals.resize(kernel.buffers.size());
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const BufferInfo& info = kernel.buffers[b];
    const kir::Buffer& buffer = *info.source;
    if (buffer.space != kir::Space::kGlobal) continue;
    const int64_t bytes = SpanBytes(info);
    if (buffer.program_buffer >= args.tensors.size() ||
        static_cast<int64_t>(args.tensors[buffer.program_buffer].size()) < bytes) {
      return InvalidArgument("tensor ", buffer.name, " needs ", bytes, " bytes; pass them in SimArgs::tensors[",
                             buffer.program_buffer, "]");
    }
    run.globals[b].data = args.tensors[buffer.program_buffer];
    if (buffer.written) run.globals[b].shadow = std::make_unique<Shadow>(static_cast<size_t>(bytes / info.bytes), true);
  }
  return absl::OkStatus();
}

std::vector<uint32_t> RandomOrder(int64_t blocks, std::mt19937_64& random) {
  std::vector<uint32_t> order(static_cast<size_t>(blocks));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

// Tensors that a tensor map cannot describe are for another variant of the kernel.
absl::Status CheckMaps(const Compiled& kernel) {
  for (const kir::TensorMap& map : kernel.kernel->tensor_maps) {
    const BufferInfo& info = kernel.buffers[map.buffer];
    for (size_t d = 0; d < info.strides.size(); ++d) {
      const bool last = d + 1 == info.strides.size();
      if (last ? info.strides[d] == 1 : info.strides[d] * info.bytes % 16 == 0) continue;
      return InvalidArgument("tensor ", info.source->name, " has a stride of ", info.strides[d], " elements in dimension ", d,
                             ", which TMA cannot do; simulate the variant for general arguments");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVisits(const Compiled& kernel, const Run& run) {
  for (const auto& [stmt, visits] : run.visits) {
    for (size_t tile = 0; tile < visits.size(); ++tile) {
      if (visits[tile] != 1) {
        return Internal("kernel ", kernel.kernel->name, ", ", kernel.paths[static_cast<size_t>(stmt)], ": ", run.blocks,
                        " blocks visit tile ", tile, " of ", visits.size(), " ", visits[tile], " times");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGiven(const Compiled& kernel, const Run& run) {
  for (const auto& [from, given] : run.given) {
    if (!given.taken)
      return Internal("kernel ", kernel.kernel->name, ": nobody takes the sums that warp ", std::get<2>(from), " of block ", std::get<0>(from), " gives");
  }
  return absl::OkStatus();
}

absl::Status RunOnce(const Compiled& kernel, const SimArgs& args, const SimOptions& options, Run& run) {
  TILERT_RETURN_IF_ERROR(BindTensors(kernel, args, run));
  int64_t tiles = 1;
  for (int64_t extent : kernel.grid) {
    tiles *= extent;
    if (extent < 0 || tiles > run.max_steps)
      return InvalidArgument("the grid of kernel ", kernel.kernel->name, " is negative or too large to simulate");
  }
  const int size = kir::ClusterSize(*kernel.kernel);
  int64_t clusters = Clusters(kernel);
  std::set<std::vector<int64_t>> coords;
  for (int64_t i = 0; i < clusters * size && kernel.kernel->raster_panel > 0; ++i) {
    bool inside = false;
    std::vector<int64_t> block = BlockCoords(kernel, i / size, static_cast<int>(i % size), &inside);
    if (inside) coords.insert(std::move(block));
  }
  if (kernel.kernel->raster_panel > 0 && static_cast<int64_t>(coords.size()) != tiles)
    return Internal("kernel ", kernel.kernel->name, ": its raster order visits ", coords.size(), " of ", tiles, " tiles");
  const bool shares = static_cast<bool>(kernel.kernel->shared_trips);
  if (kernel.persistent && clusters > 0) {
    // What sums are made of depends on how many blocks share them.
    std::mt19937_64 same(options.seed);
    if (shares) clusters *= kir::kMostShares;
    clusters = options.blocks > 0 ? std::min((options.blocks + size - 1) / size, clusters)
                                  : 1 + static_cast<int64_t>((shares ? same : run.random)() % static_cast<uint64_t>(clusters));
  }
  run.blocks = clusters * size;
  std::vector<uint32_t> order = RandomOrder(clusters, run.random);
  if (shares) std::sort(order.begin(), order.end());
  for (uint32_t number : order) TILERT_RETURN_IF_ERROR(Cluster(run, number).Execute());
  TILERT_RETURN_IF_ERROR(CheckGiven(kernel, run));
  return CheckVisits(kernel, run);
}

using Snapshot = std::vector<std::vector<uint8_t>>;

Snapshot Save(const SimArgs& args) {
  Snapshot snapshot;
  for (absl::Span<uint8_t> tensor : args.tensors) snapshot.emplace_back(tensor.begin(), tensor.end());
  return snapshot;
}

void Restore(const Snapshot& snapshot, const SimArgs& args) {
  for (size_t i = 0; i < snapshot.size(); ++i) std::copy(snapshot[i].begin(), snapshot[i].end(), args.tensors[i].begin());
}

// Runs with another order of events must give the same bits.
absl::Status RunAll(const Compiled& kernel, const SimArgs& args, const SimOptions& options, SimReport& report) {
  const Snapshot before = Save(args);
  Snapshot first;
  const double deadline = SteadySeconds() + options.max_seconds;
  for (int i = 0; i < options.interleavings; ++i) {
    Restore(before, args);
    Run run{&kernel,           {},      &report, std::mt19937_64(options.seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(i)),
            options.max_steps, deadline};
    absl::Status status = RunOnce(kernel, args, options, run);
    if (status.ok() && i > 0 && !kernel.order_matters && Save(args) != first) {
      status = Internal("kernel ", kernel.kernel->name, " gives other results than in interleaving 0");
    }
    if (!status.ok()) {
      return WithPlace(absl::Status(status.code(), Cat(ToStd(status.message()), " (seed ", options.seed, ", interleaving ", i, ")")),
                       SimulatedPlace(status));
    }
    if (i == 0) first = Save(args);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace sim

std::string SimReport::ToString() const {
  return Cat(blocks, " blocks, ", statements, " statements, ", barriers, " barriers, ", async_copies, " cp.async, ", tma_loads,
             " TMA loads, ", tma_stores, " TMA stores, ", wgmmas, " wgmma, ", shared_accesses, " shared and ", global_accesses,
             " global accesses checked");
}

std::string SimulatedPlace(const absl::Status& failure) {
  const auto place = failure.GetPayload(sim::kPlacePayload);
  return place ? std::string(*place) : "";
}

absl::StatusOr<SimReport> Simulate(const kir::Kernel& kernel, const SimArgs& args, const SimOptions& options) {
  TILERT_RETURN_IF_ERROR(sim::CheckArgs(kernel, args));
  TILERT_ASSIGN_OR_RETURN(sim::Compiled compiled, sim::CompileKernel(kernel, args.dims, args.scalars));
  TILERT_RETURN_IF_ERROR(sim::CheckMaps(compiled));
  SimReport report;
  TILERT_RETURN_IF_ERROR(sim::RunAll(compiled, args, options, report));
  return report;
}

}  // namespace tilert
