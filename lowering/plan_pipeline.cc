// Pipelined loops: copies from global to shared memory run `num_stages − 1` iterations ahead in as many versions of their tiles.
//
// Producers are found by what they touch, not by what the loop computes: a copy global → shared whose tile lives outside the loop, is written only
// by it, is not used outside the loop, and whose source is not written by the loop. Copies that are first needed by the same
// statement, or that follow one another in the program, form a group; groups complete in order of first need, so one wait before each group's
// first use is enough. A wait is a barrier: the program has fewer of them where its copies stand together.
//
// Iteration t (S versions, D = S − 1 stages ahead, G groups):
//   wait for group 0 of t; issue all groups of t + D into version (t + D) % S; use group 0; wait for group 1 of t; use group 1; …
// Version (t + D) % S = (t − 1) % S was last used in iteration t − 1; the barrier that publishes group 0 also says so.
//
// Copies that all warps issue together fill the queue to memory, where warps wait. With a second block on the SM others have work meanwhile. Where products
// of mma.sync fill the SM with one block, and there is one group, each tile of t + D is copied just before the statement that first uses that of t.
#include <algorithm>
#include <utility>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

// True when statements of `block` outside `loop` touch `buffer` (its Alloc aside).
bool UsedOutside(const Program& program, const Block& block, const For& loop, BufferId buffer) {
  for (const Stmt& stmt : block) {
    if (auto* here = std::get_if<For>(&stmt.op); here == &loop) continue;
    const std::vector<const Block*> children = ChildBlocks(stmt);
    if (!children.empty() && !std::holds_alternative<Parallel>(stmt.op)) {
      for (const Block* child : children) {
        if (UsedOutside(program, *child, loop, buffer)) return true;
      }
      bool loads = false;  // by the statement's own operands
      ForEachExpr(stmt, [&](Expr e) { loads |= Loads(program.exprs, e, buffer); });
      if (loads) return true;
      continue;
    }
    if (BuffersTouched(program, stmt).contains(buffer)) return true;
  }
  return false;
}

}  // namespace

std::vector<PlanBuilder::Producer> PlanBuilder::FindProducers(const For& loop) const {
  std::vector<Producer> producers;
  if (HasJump(loop.body)) return producers;
  absl::flat_hash_set<BufferId> allocated;
  std::vector<VarId> inner;
  for (const Stmt& stmt : loop.body) {
    if (auto* alloc = std::get_if<Alloc>(&stmt.op)) allocated.insert(alloc->buffer);
    if (auto* let = std::get_if<Let>(&stmt.op)) inner.push_back(let->var);
  }
  for (size_t i = 0; i < loop.body.size(); ++i) {
    const auto* copy = std::get_if<Copy>(&loop.body[i].op);
    if (copy == nullptr || copy->fill || s_.scope(copy->src.buffer) != Scope::kGlobal || s_.scope(copy->dst.buffer) != Scope::kShared) continue;
    if (allocated.contains(copy->dst.buffer) || rings_.Has(*copy)) continue;
    bool fixed = s_.buffer(copy->src.buffer).dtype == s_.buffer(copy->dst.buffer).dtype;
    for (const Region* region : {&copy->src, &copy->dst}) {
      for (Expr e : region->start) {
        fixed &= !UsesAny(s_.program.exprs, e, inner);
        ForEachNode(s_.program.exprs, e, [&](Expr, const ExprNode& node) { fixed &= node.op != ExprOp::kLoad; });
      }
    }
    int writers = 0;
    size_t first_use = loop.body.size();
    for (size_t j = 0; j < loop.body.size(); ++j) {
      writers += BuffersWritten(loop.body[j]).contains(copy->dst.buffer);
      fixed &= !BuffersWritten(loop.body[j]).contains(copy->src.buffer);
      if (j != i && first_use == loop.body.size() && BuffersRead(s_.program, loop.body[j]).contains(copy->dst.buffer)) first_use = j;
    }
    // Read before it is written in the iteration: the tile carries values from one iteration to the next.
    if (!fixed || writers != 1 || first_use < i || first_use == loop.body.size()) continue;
    if (UsedOutside(s_.program, s_.program.launches[s_.launch].body, loop, copy->dst.buffer)) continue;
    producers.push_back({copy, i, first_use, first_use});
  }
  for (size_t i = 0, next = 0; i < producers.size(); i = next) {
    size_t first_use = producers[i].group;
    for (next = i + 1; next < producers.size() && producers[next].stmt == producers[next - 1].stmt + 1; ++next) {
      first_use = std::min(first_use, producers[next].group);
    }
    for (size_t j = i; j < next; ++j) producers[j].group = first_use;
  }
  std::stable_sort(producers.begin(), producers.end(), [](const Producer& a, const Producer& b) { return a.group < b.group; });
  size_t group = 0, last_use = producers.empty() ? 0 : producers.front().group;
  for (Producer& producer : producers) {
    if (producer.group != last_use) ++group;
    last_use = producer.group;
    producer.group = group;
  }
  return producers;
}

