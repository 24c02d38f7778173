// Where the elements of a view lie in its base.
#include "frontend/views.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/context.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

// No program has so many variables (docs/ir_spec.md, "Limits").
constexpr int64_t kFirstSubscript = int64_t{1} << 30;

struct Extents {
  std::vector<Val> values;
  std::vector<std::optional<int64_t>> known;
};

Extents Known(ProgramBuilder& builder, const std::vector<Val>& values) {
  Extents extents;
  for (const Val& value : values) {
    extents.values.push_back(value.In(&builder));
    int64_t number = 0;
    const bool is_known = builder.exprs().AsInt(extents.values.back().expr(), &number);
    extents.known.push_back(is_known ? std::optional(number) : std::nullopt);
  }
  return extents;
}

// Dimensions [view_begin, view_end) of the view hold the same elements as [base_begin, base_end) of the base.
struct Group {
  size_t view_begin, view_end, base_begin, base_end;
  bool is_same = false;  // one dimension each, of one extent
};

std::optional<int64_t> Product(const Extents& extents, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) {
    if (!extents.known[i] || __builtin_mul_overflow(product, *extents.known[i], &product)) return std::nullopt;
  }
  return product;
}

// The finest groups, last dimensions first; what is not known goes into one group with everything before it.
std::vector<Group> Match(const Extents& view, const Extents& base) {
  std::vector<Group> groups;
  size_t v = view.values.size(), b = base.values.size();
  while (v > 0 || b > 0) {
    Group group{v, v, b, b};
    if (v > 0 && b > 0 && view.values[v - 1].expr() == base.values[b - 1].expr()) {
      groups.push_back({--v, group.view_end, --b, group.base_end, true});
      continue;
    }
    if (v > 0) --group.view_begin;
    if (b > 0) --group.base_begin;
    for (;;) {
      const auto left = Product(view, group.view_begin, v), right = Product(base, group.base_begin, b);
      if (left && right && *left == *right) break;
      const bool is_known = left && right;
      if (is_known && *left < *right && group.view_begin > 0) {
        --group.view_begin;
      } else if (is_known && *left > *right && group.base_begin > 0) {
        --group.base_begin;
      } else {
        group.view_begin = group.base_begin = 0;
        break;
      }
    }
    v = group.view_begin;
    b = group.base_begin;
    groups.push_back(group);
  }
  return groups;
}

// The index in `base` of the element at `subscripts` of an array of the view's extents.
std::vector<Val> Reshaped(ProgramBuilder& builder, const std::vector<Val>& subscripts, const Extents& view, const Extents& base,
                          std::vector<bool>* guarded) {
  std::vector<Val> map(base.values.size(), builder.Lit(int64_t{0}));
  guarded->assign(view.values.size(), false);
  for (const Group& group : Match(view, base)) {
    if (group.is_same) {
      map[group.base_begin] = subscripts[group.view_begin];
      continue;
    }
    Val flat = builder.Lit(int64_t{0});
    for (size_t v = group.view_begin; v < group.view_end; ++v) {
      flat = flat * view.values[v] + subscripts[v];
      if (v > group.view_begin) (*guarded)[v] = true;
    }
    for (size_t b = group.base_end; b-- > group.base_begin;) {
      // The first dimension takes what is left: beyond the view is beyond the base.
      map[b] = b == group.base_begin ? flat : flat % base.values[b];
      flat = FloorDiv(flat, base.values[b]);
    }
    if (group.base_begin == group.base_end) (*guarded)[group.view_begin] = true;
  }
  return map;
}

std::vector<Val> Shape(ProgramBuilder& builder, const Buf& buffer) {
  std::vector<Val> shape;
  for (const Expr extent : buffer.buffer().shape) shape.push_back(builder.Wrap(extent));
  return shape;
}

std::vector<Val> Subscripts(ProgramBuilder& builder, size_t rank) {
  std::vector<Val> subscripts;
  for (size_t i = 0; i < rank; ++i) subscripts.push_back(builder.Wrap(ViewSubscript(builder.exprs(), i)));
  return subscripts;
}

