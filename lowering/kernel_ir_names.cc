#include <charconv>
#include <cmath>
#include <set>

#include "ir/status_util.h"
#include "lowering/kernel_ir_printer.h"

namespace tilert::kir {
namespace {

constexpr int kUnary = 11;

// Python's precedence of an operator, higher binds tighter; 0 for those that are written as calls.
int Precedence(ExprOp op) {
  switch (op) {
    case ExprOp::kOr:
      return 1;
    case ExprOp::kAnd:
      return 2;
    case ExprOp::kNot:
      return 3;
    case ExprOp::kBitOr:
      return 5;
    case ExprOp::kBitXor:
      return 6;
    case ExprOp::kBitAnd:
      return 7;
    case ExprOp::kShl:
    case ExprOp::kShr:
      return 8;
    case ExprOp::kAdd:
    case ExprOp::kSub:
      return 9;
    case ExprOp::kMul:
    case ExprOp::kDiv:
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
      return 10;
    case ExprOp::kNeg:
    case ExprOp::kBitNot:
      return kUnary;
    default:
      return IsComparison(op) ? 4 : 0;
  }
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, result.ptr);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

template <typename Entry>
std::vector<std::string> Distinct(const std::vector<Entry>& entries, std::set<std::string>* taken) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    std::string name = entry.name;
    for (int n = 1; !taken->insert(name).second; ++n) name = Cat(entry.name, "_", n);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

KernelNames::KernelNames(const Kernel& kernel) : kernel_(kernel) {
  std::set<std::string> taken(kernel.dims.begin(), kernel.dims.end());
  for (const ScalarParam& scalar : kernel.scalars) taken.insert(scalar.name);
  buffers_ = Distinct(kernel.buffers, &taken);
  vars_ = Distinct(kernel.vars, &taken);
}

std::string KernelNames::Element(BufferId id, const std::vector<std::string>& subscripts) const {
  std::string text = buffers_[id];
  for (size_t i = 0; i < subscripts.size(); ++i) text += (i == 0 ? "[" : ", ") + subscripts[i];
  return subscripts.empty() ? text : text + "]";
}

std::string KernelNames::Leaf(const ExprNode& node) const {
  switch (node.op) {
    case ExprOp::kIntImm:
      if (node.dtype == DType::kBool) return node.i != 0 ? "true" : "false";
      return node.dtype == DType::kIndex ? Cat(node.i) : Cat(DTypeName(node.dtype), "(", node.i, ")");
    case ExprOp::kFloatImm:
      return node.dtype == DType::kFloat32 ? FloatText(node.f) : Cat(DTypeName(node.dtype), "(", FloatText(node.f), ")");
    case ExprOp::kDim:
      return kernel_.dims[static_cast<size_t>(node.i)];
    case ExprOp::kScalar:
      return kernel_.scalars[static_cast<size_t>(node.i)].name;
    case ExprOp::kVar:
      return vars_[static_cast<size_t>(node.i)];
    default:
      return Cat("constant ", node.i);
  }
}

std::string KernelNames::Text(Expr e, int outer) const {
  if (!e) return "none";
  const ExprNode& node = kernel_.exprs[e];
  if (node.op != ExprOp::kLoad && node.args.empty()) return Leaf(node);
  const int own = Precedence(node.op);
  if (own == 0) {
    std::vector<std::string> args;
    for (Expr arg : node.args) args.push_back(Text(arg, 0));
    if (node.op == ExprOp::kLoad) return Element(static_cast<BufferId>(node.i), args);
    std::string text = std::string(ExprOpText(node.op));
    if (node.op == ExprOp::kCast) text = DTypeName(node.dtype);
    if (node.op == ExprOp::kReinterpret) text = Cat("reinterpret_", DTypeName(node.dtype));
    if (node.op == ExprOp::kSelect) text = "select";
    for (size_t i = 0; i < args.size(); ++i) text += (i == 0 ? "(" : ", ") + args[i];
    return text + ")";
  }
  std::string text;
  if (node.args.size() == 1) {
    text = Cat(ExprOpText(node.op), node.op == ExprOp::kNot ? " " : "", Text(node.args[0], own));
  } else {
    // All binary operators group to the left; comparisons do not chain.
    text = Cat(Text(node.args[0], IsComparison(node.op) ? own + 1 : own), " ", ExprOpText(node.op), " ",
               Text(node.args[1], own + 1));
  }
  return own < outer ? "(" + text + ")" : text;
}

}  // namespace tilert::kir
