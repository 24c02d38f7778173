// Launches, tensors, dims, and what is said about a program as a whole.
#include <algorithm>

#include "absl/strings/str_split.h"
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "frontend/legalize.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

Value Describes(Evaluator& e, TensorSpec spec) { return static_cast<const TensorSpec*>(e.New(std::move(spec))); }

bool ReadAccess(Evaluator& e, const Args& args, TensorSpec* spec) {
  if (!args.Has("access")) return true;
  const auto text = e.String(args["access"], args.RangeOf("access"), "access");
  if (!text) return false;
  spec->access = *text == "in"      ? Access::kIn
                 : *text == "out"   ? Access::kOut
                 : *text == "inout" ? Access::kInOut
                                    : Access::kInvalid;
  if (spec->access == Access::kInvalid)
    e.Fail(args.RangeOf("access"), Cat("'", *text, "' is no access"), "write \"in\", \"out\" or \"inout\"");
  return spec->access != Access::kInvalid;
}

// T.Tensor(shape, dtype, A.data): the memory of A under another shape.
Value TensorOver(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  return e.CallValue(FindBuiltin("T.view"), {args["data"], args["shape"], args["dtype"]}, args.range());
}

Value Tensor(Evaluator& e, const Args& args) {
  TensorSpec spec;
  const auto shape = e.Extents(args["shape"], args.RangeOf("shape"), "the shape of a tensor");
  const auto type = args.Has("dtype") ? e.Type(args["dtype"], args.RangeOf("dtype"), "the dtype of a tensor") : DType::kFloat32;
  if (args.Has("data")) return TensorOver(e, args);
  if (!shape || !type || !ReadAccess(e, args, &spec)) return Poison{};
  if (args.Has("strides")) {
    const auto strides = e.Extents(args["strides"], args.RangeOf("strides"), "the strides of a tensor");
    if (!strides) return Poison{};
    if (strides->size() != shape->size()) {
      return e.Fail(args.RangeOf("strides"),
                    Cat("a tensor of ", shape->size(), " dimensions has ", shape->size(), " strides, not ", strides->size()));
    }
    spec.strides = *strides;
  }
  spec.dtype = *type;
  spec.shape = *shape;
  spec.packing = PackingOf(args["dtype"]);
  return Describes(e, std::move(spec));
}

Value Scalar(Evaluator& e, const Args& args) {
  const auto type = e.Type(args["dtype"], args.RangeOf("dtype"), "the dtype of a scalar");
  if (!type) return Poison{};
  TensorSpec spec;
  spec.kind = TensorSpec::Kind::kScalar;
  spec.dtype = *type;
  if (args.Has("dim")) {
    spec.dim = e.Number(args["dim"], args.RangeOf("dim"), "dim");
    if (!spec.dim) return Poison{};
  }
  return Describes(e, std::move(spec));
}

// T.empty((M, N), dtype) and T.empty(M, N, dtype=dtype).
Value Empty(Evaluator& e, const Args& args) {
  std::vector<Value> rest = args.rest();
  Value dtype = args["dtype"];
  if (dtype.is_none() && rest.size() > 1 &&
      (rest.back().Is<DType>() || rest.back().Object<const StringObject>() || PackingOf(rest.back()) != Packing::kNone)) {
    dtype = rest.back();
    rest.pop_back();
  }
  if (rest.empty()) return e.Fail(args.range(), "T.empty takes a shape", "write T.empty((M, N), dtype)");
  const bool is_list = rest.size() == 1 && rest[0].Object<SequenceObject>();
  const auto shape = e.Extents(is_list ? rest[0] : e.Tuple(rest), args.range(), "the shape of T.empty");
  const auto type = dtype.is_none() ? DType::kFloat32 : e.Type(dtype, args.range(), "the dtype of T.empty");
  if (!shape || !type) return Poison{};
  TensorSpec spec;
  spec.kind = TensorSpec::Kind::kEmpty;
  spec.dtype = *type;
  spec.shape = *shape;
  spec.packing = PackingOf(dtype);
  return Describes(e, std::move(spec));
}

