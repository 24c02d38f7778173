#include "lowering/tile_gemm.h"

#include "lowering/layout_mma.h"

namespace tilert {
namespace {

// The warps of a block as a grid over a gemm's C tile, by policy.
WarpGrid ChooseWarpGrid(GemmPolicy policy, int64_t m, int64_t n, int warps) {
  const auto up = [](int64_t value, int64_t to) { return (value + to - 1) / to * to; };
  WarpGrid best{1, warps};
  double best_cost = -1;
  for (int wm = 1; wm <= warps; ++wm) {
    if (warps % wm != 0) continue;
    const int wn = warps / wm;
    const int64_t warp_m = up(m, 16 * wm) / wm, warp_n = up(n, 8 * wn) / wn;
    // Work first (padding), then what each warp loads a k step; a policy makes the other split expensive, not impossible.
    double cost = double(warp_m) * warp_n * warps / (double(m) * n) * 1000 + double(warp_m + warp_n);
    if (policy == GemmPolicy::kFullRow) cost += 300.0 * (wn - 1);
    if (policy == GemmPolicy::kFullCol) cost += 300.0 * (wm - 1);
    if (best_cost < 0 || cost < best_cost) {
      best_cost = cost;
      best = {wm, wn};
    }
  }
  return best;
}

bool IsFp8(DType t) { return t == DType::kFloat8E4M3 || t == DType::kFloat8E5M2; }
bool IsInt8(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

// Types that both mma.sync and wgmma multiply (PTX ISA, "mma", "wgmma.mma_async"). 8-bit operands may differ in type. float32 goes as tf32, whose
// few bits the program must allow.
bool IsTensorCoreType(const TileState& state, const Gemm& gemm) {
  const DType a = state.buffer(gemm.a.buffer).dtype, b = state.buffer(gemm.b.buffer).dtype, c = state.buffer(gemm.c.buffer).dtype;
  if (IsFp8(a) && IsFp8(b)) return c == DType::kFloat32;
  if (IsInt8(a) && IsInt8(b)) return c == DType::kInt32;
  if (a != b) return false;
  if (a == DType::kFloat32) return c == DType::kFloat32 && state.program.fast_math;
  return (a == DType::kFloat16 || a == DType::kBFloat16) && (c == DType::kFloat32 || (c == DType::kFloat16 && a == c));
}

// mma.sync multiplies float8 from sm_89 on.
bool IsMmaType(const TileState& state, const Gemm& gemm) {
  constexpr int kFirstWithFp8 = 89;
  return IsTensorCoreType(state, gemm) && (!IsFp8(state.buffer(gemm.a.buffer).dtype) || state.target.sm >= kFirstWithFp8);
}

constexpr int64_t kInstructionM = 64, kLargestN = 256, kStepBytes = 32;

// The warpgroups as a grid over m × n; none when they don't divide it. Rows are split first: then all share one large B.
bool WarpgroupGrid(GemmPolicy policy, int64_t m, int64_t n, int warpgroups, int64_t n_unit, int64_t n_part, WarpGrid* grid) {
  double best = -1;
  for (int gm = 1; gm <= warpgroups; ++gm) {
    const int gn = warpgroups / gm;
    if (warpgroups % gm != 0 || m % (kInstructionM * gm) != 0 || n % (n_unit * gn) != 0 || n / gn > kLargestN) continue;
    if (gn > 1 && n / gn % n_part != 0) continue;
    // Bytes of shared memory that one instruction reads for its work: A is 64 rows, B n / gn.
    double cost = 1.0 / (n / gn) + 1.0 / kInstructionM + 0.001 * gn;
    if (policy == GemmPolicy::kFullRow) cost += gn - 1;
    if (policy == GemmPolicy::kFullCol) cost += gm - 1;
    if (best >= 0 && cost >= best) continue;
    best = cost;
    *grid = {gm, gn};
  }
  return best >= 0;
}

}  // namespace

GemmShape ShapeOf(const TileState& state, const Gemm& gemm) {
  const auto last_two = [&](const Region& region) {
    const std::vector<int64_t> e = state.Extents(region.extent);
    return std::pair(e[e.size() - 2], e[e.size() - 1]);
  };
  const auto [m, n] = last_two(gemm.c);
  const auto [a0, a1] = last_two(gemm.a);
  return {m, n, gemm.transpose_a ? a0 : a1};
}

namespace {

// Shared memory that a wgmma descriptor can describe: swizzled panels of a tile of two dims, from where a pattern of eight rows and, along K, a step of the
// instruction begin; rows along M or N in whole panels. `k_last`: stored [rows, K]; only 16-bit types may be the other way.
bool DescribesOperand(const TileState& state, const Region& region, bool k_last) {
  if (state.scope(region.buffer) != Scope::kShared) return false;
  const int bytes = DTypeBytes(state.buffer(region.buffer).dtype);
  const std::vector<int64_t> tile = state.TileShape(region.buffer);
  if (tile.size() != 2 || !AllKnown(tile) || region.start.size() < 2) return false;
  const SharedLayout layout = SwizzledShared(tile, bytes);
  if (state.RowMajorWanted(region.buffer) || !layout.swizzled || tile[0] % 8 != 0 || (!k_last && bytes != 2)) return false;
  if (state.IsWholeTile(region)) return true;
  const size_t rank = region.start.size();
  const int64_t rows = state.Extents(region.extent)[rank - 2], columns = state.Extents(region.extent)[rank - 1];
  int64_t row = 0, column = 0;
  if (!state.program.exprs.AsInt(region.start[rank - 2], &row) || !state.program.exprs.AsInt(region.start[rank - 1], &column)) return false;
  if (row < 0 || column < 0 || rows < 1 || columns < 1 || row + rows > tile[0] || column + columns > tile[1]) return false;
  const int64_t unit = k_last ? kStepBytes : layout.panel;
  return row % 8 == 0 && rows % 8 == 0 && column * bytes % unit == 0 && (k_last || columns * bytes % unit == 0);
}

bool ChooseWgmma(const TileState& state, const Gemm& gemm, GemmChoice* choice) {
  const Buffer &a = state.buffer(gemm.a.buffer), &c = state.buffer(gemm.c.buffer);
  if (state.target.family != Family::kHopper || state.warps % 4 != 0 || !IsTensorCoreType(state, gemm)) return false;
  if (gemm.c.extent.size() != 2 || c.scope != Scope::kFragment || !state.IsWhole(gemm.c)) return false;
  const GemmShape shape = ShapeOf(state, gemm);
  if (shape.m < 1 || shape.n < 1 || shape.k < 1 || shape.k % (kStepBytes / DTypeBytes(a.dtype)) != 0) return false;
  const bool a_shared = DescribesOperand(state, gemm.a, !gemm.transpose_a), b_shared = DescribesOperand(state, gemm.b, gemm.transpose_b);
  const auto in_registers = [&](const Region& region) {
    return state.scope(region.buffer) == Scope::kFragment && region.extent.size() == 2 && state.IsWhole(region);
  };
  const int64_t n_unit = c.dtype == DType::kInt32 ? 16 : 8;
  // Where several warpgroups share the columns, each takes whole panels of an operand that lies along them.
  const auto part = [&](const Region& region, bool k_last) -> int64_t {
    const int bytes = DTypeBytes(state.buffer(region.buffer).dtype);
    return k_last || state.scope(region.buffer) != Scope::kShared ? 1 : SwizzledShared(state.TileShape(region.buffer), bytes).panel / bytes;
  };
  const int warpgroups = state.warps / 4;
  choice->unit = GemmUnit::kWgmma;
  if ((a_shared || in_registers(gemm.a)) && b_shared &&
      WarpgroupGrid(gemm.policy, shape.m, shape.n, warpgroups, n_unit, part(gemm.b, gemm.transpose_b), &choice->grid))
    return true;
  choice->transposed = true;
  return (b_shared || in_registers(gemm.b)) && a_shared &&
         WarpgroupGrid(gemm.policy, shape.n, shape.m, warpgroups, n_unit, part(gemm.a, !gemm.transpose_a), &choice->grid);
}

FragmentLayout Swapped(FragmentLayout layout, bool swap) {
  if (swap) std::swap(layout.dims[0], layout.dims[1]);
  return layout;
}

}  // namespace

GemmChoice ChooseGemm(const TileState& state, const Gemm& gemm) {
  GemmChoice choice;
  if (ChooseWgmma(state, gemm, &choice)) return choice;
  choice = {};
  if (!IsMmaType(state, gemm)) return choice;
  const GemmShape shape = ShapeOf(state, gemm);
  return {GemmUnit::kMma, ChooseWarpGrid(gemm.policy, shape.m, shape.n, state.warps), false};
}

FragmentLayout AccumulatorLayout(const TileState& state, const Gemm& gemm, const GemmChoice& choice) {
  const GemmShape shape = ShapeOf(state, gemm);
  if (choice.unit == GemmUnit::kMma) return MmaAccumulatorLayout(shape.m, shape.n, choice.grid);
  if (!choice.transposed) return WgmmaAccumulatorLayout(shape.m, shape.n, choice.grid);
  return Swapped(WgmmaAccumulatorLayout(shape.n, shape.m, choice.grid), true);
}

FragmentLayout OperandALayout(const TileState& state, const Gemm& gemm, const GemmChoice& choice) {
  const GemmShape shape = ShapeOf(state, gemm);
  const int bytes = DTypeBytes(state.buffer(gemm.a.buffer).dtype);
  const bool mma = choice.unit == GemmUnit::kMma;
  return Swapped(mma ? MmaOperandALayout(shape.m, shape.k, choice.grid, bytes) : WgmmaOperandALayout(shape.m, shape.k, choice.grid, bytes), gemm.transpose_a);
}

FragmentLayout OperandBLayout(const TileState& state, const Gemm& gemm, const GemmChoice& choice) {
  const GemmShape shape = ShapeOf(state, gemm);
  const int bytes = DTypeBytes(state.buffer(gemm.b.buffer).dtype);
  const bool mma = choice.unit == GemmUnit::kMma;
  return Swapped(mma ? MmaOperandBLayout(shape.n, shape.k, choice.grid, bytes) : WgmmaOperandALayout(shape.n, shape.k, choice.grid, bytes), !gemm.transpose_b);
}

}  // namespace tilert
