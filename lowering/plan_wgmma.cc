// T.gemm by wgmma. The instruction works on while later statements run: it is waited for just before the first statement that touches what it reads
// or writes, in a loop as late as the next iteration. Slots of rings that it reads are released at that wait.
#include <algorithm>
#include <optional>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

bool IsNested(const Stmt& stmt) { return !ChildBlocks(stmt).empty() && !std::holds_alternative<Parallel>(stmt.op); }

bool IsZero(const ExprArena& exprs, Expr e) {
  const ExprNode& node = exprs[e];
  return (node.op == ExprOp::kIntImm && node.i == 0) || (node.op == ExprOp::kFloatImm && node.f == 0);
}

}  // namespace

bool PlanBuilder::IsWgmma(const Stmt& stmt) const {
  auto* gemm = std::get_if<Gemm>(&stmt.op);
  return gemm != nullptr && ChooseGemm(s_, *gemm).unit == GemmUnit::kWgmma;
}

// An operand as (rows, K). Registers in another layout than the instruction's, or with K first, are converted first.
kir::TileAccess PlanBuilder::WgmmaOperand(const Region& region, bool k_last, const FragmentLayout& wanted, OpenGroup* group) {
  BufferId buffer = buffers_[region.buffer];
  const bool in_registers = s_.scope(region.buffer) == Scope::kFragment;
  if (in_registers && !(k_last && IsDirect(buffer, wanted))) {
    FragmentLayout rows_first = wanted;
    if (!k_last) std::swap(rows_first.dims[0], rows_first.dims[1]);
    const BufferId converted = NewRegister(k_.buffers[buffer].name + "_a", k_.buffers[buffer].dtype, std::move(rows_first));
    Emit(kir::Declare{converted, false});
    MoveFragment(converted, buffer, {0, 1}, k_last ? std::vector<int>{0, 1} : std::vector<int>{1, 0});
    buffer = converted;
    k_last = true;
  }
  kir::TileAccess access = WholeAccess(buffer, 2);
  if (!in_registers) {
    access.start[0] = s_.slots.contains(region.buffer) ? Tr(region.start[0]) : Slot(region.buffer);
    for (size_t d = 1; d <= 2; ++d) access.start[d] = Tr(region.start[region.start.size() - 3 + d]);
  }
  const size_t rows = access.follows.size() - 2;
  access.follows[rows] = k_last ? 0 : 1;
  access.follows[rows + 1] = k_last ? 1 : 0;
  if (in_registers || !rings_.ring_of_buffer.contains(region.buffer)) group->reads.push_back(buffer);
  return access;
}

