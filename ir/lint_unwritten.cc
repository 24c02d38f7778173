// Memory of a block that is read before anything has been written to it. What may have been written, on some path, counts as
// written.
#include "absl/container/flat_hash_set.h"
#include "ir/lint_context.h"
#include "ir/verify_context.h"

namespace tilert::lint {
namespace {

using Buffers = absl::flat_hash_set<BufferId>;

bool LeavesLoop(const Stmt& stmt) { return std::holds_alternative<Break>(stmt.op) || std::holds_alternative<Continue>(stmt.op); }

class UnwrittenChecker {
 public:
  explicit UnwrittenChecker(Context& c) : c_(c) {}

  void Run() {
    for (size_t i = 0; i < c_.p.launches.size(); ++i) {
      auto scope = c_.path.Enter("launches", i);
      auto body = c_.path.Enter("body");
      written_.clear();
      Walk(c_.p.launches[i].body);
    }
  }

 private:
  static void NoteWrites(const Stmt& stmt, Buffers* written) {
    verify::ForEachRegion(stmt, [&](const Region& r, bool is_written, bool) {
      if (is_written) written->insert(r.buffer);
    });
    if (const auto* s = std::get_if<Store>(&stmt.op)) written->insert(s->buffer);
    if (const auto* s = std::get_if<Atomic>(&stmt.op)) written->insert(s->buffer);
  }

  static void NoteAllWrites(const Block& block, Buffers* written) {
    ForEachStmt(block, [&](const Stmt& stmt) { NoteWrites(stmt, written); });
  }

  void Walk(const Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      auto scope = c_.path.Enter("", i);
      const Stmt& stmt = block[i];
      if (const auto* alloc = std::get_if<Alloc>(&stmt.op)) written_.erase(alloc->buffer);
      CheckReads(stmt);
      NoteWrites(stmt, &written_);
      WalkChildren(stmt);
    }
  }

  void WalkChildren(const Stmt& stmt) {
    const std::vector<const Block*> children = ChildBlocks(stmt);
    const bool is_loop = std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op);
    // Roles and threads run beside each other: each may see what any other writes. A condition, or a way out of an iteration, may
    // let the first iterations pass, so that what follows sees what the loop writes elsewhere.
    const bool is_beside = std::holds_alternative<Roles>(stmt.op) || std::holds_alternative<ThreadRegion>(stmt.op);
    bool jumps = false;
    if (is_loop) ForEachStmt(stmt, [&](const Stmt& s) { jumps |= LeavesLoop(s); });
    if (is_beside || jumps) {
      for (const Block* child : children) NoteAllWrites(*child, &written_);
    }
    if (std::holds_alternative<If>(stmt.op)) {
      for (const Block* loop : loops_) NoteAllWrites(*loop, &written_);
    }
    if (is_loop) loops_.push_back(children[0]);
    for (size_t part = 0; part < children.size(); ++part) {
      auto nested = c_.path.EnterPart(stmt, part);
      Walk(*children[part]);
    }
    if (is_loop) loops_.pop_back();
  }

  void CheckReads(const Stmt& stmt) {
    if (const auto* s = std::get_if<Gemm>(&stmt.op); s && !s->clear_accum && NeverWritten(s->c.buffer)) {
      Warn(stmt, s->c.buffer, Cat("this gemm adds to ", c_.Name(s->c.buffer), ", to which nothing has been written"),
           Cat("write T.clear(", c_.p.buffers[s->c.buffer].name, ") before it, or clear_accum=True"));
    }
    const auto check = [&](BufferId id) {
      if (!NeverWritten(id)) return;
      Warn(stmt, id, Cat(c_.Name(id), " is read here, and nothing has been written to it"),
           Cat("write to it before: T.clear(", c_.p.buffers[id].name, "), T.fill or T.copy"));
    };
    verify::ForEachRegion(stmt, [&](const Region& r, bool, bool is_read) {
      if (is_read) check(r.buffer);
    });
    ForEachExpr(stmt, [&](Expr e) {
      ForEachNode(c_.p.exprs, e, [&](Expr, const ExprNode& node) {
        if (node.op == ExprOp::kLoad) check(static_cast<BufferId>(node.i));
      });
    });
  }

  bool NeverWritten(BufferId id) const {
    const Scope scope = c_.p.buffers[id].scope;
    return scope != Scope::kGlobal && scope != Scope::kBarrier && !written_.contains(id);
  }

  // Once a buffer.
  void Warn(const Stmt& stmt, BufferId id, std::string message, std::string hint) {
    c_.Warn(stmt.loc, std::move(message), std::move(hint));
    written_.insert(id);
  }

  Context& c_;
  Buffers written_;
  std::vector<const Block*> loops_;  // around the statement, outermost first
};

}  // namespace

void CheckUnwritten(Context& c) { UnwrittenChecker(c).Run(); }

}  // namespace tilert::lint