// Copies [first, end) of iteration number `iteration` (from 0), if it is below `limit`; an asynchronous group is committed all the same, so that
// counts stay true, behind its last copy.
absl::Status PlanBuilder::IssueStage(const For& loop, std::vector<Producer>& producers, Expr iteration, Expr limit, int64_t versions, size_t first,
                                     size_t end) {
  const auto saved_slots = slots_;
  const auto saved_var = substitutes_;
  const Expr version = Fold(k_.exprs, k_.exprs.Binary(ExprOp::kFloorMod, iteration, Int(versions)));
  substitutes_[loop.var] = AddIndex(k_.exprs, Tr(loop.begin), iteration);
  for (size_t i = first; i < end;) {
    kir::If guarded{k_.exprs.Binary(ExprOp::kLt, iteration, limit), {}, {}};
    kir::Block* const outer = block_;
    block_ = &guarded.then_body;
    const size_t group = producers[i].group;
    for (; i < end && producers[i].group == group; ++i) {
      const Copy& copy = *producers[i].copy;
      slots_[copy.dst.buffer] = version;
      const size_t before = outstanding_.size();
      TILERT_RETURN_IF_ERROR(EmitCopy(copy));
      producers[i].async = outstanding_.size() > before;
      if (producers[i].async) outstanding_.resize(before);  // waited for by the pipeline
    }
    const bool whole = i == producers.size() || producers[i].group != group;
    const bool async = std::any_of(producers.begin(), producers.end(), [&](const Producer& p) { return p.group == group && p.async; });
    // One commit for the group, outside the condition.
    auto& body = guarded.then_body;
    body.erase(std::remove_if(body.begin(), body.end(), [](const kir::Stmt& s) { return std::holds_alternative<kir::CpAsyncCommit>(s.op); }), body.end());
    block_ = outer;
    Emit(std::move(guarded));
    if (whole && async) Emit(kir::CpAsyncCommit{});
  }
  slots_ = saved_slots;
  substitutes_ = saved_var;
  return absl::OkStatus();
}

// The stages before the first iteration: a loop, so that their code stands once.
absl::Status PlanBuilder::FillPipeline(const For& loop, std::vector<Producer>& producers, int ahead, Expr limit, int64_t versions) {
  if (ahead == 1) return IssueStage(loop, producers, Int(0), limit, versions, 0, producers.size());
  kir::For fill{NewVar("p"), Int(0), Int(ahead), Int(1), kir::Unroll::kNo, {}};
  kir::Block* const outer = block_;
  block_ = &fill.body;
  const absl::Status issued = IssueStage(loop, producers, VarExpr(fill.var), limit, versions, 0, producers.size());
  block_ = outer;
  Emit(std::move(fill));
  return issued;
}

// Copies that are not asynchronous are published by the barrier of the first group.
void PlanBuilder::WaitForGroup(const std::vector<Producer>& producers, size_t group, int pending) {
  kir::CpAsyncWait wait{pending, {}};
  for (const Producer& producer : producers) {
    if (producer.group == group && producer.async) wait.retires.push_back({buffers_[producer.copy->dst.buffer], slots_[producer.copy->dst.buffer]});
  }
  for (BufferId id : outstanding_) wait.retires.push_back({id, Int(0)});  // older than any group of the pipeline
  const bool waits = !wait.retires.empty();
  if (waits) Emit(std::move(wait));
  if (!waits && group > 0) return;
  if (wgmma_) Emit(kir::ProxyFence{});
  // One barrier here publishes the group and frees the version that is filled next; left to first use it would stand in inner loops.
  Emit(kir::BarSync{});
}

// How many asynchronous groups are committed after `group` of t when it is waited for: the later ones of t, and all of t + 1 … t + D (or D − 1 before this
// iteration's issue).
int PlanBuilder::CommittedAfter(const std::vector<Producer>& producers, size_t group, int ahead) {
  absl::flat_hash_set<size_t> all, later;
  for (const Producer& p : producers) {
    if (p.async) all.insert(p.group);
    if (p.async && p.group > group) later.insert(p.group);
  }
  return static_cast<int>(later.size() + all.size() * static_cast<size_t>(group == 0 ? ahead - 1 : ahead));
}

// Whether the sums of the loop's products leave no registers for a second block on the SM.
bool PlanBuilder::FillsSm(const For& loop) const {
  absl::flat_hash_set<BufferId> sums;
  for (const Stmt& stmt : loop.body) {
    if (auto* gemm = std::get_if<Gemm>(&stmt.op)) sums.insert(gemm->c.buffer);
  }
  int64_t registers = 0;  // of a thread
  for (BufferId id : sums) registers += s_.fragments.at(id).regs() * DTypeBytes(s_.buffer(id).dtype) / 4;
  return 2 * registers * s_.warps * kLanes > s_.target.registers_per_sm;
}

