#include "frontend/context.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/legalize.h"
#include "ir/status_util.h"

namespace tilert::frontend {

Context::Context(Diagnostics* diagnostics, ProgramBuilder* builder, const Settings* settings)
    : diagnostics_(diagnostics), builder_(builder), settings_(settings) {}

Context::~Context() = default;

Value Context::Text(std::string text) { return static_cast<const StringObject*>(New(StringObject{std::move(text)})); }
Value Context::Sequence(SequenceKind kind, std::vector<Value> items) {
  Spend(items.size());
  return New(SequenceObject{kind, std::move(items)});
}
const std::string* Context::Intern(std::string text) { return New(std::move(text)); }

void Context::AddView(View view) { views_.push_back(std::move(view)); }
void Context::AddReducer(Reducer reducer) { reducers_.push_back(reducer); }

Value Context::Fail(SourceRange range, std::string message, std::string hint) {
  diagnostics_->Error(range, std::move(message), std::move(hint));
  return Poison{};
}

// Says why `value` cannot be what was asked for.
Value Context::Wrong(const Value& value, SourceRange range, std::string_view what, std::string_view wanted) {
  if (value.poisoned()) return Poison{};
  std::string hint;
  if (IsSymbolic(value)) hint = "give it a fixed value with --set, or as a default argument";
  if (value.Is<Host>()) hint = "the host program does not run here: write the value itself, or make it a parameter";
  return Fail(range, Cat(what, " must be ", wanted, ", not ", Describe(value)), hint);
}

std::optional<int64_t> Context::Int(const Value& value, SourceRange range, std::string_view what) {
  if (const auto* i = value.As<int64_t>()) return *i;
  if (const auto* b = value.As<bool>()) return *b;
  if (const auto* d = value.As<double>(); d && *d == std::floor(*d) && std::abs(*d) < 9e15) return static_cast<int64_t>(*d);
  Wrong(value, range, what, "an int that is known at compile time");
  return std::nullopt;
}

std::optional<bool> Context::Bool(const Value& value, SourceRange range, std::string_view what) {
  if (const auto* b = value.As<bool>()) return *b;
  if (const auto* i = value.As<int64_t>()) return *i != 0;
  if (value.is_none()) return false;
  Wrong(value, range, what, "True or False");
  return std::nullopt;
}

std::optional<std::string> Context::String(const Value& value, SourceRange range, std::string_view what) {
  if (const auto* string = value.Object<const StringObject>()) return string->text;
  Wrong(value, range, what, "a string");
  return std::nullopt;
}

std::optional<DType> Context::Type(const Value& value, SourceRange range, std::string_view what) {
  if (const auto* type = value.As<DType>()) return *type;
  if (const Packing packing = PackingOf(value); packing != Packing::kNone) return ElementType(packing);
  std::string name;
  if (const auto* string = value.Object<const StringObject>()) name = string->text;
  if (const auto* host = value.As<Host>(); host && host->what->rfind("torch.", 0) == 0) name = host->what->substr(6);
  if (const DType type = ParseDType(name); type != DType::kInvalid) return type;
  if (name.empty()) {
    Wrong(value, range, what, "a dtype such as T.float16 or \"float16\"");
  } else {
    Fail(range, Cat(what, ": '", name, "' is no dtype"),
         "bool, int8 … int64, uint8 … uint64, float16, bfloat16, float32, float64, "
         "float8_e4m3 and float8_e5m2 exist");
  }
  return std::nullopt;
}

bool Context::IsNumber(const Value& value) const {
  return value.Is<int64_t>() || value.Is<double>() || value.Is<bool>() || value.Is<Val>() || IsSymbolic(value);
}

Val Context::Number(const Value& value, SourceRange range, std::string_view what) {
  if (const auto* i = value.As<int64_t>()) return builder_->Lit(*i);
  if (const auto* d = value.As<double>()) return builder_->Lit(*d);
  if (const auto* b = value.As<bool>()) return builder_->Int(*b, DType::kBool);
  if (const auto* v = value.As<Val>()) return *v;
  if (const auto* buf = value.As<Buf>()) {
    if (buf->buffer().scope == Scope::kVar) return builder_->Load(*buf, {});
    Fail(range, Cat(what, " must be a number, not the whole buffer '", buf->buffer().name, "'"),
         Cat("name an element, as in ", buf->buffer().name, "[i]"));
    return {};
  }
  if (const auto* region = value.Object<const BufferRegion>()) {
    if (region->IsElement()) return builder_->Load(region->buffer, region->start);
    Fail(range, Cat(what, " must be a number, not a part of '", region->buffer.buffer().name, "'"),
         "give one subscript for each dimension");
    return {};
  }
  Wrong(value, range, what, "a number");
  return {};
}

std::optional<std::vector<Val>> Context::Extents(const Value& value, SourceRange range, std::string_view what) {
  std::vector<Val> extents;
  if (const auto* sequence = value.Object<SequenceObject>()) {
    for (const Value& item : sequence->items) {
      const Val extent = Number(item, range, what);
      if (!extent) return std::nullopt;
      if (IsFloat(extent.dtype())) {
        Fail(range, Cat(what, " must be made of integers"), "use // for a division of integers");
        return std::nullopt;
      }
      extents.push_back(extent);
    }
    return extents;
  }
  if (!IsNumber(value)) {
    Wrong(value, range, what, "a tuple or list of integers");
    return std::nullopt;
  }
  const Val extent = Number(value, range, what);
  if (!extent) return std::nullopt;
  return std::vector<Val>{extent};
}

std::optional<std::vector<int32_t>> Context::Ints(const Value& value, SourceRange range, std::string_view what) {
  const std::optional<std::vector<Value>> items = Items(value, range, what);
  if (!items) return std::nullopt;
  std::vector<int32_t> out;
  for (const Value& item : *items) {
    const std::optional<int64_t> i = Int(item, range, what);
    if (!i) return std::nullopt;
    out.push_back(static_cast<int32_t>(*i));
  }
  return out;
}

std::optional<BufferRegion> Context::Region(const Value& value, SourceRange range, std::string_view what) {
  if (const auto* region = value.Object<const BufferRegion>()) return *region;
  if (const auto* buf = value.As<Buf>()) {
    BufferRegion whole{*buf, {}, {}};
    for (const Expr extent : buf->buffer().shape) {
      whole.start.push_back(builder_->Lit(int64_t{0}));
      whole.extent.push_back(builder_->Wrap(extent));
    }
    return whole;
  }
  Wrong(value, range, what, "a buffer or a part of one");
  return std::nullopt;
}

Tile Context::ToTile(const BufferRegion& region) {
  std::vector<Val> extent = region.extent;
  for (Val& e : extent) {
    if (!e) e = builder_->Lit(int64_t{1});
  }
  return Tile(region.buffer, region.start, std::move(extent));
}

std::optional<bool> Context::Truth(const Value& value, SourceRange range) {
  if (const auto* b = value.As<bool>()) return *b;
  if (const auto* i = value.As<int64_t>()) return *i != 0;
  if (const auto* d = value.As<double>()) return *d != 0;
  if (value.is_none()) return false;
  if (const auto* string = value.Object<const StringObject>()) return !string->text.empty();
  if (const auto* sequence = value.Object<SequenceObject>()) return !sequence->items.empty();
  if (const auto* dict = value.Object<DictObject>()) return !dict->items.empty();
  if (IsSymbolic(value) || value.poisoned()) return std::nullopt;
  if (value.Is<DType>() || value.Object<const FunctionObject>()) return true;
  if (const auto* host = value.As<Host>()) {
    Fail(range, absl::StrCat("this condition asks the host program ('", *host->what, "'), which does not run here"),
         "write the value itself, or make it a parameter");
    return std::nullopt;
  }
  Wrong(value, range, "a condition", "True or False");
  return std::nullopt;
}

std::optional<std::vector<Value>> Context::Items(const Value& value, SourceRange range, std::string_view what) {
  if (const auto* sequence = value.Object<SequenceObject>()) {
    Spend(sequence->items.size());
    return sequence->items;
  }
  if (const auto* dict = value.Object<DictObject>()) {
    std::vector<Value> keys;
    for (const auto& [key, item] : dict->items) keys.push_back(key);
    return keys;
  }
  if (value.Object<const StringObject>() || value.Is<DType>()) {
    std::vector<Value> letters;
    for (char c : ToText(value)) letters.push_back(Text(std::string(1, c)));
    return letters;
  }
  if (const auto* loop = value.Object<const LoopObject>(); loop && loop->kind == LoopObject::Kind::kRange) {
    const auto begin = Int(loop->begin, range, what), end = Int(loop->end, range, what), step = Int(loop->step, range, what);
    if (!begin || !end || !step) return std::nullopt;
    constexpr size_t kMaxItems = 1 << 20;
    std::vector<Value> items;

    for (int64_t i = *begin; *step > 0 ? i < *end : i > *end;) {
      if (items.size() == kMaxItems) {
        Fail(range, absl::StrCat("a range of more than ", kMaxItems, " is too long to be walked at compile time"));
        return std::nullopt;
      }
      items.push_back(i);
      if (*step == 0 || __builtin_add_overflow(i, *step, &i)) break;
    }
    Spend(items.size());
    return items;
  }
  // A single block index unpacks like a tuple of one.
  if (value.Is<Val>()) return std::vector<Value>{value};
  Wrong(value, range, what, "something to iterate over");
  return std::nullopt;
}

// --- Symbols of the program
// -----------------------------------------------------------------------------------------------------

Val Context::Dim(const std::string& name) {
  const auto [it, added] = dims_.try_emplace(name);
  if (added) it->second = builder_->Dim(name);
  return it->second;
}

Val Context::Constant(const std::string& name, const std::vector<int64_t>& candidates) {
  const auto [it, added] = constants_.try_emplace(name);
  if (added) it->second = builder_->Constant(name, candidates);
  return it->second;
}

const Setting* Context::FindSetting(const std::string& name) {
  const auto it = settings_->find(name);
  if (it == settings_->end()) return nullptr;
  used_settings_[name] = true;
  return &it->second;
}

std::vector<std::string> Context::UnusedSettings() const {
  std::vector<std::string> unused;
  for (const auto& [name, setting] : *settings_) {
    if (!used_settings_.contains(name)) unused.push_back(name);
  }
  return unused;
}

Value Context::SettingValue(const std::string& name, const Setting& setting) {
  return std::visit(Overloaded{
                        [](int64_t value) -> Value { return value; },
                        [](double value) -> Value { return value; },
                        [](bool value) -> Value { return value; },
                        [&](const std::string& value) -> Value { return value == "None" ? Value() : Text(value); },
                        [&](DynamicDim) -> Value { return Dim(name); },
                        [&](const Candidates& list) -> Value { return Constant(name, list.values); },
                        [&](const TupleSetting& tuple) -> Value {
                          std::vector<Value> items;
                          for (const std::string& item : tuple.items) items.push_back(SettingValue(name, *ParseSetting(item)));
                          return Tuple(std::move(items));
                        },
                    },
                    setting);
}

Value Context::DimOrSetting(const std::string& name) {
  const Setting* setting = FindSetting(name);
  return setting ? SettingValue(name, *setting) : Value(Dim(name));
}

Value Context::ConstantOrSetting(const std::string& name, std::vector<int64_t> candidates) {
  const Setting* setting = FindSetting(name);
  return setting ? SettingValue(name, *setting) : Value(Constant(name, candidates));
}

}  // namespace tilert::frontend
