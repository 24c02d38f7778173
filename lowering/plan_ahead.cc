// Pipelined loops around one product of mma.sync: fragments are loaded a k step ahead, those of an iteration's first step before the last product of the
// iteration before. The compiler moves loads where they suit it between two barriers, but never across one: else each iteration would begin with tensor
// cores that wait for shared memory.
//
// n k steps, V versions of the tiles:
//   copies of iterations 0 … V − 2; wait for those of 0; load step 0
//   iteration t:
//     load step 1; product 0; load step 2; copies; product 1; …; load step n − 1; copies; product n − 2
//     wait for the tiles of t + 1: behind the barrier no warp reads those of t any more
//     load step 0 of t + 1; copies; product n − 1
// The copies, of t + V − 1 and over the tiles of t − 1, are shared out to the steps: all warps pass the barrier at the same time, and copies that they
// issued together would fill the queue to memory, where warps wait and tensor cores with them. Loads stand before copies, which they would wait for.
// With two versions there is no earlier tile, and of two steps all copies would come to the last: then copies of t + V, over the tiles of t, stand together
// behind the barrier, so that one iteration more is on its way.
#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/layout_mma.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

// Registers of a thread for what is no fragment: addresses, bounds, counters.
constexpr int64_t kOtherRegisters = 48, kMostRegisters = 255;

int64_t Registers(const FragmentLayout& layout, DType type) { return layout.regs() * DTypeBytes(type) / 4; }

// Into how many copies of whole rows a copy by cp.async can be cut so that each thread has a part of each.
int64_t RowPieces(const kir::Copy& copy) {
  if (copy.layout.dims.empty() || copy.layout.dims[0].extent != copy.layout.dims[0].padded()) return 1;
  const std::vector<Factor>& rows = copy.layout.dims[0].factors;
  return !rows.empty() && rows.back().owner == Owner::kReg ? rows.back().size : 1;
}

// Pieces [first, first + count) of a copy that is cut into `pieces`.
kir::Copy PartOfRows(ExprArena& exprs, kir::Copy copy, int64_t pieces, int64_t first, int64_t count) {
  if (count == pieces) return copy;
  LayoutDim& rows = copy.layout.dims[0];
  const int64_t piece = rows.extent / pieces;
  rows.extent = piece * count;
  rows.factors.back().size = count;
  copy.layout = Dense(std::move(copy.layout));
  for (kir::TileAccess* side : {&copy.dst, &copy.src}) {
    for (size_t d = 0; d < side->follows.size(); ++d) {
      if (side->follows[d] == 0) side->start[d] = AddIndex(exprs, side->start[d], first * piece);
    }
  }
  return copy;
}

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

// The copies of iteration number `iteration` as a block for each of `steps`: in equal parts to all but the first, or `together` to the last.
absl::StatusOr<std::vector<kir::Block>> PlanBuilder::StageBySteps(const For& loop, std::vector<Producer>& producers, Expr iteration, Expr limit,
                                                                  int64_t versions, int64_t steps, bool together) {
  kir::Block stage;
  kir::Block* const outer = std::exchange(block_, &stage);
  const absl::Status issued = IssueStage(loop, producers, iteration, limit, versions, 0, producers.size());
  block_ = outer;
  TILERT_RETURN_IF_ERROR(issued);
  std::vector<kir::Block> shares(static_cast<size_t>(steps));
  const auto is_async = [](const kir::Stmt& stmt) {
    auto* copy = std::get_if<kir::Copy>(&stmt.op);
    return copy != nullptr && copy->method == kir::CopyMethod::kCpAsync;
  };
  int64_t pieces = 0;
  for (const kir::Stmt& stmt : stage) {
    auto* guarded = std::get_if<kir::If>(&stmt.op);
    if (guarded == nullptr) continue;
    together |= !std::all_of(guarded->then_body.begin(), guarded->then_body.end(), is_async);
    if (together) continue;
    for (const kir::Stmt& copy : guarded->then_body) pieces += RowPieces(std::get<kir::Copy>(copy.op));
  }
  if (together) {
    shares.back() = stage;
    return shares;
  }
  int64_t before = 0;  // pieces of the copies before this one
  for (const kir::Stmt& stmt : stage) {
    auto* guarded = std::get_if<kir::If>(&stmt.op);
    if (guarded == nullptr) {
      shares.back().push_back(stmt);
      continue;
    }
    std::vector<kir::If> parts(shares.size(), kir::If{guarded->cond, {}, {}});
    for (const kir::Stmt& inner : guarded->then_body) {
      const auto& copy = std::get<kir::Copy>(inner.op);
      const int64_t own = RowPieces(copy);
      for (int64_t step = 1; step < steps; ++step) {
        const int64_t first = std::max((step - 1) * pieces / (steps - 1) - before, int64_t{0}), end = std::min(step * pieces / (steps - 1) - before, own);
        if (first < end) parts[static_cast<size_t>(step)].then_body.push_back({PartOfRows(k_.exprs, copy, own, first, end - first), inner.loc});
      }
      before += own;
    }
    for (size_t step = 0; step < parts.size(); ++step) {
      if (!parts[step].then_body.empty()) shares[step].push_back({std::move(parts[step]), stmt.loc});
    }
  }
  return shares;
}

