// T.gemm: mma.sync a k step at a time where the types allow it, else an element loop.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/layout_mma.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

constexpr int64_t kMatrixRowBytes = 16;  // of ldmatrix

}  // namespace

absl::Status PlanBuilder::EmitGemm(const Gemm& gemm) {
  const GemmChoice choice = ChooseGemm(s_, gemm);
  switch (choice.unit) {
    case GemmUnit::kSimt: return EmitSimtGemm(gemm);
    case GemmUnit::kMma: return EmitMmaGemm(gemm, choice.grid);
    case GemmUnit::kWgmma: return EmitWgmmaGemm(gemm, choice);
  }
  return Internal("a gemm of no kind");
}

// The fragment is what the instruction accumulates in: no conversion before and after. Its padding, too: the grid of warps may lie in nothing else.
bool PlanBuilder::IsDirect(BufferId accumulator, const FragmentLayout& wanted) const {
  return Canonical(k_.buffers[accumulator].layout) == Canonical(wanted);
}

// An operand as (rows, K): in registers when it already has the layout `wanted`, else in shared memory. `k_last`: stored [rows, K].
absl::StatusOr<PlanBuilder::Operand> PlanBuilder::GemmOperand(const Region& region, bool k_last, const FragmentLayout& wanted) {
  Operand operand;
  operand.dtype = s_.buffer(region.buffer).dtype;
  operand.k_last = k_last;
  const bool fragment = s_.scope(region.buffer) == Scope::kFragment;
  operand.access = Access(region);
  if (fragment) {
    FragmentLayout have = s_.fragments.at(region.buffer);
    if (!k_last && have.dims.size() == 2) std::swap(have.dims[0], have.dims[1]);
    operand.in_registers = have.dims.size() == 2 && s_.IsWhole(region) && CanRead(have, wanted);
    if (!operand.in_registers) {
      operand.access.buffer = StageOut(operand.access.buffer);
      operand.access.start.insert(operand.access.start.begin(), Int(0));
    }
  }
  const size_t count = operand.access.start.size();
  operand.access.follows.assign(count, -1);
  operand.access.inside.assign(count, false);
  operand.access.follows[count - 2] = k_last ? 0 : 1;
  operand.access.follows[count - 1] = k_last ? 1 : 0;
  operand.k_dim = static_cast<int>(k_last ? count - 1 : count - 2);
  operand.k_start = operand.access.start[operand.k_dim];
  if (!operand.in_registers) {
    const kir::Buffer& buffer = k_.buffers[operand.access.buffer];
    // ldmatrix moves 16 bits: two bytes that are neighbours along K go together, and the other way round they don't. tf32 is loaded as it is
    // computed with elsewhere, one register at a time.
    const int64_t bytes = DTypeBytes(operand.dtype), row = kMatrixRowBytes / bytes;
    operand.aligned = (bytes == 2 || (bytes == 1 && k_last)) && buffer.shared.pitch % kMatrixRowBytes == 0 && buffer.shared.extents.back() % row == 0 &&
                      KnownPowerOfTwoDivisor(k_.exprs, operand.access.start.back(), s_.args) >= row;
  }
  return operand;
}

// Registers for one k step of `operand`, in `layout` (rows, K step), declared here.
BufferId PlanBuilder::OperandRegisters(const Operand& operand, const FragmentLayout& layout, bool ragged, std::string name) {
  const BufferId registers = NewRegister(std::move(name), operand.dtype, layout);
  Emit(kir::Declare{registers, ragged});
  return registers;
}

// Into them, the step that begins at element `k`.
void PlanBuilder::LoadOperand(const Operand& operand, BufferId registers, Expr k, bool ragged) {
  kir::TileAccess from = operand.access;
  from.start[operand.k_dim] = AddIndex(k_.exprs, operand.k_start, k);
  kir::Copy copy{kir::CopyMethod::kVector, WholeAccess(registers, 2), std::move(from), k_.buffers[registers].layout, 1};
  if (operand.in_registers) {
    copy.method = kir::CopyMethod::kRegister;
  } else if (!ragged && operand.aligned) {
    copy.method = operand.k_last ? kir::CopyMethod::kLdmatrix : kir::CopyMethod::kLdmatrixTrans;
    copy.width = kMatrixRowBytes / DTypeBytes(operand.dtype);
  }
  Emit(std::move(copy));
}

