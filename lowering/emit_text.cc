#include "lowering/emit_text.h"

#include <bit>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr size_t kMaxName = 48;

constexpr std::string_view kReserved[] = {
    // C++ keywords and alternative tokens
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "char16_t",
    "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public",
    "register", "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union",
    "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "typeof",
    // what NVRTC declares by itself and kernels use
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "main", "printf", "linux", "unix", "signbit", "isnan", "isinf",
    "isfinite", "min", "max", "abs", "exp", "log", "sin", "cos", "tanh", "erf", "sqrt", "floor", "ceil", "round", "trunc", "pow",
    "fma", "clock", "time", "assert", "malloc", "free", "memcpy", "memset", "NULL", "std", "cuda", "nv"};

bool IsIdentifierChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Names that a text declares or may declare: every identifier that is called, instantiated or follows struct, using or #define.
void CollectNames(std::string_view text, absl::flat_hash_set<std::string>* names) {
  std::string_view before;
  for (size_t i = 0; i < text.size();) {
    if (!IsIdentifierChar(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsIdentifierChar(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    const bool used = end < text.size() && (text[end] == '(' || text[end] == '<');
    if (used || before == "struct" || before == "using" || before == "define" || before == "namespace") names->emplace(word);
    before = word;
    i = end;
  }
}

// The value of a plain non-negative decimal number.
std::optional<int64_t> AsNumber(const CText& a) {
  int64_t value = 0;
  return !a.text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(a.text[0])) && absl::SimpleAtoi(a.text, &value)
             ? std::optional(value)
             : std::nullopt;
}

}  // namespace

void SourceWriter::Line(std::string_view text) {
  lines_.push_back(std::string(static_cast<size_t>(depth_) * 2, ' ') + std::string(text));
  dropped_.push_back(false);
}

void SourceWriter::Optional(std::string_view name, std::string_view text) {
  pending_.push_back({lines_.size(), depth_, std::string(name)});
  Line(text);
}

void SourceWriter::Dedent() {
  Settle(depth_);
  --depth_;
}

std::string SourceWriter::Take() {
  Settle(0);
  std::string text;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (!dropped_[i]) text += lines_[i] + "\n";
  }
  return text;
}

bool SourceWriter::UsedAfter(size_t line, std::string_view name) const {
  for (size_t i = line + 1; i < lines_.size(); ++i) {
    const std::string& text = lines_[i];
    for (size_t at = text.find(name); !dropped_[i] && at != std::string::npos; at = text.find(name, at + 1)) {
      const bool starts = at == 0 || !IsIdentifierChar(text[at - 1]),
                 ends = at + name.size() >= text.size() || !IsIdentifierChar(text[at + name.size()]);
      if (starts && ends) return true;
    }
  }
  return false;
}

// The last ones first: a declaration may be the only user of an earlier one.
void SourceWriter::Settle(int depth) {
  while (!pending_.empty() && pending_.back().depth >= depth) {
    dropped_[pending_.back().line] = !UsedAfter(pending_.back().line, pending_.back().name);
    pending_.pop_back();
  }
}

Names::Names(const std::vector<std::string_view>& preludes) {
  for (std::string_view word : kReserved) taken_.emplace(word);
  for (std::string_view text : preludes) CollectNames(text, &taken_);
  Open();
}

std::string Names::Fresh(std::string_view wanted) {
  std::string name;
  for (char c : wanted.substr(0, kMaxName)) {
    // Two underscores in a row are the implementation's.
    const char legal = IsIdentifierChar(c) ? c : '_';
    if (legal == '_' && (name.empty() || name.back() == '_')) continue;
    name += legal;
  }
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) name = Cat("v", name);
  std::string unique = name;
  for (int n = 1; taken_.contains(unique); ++n) unique = Cat(name, name.back() == '_' ? "" : "_", n);
  taken_.insert(unique);
  scopes_.back().push_back(unique);
  return unique;
}

void Names::Close() {
  for (const std::string& name : scopes_.back()) taken_.erase(name);
  scopes_.pop_back();
}

std::string CText::In(int wanted) const { return precedence < wanted ? Cat("(", text, ")") : text; }

CText CBinary(const CText& a, std::string_view op, int precedence, const CText& b) {
  // Mixed shifts, masks and sums are clearer (and free of compiler warnings) with parentheses.
  const bool bits = precedence <= CText::kShift && precedence >= CText::kBitOr && precedence != CText::kEquality &&
                    precedence != CText::kRelation;
  const int left = bits ? CText::kUnary : precedence, right = bits ? CText::kUnary : precedence + 1;
  return {Cat(a.In(left), " ", op, " ", b.In(right)), precedence};
}

CText CNumber(int64_t value) {
  const bool wide = value > INT32_MAX || value < INT32_MIN;
  return {Cat(value, wide ? "ll" : ""), value < 0 ? CText::kUnary : CText::kPrimary};
}

CText CSum(const std::vector<CText>& terms) {
  CText sum;
  int64_t constant = 0;
  for (const CText& term : terms) {
    if (const std::optional<int64_t> number = AsNumber(term)) {
      constant += *number;
    } else {
      sum = sum.text.empty() ? term : CBinary(sum, "+", CText::kSum, term);
    }
  }
  if (sum.text.empty()) return CNumber(constant);
  if (constant < 0) return CBinary(sum, "-", CText::kSum, CNumber(-constant));
  return constant == 0 ? sum : CBinary(sum, "+", CText::kSum, CNumber(constant));
}

CText CScaled(const CText& a, int64_t factor) {
  if (const std::optional<int64_t> number = AsNumber(a)) return CNumber(*number * factor);
  if (factor == 1) return a;
  if (factor == 0) return CNumber(0);
  return CBinary(a, "*", CText::kProduct, CNumber(factor));
}

CText CDivided(const CText& a, int64_t divisor) {
  if (const std::optional<int64_t> number = AsNumber(a)) return CNumber(*number / divisor);
  if (divisor == 1) return a;
  if (std::has_single_bit(static_cast<uint64_t>(divisor))) {
    return CBinary(a, ">>", CText::kShift, CNumber(std::countr_zero(static_cast<uint64_t>(divisor))));
  }
  return CBinary(a, "/", CText::kProduct, CNumber(divisor));
}

CText CModulo(const CText& a, int64_t divisor) {
  if (const std::optional<int64_t> number = AsNumber(a)) return CNumber(*number % divisor);
  if (divisor == 1) return CNumber(0);
  if (std::has_single_bit(static_cast<uint64_t>(divisor))) return CBinary(a, "&", CText::kBitAnd, CNumber(divisor - 1));
  return CBinary(a, "%", CText::kProduct, CNumber(divisor));
}

std::string CommentText(std::string_view text) {
  std::string line;
  for (char c : text) line += c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string CStringLiteral(std::string_view bytes) {
  std::string text = "\"";
  for (char c : bytes) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (u >= 0x20 && u < 0x7f && c != '"' && c != '\\' && c != '?') {
      text += c;
    } else {
      // Three octal digits end by themselves, unlike hexadecimal ones.
      text += '\\';
      text += static_cast<char>('0' + (u >> 6));
      text += static_cast<char>('0' + (u >> 3 & 7));
      text += static_cast<char>('0' + (u & 7));
    }
  }
  return text + "\"";
}

}  // namespace tilert
