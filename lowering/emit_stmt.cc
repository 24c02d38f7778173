// Statements of structure and scalar statements as C++; what copies, tiles and tensor cores need is in files of their own.
#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "ir/status_util.h"
#include "ir/stmt.h"
#include "lowering/emit_unroll.h"

namespace tilert {
namespace {

std::string_view MethodName(kir::CopyMethod method) {
  switch (method) {
    case kir::CopyMethod::kVector: return "";
    case kir::CopyMethod::kCpAsync: return ", cp.async";
    case kir::CopyMethod::kLdmatrix: return ", ldmatrix";
    case kir::CopyMethod::kLdmatrixTrans: return ", ldmatrix.trans";
    case kir::CopyMethod::kStmatrix: return ", stmatrix";
    case kir::CopyMethod::kRegister: return ", in registers";
  }
  return "";
}

std::string_view ReduceName(ReduceOp op) {
  constexpr std::string_view kNames[] = {"?",           "sum",        "max",        "min", "sum of absolutes", "max of absolutes",
                                         "bitwise and", "bitwise or", "bitwise xor"};
  return kNames[std::min(static_cast<size_t>(op), std::size(kNames) - 1)];
}

// The array of a register buffer: `u32 p[16]`, with a remark where elements are packed.
std::string Declaration(const EmitContext& c, BufferId id, bool zero) {
  const kir::Buffer& buffer = c.buffer(id);
  const std::string& name = c.buffers[id];
  if (buffer.layout.dims.empty()) {
    const bool is_bool = buffer.dtype == DType::kBool;
    return Cat(ValueType(buffer.dtype), " ", name, zero ? is_bool ? " = false;" : " = 0;" : ";");
  }
  const int per_word = PerWord(buffer.dtype);
  const int64_t words = (buffer.layout.regs() + per_word - 1) / per_word;
  const std::string remark = per_word > 1 ? Cat("  // ", DTypeName(buffer.dtype), ", ", per_word, " a register") : "";
  return Cat(RegisterType(buffer.dtype), " ", name, "[", words, "]", zero ? " = {}" : "", ";", remark);
}

void Emit(EmitContext& c, const kir::Declare& s) {
  c.out.Line(Declaration(c, s.buffer, s.zero));
  ForgetAccumulator(c, s.buffer);
  // The first wgmma of the next turn does not write over this one's: else the compiler moves what nobody has set from turn to turn (ptxas: C7514).
  if (c.loops > 0 && !s.zero && c.accumulators[s.buffer] && !c.in_ptx[s.buffer]) c.out.Line(Cat("unset(", c.buffers[s.buffer], ");"));
}

// Comparison that keeps a loop going: begin towards end by step.
std::string LoopCondition(EmitContext& c, const kir::For& s, const std::string& var, const std::string& end,
                          const std::string& step) {
  const Range by = c.ranges.Of(s.step);
  if (by.lo > 0) return Cat(var, " < ", end);
  if (by.hi < 0) return Cat(var, " > ", end);
  return Cat("(", step, ") > 0 ? ", var, " < (", end, ") : ", var, " > (", end, ")");
}

void Emit(EmitContext& c, const kir::For& s) {
  const Range begin = c.ranges.Of(s.begin), end = c.ranges.Of(s.end), step = c.ranges.Of(s.step);
  VarText& var = c.vars[s.var];
  Range values = {std::min(begin.lo, end.lo), std::max(begin.hi, end.hi), 1};
  var.wide = !Sum(values, step).FitsInt();
  var.fixed = s.unroll == kir::Unroll::kFull && begin.IsConstant() && step.IsConstant();
  const std::string begin_text = EmitExpr(c, s.begin).text, end_text = EmitExpr(c, s.end).In(CText::kShift),
                    step_text = EmitExpr(c, s.step).text;
  // The end is not reached, from whichever side the loop comes.
  if (step.lo > 0) values = LoopRange(begin, end, step);
  if (step.hi < 0) values = {end.lo < begin.hi ? end.lo + 1 : begin.hi, begin.hi, 1};
  const bool may_overflow = step.lo > 0 && values.hi > INT64_MAX - step.hi;
  c.ranges.Bind(s.var, values, step.lo > 0 ? s.end : Expr{});
  c.names.Open();
  var.name = c.names.Fresh(c.kernel.vars[s.var].name);
  if (s.unroll == kir::Unroll::kFull) {
    c.out.Line("#pragma unroll");
  } else if (!c.in_elementwise) {
    c.out.Line("#pragma unroll 1");
  } else if (c.limited) {
    c.out.Line(Cat("#pragma unroll ", kUnrolledTurns));
  }
  const std::string advance = may_overflow                      ? Cat(var.name, " = advanced(", var.name, ", ", step_text, ")")
                              : c.kernel.exprs.IsInt(s.step, 1) ? Cat("++", var.name)
                                                                : Cat(var.name, " += ", step_text);
  c.out.Line(Cat("for (", var.wide ? "i64 " : "int ", var.name, " = ", begin_text, "; ",
                 LoopCondition(c, s, var.name, end_text, step_text), "; ", advance, ") {"));
  c.out.Indent();
  const int64_t turns_around = c.turns_around;
  if (s.unroll == kir::Unroll::kFull) c.turns_around = std::min(turns_around * TurnsOf(c, s, kMostUnrolled), kMostUnrolled);
  ++c.loops;
  EmitBlock(c, s.body);
  --c.loops;
  c.turns_around = turns_around;
  c.names.Close();
  c.out.Dedent();
  c.out.Line("}");
}

void Emit(EmitContext& c, const kir::While& s) {
  c.Open(Cat("while (", EmitExpr(c, s.cond).text, ") {"));
  ++c.loops;
  EmitBlock(c, s.body);
  --c.loops;
  c.Close();
}

// Nothing but copies by cp.async: each instruction has the condition as its predicate. A branch around them all would keep the compiler from moving them
// among the products that follow.
bool IsPredicable(const kir::If& s) {
  return s.else_body.empty() && !s.then_body.empty() && std::all_of(s.then_body.begin(), s.then_body.end(), [](const kir::Stmt& stmt) {
    const auto* copy = std::get_if<kir::Copy>(&stmt.op);
    return copy != nullptr && copy->method == kir::CopyMethod::kCpAsync;
  });
}

// Whether a condition always holds, or never.
std::optional<bool> Decided(const EmitContext& c, Expr cond) {
  const ExprNode& node = c.node(cond);
  if (node.op == ExprOp::kNot) {
    const std::optional<bool> opposite = Decided(c, node.args[0]);
    return opposite ? std::optional(!*opposite) : std::nullopt;
  }
  if (node.op != ExprOp::kLt || c.node(node.args[0]).dtype != DType::kIndex || c.node(node.args[1]).dtype != DType::kIndex) return std::nullopt;
  if (c.ranges.ProveLess(node.args[0], node.args[1])) return true;
  return c.ranges.Of(node.args[0]).lo >= c.ranges.Of(node.args[1]).hi ? std::optional(false) : std::nullopt;
}

void Emit(EmitContext& c, const kir::If& s) {
  if (const std::optional<bool> decided = Decided(c, s.cond)) {
    const kir::Block& body = *decided ? s.then_body : s.else_body;
    if (body.empty()) return;
    c.Open("{");
    EmitBlock(c, body);
    return c.Close();
  }
  if (IsPredicable(s)) {
    c.copies_if = c.names.Fresh("copies");
    c.out.Line(Cat("const bool ", c.copies_if, " = ", EmitExpr(c, s.cond).text, ";"));
    const Ranges::Assume known(c.ranges, s.cond);
    EmitBlock(c, s.then_body);
    c.copies_if.clear();
    return;
  }
  c.Open(Cat("if (", EmitExpr(c, s.cond).text, ") {"));
  {
    const Ranges::Assume known(c.ranges, s.cond);
    EmitBlock(c, s.then_body);
  }
  if (!s.else_body.empty()) {
    c.Close("} else {");
    c.Open("");
    EmitBlock(c, s.else_body);
  }
  c.Close();
}

void Emit(EmitContext& c, const kir::Break&) { c.out.Line("break;"); }
void Emit(EmitContext& c, const kir::Continue&) { c.out.Line("continue;"); }

void Emit(EmitContext& c, const kir::Let& s) {
  const DType type = c.kernel.vars[s.var].dtype;
  const CText value = EmitExpr(c, s.value);
  VarText& var = c.vars[s.var];
  var.wide = IsWide(c, s.value);
  var.fixed = false;
  var.has_coordinate = false;
  var.thread = c.in_elementwise;
  if (!IsFloat(type)) c.ranges.Bind(s.var, c.ranges.Of(s.value));
  var.name = c.names.Fresh(c.kernel.vars[s.var].name);
  const std::string_view c_type = type != DType::kIndex ? ValueType(type) : var.wide ? "i64" : "int";
  c.out.Optional(var.name, Cat("const ", c_type, " ", var.name, " = ", value.text, ";"));
}

void Emit(EmitContext& c, const kir::CpAsyncCommit&) { c.out.Line("cp_async_commit();"); }
void Emit(EmitContext& c, const kir::CpAsyncWait& s) { c.out.Line(Cat("cp_async_wait<", s.pending, ">();")); }
void Emit(EmitContext& c, const kir::WgmmaFence& s) {
  for (BufferId id : s.touched) c.out.Line(Cat("settle(", c.buffers[id], ");"));
  c.out.Line("wgmma_fence();");
}
void Emit(EmitContext& c, const kir::WgmmaCommit&) { c.out.Line("wgmma_commit();"); }
void Emit(EmitContext& c, const kir::StoreCommit&) { c.out.Line("tma_commit();"); }
void Emit(EmitContext& c, const kir::ProxyFence&) { c.out.Line("fence_async_proxy();"); }

// The condition under which this thread writes memory: replica 0, which outside Elementwise is the role's first thread.
std::string WriterCondition(const EmitContext& c) { return c.in_elementwise ? c.replica_zero : c.role.writer; }

std::string WithGuard(const std::string& a, const CText& b, std::string statement) {
  std::string guard = a;
  if (!b.text.empty()) guard = guard.empty() ? b.text : Cat(guard, " && ", b.In(CText::kAnd));
  return guard.empty() ? statement : Cat("if (", guard, ") ", statement);
}

// printf's conversion for a value, and the value as printf takes it.
std::pair<std::string_view, std::string> Printed(EmitContext& c, Expr e) {
  const DType type = c.node(e).dtype;
  const std::string value = EmitExpr(c, e).text;
  if (IsFloat(type)) return {"%g", Cat("(double)(", value, ")")};
  if (type == DType::kBool) return {"%s", Cat("(", value, ") ? \"True\" : \"False\"")};
  if (KindOf(type) == DTypeKind::kUnsigned) return {"%llu", Cat("(u64)(", value, ")")};
  return {"%lld", Cat("(i64)(", value, ")")};
}

// `format` has one {} a value, {{ and }} for braces.
std::string PrintfFormat(const std::string& format, const std::vector<std::string_view>& conversions) {
  std::string text;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const char following = i + 1 < format.size() ? format[i + 1] : '\0';
    if (format[i] == '{' && following == '}') {
      text += next < conversions.size() ? conversions[next++] : std::string_view("{}");
      ++i;
    } else {
      text += format[i];
      if (format[i] == '%') text += '%';
      if ((format[i] == '{' || format[i] == '}') && following == format[i]) ++i;
    }
  }
  return text + "\n";
}

void Emit(EmitContext& c, const kir::Print& s) {
  std::vector<std::string_view> conversions;
  std::vector<std::string> args;
  for (Expr e : s.args) {
    auto [conversion, value] = Printed(c, e);
    conversions.push_back(conversion);
    args.push_back(value);
  }
  std::string call = Cat("printf(", CStringLiteral(PrintfFormat(s.format, conversions)));
  for (const std::string& arg : args) call += Cat(", ", arg);
  c.out.Line(WithGuard(WriterCondition(c), {}, Cat(call, ");")));
}

void Emit(EmitContext& c, const kir::Assert& s) {
  c.out.Line(Cat("if (!(", EmitExpr(c, s.cond).text, ")) assert_failed(", CStringLiteral(s.message), ");"));
}

// Where an element in memory is, and the condition under which it is inside its buffer.
struct MemoryPlace {
  CText element, inside;
};
MemoryPlace PlaceOf(EmitContext& c, BufferId id, const std::vector<Expr>& indices) {
  const kir::Buffer& buffer = c.buffer(id);
  const bool shared = buffer.space == kir::Space::kShared;
  const absl::Span<const Expr> subscripts = absl::MakeConstSpan(indices).subspan(shared ? 1 : 0);
  std::vector<Coordinate> at;
  for (Expr e : subscripts) at.push_back(ReadOnce(c, e));
  MemoryPlace place;
  place.inside = InsideCondition(c, buffer, at, subscripts);
  if (shared) {
    place.element = {Cat("*", SharedPointer(buffer.dtype, SharedByteOffset(buffer, EmitInt(c, indices[0]), at).Whole()).text),
                     CText::kUnary};
  } else {
    place.element = ElementAt(buffer.dtype, {c.buffers[id]}, GlobalOffset(c, buffer, at));
  }
  return place;
}

void EmitOne(EmitContext& c, const kir::Stmt& stmt) {
  const std::string what = Describe(c, stmt.op);
  const SourceLoc& loc = stmt.loc;
  std::string where;
  if (loc.line != 0) where = Cat(loc.file < c.kernel.files.size() ? c.kernel.files[loc.file] : "line", ":", loc.line);
  // A comment that would only repeat where the last one was is left out.
  if (!c.in_elementwise && !(what.empty() && (where.empty() || where == c.last_location))) {
    c.out.Line(CommentText(Cat("// ", where, where.empty() || what.empty() ? "" : ": ", what)));
    c.last_location = where;
  }
  std::visit([&c](const auto& op) { Emit(c, op); }, stmt.op);
}

}  // namespace

