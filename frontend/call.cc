#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {

Value Evaluator::EvalCall(const ast::Call& node, SourceRange range) {
  const Value callee = Eval(node.callee);
  if (const auto* type = callee.As<DType>(); type && *type == DType::kUInt64 && node.args.size() == 1 && node.keywords.empty()) {
    const auto* literal = node.args[0]->As<ast::IntLit>();  // beyond what an int of the compile time holds
    if (literal && literal->too_large && literal->fits_unsigned) return builder_->Int(literal->value, *type);
  }
  // The name that waits for the result of this call is not for the calls among its arguments.
  const std::string hint = std::exchange(name_hint_, "");
  CallArgs args;
  const bool ok = EvalArguments(node, &args);
  if (callee.poisoned() || !ok) return Poison{};
  name_hint_ = hint;
  Value result = Invoke(callee, std::move(args), range);
  name_hint_.clear();
  return result;
}

bool Evaluator::EvalArguments(const ast::Call& node, CallArgs* args) {
  for (const ast::ExprPtr expr : node.args) {
    if (const auto* starred = expr->As<ast::Starred>()) {
      const auto items = Items(Eval(starred->value), expr->range, "what is unpacked by '*'");
      if (!items) return false;
      for (const Value& item : *items) {
        args->positional.push_back(item);
        args->ranges.push_back(expr->range);
      }
      continue;
    }
    args->positional.push_back(Eval(expr));
    args->ranges.push_back(expr->range);
    args->poisoned |= args->positional.back().poisoned();
  }
  for (const ast::Keyword& keyword : node.keywords) {
    const Value value = Eval(keyword.value);
    args->poisoned |= value.poisoned();
    if (!keyword.name.empty()) {
      args->named.push_back({keyword.name, value, keyword.range});
      continue;
    }
    const auto* dict = value.Object<DictObject>();
    if (dict == nullptr) {
      Wrong(value, keyword.range, "what is unpacked by '**'", "a dict");
      return false;
    }
    for (const auto& [key, item] : dict->items) args->named.push_back({ToText(key), item, keyword.range});
  }
  return true;
}

Value Evaluator::CallValue(const Value& callee, std::vector<Value> values, SourceRange range) {
  CallArgs args;
  args.ranges.assign(values.size(), range);
  args.positional = std::move(values);
  return Invoke(callee, std::move(args), range);
}

Value Evaluator::Invoke(const Value& callee, CallArgs args, SourceRange range) {
  if (callee.poisoned()) return callee;
  if (const auto* host = callee.As<Host>()) return CallHost(*host, range);
  if (const auto* function = callee.Object<const FunctionObject>()) return InvokeFunction(*function, std::move(args), range);
  if (args.poisoned) return Poison{};
  if (const auto* builtin = callee.Object<const Builtin>()) return InvokeBuiltin(*builtin, std::move(args), range);
  if (const auto* type = callee.As<DType>()) return InvokeDType(*type, args, range);
  if (const auto* method = callee.Object<const Method>()) return InvokeMethod(*method, args, range);
  return Fail(range, absl::StrCat(Describe(callee), " cannot be called"));
}

// T.float16(x): a number of that type, or a conversion.
Value Evaluator::InvokeDType(DType type, const CallArgs& args, SourceRange range) {
  if (args.positional.size() != 1 || !args.named.empty())
    return Fail(range, Cat("T.", DTypeName(type), " converts one value"), Cat("write T.", DTypeName(type), "(x)"));
  Value value = args.positional[0];
  if (const auto* text = value.Object<const StringObject>()) {
    const bool negative = !text->text.empty() && text->text[0] == '-';
    const std::string name = negative ? text->text.substr(1) : text->text;
    if (!IsFloat(type) || (name != "inf" && name != "nan")) {
      return Fail(args.ranges[0], Cat("'", text->text, "' is no ", DTypeName(type)), "\"inf\", \"-inf\" and \"nan\" are");
    }
    const double magnitude = name == "inf" ? __builtin_inf() : __builtin_nan("");
    return builder_->Float(negative ? -magnitude : magnitude, type);
  }
  if (IsFloat(type)) {
    if (const auto* d = value.As<double>()) return builder_->Float(*d, type);
    if (const auto* i = value.As<int64_t>()) return builder_->Float(static_cast<double>(*i), type);
  } else if (const auto* i = value.As<int64_t>()) {
    return builder_->Int(type == DType::kBool ? *i != 0 : *i, type);
  } else if (const auto* b = value.As<bool>()) {
    return builder_->Int(*b, type);
  }
  const Val number = Number(value, args.ranges[0], Cat("the argument of T.", DTypeName(type)));
  return number ? Wrap(builder_->Cast(number, type)) : Value(Poison{});
}