// The greatest value of `e` when each subscript is within the shape; none if it cannot be told.
Val Greatest(ProgramBuilder& builder, Expr e, const std::vector<Val>& shape) {
  const ExprNode node = builder.exprs()[e];
  const auto operand = [&](size_t i) { return Greatest(builder, node.args[i], shape); };
  int64_t number = 0;
  const bool has_number = node.args.size() == 2 && builder.exprs().AsInt(node.args[1], &number);
  switch (node.op) {
    case ExprOp::kIntImm: return node.i >= 0 ? builder.Wrap(e) : Val();
    case ExprOp::kVar: return node.i >= kFirstSubscript ? shape[node.i - kFirstSubscript] - 1 : Val();
    case ExprOp::kAdd:
    case ExprOp::kMul: {
      const Val a = operand(0), b = operand(1);
      if (!a || !b) return {};
      return node.op == ExprOp::kAdd ? a + b : a * b;
    }
    case ExprOp::kFloorDiv: {
      const Val a = operand(0);
      return a && has_number && number > 0 ? FloorDiv(a, builder.Wrap(node.args[1])) : Val();
    }
    case ExprOp::kFloorMod: {
      const Val a = operand(0);
      return a && has_number && number > 0 ? Min(a, builder.Lit(number - 1)) : Val();
    }
    default: return {};
  }
}

constexpr std::pair<std::string_view, Packing> kPackings[] = {{"T.int4", Packing::kInt4},
                                                              {"T.uint4", Packing::kUInt4},
                                                              {"T.float4_e2m1fn", Packing::kFloat4},
                                                              {"T.float4_e2m1", Packing::kFloat4}};

}  // namespace

DType ElementType(Packing packing) {
  switch (packing) {
    case Packing::kInt4: return DType::kInt8;
    case Packing::kUInt4: return DType::kUInt8;
    case Packing::kFloat4: return DType::kFloat8E4M3;
    case Packing::kNone: break;
  }
  return DType::kInvalid;
}

Packing PackingNamed(std::string_view path) {
  for (const auto& [name, packing] : kPackings) {
    if (name == path) return packing;
  }
  return Packing::kNone;
}

Packing PackingOf(const Value& value) {
  if (const auto* symbol = value.As<Symbol>()) return PackingNamed(*symbol->path);
  const auto* text = value.Object<const StringObject>();
  return text ? PackingNamed("T." + text->text) : Packing::kNone;
}

Expr ViewSubscript(ExprArena& arena, size_t dim) {
  return arena.Leaf(ExprOp::kVar, kFirstSubscript + static_cast<int64_t>(dim), DType::kIndex);
}

Value MakeReshaped(Context& context, const Buf& buffer, const std::vector<Val>& shape, std::string name, SourceRange range) {
  ProgramBuilder& builder = context.builder();
  const Extents view = Known(builder, shape), base = Known(builder, Shape(builder, buffer));
  const auto wanted = Product(view, 0, view.known.size()), has = Product(base, 0, base.known.size());
  if (wanted && has && wanted != has) {
    return context.Fail(
        range, absl::StrCat("a view of ", *wanted, " elements cannot be made of '", buffer.buffer().name, "', which has ", *has),
        "give a shape of as many elements");
  }
  const Buf made = builder.Declare(std::move(name), buffer.buffer().dtype, buffer.buffer().scope, shape);
  View entry{made.id(), buffer.id(), {}, {}, kNoId};
  for (const Val& index : Reshaped(builder, Subscripts(builder, shape.size()), view, base, &entry.guarded))
    entry.map.push_back(Fold(builder.exprs(), builder.Index(index)));
  context.AddView(std::move(entry));
  return made;
}

