// Statements on tiles: gemm, fill, reductions, scans, transposition.
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "frontend/regions.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

std::string_view LastName(const Args& args) { return args.builtin().path.substr(args.builtin().path.rfind('.') + 1); }

// --- gemm
// -------------------------------------------------------------------------------------------------------------------------

std::optional<GemmPolicy> ReadPolicy(Evaluator& e, const Args& args) {
  const Value& value = args["policy"];
  if (value.is_none()) return GemmPolicy::kSquare;
  const auto* symbol = value.As<Symbol>();
  const std::string name = symbol ? symbol->path->substr(symbol->path->rfind('.') + 1) : "";
  if (name == "Square") return GemmPolicy::kSquare;
  if (name == "FullRow") return GemmPolicy::kFullRow;
  if (name == "FullCol") return GemmPolicy::kFullCol;
  e.Fail(args.RangeOf("policy"), Cat("the policy of a gemm must be one of T.GemmWarpPolicy, not ", Describe(value)),
         "write T.GemmWarpPolicy.Square");
  return std::nullopt;
}

// The extents, where known.
struct Matrix {
  std::optional<int64_t> rows, columns;
};

Matrix MatrixOf(Evaluator& e, const BufferRegion& region, bool transposed) {
  const std::vector<size_t> dims = MatrixDims(region.extent.size(), [&](size_t d) { return KnownExtent(e, region, d) == 1; });
  if (dims.size() != 2) return {};  // for the verifier to tell
  Matrix m{KnownExtent(e, region, dims[0]), KnownExtent(e, region, dims[1])};
  if (transposed) std::swap(m.rows, m.columns);
  return m;
}

bool Differ(std::optional<int64_t> a, std::optional<int64_t> b) { return a && b && *a != *b; }

bool CheckGemmShapes(Evaluator& e, const Args& args, const BufferRegion& a, const BufferRegion& b, const BufferRegion& c, bool ta,
                     bool tb) {
  const std::pair<const BufferRegion*, std::string_view> operands[] = {{&a, "A"}, {&b, "B"}, {&c, "C"}};
  for (const auto& [region, name] : operands) {
    if (region->extent.size() >= 2 && !region->IsElement()) continue;
    return e.Fail(args.RangeOf(name), Cat("the operand ", name, " of a gemm is a matrix"),
                  "give a buffer, or a slice of two dimensions"),
           false;
  }
  const Matrix ma = MatrixOf(e, a, ta), mb = MatrixOf(e, b, tb), mc = MatrixOf(e, c, false);
  const std::string shapes = Cat("A is ", ShapeText(e, a), ta ? " transposed, B is " : ", B is ", ShapeText(e, b),
                                 tb ? " transposed, C is " : ", C is ", ShapeText(e, c));
  if (Differ(ma.columns, mb.rows))
    return e.Fail(args.range(), Cat("the inner extents of this gemm differ: ", shapes), "check transpose_A and transpose_B"),
           false;
  if (Differ(ma.rows, mc.rows) || Differ(mb.columns, mc.columns)) {
    return e.Fail(args.range(), Cat("the operands of this gemm do not fit C: ", shapes), "check transpose_A and transpose_B"),
           false;
  }
  return true;
}

Value Gemm(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto a = e.Region(args["A"], args.RangeOf("A"), "the operand A of a gemm"),
             b = e.Region(args["B"], args.RangeOf("B"), "the operand B of a gemm"),
             c = e.Region(args["C"], args.RangeOf("C"), "the accumulator C of a gemm");
  const auto ta = e.Bool(args["transpose_A"], args.RangeOf("transpose_A"), "transpose_A"),
             tb = e.Bool(args["transpose_B"], args.RangeOf("transpose_B"), "transpose_B");
  const auto policy = ReadPolicy(e, args);
  if (!a || !b || !c || !ta || !tb || !policy || !CheckGemmShapes(e, args, *a, *b, *c, *ta, *tb)) return Poison{};
  ProgramBuilder& builder = e.builder();
  const Value& clear = args["clear_accum"];
  bool clears = false;
  if (IsSymbolic(clear)) {  // clear_accum=k == 0
    const Val condition = e.Number(clear, args.RangeOf("clear_accum"), "clear_accum");
    if (!condition) return Poison{};
    builder.OpenIf(condition);
    builder.Fill(e.ToTile(*c), builder.Lit(int64_t{0}));
    builder.Close();
  } else {
    clears = e.Truth(clear, args.RangeOf("clear_accum")).value_or(false);
  }
  const bool is_async = args.builtin().path == "T.wgmma_gemm";
  builder.Add(tilert::Gemm{builder.R(e.ToTile(*a)), builder.R(e.ToTile(*b)), builder.R(e.ToTile(*c)), *ta, *tb, clears, *policy,
                           is_async});
  return NoneValue{};
}

