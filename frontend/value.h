#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/source.h"
#include "ir/builder.h"

// What a Python expression evaluates to at compile time: numbers, strings and containers as in Python, or things of the program
// under construction (symbolic expressions, buffers, regions). Objects live in the interpreter's heap; values point at them.
namespace tilert::frontend {

struct Builtin;
struct BufferRegion;
struct DictObject;
struct FunctionObject;
struct LayoutObject;
struct LoopObject;
struct Method;
struct ContextObject;
struct SequenceObject;
struct SliceObject;
struct StringObject;
struct TensorSpec;

struct Poison {};     // an error about it was reported; using it reports nothing more
struct NoneValue {};  // None
struct Unset {        // a name that stands for no usable value; reading it is an error that says why
  const std::string* why;
  const std::string* hint;
};
struct Host {  // something of the host program (torch, a class); only an error where a kernel needs it
  const std::string* what;
};
struct Namespace {  // T, tilelang, math, T.GemmWarpPolicy
  const std::string* path;
};
struct Symbol {  // a member of an enumeration, e.g. T.GemmWarpPolicy.FullRow
  const std::string* path;
};

struct Value {
  std::variant<Poison, NoneValue, Unset, Host, Namespace, Symbol, bool, int64_t, double, const StringObject*, DType, Val, Buf,
               const BufferRegion*, SequenceObject*, DictObject*, const FunctionObject*, const Builtin*, const Method*,
               SliceObject*, const LoopObject*, const ContextObject*, const TensorSpec*, const LayoutObject*>
      v;

  Value() : v(NoneValue{}) {}
  template <typename T>
  requires(!std::is_same_v<T, Value> && std::is_constructible_v<decltype(v), T>) Value(T value) : v(std::move(value)) {}

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&v);
  }
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(v);
  }
  // The object of a pointer alternative, or null.
  template <typename T>
  T* Object() const {
    const auto* pointer = std::get_if<T*>(&v);
    return pointer ? *pointer : nullptr;
  }
  bool poisoned() const { return Is<Poison>(); }
  bool is_none() const { return Is<NoneValue>(); }
};

struct StringObject {
  std::string text;
};
// Also sets (without duplicates) and what range, zip and map yield.
enum class SequenceKind : uint8_t { kTuple, kList, kSet };
struct SequenceObject {
  SequenceKind kind;
  std::vector<Value> items;
};
struct DictObject {
  std::vector<std::pair<Value, Value>> items;  // in order of insertion
};
struct SliceObject {
  Value lower, upper, step;
};
// A string, list or dict method bound to its object.
struct Method {
  Value self;
  std::string name;
};

// A box of a buffer; an `extent` without value marks a dimension indexed by a single subscript.
struct BufferRegion {
  Buf buffer;
  std::vector<Val> start;
  std::vector<Val> extent;

  bool IsElement() const {
    for (const Val& e : extent) {
      if (e) return false;
    }
    return true;
  }
};

// What short values are called in messages: "an int", "the buffer 'A'".
std::string Describe(const Value& value);
// As Python's str() and repr() write it.
std::string ToText(const Value& value);
std::string ToRepr(const Value& value);
// Python's ==, for values that are known at compile time.
bool Equal(const Value& a, const Value& b);
// Symbolic: made of the program's own dims, constants, variables or elements.
bool IsSymbolic(const Value& value);

}  // namespace tilert::frontend
