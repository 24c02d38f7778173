// The compiler's table of contents: the passes over tiles, the plan, the passes over KernelIr, the emitter.
#include <algorithm>
#include <chrono>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "ir/printer.h"
#include "ir/status_util.h"
#include "lowering/build_id.h"
#include "lowering/kernel_pass.h"
#include "lowering/lowered.h"
#include "lowering/plan_builder.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

struct TilePass {
  std::string_view name;
  std::string_view why_here;
  absl::Status (*run)(TileState&);
  bool is_optional = false;
};

constexpr TilePass kTilePasses[] = {
    {"safe-values", "first: what is read outside a buffer is part of the statements from here on", ApplySafeValues},
    {"hold-operands", "before statements become parts that threads do: what they read once is still one expression", HoldOperands},
    {"separate-overlaps", "before copies and atomics become loops: the elements of a loop have no order", SeparateOverlaps},
    {"fix-extents", "before block values: an extent may be one", FixExtents},
    {"private-to-fragments", "before desugaring, which makes loops without private memory only", PrivateToFragments},
    {"join-roles", "before the parts of a launch are asked what they hold", JoinRoles},
    {"share-between-roles", "behind the fragments that it may make shared, before values are read from those", ShareBetweenRoles},
    {"read-block-values", "before copies are told apart by what they depend on", ReadBlockValues},
    {"desugar", "before the passes that know fewer statements", DesugarTiles},
    {"split-sums", "before loops are split by their masks: the loop is still one", SplitSumsOverBlocks},
    {"split-loops", "before tiles are made of memory accesses: conditions are still where they were written", SplitLoops, true},
    {"hoist-memory-accesses", "before layouts: the tiles it makes need layouts too", HoistMemoryAccesses},
    {"find-slots", "before layouts: they are those of one tile", FindSlots},
    {"shift-loops", "before layouts: loops over parts of fragments become loops over fragments", ShiftLoops},
    {"solve-layouts", "last but one over tiles: all statements that touch a fragment are known", SolveLayouts},
    {"check-registers", "after layouts: they say how many registers a fragment takes in each thread", CheckRegisters},
};

struct KernelPass {
  std::string_view name;
  std::string_view why_here;
  absl::Status (*run)(KernelState&);
};

constexpr KernelPass kKernelPasses[] = {
    {"hoist-divisions", "first: the passes after it see each quotient as one variable", HoistDivisions},
    {"plan-shared-memory", "before barriers: buffers that share memory conflict", PlanSharedMemory},
    {"place-barriers", "after the plan of shared memory, on the final order of statements", PlaceBarriers},
    {"prove-bounds", "last: only the emitter uses it", ProveBounds},
};

class PassLog {
 public:
  explicit PassLog(const LowerOptions& options) : options_(options) {}
  // Appends what a pass made, if it was asked for.
  template <typename MakeText>
  void After(std::string_view pass, MakeText text) {
    const auto now = std::chrono::steady_clock::now();
    if (options_.printed != nullptr && (options_.print_after == "all" || ToStd(options_.print_after) == pass)) {
      const double ms = std::chrono::duration<double, std::milli>(now - start_).count();
      *options_.printed += Cat("// ---- after ", pass, " (", absl::StrFormat("%.2f", ms), " ms)\n", text(), "\n");
    }
    start_ = std::chrono::steady_clock::now();
  }

 private:
  const LowerOptions& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Private memory that thread regions use.
absl::flat_hash_set<BufferId> ThreadPrivate(const Program& program, const Block& body) {
  absl::flat_hash_set<BufferId> used;
  ForEachStmt(body, [&](const Stmt& stmt) {
    if (std::holds_alternative<ThreadRegion>(stmt.op)) used.merge(BuffersTouched(program, stmt));
  });
  return used;
}

absl::StatusOr<TileState> MakeTileState(const Program& program, size_t launch, const ArgClass& args, const Target& target) {
  TileState state;
  state.program = program;
  state.launch = launch;
  state.args = args;
  state.target = target;
  int64_t threads = 0;
  if (!program.exprs.AsInt(program.launches[launch].threads, &threads) || threads < 1 || threads > 1024) {
    return InvalidArgument("launch '", program.launches[launch].name, "' needs a number of threads from 1 to 1024 that is fixed at specialisation");
  }
  state.warps = static_cast<int>((threads + kLanes - 1) / kLanes);
  const absl::flat_hash_set<BufferId> by_thread = ThreadPrivate(program, program.launches[launch].body);
  for (BufferId id = 0; id < state.program.buffers.size(); ++id) {
    Buffer& buffer = state.program.buffers[id];
    if (buffer.scope == Scope::kLocal && !by_thread.contains(id)) buffer.scope = Scope::kFragment;  // outside thread regions: one array for the block
  }
  absl::Status fixed = absl::OkStatus();
  ForEachStmt(program.launches[launch].body, [&](const Stmt& stmt) {
    auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc == nullptr || AllKnown(state.Shape(alloc->buffer))) return;
    fixed = InvalidArgument("buffer '", state.buffer(alloc->buffer).name, "' has an extent that is not fixed", Where(program, stmt.loc),
                            "; give the dims in its shape when you specialise the program");
  });
  if (!fixed.ok()) return fixed;
  return state;
}