absl::Status PlanBuilder::EmitWgmmaGemm(const Gemm& gemm, const GemmChoice& choice) {
  const GemmShape shape = ShapeOf(s_, gemm);
  const FragmentLayout wanted = AccumulatorLayout(s_, gemm, choice);
  const BufferId result = buffers_[gemm.c.buffer];
  const bool direct = IsDirect(result, wanted);
  BufferId acc = result;
  if (!direct) {
    RetireAll();
    acc = NewRegister(k_.buffers[result].name + "_acc", k_.buffers[result].dtype, wanted);
    Emit(kir::Declare{acc, false});
    if (!gemm.clear_accum) MoveFragment(acc, result, {0, 1}, {0, 1});
  }
  Expr zero = k_.exprs.Int(gemm.clear_accum, DType::kBool);
  if (lazy_fills_.erase(acc) > 0) zero = k_.exprs.Int(1, DType::kBool);
  if (const auto when = zero_when_.find(acc); when != zero_when_.end()) {
    if (!gemm.clear_accum) zero = when->second;
    zero_when_.erase(when);
  }
  OpenGroup group{acc, {}, {}, {}};
  kir::TileAccess a = WgmmaOperand(gemm.a, !gemm.transpose_a, OperandALayout(s_, gemm, choice), &group);
  kir::TileAccess b = WgmmaOperand(gemm.b, gemm.transpose_b, OperandBLayout(s_, gemm, choice), &group);
  kir::Wgmma wgmma{acc, std::move(a), std::move(b), shape.m, shape.n, shape.k, choice.grid, zero, choice.transposed};
  if (choice.transposed) {
    std::swap(wgmma.a, wgmma.b);
    std::swap(wgmma.m, wgmma.n);
  }
  kir::WgmmaFence fence;
  const bool in_flight = std::any_of(open_.begin(), open_.end(), [&](const OpenGroup& open) { return open.acc == acc; });
  if (!in_flight && !k_.exprs.IsInt(zero, 1)) fence.touched.push_back(acc);
  for (BufferId id : group.reads) {
    if (k_.buffers[id].space == kir::Space::kRegister) fence.touched.push_back(id);
  }
  Emit(std::move(fence));
  Emit(std::move(wgmma));
  Emit(kir::WgmmaCommit{});
  open_.push_back(std::move(group));
  // One group stays in flight over the start of the next iteration's.
  Retire(static_cast<size_t>(std::count_if(open_.begin(), open_.end(), [](const OpenGroup& g) { return static_cast<bool>(g.exists); })));
  if (!direct) {
    RetireAll();
    MoveFragment(result, acc, {0, 1}, {0, 1});
  }
  return absl::OkStatus();
}

// Waits for the oldest `count` groups and releases the slots that they read.
void PlanBuilder::Retire(size_t count) {
  if (count == 0) return;
  kir::WgmmaWait wait{static_cast<int>(open_.size() - count), {}};
  const auto end = open_.begin() + static_cast<std::ptrdiff_t>(count);
  const auto retire = [&](BufferId id) {  // unless a later group uses it too
    const bool used = std::any_of(end, open_.end(), [id](const OpenGroup& later) {
      return later.acc == id || std::count(later.reads.begin(), later.reads.end(), id) > 0;
    });
    if (!used) wait.retires.push_back({id, k_.buffers[id].space == kir::Space::kShared && k_.buffers[id].versions == 1 ? Int(0) : Expr{}});
  };
  for (auto group = open_.begin(); group != end; ++group) {
    retire(group->acc);
    for (BufferId id : group->reads) retire(id);
  }
  Emit(std::move(wait));
  for (auto group = open_.begin(); group != end; ++group) {
    kir::Block releases;
    for (const PendingRelease& release : group->releases) releases.push_back({kir::Release{release.ring, release.behind}, loc_});
    if (releases.empty()) continue;
    if (group->exists) {
      Emit(kir::If{group->exists, std::move(releases), {}});
    } else {
      for (kir::Stmt& release : releases) block_->push_back(std::move(release));
    }
  }
  open_.erase(open_.begin(), end);
}

// Waits for the groups whose registers or tiles `stmt` needs.
void PlanBuilder::RetireFor(const Stmt& stmt) {
  if (open_.empty() || std::holds_alternative<Alloc>(stmt.op)) return;
  if (IsNested(stmt)) return RetireAll();
  absl::flat_hash_set<BufferId> touched, written;  // of the kernel
  const auto add = [&](BufferId id, absl::flat_hash_set<BufferId>& set) {
    if (const auto it = buffers_.find(id); it != buffers_.end()) set.insert(it->second);
  };
  for (BufferId id : BuffersRead(s_.program, stmt)) add(id, touched);
  for (BufferId id : BuffersWritten(stmt)) add(id, touched), add(id, written);
  const bool writes_registers = std::any_of(written.begin(), written.end(), [&](BufferId id) { return k_.buffers[id].space == kir::Space::kRegister; });
  // Gemms into one accumulator are done in order: the next need not wait for the last.
  auto* gemm = std::get_if<Gemm>(&stmt.op);
  const bool chained = gemm && IsWgmma(stmt) && gemm->a.buffer != gemm->c.buffer && gemm->b.buffer != gemm->c.buffer;
  for (size_t i = open_.size(); i-- > 0;) {
    const OpenGroup& group = open_[i];
    bool conflict = touched.contains(group.acc) && !(chained && buffers_[gemm->c.buffer] == group.acc);
    for (BufferId id : group.reads) {
      conflict |= written.contains(id);
      if (k_.buffers[id].space != kir::Space::kRegister) continue;
      // Only other wgmmas may read operand registers too (PTX ISA "wgmma.mma_async").
      conflict |= touched.contains(id) && !IsWgmma(stmt);
      // ptxas takes operand registers for free once the instruction is issued, and waits before it writes others that may share them: so wait here.
      conflict |= gemm == nullptr && writes_registers;
    }
    if (conflict) return Retire(i + 1);
  }
}