// One name, or several separated by commas or spaces.
Value Dims(Evaluator& e, const Args& args) {
  const auto text = e.String(args["name"], args.RangeOf("name"), Cat("the name in ", args.builtin().path));
  if (!text) return Poison{};
  std::vector<Value> dims;
  for (absl::string_view name : absl::StrSplit(*text, absl::ByAnyChar(", "), absl::SkipEmpty()))
    dims.push_back(e.DimOrSetting(std::string(name)));
  if (dims.empty())
    return e.Fail(args.range(), Cat(args.builtin().path, " needs a name"), Cat("write ", args.builtin().path, "(\"n\")"));
  return dims.size() == 1 ? dims[0] : e.Tuple(std::move(dims));
}

Value Constant(Evaluator& e, const Args& args) {
  const auto name = e.String(args["name"], args.RangeOf("name"), "the name of a constant");
  const auto items = e.Items(args["candidates"], args.RangeOf("candidates"), "the candidates of a constant");
  if (!name || !items) return Poison{};
  std::vector<int64_t> candidates;
  for (const Value& item : *items) {
    const auto candidate = e.Int(item, args.RangeOf("candidates"), "a candidate");
    if (!candidate) return Poison{};
    candidates.push_back(*candidate);
  }
  if (candidates.empty()) return e.Fail(args.RangeOf("candidates"), Cat("the constant '", *name, "' has no candidate"));
  return e.ConstantOrSetting(*name, std::move(candidates));
}

Value Workspace(Evaluator& e, const Args& args) {
  const auto shape = e.Extents(args["shape"], args.RangeOf("shape"), "the shape of a workspace");
  const auto type = e.Type(args["dtype"], args.RangeOf("dtype"), "the dtype of a workspace");
  const auto zeroed = e.Bool(args["zeroed"], args.RangeOf("zeroed"), "zeroed");
  const auto name = args.Has("name") ? e.String(args["name"], args.RangeOf("name"), "name") : e.NameHint("workspace");
  if (!shape || !type || !zeroed || !name) return Poison{};
  return e.builder().Workspace(*name, *type, *shape, *zeroed);
}

Value Threads(Evaluator& e, const Args& args) {
  if (!args.Has("threads")) return int64_t{128};
  const auto* list = args["threads"].Object<SequenceObject>();
  if (list == nullptr) return args["threads"];
  Value product = int64_t{1};
  for (const Value& item : list->items) product = e.BinaryOperator(ast::BinaryOp::kMul, product, item, args.RangeOf("threads"));
  return product;
}

// An int for the first dimension of the grid, or one extent a dimension; what is left out is 1.
bool ClusterDims(Evaluator& e, const Args& args, ContextObject* context) {
  const SourceRange range = args.RangeOf("cluster_dims");
  const auto extents = e.Extents(args["cluster_dims"], range, "cluster_dims");
  if (!extents) return false;
  context->cluster = *extents;
  for (size_t d = context->grid.size(); d < context->cluster.size(); ++d) {
    if (!e.builder().exprs().IsInt(context->cluster[d].expr(), 1))
      return e.Fail(range, Cat("the grid has ", context->grid.size(), " dimensions, cluster_dims ", context->cluster.size()),
                    "give one for each"),
             false;
  }
  while (context->cluster.size() < context->grid.size()) context->cluster.push_back(e.builder().Lit(int64_t{1}));
  context->cluster.resize(context->grid.size());
  const auto is_one = [&](const Val& extent) { return e.builder().exprs().IsInt(extent.expr(), 1); };
  if (std::all_of(context->cluster.begin(), context->cluster.end(), is_one)) context->cluster.clear();  // no clusters
  return true;
}

Value Kernel(Evaluator& e, const Args& args) {
  ContextObject context;
  for (size_t i = 0; i < args.rest().size(); ++i) {
    const auto* loop = args.rest()[i].Object<const LoopObject>();  // T.Kernel(T.grid(a, b))
    if (loop != nullptr && loop->kind == LoopObject::Kind::kGrid) {
      context.grid.insert(context.grid.end(), loop->extents.begin(), loop->extents.end());
      continue;
    }
    const auto extents = e.Extents(args.rest()[i], args.rest_ranges()[i], "the grid of T.Kernel");
    if (!extents) return Poison{};
    context.grid.insert(context.grid.end(), extents->begin(), extents->end());
  }
  if (context.grid.empty() || context.grid.size() > 3)
    return e.Fail(args.range(), Cat("T.Kernel takes 1 to 3 grid extents, not ", context.grid.size()),
                  "write T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by)");
  context.threads = e.Number(Threads(e, args), args.RangeOf("threads"), "threads");
  const auto* dims = args["threads"].Object<SequenceObject>();
  if (dims == nullptr) {
    context.thread_extents = {context.threads};
  } else {
    for (const Value& item : dims->items) context.thread_extents.push_back(e.Number(item, args.RangeOf("threads"), "threads"));
  }
  const auto cooperative = e.Bool(args["cooperative"], args.RangeOf("cooperative"), "cooperative");
  if (!context.threads || !cooperative) return Poison{};
  context.cooperative = *cooperative;
  if (args.Has("name")) {
    const auto name = e.String(args["name"], args.RangeOf("name"), "name");
    if (!name) return Poison{};
    context.name = *name;
  }
  if (args.Has("cluster_dims") && !ClusterDims(e, args, &context)) return Poison{};
  return static_cast<const ContextObject*>(e.New(std::move(context)));
}