absl::Status PlanBuilder::EmitMmaGemm(const Gemm& gemm, WarpGrid grid) {
  const GemmShape shape = ShapeOf(s_, gemm);
  const FragmentLayout wanted = MmaAccumulatorLayout(shape.m, shape.n, grid);
  const BufferId result = buffers_[gemm.c.buffer];
  BufferId acc = result;
  const bool direct = IsDirect(result, wanted);
  if (!direct) {
    acc = NewRegister(k_.buffers[result].name + "_acc", k_.buffers[result].dtype, wanted);
    Emit(kir::Declare{acc, true});
    if (!gemm.clear_accum) MoveFragment(acc, result, {0, 1}, {0, 1});
  }
  const DType sum = k_.buffers[acc].dtype;
  if (gemm.clear_accum) EmitFill(acc, IsFloat(sum) ? k_.exprs.Float(0, sum) : k_.exprs.Int(0, sum));
  const int bytes = DTypeBytes(s_.buffer(gemm.a.buffer).dtype);
  const int64_t depth_of_step = MmaDepth(bytes);

  TILERT_ASSIGN_OR_RETURN(const Operand a, GemmOperand(gemm.a, !gemm.transpose_a, MmaOperandALayout(shape.m, shape.k, grid, bytes)));
  TILERT_ASSIGN_OR_RETURN(const Operand b, GemmOperand(gemm.b, gemm.transpose_b, MmaOperandBLayout(shape.n, shape.k, grid, bytes)));
  const auto step = [&](Expr k, int64_t depth) {
    const FragmentLayout a_layout = MmaOperandALayout(shape.m, depth, grid, bytes), b_layout = MmaOperandBLayout(shape.n, depth, grid, bytes);
    const auto load = [&](const Operand& operand, const FragmentLayout& layout, BufferId buffer) {
      const BufferId registers = OperandRegisters(operand, layout, IsPadded(layout), s_.buffer(buffer).name + "_frag");
      LoadOperand(operand, registers, k, IsPadded(layout));
      return registers;
    };
    const BufferId a_regs = load(a, a_layout, gemm.a.buffer), b_regs = load(b, b_layout, gemm.b.buffer);
    Emit(kir::Mma{acc, a_regs, b_regs});
  };
  const int64_t whole = shape.k / depth_of_step * depth_of_step;
  if (whole == depth_of_step) {
    step(Int(0), depth_of_step);
  } else if (whole > 0) {
    kir::For steps{NewVar("k"), Int(0), Int(whole), Int(depth_of_step), kir::Unroll::kFull, {}};
    kir::Block* const outer = block_;
    block_ = &steps.body;
    step(VarExpr(steps.var), depth_of_step);
    block_ = outer;
    Emit(std::move(steps));
  }
  if (shape.k > whole) step(Int(whole), shape.k - whole);
  if (!direct) MoveFragment(result, acc, {0, 1}, {0, 1});
  return absl::OkStatus();
}

// c[i, j] += Σ a[i, k]·b[k, j], one output element after the other: for types that the tensor cores of this family don't take.
absl::Status PlanBuilder::EmitSimtGemm(const Gemm& gemm) {
  const GemmShape shape = ShapeOf(s_, gemm);
  const BufferId acc = buffers_[gemm.c.buffer];
  const DType dtype = k_.buffers[acc].dtype;
  if (gemm.clear_accum) EmitFill(acc, IsFloat(dtype) ? k_.exprs.Float(0, dtype) : k_.exprs.Int(0, dtype));
  kir::Elementwise loop{k_.buffers[acc].layout, {NewVar("i"), NewVar("j")}, {}};
  if (loop.layout.dims.size() != 2) return Internal("a gemm accumulator of rank other than 2");
  const VarId k = NewVar("k");
  const auto element = [&](const Region& region, bool swapped, Expr row, Expr column) {
    kir::TileAccess access = Access(region);
    if (s_.scope(region.buffer) == Scope::kFragment) {
      access.buffer = StageOut(access.buffer);
      access.start.insert(access.start.begin(), Int(0));
    }
    if (swapped) std::swap(row, column);
    const size_t count = access.start.size();
    access.start[count - 2] = AddIndex(k_.exprs, access.start[count - 2], row);
    access.start[count - 1] = AddIndex(k_.exprs, access.start[count - 1], column);
    return k_.exprs.Cast(k_.exprs.Load(access.buffer, s_.buffer(region.buffer).dtype, access.start), dtype);
  };
  const Expr i = VarExpr(loop.vars[0]), j = VarExpr(loop.vars[1]);
  const Expr a = element(gemm.a, gemm.transpose_a, i, VarExpr(k)), b = element(gemm.b, gemm.transpose_b, VarExpr(k), j);
  const Expr sum = k_.exprs.Binary(ExprOp::kAdd, k_.exprs.Load(acc, dtype, {i, j}), k_.exprs.Binary(ExprOp::kMul, a, b));
  kir::For walk{k, Int(0), Int(shape.k), Int(1), kir::Unroll::kNo, {{kir::Store{acc, {i, j}, sum}, loc_}}};
  loop.body.push_back({std::move(walk), loc_});
  Emit(std::move(loop));
  return absl::OkStatus();
}

}  // namespace tilert
