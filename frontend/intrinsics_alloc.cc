// Buffers of a block, and what is asked of their layout.
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "frontend/legalize.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

Value Allocate(Evaluator& e, const Args& args, Scope scope, std::string_view name) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto shape = e.Extents(args["shape"], args.RangeOf("shape"), Cat("the shape in ", args.builtin().path));
  const auto type = e.Type(args["dtype"], args.RangeOf("dtype"), Cat("the dtype in ", args.builtin().path));
  if (!shape || !type) return Poison{};
  const Buf buffer = e.builder().Alloc(e.NameHint(name), *type, scope, *shape);
  const Packing packing = PackingOf(args["dtype"]);
  return packing == Packing::kNone ? buffer : MakeRounded(e, buffer, packing);
}

Value Shared(Evaluator& e, const Args& args) { return Allocate(e, args, Scope::kShared, "shared"); }
Value Fragment(Evaluator& e, const Args& args) { return Allocate(e, args, Scope::kFragment, "fragment"); }
Value Local(Evaluator& e, const Args& args) { return Allocate(e, args, Scope::kLocal, "local"); }

// A fragment that parallel loops accumulate into; its parts are added up after each loop, so that T.finalize_reducer has nothing
// to do.
Value ReducerFragment(Evaluator& e, const Args& args) {
  const auto op = args.Has("op") ? e.String(args["op"], args.RangeOf("op"), "op") : std::string("sum");
  if (!op) return Poison{};
  if (*op != "sum" && *op != "max" && *op != "min")
    return e.Fail(args.RangeOf("op"), Cat("there is no reducer '", *op, "'"), "sum, max and min exist");
  const Value made = Allocate(e, args, Scope::kFragment, "reducer");
  if (const auto* buffer = made.As<Buf>())
    e.AddReducer({buffer->id(), *op == "sum" ? ReduceOp::kSum : *op == "max" ? ReduceOp::kMax : ReduceOp::kMin});
  return made;
}

// T.alloc_var(dtype), (dtype, init), (dtype, "local.var"), (dtype, init, "local.var"), init= by name.
Value Var(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto type = e.Type(args["dtype"], args.RangeOf("dtype"), "the dtype in T.alloc_var");
  if (!type) return Poison{};
  Value init = args["init"];
  for (const Value& value : args.rest()) {
    if (!value.Object<const StringObject>()) init = value;
  }
  const Buf variable = e.builder().Alloc(e.NameHint("var"), *type, Scope::kVar, {});
  if (init.is_none()) return variable;
  const Val number = e.Number(init, args.range(), "the initial value in T.alloc_var");
  if (number) e.builder().Store(variable, {}, number);
  return variable;
}

Value Barrier(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  std::vector<Value> counts = {args["arrive_count"]};
  if (const auto* list = args["arrive_count"].Object<SequenceObject>()) counts = list->items;
  if (counts.empty()) return e.Fail(args.range(), "T.alloc_barrier needs a count of arrivals", "write T.alloc_barrier(128)");
  std::optional<int64_t> first;
  for (const Value& count : counts) {
    const auto n = e.Int(count, args.RangeOf("arrive_count"), "the count of arrivals");
    if (!n) return Poison{};
    if (*n < 1 || *n > 1024) return e.Fail(args.RangeOf("arrive_count"), Cat("a barrier waits for 1 to 1024 arrivals, not ", *n));
    if (first && *first != *n) {
      return e.Fail(args.RangeOf("arrive_count"), "the barriers of one array wait for the same number of arrivals",
                    "make an array for each count");
    }
    first = n;
  }
  std::vector<Val> shape = {e.builder().Lit(static_cast<int64_t>(counts.size()))};
  if (args.Has("shape")) {
    const auto given = e.Extents(args["shape"], args.RangeOf("shape"), "the shape of a barrier array");
    if (!given) return Poison{};
    shape = *given;
  }
  return e.builder().Alloc(e.NameHint("barrier"), DType::kUInt64, Scope::kBarrier, shape, static_cast<uint32_t>(*first));
}

// --- Layouts
// ----------------------------------------------------------------------------------------------------------------------

constexpr std::string_view kSwizzled = "layout.swizzled", kRowMajor = "layout.row_major";

Value SwizzledLayout(Evaluator& e, const Args&) { return Symbol{e.Intern(std::string(kSwizzled))}; }
Value RowMajorLayout(Evaluator& e, const Args&) { return Symbol{e.Intern(std::string(kRowMajor))}; }

