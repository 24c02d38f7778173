// docs/ir_spec.md sections 6 and 7: which statement may stand where, and under which control.
#include <optional>

#include "ir/uniformity.h"
#include "ir/verify_context.h"

namespace tilert::verify {
namespace {

// What runs a statement: the block (or role) as a whole, one point of a parallel loop, or one thread.
enum class Place : uint8_t { kTile, kElement, kThread };

struct Frame {
  Place place = Place::kTile;
  bool in_role = false;
  bool in_loop = false;
  uint32_t owner = 0;  // the parallel loop, thread region or role that private memory made here belongs to
  const ThreadUniformity* threads = nullptr;
};

std::string_view PlaceText(const Frame& frame) {
  switch (frame.place) {
    case Place::kTile: return frame.in_role ? "in a role" : "among tile statements";
    case Place::kElement: return "in a T.Parallel loop";
    case Place::kThread: return "in a thread region";
  }
  return "";
}

// Places that a statement may stand in, when that depends on its kind alone.
struct Allowed {
  bool tile, element, thread;
};
Allowed AllowedIn(const StmtOp& op) {
  constexpr Allowed kAnywhere{true, true, true}, kTileOnly{true, false, false}, kNotElement{true, false, true},
      kThreadOnly{false, false, true};
  return std::visit(Overloaded{
                        [&](const auto&) { return kAnywhere; },
                        [&](const Copy& s) { return s.is_async ? kNotElement : kTileOnly; },
                        [&](const Gemm& s) { return s.is_async ? kNotElement : kTileOnly; },
                        [&](const Reduce&) { return kTileOnly; },
                        [&](const Scan&) { return kTileOnly; },
                        [&](const AtomicTile&) { return kTileOnly; },
                        [&](const Annotate&) { return kTileOnly; },
                        [&](const Parallel&) { return kTileOnly; },
                        [&](const ThreadRegion&) { return kTileOnly; },
                        [&](const Roles&) { return kTileOnly; },
                        [&](const SyncThreads&) { return kNotElement; },
                        [&](const Shuffle&) { return kThreadOnly; },
                        [&](const BarrierOp&) { return kNotElement; },
                        [&](const AsyncWait&) { return kNotElement; },
                    },
                    op);
}

class ControlChecker {
 public:
  explicit ControlChecker(Context& c)
      : c_(c), owner_of_(c.p.buffers.size()), by_tile_(c.p.buffers.size()), by_thread_(c.p.buffers.size()) {}
  void Run();

 private:
  void WalkBlock(const Block& block, const Frame& frame);
  void WalkStmt(const Stmt& stmt, const Frame& frame);
  void CheckPlace(const Stmt& stmt, const Frame& frame);
  void CheckAlloc(const Alloc& s, const Frame& frame);
  void CheckLoop(const For& s, const Frame& frame);
  void CheckWrite(BufferId id, const Frame& frame);
  void CheckReads(const Stmt& stmt, const Frame& frame);
  void FindThreadMemory(const Block& block, bool in_threads);
  void CheckRoles(const Roles& s, const Frame& frame);
  void CheckSync(const SyncThreads& s, const Frame& frame);
  void CheckThreadControl(const Stmt& stmt, const Frame& frame);
  Frame Inside(const Stmt& stmt, Frame frame);