// --- fill, reduce, scan
// -----------------------------------------------------------------------------------------------------------

Value Fill(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const Value& target = args["buffer"];
  const bool clears = args.builtin().path == "T.clear";
  const Val value = clears ? e.builder().Lit(int64_t{0}) : e.Number(args["value"], args.RangeOf("value"), "the value of T.fill");
  if (!value) return Poison{};
  if (const auto* variable = target.As<Buf>(); variable && variable->buffer().scope == Scope::kVar) {
    e.builder().Store(*variable, {}, value);
    return NoneValue{};
  }
  const auto region = e.Region(target, args.RangeOf("buffer"), Cat("the target of ", args.builtin().path));
  if (region) e.builder().Fill(e.ToTile(*region), value);
  return NoneValue{};
}

std::optional<uint32_t> ReadAxis(Evaluator& e, const Args& args, const BufferRegion& src, int64_t otherwise) {
  const auto rank = static_cast<int64_t>(src.extent.size());
  const auto dim = args.Has("dim") ? e.Int(args["dim"], args.RangeOf("dim"), "dim") : std::optional<int64_t>(otherwise);
  if (!dim) return std::nullopt;
  if (*dim < -rank || *dim >= rank) {
    e.Fail(args.RangeOf("dim"), Cat("dim ", *dim, " is outside the ", rank, " dimensions of '", src.buffer.buffer().name, "'"));
    return std::nullopt;
  }
  return static_cast<uint32_t>(*dim < 0 ? *dim + rank : *dim);
}

ReduceOp ReduceOpNamed(std::string_view name) {
  static constexpr std::pair<std::string_view, ReduceOp> kOps[] = {
      {"sum", ReduceOp::kSum},       {"max", ReduceOp::kMax},       {"min", ReduceOp::kMin},     {"abssum", ReduceOp::kAbsSum},
      {"absmax", ReduceOp::kAbsMax}, {"bitand", ReduceOp::kBitAnd}, {"bitor", ReduceOp::kBitOr}, {"bitxor", ReduceOp::kBitXor}};
  for (const auto& [text, op] : kOps) {
    if (text == name) return op;
  }
  return ReduceOp::kInvalid;
}

Value ReduceWith(Evaluator& e, const Args& args, ReduceOp op) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto src = e.Region(args["buffer"], args.RangeOf("buffer"), "the source of a reduction"),
             dst = e.Region(args["out"], args.RangeOf("out"), "the target of a reduction");
  if (!src || !dst) return Poison{};
  const auto axis = ReadAxis(e, args, *src, -1);
  const auto clear = args.Has("clear") ? e.Bool(args["clear"], args.RangeOf("clear"), "clear") : std::optional<bool>(true);
  const auto propagate = args.Has("nan_propagate") ? e.Bool(args["nan_propagate"], args.RangeOf("nan_propagate"), "nan_propagate")
                                                   : std::optional<bool>(true);
  if (!axis || !clear || !propagate) return Poison{};
  ProgramBuilder& builder = e.builder();
  builder.Add(tilert::Reduce{op, builder.R(e.ToTile(*src)), builder.R(e.ToTile(*dst)), *axis, *clear, *propagate});
  return NoneValue{};
}

Value Reduce(Evaluator& e, const Args& args) { return ReduceWith(e, args, ReduceOpNamed(LastName(args).substr(7))); }

Value ReduceNamed(Evaluator& e, const Args& args) {
  const auto name = e.String(args["reduce_type"], args.RangeOf("reduce_type"), "reduce_type");
  if (!name) return Poison{};
  const ReduceOp op = ReduceOpNamed(*name);
  if (op == ReduceOp::kInvalid)
    return e.Fail(args.RangeOf("reduce_type"), Cat("there is no reduction '", *name, "'"),
                  "sum, max, min, abssum, absmax, bitand, bitor and bitxor exist");
  return ReduceWith(e, args, op);
}