Value BlockBinding(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto dim = args.Has("dim") ? e.Int(args["dim"], args.RangeOf("dim"), "dim") : std::optional<int64_t>(0);
  if (!dim) return Poison{};
  const auto& vars = e.builder().program().launches.back().block_vars;
  if (*dim < 0 || *dim >= static_cast<int64_t>(vars.size()))
    return e.Fail(args.range(), Cat("this launch has ", vars.size(), " grid dimensions"));
  return e.builder().VarVal(vars[*dim]);
}

Value Assume(Evaluator& e, const Args& args) {
  const Value& condition = args["condition"];
  if (IsSymbolic(condition)) {
    // Inside a launch it may speak of block indices, which only the author can promise; it is taken on trust there.
    const Val value = e.Number(condition, args.range(), "the condition");
    if (value && !e.in_launch()) e.builder().Assume(e.builder().Cast(value, DType::kBool));
    return NoneValue{};
  }
  const auto truth = e.Truth(condition, args.range());
  return truth.value_or(true) ? Value()
                              : e.Fail(args.range(), "this assumption does not hold", "see the settings that it depends on");
}

Value SyncGrid(Evaluator& e, const Args& args) {
  if (e.RequireLaunch(args)) e.builder().Add(GridSyncMarker());
  return NoneValue{};
}

Value FastMath(Evaluator& e, const Args&) {
  e.SetFastMath();
  return NoneValue{};
}

Value Same(Evaluator&, const Args& args) { return args.rest().empty() ? Value() : args.rest()[0]; }

Value AsType(Evaluator& e, const Args& args) {
  const auto type = e.Type(args["name"], args.range(), "the argument of T.dtype");
  return type ? Value(*type) : Value(Poison{});
}

Value Fp8Type(Evaluator& e, const Args& args) {
  const auto format = args.Has("format") ? e.String(args["format"], args.range(), "the format") : std::string("e4m3");
  if (!format) return Poison{};
  return *format == "e5m2" ? DType::kFloat8E5M2 : DType::kFloat8E4M3;
}

}  // namespace

absl::Span<const Builtin> LaunchIntrinsics() {
  static constexpr Builtin kBuiltins[] = {
      {"T.Tensor", "shape dtype? data? scope? | access? strides?", Tensor},
      {"T.StridedTensor", "shape strides dtype? scope? | access? data?", Tensor},
      {"T.scalar", "dtype | dim?", Scalar},
      {"T.empty", "* dtype?", Empty},
      {"T.dynamic", "name dtype?", Dims},
      {"T.symbolic", "name dtype?", Dims},
      {"T.const", "name dtype?", Dims},
      {"T.constant", "name candidates", Constant},
      {"T.workspace", "shape dtype | zeroed? name?", Workspace},
      {"T.alloc_global", "shape dtype scope? | zeroed? name?", Workspace},
      {"T.Kernel", "* threads? prelude? is_cpu? name? cooperative? cluster_dims?", Kernel},
      {"T.ClusterKernel", "* threads? prelude? is_cpu? name? cooperative? cluster_dims?", Kernel},
      {"T.get_block_binding", "dim?", BlockBinding},
      {"T.sync_grid", "", SyncGrid},
      {"T.assume", "condition", Assume},
      {"T.fast_math", "", FastMath},
      {"T.prim_func", "* **", Same},
      {"T.macro", "* **", Same},
      {"T.dtype", "name", AsType},
      {"T.determine_fp8_type", "format?", Fp8Type},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
