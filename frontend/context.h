#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "frontend/ast.h"
#include "frontend/diagnostics.h"
#include "frontend/objects.h"
#include "frontend/settings.h"
#include "frontend/value.h"

namespace tilert::frontend {

struct Reducer;
struct View;

// What evaluation needs everywhere: the heap of objects, the program under construction, errors, and conversions of values that
// say what is wrong. A conversion that fails reports (unless the value is poisoned: then something was reported before) and
// returns nothing.
class Context {
 public:
  Context(Diagnostics* diagnostics, ProgramBuilder* builder, const Settings* settings);
  ~Context();

  Diagnostics& diagnostics() { return *diagnostics_; }
  ProgramBuilder& builder() { return *builder_; }
  // Reports and returns poison.
  Value Fail(SourceRange range, std::string message, std::string hint = "");

  // --- Objects; they live as long as the context. What is made and walked over counts, so that no source can exhaust the
  // machine.
  void Spend(size_t cost) { spent_ += static_cast<int64_t>(cost); }
  template <typename T>
  T* New(T object) {
    auto owned = std::make_shared<T>(std::move(object));
    heap_.push_back(owned);
    return owned.get();
  }
  Value Text(std::string text);
  Value Tuple(std::vector<Value> items) { return Sequence(SequenceKind::kTuple, std::move(items)); }
  Value List(std::vector<Value> items) { return Sequence(SequenceKind::kList, std::move(items)); }
  Value Sequence(SequenceKind kind, std::vector<Value> items);
  const std::string* Intern(std::string text);
  // The value of a symbolic expression, or poison if it has none.
  Value Wrap(Val value) { return value ? Value(value) : Value(Poison{}); }

  // --- Conversions.
  std::optional<int64_t> Int(const Value& value, SourceRange range, std::string_view what);
  std::optional<bool> Bool(const Value& value, SourceRange range, std::string_view what);
  std::optional<std::string> String(const Value& value, SourceRange range, std::string_view what);
  // Of a 4-bit type (PackingOf), the type in which its elements are seen.
  std::optional<DType> Type(const Value& value, SourceRange range, std::string_view what);
  // A scalar, known or not; numbers of the source stay without a type of their own.
  Val Number(const Value& value, SourceRange range, std::string_view what);
  bool IsNumber(const Value& value) const;
  // A shape: a tuple or list of numbers, or one number.
  std::optional<std::vector<Val>> Extents(const Value& value, SourceRange range, std::string_view what);
  std::optional<std::vector<int32_t>> Ints(const Value& value, SourceRange range, std::string_view what);
  // A buffer or a part of one. A whole buffer has all starts 0.
  std::optional<BufferRegion> Region(const Value& value, SourceRange range, std::string_view what);
  // The region as an operand; single subscripts have extent 1.
  Tile ToTile(const BufferRegion& region);
  // Python's truth; nothing, without a report, if it is known only at run time (IsSymbolic).
  std::optional<bool> Truth(const Value& value, SourceRange range);
  // The items of anything that can be iterated at compile time.
  std::optional<std::vector<Value>> Items(const Value& value, SourceRange range, std::string_view what);

  // --- Buffers that are views of others (frontend/views.h).
  void AddView(View view);
  const std::vector<View>& views() const { return views_; }
  // Fragments that parallel loops accumulate into (frontend/legalize.h).
  void AddReducer(Reducer reducer);
  const std::vector<Reducer>& reducers() const { return reducers_; }

  // --- The program's own symbols, made on first use.
  Value DimOrSetting(const std::string& name);
  Value ConstantOrSetting(const std::string& name, std::vector<int64_t> candidates);
  Value SettingValue(const std::string& name, const Setting& setting);
  const Setting* FindSetting(const std::string& name);
  // Settings that nobody asked for.
  std::vector<std::string> UnusedSettings() const;

  // --- Operators (arithmetic.cc).
  Value UnaryOperator(ast::UnaryOp op, const Value& operand, SourceRange range);
  Value BinaryOperator(ast::BinaryOp op, const Value& a, const Value& b, SourceRange range);
  Value CompareOperator(ast::CompareOp op, const Value& a, const Value& b, SourceRange range);

 protected:
  Value Wrong(const Value& value, SourceRange range, std::string_view what, std::string_view wanted);
  Val Dim(const std::string& name);
  Val Constant(const std::string& name, const std::vector<int64_t>& candidates);

  Diagnostics* diagnostics_;
  ProgramBuilder* builder_;
  const Settings* settings_;
  int64_t spent_ = 0;

 private:
  std::vector<std::shared_ptr<void>> heap_;
  absl::flat_hash_map<std::string, Val> dims_, constants_;
  absl::flat_hash_map<std::string, bool> used_settings_;
  std::vector<View> views_;
  std::vector<Reducer> reducers_;
};

}  // namespace tilert::frontend