CText ConvertedValue(EmitContext& c, Expr value, DType to) {
  const DType from = c.node(value).dtype;
  const CText text = IsNarrowFloat(to) ? EmitUnrounded(c, value) : EmitExpr(c, value);
  if (!SameValue(from, to)) return {Cat("cast<", MemoryType(to), ">(", text.text, ")")};
  // An unrounded bfloat16 that goes to float16 would be rounded once only.
  return from != to && IsNarrowFloat(from) ? EmitExpr(c, value) : text;
}

void Emit(EmitContext& c, const kir::Store& s) {
  const kir::Buffer& buffer = c.buffer(s.buffer);
  const std::string& name = c.buffers[s.buffer];
  CText value = ConvertedValue(c, s.value, buffer.dtype);
  const ExprOp op = c.node(s.value).op;
  if (c.accumulators[s.buffer] && (op == ExprOp::kFloatImm || op == ExprOp::kIntImm)) value = {Cat("opaque(", value.text, ")")};
  if (buffer.space != kir::Space::kRegister) {
    const MemoryPlace place = PlaceOf(c, s.buffer, s.indices);
    const std::string write = PerWord(buffer.dtype) > 1 ? Cat("put(", place.element.text, ", ", value.text, ");")
                                                        : Cat(place.element.text, " = ", value.text, ";");
    c.out.Line(WithGuard(WriterCondition(c), place.inside, write));
    return;
  }
  if (buffer.layout.dims.empty()) {
    c.out.Line(Cat(name, " = ",
                   IsNarrowFloat(buffer.dtype) ? Cat("rounded<", MemoryType(buffer.dtype), ">(", value.text, ")") : value.text,
                   ";"));
    return;
  }
  if (const auto deferred = c.deferred.find(s.buffer); deferred != c.deferred.end()) {
    c.out.Line(Cat(deferred->second, " = ", value.text, ";"));
    return;
  }
  std::vector<Coordinate> at;
  for (Expr e : s.indices) at.push_back(EmitCoordinate(c, e));
  const CText index = RegisterIndex(buffer.layout, at);
  if (PerWord(buffer.dtype) == 1) {
    c.out.Line(Cat(name, "[", index.text, "] = ", value.text, ";"));
  } else {
    c.out.Line(Cat("set<", MemoryType(buffer.dtype), ">(", name, ", ", index.text, ", ", value.text, ");"));
  }
}

