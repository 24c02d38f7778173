#include "ir/executor_code.h"

#include <utility>

#include "ir/int_eval.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

constexpr int kMaxDepth = 2000;  // the verifier allows less

// The type in which the operands of `node` meet, given the type of the first.
DType OperandType(const ExprNode& node, DType first) {
  if (IsComparison(node.op) || node.op == ExprOp::kIsNan || node.op == ExprOp::kIsInf || node.op == ExprOp::kPopcount)
    return first;
  return node.dtype;
}

}  // namespace

absl::StatusOr<Code> CodeCompiler::Compile(absl::Span<const Expr> roots) {
  code_ = Code();
  done_.clear();
  for (Expr root : roots) {
    TILERT_ASSIGN_OR_RETURN(const Reg reg, Visit(root, kNoReg, 0));
    code_.results.push_back(reg);
  }
  return std::exchange(code_, Code());
}

absl::StatusOr<Reg> CodeCompiler::Visit(Expr e, Reg mask, int depth) {
  if (depth > kMaxDepth) return InvalidArgument("an expression is nested too deeply");
  if (!HasLoad(e)) mask = kNoReg;
  if (const auto it = done_.find({e.id, mask}); it != done_.end()) return it->second;
  const ExprNode& node = program_.exprs[e];
  Reg result = kNoReg;
  if (node.op == ExprOp::kSelect || node.op == ExprOp::kAnd || node.op == ExprOp::kOr) {
    TILERT_ASSIGN_OR_RETURN(result, VisitLazy(e, node, mask, depth));
  } else if (node.args.empty() && node.op != ExprOp::kLoad) {
    TILERT_ASSIGN_OR_RETURN(result, VisitLeaf(node));
  } else {
    Instr instr{.op = node.op, .type = node.dtype, .from = node.dtype};
    absl::InlinedVector<Reg, 4> operands;
    for (Expr arg : node.args) {
      TILERT_ASSIGN_OR_RETURN(Reg reg, Visit(arg, mask, depth + 1));
      const DType type = program_.exprs[arg].dtype;
      if (node.op == ExprOp::kCast || node.op == ExprOp::kReinterpret) {
        instr.from = type;
      } else {
        instr.from = node.op == ExprOp::kLoad ? DType::kIndex : OperandType(node, program_.exprs[node.args[0]].dtype);
        reg = Coerce(reg, type, node.op == ExprOp::kNot ? DType::kBool : instr.from);
      }
      operands.push_back(reg);
    }
    if (node.op == ExprOp::kLoad) {
      instr.value.i = node.i;
      instr.mask = mask;
      instr.type = program_.buffers[static_cast<size_t>(node.i)].dtype;
    }
    result = Emit(instr, operands);
    if (node.op == ExprOp::kLoad) result = Coerce(result, instr.type, node.dtype);
  }
  done_[{e.id, mask}] = result;
  return result;
}

absl::StatusOr<Reg> CodeCompiler::VisitLazy(Expr, const ExprNode& node, Reg mask, int depth) {
  TILERT_ASSIGN_OR_RETURN(Reg cond, Visit(node.args[0], mask, depth + 1));
  cond = Coerce(cond, program_.exprs[node.args[0]].dtype, DType::kBool);
  // The lanes in which operand k is needed.
  const auto lanes = [&](size_t k, bool when) {
    if (!HasLoad(node.args[k])) return kNoReg;
    const Reg chosen = when ? cond : Logic(ExprOp::kNot, cond, kNoReg);
    return mask == kNoReg ? chosen : Logic(ExprOp::kAnd, mask, chosen);
  };
  const auto operand = [&](size_t k, bool when, DType type) -> absl::StatusOr<Reg> {
    TILERT_ASSIGN_OR_RETURN(const Reg reg, Visit(node.args[k], lanes(k, when), depth + 1));
    return Coerce(reg, program_.exprs[node.args[k]].dtype, type);
  };
  if (node.op != ExprOp::kSelect) {
    TILERT_ASSIGN_OR_RETURN(const Reg second, operand(1, node.op == ExprOp::kAnd, DType::kBool));
    return Logic(node.op, cond, second);
  }
  TILERT_ASSIGN_OR_RETURN(const Reg if_true, operand(1, true, node.dtype));
  TILERT_ASSIGN_OR_RETURN(const Reg if_false, operand(2, false, node.dtype));
  return Emit({.op = ExprOp::kSelect, .type = node.dtype, .from = node.dtype}, {cond, if_true, if_false});
}

absl::StatusOr<Reg> CodeCompiler::VisitLeaf(const ExprNode& node) {
  const size_t index = static_cast<size_t>(node.i);
  Instr instr{.op = IsFloat(node.dtype) ? ExprOp::kFloatImm : ExprOp::kIntImm, .type = node.dtype, .from = node.dtype};
  switch (node.op) {
    case ExprOp::kIntImm: {
      instr.value = ConvertValue({.i = node.i}, DType::kInt64, node.dtype);
      break;
    }
    case ExprOp::kFloatImm:
      instr.value =
          IsFloat(node.dtype) ? Value{.f = RoundToType(node.dtype, node.f)} : Value{.i = FloatToInt(node.f, node.dtype)};
      break;
    case ExprOp::kConstant:
      instr.value.i = program_.constants[index].candidates.at(0);
      break;
    case ExprOp::kDim:
      instr.value.i = bound_.dims[index];
      if (instr.value.i == BoundArgs::kUnbound) return InvalidArgument("dim '", program_.dims[index].name, "' is not bound");
      break;
    case ExprOp::kScalar:
      instr.value = ConvertValue(bound_.scalars[index], program_.scalars[index].dtype, node.dtype);
      break;
    case ExprOp::kVar:
      instr.op = ExprOp::kVar;
      instr.slot = slots_[index];
      instr.value.i = node.i;
      break;
    default:
      return Internal("expression '", ExprOpText(node.op), "' without operands");
  }
  return Emit(instr, {});
}

Reg CodeCompiler::Emit(Instr instr, absl::Span<const Reg> operands) {
  instr.dst = code_.regs++;
  instr.first = static_cast<uint32_t>(code_.operands.size());
  instr.count = static_cast<uint32_t>(operands.size());
  code_.operands.insert(code_.operands.end(), operands.begin(), operands.end());
  code_.instrs.push_back(instr);
  return instr.dst;
}

Reg CodeCompiler::Coerce(Reg reg, DType from, DType to) {
  return from == to ? reg : Emit({.op = ExprOp::kCast, .type = to, .from = from}, {reg});
}

Reg CodeCompiler::Logic(ExprOp op, Reg a, Reg b) {
  const Instr instr{.op = op, .type = DType::kBool, .from = DType::kBool};
  return b == kNoReg ? Emit(instr, {a}) : Emit(instr, {a, b});
}

bool CodeCompiler::HasLoad(Expr root) {
  if (const auto it = has_load_.find(root.id); it != has_load_.end()) return it->second;
  ForEachNode(program_.exprs, root, [&](Expr e, const ExprNode& node) {
    bool has = node.op == ExprOp::kLoad;
    for (Expr arg : node.args) has |= has_load_[arg.id];
    has_load_[e.id] = has;
  });
  return has_load_[root.id];
}

}  // namespace tilert::exec