// One stage less for the loops of the launch that keep the most tiles in flight; false if none is left that overlaps anything.
bool TakeStage(Program& program, size_t launch, std::string* report) {
  int64_t most = 0;
  ForEachStmt(program.launches[launch].body, [&](const Stmt& stmt) {
    if (auto* loop = std::get_if<For>(&stmt.op)) most = std::max(most, NumStages(program.exprs, *loop));
  });
  if (most == 0) return false;
  const std::function<void(Block&)> lower = [&](Block& block) {
    for (Stmt& stmt : block) {
      for (Block* child : ChildBlocks(stmt)) lower(*child);
      auto* loop = std::get_if<For>(&stmt.op);
      if (loop != nullptr && NumStages(program.exprs, *loop) == most) loop->num_stages = program.exprs.Int(most - 1);
    }
  };
  lower(program.launches[launch].body);
  *report = Cat("  pipelines of at most ", most - 1, " stages: more do not fit into shared memory\n");
  return true;
}

// A C identifier for launch number `index` of `program`; what is no letter or digit becomes '_'.
std::string KernelName(const Program& program, size_t index) {
  std::string name = program.name;
  if (program.launches.size() > 1) name += Cat("_", program.launches[index].name);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "k_");
  constexpr size_t kLongest = 96;
  if (name.size() > kLongest) name.resize(kLongest);
  // With the suffix it is no keyword and none of the prelude's names, whatever the program is called.
  return Cat(name, program.launches.size() > 1 ? Cat("_", index) : "", "_kernel");
}

LoweredKernel LaunchRecord(const Program& program, size_t index, const kir::Kernel& kernel) {
  LoweredKernel record;
  record.symbol = kernel.name;
  record.args = KernelArgs(kernel);
  record.grid = program.launches[index].grid;
  record.threads = static_cast<uint32_t>(kernel.warps * kLanes);
  record.shared_bytes = static_cast<uint64_t>(kernel.shared_bytes);
  record.cooperative = program.launches[index].cooperative;
  record.persistent = kir::IsPersistent(kernel);
  for (int extent : kernel.cluster) record.cluster.push_back(static_cast<uint32_t>(extent));
  record.blocks_per_sm = static_cast<uint32_t>(kernel.min_blocks_per_sm);
  for (const kir::TensorMap& map : kernel.tensor_maps) {
    const kir::Buffer& buffer = kernel.buffers[map.buffer];
    record.maps.push_back({buffer.program_buffer, buffer.dtype, map.box, map.swizzle});
  }
  return record;
}

}  // namespace

std::string ArgClass::ToString() const {
  std::string text = "align";
  for (uint32_t bytes : alignment) text += Cat(" ", bytes);
  text += index32 ? ", 32-bit index" : ", 64-bit index";
  for (size_t d = 0; d < dim_divisor.size(); ++d) {
    if (dim_divisor[d] > 1) text += Cat(", dim ", d, " % ", dim_divisor[d]);
  }
  return text;
}

ArgClass GeneralArgClass(const Program& program) {
  ArgClass args;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.scope == Scope::kGlobal) args.alignment.push_back(static_cast<uint32_t>(DTypeBytes(buffer.dtype)));
  }
  args.dim_divisor.assign(program.dims.size(), 1);
  return args;
}

