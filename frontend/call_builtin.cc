// Binding the arguments of a call to the parameters of a function of the language.
#include "absl/strings/str_cat.h"
#include "frontend/evaluator.h"
#include "frontend/suggest.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

// The next word of `text`, taken off its front.
std::string_view NextWord(std::string_view* text) {
  const size_t begin = text->find_first_not_of(' ');
  if (begin == std::string_view::npos) return *text = "", "";
  const size_t end = std::min(text->find(' ', begin), text->size());
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

}  // namespace

const Value& Args::operator[](std::string_view name) const {
  static const Value none;
  for (const Slot& slot : slots_) {
    if (slot.name == name) return slot.value;
  }
  return none;
}

SourceRange Args::RangeOf(std::string_view name) const {
  for (const Slot& slot : slots_) {
    if (slot.name == name && slot.given) return slot.range;
  }
  return range_;
}

Value Evaluator::InvokeBuiltin(const Builtin& builtin, CallArgs args, SourceRange range) {
  Args bound(&builtin, range);
  std::string_view names = builtin.params;
  bool takes_rest = false, takes_keywords = false;
  size_t next = 0;
  for (std::string_view word = NextWord(&names); !word.empty(); word = NextWord(&names)) {
    if (word == "**") {
      takes_keywords = true;
      continue;
    }
    if (word == "*" || word == "|") {
      takes_rest = true;
      for (; word == "*" && next < args.positional.size(); ++next) {
        bound.rest_.push_back(args.positional[next]);
        bound.rest_ranges_.push_back(args.ranges[next]);
      }
      continue;
    }
    Args::Slot slot;
    slot.required = word.back() != '?';
    slot.name = slot.required ? word : word.substr(0, word.size() - 1);
    if (!takes_rest && next < args.positional.size()) {
      slot.value = args.positional[next];
      slot.range = args.ranges[next++];
      slot.given = true;
    }
    bound.slots_.push_back(slot);
  }
  if (next < args.positional.size()) {
    return Fail(args.ranges[next], Cat(builtin.path, " takes at most ", bound.slots_.size(), " arguments by position"),
                Cat("its parameters are: ", builtin.params));
  }
  for (CallArgs::Named& named : args.named) {
    Args::Slot* slot = nullptr;
    std::vector<std::string> known;
    for (Args::Slot& candidate : bound.slots_) {
      known.emplace_back(candidate.name);
      if (candidate.name == named.name) slot = &candidate;
    }
    if (slot == nullptr && takes_keywords) {
      bound.keywords_.emplace_back(named.name, named.value);
      continue;
    }
    if (slot == nullptr) {
      const std::string similar = Similar(named.name, known);
      return Fail(named.range, Cat(builtin.path, " has no parameter '", named.name, "'"),
                  similar.empty() ? Cat("its parameters are: ", builtin.params) : Cat("did you mean '", similar, "'?"));
    }
    if (slot->given) return Fail(named.range, Cat("'", named.name, "' is given twice"));
    slot->value = named.value;
    slot->range = named.range;
    slot->given = true;
  }
  for (const Args::Slot& slot : bound.slots_) {
    if (slot.required && !slot.given) return Fail(range, Cat(builtin.path, " lacks its argument '", slot.name, "'"));
  }
  return builtin.handler(*this, bound);
}

}  // namespace tilert::frontend