// T.Layout(shape, function) and T.Fragment(...): described, but only passed on to T.annotate_layout.
Value OwnLayout(Evaluator& e, const Args& args) {
  const Value* function = args.rest().size() > 1 ? &args.rest()[1] : nullptr;
  for (const auto& [name, value] : args.keywords()) {
    if (name == "forward_fn") function = &value;
  }
  if (function == nullptr || args.builtin().path != "T.Layout") return Symbol{e.Intern("layout.own")};
  return static_cast<const LayoutObject*>(e.New(LayoutObject{*function}));
}

// The elements of a tensor lie where a function says: part of what the program means.
Value OrderTensor(Evaluator& e, const Args& args, const Buf& buffer, const LayoutObject* layout) {
  if (layout == nullptr) {
    return e.Fail(args.range(), Cat("this layout of the tensor '", buffer.buffer().name, "' is not supported"),
                  "write T.Layout(shape, lambda i, j: [...]), or compute the subscripts");
  }
  std::vector<Value> subscripts;
  for (size_t i = 0; i < buffer.buffer().shape.size(); ++i)
    subscripts.push_back(e.builder().Wrap(ViewSubscript(e.builder().exprs(), i)));
  const Value position = e.CallValue(layout->function, std::move(subscripts), args.range());
  if (position.poisoned()) return Poison{};
  const auto order = e.Extents(position, args.range(), "what the function of a layout returns");
  if (!order || !AddElementOrder(e, buffer, *order, args.range())) return Poison{};
  return NoneValue{};
}

Value AnnotateLayout(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto* map = args["layouts"].Object<DictObject>();
  if (map == nullptr)
    return e.Fail(args.range(), "T.annotate_layout takes a dict", "write {buffer: T.make_swizzled_layout(buffer)}");
  for (const auto& [key, layout] : map->items) {
    const auto* buffer = key.As<Buf>();
    const auto* symbol = layout.As<Symbol>();
    if (buffer == nullptr)
      return e.Fail(args.range(), Cat("a layout belongs to a buffer, not to ", Describe(key)), "write {buffer: layout}");
    if (symbol == nullptr || (*symbol->path != kSwizzled && *symbol->path != kRowMajor)) {
      // How a tensor lies in memory is part of its meaning; on the chip it is a question of speed alone, which the lowering
      // answers.
      if (buffer->buffer().scope == Scope::kGlobal) {
        if (OrderTensor(e, args, *buffer, layout.Object<const LayoutObject>()).poisoned()) return Poison{};
        continue;
      }
      e.diagnostics().Warning(args.range(), Cat("the layout of '", buffer->buffer().name, "' is left to the lowering"));
      continue;
    }
    const auto kind = *symbol->path == kSwizzled ? AnnotationKind::kLayoutSwizzled : AnnotationKind::kLayoutRowMajor;
    e.builder().Add(Annotate{kind, buffer->id(), {}, ""});
  }
  return NoneValue{};
}

// --- Views
// ------------------------------------------------------------------------------------------------------------------------

// T.reshape(A, shape), T.view(A, shape, dtype).
Value Reshape(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto* buffer = args["src"].As<Buf>();
  if (buffer == nullptr)
    return e.Fail(args.RangeOf("src"), Cat(args.builtin().path, " takes a whole buffer, not ", Describe(args["src"])),
                  "index the part");
  const auto type = args.Has("dtype") ? e.Type(args["dtype"], args.RangeOf("dtype"), "the dtype of a view")
                                      : std::optional(buffer->buffer().dtype);
  if (!type) return Poison{};
  const Buffer& base = buffer->buffer();
  const bool is_same = *type == base.dtype;
  if (!is_same &&
      (*type == DType::kBool || base.dtype == DType::kBool || base.shape.empty() || PackingOf(args["dtype"]) != Packing::kNone))
    return e.Fail(args.RangeOf("dtype"), Cat("'", base.name, "' has no view as ", DTypeName(*type)),
                  "copy and cast the elements");
  if (!args.Has("shape") && is_same) return *buffer;
  std::vector<Val> own;  // the shape of the buffer, its last dimension in elements of the type
  for (const Expr extent : base.shape) own.push_back(e.builder().Wrap(extent));
  if (!is_same) own.back() = FloorDiv(own.back() * DTypeBits(base.dtype), DTypeBits(*type));
  const auto shape = args.Has("shape") ? e.Extents(args["shape"], args.RangeOf("shape"), "the shape of a view") : own;
  if (!shape) return Poison{};
  const std::string name = e.NameHint(base.name);
  return is_same ? MakeReshaped(e, *buffer, *shape, name, args.range())
                 : MakeReinterpreted(e, *buffer, *shape, *type, name, args.range());
}