absl::Status PlanBuilder::EmitAhead(const For& loop, const AheadProduct& product, std::vector<Producer>& producers, Expr begin, Expr limit, int64_t versions) {
  const Gemm& gemm = *product.gemm;
  const auto saved_slots = slots_;
  const auto saved_vars = substitutes_;
  const SourceLoc loc = loc_;
  s_.report += Cat("  product", Where(s_.program, product.loc), ": ", product.steps, " steps of ", product.depth, ", loaded a step ahead\n");
  const bool together = versions == 2 || product.steps == 2;
  const int64_t ahead = together ? versions : versions - 1;  // iterations that are copied before the first
  TILERT_RETURN_IF_ERROR(FillPipeline(loop, producers, static_cast<int>(ahead), limit, versions));
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
  const auto load_if = [&](Expr exists) -> absl::Status {
    kir::If guarded{Fold(k_.exprs, exists), {}, {}};
    kir::Block* const around = std::exchange(block_, &guarded.then_body);
    const absl::Status loaded = load(0);
    block_ = around;
    Emit(std::move(guarded));
    return loaded;
  };
  const auto multiply = [&](int64_t step) { Emit(kir::Mma{buffers_[gemm.c.buffer], a[step % 2], b[step % 2]}); };

  loc_ = product.loc;
  turn_to(Int(0));
  WaitForGroup(producers, 0, async * static_cast<int>(ahead - 1));
  outstanding_.clear();
  for (int i = 0; i < 2; ++i) {
    TILERT_ASSIGN_OR_RETURN(const Operand from_a, GemmOperand(gemm.a, !gemm.transpose_a, product.a));
    TILERT_ASSIGN_OR_RETURN(const Operand from_b, GemmOperand(gemm.b, gemm.transpose_b, product.b));
    a[i] = OperandRegisters(from_a, product.a, false, s_.buffer(gemm.a.buffer).name + "_frag");
    b[i] = OperandRegisters(from_b, product.b, false, s_.buffer(gemm.b.buffer).name + "_frag");
  }
  TILERT_RETURN_IF_ERROR(load_if(k_.exprs.Binary(ExprOp::kLt, Int(0), limit)));
  const VarId t = NewVar("t");
  kir::For out{t, Int(0), limit, Int(1), kir::Unroll::kNo, {}};
  kir::Block* const outer = block_;
  block_ = &out.body;
  ++loops_;
  loc_ = loc;
  TILERT_ASSIGN_OR_RETURN(const std::vector<kir::Block> copies, StageBySteps(loop, producers, AddIndex(k_.exprs, VarExpr(t), ahead), limit, versions,
                                                                             product.steps, together));
  loc_ = product.loc;
  const auto issue = [&](int64_t step) { std::ranges::copy(copies[static_cast<size_t>(step)], std::back_inserter(*block_)); };
  turn_to(VarExpr(t));
  for (int64_t step = 0; step + 1 < product.steps; ++step) {
    TILERT_RETURN_IF_ERROR(load(step + 1));
    issue(step);
    multiply(step);
  }
  const Expr next = AddIndex(k_.exprs, VarExpr(t), 1), more = k_.exprs.Binary(ExprOp::kLt, next, limit);
  turn_to(next);
  WaitForGroup(producers, 0, async * static_cast<int>(ahead - 2));
  if (together) {
    TILERT_RETURN_IF_ERROR(load_if(more));
  } else {
    // After the last iteration what is left in the slot, which nobody needs: a condition around the loads would take a second set of registers.
    TILERT_RETURN_IF_ERROR(load(0));
  }
  issue(product.steps - 1);
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