Value CumSum(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto src = e.Region(args["src"], args.RangeOf("src"), "the source of T.cumsum");
  const auto dst = args.Has("dst") ? e.Region(args["dst"], args.RangeOf("dst"), "the target of T.cumsum") : src;
  const auto reverse = e.Bool(args["reverse"], args.RangeOf("reverse"), "reverse");
  if (!src || !dst || !reverse) return Poison{};
  const auto axis = ReadAxis(e, args, *src, 0);
  if (axis) e.builder().Scan(e.ToTile(*src), e.ToTile(*dst), *axis, *reverse);
  return NoneValue{};
}

// Running maxima along `dim`: one point of a loop walks each line.
Value CumMax(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto src = e.Region(args["src"], args.RangeOf("src"), "the source of T.cummax");
  const auto dst = args.Has("dst") ? e.Region(args["dst"], args.RangeOf("dst"), "the target of T.cummax") : src;
  const auto reverse = e.Bool(args["reverse"], args.RangeOf("reverse"), "reverse");
  if (!src || !dst || !reverse) return Poison{};
  const auto axis = ReadAxis(e, args, *src, 0);
  if (!axis) return Poison{};
  if (dst->extent.size() != src->extent.size())
    return e.Fail(args.range(), "T.cummax takes buffers of one rank", "give the target the shape of the source");
  ProgramBuilder& builder = e.builder();
  const auto extent = [&](size_t d) { return src->extent[d] ? src->extent[d].In(&builder) : builder.Lit(int64_t{1}); };
  std::vector<std::string> names;
  std::vector<Val> extents;
  for (size_t d = 0; d < src->extent.size(); ++d) {
    names.push_back(Cat("i", d));
    extents.push_back(d == *axis ? builder.Lit(int64_t{1}) : extent(d));
  }
  const std::vector<Val> line = builder.OpenParallel(names, extents);
  const DType type = src->buffer.buffer().dtype;
  const Buf top = builder.Alloc("top", type, Scope::kVar, {});
  const Val t = builder.OpenFor(ForKind::kSerial, "t", builder.Lit(int64_t{0}), extent(*axis));
  std::vector<Val> from, to;
  for (size_t d = 0; d < line.size(); ++d) {
    const Val at = d != *axis ? line[d] : *reverse ? extent(d) - 1 - t : t;
    from.push_back(Shifted(e, src->start[d], at));
    to.push_back(Shifted(e, dst->start[d], at));
  }
  const Val value = builder.Load(src->buffer, from);
  builder.Store(top, {},
                builder.Select(t == builder.Lit(int64_t{0}), value, builder.Apply(ExprOp::kMax, {builder.Load(top, {}), value})));
  builder.Store(dst->buffer, to, builder.Load(top, {}));
  builder.Close();
  builder.Close();
  return NoneValue{};
}

// Of one point of a parallel loop: it looks at all elements.
Val AnyOfPoint(Evaluator& e, const BufferRegion& region, bool any) {
  ProgramBuilder& builder = e.builder();
  const Buf found = builder.Alloc(any ? "any" : "all", DType::kBool, Scope::kVar, {});
  builder.Store(found, {}, builder.Int(any ? 0 : 1, DType::kBool));
  std::vector<Val> at = region.start;
  int opened = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    if (!region.extent[d]) continue;
    at[d] = Shifted(e, at[d], builder.OpenFor(ForKind::kSerial, "k", builder.Lit(int64_t{0}), region.extent[d]));
    ++opened;
  }
  const Val flag = builder.Cast(builder.Load(region.buffer, at), DType::kBool);
  builder.Store(found, {}, any ? Or(builder.Load(found, {}), flag) : And(builder.Load(found, {}), flag));
  for (; opened > 0; --opened) builder.Close();
  return builder.Load(found, {});
}

// T.any_of(A[...]), T.all_of(A[...]): is any element, or every one, other than zero?
Value AnyOf(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto region = e.Region(args["buffer"], args.RangeOf("buffer"), Cat("the argument of ", args.builtin().path));
  if (!region) return Poison{};
  const bool any = args.builtin().path == "T.any_of";
  ProgramBuilder& builder = e.builder();
  if (builder.InParallel()) return e.Wrap(AnyOfPoint(e, *region, any));
  std::vector<std::string> names;
  std::vector<Val> extents;
  for (const Val& extent : region->extent) {
    names.push_back(Cat("i", names.size()));
    extents.push_back(extent ? extent : builder.Lit(int64_t{1}));
  }
  Buf flags = builder.Alloc("flags", DType::kInt32, Scope::kFragment, extents);
  const std::vector<Val> vars = builder.OpenParallel(names, extents);
  std::vector<Val> at;
  for (size_t d = 0; d < vars.size(); ++d) at.push_back(Shifted(e, region->start[d], vars[d]));
  builder.Store(flags, vars, builder.Cast(builder.Cast(builder.Load(region->buffer, at), DType::kBool), DType::kInt32));
  builder.Close();
  for (size_t d = extents.size(); d-- > 0;) {  // the last reduction keeps its dimension, of one element
    extents.pop_back();
    if (d == 0) extents.push_back(builder.Lit(int64_t{1}));
    const Buf less = builder.Alloc("flags", DType::kInt32, Scope::kFragment, extents);
    builder.Reduce(any ? ReduceOp::kMax : ReduceOp::kMin, flags, less, static_cast<uint32_t>(d));
    flags = less;
  }
  return e.Wrap(builder.Load(flags, {builder.Lit(int64_t{0})}) != builder.Lit(int64_t{0}));
}