// A fill with zero just before a gemm is the gemm's own start from zero.
void PlanBuilder::FillLazily(BufferId fragment, Expr value) {
  lazy_fills_.erase(fragment);
  if (wgmma_ && IsZero(k_.exprs, value)) {
    lazy_fills_[fragment] = value;
  } else {
    EmitFill(fragment, value);
  }
}

// Makes up for fills that were put off: of `fragments`, or all.
void PlanBuilder::FillNow(const std::vector<BufferId>& fragments) {
  std::vector<BufferId> now = fragments;
  if (now.empty()) {
    for (const auto& [id, value] : lazy_fills_) now.push_back(id);
    std::sort(now.begin(), now.end());
  }
  for (BufferId id : now) {
    const auto fill = lazy_fills_.find(id);
    if (fill == lazy_fills_.end()) continue;
    const Expr value = fill->second;
    lazy_fills_.erase(fill);
    EmitFill(id, value);
  }
}

// True when `stmt` is a gemm by wgmma straight into `acc`: it can ignore what is there.
bool PlanBuilder::CanStartFromZero(const Stmt& stmt, BufferId acc) {
  auto* gemm = std::get_if<Gemm>(&stmt.op);
  return gemm && IsWgmma(stmt) && buffers_[gemm->c.buffer] == acc && IsDirect(acc, AccumulatorLayout(s_, *gemm, ChooseGemm(s_, *gemm)));
}

void PlanBuilder::FillBefore(const Stmt& stmt) {
  if (lazy_fills_.empty() || std::holds_alternative<Fill>(stmt.op) || std::holds_alternative<For>(stmt.op)) return;
  std::vector<BufferId> now;
  for (BufferId id : BuffersTouched(s_.program, stmt)) {
    const auto it = buffers_.find(id);
    if (it == buffers_.end() || !lazy_fills_.contains(it->second)) continue;
    if (!CanStartFromZero(stmt, it->second)) now.push_back(it->second);
  }
  std::sort(now.begin(), now.end());
  if (!now.empty()) FillNow(now);
}

// Gives the end of a loop a name, so that it is computed once.
void PlanBuilder::NameEnd(kir::For* loop, const std::string& var) {
  const ExprOp op = k_.exprs[loop->end].op;
  if (op == ExprOp::kIntImm || op == ExprOp::kVar || op == ExprOp::kDim) return;
  const VarId end = NewVar(var + "_end");
  k_.vars[end].dtype = k_.exprs[loop->end].dtype;
  Emit(kir::Let{end, loop->end});
  loop->end = k_.exprs.Leaf(ExprOp::kVar, end, k_.vars[end].dtype);
}

