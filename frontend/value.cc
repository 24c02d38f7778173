#include "frontend/value.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/builtin.h"
#include "frontend/objects.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

// As Python writes it: the fewest digits that give it back, with an exponent from 1e16 on and below 1e-4.
std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text;
  int digits = 1;
  for (; digits <= 17; ++digits) {
    text = absl::StrFormat("%.*g", digits, value);
    if (std::strtod(text.c_str(), nullptr) == value) break;
  }
  if (const double magnitude = std::abs(value); magnitude >= 1e-4 && magnitude < 1e16 && text.find('e') != std::string::npos)
    text = absl::StrFormat("%.0f", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// Containers may hold themselves.
constexpr int kMaxContainerDepth = 32;

std::string Repr(const Value& value, int depth);

std::string Joined(const std::vector<Value>& items, int depth) {
  std::string out;
  for (size_t i = 0; i < items.size() && out.size() < 200; ++i) absl::StrAppend(&out, i ? ", " : "", Repr(items[i], depth));
  return out;
}

std::string SequenceText(const SequenceObject& sequence, int depth) {
  if (depth > kMaxContainerDepth) return "...";
  switch (sequence.kind) {
    case SequenceKind::kTuple: return absl::StrCat("(", Joined(sequence.items, depth), sequence.items.size() == 1 ? ",)" : ")");
    case SequenceKind::kList: return absl::StrCat("[", Joined(sequence.items, depth), "]");
    case SequenceKind::kSet: return absl::StrCat("{", Joined(sequence.items, depth), "}");
  }
  return "";
}

std::string DictText(const DictObject& dict, int depth) {
  if (depth > kMaxContainerDepth) return "...";
  std::string out = "{";
  for (const auto& [key, value] : dict.items) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", Repr(key, depth), ": ", Repr(value, depth));
  }
  return out + "}";
}

std::string Repr(const Value& value, int depth) {
  if (const auto* b = value.As<bool>()) return *b ? "True" : "False";
  if (const auto* i = value.As<int64_t>()) return absl::StrCat(*i);
  if (const auto* d = value.As<double>()) return FloatText(*d);
  if (const auto* string = value.Object<const StringObject>()) return absl::StrCat("'", string->text, "'");
  if (const auto* type = value.As<DType>()) return std::string(DTypeName(*type));
  if (const auto* sequence = value.Object<SequenceObject>()) return SequenceText(*sequence, depth + 1);
  if (const auto* dict = value.Object<DictObject>()) return DictText(*dict, depth + 1);
  if (value.is_none()) return "None";
  return absl::StrCat("<", Describe(value), ">");
}

// Numbers compare by value whatever their type.
bool NumberOf(const Value& value, double* out) {
  if (const auto* b = value.As<bool>()) return *out = *b, true;
  if (const auto* i = value.As<int64_t>()) return *out = static_cast<double>(*i), true;
  if (const auto* d = value.As<double>()) return *out = *d, true;
  return false;
}

// A dtype equals its name.
DType DTypeOf(const Value& value) {
  if (const auto* type = value.As<DType>()) return *type;
  const auto* string = value.Object<const StringObject>();
  return string ? ParseDType(string->text) : DType::kInvalid;
}

bool EqualValues(const Value& a, const Value& b, int depth);

bool EqualItems(const SequenceObject& a, const SequenceObject& b, int depth) {
  if (a.kind != b.kind || a.items.size() != b.items.size() || depth > kMaxContainerDepth) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!EqualValues(a.items[i], b.items[i], depth)) return false;
  }
  return true;
}

bool EqualValues(const Value& a, const Value& b, int depth) {
  const auto *ia = a.As<int64_t>(), *ib = b.As<int64_t>();
  if (ia && ib) return *ia == *ib;
  double x = 0, y = 0;
  if (NumberOf(a, &x) && NumberOf(b, &y)) return x == y;
  if (a.Is<DType>() || b.Is<DType>()) return DTypeOf(a) != DType::kInvalid && DTypeOf(a) == DTypeOf(b);
  const auto *sa = a.Object<const StringObject>(), *sb = b.Object<const StringObject>();
  if (sa && sb) return sa->text == sb->text;
  const auto *qa = a.Object<SequenceObject>(), *qb = b.Object<SequenceObject>();
  if (qa && qb) return EqualItems(*qa, *qb, depth + 1);
  const auto *symbol_a = a.As<Symbol>(), *symbol_b = b.As<Symbol>();
  if (symbol_a && symbol_b) return *symbol_a->path == *symbol_b->path;
  const auto *buf_a = a.As<Buf>(), *buf_b = b.As<Buf>();
  if (buf_a && buf_b) return buf_a->id() == buf_b->id();
  const auto *fa = a.Object<const FunctionObject>(), *fb = b.Object<const FunctionObject>();
  if (fa && fb) return fa == fb;
  return a.is_none() && b.is_none();
}

}  // namespace

std::string Describe(const Value& value) {
  return std::visit(
      Overloaded{
          [](Poison) -> std::string { return "an erroneous value"; },
          [](NoneValue) -> std::string { return "None"; },
          [](Unset) -> std::string { return "a name without a value"; },
          [](Host host) { return absl::StrCat("'", *host.what, "', which belongs to the host program"); },
          [](Namespace space) { return absl::StrCat("the module '", *space.path, "'"); },
          [](Symbol symbol) { return *symbol.path; },
          [](bool b) -> std::string { return b ? "the bool True" : "the bool False"; },
          [](int64_t i) { return absl::StrCat("the int ", i); },
          [](double d) { return absl::StrCat("the float ", FloatText(d)); },
          [](const StringObject* s) { return absl::StrCat("the string '", s->text.substr(0, 60), "'"); },
          [](DType type) { return Cat("the dtype ", DTypeName(type)); },
          [](const Val& v) { return Cat("a value (", DTypeName(v.dtype()), ") that is known only at run time"); },
          [](const Buf& buf) { return absl::StrCat("the buffer '", buf.buffer().name, "'"); },
          [](const BufferRegion* region) { return absl::StrCat("a part of '", region->buffer.buffer().name, "'"); },
          [](const SequenceObject* s) -> std::string {
            return s->kind == SequenceKind::kTuple ? "a tuple" : s->kind == SequenceKind::kList ? "a list" : "a set";
          },
          [](const DictObject*) -> std::string { return "a dict"; },
          [](const FunctionObject* f) { return absl::StrCat("the function '", f->name, "'"); },
          [](const Builtin* b) { return Cat("'", b->path, "'"); },
          [](const Method* m) { return absl::StrCat("the method '", m->name, "'"); },
          [](const SliceObject*) -> std::string { return "a slice"; },
          [](const LoopObject*) -> std::string { return "a loop"; },
          [](const ContextObject*) -> std::string { return "a context for `with`"; },
          [](const TensorSpec*) -> std::string { return "the description of a tensor"; },
          [](const LayoutObject*) -> std::string { return "a layout"; },
      },
      value.v);
}

std::string ToText(const Value& value) {
  if (const auto* string = value.Object<const StringObject>()) return string->text;
  return ToRepr(value);
}

std::string ToRepr(const Value& value) { return Repr(value, 0); }

bool Equal(const Value& a, const Value& b) { return EqualValues(a, b, 0); }

bool IsSymbolic(const Value& value) {
  if (const auto* v = value.As<Val>()) return !v->is_weak();
  if (const auto* buf = value.As<Buf>()) return buf->buffer().scope == Scope::kVar;
  const auto* region = value.Object<const BufferRegion>();
  return region != nullptr && region->IsElement();
}

}  // namespace tilert::frontend
