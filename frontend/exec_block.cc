// Conditions, loops and contexts: decided here where they are known, statements of the program where they are not.
#include <set>

#include "absl/strings/str_cat.h"
#include "frontend/interpreter.h"

namespace tilert::frontend {
namespace {

void CollectTarget(ast::ExprPtr target, std::set<std::string>* names) {
  if (const auto* name = target->As<ast::Name>()) names->insert(name->id);
  if (const auto* starred = target->As<ast::Starred>()) CollectTarget(starred->value, names);
  if (const auto* sequence = target->As<ast::Sequence>()) {
    for (const ast::ExprPtr item : sequence->items) CollectTarget(item, names);
  }
}

// Every name that the statements may assign, nested blocks included. `breaks`: is there a break that leaves the loop?
void CollectAssigned(const ast::Body& body, std::set<std::string>* names, bool* breaks) {
  bool inner = false;
  for (const ast::Stmt* stmt : body) {
    if (stmt->As<ast::Break>()) *breaks = true;
    if (const auto* assign = stmt->As<ast::Assign>()) {
      for (const ast::ExprPtr target : assign->targets) CollectTarget(target, names);
    } else if (const auto* augmented = stmt->As<ast::AugAssign>()) {
      CollectTarget(augmented->target, names);
    } else if (const auto* annotated = stmt->As<ast::AnnAssign>()) {
      CollectTarget(annotated->target, names);
    } else if (const auto* loop = stmt->As<ast::For>()) {
      CollectTarget(loop->target, names);
      CollectAssigned(loop->body, names, &inner);
    } else if (const auto* loop_while = stmt->As<ast::While>()) {
      CollectAssigned(loop_while->body, names, &inner);
    } else if (const auto* choice = stmt->As<ast::If>()) {
      CollectAssigned(choice->then, names, breaks);
      CollectAssigned(choice->otherwise, names, breaks);
    } else if (const auto* with = stmt->As<ast::With>()) {
      for (const ast::WithItem& item : with->items) {
        if (item.target) CollectTarget(item.target, names);
      }
      CollectAssigned(with->body, names, breaks);
    }
  }
}

// The names of a loop's target in order; "" for what is no plain name.
std::vector<std::string> TargetNames(ast::ExprPtr target) {
  const auto* sequence = target ? target->As<ast::Sequence>() : nullptr;
  std::vector<ast::ExprPtr> items = sequence ? sequence->items : std::vector<ast::ExprPtr>{target};
  std::vector<std::string> names;
  for (const ast::ExprPtr item : items) {
    const auto* name = item ? item->As<ast::Name>() : nullptr;
    names.push_back(name && name->id != "_" ? name->id : "");
  }
  return names;
}

// The call T.`word`(…) if that is all that `node` opens; null otherwise.
const ast::Call* ScopeCall(const ast::With& node, std::string_view word) {
  const auto* call = node.items.size() == 1 ? node.items[0].context->As<ast::Call>() : nullptr;
  const auto* callee = call ? call->callee->As<ast::Attribute>() : nullptr;
  const auto* module = callee ? callee->value->As<ast::Name>() : nullptr;
  return module && module->id == "T" && callee->name == word ? call : nullptr;
}

}  // namespace

// --- Names across blocks
// --------------------------------------------------------------------------------------------------------

// What a loop assigns, and was known before it, has no value at its beginning: it would be the last iteration's.
void Interpreter::MarkCarried(const ast::Body& body) {
  static const std::string kWhy = "is assigned in this loop, so here it would have the value of the iteration before";
  static const std::string kHint = "make it a variable before the loop: name = T.alloc_var(dtype, init)";
  std::set<std::string> names;
  bool breaks = false;
  CollectAssigned(body, &names, &breaks);
  for (const std::string& name : names) {
    const Value* value = scope_->FindHere(name);
    const bool is_variable = value && value->Is<Buf>() && IsSymbolic(*value);
    if (value && !is_variable) scope_->Set(name, Unset{&kWhy, &kHint});
  }
}

void Interpreter::Forget(const std::vector<std::string>& names, SourceRange range, const char* what) {
  static const std::string kHint = "make it before the block, with T.alloc_var or T.alloc_fragment, and assign to that";
  const int line = diagnostics_->source().PositionOf(range.begin).line;
  const std::string* why = nullptr;
  for (const std::string& name : names) {
    if (why == nullptr)
      why = Intern(absl::StrCat("was assigned inside the ", what, " at line ", line, " and has no value after it"));
    scope_->Set(name, Unset{why, &kHint});
  }
}

Interpreter::Flow Interpreter::RunBlock(const ast::Body& body, bool is_loop) {
  ++frame_->blocks;
  if (is_loop) frame_->loops.push_back({LoopMode::kRuntime, frame_->blocks});
  const Flow flow = ExecBody(body);
  if (is_loop) frame_->loops.pop_back();
  --frame_->blocks;
  return flow == Flow::kStop ? flow : Flow::kNormal;
}

// --- if
// -------------------------------------------------------------------------------------------------------------------------

Interpreter::Flow Interpreter::ExecIf(const ast::If& node, SourceRange range) {
  const Value condition = Eval(node.condition);
  if (condition.poisoned()) return Flow::kNormal;
  if (!IsSymbolic(condition)) {
    const std::optional<bool> truth = Truth(condition, node.condition->range);
    return truth ? ExecBody(*truth ? node.then : node.otherwise) : Flow::kNormal;
  }
  if (!in_launch_) {
    Fail(node.condition->range, "this condition is known only at run time, but decides how the kernel is made",
         "give the names in it fixed values with --set");
    return Flow::kNormal;
  }
  const Val value = Number(condition, node.condition->range, "the condition");
  if (!value) return Flow::kNormal;
  builder_->OpenIf(value);
  scope_->OpenJournal();
  Flow flow = RunBlock(node.then, false);
  std::vector<std::string> names = scope_->RollBack();
  if (!node.otherwise.empty() && flow != Flow::kStop) {
    builder_->Else();
    scope_->OpenJournal();
    flow = RunBlock(node.otherwise, false);
    for (std::string& name : scope_->RollBack()) names.push_back(std::move(name));
  }
  builder_->Close();
  Forget(names, range, "if");
  return flow;
}

// --- for
// ------------------------------------------------------------------------------------------------------------------------

Interpreter::Flow Interpreter::ExecFor(const ast::For& node, SourceRange range) {
  const Value iterable = Eval(node.iterable);
  if (iterable.poisoned()) return Flow::kNormal;
  const auto* loop = iterable.Object<const LoopObject>();
  const bool is_static_range = loop && loop->kind == LoopObject::Kind::kRange && !(in_launch_ && frame_->traced);
  if (loop == nullptr || is_static_range) {
    const auto items = Items(iterable, node.iterable->range, "what a loop walks over");
    return items ? ExecStaticFor(node, *items) : Flow::kNormal;
  }
  if (!in_launch_) {
    Fail(node.iterable->range, "a loop of the program must stand inside a launch", "put it under `with T.Kernel(...) as bx:`");
    return Flow::kNormal;
  }
  if (!node.otherwise.empty())
    Fail(range, "a loop of the program cannot have an else", "set a T.alloc_var before the break, and test it after the loop");
  return ExecRuntimeFor(node, *loop, range);
}

Interpreter::Flow Interpreter::ExecStaticFor(const ast::For& node, const std::vector<Value>& items) {
  frame_->loops.push_back({LoopMode::kStatic, frame_->blocks});
  Flow flow = Flow::kNormal;
  for (const Value& item : items) {
    if (!Step(node.iterable->range)) flow = Flow::kStop;
    if (flow == Flow::kStop) break;
    Assign(node.target, item, nullptr);
    flow = ExecBody(node.body);
    if (flow == Flow::kBreak || flow == Flow::kReturn) break;
    if (flow == Flow::kContinue) flow = Flow::kNormal;
  }
  frame_->loops.pop_back();
  if (flow == Flow::kBreak) return Flow::kNormal;
  return flow == Flow::kNormal ? ExecBody(node.otherwise) : flow;
}

std::vector<Value> Interpreter::OpenLoop(const LoopObject& loop, const std::vector<std::string>& names, int* opened) {
  const auto name = [&](size_t i, const char* otherwise) {
    return i < names.size() && !names[i].empty() ? names[i] : std::string(otherwise);
  };
  static constexpr const char* kDefault[] = {"i", "j", "k", "l"};
  std::vector<Value> vars;
  if (loop.kind == LoopObject::Kind::kParallel) {
    std::vector<std::string> chosen;
    for (size_t i = 0; i < loop.extents.size(); ++i) chosen.push_back(name(i, kDefault[i % 4]));
    for (const Val& var : builder_->OpenParallel(chosen, loop.extents, loop.coalesced_width)) vars.push_back(var);
    *opened = 1;
  } else if (loop.kind == LoopObject::Kind::kGrid) {
    for (size_t i = 0; i < loop.extents.size(); ++i) {
      vars.push_back(builder_->OpenFor(ForKind::kSerial, name(i, kDefault[i % 4]), builder_->Lit(int64_t{0}), loop.extents[i],
                                       builder_->Lit(int64_t{1})));
    }
    *opened = static_cast<int>(loop.extents.size());
  } else if (loop.kind == LoopObject::Kind::kDomain) {
    vars = OpenDomain(loop);
    *opened = 2;
  } else {
    Val begin = Number(loop.begin, {}, ""), end = Number(loop.end, {}, ""), step = Number(loop.step, {}, "");
    const auto* known_step = loop.step.As<int64_t>();
    const bool descends = known_step && *known_step < 0 && *known_step != INT64_MIN;
    if (descends) {  // counted upwards, since a loop of the program has a positive step
      const auto *first = loop.begin.As<int64_t>(), *last = loop.end.As<int64_t>();
      int64_t distance = 0;
      if (first && last) {
        if (*first <= *last || __builtin_sub_overflow(*first, *last, &distance)) distance = 0;
        end = builder_->Lit(distance > 0 ? (distance - 1) / -*known_step + 1 : int64_t{0});
      } else {
        end = CeilDiv(begin.In(builder_) - end, builder_->Lit(-*known_step));
      }
    }
    const Val zero = builder_->Lit(int64_t{0}), one = builder_->Lit(int64_t{1});
    const Val var = builder_->OpenFor(loop.for_kind, name(0, "i"), descends ? zero : begin, end, descends ? one : step,
                                      Number(loop.num_stages, {}, ""), loop.order, loop.stage,
                                      loop.split ? Number(*loop.split, {}, "") : Val());
    vars.push_back(descends ? begin.In(builder_) + var * step : var);
    *opened = 1;
  }
  return vars;
}

// A loop over waves, and a condition that this wave has a point left.
std::vector<Value> Interpreter::OpenDomain(const LoopObject& loop) {
  const Val first = Number(loop.begin, {}, "").In(builder_), step = Number(loop.step, {}, "").In(builder_);
  Val total = builder_->Lit(int64_t{1});
  for (const Val& extent : loop.extents) total = total * extent;
  const Val wave =
      builder_->OpenFor(ForKind::kSerial, "wave", builder_->Lit(int64_t{0}), CeilDiv(total, step), builder_->Lit(int64_t{1}));
  Val point = wave * step + first;
  builder_->OpenIf(point < total);
  std::vector<Value> vars(loop.extents.size());
  for (size_t i = vars.size(); i-- > 0;) {
    vars[i] = i == 0 ? point : point % loop.extents[i];
    point = FloorDiv(point, loop.extents[i]);
  }
  return vars;
}

Interpreter::Flow Interpreter::ExecRuntimeFor(const ast::For& node, const LoopObject& loop, SourceRange range) {
  int opened = 0;
  const std::vector<Value> vars = OpenLoop(loop, TargetNames(node.target), &opened);
  scope_->OpenJournal();
  MarkCarried(node.body);
  Assign(node.target, vars.size() == 1 ? vars[0] : Tuple(vars), nullptr);
  const Flow flow = RunBlock(node.body, true);
  const std::vector<std::string> names = scope_->RollBack();
  for (; opened > 0; --opened) builder_->Close();
  Forget(names, range, "loop");
  return flow;
}

// --- while
// ----------------------------------------------------------------------------------------------------------------------

Interpreter::Flow Interpreter::ExecWhile(const ast::While& node, SourceRange range) {
  if (!in_launch_ || !frame_->traced) return ExecStaticWhile(node);
  scope_->OpenJournal();
  MarkCarried(node.body);
  const size_t before = builder_->Size();
  const Value condition = Eval(node.condition);
  // A condition that takes statements to compute (T.sum(A[i, :]) > 0) is computed in the loop.
  Block computed = builder_->TakeFrom(before);
  std::set<std::string> assigned;
  bool breaks = false, runs = !condition.poisoned();
  CollectAssigned(node.body, &assigned, &breaks);
  Val value;
  if (runs && IsSymbolic(condition)) {
    value = Number(condition, node.condition->range, "the condition");
  } else if (runs) {
    runs = Truth(condition, node.condition->range).value_or(false);
    value = builder_->Int(1, DType::kBool);
    if (runs && !breaks) Fail(node.condition->range, "this loop never ends", "add a break, or a condition on a T.alloc_var");
  }
  Flow flow = Flow::kNormal;
  if (runs && value) {
    builder_->OpenWhile(computed.empty() ? value : builder_->Int(1, DType::kBool));
    if (!computed.empty()) {
      builder_->Append(std::move(computed));
      builder_->OpenIf(Not(value.In(builder_)));
      builder_->Add(Break{});
      builder_->Close();
    }
    flow = RunBlock(node.body, true);
    builder_->Close();
  }
  Forget(scope_->RollBack(), range, "loop");
  return flow;
}

Interpreter::Flow Interpreter::ExecStaticWhile(const ast::While& node) {
  frame_->loops.push_back({LoopMode::kStatic, frame_->blocks});
  Flow flow = Flow::kNormal;
  while (flow == Flow::kNormal || flow == Flow::kContinue) {
    const Value condition = Eval(node.condition);
    if (IsSymbolic(condition))
      Fail(node.condition->range, "this condition is known only at run time", "give the names in it fixed values with --set");
    if (!Truth(condition, node.condition->range).value_or(false)) break;
    flow = Step(node.condition->range) ? ExecBody(node.body) : Flow::kStop;
  }
  frame_->loops.pop_back();
  if (flow == Flow::kBreak) return Flow::kNormal;
  return flow == Flow::kNormal || flow == Flow::kContinue ? ExecBody(node.otherwise) : flow;
}

// --- with
// -----------------------------------------------------------------------------------------------------------------------

bool Interpreter::OpenContext(const ContextObject& context, ast::ExprPtr target, SourceRange range) {
  const std::vector<std::string> names = TargetNames(target);
  std::vector<Value> vars;
  switch (context.kind) {
    case ContextObject::Kind::kKernel: {
      if (in_launch_) return Fail(range, "a launch cannot stand inside another", "write two launches one after the other"), false;
      const std::string name = context.name.empty() ? absl::StrCat("k", builder_->program().launches.size()) : context.name;
      std::vector<std::string> chosen;
      static constexpr const char* kBlocks[] = {"bx", "by", "bz"};
      for (size_t i = 0; i < context.grid.size(); ++i)
        chosen.push_back(i < names.size() && !names[i].empty() ? names[i] : kBlocks[i]);
      for (const Val& var : builder_->OpenLaunch(name, context.grid, context.threads, chosen)) vars.push_back(var);
      if (context.cooperative) builder_->SetCooperative();
      threads_ = {context.thread_extents, {}, kNoId};
      if (no_warp_specialization_) builder_->Add(Annotate{AnnotationKind::kNoWarpSpecialization, kNoId, {}, ""});
      if (!context.cluster.empty()) builder_->SetCluster(context.cluster);
      break;
    }
    case ContextObject::Kind::kThreadRegion:
      vars.push_back(builder_->OpenThreadRegion(names[0].empty() ? "tx" : names[0]));
      break;
    case ContextObject::Kind::kRoles: builder_->OpenRoles(); break;
    case ContextObject::Kind::kIf: builder_->OpenIf(context.condition); break;
    case ContextObject::Kind::kNothing: break;
    case ContextObject::Kind::kRole: builder_->OpenRole(context.thread_begin, context.thread_end); break;
  }
  if (target != nullptr) Assign(target, vars.size() == 1 ? vars[0] : Tuple(vars), nullptr);
  return true;
}

// `with T.If(condition):` holding `with T.Then():` and `with T.Else():` is an if.
Interpreter::Flow Interpreter::ExecIfScope(const ast::With& node, const ast::Call& scope, SourceRange range) {
  ast::If choice{scope.args.empty() ? nullptr : scope.args[0], {}, {}};
  for (const ast::Stmt* stmt : node.body) {
    const auto* part = stmt->As<ast::With>();
    const bool is_then = part && ScopeCall(*part, "Then"), is_else = part && ScopeCall(*part, "Else");
    if (!is_then && !is_else) {
      Fail(stmt->range, "T.If holds T.Then and T.Else only", "put this into `with T.Then():`");
      return Flow::kNormal;
    }
    (is_then ? choice.then : choice.otherwise) = part->body;
  }
  if (choice.condition == nullptr) {
    Fail(range, "T.If needs a condition", "write `with T.If(condition):`");
    return Flow::kNormal;
  }
  return ExecIf(choice, range);
}

Interpreter::Flow Interpreter::ExecWith(const ast::With& node, size_t item, SourceRange range) {
  if (item == node.items.size()) return RunBlock(node.body, false);
  if (const ast::Call* scope = ScopeCall(node, "If")) return ExecIfScope(node, *scope, range);
  const Value value = Eval(node.items[item].context);
  if (value.poisoned()) return Flow::kNormal;
  const auto* context = value.Object<const ContextObject>();
  if (context == nullptr) {
    Wrong(value, node.items[item].context->range, "what `with` opens", "a launch such as T.Kernel(...)");
    return Flow::kNormal;
  }
  const bool is_launch = context->kind == ContextObject::Kind::kKernel;
  if (!is_launch && !in_launch_) {
    Fail(node.items[item].context->range, "this must stand inside a launch", "put it under `with T.Kernel(...) as bx:`");
    return Flow::kNormal;
  }
  scope_->OpenJournal();
  Flow flow = Flow::kNormal;
  if (OpenContext(*context, node.items[item].target, node.items[item].context->range)) {
    if (is_launch) in_launch_ = true;
    flow = ExecWith(node, item + 1, range);
    if (is_launch) in_launch_ = false;
    if (context->kind != ContextObject::Kind::kNothing) builder_->Close();
  }
  Forget(scope_->RollBack(), range, is_launch ? "launch" : "with");
  return flow;
}

}  // namespace tilert::frontend
