// From the name of a function to the program that it is, or returns.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/interpreter.h"
#include "frontend/suggest.h"
#include "ir/status_util.h"

namespace tilert::frontend {

Value Interpreter::DeclareTensor(const std::string& name, const TensorSpec& spec, SourceRange range, size_t position) {
  SetLocation(range);
  const bool is_output = spec.kind == TensorSpec::Kind::kEmpty;
  const bool infer = !is_output && spec.access == Access::kInvalid;
  const Access access = is_output ? Access::kOut : infer ? Access::kIn : spec.access;
  std::vector<Val> shape = spec.shape;
  const bool is_packed = spec.packing != Packing::kNone;
  int64_t columns = 0;
  if (is_packed) {
    if (shape.empty() || !spec.strides.empty())
      return Fail(range, "a tensor of 4-bit elements has at least one dimension, and no strides",
                  "write T.Tensor((M, N), T.int4)");
    if (builder_->exprs().AsInt(shape.back().In(builder_).expr(), &columns) && columns % 2 != 0)
      return Fail(range, absl::StrCat("a tensor of 4-bit elements has an even last dimension, not ", columns),
                  "pad it: two elements are a byte");
    shape.back() =
        builder_->Wrap(Fold(builder_->exprs(), builder_->Index(FloorDiv(shape.back().In(builder_), builder_->Lit(int64_t{2})))));
  }
  const Buf buffer = builder_->Tensor(name, is_packed ? DType::kUInt8 : spec.dtype, shape, access, spec.strides);
  tensor_params_.push_back({buffer.id(), infer || is_output, position, range});
  return is_packed ? MakePacked(*this, buffer, spec.shape, spec.packing) : buffer;
}

// A parameter of the kernel by its annotation.
Value Interpreter::DeclareParam(const std::string& name, const Value& annotation, SourceRange range, size_t position) {
  if (annotation.poisoned()) return annotation;
  const auto scalar = [&](DType type, const Val& dim = {}) -> Value {
    const auto& dims = builder_->program().dims;
    const bool taken = !dim && std::any_of(dims.begin(), dims.end(), [&](const auto& other) { return other.name == name; });
    if (!taken) return builder_->Scalar(name, type, dim);
    return Fail(range, absl::StrCat("the scalar '", name, "' has the name of a dim"),
                Cat("rename one of them; a scalar that gives the dim its value is written T.scalar(\"", DTypeName(type),
                    "\", dim=", name, ")"));
  };
  if (const auto* spec = annotation.Object<const TensorSpec>()) {
    if (spec->kind == TensorSpec::Kind::kTensor) return DeclareTensor(name, *spec, range, position);
    if (spec->kind == TensorSpec::Kind::kScalar) return scalar(spec->dtype, spec->dim);
  }
  if (const auto* type = annotation.As<DType>()) return scalar(*type);
  if (const auto* builtin = annotation.Object<const Builtin>()) {
    if (builtin->path == "int") return scalar(DType::kInt32);
    if (builtin->path == "float") return scalar(DType::kFloat32);
    if (builtin->path == "bool") return scalar(DType::kBool);
  }
  return Fail(range, absl::StrCat("the parameter '", name, "' needs a description, not ", Describe(annotation)),
              "write T.Tensor((M, N), T.float16), or a dtype such as T.int32 for a scalar");
}

bool Interpreter::TracePrimFunc(const FunctionObject& function) {
  NameScope* scope = New(NameScope(function.closure));
  NameScope* const outer = std::exchange(scope_, function.closure);
  for (size_t i = 0; i < function.params->size(); ++i) {
    const ast::Param& param = (*function.params)[i];
    SetLocation(param.range);
    const Setting* setting = FindSetting(param.name);
    Value value;
    if (setting != nullptr && !param.annotation) {
      value = SettingValue(param.name, *setting);
    } else if (param.annotation) {
      value = DeclareParam(param.name, Eval(param.annotation), param.annotation->range, i);
    } else if (!function.defaults[i].Is<Unset>()) {
      value = function.defaults[i];
    } else {
      value = Fail(param.range, absl::StrCat("the parameter '", param.name, "' of a @T.prim_func needs a description"),
                   absl::StrCat("write ", param.name, ": T.Tensor((M, N), T.float16)"));
    }
    scope->Set(param.name, std::move(value));
  }
  fast_math_ = fast_math_ || function.fast_math;
  no_warp_specialization_ = no_warp_specialization_ || function.no_warp_specialization;
  Frame frame;
  frame.function = &function;
  frame.traced = true;
  scope_ = scope;
  Frame* const outer_frame = std::exchange(frame_, &frame);
  eager_ = false;
  ExecBody(function.definition->body);
  frame_ = outer_frame;
  scope_ = outer;
  return TraceResult(function, Value());
}

bool Interpreter::TraceResult(const FunctionObject& function, const Value& result, SourceRange range) {
  if (!diagnostics_->ok()) return false;
  if (const auto* inner = result.Object<const FunctionObject>()) {
    return inner->is_prim_func ? TracePrimFunc(*inner) : CompileFunction(*inner);
  }
  if (const auto* several = result.Object<SequenceObject>()) {  // a kernel with something about it: the first function
    for (const Value& item : several->items) {
      if (item.Object<const FunctionObject>()) return TraceResult(function, item, range);
    }
  }
  if (!builder_->program().launches.empty()) return true;
  if (result.is_none()) {
    Fail(function.definition ? function.definition->name_range : range, absl::StrCat("'", function.name, "' launches nothing"),
         "write `with T.Kernel(grid, threads=128) as bx:` in it, or return a @T.prim_func");
  } else {
    Fail(range, absl::StrCat("'", function.name, "' returns ", Describe(result), ", not a @T.prim_func"));
  }
  return false;
}

namespace {

bool IsTensorAnnotation(const Value& value) {
  const auto* spec = value.Object<const TensorSpec>();
  return spec && spec->kind != TensorSpec::Kind::kEmpty;
}

}  // namespace

// The first of the configurations of @autotune, as a dict; none if there is no decorator.
Value Interpreter::FirstConfig(const FunctionObject& function) {
  if (const auto* list = function.config_list.Object<SequenceObject>()) return list->items.empty() ? Value() : list->items[0];
  if (function.configs == nullptr) return Value();
  // What asks the host program for its device has no answer here; then the parameters want settings.
  const Diagnostics before = *diagnostics_;
  const Value config = EvalFirstConfig(function);
  if (diagnostics_->error_count() == before.error_count()) return config;
  *diagnostics_ = before;
  stopped_ = false;
  return Value();
}

Value Interpreter::EvalFirstConfig(const FunctionObject& function) {
  Value configs = Eval(function.configs);
  if (const auto* maker = configs.Object<const FunctionObject>()) configs = CallValue(maker, {}, function.configs->range);
  const auto* list = configs.Object<SequenceObject>();
  return list && !list->items.empty() ? list->items[0] : Value();
}

// What the function gets for a parameter: a setting, its description as a tensor, a configuration, its default.
Value Interpreter::Argument(const FunctionObject& function, size_t index, const Value& config) {
  const ast::Param& param = (*function.params)[index];
  if (const Setting* setting = FindSetting(param.name)) return SettingValue(param.name, *setting);
  if (param.kind == ast::ParamKind::kVarArgs) return Tuple({});
  if (param.kind == ast::ParamKind::kVarKeywords) return New(DictObject{});
  if (param.annotation != nullptr) {
    const Value annotation = Eval(param.annotation);
    const bool is_scalar = annotation.Is<DType>() && function.is_jit && function.defaults[index].Is<Unset>();
    if (IsTensorAnnotation(annotation) || is_scalar) return DeclareParam(param.name, annotation, param.annotation->range, index);
    if (annotation.poisoned()) return annotation;
  }
  if (const auto* dict = config.Object<DictObject>()) {
    for (const auto& [key, value] : dict->items) {
      if (ToText(key) == param.name) return value;
    }
  }
  if (!function.defaults[index].Is<Unset>()) return function.defaults[index];
  if (!function.is_jit) {
    return Fail(param.range, absl::StrCat("the parameter '", param.name, "' of ", function.name, " has no value"),
                absl::StrCat("fix it with --set ", param.name, "=128, or --set ", param.name,
                             "=dyn for an extent that is known at launch"));
  }
  tensor_positions_[param.name] = index;
  return Unset{Intern(absl::StrCat("has no value here: it is a parameter of ", function.name)),
               Intern(absl::StrCat("fix it with --set ", param.name, "=128 or ", param.name,
                                   "=dyn, or describe it as a tensor: ", param.name, ": T.Tensor((M, N), dtype)"))};
}

bool Interpreter::CompileFunction(const FunctionObject& function) {
  if (!Step(function.definition ? function.definition->name_range : SourceRange{}) || function.definition == nullptr)
    return false;
  NameScope* scope = New(NameScope(function.closure));
  NameScope* const outer = std::exchange(scope_, function.closure);
  const Value config = FirstConfig(function);
  for (size_t i = 0; i < function.params->size(); ++i) scope->Set((*function.params)[i].name, Argument(function, i, config));
  scope_ = outer;
  if (!diagnostics_->ok()) return false;
  fast_math_ = fast_math_ || function.fast_math;
  no_warp_specialization_ = no_warp_specialization_ || function.no_warp_specialization;
  eager_ = function.is_jit;
  Frame frame;
  frame.function = &function;
  frame.traced = function.is_jit;
  scope_ = scope;
  Frame* const outer_frame = std::exchange(frame_, &frame);
  ++depth_;
  ExecBody(function.definition->body);
  --depth_;
  frame_ = outer_frame;
  scope_ = outer;
  // A tensor that was never described turns out to be a missing argument.
  for (const auto& [name, position] : tensor_positions_) {
    const Value* value = scope->FindHere(name);
    const bool is_factory = frame.result.Object<const FunctionObject>() != nullptr;
    if (value && value->Is<Unset>() && diagnostics_->ok() && !is_factory) {
      Fail((*function.params)[position].range, absl::StrCat("the parameter '", name, "' of ", function.name, " has no value"),
           absl::StrCat("fix it with --set ", name, "=…, or describe it as a tensor: ", name, ": T.Tensor((M, N), dtype)"));
    }
  }
  return TraceResult(function, frame.result, function.definition->name_range);
}

// Dims and constants of a module take the order of their declarations, not that of their use.
void Interpreter::DeclareModuleSymbols() {
  for (const ast::Stmt* stmt : module_.body) {
    const auto* assign = stmt->As<ast::Assign>();
    const auto* call = assign ? assign->value->As<ast::Call>() : nullptr;
    const auto* callee = call ? call->callee->As<ast::Attribute>() : nullptr;
    const auto* name = assign && assign->targets.size() == 1 ? assign->targets[0]->As<ast::Name>() : nullptr;
    if (!callee || !name) continue;
    if (callee->name == "dynamic" || callee->name == "symbolic" || callee->name == "constant") FindGlobal(name->id, stmt->range);
  }
}

bool Interpreter::CompileEntry(const std::string& entry) {
  const Value* value = FindGlobal(entry, {});
  const auto* function = value ? value->Object<const FunctionObject>() : nullptr;
  if (function == nullptr) {
    if (value == nullptr || !value->poisoned()) {
      Fail({}, absl::StrCat("there is no function '", entry, "' in this file"), "see the names with --list");
    }
    return false;
  }
  if (function->is_prim_func) DeclareModuleSymbols();
  const bool ok = function->is_prim_func ? TracePrimFunc(*function) : CompileFunction(*function);
  if (!ok || !diagnostics_->ok()) return false;
  for (const std::string& name : UnusedSettings()) {
    std::vector<std::string> known;
    for (const ast::Param& param : *function->params) known.push_back(param.name);
    for (const tilert::Dim& dim : builder_->program().dims) known.push_back(dim.name);
    const std::string similar = Similar(name, known);
    Fail(function->definition->name_range, absl::StrCat("nothing in ", entry, " is called '", name, "'"),
         similar.empty() ? absl::StrCat("its names are: ", absl::StrJoin(known, ", "))
                         : absl::StrCat("did you mean '", similar, "'?"));
  }
  return diagnostics_->ok();
}

}  // namespace tilert::frontend
