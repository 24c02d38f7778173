// wgmma: shapes, types and operands as PTX ISA "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" wants them.
#include <algorithm>

#include "lowering/kernel_ir_verifier.h"

namespace tilert::kir {
namespace {

constexpr int64_t kStepBytes = 32;  // of K that an instruction takes
constexpr int64_t kRowGroup = 8;    // rows of a swizzle pattern

bool IsFp8(DType type) { return type == DType::kFloat8E4M3 || type == DType::kFloat8E5M2; }
bool IsInt8(DType type) { return type == DType::kInt8 || type == DType::kUInt8; }

FragmentLayout Swapped(const FragmentLayout& layout) {
  FragmentLayout swapped = layout;
  std::reverse(swapped.dims.begin(), swapped.dims.end());
  return swapped;
}

}  // namespace

bool KernelVerifier::NeedsWarpgroups() {
  return Requires(warps_ % kWarpgroupWarps == 0 && first_warp_ % kWarpgroupWarps == 0, "needs whole warpgroups, not ", warps_,
                  " warps from warp ", first_warp_, " on");
}

void KernelVerifier::Check(const WgmmaWait& op) {
  NeedsWarpgroups();
  Requires(op.pending >= 0, "waits for ", op.pending, " groups");
  for (const Retired& retired : op.retires) {
    if (!Requires(retired.buffer < kernel_.buffers.size(), "retires ", Name(retired.buffer))) return;
    if (kernel_.buffers[retired.buffer].space == Space::kShared) {
      if (retired.version) Integer(retired.version, "retired version");
    } else {
      Register(retired.buffer, "retired");
    }
  }
}

void KernelVerifier::Check(const Wgmma& op) {
  if (!NeedsWarpgroups()) return;
  const Buffer* acc = Register(op.acc, "accumulator");
  if (acc == nullptr || !Requires(op.a.buffer < kernel_.buffers.size() && op.b.buffer < kernel_.buffers.size(), "operands are ",
                                  Name(op.a.buffer), " and ", Name(op.b.buffer)))
    return;
  const Buffer &a = kernel_.buffers[op.a.buffer], &b = kernel_.buffers[op.b.buffer];
  if (!Requires(op.grid.m >= 1 && op.grid.n >= 1 && op.grid.m * op.grid.n * kWarpgroupWarps == warps_, "a grid of ", op.grid.m, "x",
                op.grid.n, " warpgroups for ", warps_, " warps"))
    return;
  const int64_t step = kStepBytes / DTypeBytes(a.dtype), n_each = op.n / op.grid.n;
  const bool shape = op.m > 0 && op.n > 0 && op.k > 0 && op.m % (64 * op.grid.m) == 0 && op.n % (8 * op.grid.n) == 0 &&
                     n_each <= 256 && op.k % step == 0;
  if (!Requires(shape, "cannot multiply ", op.m, "x", op.n, "x", op.k, " on ", op.grid.m, "x", op.grid.n, " warpgroups")) return;
  Requires(!IsInt8(a.dtype) || n_each <= 32 || n_each % 16 == 0, "no integer instruction has N = ", n_each);
  CheckTypes(op, acc->dtype, a.dtype, b.dtype);
  const FragmentLayout expected = WgmmaAccumulatorLayout(op.m, op.n, op.grid);
  Requires(Canonical(acc->layout) == Canonical(op.transposed ? Swapped(expected) : expected), Name(op.acc), " is ",
           ToString(acc->layout), ", the product ", ToString(expected));
  if (op.zero) Cond(op.zero);
  if (failed()) return;
  if (a.space == Space::kRegister) {
    Register(op.a.buffer, "operand");
    const FragmentLayout fragment = WgmmaOperandALayout(op.m, op.k, op.grid, DTypeBytes(a.dtype));
    Requires(Canonical(a.layout) == Canonical(fragment), Name(op.a.buffer), " is ", ToString(a.layout), ", the operand ",
             ToString(fragment));
    const bool whole = op.a.follows == std::vector<int>{0, 1} &&
                       std::all_of(op.a.start.begin(), op.a.start.end(), [&](Expr e) { return kernel_.exprs.IsInt(e, 0); });
    Requires(whole, "takes a part of ", Name(op.a.buffer), ", which is in registers");
  } else {
    CheckOperand(op.a, "a", op.m, op.m / op.grid.m, op.k);
  }
  CheckOperand(op.b, "b", op.n, n_each, op.k);
}

void KernelVerifier::CheckTypes(const Wgmma& op, DType acc, DType a, DType b) {
  const bool half = Is16BitFloat(a) && a == b && (acc == DType::kFloat32 || (acc == DType::kFloat16 && a == acc));
  const bool tf32 = a == DType::kFloat32 && a == b && acc == a;
  const bool fp8 = IsFp8(a) && IsFp8(b) && (acc == DType::kFloat32 || acc == DType::kFloat16);
  const bool int8 = IsInt8(a) && IsInt8(b) && acc == DType::kInt32;
  Requires(half || tf32 || fp8 || int8, "cannot accumulate products of ", Name(op.a.buffer), " and ", Name(op.b.buffer), " (",
           DTypeName(a), ", ", DTypeName(b), ") in ", DTypeName(acc));
}

// `rows` of M or N, of which a warpgroup reads `rows_each`.
void KernelVerifier::CheckOperand(const TileAccess& side, const char* what, int64_t rows, int64_t rows_each, int64_t k) {
  const Buffer& buffer = kernel_.buffers[side.buffer];
  const SharedLayout& shared = buffer.shared;
  const size_t rank = SubscriptCount(buffer);
  if (!Requires(buffer.space == Space::kShared && shared.swizzled && !shared.folded, "operand ", what, " ", Name(side.buffer),
                " is not in swizzled shared memory"))
    return;
  if (!Requires(rank >= 3 && side.start.size() == rank && side.follows.size() == rank, "operand ", what, " ", Name(side.buffer),
                " has ", rank, " subscripts, its access ", side.start.size(), " and ", side.follows.size()))
    return;
  for (Expr e : side.start) Integer(e, "start");
  const int last = side.follows[rank - 1], before = side.follows[rank - 2];
  bool alone = (last == 0 && before == 1) || (last == 1 && before == 0);
  for (size_t d = 0; d + 2 < rank; ++d) alone = alone && side.follows[d] == -1;
  int64_t row = 0, column = 0;
  if (!Requires(alone, "the last two dimensions of operand ", what, " must be ", what[0] == 'a' ? "M" : "N", " and K") ||
      !Requires(kernel_.exprs.AsInt(side.start[rank - 2], &row) && kernel_.exprs.AsInt(side.start[rank - 1], &column), "operand ",
                what, " starts at a row or column that is not constant"))
    return;
  const bool k_major = last == 1;
  const int64_t height = shared.extents[rank - 3], width = shared.extents[rank - 2], bytes = shared.element_bytes;
  Requires(k_major || bytes == 2, "operand ", what, " of ", DTypeName(buffer.dtype), " must have K as its last dimension");
  Requires(row >= 0 && column >= 0 && row + (k_major ? rows : k) <= height && column + (k_major ? k : rows) <= width, "operand ",
           what, " reaches outside ", Name(side.buffer));
  // Patterns of eight rows are read from their start, K-major rows in steps of 32 bytes, others in whole panels.
  Requires(row % kRowGroup == 0 && (rank == 3 || height % kRowGroup == 0), "operand ", what, " starts at row ", row,
           ", no multiple of 8");
  const int64_t unit = k_major ? kStepBytes : shared.panel;
  const bool cuts = column * bytes % unit == 0 && (k_major || rows == rows_each || rows_each * bytes % unit == 0);
  Requires(cuts, "operand ", what, " does not start at a ", k_major ? "step of 32 bytes" : "panel", " of ", Name(side.buffer));
  CheckPlacement(buffer);
}

void KernelVerifier::Check(const WgmmaFence& op) {
  NeedsWarpgroups();
  for (BufferId id : op.touched) {
    const bool in_registers = id < kernel_.buffers.size() && kernel_.buffers[id].space == Space::kRegister;
    Requires(in_registers, "touched ", Name(id), " is not in registers");
  }
}

}  // namespace tilert::kir
