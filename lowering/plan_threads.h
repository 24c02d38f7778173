// Plans one thread region; a part of PlanBuilder.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "ir/uniformity.h"
#include "lowering/plan_builder.h"
#include "lowering/ranges.h"

namespace tilert {

class ThreadPlanner {
 public:
  // For threads first … first + threads − 1 of the block, which are those of the builder's warps.
  ThreadPlanner(PlanBuilder& builder, const ThreadRegion& region, int64_t first, int64_t threads);
  absl::Status Run();

 private:
  absl::Status CheckMeetings(const Stmt& root) const;
  bool ByThread(const Stmt& stmt) const;
  bool IsMeeting(const Stmt& stmt) const;
  bool SomeCome(BarrierOpKind kind) const;
  bool IsAlone() const;
  bool IsLast() const;
  void Fence();
  bool MarkStructure(const Block& block);
  bool MarkJumps(const Block& block, const Stmt* loop);
  void KeepVars(const std::vector<const Stmt*>& segment, absl::Span<const Stmt> rest, std::vector<std::pair<VarId, BufferId>>* kept);
  BufferId NewScalar(const std::string& name, DType type);  // a register of each thread
  Expr ScalarValue(BufferId id, DType type);
  Expr AsStored(BufferId id, Expr value);
  absl::Status Points(const std::function<absl::Status(kir::Block&)>& fill);
  absl::Status EmitBlock(const Block& block);
  absl::Status Declare(const Stmt& root);
  absl::StatusOr<Expr> Agreed(Expr e);
  bool ByWarp(const Stmt& stmt) const;
  absl::Status EmitStructure(const Stmt& stmt);
  absl::Status Inside(kir::Block& out, const std::function<absl::Status()>& emit);
  absl::Status EmitControl(const Stmt& stmt);
  Expr Inside(BufferId id, absl::Span<const Expr> at, const Ranges& ranges);
  Expr Guarded(Expr e, const Ranges& ranges);
  void Guard(kir::Block& block, Ranges& ranges);

  PlanBuilder& b_;
  const ThreadRegion& region_;
  const ThreadUniformity uniform_;
  const int64_t first_, threads_;
  FragmentLayout layout_;  // one point a thread
  absl::flat_hash_set<const Stmt*> structural_;
  bool by_warp_ = false;
};

}  // namespace tilert
