// Containers, comprehensions, lambdas and f-strings.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/evaluator.h"

namespace tilert::frontend {
namespace {

void SetItem(DictObject* dict, Value key, Value value) {
  for (auto& [k, v] : dict->items) {
    if (Equal(k, key)) {
      v = std::move(value);
      return;
    }
  }
  dict->items.emplace_back(std::move(key), std::move(value));
}

void AddToSet(SequenceObject* set, Value value) {
  for (const Value& item : set->items) {
    if (Equal(item, value)) return;
  }
  set->items.push_back(std::move(value));
}

SequenceKind KindOfDisplay(ast::SequenceKind kind) {
  return kind == ast::SequenceKind::kTuple  ? SequenceKind::kTuple
         : kind == ast::SequenceKind::kList ? SequenceKind::kList
                                            : SequenceKind::kSet;
}

}  // namespace

Value Evaluator::EvalSequence(const ast::Sequence& node) {
  SequenceObject sequence{KindOfDisplay(node.kind), {}};
  for (const ast::ExprPtr item : node.items) {
    const auto* starred = item->As<ast::Starred>();
    std::vector<Value> values;
    if (starred != nullptr) {
      const auto items = Items(Eval(starred->value), item->range, "what is unpacked by '*'");
      if (!items) return Poison{};
      values = *items;
    } else {
      values.push_back(Eval(item));
    }
    for (Value& value : values) {
      if (sequence.kind == SequenceKind::kSet) {
        AddToSet(&sequence, std::move(value));
      } else {
        sequence.items.push_back(std::move(value));
      }
    }
  }
  return New(std::move(sequence));
}

Value Evaluator::EvalDict(const ast::Dict& node) {
  DictObject dict;
  for (const ast::DictItem& item : node.items) {
    const Value value = Eval(item.value);
    if (item.key != nullptr) {
      SetItem(&dict, Eval(item.key), value);
    } else if (const auto* other = value.Object<DictObject>()) {
      for (const auto& [k, v] : other->items) SetItem(&dict, k, v);
    } else {
      return Wrong(value, item.value->range, "what is unpacked by '**'", "a dict");
    }
  }
  return New(std::move(dict));
}

Value Evaluator::EvalComprehension(const ast::Comprehension& node) {
  const bool is_set = node.kind == ast::ComprehensionKind::kSet;
  SequenceObject* sequence = New(SequenceObject{is_set ? SequenceKind::kSet : SequenceKind::kList, {}});
  DictObject* dict = node.kind == ast::ComprehensionKind::kDict ? New(DictObject{}) : nullptr;
  NameScope* outer = scope_;
  scope_ = New(NameScope(outer));
  RunGenerators(node, 0, sequence, dict);
  scope_ = outer;
  return dict ? Value(dict) : Value(sequence);
}

void Evaluator::RunGenerators(const ast::Comprehension& node, size_t index, SequenceObject* out, DictObject* dict) {
  if (index == node.generators.size()) {
    Value element = Eval(node.element);
    if (dict != nullptr) {
      SetItem(dict, std::move(element), Eval(node.value));
    } else if (out->kind == SequenceKind::kSet) {
      AddToSet(out, std::move(element));
    } else {
      out->items.push_back(std::move(element));
    }
    return;
  }
  const ast::Generator& generator = node.generators[index];
  const auto items = Items(Eval(generator.iterable), generator.iterable->range, "what a comprehension walks over");
  if (!items) return;
  for (const Value& item : *items) {
    if (!Step(generator.iterable->range)) return;
    Assign(generator.target, item, nullptr);
    bool wanted = true;
    for (const ast::ExprPtr condition : generator.conditions) {
      const Value truth = Eval(condition);
      if (IsSymbolic(truth)) {
        Fail(condition->range, "this condition is known only at run time, and a comprehension is evaluated at compile time",
             "give the names in it fixed values with --set, or write a loop of the kernel");
        return;
      }
      wanted = wanted && Truth(truth, condition->range).value_or(false);
    }
    if (wanted) RunGenerators(node, index + 1, out, dict);
  }
}

Value Evaluator::EvalLambda(const ast::Lambda& node) {
  FunctionObject function;
  function.name = "<lambda>";
  function.params = &node.params;
  function.lambda_body = node.body;
  function.closure = scope_;
  function.defaults = Defaults(node.params);
  return static_cast<const FunctionObject*>(New(std::move(function)));
}

namespace {

// `[0][width][.precision]{d,f,e,g,x}` of Python's format specifications; empty if it is none of these.
std::string FormatNumber(const Value& value, const std::string& spec) {
  const char kind = spec.empty() ? 'g' : spec.back();
  const std::string flags = spec.substr(0, spec.empty() ? 0 : spec.size() - 1);
  if (flags.find_first_not_of("0123456789.") != std::string::npos || flags.size() > 6) return "";
  const size_t dot = flags.find('.');
  const int width = std::atoi(flags.substr(0, dot).c_str());
  const int precision = dot == std::string::npos ? 6 : std::atoi(flags.substr(dot + 1).c_str());
  std::string text;
  if (const auto* i = value.As<int64_t>(); i && (kind == 'd' || kind == 'x')) {
    text = kind == 'd' ? absl::StrCat(*i) : absl::StrFormat("%x", *i);
  } else {
    const auto* d = value.As<double>();
    const auto* whole = value.As<int64_t>();
    const double number = d ? *d : whole ? static_cast<double>(*whole) : 0;
    if (!d && !whole) return "";
    if (kind == 'f') text = absl::StrFormat("%.*f", precision, number);
    if (kind == 'e') text = absl::StrFormat("%.*e", precision, number);
    if (kind == 'g') text = absl::StrFormat("%.*g", precision, number);
  }
  const char pad = flags.size() > 1 && flags[0] == '0' ? '0' : ' ';
  if (static_cast<int>(text.size()) < width) text.insert(0, width - text.size(), pad);
  return text;
}

}  // namespace

Value Evaluator::EvalFString(const ast::FString& node) {
  std::string out;
  for (const ast::FStringPart& part : node.parts) {
    if (part.field == nullptr) {
      out += part.text;
      continue;
    }
    const Value value = Eval(part.field);
    if (value.poisoned()) return value;
    std::string spec;
    if (part.format != nullptr) {
      const Value format = EvalFString(*part.format->As<ast::FString>());
      if (format.poisoned()) return format;
      spec = ToText(format);
    }
    if (spec.empty()) {
      out += part.conversion == 'r' ? ToRepr(value) : ToText(value);
      continue;
    }
    const std::string text = FormatNumber(value, spec);
    if (text.empty()) {
      return Fail(part.format->range, absl::StrCat("the format '", spec, "' is not supported for ", Describe(value)),
                  "use {value}, {value:d} or {value:.3f}");
    }
    out += text;
  }
  return Text(std::move(out));
}

}  // namespace tilert::frontend
