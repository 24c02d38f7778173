// Pipelined loops around one product of mma.sync: fragments are loaded a k step ahead, those of an iteration's first step before the last product of the
// iteration before. The compiler moves loads where they suit it between two barriers, but never across one: else each iteration would begin with tensor
// cores that wait for shared memory.
//
// n k steps, V versions of the tiles:
//   copies of iterations 0 … V − 1; wait for those of 0; load step 0
//   iteration t:
//     load step 1; product 0; …; load step n − 1; product n − 2
//     wait for the tiles of t + 1: behind the barrier no warp reads those of t any more
//     load step 0 of t + 1; copies of t + V, over the tiles of t; product n − 1
// Loads stand before copies: in the queue to shared memory they would wait for them.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/layout_mma.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

// Registers of a thread for what is no fragment: addresses, bounds, counters.
constexpr int64_t kOtherRegisters = 48, kMostRegisters = 255;

int64_t Registers(const FragmentLayout& layout, DType type) { return layout.regs() * DTypeBytes(type) / 4; }

}  // namespace

// The loop's one statement besides its copies, if that is a product of two of the tiles that they fill and there are registers for two steps of its operands.
PlanBuilder::AheadProduct PlanBuilder::FindAheadProduct(const For& loop, const std::vector<Producer>& producers) {
  AheadProduct product;
  for (size_t i = 0; i < loop.body.size(); ++i) {
    if (std::any_of(producers.begin(), producers.end(), [&](const Producer& p) { return p.stmt == i; })) continue;
    const auto* gemm = std::get_if<Gemm>(&loop.body[i].op);
    if (gemm == nullptr || product.gemm != nullptr) return {};
    product.gemm = gemm;
    product.loc = loop.body[i].loc;
  }
  if (product.gemm == nullptr) return {};
  const Gemm& gemm = *product.gemm;
  const auto produced = [&](BufferId id) {
    return std::any_of(producers.begin(), producers.end(), [&](const Producer& p) { return p.copy->dst.buffer == id; });
  };
  const GemmChoice choice = ChooseGemm(s_, gemm);
  if (choice.unit != GemmUnit::kMma || gemm.clear_accum || !produced(gemm.a.buffer) || !produced(gemm.b.buffer)) return {};

  const DType type = s_.buffer(gemm.a.buffer).dtype;
  const int bytes = DTypeBytes(type);
  const GemmShape shape = ShapeOf(s_, gemm);
  product.depth = MmaDepth(bytes);
  product.steps = shape.k / product.depth;
  product.a = MmaOperandALayout(shape.m, product.depth, choice.grid, bytes);
  product.b = MmaOperandBLayout(shape.n, product.depth, choice.grid, bytes);
  // Steps take turns with two sets of registers, also from one iteration to the next.
  if (shape.k % (2 * product.depth) != 0 || IsPadded(product.a) || IsPadded(product.b)) return {};
  if (!GemmOperand(gemm.a, !gemm.transpose_a, product.a)->aligned || !GemmOperand(gemm.b, gemm.transpose_b, product.b)->aligned) return {};
  const FragmentLayout acc = MmaAccumulatorLayout(shape.m, shape.n, choice.grid);
  if (!IsDirect(buffers_[gemm.c.buffer], acc)) return {};

  const int64_t wanted = Registers(acc, s_.buffer(gemm.c.buffer).dtype) + 2 * (Registers(product.a, type) + Registers(product.b, type)) + kOtherRegisters;
  const int64_t have = std::min<int64_t>(kMostRegisters, s_.target.registers_per_sm / (int64_t{s_.warps} * kLanes));
  if (wanted > have) return {};
  return product;
}