namespace {

// Whether a fence names `acc` before the first wgmma into it.
std::optional<bool> NamedBeforeWgmma(const kir::Block& block, BufferId acc) {
  for (const kir::Stmt& stmt : block) {
    if (auto* fence = std::get_if<kir::WgmmaFence>(&stmt.op); fence && std::count(fence->touched.begin(), fence->touched.end(), acc) > 0) return true;
    if (auto* wgmma = std::get_if<kir::Wgmma>(&stmt.op); wgmma && wgmma->acc == acc) return false;
    for (const kir::Block* child : kir::ChildBlocks(stmt)) {
      if (const std::optional<bool> named = NamedBeforeWgmma(*child, acc)) return named;
    }
  }
  return std::nullopt;
}

}  // namespace

// A loop that starts with gemms into accumulators known to be zero starts them from zero in its first iteration. Gemms that an iteration leaves unfinished
// are finished by the next one, after it has issued its own first: the body is planned twice, to know what it leaves.
absl::Status PlanBuilder::EmitLoopBody(const For& loop, kir::For& out) {
  const SourceLoc loc = loc_;
  kir::Block* const outer = block_;
  NameEnd(&out, s_.program.vars[loop.var].name);
  const Expr runs = Fold(k_.exprs, k_.exprs.Binary(ExprOp::kLt, out.begin, out.end));
  std::vector<BufferId> now, after;
  for (const auto& [id, value] : lazy_fills_) {
    const auto is_it = [&, acc = id](BufferId b) { return buffers_.contains(b) && buffers_[b] == acc; };
    const auto first = std::find_if(loop.body.begin(), loop.body.end(), [&](const Stmt& stmt) {
      const absl::flat_hash_set<BufferId> read = BuffersRead(s_.program, stmt), written = BuffersWritten(stmt);
      return std::any_of(read.begin(), read.end(), is_it) || std::any_of(written.begin(), written.end(), is_it);
    });
    if (first != loop.body.end()) (CanStartFromZero(*first, id) ? after : now).push_back(id);
  }
  std::sort(now.begin(), now.end());
  std::sort(after.begin(), after.end());
  if (!now.empty()) FillNow(now);
  kir::Block not_run;  // what a loop without iterations leaves to do
  for (BufferId id : after) {
    block_ = &not_run;
    FillNow({id});
    zero_when_[id] = k_.exprs.Binary(ExprOp::kEq, VarExpr(loop.var), out.begin);
  }
  block_ = outer;
  ++loops_;
  const bool has_gemm = std::any_of(loop.body.begin(), loop.body.end(), [&](const Stmt& stmt) { return IsWgmma(stmt); });
  if (has_gemm) {
    PlanBuilder trial(*this);
    const std::string report = s_.report;
    kir::Block dropped;
    TILERT_RETURN_IF_ERROR(trial.EmitBlock(loop.body, dropped, true));
    s_.report = report;
    open_ = trial.open_;
    const Expr later = k_.exprs.Binary(ExprOp::kGt, VarExpr(loop.var), out.begin);
    for (OpenGroup& group : open_) group.exists = later;
  }
  TILERT_RETURN_IF_ERROR(EmitBlock(loop.body, out.body, true));
  --loops_;
  if (std::any_of(open_.begin(), open_.end(), [](const OpenGroup& g) { return static_cast<bool>(g.exists); })) return Internal("a gemm left open over two iterations");
  loc_ = loc;
  // What an iteration leaves to the next one is in place when the first comes, unless that clears it.
  kir::WgmmaFence fence;
  for (const OpenGroup& group : open_) {
    if (std::count(after.begin(), after.end(), group.acc) == 0 && NamedBeforeWgmma(out.body, group.acc) == false) fence.touched.push_back(group.acc);
  }
  if (!fence.touched.empty()) Emit(std::move(fence));
  Emit(std::move(out));
  for (OpenGroup& group : open_) group.exists = runs;
  RetireAll();
  for (BufferId id : after) zero_when_.erase(id);
  if (!not_run.empty()) Emit(kir::If{Fold(k_.exprs, k_.exprs.Unary(ExprOp::kNot, runs)), std::move(not_run), {}});
  return absl::OkStatus();
}

}  // namespace tilert
