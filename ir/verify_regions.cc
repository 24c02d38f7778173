// docs/ir_spec.md sections 4 and 5: which memory, which shapes and which element types a statement takes.
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "ir/limits.h"
#include "ir/verify_context.h"

namespace tilert::verify {
namespace {

using Extents = absl::InlinedVector<Expr, 4>;

bool In(Scope scope, std::initializer_list<Scope> allowed) {
  for (Scope s : allowed) {
    if (s == scope) return true;
  }
  return false;
}

std::string_view ScopeText(Scope scope) {
  switch (scope) {
    case Scope::kInvalid: break;
    case Scope::kGlobal: return "global";
    case Scope::kShared: return "shared";
    case Scope::kFragment: return "a fragment";
    case Scope::kLocal: return "local";
    case Scope::kVar: return "an alloc_var";
    case Scope::kBarrier: return "a barrier";
  }
  return "invalid";
}

class RegionChecker {
 public:
  explicit RegionChecker(Context& c) : c_(c) {}
  void Check(const StmtOp& op) {
    std::visit([&](const auto& s) { CheckStmt(s); }, op);
  }

 private:
  template <typename Op>
  void CheckStmt(const Op&) {}
  void CheckStmt(const Copy& s);
  void CheckStmt(const Gemm& s);
  void CheckStmt(const Fill& s) {
    Memory(s.dst.buffer, "the destination of fill", {Scope::kGlobal, Scope::kShared, Scope::kFragment, Scope::kLocal});
  }
  void CheckStmt(const Reduce& s);
  void CheckStmt(const Scan& s);
  void CheckStmt(const Parallel& s);
  void CheckStmt(const For& s);
  void CheckStmt(const Store& s);
  void CheckStmt(const Atomic& s);
  void CheckStmt(const AtomicTile& s);
  void CheckStmt(const Annotate& s);
  void CheckStmt(const Print& s);
  void CheckStmt(const BarrierOp& s);

  const Buffer& Of(const Region& r) const { return c_.p.buffers[r.buffer]; }
  void Memory(BufferId id, std::string_view what, std::initializer_list<Scope> allowed);
  void Subscripts(BufferId id, const std::vector<Expr>& indices);
  void AtomicType(BufferId id);
  void BarrierBuffer(BufferId id);
  // Known at launch, so that shapes are.
  void Static(const Region& r, std::string_view what);
  std::optional<int64_t> Known(Expr e) const;
  bool Differ(Expr a, Expr b) const;
  Extents WithoutOnes(const Region& r, size_t skip = ~size_t{0}) const;
  std::optional<Extents> Matrix(const Region& r, std::string_view what);
  std::string Text(const Extents& extents) const;
  void Agree(const Region& src, const Extents& a, const Region& dst, const Extents& b);

