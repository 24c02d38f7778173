#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

constexpr int kMaxDepth = 600;
// Evaluations, and values made or walked over.
constexpr int64_t kMaxCost = 8'000'000;

}  // namespace

Evaluator::Evaluator(const ast::Module& module, Diagnostics* diagnostics, ProgramBuilder* builder, const Settings* settings)
    : Context(diagnostics, builder, settings), module_(module) {
  IndexModule(module.body, nullptr);
}

// Counts what has been evaluated; false when it is time to give up.
bool Evaluator::Step(SourceRange range) {
  if (stopped_ || diagnostics_->full()) return false;
  if (++spent_ > kMaxCost) {
    Fail(range, "evaluating this takes too long", "a loop at compile time may not end, or runs over too many values");
    stopped_ = true;
  } else if (depth_ > kMaxDepth) {
    Fail(range, "this is nested too deeply to be evaluated", "a function may call itself without end");
    stopped_ = true;
  }
  return !stopped_;
}

Value Evaluator::Eval(ast::ExprPtr expr) {
  if (!Step(expr->range)) return Poison{};
  ++depth_;
  Value value = EvalNode(*expr);
  --depth_;
  return value;
}

Value Evaluator::EvalNode(const ast::Expr& expr) {
  const SourceRange range = expr.range;
  return std::visit(
      Overloaded{
          [&](const ast::ErrorExpr&) -> Value { return Poison{}; },
          [&](const ast::Name& node) -> Value { return EvalName(node.id, range); },
          [&](const ast::IntLit& node) -> Value {
            return node.too_large ? Fail(range, "this number does not fit 64 bits") : Value(node.value);
          },
          [&](const ast::FloatLit& node) -> Value {
            return node.imaginary ? Fail(range, "complex numbers are not supported", "keep the two parts apart")
                                  : Value(node.value);
          },
          [&](const ast::StringLit& node) -> Value { return Text(node.value); },
          [&](const ast::BoolLit& node) -> Value { return node.value; },
          [&](const ast::NoneLit&) -> Value { return NoneValue{}; },
          [&](const ast::EllipsisLit&) -> Value { return Symbol{Intern("...")}; },
          [&](const ast::FString& node) -> Value { return EvalFString(node); },
          [&](const ast::Unary& node) -> Value { return UnaryOperator(node.op, Eval(node.operand), range); },
          [&](const ast::Binary& node) -> Value {
            const Value left = Eval(node.left);
            return BinaryOperator(node.op, left, Eval(node.right), range);
          },
          [&](const ast::BoolOp& node) -> Value { return EvalBoolOp(node); },
          [&](const ast::Compare& node) -> Value { return EvalCompare(node, range); },
          [&](const ast::IfExp& node) -> Value { return EvalIfExp(node); },
          [&](const ast::Call& node) -> Value { return EvalCall(node, range); },
          [&](const ast::Attribute& node) -> Value { return Attribute(Eval(node.value), node.name, range, node.name_range); },
          [&](const ast::Subscript& node) -> Value { return EvalSubscript(node, range); },
          [&](const ast::SliceExpr& node) -> Value {
            const auto part = [this](ast::ExprPtr e) { return e ? Eval(e) : Value(); };
            return New(SliceObject{part(node.lower), part(node.upper), part(node.step)});
          },
          [&](const ast::Starred&) -> Value { return Fail(range, "a starred value cannot stand here", "write [*items]"); },
          [&](const ast::Sequence& node) -> Value { return EvalSequence(node); },
          [&](const ast::Dict& node) -> Value { return EvalDict(node); },
          [&](const ast::Comprehension& node) -> Value { return EvalComprehension(node); },
          [&](const ast::NamedExpr& node) -> Value {
            const Value value = Eval(node.value);
            Assign(node.target, value, node.value);
            return value;
          },
          [&](const ast::Await&) -> Value { return Fail(range, "await has no meaning in a kernel", "leave it out"); },
          [&](const ast::Yield&) -> Value { return Fail(range, "generators are not supported", "return a list"); },
          [&](const ast::Lambda& node) -> Value { return EvalLambda(node); },
      },
      expr.node);
}

