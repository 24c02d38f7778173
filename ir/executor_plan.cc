#include "ir/executor_plan.h"

#include <algorithm>

#include "ir/printer.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

// The buffer that a statement writes, if any.
BufferId Written(const Stmt& stmt) {
  return std::visit(Overloaded{
                        [](const auto&) { return kNoId; },
                        [](const Copy& s) { return s.dst.buffer; },
                        [](const Gemm& s) { return s.c.buffer; },
                        [](const Fill& s) { return s.dst.buffer; },
                        [](const Reduce& s) { return s.dst.buffer; },
                        [](const Scan& s) { return s.dst.buffer; },
                        [](const Store& s) { return s.buffer; },
                        [](const Atomic& s) { return s.buffer; },
                        [](const AtomicTile& s) { return s.dst.buffer; },
                    },
                    stmt.op);
}

class Planner {
 public:
  Planner(const Program& program, const BoundArgs& bound, LaunchPlan* plan)
      : program_(program), compiler_(program, bound), plan_(*plan) {
    plan_.thread_private.assign(program.buffers.size(), false);
    plan_.by_hand.assign(program.buffers.size(), false);
  }

  absl::Status Plan(const Launch& launch) {
    plan_.launch = &launch;
    for (VarId var : launch.block_vars) compiler_.DeclareBlockVar(var);
    Survey(launch.body, false);
    TILERT_ASSIGN_OR_RETURN(plan_.body, PlanBlock(launch.body, Mode::kBlock));
    plan_.lane_slots = compiler_.num_slots();
    plan_.slot_of = compiler_.lane_slots();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Steps> PlanBlock(const Block& block, Mode mode) {
    Steps steps;
    steps.reserve(block.size());
    for (const Stmt& stmt : block) {
      absl::StatusOr<Step> step = PlanStmt(stmt, mode);
      if (!step.ok()) return step.status();
      steps.push_back(*std::move(step));
    }
    return steps;
  }

  // Finds the private memory of threads, and barriers that expect_tx is used on.
  void Survey(const Block& block, bool in_threads) {
    for (const Stmt& stmt : block) {
      const BufferId written = Written(stmt);
      if (in_threads && written != kNoId) {
        const Scope scope = program_.buffers[written].scope;
        plan_.thread_private[written] = plan_.thread_private[written] || scope == Scope::kLocal || scope == Scope::kVar;
      }
      const auto* op = std::get_if<BarrierOp>(&stmt.op);
      if (op != nullptr && op->kind == BarrierOpKind::kExpectTx) plan_.by_hand[op->barrier] = true;
      for (const Block* child : ChildBlocks(stmt)) Survey(*child, in_threads || std::holds_alternative<ThreadRegion>(stmt.op));
    }
  }

  absl::StatusOr<Step> PlanStmt(const Stmt& stmt, Mode mode) {
    if (absl::Status status = Check(stmt, mode); !status.ok()) return Blame(program_, stmt, status);
    Step step{.stmt = &stmt};
    std::vector<Expr> roots;
    ForEachExpr(stmt, [&](Expr e) { roots.push_back(e); });
    absl::StatusOr<Code> code = compiler_.Compile(roots);
    if (!code.ok()) return Blame(program_, stmt, code.status());
    step.code = *std::move(code);
    plan_.max_regs = std::max(plan_.max_regs, step.code.regs);
    const Mode inner = Declare(stmt, mode);
    for (const Block* child : ChildBlocks(stmt)) {
      TILERT_ASSIGN_OR_RETURN(Steps steps, PlanBlock(*child, inner));
      step.blocks.push_back(std::move(steps));
    }
    return step;
  }

  // Declares the variables that `stmt` gives to its body and to what follows. Returns the mode of its body.
  Mode Declare(const Stmt& stmt, Mode mode) {
    const auto declare = [&](VarId var) {
      if (mode == Mode::kBlock) {
        compiler_.DeclareBlockVar(var);
      } else {
        compiler_.DeclareLaneVar(var);
      }
    };
    return std::visit(Overloaded{
                          [&](const auto&) { return mode; },
                          [&](const Let& s) { return declare(s.var), mode; },
                          [&](const Shuffle& s) { return declare(s.var), mode; },
                          [&](const For& s) { return declare(s.var), mode; },
                          [&](const Atomic& s) {
                            plan_.ordered_atomics |= s.order != MemoryOrder::kRelaxed;
                            if (s.prev != kNoId) declare(s.prev);
                            return mode;
                          },
                          [&](const AtomicTile& s) {
                            plan_.ordered_atomics |= s.order != MemoryOrder::kRelaxed;
                            return mode;
                          },
                          [&](const Parallel& s) {
                            for (VarId var : s.vars) compiler_.DeclareLaneVar(var);
                            return mode == Mode::kBlock ? Mode::kPoints : mode;
                          },
                          [&](const ThreadRegion& s) {
                            compiler_.DeclareLaneVar(s.thread);
                            return Mode::kThreads;
                          },
                      },
                      stmt.op);
  }

  absl::Status Check(const Stmt& stmt, Mode mode) const {
    return std::visit(Overloaded{
                          [](const auto&) { return absl::OkStatus(); },
                          [&](const ThreadRegion&) {
                            return mode == Mode::kBlock
                                       ? absl::OkStatus()
                                       : InvalidArgument("a thread region inside a parallel loop or another thread region");
                          },
                          [&](const SyncThreads&) {
                            return mode == Mode::kPoints ? InvalidArgument("a barrier inside a parallel loop") : absl::OkStatus();
                          },
                      },
                      stmt.op);
  }

  const Program& program_;
  CodeCompiler compiler_;
  LaunchPlan& plan_;
};

}  // namespace

absl::StatusOr<LaunchPlan> PlanLaunch(const Program& program, const BoundArgs& bound, const Launch& launch) {
  LaunchPlan plan;
  TILERT_RETURN_IF_ERROR(Planner(program, bound, &plan).Plan(launch));
  return plan;
}

absl::Status Located(const Program& program, const SourceLoc& loc, const absl::Status& status) {
  const std::string at = PrintLoc(program, loc);
  return at.empty() ? status : absl::Status(status.code(), absl::StrCat(at, ": ", status.message()));
}

absl::Status Blame(const Program& program, const Stmt& stmt, const absl::Status& status) {
  return Located(program, stmt.loc,
                 absl::Status(status.code(), absl::StrCat(PrintStmtHead(program, stmt), ": ", status.message())));
}

}  // namespace tilert::exec