  Context& c_;
  std::vector<uint32_t> owner_of_;  // of private buffers
  std::vector<bool> by_tile_;       // buffers allocated among tile statements
  std::vector<bool> by_thread_;     // buffers that thread regions write
  uint32_t owners_ = 0;
  std::optional<int64_t> threads_;  // of the launch
};

void ControlChecker::CheckPlace(const Stmt& stmt, const Frame& frame) {
  const Allowed allowed = AllowedIn(stmt.op);
  const bool ok = frame.place == Place::kTile ? allowed.tile : frame.place == Place::kElement ? allowed.element : allowed.thread;
  if (!ok) c_.Error(PrintStmtHead(c_.p, stmt), " cannot stand ", PlaceText(frame), ": move it outside");
  const auto* sync = std::get_if<SyncThreads>(&stmt.op);
  if (frame.in_role && (std::holds_alternative<Roles>(stmt.op) || (sync != nullptr && sync->count == 0))) {
    c_.Error(PrintStmtHead(c_.p, stmt), " concerns the whole block and cannot stand in a role: use a barrier");
  }
  const auto* note = std::get_if<Annotate>(&stmt.op);
  if (frame.in_role && note != nullptr && note->kind == AnnotationKind::kSafeValue)
    c_.Error(PrintStmtHead(c_.p, stmt),
             " would hold for the other roles too, which run at the same time: move it in front of T.roles");
  const bool leaves = std::holds_alternative<Break>(stmt.op) || std::holds_alternative<Continue>(stmt.op);
  if (leaves && !frame.in_loop)
    c_.Error(PrintStmtHead(c_.p, stmt), " stands in no loop that it could act on: write the loop around it, or use a condition");
}

void ControlChecker::CheckAlloc(const Alloc& s, const Frame& frame) {
  const Scope scope = c_.p.buffers[s.buffer].scope;
  owner_of_[s.buffer] = frame.owner;
  by_tile_[s.buffer] = frame.place == Place::kTile;
  const bool is_private = scope == Scope::kLocal || scope == Scope::kVar;
  if (frame.place != Place::kTile && !is_private)
    c_.Error(c_.Name(s.buffer), " belongs to the block and cannot be allocated ", PlaceText(frame), ": allocate it outside");
  if (frame.in_role && scope == Scope::kBarrier)
    c_.Error("barrier ", c_.Name(s.buffer), " must be allocated outside the roles that meet at it: move it in front of T.roles");
}

void ControlChecker::CheckLoop(const For& s, const Frame& frame) {
  if (frame.place == Place::kTile) return;
  if (s.kind == ForKind::kPipelined || s.kind == ForKind::kPersistent)
    c_.Error("this kind of loop cannot stand ", PlaceText(frame), ": use T.serial");
}

void ControlChecker::CheckWrite(BufferId id, const Frame& frame) {
  const Scope scope = c_.p.buffers[id].scope;
  // What thread regions write is each thread's own, wherever it was allocated.
  const bool of_threads = frame.place == Place::kThread && by_tile_[id];
  if ((scope == Scope::kLocal || scope == Scope::kVar) && by_thread_[id] && frame.place != Place::kThread)
    c_.Error(c_.Name(id), " is written by thread regions, so each thread has its own: it cannot be written ", PlaceText(frame),
             "; use shared memory");
  if ((scope == Scope::kLocal || scope == Scope::kVar) && owner_of_[id] != frame.owner && !of_threads) {
    c_.Error(c_.Name(id), " is private to where it was allocated and cannot be written ", PlaceText(frame),
             ": allocate it there, or use shared memory");
  }
  if (scope == Scope::kFragment && frame.place == Place::kThread)
    c_.Error(c_.Name(id), " is a fragment, spread over the threads: a thread region cannot write it; use shared or local memory");
}

void ControlChecker::CheckReads(const Stmt& stmt, const Frame& frame) {
  if (frame.place != Place::kThread) {
    ForEachExpr(stmt, [&](Expr root) {
      if (!root) return;
      ForEachNode(c_.p.exprs, root, [&](Expr, const ExprNode& node) {
        if (node.op != ExprOp::kLoad || !by_thread_[node.i]) return;
        c_.Error(c_.Name(static_cast<BufferId>(node.i)),
                 " is written by thread regions, so each thread has its own: it cannot be read ", PlaceText(frame),
                 "; use shared memory");
      });
    });
    return;
  }
  ForEachExpr(stmt, [&](Expr root) {
    ForEachNode(c_.p.exprs, root, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kLoad && c_.p.buffers[node.i].scope == Scope::kFragment) {
        c_.Error(c_.Name(static_cast<BufferId>(node.i)),
                 " is a fragment, spread over the threads: a thread region cannot read it; use shared or local memory");
      }
    });
  });
}

// Private memory that thread regions write.
void ControlChecker::FindThreadMemory(const Block& block, bool in_threads) {
  for (const Stmt& stmt : block) {
    const auto* store = std::get_if<Store>(&stmt.op);
    const auto* fill = std::get_if<Fill>(&stmt.op);
    const BufferId written = store != nullptr ? store->buffer : fill != nullptr ? fill->dst.buffer : kNoId;
    if (in_threads && written != kNoId) {
      const Scope scope = c_.p.buffers[written].scope;
      by_thread_[written] = by_thread_[written] || scope == Scope::kLocal || scope == Scope::kVar;
    }
    for (const Block* child : ChildBlocks(stmt))
      FindThreadMemory(*child, in_threads || std::holds_alternative<ThreadRegion>(stmt.op));
  }
}

void ControlChecker::CheckRoles(const Roles& s, const Frame&) {
  if (s.roles.empty()) c_.Error("T.roles holds no role: open at least one T.role(begin, end) in it");
  int64_t last_end = 0;
  for (const Role& role : s.roles) {
    int64_t begin = 0, end = 0;
    if (!c_.p.exprs.AsInt(role.thread_begin, &begin) || !c_.p.exprs.AsInt(role.thread_end, &end)) {
      c_.Error("the threads of a role must be numbers or constants");
    } else if (begin < last_end || end <= begin || (threads_ && end > *threads_)) {
      c_.Error("role [", begin, ", ", end, ") must be ascending, apart from the others, and within the block's ",
               threads_.value_or(1024), " threads");
    } else if (begin % 32 != 0 || end % 32 != 0) {
      c_.Error("role [", begin, ", ", end, ") splits a warp: use multiples of 32");
    } else {
      last_end = end;
    }
  }
}

