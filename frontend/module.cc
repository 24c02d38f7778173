// The names of the module: found without running it, evaluated when a kernel asks.
#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "frontend/bindings.h"
#include "frontend/evaluator.h"
#include "frontend/suggest.h"
#include "frontend/views.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

bool MentionsMainGuard(ast::ExprPtr condition) {
  const auto* compare = condition->As<ast::Compare>();
  const auto* name = compare ? compare->left->As<ast::Name>() : nullptr;
  return name && name->id == "__name__";
}

// The last statement of a body that binds `name`.
const ast::Stmt* FindBinding(const ast::Body& body, const std::string& name) {
  const ast::Stmt* found = nullptr;
  for (const ast::Stmt* stmt : body) {
    const auto note = [&](const std::string& bound) {
      if (bound == name) found = stmt;
    };
    ForEachBoundName(*stmt, note);
    if (const auto* choice = stmt->As<ast::If>()) {
      if (FindBinding(choice->then, name) || FindBinding(choice->otherwise, name)) found = stmt;
    } else if (const auto* attempt = stmt->As<ast::Try>()) {
      if (FindBinding(attempt->body, name)) found = stmt;
    }
  }
  return found;
}

// The name at the root of A[i], A[i][j] and A.b.
std::string RootName(ast::ExprPtr expr) {
  for (;;) {
    if (const auto* name = expr->As<ast::Name>()) return name->id;
    const auto* subscript = expr->As<ast::Subscript>();
    const auto* attribute = expr->As<ast::Attribute>();
    if (subscript == nullptr && attribute == nullptr) return "";
    expr = subscript ? subscript->value : attribute->value;
  }
}

// The names whose lists and dicts the statement changes in place.
void ForEachChangedName(const ast::Stmt& stmt, const std::function<void(const std::string&)>& visit) {
  static constexpr std::string_view kMethods[] = {"append", "extend", "insert",  "pop",        "remove", "clear",  "sort",
                                                  "reverse", "update", "popitem", "setdefault", "add",    "discard"};
  const auto item = [&](ast::ExprPtr target) {
    if (target->As<ast::Subscript>()) visit(RootName(target));
  };
  if (const auto* statement = stmt.As<ast::ExprStmt>()) {
    const auto* call = statement->value->As<ast::Call>();
    const auto* method = call ? call->callee->As<ast::Attribute>() : nullptr;
    if (method && std::find(std::begin(kMethods), std::end(kMethods), method->name) != std::end(kMethods))
      visit(RootName(method->value));
  } else if (const auto* assign = stmt.As<ast::Assign>()) {
    for (const ast::ExprPtr target : assign->targets) item(target);
  } else if (const auto* augmented = stmt.As<ast::AugAssign>()) {
    item(augmented->target);
  } else if (const auto* deletion = stmt.As<ast::Delete>()) {
    for (const ast::ExprPtr target : deletion->targets) {
      if (const auto* sequence = target->As<ast::Sequence>()) {
        for (const ast::ExprPtr part : sequence->items) item(part);
      } else {
        item(target);
      }
    }
  }
}

bool Changes(const ast::Stmt& stmt, const std::string& name) {
  bool found = false;
  ForEachChangedName(stmt, [&](const std::string& changed) { found |= changed == name; });
  return found;
}

std::optional<double> MathConstant(const std::string& path) {
  if (path == "math.pi") return M_PI;
  if (path == "math.e") return M_E;
  if (path == "math.inf") return HUGE_VAL;
  if (path == "math.nan") return std::nan("");
  return std::nullopt;
}

bool IsKnownModule(const std::string& path) {
  return path == "math" || path == "itertools" || path == "functools" || path == "operator";
}

bool StartsWith(const std::string& text, std::string_view prefix) { return text.rfind(prefix, 0) == 0; }

