// Methods of strings, lists, dicts and numbers.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "frontend/evaluator.h"

namespace tilert::frontend {
namespace {

using Arguments = std::vector<Value>;

// What a method gives; nothing if there is no such method with these arguments.
using Result = std::optional<Value>;

Result OnString(Context& context, const std::string& text, const std::string& name, const Arguments& args) {
  const auto string = [&](size_t i) -> const std::string* {
    const auto* s = i < args.size() ? args[i].Object<const StringObject>() : nullptr;
    return s ? &s->text : nullptr;
  };
  if (name == "self" && args.empty()) return context.Text(text);
  if (name == "lower" && args.empty()) return context.Text(absl::AsciiStrToLower(text));
  if (name == "upper" && args.empty()) return context.Text(absl::AsciiStrToUpper(text));
  if (name == "strip" && args.empty()) return context.Text(std::string(absl::StripAsciiWhitespace(text)));
  if (name == "isdigit" && args.empty()) {
    return Value(!text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }));
  }
  if (name == "startswith" && args.size() == 1 && string(0)) return Value(text.rfind(*string(0), 0) == 0);
  if (name == "endswith" && args.size() == 1 && string(0)) {
    const std::string& end = *string(0);
    return Value(text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0);
  }
  if (name == "replace" && args.size() == 2 && string(0) && string(1) && !string(0)->empty()) {
    return context.Text(absl::StrReplaceAll(text, {{*string(0), *string(1)}}));
  }
  if (name == "split" && args.size() <= 1 && (args.empty() || (string(0) && !string(0)->empty()))) {
    Arguments parts;
    if (args.empty()) {
      for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(" \t\n"), absl::SkipEmpty()))
        parts.push_back(context.Text(std::string(part)));
    } else {
      for (absl::string_view part : absl::StrSplit(text, *string(0))) parts.push_back(context.Text(std::string(part)));
    }
    return context.List(std::move(parts));
  }
  const auto* sequence = args.size() == 1 ? args[0].Object<SequenceObject>() : nullptr;
  if (name == "join" && sequence) {
    std::vector<std::string> parts;
    for (const Value& item : sequence->items) parts.push_back(ToText(item));
    return context.Text(absl::StrJoin(parts, text));
  }
  return std::nullopt;
}

Result OnSequence(Context& context, SequenceObject* sequence, const std::string& name, const Arguments& args) {
  std::vector<Value>& items = sequence->items;
  if (name == "index" || name == "count") {
    if (args.size() != 1) return std::nullopt;
    const auto same = [&](const Value& item) { return Equal(item, args[0]); };
    if (name == "count") return Value(static_cast<int64_t>(std::count_if(items.begin(), items.end(), same)));
    const auto at = std::find_if(items.begin(), items.end(), same);
    return at == items.end() ? Value(int64_t{-1}) : Value(static_cast<int64_t>(at - items.begin()));
  }
  if (name == "copy" && args.empty()) return Value(context.New(SequenceObject{sequence->kind, items}));
  if (sequence->kind == SequenceKind::kTuple) return std::nullopt;
  if ((name == "append" || name == "add") && args.size() == 1) return items.push_back(args[0]), Value();
  if (name == "reverse" && args.empty()) return std::reverse(items.begin(), items.end()), Value();
  if (name == "extend" && args.size() == 1) {
    const auto* other = args[0].Object<SequenceObject>();
    if (other == nullptr) return std::nullopt;
    const std::vector<Value> added = other->items;
    context.Spend(added.size());
    items.insert(items.end(), added.begin(), added.end());
    return Value();
  }
  const auto* at = args.empty() ? nullptr : args[0].As<int64_t>();
  const auto size = static_cast<int64_t>(items.size());
  if (name == "pop" && size > 0 && (args.empty() || at)) {
    const int64_t i = at ? (*at < 0 ? *at + size : *at) : size - 1;
    if (i < 0 || i >= size) return std::nullopt;
    Value taken = items[i];
    items.erase(items.begin() + i);
    return taken;
  }
  if (name == "insert" && args.size() == 2 && at) {
    const int64_t i = std::clamp<int64_t>(*at < 0 ? *at + size : *at, 0, size);
    items.insert(items.begin() + i, args[1]);
    return Value();
  }
  return std::nullopt;
}

Result OnDict(Context& context, DictObject* dict, const std::string& name, const Arguments& args) {
  if (name == "get" && (args.size() == 1 || args.size() == 2)) {
    for (const auto& [key, value] : dict->items) {
      if (Equal(key, args[0])) return value;
    }
    return args.size() == 2 ? args[1] : Value();
  }
  if (name == "copy" && args.empty()) return Value(context.New(DictObject(*dict)));
  if (name == "update" && args.size() == 1) {
    const auto* other = args[0].Object<DictObject>();
    if (other == nullptr) return std::nullopt;
    for (const auto& item : std::vector(other->items)) {
      const auto at =
          std::find_if(dict->items.begin(), dict->items.end(), [&](const auto& old) { return Equal(old.first, item.first); });
      if (at == dict->items.end()) {
        dict->items.push_back(item);
      } else {
        at->second = item.second;
      }
    }
    return Value();
  }
  if (!args.empty() || (name != "keys" && name != "values" && name != "items")) return std::nullopt;
  Arguments out;
  for (const auto& [key, value] : dict->items) {
    out.push_back(name == "keys" ? key : name == "values" ? value : context.Tuple({key, value}));
  }
  return context.List(std::move(out));
}

}  // namespace

Value Evaluator::InvokeMethod(const Method& method, const CallArgs& args, SourceRange range) {
  const Value& self = method.self;
  if (self.Object<const FunctionObject>()) return self;
  if (method.name == "astype") {
    if (args.positional.size() != 1) return Fail(range, "astype takes a dtype", "write x.astype(T.float16)");
    const std::optional<DType> type = Type(args.positional[0], args.ranges[0], "the argument of astype");
    return type ? InvokeDType(*type, CallArgs{{self}, {range}, {}, false}, range) : Value(Poison{});
  }
  Result result;
  if (const auto* number = self.As<int64_t>(); number && method.name == "bit_length" && args.positional.empty()) {
    const uint64_t magnitude = *number < 0 ? -static_cast<uint64_t>(*number) : static_cast<uint64_t>(*number);
    return int64_t{64 - (magnitude == 0 ? 64 : __builtin_clzll(magnitude))};
  }
  if (args.named.empty()) {
    if (const auto* text = self.Object<const StringObject>()) result = OnString(*this, text->text, method.name, args.positional);
    if (auto* sequence = self.Object<SequenceObject>()) result = OnSequence(*this, sequence, method.name, args.positional);
    if (auto* dict = self.Object<DictObject>()) result = OnDict(*this, dict, method.name, args.positional);
  }
  if (result) return *result;
  return Fail(range, absl::StrCat(Describe(self), " has no method '", method.name, "' that takes these arguments"));
}

}  // namespace tilert::frontend
