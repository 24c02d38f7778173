#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/interpreter.h"

namespace tilert::frontend {

Interpreter::Interpreter(const ast::Module& module, Diagnostics* diagnostics, ProgramBuilder* builder, const Settings* settings)
    : Evaluator(module, diagnostics, builder, settings) {
  file_of_part_.resize(diagnostics->source().parts());
  FileAt(static_cast<uint32_t>(diagnostics->source().text().size()));  // the source itself comes first
}

uint32_t Interpreter::FileAt(uint32_t offset) {
  std::optional<uint32_t>& file = file_of_part_[diagnostics_->source().PartOf(offset)];
  if (!file) {
    const std::string& path = diagnostics_->source().NameAt(offset);
    file = builder_->File(path.substr(path.rfind('/') + 1));
  }
  return *file;
}

void Interpreter::SetLocation(SourceRange range) {
  const Position position = diagnostics_->source().PositionOf(range.begin);
  builder_->SetLoc({FileAt(range.begin), static_cast<uint32_t>(position.line), static_cast<uint32_t>(position.column)});
}

Interpreter::Flow Interpreter::ExecBody(const ast::Body& body) {
  for (const ast::Stmt* stmt : body) {
    if (!Step(stmt->range)) return Flow::kStop;
    ++depth_;
    const Flow flow = Exec(*stmt);
    --depth_;
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::Exec(const ast::Stmt& stmt) {
  const SourceRange range = stmt.range;
  const auto refuse = [&](std::string message, std::string hint) {
    Fail(range, std::move(message), std::move(hint));
    return Flow::kNormal;
  };
  SetLocation(range);
  return std::visit(
      Overloaded{
          [&](const ast::Pass&) { return Flow::kNormal; },
          [&](const ast::ExprStmt& node) { return ExecExpression(node); },
          [&](const ast::Assign& node) {
            const bool is_pair =
                node.targets.size() == 1 && node.targets[0]->As<ast::Sequence>() && node.value->As<ast::Sequence>();
            if (const auto* name = node.targets[0]->As<ast::Name>()) name_hint_ = name->id;
            Value value;
            if (is_pair && node.targets[0]->As<ast::Sequence>()->items.size() == node.value->As<ast::Sequence>()->items.size()) {
              value = EvalPairwise(*node.targets[0]->As<ast::Sequence>(), *node.value->As<ast::Sequence>());
            } else {
              value = Eval(node.value);
            }
            name_hint_.clear();
            const bool is_chain = node.targets.size() > 1;
            if (is_chain && std::any_of(node.targets.begin(), node.targets.end(), [&](ast::ExprPtr t) { return Stores(t); }))
              value = Now("value", value, range);
            for (const ast::ExprPtr target : node.targets) Assign(target, value, node.value);
            return Flow::kNormal;
          },
          [&](const ast::AugAssign& node) { return AssignAugmented(node, range), Flow::kNormal; },
          [&](const ast::AnnAssign& node) { return AssignAnnotated(node, range), Flow::kNormal; },
          [&](const ast::For& node) { return ExecFor(node, range); },
          [&](const ast::While& node) { return ExecWhile(node, range); },
          [&](const ast::If& node) { return ExecIf(node, range); },
          [&](const ast::With& node) { return ExecWith(node, 0, range); },
          [&](const ast::FunctionDef& node) {
            scope_->Set(node.name, MakeFunction(node));
            return Flow::kNormal;
          },
          [&](const ast::ClassDef& node) {
            scope_->Set(node.name, Host{Intern("class " + node.name)});
            return Flow::kNormal;
          },
          [&](const ast::Return& node) { return ExecReturn(node, range); },
          [&](const ast::Delete& node) {
            for (const ast::ExprPtr target : node.targets) Delete(target);
            return Flow::kNormal;
          },
          [&](const ast::Raise& node) { return ExecRaise(node, range); },
          [&](const ast::Try&) {
            return refuse("try is not supported in a function that makes a kernel", "check the condition with if");
          },
          [&](const ast::Assert& node) { return ExecAssert(node, range); },
          [&](const ast::Import& node) { return ExecImport(node); },
          [&](const ast::ScopeDecl& node) { return ExecScope(node, range); },
          [&](const ast::Break&) { return ExecBreak(true, range); },
          [&](const ast::Continue&) { return ExecBreak(false, range); },
          [&](const ast::Match&) {
            return refuse("match is not supported in a function that makes a kernel", "write if and elif");
          },
      },
      stmt.node);
}

// a, b = f(), g(): each value is told the name that it will have.
Value Interpreter::EvalPairwise(const ast::Sequence& targets, const ast::Sequence& values) {
  std::vector<Value> items;
  for (size_t i = 0; i < values.items.size(); ++i) {
    if (values.items[i]->As<ast::Starred>() || targets.items[i]->As<ast::Starred>()) {
      Fail(values.items[i]->range, "a starred value cannot stand here", "write out its items");
      return Poison{};
    }
    const auto* name = targets.items[i]->As<ast::Name>();
    name_hint_ = name ? name->id : "";
    const auto* parts = values.items[i]->As<ast::Sequence>();
    const auto* places = targets.items[i]->As<ast::Sequence>();
    const bool is_pair = parts && places && parts->items.size() == places->items.size();
    Value value = is_pair ? EvalPairwise(*places, *parts) : Eval(values.items[i]);
    // The right side is read as a whole before anything is assigned: a mutable variable gives its value now.
    if (const auto* var = value.As<Buf>(); var && in_launch_ && values.items[i]->As<ast::Name>() && IsSymbolic(value)) {
      value = builder_->Let(var->buffer().name, builder_->Load(*var, {}));
    }
    items.push_back(std::move(value));
  }
  return Tuple(std::move(items));
}

Interpreter::Flow Interpreter::ExecExpression(const ast::ExprStmt& node) {
  const Value value = Eval(node.value);
  if (value.Object<const LoopObject>()) Fail(node.value->range, "this loop has no body", "write `for i in …:`");
  if (value.Object<const ContextObject>()) Fail(node.value->range, "this has no body", "write `with … as …:`");
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::ExecReturn(const ast::Return& node, SourceRange range) {
  if (frame_->blocks > 0) {
    Fail(range, "return inside a block that runs at launch is not supported",
         "put what follows into the else branch, or assign to a T.alloc_var and return it after the block");
    return Flow::kNormal;
  }
  if (node.value) frame_->result = Eval(node.value);
  return Flow::kReturn;
}

Interpreter::Flow Interpreter::ExecRaise(const ast::Raise& node, SourceRange range) {
  std::string text = "the source refuses this";
  const auto* call = node.value ? node.value->As<ast::Call>() : nullptr;
  if (call && !call->args.empty()) {
    const Value message = Eval(call->args[0]);
    if (message.Object<const StringObject>()) absl::StrAppend(&text, ": ", ToText(message));
  }
  Fail(range, text, "see the condition above it, and the settings that it depends on");
  stopped_ = true;
  return Flow::kStop;
}

Interpreter::Flow Interpreter::ExecAssert(const ast::Assert& node, SourceRange range) {
  const Value condition = Eval(node.condition);
  if (condition.poisoned()) return Flow::kNormal;
  if (IsSymbolic(condition)) {
    const Val value = Number(condition, node.condition->range, "the condition");
    if (!value) return Flow::kNormal;
    if (!in_launch_) {
      builder_->Assume(builder_->Cast(value, DType::kBool));  // over dims and constants: checked at launch
      return Flow::kNormal;
    }
    const std::string message = node.message ? ToText(Eval(node.message)) : "assertion failed";
    builder_->Add(tilert::Assert{builder_->E(builder_->Cast(value, DType::kBool)), message});
    return Flow::kNormal;
  }
  const std::optional<bool> truth = Truth(condition, node.condition->range);
  if (truth.value_or(true)) return Flow::kNormal;
  const std::string message = node.message ? absl::StrCat(": ", ToText(Eval(node.message))) : "";
  Fail(range, absl::StrCat("the assertion does not hold", message), "see the settings and defaults that it depends on");
  stopped_ = true;
  return Flow::kStop;
}

Interpreter::Flow Interpreter::ExecBreak(bool is_break, SourceRange range) {
  const char* word = is_break ? "break" : "continue";
  if (frame_->loops.empty()) {
    Fail(range, absl::StrCat(word, " outside a loop"), "put it into the loop that it belongs to");
    return Flow::kNormal;
  }
  const Frame::Loop loop = frame_->loops.back();
  if (loop.mode == LoopMode::kStatic) {
    if (frame_->blocks == loop.blocks) return is_break ? Flow::kBreak : Flow::kContinue;
    Fail(range, absl::StrCat("this ", word, " depends on a condition at run time, but its loop is run at compile time"),
         "write the loop with T.serial");
    return Flow::kNormal;
  }
  if (is_break) {
    builder_->Add(tilert::Break{});
  } else {
    builder_->Add(tilert::Continue{});
  }
  return is_break ? Flow::kBreak : Flow::kContinue;  // what follows in this block is never reached
}

Interpreter::Flow Interpreter::ExecImport(const ast::Import& node) {
  for (const ast::ImportName& imported : node.names) {
    if (imported.path == "*") continue;
    std::string name = imported.alias.empty() ? imported.path : imported.alias;
    if (!node.is_from && imported.alias.empty()) name = name.substr(0, name.find('.'));
    const bool is_sibling = IsSibling(node);
    const Value* shared = is_sibling ? FindGlobal(imported.path, {}) : nullptr;
    scope_->Set(name, shared ? *shared : ImportedValue(node, name));
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::ExecScope(const ast::ScopeDecl& node, SourceRange range) {
  if (node.is_global) Fail(range, "global is not supported in a function that makes a kernel", "pass the value as an argument");
  for (const std::string& name : node.names) scope_->DeclareNonlocal(name);
  return Flow::kNormal;
}

}  // namespace tilert::frontend