absl::Status PlanBuilder::EmitPipelined(const For& loop, std::vector<Producer> producers) {
  const int64_t versions = std::max<int64_t>(2, NumStages(s_.E(), loop));
  const int ahead = static_cast<int>(versions - 1);
  const int groups = static_cast<int>(producers.back().group) + 1;
  for (const Producer& producer : producers) k_.buffers[buffers_[producer.copy->dst.buffer]].versions = versions;
  const AheadProduct product = FindAheadProduct(loop, producers);
  const bool apart = product.gemm == nullptr && groups == 1 && !wgmma_ && FillsSm(loop);
  if (apart) std::ranges::stable_sort(producers, {}, &Producer::use);
  s_.report += Cat("  pipeline", Where(s_.program, loc_), ": ", producers.size(), " copies in ", groups, " groups, ", versions, " versions",
                   apart ? ", each before what uses its tile\n" : "\n");

  TILERT_ASSIGN_OR_RETURN(const Expr begin, BlockExpr(loop.begin));
  TILERT_ASSIGN_OR_RETURN(const Expr end, BlockExpr(loop.end));
  const Expr limit = Fold(k_.exprs, k_.exprs.Binary(ExprOp::kSub, end, begin));
  RetireAll();
  FillNow({});
  const std::vector<BufferId> older = outstanding_;
  const SourceLoc loc = loc_;
  if (product.gemm != nullptr) return EmitAhead(loop, product, producers, begin, limit, versions);
  TILERT_RETURN_IF_ERROR(FillPipeline(loop, producers, ahead, limit, versions));

  const VarId t = NewVar("t");
  kir::For out{t, Int(0), limit, Int(1), kir::Unroll::kNo, {}};
  kir::Block* const outer = block_;
  block_ = &out.body;
  const auto saved_slots = slots_;
  const Expr version = k_.exprs.Binary(ExprOp::kFloorMod, VarExpr(t), Int(versions));
  for (const Producer& producer : producers) slots_[producer.copy->dst.buffer] = version;
  Emit(kir::Let{loop.var, AddIndex(k_.exprs, begin, VarExpr(t))});

  ++loops_;
  outstanding_ = older;
  int waited = 0;     // groups waited for in this iteration
  size_t issued = 0;  // copies of t + D so far
  // The copies whose tiles statement `use` is the first to use, and those before them.
  const auto issue_until = [&](size_t use) -> absl::Status {
    size_t end = issued;
    while (end < producers.size() && (!apart || producers[end].use <= use)) ++end;
    const size_t first = std::exchange(issued, end);
    if (first == end) return absl::OkStatus();
    return IssueStage(loop, producers, AddIndex(k_.exprs, VarExpr(t), ahead), limit, versions, first, end);
  };
  const auto wait_next = [&]() -> absl::Status {
    WaitForGroup(producers, static_cast<size_t>(waited), CommittedAfter(producers, static_cast<size_t>(waited), ahead));
    outstanding_.clear();
    if (waited++ > 0) return absl::OkStatus();
    return issue_until(producers.front().use);
  };
  for (size_t i = 0; i < loop.body.size(); ++i) {
    const Stmt& stmt = loop.body[i];
    const bool producer = std::any_of(producers.begin(), producers.end(), [&](const Producer& p) { return p.stmt == i; });
    if (producer) continue;
    loc_ = stmt.loc;
    const absl::flat_hash_set<BufferId> read = BuffersRead(s_.program, stmt);
    for (const Producer& p : producers) {
      while (read.contains(p.copy->dst.buffer) && waited <= static_cast<int>(p.group)) TILERT_RETURN_IF_ERROR(wait_next());
    }
    if (waited == 0) TILERT_RETURN_IF_ERROR(wait_next());
    TILERT_RETURN_IF_ERROR(issue_until(i));
    Acquire(loop.body, i);
    Prepare(stmt);
    TILERT_RETURN_IF_ERROR(EmitStmt(stmt));
    Release(loop.body, i);
  }
  FlushAsync();
  FillNow({});
  RetireAll();
  --loops_;
  block_ = outer;
  slots_ = saved_slots;
  loc_ = loc;
  Emit(std::move(out));
  outstanding_ = older;  // a loop without iterations has waited for nothing
  kir::CpAsyncWait drain;
  for (BufferId id : outstanding_) drain.retires.push_back({id, Int(0)});
  outstanding_.clear();
  if (!drain.retires.empty()) Emit(std::move(drain));
  return absl::OkStatus();
}

}  // namespace tilert