// dst[j, i] = src[i, j] on the last two dimensions.
Value Transpose(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto src = e.Region(args["src"], args.RangeOf("src"), "the source of T.transpose"),
             dst = e.Region(args["dst"], args.RangeOf("dst"), "the target of T.transpose");
  if (!src || !dst) return Poison{};
  const size_t rank = src->extent.size(), target_rank = dst->extent.size();
  if (rank < 2 || target_rank < 2 || !src->extent[rank - 1] || !src->extent[rank - 2])
    return e.Fail(args.range(), "T.transpose takes matrices", "give buffers, or slices of two dimensions");
  const Matrix m = MatrixOf(e, *src, true), target = MatrixOf(e, *dst, false);
  if (Differ(m.rows, target.rows) || Differ(m.columns, target.columns)) {
    return e.Fail(args.range(), Cat("the transpose of ", ShapeText(e, *src), " does not fit ", ShapeText(e, *dst)),
                  "give the target the extents of the source, the last two the other way round");
  }
  ProgramBuilder& builder = e.builder();
  const std::vector<Val> extents = {src->extent[rank - 2], src->extent[rank - 1]};
  Buf source = src->buffer;
  std::vector<Val> from = src->start, to = dst->start;
  // In place: all of it is read before any is written.
  if (source.id() == dst->buffer.id() && m.rows && m.columns && !builder.InParallel()) {
    source = builder.Alloc("transposed", source.buffer().dtype, Scope::kFragment, extents);
    builder.Copy(e.ToTile(*src), source);
    from = {builder.Lit(int64_t{0}), builder.Lit(int64_t{0})};
  }
  const std::vector<Val> vars = builder.OpenParallel({"i", "j"}, extents);
  from[from.size() - 2] = Shifted(e, from[from.size() - 2], vars[0]);
  from.back() = Shifted(e, from.back(), vars[1]);
  to[target_rank - 2] = Shifted(e, to[target_rank - 2], vars[1]);
  to[target_rank - 1] = Shifted(e, to[target_rank - 1], vars[0]);
  builder.Store(dst->buffer, to, builder.Load(source, from));
  builder.Close();
  return NoneValue{};
}

}  // namespace

absl::Span<const Builtin> TileIntrinsics() {
  static constexpr std::string_view kReduce = "buffer out dim? clear? batch? nan_propagate? annotations?";
  static constexpr std::string_view kGemm =
      "A B C transpose_A? transpose_B? policy? clear_accum? k_pack? wg_wait? mbar? annotations?";
  static constexpr Builtin kBuiltins[] = {
      {"T.gemm", kGemm, Gemm},
      {"T.wgmma_gemm", kGemm, Gemm},
      {"T.fill", "buffer value annotations?", Fill},
      {"T.clear", "buffer annotations?", Fill},
      {"T.reduce_sum", kReduce, Reduce},
      {"T.reduce_max", kReduce, Reduce},
      {"T.reduce_min", kReduce, Reduce},
      {"T.reduce_abssum", kReduce, Reduce},
      {"T.reduce_absmax", kReduce, Reduce},
      {"T.reduce_bitand", kReduce, Reduce},
      {"T.reduce_bitor", kReduce, Reduce},
      {"T.reduce_bitxor", kReduce, Reduce},
      {"T.reduce", "buffer out reduce_type dim? clear? batch? nan_propagate? annotations?", ReduceNamed},
      {"T.cumsum", "src dst? dim? reverse? annotations?", CumSum},
      {"T.cummax", "src dst? dim? reverse? annotations?", CumMax},
      {"T.any_of", "buffer", AnyOf},
      {"T.all_of", "buffer", AnyOf},
      {"T.transpose", "src dst annotations?", Transpose},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