  Context& c_;
};

void RegionChecker::Memory(BufferId id, std::string_view what, std::initializer_list<Scope> allowed) {
  if (In(c_.p.buffers[id].scope, allowed)) return;
  std::vector<std::string> names;
  for (Scope scope : allowed) names.emplace_back(ScopeText(scope));
  c_.Error(what, ", ", c_.Name(id), ", is ", ScopeText(c_.p.buffers[id].scope), "; it must be ", absl::StrJoin(names, " or "));
}

void RegionChecker::Subscripts(BufferId id, const std::vector<Expr>& indices) {
  const size_t rank = c_.p.buffers[id].shape.size();
  if (indices.size() != rank)
    c_.Error(c_.Name(id), " has ", rank, " dimensions and is written with ", indices.size(), " subscripts: give one for each");
}

std::optional<int64_t> RegionChecker::Known(Expr e) const {
  int64_t value = 0;
  return c_.p.exprs.AsInt(e, &value) ? std::optional<int64_t>(value) : std::nullopt;
}

// Known to differ; extents over dims are compared when they have values.
bool RegionChecker::Differ(Expr a, Expr b) const { return Known(a) && Known(b) && *Known(a) != *Known(b); }

Extents RegionChecker::WithoutOnes(const Region& r, size_t skip) const {
  Extents extents;
  for (size_t i = 0; i < r.extent.size(); ++i) {
    if (i != skip && !c_.p.exprs.IsInt(r.extent[i], 1)) extents.push_back(r.extent[i]);
  }
  return extents;
}

std::string RegionChecker::Text(const Extents& extents) const {
  std::vector<std::string> parts;
  for (Expr e : extents) parts.push_back(c_.Text(e));
  return Cat("(", absl::StrJoin(parts, ", "), ")");
}

void RegionChecker::Agree(const Region& src, const Extents& a, const Region& dst, const Extents& b) {
  bool agree = a.size() == b.size();
  for (size_t i = 0; agree && i < a.size(); ++i) agree = !Differ(a[i], b[i]);
  if (!agree) {
    c_.Error("the region of ", c_.Name(src.buffer), " is ", Text(a), ", that of ", c_.Name(dst.buffer), " is ", Text(b),
             ": apart from extents of 1 they must agree");
  }
}

void RegionChecker::Static(const Region& r, std::string_view what) {
  for (Expr e : r.extent) {
    int64_t extent = 0;
    if (!IsLaunchTime(c_.p, e))
      c_.Error(what, ", ", c_.Name(r.buffer), ", has extent ", c_.Text(e), ": it must be made of dims, constants and numbers");
    if (c_.p.exprs.AsInt(e, &extent) && extent < 0)
      c_.Error(what, ", ", c_.Name(r.buffer), ", has extent ", extent, ": extents are at least 0");
  }
}

void RegionChecker::CheckStmt(const Copy& s) {
  const auto tiles = {Scope::kGlobal, Scope::kShared, Scope::kFragment};
  Memory(s.src.buffer, "the source of copy", tiles);
  Memory(s.dst.buffer, "the destination of copy", tiles);
  Agree(s.src, WithoutOnes(s.src), s.dst, WithoutOnes(s.dst));
  if (s.barrier != kNoId) {
    BarrierBuffer(s.barrier);
    if (!s.barrier_indices.empty()) Subscripts(s.barrier, s.barrier_indices);
    if (!s.is_async) c_.Error("a barrier belongs to async_copy only: leave it out, or write T.async_copy");
    if (s.dst.buffer != kNoId && Of(s.dst).scope != Scope::kShared)
      c_.Error("a copy that completes on a barrier goes to shared memory; what leaves it is waited for with async_wait");
  } else if (!s.barrier_indices.empty()) {
    c_.Error("subscripts of a barrier without one: name the barrier, or leave them out");
  }
  if (s.coalesced_width > 128)
    c_.Error("coalesced_width ", s.coalesced_width, " is more than 128 elements: give a smaller one, or none");
}

// Further dimensions of extent 1 are dropped, leading ones first.
std::optional<Extents> RegionChecker::Matrix(const Region& r, std::string_view what) {
  Extents extents;
  const auto is_one = [&](size_t d) { return c_.p.exprs.IsInt(r.extent[d], 1); };
  for (size_t d : MatrixDims(r.extent.size(), is_one)) extents.push_back(r.extent[d]);
  Static(r, what);
  if (extents.size() == 2) return extents;
  c_.Error(what, ", ", c_.Name(r.buffer), ", is ", Text(extents), ", which is no matrix: give two dimensions of it");
  return std::nullopt;
}

// Accumulator types of docs/ir_spec.md section 5, "Gemm".
bool GemmAccumulates(DType a, DType b, DType c) {
  const bool is_float8 = IsFloat(a) && IsFloat(b) && DTypeBits(a) == 8 && DTypeBits(b) == 8;
  if (is_float8) return c == DType::kFloat32 || c == DType::kFloat16 || c == DType::kBFloat16;
  if (a != b) return IsInteger(a) && IsInteger(b) && DTypeBits(a) == 8 && DTypeBits(b) == 8 && c == DType::kInt32;
  if (a == DType::kFloat16 || a == DType::kBFloat16) return c == DType::kFloat32 || c == a;
  if (a == DType::kFloat32 || a == DType::kFloat64) return c == a;
  return (a == DType::kInt8 || a == DType::kUInt8) && c == DType::kInt32;
}

void RegionChecker::CheckStmt(const Gemm& s) {
  Memory(s.a.buffer, "operand A of gemm", {Scope::kShared, Scope::kFragment});
  Memory(s.b.buffer, "operand B of gemm", {Scope::kShared, Scope::kFragment});
  Memory(s.c.buffer, "the accumulator of gemm", {Scope::kFragment});
  const DType a = Of(s.a).dtype, b = Of(s.b).dtype, c = Of(s.c).dtype;
  if (!GemmAccumulates(a, b, c)) {
    c_.Error("gemm of ", DTypeName(a), " and ", DTypeName(b), " into ", DTypeName(c),
             ": operands must have one type (or be two of 8 bits), accumulated in float32, their own type of 16 bits or more, or "
             "int32 for int8");
  }
  const auto left = Matrix(s.a, "operand A of gemm"), right = Matrix(s.b, "operand B of gemm"),
             sum = Matrix(s.c, "the accumulator of gemm");
  if (!left || !right || !sum) return;
  const Expr m = (*left)[s.transpose_a], k = (*left)[!s.transpose_a], k_right = (*right)[s.transpose_b],
             n = (*right)[!s.transpose_b];
  if (Differ(k, k_right))
    c_.Error("gemm sums over ", c_.Text(k), " columns of A and ", c_.Text(k_right),
             " rows of B: check transpose_A and transpose_B");
  if (Differ(m, (*sum)[0]) || Differ(n, (*sum)[1])) {
    c_.Error("gemm makes a matrix of ", Text({m, n}), ", the accumulator ", c_.Name(s.c.buffer), " is ", Text(*sum),
             ": they must be alike");
  }
}

void RegionChecker::CheckStmt(const Reduce& s) {
  Memory(s.src.buffer, "the source of reduce", {Scope::kShared, Scope::kFragment});
  Memory(s.dst.buffer, "the destination of reduce", {Scope::kShared, Scope::kFragment});
  Static(s.src, "the source of reduce");
  if (s.axis >= s.src.extent.size())
    return c_.Error("dim=", s.axis, " is no dimension of ", c_.Name(s.src.buffer), ", which has ", s.src.extent.size(),
                    ": count from 0");
  Agree(s.src, WithoutOnes(s.src, s.axis), s.dst, WithoutOnes(s.dst));
  const DType src = Of(s.src).dtype, dst = Of(s.dst).dtype;
  const bool is_bitwise = s.op == ReduceOp::kBitAnd || s.op == ReduceOp::kBitOr || s.op == ReduceOp::kBitXor;
  if (is_bitwise && !(IsInteger(src) && src == dst))
    c_.Error("bitwise reductions take integers of one type, not ", DTypeName(src), " and ", DTypeName(dst),
             ": cast, or T.reinterpret the elements, first");
  if (!is_bitwise && (IsFloat(src) ? !IsFloat(dst) : !IsInteger(src) || !IsInteger(dst))) {
    c_.Error("reduction of ", DTypeName(src), " into ", DTypeName(dst), ": both must be floats or both integers");
  }
}

void RegionChecker::CheckStmt(const Scan& s) {
  Memory(s.src.buffer, "the source of cumsum", {Scope::kShared, Scope::kFragment});
  Memory(s.dst.buffer, "the destination of cumsum", {Scope::kShared, Scope::kFragment});
  Static(s.src, "the source of cumsum");
  if (s.axis >= s.src.extent.size())
    return c_.Error("dim=", s.axis, " is no dimension of ", c_.Name(s.src.buffer), ", which has ", s.src.extent.size(),
                    ": count from 0");
  Agree(s.src, WithoutOnes(s.src), s.dst, WithoutOnes(s.dst));
  const DType src = Of(s.src).dtype, dst = Of(s.dst).dtype;
  if (IsFloat(src) != IsFloat(dst) || src == DType::kBool || dst == DType::kBool)
    c_.Error("cumsum of ", DTypeName(src), " into ", DTypeName(dst), ": both must be floats or both integers");
}

void RegionChecker::CheckStmt(const Parallel& s) {
  if (s.vars.empty() || s.vars.size() != s.extents.size())
    c_.Error("a parallel loop of ", s.extents.size(), " extents and ", s.vars.size(),
             " variables: give one for each, and at least one");
  for (Expr e : s.extents) {
    if (Known(e) && *Known(e) < 0) c_.Error("a parallel loop has an extent of ", *Known(e), ": it must be at least 0");
  }
}

void RegionChecker::CheckStmt(const For& s) {
  if (!Known(s.step) || *Known(s.step) < 1)
    c_.Error("the step of a loop must be a number or constant of at least 1, not ", c_.Text(s.step));
  const bool is_pipelined = s.kind == ForKind::kPipelined;
  if (!is_pipelined && (Known(s.num_stages) != 0 || !s.order.empty() || !s.stage.empty()))
    c_.Error("num_stages, order and stage belong to T.Pipelined: use that loop, or leave them out");
  if (!Known(s.num_stages) || *Known(s.num_stages) < 0 || *Known(s.num_stages) > 16)
    c_.Error("num_stages must be a number or constant of 0 … 16, not ", c_.Text(s.num_stages));
  if (s.split && !is_pipelined) c_.Error("split belongs to T.Pipelined: use that loop, or leave it out");
  if (s.split && (!Known(s.split) || *Known(s.split) < 0 || *Known(s.split) > kMaxClusterBlocks))
    c_.Error("split must be a number or constant of 0 … ", kMaxClusterBlocks, ", not ", c_.Text(s.split));
  std::vector<bool> taken(s.body.size());
  for (const auto* list : {&s.order, &s.stage}) {
    if (!list->empty() && list->size() != s.body.size()) {
      c_.Error(list == &s.order ? "order" : "stage", " has ", list->size(), " entries for a body of ", s.body.size(),
               " statements: give one for each, or none");
    }
  }
  for (int32_t place : s.order) {
    if (place < 0 || static_cast<size_t>(place) >= taken.size() || taken[place])
      return c_.Error("order must name each of 0 … ", s.body.size() - 1, " once");
    taken[place] = true;
  }
  for (int32_t stage : s.stage) {
    if (stage < 0 || stage > 16) return c_.Error("stage ", stage, " is not within 0 … 16: number the stages from 0");
  }
}

void RegionChecker::CheckStmt(const Store& s) {
  Memory(s.buffer, "the destination of an assignment",
         {Scope::kGlobal, Scope::kShared, Scope::kFragment, Scope::kLocal, Scope::kVar});
  Subscripts(s.buffer, s.indices);
}

void RegionChecker::AtomicType(BufferId id) {
  const DType type = c_.p.buffers[id].dtype;
  const bool allowed = (IsFloat(type) && DTypeBits(type) >= 16) || (IsInteger(type) && DTypeBits(type) >= 32);
  if (!allowed)
    c_.Error("atomics on ", DTypeName(type), " do not exist: use 32- or 64-bit integers, or floats of 16 bits or more");
}

void RegionChecker::CheckStmt(const Atomic& s) {
  Memory(s.buffer, "the destination of an atomic", {Scope::kGlobal, Scope::kShared});
  Subscripts(s.buffer, s.indices);
  AtomicType(s.buffer);
}

void RegionChecker::CheckStmt(const AtomicTile& s) {
  Memory(s.src.buffer, "the source of an atomic", {Scope::kGlobal, Scope::kShared, Scope::kFragment});
  Memory(s.dst.buffer, "the destination of an atomic", {Scope::kGlobal, Scope::kShared});
  AtomicType(s.dst.buffer);
  Agree(s.src, WithoutOnes(s.src), s.dst, WithoutOnes(s.dst));
}

void RegionChecker::CheckStmt(const Annotate& s) {
  const bool takes_buffer = s.kind != AnnotationKind::kUseSwizzle && s.kind != AnnotationKind::kNoWarpSpecialization;
  const size_t args = s.kind == AnnotationKind::kUseSwizzle || s.kind == AnnotationKind::kSafeValue;
  if (takes_buffer != (s.buffer != kNoId))
    return c_.Error("the annotation ", takes_buffer ? "needs a buffer" : "takes no buffer");
  if (s.args.size() != args) return c_.Error("the annotation takes ", args, " operands, not ", s.args.size());
  if (s.kind == AnnotationKind::kUseSwizzle) {
    if (!Known(s.args[0]) || *Known(s.args[0]) < 1)
      c_.Error("the panel size of use_swizzle must be a number of at least 1: T.use_swizzle(8)");
    if (s.text != "row" && s.text != "col") c_.Error("the order of use_swizzle is \"row\" or \"col\"");
  } else if (!s.text.empty()) {
    c_.Error("the annotation takes no text");
  }
  if (s.kind == AnnotationKind::kLayoutSwizzled || s.kind == AnnotationKind::kLayoutRowMajor)
    Memory(s.buffer, "what a layout is given to", {Scope::kShared});
}

void RegionChecker::CheckStmt(const Print& s) {
  size_t fields = 0;
  for (size_t i = 0; i < s.format.size(); ++i) {
    if (s.format[i] != '{' && s.format[i] != '}') continue;
    const char next = i + 1 < s.format.size() ? s.format[i + 1] : '\0';
    if (next != s.format[i] && !(s.format[i] == '{' && next == '}'))
      return c_.Error("a brace in the format must be {} for a value, or {{ or }} for itself");
    fields += next != s.format[i];
    ++i;
  }
  if (fields != s.args.size()) c_.Error("the format has ", fields, " {} for ", s.args.size(), " values: write one {} for each");
}

void RegionChecker::BarrierBuffer(BufferId id) { Memory(id, "the barrier", {Scope::kBarrier}); }

void RegionChecker::CheckStmt(const BarrierOp& s) {
  BarrierBuffer(s.barrier);
  Subscripts(s.barrier, s.indices);
  const bool takes_operand = s.kind != BarrierOpKind::kArrive;
  if (takes_operand != bool(s.operand))
    c_.Error(takes_operand ? "wait needs a parity, expect_tx a number of bytes" : "arrive takes no operand");
}

}  // namespace

void CheckRegions(Context& c) {
  RegionChecker checker(c);
  c.ForEachStmt([&](const Stmt& stmt) { checker.Check(stmt.op); });
}

}  // namespace tilert::verify