// --- Functions of the source
// ----------------------------------------------------------------------------------------------------

std::vector<Value> Evaluator::Defaults(const std::vector<ast::Param>& params) {
  static const std::string kNone;
  std::vector<Value> defaults;
  for (const ast::Param& param : params) {
    defaults.push_back(param.default_value ? Eval(param.default_value) : Value(Unset{&kNone, &kNone}));
  }
  return defaults;
}

Value Evaluator::MakeFunction(const ast::FunctionDef& definition) {
  FunctionObject* function = New(FunctionObject{});
  function->name = definition.name;
  function->params = &definition.params;
  function->definition = &definition;
  function->closure = scope_;
  function->defaults = Defaults(definition.params);
  for (auto decorator = definition.decorators.rbegin(); decorator != definition.decorators.rend(); ++decorator)
    Decorate(*decorator, function);
  Value result = static_cast<const FunctionObject*>(function);
  if (function->is_prim_func || function->is_macro || function->is_jit) return result;
  for (auto decorator = definition.decorators.rbegin(); decorator != definition.decorators.rend(); ++decorator) {
    const auto* call = (*decorator)->As<ast::Call>();
    if (!Eval(call ? call->callee : *decorator).Object<const FunctionObject>()) continue;  // of the host
    result = CallValue(Eval(*decorator), {result}, (*decorator)->range);
  }
  return result;
}

// Decorators of the language set flags; those of the host program change nothing that matters here.
void Evaluator::Decorate(ast::ExprPtr decorator, FunctionObject* function) {
  const auto* call = decorator->As<ast::Call>();
  const Value value = Eval(call ? call->callee : decorator);
  const auto* builtin = value.Object<const Builtin>();
  if (builtin == nullptr) return;
  function->is_prim_func |= builtin->path == "T.prim_func";
  function->is_macro |= builtin->path == "T.macro";
  function->is_jit |= builtin->path == "tilelang.jit" || builtin->path == "tilelang.lazy_jit";
  if (call == nullptr) return;
  for (const ast::Keyword& keyword : call->keywords) {
    if (builtin->path == "tilelang.autotune" && keyword.name == "configs") function->configs = keyword.value;
    if (keyword.name != "pass_configs") continue;
    const auto* dict = Eval(keyword.value).Object<DictObject>();
    for (size_t i = 0; dict != nullptr && i < dict->items.size(); ++i) {
      const auto& [key, on] = dict->items[i];
      const std::string name = key.As<Symbol>() ? *key.As<Symbol>()->path : ToText(key);
      const bool is_fast_math = name.find("FAST_MATH") != std::string::npos || name == "tl.enable_fast_math";
      const auto* flag = on.As<bool>();
      if (is_fast_math && name.find("DISABLE") == std::string::npos) function->fast_math = flag && *flag;
      if (name.find("DISABLE_WARP_SPECIALIZED") != std::string::npos || name == "tl.disable_warp_specialized")
        function->no_warp_specialization = flag && *flag;
    }
  }
}

bool Evaluator::BindParameters(const FunctionObject& function, CallArgs args, SourceRange range, NameScope* scope) {
  const std::vector<ast::Param>& params = *function.params;
  args.positional.insert(args.positional.begin(), function.partial.begin(), function.partial.end());
  args.ranges.insert(args.ranges.begin(), function.partial.size(), range);
  for (const auto& [name, value] : function.partial_keywords) args.named.push_back({name, value, range});
  size_t next = 0;
  std::vector<bool> used(args.named.size(), false);
  for (size_t i = 0; i < params.size(); ++i) {
    const ast::Param& param = params[i];
    Value value = function.defaults[i];
    if (param.kind == ast::ParamKind::kVarArgs) {
      value = Tuple(std::vector<Value>(args.positional.begin() + std::min(next, args.positional.size()), args.positional.end()));
      next = args.positional.size();
    } else if (param.kind == ast::ParamKind::kVarKeywords) {
      DictObject rest;
      for (size_t k = 0; k < args.named.size(); ++k) {
        if (!used[k]) rest.items.emplace_back(Text(args.named[k].name), args.named[k].value);
        used[k] = true;
      }
      value = New(std::move(rest));
    } else {
      bool given = false;
      if (param.kind != ast::ParamKind::kKeywordOnly && next < args.positional.size()) {
        value = args.positional[next++];
        given = true;
      }
      for (size_t k = 0; k < args.named.size(); ++k) {
        if (args.named[k].name != param.name || used[k]) continue;
        if (given) return Fail(args.named[k].range, absl::StrCat("'", param.name, "' is given twice")), false;
        value = args.named[k].value;
        used[k] = given = true;
      }
      if (value.Is<Unset>()) return Fail(range, absl::StrCat("the call of ", function.name, " lacks '", param.name, "'")), false;
    }
    scope->Set(param.name, std::move(value));
  }
  if (next < args.positional.size()) {
    return Fail(args.ranges[next],
                absl::StrCat(function.name, " takes ", params.size(), " arguments, but ", args.positional.size(), " are given")),
           false;
  }
  for (size_t k = 0; k < args.named.size(); ++k) {
    if (!used[k])
      return Fail(args.named[k].range, absl::StrCat(function.name, " has no parameter '", args.named[k].name, "'")), false;
  }
  return true;
}