Value MakeReinterpreted(Context& context, const Buf& buffer, std::vector<Val> shape, DType type, std::string name,
                        SourceRange range) {
  ProgramBuilder& builder = context.builder();
  const int from = DTypeBits(buffer.buffer().dtype), to = DTypeBits(type);
  std::vector<Val> elements = shape;  // of the base, as the view sees them
  int64_t columns = 0;
  if (to >= from) {
    elements.push_back(builder.Lit(int64_t{to / from}));
  } else if (shape.empty() || (builder.exprs().AsInt(builder.Index(shape.back()), &columns) && columns % (from / to) != 0)) {
    return context.Fail(range, Cat("a view as ", DTypeName(type), " has a last dimension that is a multiple of ", from / to),
                        "choose another shape");
  } else {
    elements.back() = builder.Wrap(Fold(builder.exprs(), builder.Index(FloorDiv(elements.back().In(&builder), from / to))));
  }
  const Value reshaped = MakeReshaped(context, buffer, elements, name, range);
  const auto* base = reshaped.As<Buf>();
  if (base == nullptr) return reshaped;
  const Buf made = builder.Declare(std::move(name), type, buffer.buffer().scope, shape);
  View entry{made.id(), base->id(), {}, std::vector<bool>(shape.size(), false)};
  for (size_t i = 0; i < shape.size(); ++i) entry.map.push_back(ViewSubscript(builder.exprs(), i));
  (to >= from ? entry.joins : entry.splits) = to >= from ? to / from : from / to;
  context.AddView(std::move(entry));
  return made;
}

Buf MakePacked(Context& context, const Buf& base, const std::vector<Val>& shape, Packing packing) {
  ProgramBuilder& builder = context.builder();
  const Buf made = builder.Declare(base.buffer().name, ElementType(packing), Scope::kGlobal, shape);
  View entry{made.id(), base.id(), {}, std::vector<bool>(shape.size(), false), kNoId, packing};
  const std::vector<Val> subscripts = Subscripts(builder, shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_last = i + 1 == shape.size();
    entry.map.push_back(builder.Index(is_last ? FloorDiv(subscripts[i], builder.Lit(int64_t{2})) : subscripts[i]));
  }
  entry.half = ViewSubscript(builder.exprs(), shape.size() - 1);
  context.AddView(std::move(entry));
  return made;
}

Buf MakeRounded(Context& context, const Buf& base, Packing packing) {
  ProgramBuilder& builder = context.builder();
  const std::vector<Val> shape = Shape(builder, base);
  const Buf made = builder.Declare(base.buffer().name, base.buffer().dtype, base.buffer().scope, shape);
  View entry{made.id(), base.id(), {}, std::vector<bool>(shape.size(), false), kNoId, packing};
  for (size_t i = 0; i < shape.size(); ++i) entry.map.push_back(ViewSubscript(builder.exprs(), i));
  context.AddView(std::move(entry));
  return made;
}

bool AddElementOrder(Context& context, const Buf& buffer, const std::vector<Val>& order, SourceRange range) {
  ProgramBuilder& builder = context.builder();
  const std::vector<Val> shape = Shape(builder, buffer);
  std::vector<Val> extents;
  for (const Val& position : order) {
    const Expr e = Fold(builder.exprs(), builder.Index(position));
    const ExprNode node = builder.exprs()[e];
    const bool is_subscript = node.op == ExprOp::kVar && node.i >= kFirstSubscript;
    const Val greatest = is_subscript ? Val() : Greatest(builder, e, shape);
    if (!is_subscript && !greatest) {
      context.Fail(range, "how far this layout reaches cannot be told",
                   "make it of the subscripts with +, *, // and % by numbers");
      return false;
    }
    extents.push_back(is_subscript ? shape[node.i - kFirstSubscript]
                                   : builder.Wrap(Fold(builder.exprs(), builder.E(greatest + 1))));
  }
  const Extents view = Known(builder, extents), base = Known(builder, shape);
  const auto wanted = Product(view, 0, view.known.size()), has = Product(base, 0, base.known.size());
  if (wanted && has && wanted != has) {
    context.Fail(range,
                 absl::StrCat("this layout has ", *wanted, " places for the ", *has, " elements of '", buffer.buffer().name, "'"),
                 "give each element a place of its own, without gaps");
    return false;
  }
  View entry{buffer.id(), buffer.id(), {}, {}, static_cast<uint32_t>(builder.program().launches.size()) - 1};
  for (const Val& index : Reshaped(builder, order, view, base, &entry.guarded))
    entry.map.push_back(Fold(builder.exprs(), builder.Index(index)));
  entry.guarded.assign(shape.size(), true);
  context.AddView(std::move(entry));
  return true;
}

}  // namespace tilert::frontend
