// KernelIr → CUDA C++: the frame of a kernel. Statements, expressions and places are in emit_*.cc; device functions in
// prelude/*.cuh.
#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/status_util.h"
#include "lowering/emit_unroll.h"
#include "lowering/lowered.h"
#include "lowering/prelude_text.h"

namespace tilert {
namespace {

// In the order in which they build on each other.
constexpr std::string_view kPreludeOrder[] = {"base.cuh",   "ptx.cuh",  "types.cuh",  "fp8.cuh",  "convert.cuh",
                                              "memory.cuh", "math.cuh", "atomic.cuh", "grid.cuh", "debug.cuh"};

// What only kernels with such statements get, or all kernels of clusters.
struct OptionalPart {
  std::string_view name;
  bool (*needs)(const kir::StmtOp& op);
  bool in_clusters = false;
};
template <typename... Ops>
bool IsAny(const kir::StmtOp& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}
constexpr OptionalPart kOptionalParts[] = {
    {"roles.cuh",
     [](const kir::StmtOp& op) {
       const kir::BarSync* sync = std::get_if<kir::BarSync>(&op);
       return IsAny<kir::Roles, kir::TmaLoad>(op) || (sync != nullptr && sync->number > 0);
     }},
    {"sums.cuh", IsAny<kir::Atomic>},
    {"barrier.cuh", IsAny<kir::MbarArrive, kir::MbarWait, kir::MbarExpect>},
    {"cluster.cuh", IsAny<kir::ClusterSync, kir::PartStore, kir::PartAdd>, true},
    {"shares.cuh", IsAny<kir::SumsGive, kir::SumsTake>},
    {"tma.cuh", IsAny<kir::TmaLoad, kir::TmaStore, kir::StoreWait>},
    {"multicast.cuh",
     [](const kir::StmtOp& op) {
       const kir::TmaLoad* load = std::get_if<kir::TmaLoad>(&op);
       return load != nullptr && load->multicast != 0;
     }},
    {"wgmma.cuh", IsAny<kir::Wgmma, kir::WgmmaWait>},
    {"staging.cuh",
     [](const kir::StmtOp& op) {
       const kir::Copy* copy = std::get_if<kir::Copy>(&op);
       return IsAny<kir::ProxyFence>(op) || (copy != nullptr && copy->method == kir::CopyMethod::kStmatrix);
     }},
};

constexpr std::string_view kRotatePart = "rotate.cuh";    // for element loops that are not unrolled
constexpr std::string_view kCountedPart = "counted.cuh";  // for barriers whose bytes the program announces

std::string_view PreludePart(std::string_view name) {
  for (const EmbeddedFile& file : kPreludeFiles) {
    if (file.name == name) return file.text;
  }
  return {};
}

std::vector<std::string_view> PreludeParts() {
  std::vector<std::string_view> parts;
  for (std::string_view name : kPreludeOrder) parts.push_back(PreludePart(name));
  return parts;
}
// Every name that the prelude or its optional parts may declare.
std::vector<std::string_view> AllPreludeParts() {
  std::vector<std::string_view> parts = PreludeParts();
  for (const OptionalPart& part : kOptionalParts) parts.push_back(PreludePart(part.name));
  for (std::string_view name : {kRotatePart, kCountedPart}) parts.push_back(PreludePart(name));
  return parts;
}

// A part, guarded against a second kernel of the same source.
std::string Guarded(std::string_view part) {
  std::string guard = Cat("PRELUDE_", part.substr(0, part.find('.')));
  for (char& c : guard) c = absl::ascii_toupper(static_cast<unsigned char>(c));
  return Cat("#ifndef ", guard, "\n#define ", guard, "\n", PreludePart(part), "#endif\n");
}

// The optional parts the kernel needs.
std::string OptionalPrelude(const EmitContext& c) {
  std::string text;
  for (const OptionalPart& part : kOptionalParts) {
    if (AnyStmt(c.kernel.body, part.needs) || (part.in_clusters && !c.kernel.cluster.empty())) text += Guarded(part.name);
  }
  if (std::any_of(c.kernel.barriers.begin(), c.kernel.barriers.end(), [](const kir::Barrier& barrier) { return barrier.by_hand; })) text += Guarded(kCountedPart);
  if (c.rotates) text += Guarded(kRotatePart);
  return text + WgmmaDefinitions(c.kernel);
}

std::string Parameter(const EmitContext& c, const kir::Buffer& buffer, const std::string& name) {
  (void)c;
  const std::string_view type = MemoryType(buffer.dtype);
  return buffer.written ? Cat(type, "* ", name) : Cat("const ", type, "* __restrict__ ", name);
}

// The parameters in the order of KernelArgs.
std::string Signature(const EmitContext& c) {
  std::string text;
  const auto add = [&text](const std::string& parameter) { text += Cat(text.empty() ? "" : ", ", parameter); };
  for (size_t i = 0; i < c.kernel.buffers.size(); ++i) {
    if (c.kernel.buffers[i].space == kir::Space::kGlobal) add(Parameter(c, c.kernel.buffers[i], c.buffers[i]));
  }
  for (const std::string& map : c.maps) add(Cat("const __grid_constant__ TensorMap ", map));
  for (const std::string& dim : c.dims) add(Cat(c.kernel.index32 ? "int " : "i64 ", dim));
  for (size_t i = 0; i < c.scalars.size(); ++i) add(Cat(MemoryType(c.kernel.scalars[i].dtype), " ", c.scalars[i]));
  if (kir::GivenBytes(c.kernel) > 0) add("u8* given");
  return text;
}

void EmitHeader(EmitContext& c) {
  c.out.Line("");
  c.out.Line(Cat("// ", c.kernel.name, " for ", c.target.arch));
  for (absl::string_view line : absl::StrSplit(c.kernel.schedule, '\n', absl::SkipEmpty()))
    c.out.Line(CommentText(Cat("// ", line)));
  c.out.Line(
      Cat("extern \"C\" __global__ void __launch_bounds__(", c.kernel.warps * kLanes, ", ", c.kernel.min_blocks_per_sm, ")"));
  c.out.Line(Cat(c.kernel.name, "(", Signature(c), ") {"));
}

}  // namespace

bool AnyStmt(const kir::Block& block, bool (*is)(const kir::StmtOp& op)) {
  return std::any_of(block.begin(), block.end(), [is](const kir::Stmt& stmt) {
    const std::vector<const kir::Block*> children = kir::ChildBlocks(stmt);
    return is(stmt.op) ||
           std::any_of(children.begin(), children.end(), [is](const kir::Block* child) { return AnyStmt(*child, is); });
  });
}

std::string ClusterDigit(const EmitContext& c, kir::ClusterAxes axes) {
  const kir::Kernel& k = c.kernel;
  size_t axis = 0;
  while ((axes >> axis & 1) == 0) ++axis;
  const kir::ClusterAxes below = (kir::ClusterAxes{1} << axis) - 1;
  const int weight = kir::ClusterExtent(k, below), extent = k.cluster[axis];
  const CText rank = CDivided({c.vars[k.cluster_rank].name}, weight);
  return (weight * extent == kir::ClusterSize(k) ? rank : CModulo(rank, extent)).In(CText::kUnary);
}

std::string ClusterIndex(const EmitContext& c, kir::ClusterAxes axes) {
  std::vector<CText> terms;
  int64_t weight = 1;
  for (size_t d = 0; d < c.kernel.cluster.size(); ++d) {
    if ((axes >> d & 1) == 0 || c.kernel.cluster[d] == 1) continue;
    terms.push_back(CScaled({ClusterDigit(c, kir::ClusterAxes{1} << d)}, weight));
    weight *= c.kernel.cluster[d];
  }
  return CSum(terms).In(CText::kUnary);
}

CText ClusterMask(const EmitContext& c, kir::ClusterAxes axes) {
  std::vector<CText> first;  // terms of the lowest rank
  uint32_t ranks = 0;        // from there
  for (int rank = 0; rank < kir::ClusterSize(c.kernel); ++rank) {
    int rest = rank;
    bool in_set = true;
    for (size_t d = 0; d < c.kernel.cluster.size(); ++d) {
      in_set = in_set && ((axes >> d & 1) != 0 || rest % c.kernel.cluster[d] == 0);
      rest /= c.kernel.cluster[d];
    }
    if (in_set) ranks |= uint32_t{1} << rank;
  }
  int64_t weight = 1;
  for (size_t d = 0; d < c.kernel.cluster.size(); ++d) {
    if ((axes >> d & 1) == 0 && c.kernel.cluster[d] > 1)
      first.push_back(CScaled({ClusterDigit(c, kir::ClusterAxes{1} << d)}, weight));
    weight *= c.kernel.cluster[d];
  }
  return first.empty() ? CNumber(ranks) : CBinary(CNumber(ranks), "<<", CText::kShift, CSum(first));
}

std::string ClusterNumber(const EmitContext& c, const std::string& block) {
  const int size = kir::ClusterSize(c.kernel);
  return size == 1 ? block : CDivided({block}, size).In(CText::kUnary);
}

// Extents of the grid in clusters (in blocks without them), one a dimension.
std::vector<std::string> ClusterGrid(EmitContext& c) {
  std::vector<std::string> extents;
  for (size_t d = 0; d < c.kernel.grid.size(); ++d) {
    const std::string blocks = Cat("(u32)", EmitInt(c, c.kernel.grid[d]).In(CText::kUnary));
    const int across = c.kernel.cluster.empty() ? 1 : c.kernel.cluster[d];
    extents.push_back(across == 1 ? blocks : Cat("(", CDivided({Cat("(", blocks, " + ", across - 1, ")")}, across).text, ")"));
  }
  return extents;
}

// Of blocks: their place in the cluster, whose coordinates `names` are, and whether the grid has them.
void EmitPlaceInCluster(EmitContext& c, const std::vector<std::string>& names) {
  const kir::Kernel& k = c.kernel;
  std::vector<std::string> inside;
  for (size_t d = 0; d < names.size(); ++d) {
    VarText& var = c.vars[k.block_vars[d]];
    if (k.cluster[d] == 1) continue;
    const std::string at = c.names.Fresh(Cat(k.vars[k.block_vars[d]].name, "_at")),
                      extent = EmitInt(c, k.grid[d]).In(CText::kUnary);
    var.name = c.names.Fresh(k.vars[k.block_vars[d]].name);
    c.out.Line(Cat("const int ", at, " = ", names[d], " * ", k.cluster[d], " + ", ClusterDigit(c, kir::ClusterAxes{1} << d), ", ",
                   var.name, " = min(", at, ", (int)", extent, " - 1);"));
    inside.push_back(Cat(at, " < (int)", extent));
  }
  VarText& has_block = c.vars[k.has_block];
  has_block.name = c.names.Fresh(k.vars[k.has_block].name);
  c.ranges.Bind(k.has_block, {0, 1, 1});
  c.out.Optional(has_block.name,
                 Cat("const int ", has_block.name, " = ", inside.empty() ? "1" : absl::StrJoin(inside, " && "), ";"));
}

// Names of the coordinates of a block or cluster in the grid.
std::vector<std::string> EmitGridCoordinates(EmitContext& c, const std::string& block) {
  const kir::Kernel& k = c.kernel;
  const std::vector<std::string> extents = ClusterGrid(c);
  std::vector<std::string> names;
  for (size_t d = 0; d < k.block_vars.size(); ++d) {
    VarText& var = c.vars[k.block_vars[d]];
    const bool in_clusters = !k.cluster.empty() && k.cluster[d] > 1;
    names.push_back(c.names.Fresh(Cat(k.vars[k.block_vars[d]].name, in_clusters ? "_cluster" : "")));
    var.name = names.back();
    const int64_t last = std::min<int64_t>(c.ranges.Of(k.grid[d]).hi, INT32_MAX) - 1;
    c.ranges.Bind(k.block_vars[d], {0, std::max<int64_t>(last, 0), 1}, k.grid[d]);
  }
  if (names.size() == 1) {
    c.out.Optional(names[0], Cat("const int ", names[0], " = ", block, ";"));
    return names;
  }
  std::string rest = block;
  if (k.raster_panel > 0) {
    std::string within = block;  // the plane
    if (names.size() == 3) {
      const std::string plane = c.names.Fresh("plane");
      c.out.Line(Cat("const u32 ", plane, " = ", extents[0], " * ", extents[1], ";"));
      within = Cat(block, " % ", plane);
      rest = Cat(block, " / ", plane);
    }
    c.out.Line(Cat("int ", names[0], ", ", names[1], ";"));
    const size_t across = k.raster_column ? 1 : 0, along = 1 - across;
    c.out.Line(Cat("raster(", within, ", ", extents[across], ", ", extents[along], ", ", k.raster_panel, ", ", names[across], ", ",
                   names[along], ");"));
    if (names.size() == 3) c.out.Optional(names[2], Cat("const int ", names[2], " = ", rest, ";"));
    return names;
  }
  for (size_t d = 0; d < names.size(); ++d) {
    const bool last = d + 1 == names.size();
    c.out.Optional(names[d], Cat("const int ", names[d], " = ", rest, last ? "" : Cat(" % ", extents[d]), ";"));
    if (last) break;
    const std::string next = c.names.Fresh("block");
    c.out.Optional(next, Cat("const u32 ", next, " = ", rest, " / ", extents[d], ";"));
    rest = next;
  }
  return names;
}

// Block variables from the flattened number of the block, or cluster, the first grid dimension fastest.
void EmitBlockVars(EmitContext& c, const std::string& block) {
  const std::vector<std::string> names = EmitGridCoordinates(c, block);
  if (!c.kernel.cluster.empty()) EmitPlaceInCluster(c, names);
}

EmitContext::EmitContext(const kir::Kernel& kernel, const Target& target)
    : kernel(kernel),
      target(target),
      names(AllPreludeParts()),
      ranges(kernel),
      vars(kernel.vars.size()),
      accumulators(WgmmaAccumulators(kernel)),
      in_ptx(PtxAccumulators(kernel)),
      operands(WgmmaOperands(kernel)) {
  for (std::string_view own : {"lane", "warp", "block_warp", "leader", "smem", "smem_base", "cluster_barrier", "sync_phase", "given", "shares"})
    names.Fresh(own);
  for (const std::string& name : WgmmaNames(kernel)) names.Fresh(name);
  for (const kir::Buffer& buffer : kernel.buffers) buffers.push_back(names.Fresh(buffer.name));
  for (const kir::TensorMap& map : kernel.tensor_maps) maps.push_back(names.Fresh(Cat(kernel.buffers[map.buffer].name, "_map")));
  for (const std::string& dim : kernel.dims) dims.push_back(names.Fresh(dim));
  // There is no tensor map of nothing: launches with such dims take other code.
  for (const kir::TensorMap& map : kernel.tensor_maps) {
    for (const Expr extent : kernel.buffers[map.buffer].shape) {
      if (node(extent).op == ExprOp::kDim) ranges.AssumePositive(static_cast<size_t>(node(extent).i));
    }
  }
  for (const ScalarParam& scalar : kernel.scalars) scalars.push_back(names.Fresh(scalar.name));
}

void EmitContext::Fail(std::string message) {
  if (status.ok()) status = Internal("cannot emit kernel '", kernel.name, "': ", message);
}

void EmitContext::Open(std::string_view head) {
  if (!head.empty()) out.Line(head);
  out.Indent();
  names.Open();
}

void EmitContext::Close(std::string_view tail) {
  names.Close();
  out.Dedent();
  out.Line(tail);
}

void EmitContext::OpenUnrolled(const std::string& var, int64_t begin, int64_t end, int64_t step) {
  out.Line("#pragma unroll");
  Open(Cat("for (int ", var, " = ", begin, "; ", var, " < ", end, "; ", step == 1 ? Cat("++", var) : Cat(var, " += ", step),
           ") {"));
}

namespace {

void EmitFunction(EmitContext& c) {
  const kir::Kernel& kernel = c.kernel;
  EmitHeader(c);
  c.out.Indent();
  c.names.Open();
  // Swizzled tiles of TMA and wgmma are aligned to their pattern.
  const bool has_patterns = !kernel.tensor_maps.empty() || !WgmmaNames(kernel).empty();
  if (kernel.shared_bytes > 0) c.out.Line(Cat("extern __shared__ __align__(", has_patterns ? 1024 : 128, ") u8 smem[];"));
  DeclareAccumulators(c);
  c.out.Optional("smem_base", "const u32 smem_base = shared_address(smem);");
  c.out.Optional("lane", "const int lane = threadIdx.x & 31;");
  if (AnyStmt(kernel.body, IsAny<kir::Roles>)) {
    // Through a shuffle it is the same in all lanes for the compiler to see.
    c.out.Line("const int block_warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);");
  } else {
    c.out.Optional("warp", "const int warp = threadIdx.x >> 5;");
  }
  if (!kernel.cluster.empty()) {
    VarText& rank = c.vars[kernel.cluster_rank];
    rank.name = c.names.Fresh(kernel.vars[kernel.cluster_rank].name);
    c.ranges.Bind(kernel.cluster_rank, {0, kir::ClusterSize(kernel) - 1, 1});
    c.out.Optional(rank.name, Cat("const int ", rank.name, " = rank_in_cluster();"));
  }
  EmitRingSetup(c);
  if (!kir::IsPersistent(kernel)) EmitBlockVars(c, ClusterNumber(c, "blockIdx.x"));
  EmitBlock(c, kernel.body);
  c.Close();
}

absl::StatusOr<std::string> Finished(EmitContext& c) {
  if (!c.status.ok()) return c.status;
  return OptionalPrelude(c) + c.out.Take();
}

}  // namespace

absl::StatusOr<std::string> EmitKernel(const kir::Kernel& kernel, const Target& target) {
  EmitContext c(kernel, target);
  EmitFunction(c);
  const int64_t most = LargestPart(c.unrolled_sizes, kMostUnrolled);
  if (!c.status.ok() || most == INT64_MAX) return Finished(c);
  EmitContext limited(kernel, target);
  limited.most_unrolled = most;
  EmitFunction(limited);
  return Finished(limited);
}

std::string Prelude(const Target&) {
  std::string text;
  for (std::string_view part : PreludeParts()) text += part;
  return text;
}

}  // namespace tilert