// Declares the variable that gets the value before an atomic; its name.
std::string DeclarePrev(EmitContext& c, VarId id) {
  VarText& var = c.vars[id];
  var.wide = var.fixed = var.has_coordinate = false;
  var.thread = true;
  var.name = c.names.Fresh(c.kernel.vars[id].name);
  c.out.Line(Cat(ValueType(c.kernel.vars[id].dtype), " ", var.name, " = 0;"));
  return var.name;
}

void Emit(EmitContext& c, const kir::Atomic& s) {
  const MemoryPlace place = PlaceOf(c, s.buffer, s.indices);
  const CText value = ConvertedValue(c, s.value, c.buffer(s.buffer).dtype);
  const std::string_view function = s.op == AtomicOp::kAdd ? "atomic_add" : s.op == AtomicOp::kMax ? "atomic_max" : "atomic_min";
  const std::string target = place.element.text[0] == '*' ? place.element.text.substr(1) : Cat("&", place.element.text);
  const bool release = s.order == MemoryOrder::kRelease || s.order == MemoryOrder::kAcqRel;
  const bool acquire = s.order == MemoryOrder::kAcquire || s.order == MemoryOrder::kAcqRel;
  const std::string_view fence = s.scope == MemoryScope::kSystem ? "__threadfence_system(); " : "__threadfence(); ";
  std::string text = Cat(function, "<", MemoryType(c.buffer(s.buffer).dtype), ">(", target, ", ", value.text, ");");
  if (s.prev != kNoId) text = Cat(DeclarePrev(c, s.prev), " = ", text);
  if (release || acquire) text = Cat("{ ", release ? fence : "", text, acquire ? " " : "", acquire ? fence : "", "}");
  c.out.Line(WithGuard(WriterCondition(c), place.inside, text));
}