Value Evaluator::EvalName(const std::string& name, SourceRange range) {
  const Value* value = scope_ ? scope_->Find(name) : nullptr;
  if (value == nullptr) value = FindGlobal(name, range);
  if (value == nullptr) {
    if (const Builtin* builtin = FindBuiltin(name)) return builtin;
    const std::string similar = SimilarName(name);
    return Fail(range, absl::StrCat("'", name, "' is not defined"),
                similar.empty() ? "" : absl::StrCat("did you mean '", similar, "'?"));
  }
  if (const auto* unset = value->As<Unset>()) return Fail(range, absl::StrCat("'", name, "' ", *unset->why), *unset->hint);
  return *value;
}

// Operands whose truth is known decide here; the others become an operator of the program.
Value Evaluator::EvalBoolOp(const ast::BoolOp& node) {
  Val joined;
  for (size_t i = 0; i < node.values.size(); ++i) {
    const Value value = Eval(node.values[i]);
    if (value.poisoned()) return value;
    if (IsSymbolic(value)) {
      const Val operand = Number(value, node.values[i]->range, "the operand");
      if (!operand) return Poison{};
      joined = joined ? builder_->Apply(node.is_and ? ExprOp::kAnd : ExprOp::kOr, {joined, operand}) : operand;
      continue;
    }
    const std::optional<bool> truth = Truth(value, node.values[i]->range);
    if (!truth) return Poison{};
    const bool last = i + 1 == node.values.size();
    if (*truth != node.is_and) {  // decides the whole
      if (!joined) return value;
      return builder_->Int(!node.is_and, DType::kBool);
    }
    if (last && !joined) return value;
  }
  return joined.dtype() == DType::kBool || !joined ? Wrap(joined) : Wrap(builder_->Cast(joined, DType::kBool));
}

Value Evaluator::EvalCompare(const ast::Compare& node, SourceRange range) {
  Value left = Eval(node.left);
  Value result = true;
  for (size_t i = 0; i < node.ops.size(); ++i) {
    const Value right = Eval(node.rights[i]);
    const Value link = CompareOperator(node.ops[i], left, right, range);
    if (link.poisoned() || link.Is<Host>()) return link;
    if (const auto* known = link.As<bool>()) {
      if (!*known) return link;
    } else if (const auto* sofar = result.As<Val>()) {
      result = Wrap(builder_->Apply(ExprOp::kAnd, {*sofar, *link.As<Val>()}));
    } else {
      result = link;
    }
    left = right;
  }
  return result;
}

Value Evaluator::EvalIfExp(const ast::IfExp& node) {
  const Value condition = Eval(node.condition);
  if (condition.poisoned()) return condition;
  if (!IsSymbolic(condition)) {
    const std::optional<bool> truth = Truth(condition, node.condition->range);
    return truth ? Eval(*truth ? node.then : node.otherwise) : Value(Poison{});
  }
  const Val c = Number(condition, node.condition->range, "the condition");
  const Val a = Number(Eval(node.then), node.then->range, "a value chosen at run time");
  const Val b = Number(Eval(node.otherwise), node.otherwise->range, "a value chosen at run time");
  return c && a && b ? Wrap(builder_->Select(c, a, b)) : Value(Poison{});
}

std::string Evaluator::NameHint(std::string_view otherwise) const {
  return name_hint_.empty() ? std::string(otherwise) : name_hint_;
}

Val Evaluator::ThreadNumber() {
  if (threads_.number == kNoId) {
    threads_.number = builder().NewVar("tx");
    thread_uses_.push_back({builder().program().launches.size() - 1, threads_.number});
  }
  return builder().VarVal(threads_.number);
}

bool Evaluator::RequireLaunch(const Args& args) {
  if (in_launch_) return true;
  Fail(args.range(), Cat(args.builtin().path, " must stand inside a launch"), "put it under `with T.Kernel(...) as bx:`");
  return false;
}

}  // namespace tilert::frontend