absl::Status PlanBuilder::EmitAhead(const For& loop, const AheadProduct& product, std::vector<Producer>& producers, Expr begin, Expr limit, int64_t versions) {
  const Gemm& gemm = *product.gemm;
  const auto saved_slots = slots_;
  const auto saved_vars = substitutes_;
  const SourceLoc loc = loc_;
  s_.report += Cat("  product", Where(s_.program, product.loc), ": ", product.steps, " steps of ", product.depth, ", loaded a step ahead\n");
  TILERT_RETURN_IF_ERROR(FillPipeline(loop, producers, static_cast<int>(versions), limit, versions));
  const int async = std::any_of(producers.begin(), producers.end(), [](const Producer& p) { return p.async; });  // groups of an iteration

  // From here on statements are those of iteration number `iteration`.
  const auto turn_to = [&](Expr iteration) {
    for (const Producer& p : producers) slots_[p.copy->dst.buffer] = Fold(k_.exprs, k_.exprs.Binary(ExprOp::kFloorMod, iteration, Int(versions)));
    substitutes_[loop.var] = AddIndex(k_.exprs, begin, iteration);
  };
  BufferId a[2], b[2];
  const auto load = [&](int64_t step) -> absl::Status {
    TILERT_ASSIGN_OR_RETURN(const Operand from_a, GemmOperand(gemm.a, !gemm.transpose_a, product.a));
    TILERT_ASSIGN_OR_RETURN(const Operand from_b, GemmOperand(gemm.b, gemm.transpose_b, product.b));
    LoadOperand(from_a, a[step % 2], Int(step * product.depth), false);
    LoadOperand(from_b, b[step % 2], Int(step * product.depth), false);
    return absl::OkStatus();
  };
  const auto load_first = [&](Expr iteration) -> absl::Status {
    kir::If exists{Fold(k_.exprs, k_.exprs.Binary(ExprOp::kLt, iteration, limit)), {}, {}};
    kir::Block* const outer = block_;
    block_ = &exists.then_body;
    const absl::Status loaded = load(0);
    block_ = outer;
    Emit(std::move(exists));
    return loaded;
  };
  const auto multiply = [&](int64_t step) { Emit(kir::Mma{buffers_[gemm.c.buffer], a[step % 2], b[step % 2]}); };

  loc_ = product.loc;
  turn_to(Int(0));
  WaitForGroup(producers, 0, async * static_cast<int>(versions - 1));
  outstanding_.clear();
  for (int i = 0; i < 2; ++i) {
    TILERT_ASSIGN_OR_RETURN(const Operand from_a, GemmOperand(gemm.a, !gemm.transpose_a, product.a));
    TILERT_ASSIGN_OR_RETURN(const Operand from_b, GemmOperand(gemm.b, gemm.transpose_b, product.b));
    a[i] = OperandRegisters(from_a, product.a, false, s_.buffer(gemm.a.buffer).name + "_frag");
    b[i] = OperandRegisters(from_b, product.b, false, s_.buffer(gemm.b.buffer).name + "_frag");
  }
  TILERT_RETURN_IF_ERROR(load_first(Int(0)));

  const VarId t = NewVar("t");
  kir::For out{t, Int(0), limit, Int(1), kir::Unroll::kNo, {}};
  kir::Block* const outer = block_;
  block_ = &out.body;
  ++loops_;
  turn_to(VarExpr(t));
  for (int64_t step = 0; step + 1 < product.steps; ++step) {
    TILERT_RETURN_IF_ERROR(load(step + 1));
    multiply(step);
  }
  const Expr next = AddIndex(k_.exprs, VarExpr(t), 1);
  turn_to(next);
  WaitForGroup(producers, 0, async * static_cast<int>(versions - 2));
  TILERT_RETURN_IF_ERROR(load_first(next));
  loc_ = loc;
  TILERT_RETURN_IF_ERROR(IssueStage(loop, producers, AddIndex(k_.exprs, VarExpr(t), versions), limit, versions));
  loc_ = product.loc;
  multiply(product.steps - 1);
  --loops_;
  block_ = outer;
  loc_ = loc;
  slots_ = saved_slots;
  substitutes_ = saved_vars;
  Emit(std::move(out));
  return absl::OkStatus();
}

}  // namespace tilert