void ControlChecker::CheckSync(const SyncThreads& s, const Frame& frame) {
  if (s.count == 0 && s.barrier != 0) c_.Error("a barrier number belongs to a group of threads: T.sync_threads(barrier, count)");
  if (s.count == 0) return;
  if (s.barrier < 1 || s.barrier > 15) c_.Error("groups of threads meet at barriers 1 to 15, not ", s.barrier);
  if (s.count % 32 != 0 || s.count > threads_.value_or(1024))
    c_.Error("a group of ", s.count, " threads: it must be made of whole warps of the block");
  if (frame.threads == nullptr && !frame.in_role) c_.Error("all threads are here: write T.sync_threads()");
}

void ControlChecker::CheckThreadControl(const Stmt& stmt, const Frame& frame) {
  if (frame.threads == nullptr) return;
  const Uniformity control = frame.threads->ControlOf(stmt);
  const auto* sync = std::get_if<SyncThreads>(&stmt.op);
  if (sync != nullptr && sync->count != 0 && control > Uniformity::kWarp)
    c_.Error("T.sync_threads(", sync->barrier, ", ", sync->count,
             ") runs under a condition on which not even each warp agrees: move it outside");
  if (std::holds_alternative<Shuffle>(stmt.op) && control > Uniformity::kWarp)
    c_.Error(
        "a shuffle runs under a condition on which not all lanes of a warp agree: they must reach it together; move it outside");
  if (sync != nullptr && sync->count == 0 && control != Uniformity::kBlock) {
    c_.Error("T.sync_threads() runs under a condition on which only each ", UniformityText(control),
             " agrees: all threads of the block must reach it together");
  }
  if (std::holds_alternative<Gemm>(stmt.op) && control > Uniformity::kWarpgroup) {
    c_.Error("wgmma_gemm runs under a condition on which only each ", UniformityText(control),
             " agrees: a warpgroup must run it together");
  }
}

Frame ControlChecker::Inside(const Stmt& stmt, Frame frame) {
  if (std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op)) frame.in_loop = true;
  const bool is_parallel = std::holds_alternative<Parallel>(stmt.op), is_threads = std::holds_alternative<ThreadRegion>(stmt.op);
  if (is_parallel || is_threads || std::holds_alternative<Roles>(stmt.op)) {
    frame.in_loop = false;
    frame.owner = ++owners_;
  }
  if (is_parallel) frame.place = Place::kElement;
  if (is_threads) frame.place = Place::kThread;
  if (std::holds_alternative<Roles>(stmt.op)) frame.in_role = true;
  return frame;
}

void ControlChecker::WalkStmt(const Stmt& stmt, const Frame& frame) {
  CheckPlace(stmt, frame);
  CheckReads(stmt, frame);
  CheckThreadControl(stmt, frame);
  std::visit(Overloaded{
                 [](const auto&) {},
                 [&](const Alloc& s) { CheckAlloc(s, frame); },
                 [&](const For& s) { CheckLoop(s, frame); },
                 [&](const Store& s) { CheckWrite(s.buffer, frame); },
                 [&](const Roles& s) { CheckRoles(s, frame); },
                 [&](const SyncThreads& s) { CheckSync(s, frame); },
                 [&](const Fill& s) {
                   CheckWrite(s.dst.buffer, frame);
                   if (frame.place != Place::kTile && c_.p.buffers[s.dst.buffer].scope != Scope::kLocal) {
                     c_.Error(PrintStmtHead(c_.p, stmt), " cannot stand ", PlaceText(frame), ": move it outside");
                   }
                 },
             },
             stmt.op);
  std::optional<ThreadUniformity> threads;
  const auto* region = std::get_if<ThreadRegion>(&stmt.op);
  if (region != nullptr && frame.place == Place::kTile) threads.emplace(c_.p, *region);  // a nested one is refused
  const std::vector<const Block*> children = ChildBlocks(stmt);
  for (size_t part = 0; part < children.size(); ++part) {
    auto scope = c_.path.EnterPart(stmt, part);
    Frame inside = Inside(stmt, frame);  // each role owns what is allocated in it
    if (threads) inside.threads = &*threads;
    WalkBlock(*children[part], inside);
  }
}

void ControlChecker::WalkBlock(const Block& block, const Frame& frame) {
  for (size_t i = 0; i < block.size() && !c_.full(); ++i) {
    auto scope = c_.path.Enter("", i);
    c_.loc = block[i].loc;
    WalkStmt(block[i], frame);
  }
}

void ControlChecker::Run() {
  for (size_t i = 0; i < c_.p.launches.size(); ++i) {
    auto scope = c_.path.Enter("launches", i);
    auto body = c_.path.Enter("body");
    int64_t threads = 0;
    threads_.reset();
    if (c_.p.exprs.AsInt(c_.p.launches[i].threads, &threads)) threads_ = threads;
    by_thread_.assign(c_.p.buffers.size(), false);
    FindThreadMemory(c_.p.launches[i].body, false);
    WalkBlock(c_.p.launches[i].body, Frame{});
  }
  c_.loc = {};
}

}  // namespace

void CheckControl(Context& c) { ControlChecker(c).Run(); }

}  // namespace tilert::verify