Value AnnotateSafeValue(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto* map = args["values"].Object<DictObject>();
  if (map == nullptr) return e.Fail(args.range(), "T.annotate_safe_value takes a dict", "write {buffer: value}");
  for (const auto& [key, value] : map->items) {
    const auto* buffer = key.As<Buf>();
    const Val number = e.Number(value, args.range(), "a safe value");
    if (buffer == nullptr)
      return e.Fail(args.range(), Cat("a safe value belongs to a buffer, not to ", Describe(key)), "write {buffer: value}");
    if (number)
      e.builder().Add(Annotate{
          AnnotationKind::kSafeValue, buffer->id(), {e.builder().E(number.As(&e.builder(), buffer->buffer().dtype))}, ""});
  }
  return NoneValue{};
}

Value UseSwizzle(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto enable = args.Has("enable") ? e.Truth(args["enable"], args.RangeOf("enable")) : std::optional<bool>(true);
  const Val panel = e.Number(args["panel_size"], args.RangeOf("panel_size"), "panel_size");
  const auto order = args.Has("order") ? e.String(args["order"], args.RangeOf("order"), "order") : std::string("row");
  if (!enable || !panel || !order) return Poison{};
  if (!*enable) return NoneValue{};
  if (*order != "row" && *order != "col" && *order != "column") {
    return e.Fail(args.RangeOf("order"), Cat("'", *order, "' is no order"), "write \"row\" or \"column\"");
  }
  e.builder().Add(Annotate{AnnotationKind::kUseSwizzle, kNoId, {e.builder().E(panel)}, *order == "row" ? "row" : "col"});
  return NoneValue{};
}

Value NoWarpSpecialization(Evaluator& e, const Args& args) {
  if (e.RequireLaunch(args)) e.builder().Add(Annotate{AnnotationKind::kNoWarpSpecialization, kNoId, {}, ""});
  return NoneValue{};
}

// Hints that change nothing about what a program means and that no lowering here needs.
Value Hint(Evaluator&, const Args&) { return NoneValue{}; }

}  // namespace

absl::Span<const Builtin> AllocIntrinsics() {
  static constexpr Builtin kBuiltins[] = {
      {"T.alloc_shared", "shape dtype scope?", Shared},
      {"T.alloc_fragment", "shape dtype scope?", Fragment},
      {"T.alloc_reducer", "shape dtype op? replication?", ReducerFragment},
      {"T.finalize_reducer", "reducer", Hint},
      {"T.alloc_local", "shape dtype scope?", Local},
      {"T.alloc_var", "dtype * init? scope?", Var},
      {"T.alloc_barrier", "arrive_count | shape?", Barrier},
      {"T.make_swizzled_layout", "buffer k_major? allow_pad?", SwizzledLayout},
      {"T.make_full_bank_swizzled_layout", "buffer", SwizzledLayout},
      {"T.make_half_bank_swizzled_layout", "buffer", SwizzledLayout},
      {"T.make_quarter_bank_swizzled_layout", "buffer", SwizzledLayout},
      {"T.make_row_major_layout", "buffer", RowMajorLayout},
      {"T.make_linear_layout", "buffer", RowMajorLayout},
      {"T.Layout", "* **", OwnLayout},
      {"T.Fragment", "* **", OwnLayout},
      {"T.reshape", "src shape", Reshape},
      {"T.view", "src shape? dtype?", Reshape},
      {"T.annotate_layout", "layouts allow_reannotation? allow_buffer_region?", AnnotateLayout},
      {"T.annotate_safe_value", "values", AnnotateSafeValue},
      {"T.use_swizzle", "panel_size order? enable?", UseSwizzle},
      {"T.disable_warp_specialized", "", NoWarpSpecialization},
      {"T.annotate_l2_hit_ratio", "ratios", Hint},
      {"T.annotate_min_blocks_per_sm", "n", Hint},
      {"T.annotate_restrict_buffers", "*", Hint},
      {"T.no_set_max_nreg", "", Hint},
      {"T.disable_warp_group_reg_alloc", "", Hint},
      {"T.annotate_producer_reg_dealloc", "reg_count?", Hint},
      {"T.annotate_consumer_reg_alloc", "reg_count?", Hint},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
