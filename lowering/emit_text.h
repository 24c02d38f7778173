// Text of the emitted source: lines with an indentation that scopes own, and names that do not clash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace tilert {

class SourceWriter {
 public:
  void Line(std::string_view text);
  // A declaration of `name`, left out when nothing up to the end of the current scope uses it.
  void Optional(std::string_view name, std::string_view text);
  void Indent() { ++depth_; }
  void Dedent();
  // REQUIRES: every Indent has its Dedent.
  std::string Take();

 private:
  struct Pending {
    size_t line;
    int depth;
    std::string name;
  };
  bool UsedAfter(size_t line, std::string_view name) const;
  void Settle(int depth);

  std::vector<std::string> lines_;
  std::vector<bool> dropped_;
  std::vector<Pending> pending_;
  int depth_ = 0;
};

// Hands out C identifiers: what was asked for, made legal, or with _1, _2, … appended while it is taken. Names are free again
// when the scope they were made in closes. Never gives a keyword, a name of CUDA's or one of the prelude's.
class Names {
 public:
  explicit Names(const std::vector<std::string_view>& preludes);
  std::string Fresh(std::string_view wanted);
  void Open() { scopes_.emplace_back(); }
  void Close();

 private:
  absl::flat_hash_set<std::string> taken_;
  std::vector<std::vector<std::string>> scopes_;
};

// Expressions of emitted C++: text and what it takes to put it into a larger one. Larger precedence binds tighter.
struct CText {
  enum Precedence {
    kConditional = 2,
    kOr,
    kAnd,
    kBitOr,
    kBitXor,
    kBitAnd,
    kEquality,
    kRelation,
    kShift,
    kSum,
    kProduct,
    kUnary,
    kPrimary
  };
  std::string text;
  int precedence = kPrimary;
  // The text, in parentheses when it binds more loosely than `precedence`.
  std::string In(int precedence) const;
};
CText CBinary(const CText& a, std::string_view op, int precedence, const CText& b);
CText CNumber(int64_t value);
// Sum of the terms, numbers gathered at the end; "0" when there are none.
CText CSum(const std::vector<CText>& terms);
CText CScaled(const CText& a, int64_t factor);
// a / divisor, a % divisor of a non-negative a, with shifts and masks for powers of two.
CText CDivided(const CText& a, int64_t divisor);
CText CModulo(const CText& a, int64_t divisor);

// The text as one line of a comment: unprintable bytes become '?', and no backslash can join it to the next line.
std::string CommentText(std::string_view text);
// A C string literal of the bytes (any bytes).
std::string CStringLiteral(std::string_view bytes);

}  // namespace tilert