void EmitPairSum(EmitContext& c, const kir::Atomic& sum, const std::string& pair) {
  const MemoryPlace place = PlaceOf(c, sum.buffer, sum.indices);
  c.out.Line(WithGuard(WriterCondition(c), place.inside, Cat("atomic_add2(&", place.element.text, ", ", pair, "[0], ", pair, "[1]);")));
}

void EmitBlock(EmitContext& c, const kir::Block& block) {
  for (size_t i = 0; i < block.size();) {
    if (c.role.writer.empty() || c.in_elementwise || !IsOneThreads(block[i].op)) {
      EmitOne(c, block[i++]);
      continue;
    }
    // One thread issues for all; what it does in a row goes into one branch.
    c.Open(Cat("if (", c.role.writer, ") {"));
    for (; i < block.size() && IsOneThreads(block[i].op); ++i) EmitOne(c, block[i]);
    c.Close();
  }
}

std::string Describe(const EmitContext& c, const kir::StmtOp& op) {
  const auto& names = c.buffers;
  return std::visit(Overloaded{
                        [](const kir::Declare&) { return std::string(); },
                        [](const kir::For&) { return std::string(); },
                        [](const kir::While&) { return std::string(); },
                        [](const kir::If&) { return std::string(); },
                        [](const kir::Break&) { return std::string(); },
                        [](const kir::Continue&) { return std::string(); },
                        [](const kir::Let&) { return std::string(); },
                        [](const kir::Elementwise&) { return std::string("element by element"); },
                        [](const kir::Store&) { return std::string(); },
                        [](const kir::Atomic&) { return std::string(); },
                        [&](const kir::Copy& s) {
                          return Cat(names[s.src.buffer], " -> ", names[s.dst.buffer], MethodName(s.method),
                                     s.width > 1 ? Cat(", ", s.width, " at once") : "");
                        },
                        [](const kir::CpAsyncCommit&) { return std::string(); },
                        [&](const kir::CpAsyncWait& s) {
                          std::vector<std::string> retired;
                          for (const kir::Retired& r : s.retires) retired.push_back(names[r.buffer]);
                          return retired.empty() ? std::string() : Cat("have ", absl::StrJoin(retired, ", "));
                        },
                        [&](const kir::LaneReduce& s) {
                          return Cat(names[s.dst], " = ", ReduceName(s.op), " of ", names[s.src], " along dimension ", s.axis);
                        },
                        [&](const kir::PartStore& s) { return Cat("this block's part of ", names[s.src]); },
                        [&](const kir::PartAdd& s) { return Cat(names[s.acc], " += the part of another block"); },
                        [](const kir::SumsGive&) { return std::string("sums for the block that has the end of the tile"); },
                        [](const kir::SumsTake&) { return std::string("sums of the blocks that had the tile's first iterations"); },
                        [&](const kir::Mma& s) { return Cat(names[s.acc], " += ", names[s.a], " * ", names[s.b]); },
                        [](const kir::BarSync&) { return std::string(); },
                        [](const kir::Print&) { return std::string(); },
                        [](const kir::Assert&) { return std::string(); },
                        [&](const kir::Wgmma& s) {
                          return Cat(names[s.acc], " += ", names[s.a.buffer], " * ", names[s.b.buffer], ", wgmma ", s.m, "x", s.n,
                                     "x", s.k);
                        },
                        [&](const kir::TmaLoad& s) {
                          return Cat(names[c.kernel.tensor_maps[s.map].buffer], " -> ", names[s.dst], ", TMA");
                        },
                        [&](const kir::TmaStore& s) {
                          const std::string_view added = s.op == kir::StoreOp::kAdd ? ", added" : "";
                          return Cat(names[s.src], " -> ", names[c.kernel.tensor_maps[s.map].buffer], ", TMA", added);
                        },
                        [](const auto&) { return std::string(); },
                    },
                    op);
}

}  // namespace tilert
