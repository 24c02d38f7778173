#include "ir/printer_expr.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/str_join.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

std::string FloatText(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Reads "T.name(operands)" out of parts.
std::string CallText(std::string_view name, const std::vector<std::string>& args) {
  return Cat("T.", name, "(", absl::StrJoin(args, ", "), ")");
}

}  // namespace

std::string QuotedText(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "\"";
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (c == '\n') {
      text += "\\n";
    } else if (byte < 0x20 || byte > 0x7e) {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string ExprPrinter::Name(NameKind kind, uint32_t id) const {
  if (names_ != nullptr) {
    if (const std::string* name = names_->Find(kind, id)) return *name;
  }
  switch (kind) {
    case NameKind::kDim: return Sanitize(p_.dims[id].name);
    case NameKind::kConstant: return Sanitize(p_.constants[id].name);
    case NameKind::kScalar: return Sanitize(p_.scalars[id].name);
    case NameKind::kBuffer: return Sanitize(p_.buffers[id].name);
    case NameKind::kVar: return Sanitize(p_.vars[id].name);
  }
  return "_";
}

bool ExprPrinter::IsImm(Expr e) const {
  const ExprOp op = p_.exprs[e].op;
  return op == ExprOp::kIntImm || op == ExprOp::kFloatImm;
}

std::string ExprPrinter::Number(const ExprNode& node, bool typed) const {
  if (node.op == ExprOp::kFloatImm) {
    if (std::isnan(node.f)) return Cat("T.", DTypeName(node.dtype), "(\"nan\")");
    if (std::isinf(node.f)) return Cat("T.", DTypeName(node.dtype), node.f < 0 ? "(\"-inf\")" : "(\"inf\")");
    return typed ? Cat("T.", DTypeName(node.dtype), "(", FloatText(node.f), ")") : FloatText(node.f);
  }
  const bool is_big = KindOf(node.dtype) == DTypeKind::kUnsigned && node.i < 0;  // beyond int64
  std::string digits = is_big ? Cat(static_cast<uint64_t>(node.i)) : Cat(node.i);
  // The least number is read as the negative of one that is too large.
  if (!is_big && node.i == INT64_MIN) digits = "(-9223372036854775807 - 1)";
  return typed || is_big || node.dtype == DType::kBool ? Cat("T.", DTypeName(node.dtype), "(", digits, ")") : digits;
}

std::string ExprPrinter::Operand(Expr e, bool bare, bool parens_infix) const {
  const ExprNode& node = p_.exprs[e];
  if (IsImm(e)) return Number(node, !bare);
  Expr a, b;
  const bool is_loose = (IsInfixOp(node.op) && !IsCeilDiv(node, &a, &b)) || node.op == ExprOp::kNot;
  return is_loose && parens_infix ? Cat("(", Node(node), ")") : Node(node);
}

std::string ExprPrinter::Value(Expr e, DType expected) const {
  if (!e) return "None";
  return Operand(e, expected != DType::kInvalid && p_.exprs[e].dtype == expected, false);
}

// ((a + b) − 1) // b, on index, where at least one of a and b is no number.
bool ExprPrinter::IsCeilDiv(const ExprNode& node, Expr* a, Expr* b) const {
  if (node.op != ExprOp::kFloorDiv || node.dtype != DType::kIndex) return false;
  const ExprNode& minus = p_.exprs[node.args[0]];
  if (minus.op != ExprOp::kSub || !p_.exprs.IsInt(minus.args[1], 1)) return false;
  const ExprNode& plus = p_.exprs[minus.args[0]];
  if (plus.op != ExprOp::kAdd || plus.args[1] != node.args[1]) return false;
  *a = plus.args[0];
  *b = plus.args[1];
  return !IsImm(*a) || !IsImm(*b);
}

std::string ExprPrinter::Node(const ExprNode& node) const {
  const auto id = static_cast<uint32_t>(node.i);
  switch (node.op) {
    case ExprOp::kIntImm:
    case ExprOp::kFloatImm: return Number(node, true);
    case ExprOp::kDim: return Name(NameKind::kDim, id);
    case ExprOp::kConstant: return Name(NameKind::kConstant, id);
    case ExprOp::kScalar: return Name(NameKind::kScalar, id);
    case ExprOp::kVar: return Name(NameKind::kVar, id);
    case ExprOp::kLoad: return Element(id, node.args);
    case ExprOp::kCast: return CallText("cast", {Value(node.args[0]), QuotedText(DTypeName(node.dtype))});
    case ExprOp::kReinterpret: return CallText("reinterpret", {Value(node.args[0]), QuotedText(DTypeName(node.dtype))});
    case ExprOp::kNeg: return "-" + Operand(node.args[0], false, true);
    case ExprOp::kNot: return "not " + Operand(node.args[0], false, true);
    case ExprOp::kBitNot: return "~" + Operand(node.args[0], false, true);
    case ExprOp::kSelect: {
      const bool bare = !IsImm(node.args[1]) || !IsImm(node.args[2]);
      return CallText("if_then_else",
                      {Value(node.args[0]), Operand(node.args[1], bare, false), Operand(node.args[2], bare, false)});
    }
    default: break;
  }
  Expr a, b;
  if (IsCeilDiv(node, &a, &b)) return CallText("ceildiv", {Index(a), Index(b)});
  bool bare = false;  // beside an operand that is no number
  for (Expr arg : node.args) bare |= !IsImm(arg);
  const bool is_shift = node.op == ExprOp::kShl || node.op == ExprOp::kShr;
  if (IsInfixOp(node.op)) {
    return Cat(Operand(node.args[0], bare && !is_shift, true), " ", ExprOpText(node.op), " ",
               Operand(node.args[1], bare || is_shift, true));
  }
  std::vector<std::string> args;
  for (Expr arg : node.args) args.push_back(Operand(arg, bare, false));
  return CallText(ExprOpText(node.op), args);
}

std::string ExprPrinter::Tuple(const std::vector<Expr>& list) const {
  std::vector<std::string> parts;
  for (Expr e : list) parts.push_back(Index(e));
  return Cat("(", absl::StrJoin(parts, ", "), list.size() == 1 ? ",)" : ")");
}

template <typename List>
std::string ExprPrinter::Element(BufferId buffer, const List& indices) const {
  std::string text = Name(NameKind::kBuffer, buffer);
  if (indices.empty()) return p_.buffers[buffer].scope == Scope::kVar ? text : text + "[()]";
  std::vector<std::string> parts;
  for (Expr e : indices) parts.push_back(Index(e));
  return Cat(text, "[", absl::StrJoin(parts, ", "), "]");
}
template std::string ExprPrinter::Element(BufferId, const ExprArgs&) const;
template std::string ExprPrinter::Element(BufferId, const std::vector<Expr>&) const;

std::string ExprPrinter::Region(const tilert::Region& region) const {
  const Buffer& buffer = p_.buffers[region.buffer];
  const size_t rank = region.start.size();
  bool is_whole = region.extent == buffer.shape, has_slice = false;
  for (size_t i = 0; i < rank; ++i) {
    is_whole &= p_.exprs.IsInt(region.start[i], 0);
    has_slice |= !p_.exprs.IsInt(region.extent[i], 1);
  }
  if (is_whole) return Name(NameKind::kBuffer, region.buffer);
  std::vector<std::string> parts;
  for (size_t i = 0; i < rank; ++i) {
    const Expr start = region.start[i], extent = region.extent[i];
    int64_t s = 0, e = 0, stop = 0;
    if (has_slice && p_.exprs.IsInt(extent, 1)) {
      parts.push_back(Index(start));
    } else if (p_.exprs.IsInt(start, 0)) {
      parts.push_back(Cat("0:", Index(extent)));
    } else if (p_.exprs.AsInt(start, &s) && s >= 0 && p_.exprs.AsInt(extent, &e) && !__builtin_add_overflow(s, e, &stop)) {
      parts.push_back(Cat(s, ":", stop));
    } else {
      // A bare negative number would count from the end.
      const std::string begin = Operand(start, s >= 0, true);
      parts.push_back(Cat(s >= 0 ? Index(start) : begin, ":", begin, " + ", Operand(extent, true, true)));
    }
  }
  return Cat(Name(NameKind::kBuffer, region.buffer), "[", absl::StrJoin(parts, ", "), "]");
}

}  // namespace tilert