std::string LastPart(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

// Notes which statements bind each name, in order. `owner` is the compound statement that holds the body.
void Evaluator::IndexModule(const ast::Body& body, const ast::Stmt* owner) {
  for (const ast::Stmt* stmt : body) {
    const auto note = [&](const std::string& name) {
      if (name == "*") return star_imports_.push_back(stmt->As<ast::Import>()->from);
      std::vector<const ast::Stmt*>& bindings = global_stmts_[name];
      const ast::Stmt* binding = owner ? owner : stmt;
      if (bindings.empty() || bindings.back() != binding) bindings.push_back(binding);
    };
    ForEachBoundName(*stmt, note);
    ForEachChangedName(*stmt, note);
    if (const auto* choice = stmt->As<ast::If>()) {
      if (MentionsMainGuard(choice->condition)) continue;
      IndexModule(choice->then, owner ? owner : stmt);
      IndexModule(choice->otherwise, owner ? owner : stmt);
    } else if (const auto* attempt = stmt->As<ast::Try>()) {
      IndexModule(attempt->body, owner ? owner : stmt);
    } else if (const auto* loop = stmt->As<ast::For>()) {
      ForEachTargetName(loop->target, note);
      IndexModule(loop->body, owner ? owner : stmt);
    } else if (const auto* with = stmt->As<ast::With>()) {
      IndexModule(with->body, owner ? owner : stmt);
    }
  }
}

const Value* Evaluator::FindGlobal(const std::string& name, SourceRange range) {
  if (const auto known = globals_.find(name); known != globals_.end()) return &known->second;
  const auto it = global_stmts_.find(name);
  if (it == global_stmts_.end()) {
    for (const std::string& module : star_imports_) {
      const std::string path = module == "tilelang.language" ? "T." + name : "tilelang." + name;
      if (StartsWith(module, "tilelang") && FindBuiltin(path)) return New(Value(FindBuiltin(path)));
    }
    return nullptr;
  }
  if (std::find(evaluating_.begin(), evaluating_.end(), name) != evaluating_.end()) {
    if (const auto sofar = partial_globals_.find(name); sofar != partial_globals_.end()) return New(Value(sofar->second));
    return New(Fail(range, absl::StrCat("'", name, "' is defined in terms of itself")));
  }
  evaluating_.push_back(name);
  NameScope* const scope = std::exchange(scope_, nullptr);
  Frame* const frame = std::exchange(frame_, nullptr);
  const std::string hint = std::exchange(name_hint_, "");
  const bool in_launch = std::exchange(in_launch_, false);
  Value value = EvalBindings(name, it->second, range);
  scope_ = scope;
  frame_ = frame;
  name_hint_ = hint;
  in_launch_ = in_launch;
  evaluating_.pop_back();
  // A node-based copy on the heap: pointers into the map would move.
  return New(globals_[name] = std::move(value));
}

// The bindings of a name one after the other, from the last that does not depend on those before it.
Value Evaluator::EvalBindings(const std::string& name, const std::vector<const ast::Stmt*>& bindings, SourceRange range) {
  size_t last = bindings.size() - 1;
  for (;; --last) {  // an import from a sibling is another name for what is there
    const auto* import = bindings[last]->As<ast::Import>();
    if (import == nullptr || !IsSibling(*import)) break;
    for (const ast::ImportName& imported : import->names) {
      if (BoundName(*import, imported) != name || imported.path == name) continue;
      const Value* value = FindGlobal(imported.path, range);
      return value ? *value : Value(Host{Intern(imported.path)});
    }
    if (last == 0) return Host{Intern(name)};
  }
  size_t first = last;
  const auto goes_on = [&](const ast::Stmt& stmt) {
    return stmt.As<ast::AugAssign>() || stmt.As<ast::If>() || Changes(stmt, name);
  };
  while (first > 0 && goes_on(*bindings[first])) --first;
  partial_globals_.erase(name);
  for (size_t i = first; i <= last; ++i) ApplyBinding(name, *bindings[i], range);
  const auto value = partial_globals_.find(name);
  if (value == partial_globals_.end())
    return Fail(range, absl::StrCat("'", name, "' is defined only in the branch that is not taken"),
                "define it in both branches");
  Value result = value->second;
  partial_globals_.erase(name);
  return result;
}

// What the statement makes of the value that the name has so far, in partial_globals_.
void Evaluator::ApplyBinding(const std::string& name, const ast::Stmt& stmt, SourceRange range) {
  if (Changes(stmt, name)) return RunStatement(stmt);
  if (const auto* augmented = stmt.As<ast::AugAssign>()) {
    const auto sofar = partial_globals_.find(name);
    const Value old = sofar == partial_globals_.end() ? Value(Poison{}) : sofar->second;
    const Value value = BinaryOperator(augmented->op, old, Eval(augmented->value), stmt.range);
    partial_globals_[name] = FindSetting(name) != nullptr ? old : value;
    return;
  }
  const auto* choice = stmt.As<ast::If>();
  if (choice == nullptr) {
    Value value = EvalGlobal(name, stmt, range);
    partial_globals_[name] = std::move(value);
    return;
  }
  const Value condition = Eval(choice->condition);
  if (condition.Is<Host>() || condition.poisoned()) {
    partial_globals_[name] = Host{Intern(name)};
    return;
  }
  const bool truth = Truth(condition, choice->condition->range).value_or(false);
  for (const ast::Stmt* inner : truth ? choice->then : choice->otherwise) {
    if (FindBinding({inner}, name) || Changes(*inner, name)) ApplyBinding(name, *inner, range);
  }
}

Value Evaluator::EvalGlobal(const std::string& name, const ast::Stmt& stmt, SourceRange range) {
  if (const auto* function = stmt.As<ast::FunctionDef>()) return MakeFunction(*function);
  if (const auto* import = stmt.As<ast::Import>()) return ImportedValue(*import, name);
  if (const auto* assign = stmt.As<ast::Assign>()) {
    const Setting* setting = FindSetting(name);
    return setting ? SettingValue(name, *setting) : UnpackGlobal(*assign, name);
  }
  if (const auto* annotated = stmt.As<ast::AnnAssign>(); annotated && annotated->value) return Eval(annotated->value);
  const auto* attempt = stmt.As<ast::Try>();
  const ast::Stmt* inner = attempt ? FindBinding(attempt->body, name) : nullptr;
  return inner ? EvalGlobal(name, *inner, range) : Value(Host{Intern(name)});
}

Value Evaluator::UnpackGlobal(const ast::Assign& node, const std::string& name) {
  name_hint_ = name;
  const Value value = Eval(node.value);
  name_hint_.clear();
  NameScope names(nullptr);
  scope_ = &names;
  for (const ast::ExprPtr target : node.targets) {
    if (value.Is<Host>()) {
      ForEachTargetName(target, [&](const std::string& bound) { names.Set(bound, value); });
    } else if (target->As<ast::Name>() || target->As<ast::Sequence>()) {
      Assign(target, value, nullptr);
    }
  }
  scope_ = nullptr;
  const Value* found = names.FindHere(name);
  return found ? *found : Value(Poison{});
}

bool Evaluator::IsSibling(const ast::Import& node) const {
  return node.is_from && std::find(module_.siblings.begin(), module_.siblings.end(), ModuleName(node)) != module_.siblings.end();
}

Value Evaluator::ImportedValue(const ast::Import& node, const std::string& name) {
  for (const ast::ImportName& imported : node.names) {
    if (BoundName(node, imported) != name) continue;
    std::string path = node.is_from ? absl::StrCat(node.from, ".", imported.path) : imported.path;
    if (!node.is_from && imported.alias.empty()) path = path.substr(0, path.find('.'));
    if (path == "tilelang" || IsKnownModule(path)) return Namespace{Intern(path)};
    // The compiler under TileLang, whose expressions have the names that they have in T.
    if (path == "tvm.tir" || path == "tvm.tirx") return Namespace{Intern("tirx")};
    if (path == "tvm.DataType") return FindBuiltin("T.dtype");
    if (path == "tilelang.layout.Layout" || path == "tilelang.layout.Fragment") return FindBuiltin("T." + LastPart(path));
    if (path == "tilelang.language") return Namespace{Intern("T")};
    if (StartsWith(path, "tilelang.language.")) return Member("T." + LastPart(path), {});
    if (StartsWith(path, "tilelang.") || IsKnownModule(path.substr(0, path.find('.')))) return Member(path, {});
    return Host{Intern(path)};
  }
  return Poison{};
}

Value Evaluator::Member(const std::string& path, SourceRange range) {
  if (path == "tilelang.language") return Namespace{Intern("T")};
  if (StartsWith(path, "tirx.") && FindBuiltin(path) == nullptr) {
    const std::string name = "T." + LastPart(path);
    return FindBuiltin(name) ? Value(FindBuiltin(name)) : Value(Host{Intern("tvm." + path)});
  }
  if (const Builtin* builtin = FindBuiltin(path)) return builtin;
  if (const std::optional<double> constant = MathConstant(path)) return *constant;
  const std::string last = LastPart(path);
  if (path == "T.GemmWarpPolicy" || last == "PassConfigKey") return Namespace{Intern(path)};
  if (StartsWith(path, "T.GemmWarpPolicy.")) {
    if (last == "Square" || last == "FullRow" || last == "FullCol") return Symbol{Intern(path)};
    return Fail(range, absl::StrCat("there is no policy ", path), "T.GemmWarpPolicy.Square, FullRow and FullCol exist");
  }
  if (path.find(".PassConfigKey.") != std::string::npos || path == "T.Ref") return Symbol{Intern(path)};
  if (StartsWith(path, "tilelang.")) {
    const Builtin* builtin = FindBuiltin("tilelang." + last);
    return builtin ? Value(builtin) : Value(Host{Intern(path)});
  }
  if (StartsWith(path, "T.") && path.find('.', 2) == std::string::npos) {
    if (const DType type = ParseDType(last); type != DType::kInvalid) return type;
    if (last == "tfloat32") return DType::kFloat32;
    if (PackingNamed(path) != Packing::kNone) return Symbol{Intern(path)};
    if (const auto reason = KnownButUnsupported(path))
      return Fail(range, absl::StrCat(path, " is not supported yet"), std::string(*reason));
  }
  if (IsKnownModule(path.substr(0, path.find('.'))) && path[0] != 'm') return Host{Intern(path)};
  std::vector<std::string> names;
  const std::string prefix = path.substr(0, path.rfind('.') + 1);
  for (const std::string_view known : BuiltinsUnder(prefix)) names.emplace_back(known.substr(prefix.size()));
  const std::string similar = Similar(last, names);
  return Fail(range, absl::StrCat(path, " does not exist"),
              similar.empty() ? "" : absl::StrCat("did you mean ", prefix, similar, "?"));
}

std::string Evaluator::SimilarName(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [global, stmt] : global_stmts_) names.push_back(global);
  for (const std::string_view builtin : BuiltinsUnder("")) {
    if (builtin.find('.') == std::string_view::npos) names.emplace_back(builtin);
  }
  std::sort(names.begin(), names.end());
  return Similar(name, names);
}

}  // namespace tilert::frontend
