#include "frontend/access.h"

#include <algorithm>

namespace tilert::frontend {
namespace {

struct Use {
  bool read = false, written = false;
};

class UseCollector {
 public:
  explicit UseCollector(const Program& program) : program_(program), uses_(program.buffers.size()) {}

  void Visit(const Stmt& stmt) {
    std::visit(Overloaded{
                   [&](const Copy& s) { Read(s.src), Write(s.dst); },
                   [&](const Gemm& s) {
                     Read(s.a), Read(s.b), Write(s.c);
                     if (!s.clear_accum) Read(s.c);
                   },
                   [&](const Fill& s) { Write(s.dst); },
                   [&](const Reduce& s) {
                     Read(s.src), Write(s.dst);
                     if (!s.clear) Read(s.dst);
                   },
                   [&](const Scan& s) { Read(s.src), Write(s.dst); },
                   [&](const Store& s) { uses_[s.buffer].written = true; },
                   [&](const Atomic& s) {
                     uses_[s.buffer] = {true, true};
                   },
                   [&](const AtomicTile& s) {
                     Read(s.src);
                     uses_[s.dst.buffer] = {true, true};
                   },
                   [](const auto&) {},
               },
               stmt.op);
    ForEachExpr(stmt, [&](Expr e) {
      if (!e) return;
      ForEachNode(program_.exprs, e, [&](Expr, const ExprNode& node) {
        if (node.op == ExprOp::kLoad) uses_[node.i].read = true;
      });
    });
  }

  Use of(BufferId buffer) const { return uses_[buffer]; }

 private:
  void Read(const Region& region) { uses_[region.buffer].read = true; }
  void Write(const Region& region) { uses_[region.buffer].written = true; }

  const Program& program_;
  std::vector<Use> uses_;
};

}  // namespace

void FinishParams(const std::vector<Interpreter::TensorParam>& tensors, Program* program) {
  UseCollector uses(*program);
  for (const Launch& launch : program->launches) {
    ForEachStmt(launch.body, [&](const Stmt& stmt) { uses.Visit(stmt); });
  }
  const auto find = [&](BufferId buffer) {
    const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.buffer == buffer; });
    return it == tensors.end() ? nullptr : &*it;
  };
  // Only the eager style can describe tensors in another order than it lists them, and then every parameter is a tensor.
  const bool all_tensors =
      std::all_of(program->params.begin(), program->params.end(), [](const Param& p) { return p.kind == Param::Kind::kTensor; });
  if (all_tensors) {
    std::stable_sort(program->params.begin(), program->params.end(), [&](const Param& a, const Param& b) {
      const auto *x = find(a.index), *y = find(b.index);
      return x && y && x->position < y->position;
    });
  }
  for (Param& param : program->params) {
    if (param.kind != Param::Kind::kTensor) continue;
    const Interpreter::TensorParam* tensor = find(param.index);
    const Use use = uses.of(param.index);
    if (tensor == nullptr) continue;
    if (!tensor->infer_access) continue;
    if (use.written) {
      param.access = use.read ? Access::kInOut : Access::kOut;
    } else if (param.access != Access::kOut) {
      param.access = Access::kIn;
    }
  }
}

}  // namespace tilert::frontend