ArgClass FastArgClass(const Program& program) {
  ArgClass args = GeneralArgClass(program);
  for (uint32_t& bytes : args.alignment) bytes = 16;
  args.index32 = true;
  return args;
}

static absl::StatusOr<kir::Kernel> PlanAsWritten(const Program& program, size_t launch, const ArgClass& arg_class, const Target& target,
                                          const LowerOptions& options) {
  PassLog log(options);
  TILERT_ASSIGN_OR_RETURN(TileState tiles, MakeTileState(program, launch, arg_class, target));
  for (const TilePass& pass : kTilePasses) {
    if (pass.is_optional && pass.name == options.without) continue;
    TILERT_RETURN_IF_ERROR(pass.run(tiles));
    log.After(pass.name, [&] { return PrintProgram(tiles.program) + tiles.report; });
  }
  KernelState state{{}, target, arg_class};
  TILERT_ASSIGN_OR_RETURN(state.kernel, PlanBuilder(tiles).Run());
  state.kernel.name = KernelName(program, launch);
  log.After("plan", [&] { return kir::ToText(state.kernel); });
  for (const KernelPass& pass : kKernelPasses) {
    TILERT_RETURN_IF_ERROR(pass.run(state));
    log.After(pass.name, [&] { return kir::ToText(state.kernel); });
    if (!options.verify_each) continue;
    if (const std::string error = kir::VerifyKernel(state.kernel); !error.empty()) {
      return Internal("after ", pass.name, " kernel '", state.kernel.name, "' is malformed: ", error);
    }
  }
  return std::move(state.kernel);
}

absl::StatusOr<kir::Kernel> Plan(const Program& program, size_t launch, const ArgClass& arg_class, const Target& target,
                                 const LowerOptions& options) {
  absl::StatusOr<kir::Kernel> kernel = PlanAsWritten(program, launch, arg_class, target, options);
  // How many tiles a pipeline keeps in flight is a permission: with fewer the program may fit.
  Program smaller = program;
  std::string report;
  while (!kernel.ok() && absl::IsResourceExhausted(kernel.status()) && TakeStage(smaller, launch, &report)) {
    absl::StatusOr<kir::Kernel> next = PlanAsWritten(smaller, launch, arg_class, target, options);
    if (!next.ok() && !absl::IsResourceExhausted(next.status())) break;
    if (!next.ok()) continue;  // the message is of what was asked for
    next->schedule = report + next->schedule;
    kernel = std::move(next);
  }
  return kernel;
}

absl::StatusOr<Lowered> Lower(const Program& program, const ArgClass& arg_class, const Target& target, const LowerOptions& options) {
  Lowered lowered;
  std::string kernels;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    TILERT_ASSIGN_OR_RETURN(kir::Kernel kernel, Plan(program, i, arg_class, target, options));
    TILERT_ASSIGN_OR_RETURN(const std::string source, EmitKernel(kernel, target));
    kernels += source;
    lowered.report += Cat(kernel.name, ":\n", kernel.schedule);
    lowered.kernels.push_back(LaunchRecord(program, i, kernel));
    lowered.kernel_ir.push_back(std::move(kernel));
  }
  lowered.source = Prelude(target) + kernels;
  return lowered;
}

std::vector<KernelArg> KernelArgs(const kir::Kernel& kernel) {
  std::vector<KernelArg> args;
  for (const kir::Buffer& buffer : kernel.buffers) {
    if (buffer.space == kir::Space::kGlobal) args.push_back({KernelArg::Kind::kTensor, buffer.program_buffer, 8});
  }
  for (uint32_t m = 0; m < kernel.tensor_maps.size(); ++m) args.push_back({KernelArg::Kind::kTensorMap, m, 128});
  for (uint32_t d = 0; d < kernel.dims.size(); ++d) args.push_back({KernelArg::Kind::kDim, d, kernel.index32 ? 4u : 8u});
  for (uint32_t i = 0; i < kernel.scalars.size(); ++i) {
    args.push_back({KernelArg::Kind::kScalar, i, static_cast<uint32_t>(DTypeBytes(kernel.scalars[i].dtype))});
  }
  if (const int64_t bytes = kir::GivenBytes(kernel); bytes > 0) args.push_back({KernelArg::Kind::kGiven, static_cast<uint32_t>(bytes), 8});
  return args;
}

std::string LoweringBuildId() { return kLoweringBuildId; }

}  // namespace tilert
