// Expressions of a kernel: operands in scope, of the right types, and elements that the thread holds.
#include <algorithm>

#include "lowering/kernel_ir_verifier.h"

namespace tilert::kir {
namespace {

bool IsBoolOp(ExprOp op) { return op == ExprOp::kAnd || op == ExprOp::kOr || op == ExprOp::kNot; }

}  // namespace

void KernelVerifier::Value(Expr e) {
  if (!Requires(e && e.id < kernel_.exprs.size(), "an operand is missing")) return;
  ForEachNode(kernel_.exprs, e, [this](Expr, const ExprNode& node) {
    if (!failed()) Node(node);
  });
}

void KernelVerifier::Cond(Expr e) {
  Value(e);
  if (!failed())
    Requires(kernel_.exprs[e].dtype == DType::kBool, "condition is ", DTypeName(kernel_.exprs[e].dtype), ", not bool");
}

void KernelVerifier::Integer(Expr e, const char* what) {
  Value(e);
  if (!failed()) Requires(IsInteger(kernel_.exprs[e].dtype), what, " is ", DTypeName(kernel_.exprs[e].dtype), ", no integer");
}

void KernelVerifier::Node(const ExprNode& node) {
  const auto index = static_cast<size_t>(node.i);
  const int arity = ExprArity(node.op);
  Requires(node.dtype != DType::kInvalid, "an expression (", ExprOpText(node.op), ") has no type");
  Requires(arity == -1 || (arity >= 0 && node.args.size() == static_cast<size_t>(arity)), "'", ExprOpText(node.op), "' has ",
           node.args.size(), " operands");
  if (failed()) return;
  switch (node.op) {
    case ExprOp::kDim:
      Requires(index < kernel_.dims.size(), "uses dim ", index, " of ", kernel_.dims.size());
      break;
    case ExprOp::kConstant:
      Fail("uses a constant that specialisation should have replaced");
      break;
    case ExprOp::kScalar:
      Requires(index < kernel_.scalars.size(), "uses scalar ", index, " of ", kernel_.scalars.size());
      break;
    case ExprOp::kVar:
      if (!Requires(index < kernel_.vars.size(), "uses variable ", index, " of ", kernel_.vars.size())) return;
      Requires(bound_[index], "uses '", kernel_.vars[index].name, "' where it is not bound");
      Requires(node.dtype == kernel_.vars[index].dtype, "uses '", kernel_.vars[index].name, "' as ", DTypeName(node.dtype),
               ", it is ", DTypeName(kernel_.vars[index].dtype));
      break;
    case ExprOp::kLoad:
      Access(static_cast<BufferId>(node.i), node.args, false);
      if (failed()) return;
      Requires(node.dtype == kernel_.buffers[index].dtype, "loads ", Name(static_cast<BufferId>(index)), " as ",
               DTypeName(node.dtype));
      break;
    default:
      OperandTypes(node);
  }
}

void KernelVerifier::OperandTypes(const ExprNode& node) {
  const auto type = [&](size_t i) { return kernel_.exprs[node.args[i]].dtype; };
  const auto same = [&](size_t from, DType expected) {
    for (size_t i = from; i < node.args.size(); ++i) {
      Requires(type(i) == expected, "operand ", i + 1, " of '", ExprOpText(node.op), "' is ", DTypeName(type(i)), ", not ",
               DTypeName(expected));
    }
  };
  if (node.op == ExprOp::kSelect) {
    Requires(type(0) == DType::kBool, "condition of a select is ", DTypeName(type(0)), ", not bool");
    same(1, node.dtype);
  } else if (IsBoolOp(node.op)) {
    Requires(node.dtype == DType::kBool, "'", ExprOpText(node.op), "' gives bool, not ", DTypeName(node.dtype));
    same(0, DType::kBool);
  } else if (IsComparison(node.op)) {
    Requires(node.dtype == DType::kBool, "'", ExprOpText(node.op), "' gives bool, not ", DTypeName(node.dtype));
    same(1, type(0));
  } else if (IsInfixOp(node.op) || node.op == ExprOp::kMin || node.op == ExprOp::kMax || node.op == ExprOp::kNeg ||
             node.op == ExprOp::kFma) {
    same(0, node.dtype);
  }
}

void KernelVerifier::Access(BufferId id, absl::Span<const Expr> indices, bool write) {
  if (!Requires(id < kernel_.buffers.size(), "uses ", Name(id))) return;
  const Buffer& buffer = kernel_.buffers[id];
  const size_t expected = SubscriptCount(buffer);
  if (!Requires(indices.size() == expected, Name(id), " takes ", expected, " subscripts, not ", indices.size())) return;
  for (Expr e : indices) Integer(e, "subscript");
  if (failed()) return;
  int64_t version = 0;
  if (buffer.space == Space::kShared && kernel_.exprs.AsInt(indices[0], &version)) {
    Requires(version >= 0 && version < buffer.versions, Name(id), " has ", buffer.versions, " versions, not version ", version);
  }
  if (buffer.space != Space::kRegister) return;
  Requires(declared_[id], "uses ", Name(id), " where it is not declared");
  if (indices.empty()) return;  // a mutable scalar: every thread has its own copy
  if (Requires(points_ != nullptr, "uses an element of ", Name(id), " outside an elementwise loop"))
    HeldByThread(buffer, indices, write);
}

// Subscripts that are plain loop variables can be checked here; for all others the simulator is the judge.
void KernelVerifier::HeldByThread(const Buffer& buffer, absl::Span<const Expr> indices, bool write) {
  std::vector<int> follows;
  for (Expr e : indices) {
    const ExprNode& node = kernel_.exprs[e];
    const auto& vars = points_->vars;
    const auto at = node.op == ExprOp::kVar ? std::find(vars.begin(), vars.end(), static_cast<VarId>(node.i)) : vars.end();
    const int dim = static_cast<int>(at - vars.begin());
    if (at == vars.end() || std::find(follows.begin(), follows.end(), dim) != follows.end()) return;
    follows.push_back(dim);
  }
  FragmentLayout loop = Project(points_->layout, follows);
  // Points beyond the buffer are guarded by the program.
  for (size_t d = 0; d < loop.dims.size(); ++d) loop.dims[d].extent = std::min(loop.dims[d].extent, buffer.layout.dims[d].extent);
  Requires(CanRead(buffer.layout, loop), "a thread uses an element of '", buffer.name, "' that it does not hold: the loop is ",
           ToString(points_->layout), ", the buffer ", ToString(buffer.layout));
  Requires(!write || CanWrite(buffer.layout, loop), "'", buffer.name, "' is written in some of its replicas only: the loop is ",
           ToString(points_->layout), ", the buffer ", ToString(buffer.layout));
}

}  // namespace tilert::kir
