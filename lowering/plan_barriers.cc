// What the program says of threads and barriers itself: thread regions, declared barriers, threads that meet.
#include "ir/status_util.h"
#include "lowering/plan_threads.h"
#include "lowering/tile_access.h"

namespace tilert {
namespace {

bool AnyBarrierOp(const Block& body, BufferId barrier, BarrierOpKind kind) {
  bool any = false;
  ForEachStmt(body, [&](const Stmt& stmt) {
    auto* op = std::get_if<BarrierOp>(&stmt.op);
    any |= op != nullptr && op->kind == kind && op->barrier == barrier;
  });
  return any;
}

}  // namespace

FragmentLayout PlanBuilder::PointPerThread() const {
  LayoutDim dim{threads_, {{kLanes, Owner::kLane, 1}}};
  if (s_.warps > 1) dim.factors.push_back({s_.warps, Owner::kWarp, 1});
  return {{std::move(dim)}, s_.warps};
}

absl::Status PlanBuilder::EmitThreadRegion(const Stmt& stmt, const ThreadRegion& region) {
  FlushAsync();
  RetireAll();
  FillNow({});
  region_writes_ = false;
  for (BufferId id : BuffersWritten(stmt)) region_writes_ |= s_.scope(id) == Scope::kShared;
  return ThreadPlanner(*this, region, first_thread_, threads_).Run();
}

absl::Status PlanBuilder::EmitSync(const SyncThreads& sync, int64_t threads_here) {
  const bool all = sync.count == 0 || sync.count == (all_meet_ ? k_.warps * kLanes : threads_here);
  if (all && all_meet_) return Meet(), absl::OkStatus();
  if (all) return Emit(kir::BarSync{}), absl::OkStatus();
  if (sync.count > static_cast<uint32_t>(k_.warps * kLanes) || sync.barrier == 0 || sync.barrier > 8) {
    return InvalidArgument("T.sync_threads(", sync.barrier, ", ", sync.count, ")", Where(s_.program, loc_), ": barriers 1 to 8 are there for groups of threads");
  }
  if (wgmma_ && writes_tiles_) Emit(kir::ProxyFence{});
  Emit(kir::BarSync{false, static_cast<int>(sync.barrier), static_cast<int>(sync.count / kLanes)});
  return absl::OkStatus();
}

absl::Status PlanBuilder::EmitBarrier(BufferId id) {
  const Buffer& buffer = s_.buffer(id);
  const std::vector<int64_t> shape = s_.Shape(id);
  if (loops_ > 0) return absl::UnimplementedError(Cat("barrier '", buffer.name, "' is made anew in a loop, which is not lowered to GPU code; allocate it before the loop"));
  barriers_[id] = static_cast<kir::BarrierId>(k_.barriers.size());
  const bool by_hand = AnyBarrierOp(s_.L().body, id, BarrierOpKind::kExpectTx);
  k_.barriers.push_back({buffer.name, static_cast<int>(Product(shape)), static_cast<int>(buffer.arrive_count), by_hand});
  return absl::OkStatus();
}

// The number of an element in its array.
Expr PlanBuilder::BarrierIndex(BufferId id, const std::vector<Expr>& indices) {
  const std::vector<int64_t> shape = s_.Shape(id);
  Expr at = Int(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    at = Fold(k_.exprs, k_.exprs.Binary(ExprOp::kAdd, k_.exprs.Binary(ExprOp::kMul, at, Int(shape[d])), indices[d]));
  }
  // A subscript outside would be another barrier, or no barrier at all.
  const int64_t size = k_.barriers[barriers_.at(id)].size;
  int64_t known = 0;
  if (k_.exprs.AsInt(at, &known) && known >= 0 && known < size) return at;
  const ExprNode& node = k_.exprs[at];
  if (node.op == ExprOp::kFloorMod && k_.exprs.IsInt(node.args[1], size)) return at;
  return k_.exprs.Binary(ExprOp::kMax, k_.exprs.Binary(ExprOp::kMin, at, Int(size - 1)), Int(0));
}

absl::Status PlanBuilder::EmitBarrierOp(const BarrierOp& op, const std::vector<Expr>& indices, Expr operand) {
  const kir::BarrierId id = barriers_.at(op.barrier);
  const Expr at = BarrierIndex(op.barrier, indices);
  switch (op.kind) {
    case BarrierOpKind::kArrive:
      if (wgmma_ && writes_tiles_) Emit(kir::ProxyFence{});  // others may multiply what these threads have written
      Emit(kir::MbarArrive{id, at});
      return absl::OkStatus();
    case BarrierOpKind::kWait: Emit(kir::MbarWait{id, at, operand}); return absl::OkStatus();
    case BarrierOpKind::kExpectTx: Emit(kir::MbarExpect{id, at, operand}); return absl::OkStatus();
    case BarrierOpKind::kInvalid: break;
  }
  return Internal("an invalid barrier operation");
}

// By single threads.
absl::Status PlanBuilder::EmitElementBarrierOp(const Stmt& stmt, const BarrierOp& op, kir::Block& out) {
  kir::Block* const outer = std::exchange(block_, &out);
  const SourceLoc loc = std::exchange(loc_, stmt.loc);
  const bool writes_tiles = std::exchange(writes_tiles_, writes_tiles_ && region_writes_);  // what was before has its fence
  const absl::Status status = EmitBarrierOp(op, Tr(op.indices), op.operand ? Tr(op.operand) : Expr{});
  block_ = outer;
  loc_ = loc;
  writes_tiles_ = writes_tiles;
  return status;
}

// Among tile statements: what came before it has come to its end.
absl::Status PlanBuilder::EmitBarrierOp(const BarrierOp& op) {
  std::vector<Expr> indices;
  for (Expr e : op.indices) {
    TILERT_ASSIGN_OR_RETURN(indices.emplace_back(), BlockExpr(e));
  }
  Expr operand;
  if (op.operand) {
    TILERT_ASSIGN_OR_RETURN(operand, BlockExpr(op.operand));
  }
  if (op.kind == BarrierOpKind::kArrive) {
    FlushAsync();
    RetireAll();
    FillNow({});
  }
  if (op.kind != BarrierOpKind::kArrive || threads_ % kLanes == 0) return EmitBarrierOp(op, indices, operand);
  // The last warp has lanes that are no threads of the program.
  kir::Elementwise each{PointPerThread(), {NewVar("tx")}, {}};
  kir::Block* const outer = std::exchange(block_, &each.body);
  const absl::Status status = EmitBarrierOp(op, indices, operand);
  block_ = outer;
  Emit(std::move(each));
  return status;
}

// Elements of a row of the panels in which a copy goes by TMA, completing on its barrier; 0: it does not.
int64_t PlanBuilder::PanelAtBarrier(const Copy& copy) const {
  const BufferId src = copy.src.buffer, dst = copy.dst.buffer;
  const bool plain = copy.is_async && copy.barrier != kNoId && s_.target.family == Family::kHopper && s_.scope(src) == Scope::kGlobal &&
                     s_.scope(dst) == Scope::kShared && !copy.fill && s_.IsWholeTile(copy.dst);
  return plain ? TmaPanel(s_, copy.src, s_.Extents(copy.src.extent), s_.shared.at(dst), s_.buffer(dst).dtype) : 0;
}

// A copy that completes on a barrier goes by TMA where that can be; else the threads copy, and their arrivals say that it is there, or, where the program
// announces bytes, one of them for all. One without a barrier is a copy that is waited for before its tile is touched, wherever its wait stands.
absl::Status PlanBuilder::EmitAsyncCopy(const Stmt& stmt, const Copy& copy) {
  if (copy.barrier == kNoId) return EmitCopy(copy);
  const BufferId src = copy.src.buffer, dst = copy.dst.buffer;
  const std::vector<int64_t> box = s_.Extents(copy.src.extent);
  const kir::BarrierId barrier = barriers_.at(copy.barrier);
  const bool by_hand = k_.barriers[barrier].by_hand;
  std::vector<Expr> indices;
  for (Expr e : copy.barrier_indices) {
    TILERT_ASSIGN_OR_RETURN(indices.emplace_back(), BlockExpr(e));
  }
  const Expr at = BarrierIndex(copy.barrier, indices);
  if (const int64_t panel = PanelAtBarrier(copy); panel > 0) {
    const SharedLayout& tile = s_.shared.at(dst);
    const kir::MapId map = MapOf(src, box, panel, tile.swizzled ? static_cast<int>(tile.panel) : 0);
    if (!by_hand) Emit(kir::MbarExpect{barrier, at, Int(Product(tile.extents) * tile.element_bytes)});
    Emit(kir::TmaLoad{map, buffers_[dst], 0, Tr(copy.src.start), 0, barrier, at, s_.slots.contains(dst) ? Tr(copy.dst.start[0]) : Slot(dst)});
    ReportTma(copy, map);
    return absl::OkStatus();
  }
  if (by_hand) {  // the arrivals may have been before: the bytes say that the copy is there
    TILERT_RETURN_IF_ERROR(EmitCopy(copy));
    FlushAsync();
    if (wgmma_) Emit(kir::ProxyFence{});
    Emit(kir::BarSync{});
    const int64_t bytes = Product(s_.Extents(copy.dst.extent)) * DTypeBytes(s_.buffer(dst).dtype);
    if (bytes > 0) Emit(kir::MbarComplete{barrier, at, bytes});
    return absl::OkStatus();
  }
  if (!AnyBarrierOp(s_.L().body, copy.barrier, BarrierOpKind::kArrive))
    return Unsupported(stmt, "a copy that completes on a barrier at which nobody arrives, and that cannot go by TMA,");
  return EmitCopy(copy);  // in flight until the arrival
}

}  // namespace tilert
