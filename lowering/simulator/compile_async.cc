// Statements of the Hopper family against what the instructions can do: layouts, types, alignment of swizzled tiles.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/simulator/compiled.h"

namespace tilert::sim {
namespace {

constexpr int kGroupWarps = 4;      // of a warpgroup
constexpr int64_t kBlockRows = 64;  // of one wgmma
constexpr int64_t kStepBytes = 32;  // of K, of one wgmma

struct Coordinates {
  int64_t row, column;
};

// PTX ISA, "Matrix Fragments for wgmma.mma_async": accumulator D, register i (of 4) of atom `atom` (8 columns) of a warpgroup's
// 64 rows.
Coordinates AccumulatorAt(int64_t atom, int i, int warp, int lane) {
  return {16 * warp + lane / 4 + (i >= 2 ? 8 : 0), 8 * atom + lane % 4 * 2 + i % 2};
}

// The same section, A: element i of the 16 bytes that a thread holds of step `step`. Each 32-bit register holds consecutive
// columns; the second and fourth are 8 rows down, the third and fourth half a step to the right.
Coordinates OperandAt(int64_t step, int i, int warp, int lane, int bytes) {
  const int pack = 4 / bytes, reg = i / pack;
  const int64_t step_columns = kStepBytes / bytes;
  return {16 * warp + lane / 4 + (reg % 2 == 1 ? 8 : 0),
          step * step_columns + (reg >= 2 ? step_columns / 2 : 0) + lane % 4 * pack + i % pack};
}

struct Shape {
  int64_t rows, blocks, columns;  // of a warpgroup; blocks of 64 rows
  explicit Shape(const kir::Wgmma& gemm) : rows(gemm.m / gemm.grid.m), blocks(rows / kBlockRows), columns(gemm.n / gemm.grid.n) {}
};

// The row of the warpgroup's part that the warp's i-th row (of 16 a block) is.
int64_t RowOf(int64_t i, int warp) { return i / 16 * kBlockRows + 16 * (warp % kGroupWarps) + i % 16; }
int64_t IndexOf(int64_t row) { return row / kBlockRows * 16 + row % 16; }

std::string FillAccumulator(const kir::Wgmma& gemm, const LayoutTables& layout, int warp, CWgmma::PerWarp& part) {
  const Shape shape(gemm);
  if (layout.rank() != 2 || layout.regs() != shape.blocks * shape.columns / 2)
    return "does not have the registers of its accumulator";
  const int row_dim = gemm.transposed ? 1 : 0;
  for (int64_t r = 0; r < layout.regs(); ++r) {
    const int64_t block = r / (shape.columns / 2), atom = r / 4 % (shape.columns / 8);
    for (int l = 0; l < kLanes; ++l) {
      const Coordinates at = AccumulatorAt(atom, static_cast<int>(r % 4), warp % kGroupWarps, l);
      const int64_t row = block * kBlockRows + at.row;
      if (layout.Coord(r, l, warp, row_dim) != part.row0 + row ||
          layout.Coord(r, l, warp, 1 - row_dim) != part.column0 + at.column)
        return Cat("is not laid out as the accumulator of wgmma: register ", r, " of lane ", l, " of warp ", warp);
      part.acc.push_back({static_cast<int32_t>(IndexOf(row) * shape.columns + at.column), static_cast<int32_t>(r), l});
    }
  }
  return "";
}

std::string FillOperand(const kir::Wgmma& gemm, const LayoutTables& layout, int bytes, int warp, CWgmma::PerWarp& part) {
  const Shape shape(gemm);
  const int64_t held = 16 / bytes, steps = gemm.k * bytes / kStepBytes;
  if (layout.rank() != 2 || layout.regs() != shape.blocks * steps * held) return "does not have the registers of operand A";
  for (int64_t r = 0; r < layout.regs(); ++r) {
    for (int l = 0; l < kLanes; ++l) {
      const Coordinates at = OperandAt(r / held % steps, static_cast<int>(r % held), warp % kGroupWarps, l, bytes);
      const int64_t row = r / held / steps * kBlockRows + at.row;
      if (layout.Coord(r, l, warp, 0) != part.row0 + row || layout.Coord(r, l, warp, 1) != at.column)
        return Cat("is not laid out as operand A of wgmma: register ", r, " of lane ", l, " of warp ", warp);
      part.a.push_back({static_cast<int32_t>(IndexOf(row) * gemm.k + at.column), static_cast<int32_t>(r), l});
    }
  }
  return "";
}

bool IsFloat8(DType type) { return IsFloat(type) && DTypeBytes(type) == 1; }
bool IsInt8(DType type) { return IsInteger(type) && DTypeBytes(type) == 1; }

bool HasTypes(DType acc, DType a, DType b) {
  if (IsInt8(a) && IsInt8(b)) return acc == DType::kInt32;
  if (IsFloat8(a) && IsFloat8(b)) return acc == DType::kFloat32 || acc == DType::kFloat16;
  if (a != b) return false;
  if (a == DType::kFloat16) return acc == DType::kFloat32 || acc == DType::kFloat16;
  return (a == DType::kBFloat16 || a == DType::kFloat32) && acc == DType::kFloat32;
}

// Swizzled tiles repeat every 8 rows, and TMA and wgmma take the pattern from absolute addresses.
std::string CheckAtoms(const BufferInfo& info) {
  const SharedLayout& layout = info.source->shared;
  const int64_t atom = 8 * layout.panel;
  if (info.source->offset % atom != 0) return Cat("lies at offset ", info.source->offset, ", no multiple of ", atom);
  if (info.source->versions > 1 && info.version_bytes % atom != 0)
    return Cat("has versions ", info.version_bytes, " bytes apart, no multiple of ", atom);
  const bool has_panels = layout.panel < layout.extents.back() * layout.element_bytes;
  if (has_panels && layout.rows() * layout.pitch % atom != 0)
    return Cat("has panels of ", layout.rows() * layout.pitch, " bytes, no multiple of ", atom);
  return "";
}

std::string CheckSharedOperand(const BufferInfo& info, const kir::TileAccess& access) {
  if (info.source->space != kir::Space::kShared) return "is not in shared memory";
  if (access.start.size() != info.shape.size() || access.follows.size() != info.shape.size())
    return "is accessed with subscripts that do not fit it";
  if (!info.source->shared.swizzled || info.source->shared.folded) return "is not made of swizzled panels";
  if (std::count(access.follows.begin(), access.follows.end(), 0) != 1 ||
      std::count(access.follows.begin(), access.follows.end(), 1) != 1)
    return "does not follow M or N and K once each";
  const int last = access.follows.back();
  if (last < 0) return "has a last dimension that follows neither M or N nor K";
  if (last == 0 && info.bytes != 2) return "is MN-major, which only 16-bit types can be";
  return CheckAtoms(info);
}

}  // namespace

absl::StatusOr<CWgmma> CompileWgmma(const Compiled& kernel, const kir::Wgmma& gemm) {
  const BufferInfo &acc = kernel.buffers[gemm.acc], &a = kernel.buffers[gemm.a.buffer], &b = kernel.buffers[gemm.b.buffer];
  const WarpGrid grid = gemm.grid;
  const auto fail = [](const BufferInfo& info, const std::string& what) { return Internal(info.source->name, " ", what); };
  if (acc.layout == nullptr) return fail(acc, "is not in registers");
  if (!HasTypes(acc.source->dtype, a.source->dtype, b.source->dtype)) {
    return Internal("no wgmma for operands ", DTypeName(a.source->dtype), ", ", DTypeName(b.source->dtype), " and accumulator ",
                    DTypeName(acc.source->dtype));
  }
  if (grid.m < 1 || grid.n < 1 || gemm.m % (kBlockRows * grid.m) != 0 || gemm.n % (8 * grid.n) != 0 || gemm.n / grid.n > 256 ||
      gemm.k < 1 || gemm.k * a.bytes % kStepBytes != 0) {
    return Internal("no wgmma of ", gemm.m, "x", gemm.n, "x", gemm.k, " over ", grid.m, "x", grid.n, " warpgroups");
  }
  if (const std::string fault = CheckSharedOperand(b, gemm.b); !fault.empty()) return fail(b, fault);
  CWgmma result{};
  result.acc = gemm.acc;
  result.m = gemm.m, result.n = gemm.n, result.k = gemm.k;
  result.a_in_registers = a.layout != nullptr;
  if (!result.a_in_registers) {
    if (const std::string fault = CheckSharedOperand(a, gemm.a); !fault.empty()) return fail(a, fault);
  }
  const int warps = kGroupWarps * grid.m * grid.n;
  if (acc.layout->warps() != warps) return fail(acc, Cat("is spread over ", acc.layout->warps(), " warps, not ", warps));
  const Shape shape(gemm);
  for (int w = 0; w < warps; ++w) {
    CWgmma::PerWarp part;
    part.row0 = w / kGroupWarps % grid.m * shape.rows, part.rows = shape.rows;
    part.column0 = w / kGroupWarps / grid.m * shape.columns, part.columns = shape.columns;
    for (int64_t i = 0; i < 16 * shape.blocks; ++i) part.row_of.push_back(static_cast<int32_t>(part.row0 + RowOf(i, w)));
    if (const std::string fault = FillAccumulator(gemm, *acc.layout, w, part); !fault.empty()) return fail(acc, fault);
    if (result.a_in_registers) {
      if (const std::string fault = FillOperand(gemm, *a.layout, a.bytes, w, part); !fault.empty()) return fail(a, fault);
    }
    result.warps.push_back(std::move(part));
  }
  return result;
}

absl::Status CheckTmaTile(const Compiled& kernel, const kir::TensorMap& map, BufferId tile, size_t coords) {
  const BufferInfo &tensor = kernel.buffers[map.buffer], &shared = kernel.buffers[tile];
  if (tensor.source->space != kir::Space::kGlobal || shared.source->space != kir::Space::kShared ||
      tensor.source->dtype != shared.source->dtype)
    return Internal("TMA moves elements of one type between a tensor and shared memory, not ", tensor.source->name, " and ",
                    shared.source->name);
  const size_t rank = tensor.shape.size();
  if (rank < 1 || rank > 5 || map.box.size() != rank || coords != rank)
    return Internal("the box or the coordinates do not fit the rank of ", tensor.source->name, ", or TMA cannot do it");
  const SharedLayout& layout = shared.source->shared;
  int64_t rows = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (map.box[d] < 1 || map.box[d] > 256) return Internal("a box extent of ", map.box[d]);
    if (d + 1 < rank) rows *= map.box[d];
  }
  const int64_t width = map.box.back() * shared.bytes;
  if (layout.extents.empty() || rows != layout.rows() || layout.pitch != layout.panel || layout.panel != width ||
      layout.extents.back() % map.box.back() != 0 || layout.folded || map.swizzle != (layout.swizzled ? layout.panel : 0)) {
    return Internal("boxes of ", rows, " rows of ", width, " bytes, swizzle ", map.swizzle, ", do not lie in memory as ",
                    shared.source->name, ": ", ToString(layout));
  }
  if (width % 16 != 0) return Internal("rows of a box have ", width, " bytes, no multiple of 16");
  if (layout.swizzled) {
    if (const std::string fault = CheckAtoms(shared); !fault.empty()) return Internal(shared.source->name, " ", fault);
  } else if (layout.panel < layout.extents.back() * shared.bytes && layout.rows() * layout.pitch % 128 != 0) {
    return Internal("panels of ", shared.source->name, " are not aligned to 128 bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckRings(const Compiled& compiled) {
  const kir::Kernel& kernel = *compiled.kernel;
  for (const kir::Ring& ring : kernel.rings) {
    const int64_t end = ring.offset + 16 * ring.slots;
    if (ring.slots < 1 || ring.consumers < 1 || ring.slot == kNoId || ring.offset < 0 || ring.offset % 8 != 0 ||
        end > kernel.shared_bytes)
      return Internal("ring ", ring.name, " has no slots, consumers, slot variable or place in shared memory");
    for (const BufferInfo& info : compiled.buffers) {
      if (info.source->space != kir::Space::kShared) continue;
      const int64_t first = info.source->offset;
      if (first < end && ring.offset < first + info.source->versions * info.version_bytes)
        return Internal("the mbarriers of ring ", ring.name, " lie in ", info.source->name);
    }
    for (BufferId buffer : ring.buffers) {
      if (kernel.buffers[buffer].versions != ring.slots)
        return Internal(kernel.buffers[buffer].name, " has ", kernel.buffers[buffer].versions, " versions in ring ", ring.name,
                        " of ", ring.slots);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRoles(const kir::Kernel& kernel, const kir::Roles& roles) {
  int warps = 0;
  for (const kir::Role& role : roles.roles) {
    if (role.warps < 1 || role.instances < 1) return Internal("role ", role.name, " has no warps");
    warps += role.warps * role.instances;
  }
  if (warps != kernel.warps) return Internal("the roles have ", warps, " warps, the kernel ", kernel.warps);
  return absl::OkStatus();
}

}  // namespace tilert::sim