namespace {

// `budget` counts nodes; what is longer may.
bool ReadsMemory(const ExprArena& arena, Expr e, int* budget) {
  const ExprNode& node = arena[e];
  if (node.op == ExprOp::kLoad || --*budget < 0) return true;
  return std::any_of(node.args.begin(), node.args.end(), [&](Expr arg) { return ReadsMemory(arena, arg, budget); });
}

// A function that does nothing but return a value.
bool IsExpression(const FunctionObject& function) {
  if (function.lambda_body != nullptr) return true;
  const ast::Body& body = function.definition->body;
  return body.size() == 1 && body[0]->As<ast::Return>();
}

}  // namespace

Value Evaluator::Now(const std::string& name, const Value& value, SourceRange range) {
  if (const auto* tuple = value.Object<SequenceObject>(); tuple && tuple->kind == SequenceKind::kTuple) {
    std::vector<Value> items;
    for (const Value& item : tuple->items) items.push_back(Now(name, item, range));
    return Tuple(std::move(items));
  }
  const bool is_element = IsSymbolic(value) && value.Object<const BufferRegion>();
  const auto* number = value.As<Val>();
  int budget = 256;
  const bool reads = number && !number->is_weak() && ReadsMemory(builder_->exprs(), number->expr(), &budget);
  if (!is_element && !reads) return value;
  const Val read = Number(value, range, name);
  return read ? Wrap(builder_->Let(name, read)) : Value(Poison{});
}

Value Evaluator::InvokeFunction(const FunctionObject& function, CallArgs args, SourceRange range) {
  if (!Step(range)) return Poison{};
  NameScope* scope = New(NameScope(function.closure));
  if (!BindParameters(function, std::move(args), range, scope)) return Poison{};
  // Arguments pass by value, unless the parameter asks for a reference: the body may change what they were computed from. To a
  // function that is no macro an element is the place, as where a copy begins.
  if (in_launch_ && (function.is_macro || !IsExpression(function))) {
    for (const ast::Param& param : *function.params) {
      const Value* value = scope->FindHere(param.name);
      if (value == nullptr || IsReference(param) || (!function.is_macro && !value->Is<Val>())) continue;
      const auto* variable = value->As<Buf>();
      const bool is_read = variable && IsSymbolic(*value);
      scope->Set(param.name, Now(param.name, is_read ? Wrap(builder_->Load(*variable, {})) : *value, param.range));
    }
  }
  Frame frame;
  frame.function = &function;
  frame.traced = function.is_macro || function.is_prim_func || function.is_jit;
  NameScope* const outer_scope = std::exchange(scope_, scope);
  Frame* const outer_frame = std::exchange(frame_, &frame);
  const std::string outer_hint = std::exchange(name_hint_, "");
  const int errors = diagnostics_->error_count();
  depth_ += 4;  // a call takes more of the stack than an operator
  if (function.lambda_body != nullptr) {
    frame.result = Eval(function.lambda_body);
  } else {
    RunFunctionBody(function);
  }
  depth_ -= 4;
  if (diagnostics_->error_count() > errors && outer_frame != nullptr && !stopped_) {
    diagnostics_->Note(range, absl::StrCat("in this call of ", function.name));
  }
  scope_ = outer_scope;
  frame_ = outer_frame;
  name_hint_ = outer_hint;
  return frame.result;
}

}  // namespace tilert::frontend
