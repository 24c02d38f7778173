#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/evaluator.h"
#include "frontend/span.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

bool NamesType(const Value& value) { return value.Is<DType>() || value.Object<const StringObject>(); }

}  // namespace

Value Evaluator::EvalSubscript(const ast::Subscript& node, SourceRange range) {
  const Value object = Eval(node.value);
  const Value index = Eval(node.index);
  if (object.poisoned() || index.poisoned()) return Poison{};
  if (const auto* buffer = object.As<Buf>()) return SubscriptBuffer(*buffer, index, range);
  if (const auto* dict = object.Object<DictObject>()) return SubscriptDict(*dict, index, range);
  if (object.Object<SequenceObject>() || object.Object<const StringObject>()) return SubscriptSequence(object, index, range);
  if (object.Is<Host>()) return object;
  if (const auto* builtin = object.Object<const Builtin>()) {
    // T.Tensor[[M, K], dtype] means T.Tensor([M, K], dtype); T.Tensor[M, K] gives the shape alone.
    CallArgs args;
    const auto* items = index.Object<SequenceObject>();
    const bool separate =
        items && !items->items.empty() && (items->items[0].Object<SequenceObject>() || NamesType(items->items.back()));
    args.positional = separate ? items->items : std::vector<Value>{index};
    args.ranges.assign(args.positional.size(), node.index->range);
    return InvokeBuiltin(*builtin, std::move(args), range);
  }
  if (const auto* region = object.Object<const BufferRegion>()) {
    return Fail(range, absl::StrCat("a part of '", region->buffer.buffer().name, "' cannot be subscripted again"),
                "write all subscripts in one pair of brackets");
  }
  return Wrong(object, node.value->range, "what is subscripted", "a buffer, a sequence or a dict");
}

bool Evaluator::AddSlice(const Buf& buffer, size_t dim, const SliceObject& slice, SourceRange range, BufferRegion* region) {
  const Val extent = builder_->Wrap(buffer.buffer().shape[dim]);
  if (!slice.step.is_none()) {
    const auto* step = slice.step.As<int64_t>();
    if (step == nullptr || *step != 1) {
      Fail(range, "a slice of a buffer has step 1", "copy element by element in T.Parallel");
      return false;
    }
  }
  // Negative numbers count from the end, as in Python.
  const auto bound = [&](const Value& value, Val otherwise) {
    if (value.is_none()) return otherwise;
    const auto* known = value.As<int64_t>();
    int64_t size = 0;
    if (known && *known < 0 && builder_->exprs().AsInt(extent.expr(), &size)) return builder_->Lit(size + *known);
    if (known && *known < 0) return extent + builder_->Lit(*known);
    return Number(value, range, "the bound of a slice");
  };
  const Val lower = bound(slice.lower, builder_->Lit(int64_t{0})), upper = bound(slice.upper, extent);
  if (!lower || !upper) return false;
  region->start.push_back(lower);
  region->extent.push_back(SpanOf(*builder_, lower, upper));
  int64_t elements = 0;
  if (builder_->exprs().AsInt(region->extent.back().expr(), &elements) && elements < 0) {
    Fail(range, absl::StrCat("a slice of '", buffer.buffer().name, "' ends before it begins"), "write the smaller bound first");
    return false;
  }
  return true;
}

Value Evaluator::SubscriptBuffer(const Buf& buffer, const Value& index, SourceRange range) {
  const size_t rank = buffer.buffer().shape.size();
  const std::string& name = buffer.buffer().name;
  const auto* tuple = index.Object<SequenceObject>();
  const std::vector<Value> items = tuple ? tuple->items : std::vector<Value>{index};
  if (buffer.buffer().scope == Scope::kVar && items.size() == 1) return buffer;  // v[0] is v
  if (items.size() > rank) {
    return Fail(range, absl::StrCat("'", name, "' has ", rank, rank == 1 ? " dimension" : " dimensions", ", but ", items.size(),
                                    " subscripts"));
  }
  BufferRegion region{buffer, {}, {}};
  for (size_t i = 0; i < items.size(); ++i) {
    if (const auto* slice = items[i].Object<SliceObject>()) {
      if (!AddSlice(buffer, i, *slice, range, &region)) return Poison{};
      continue;
    }
    const Val start = Number(items[i], range, absl::StrCat("subscript ", i + 1, " of '", name, "'"));
    if (!start) return Poison{};
    if (IsFloat(start.dtype())) {
      return Fail(range, Cat("subscript ", i + 1, " of '", name, "' is a ", DTypeName(start.dtype())),
                  "use // for a division of integers");
    }
    region.start.push_back(start);
    region.extent.push_back(Val());
  }
  for (size_t i = items.size(); i < rank; ++i) {  // dimensions that are not named are taken whole
    if (!AddSlice(buffer, i, SliceObject{}, range, &region)) return Poison{};
  }
  return static_cast<const BufferRegion*>(New(std::move(region)));
}

Value Evaluator::SubscriptDict(const DictObject& dict, const Value& key, SourceRange range) {
  for (const auto& [k, v] : dict.items) {
    if (Equal(k, key)) return v;
  }
  return Fail(range, absl::StrCat("the dict has no key ", ToRepr(key)));
}

Value Evaluator::SubscriptSequence(const Value& object, const Value& index, SourceRange range) {
  const std::vector<Value> items = *Items(object, range, "");
  const auto size = static_cast<int64_t>(items.size());
  const auto* sequence = object.Object<SequenceObject>();
  const auto* slice = index.Object<SliceObject>();
  if (slice == nullptr) {
    const std::optional<int64_t> i = Int(index, range, "the subscript");
    if (!i) return Poison{};
    if (*i < -size || *i >= size) return Fail(range, absl::StrCat("subscript ", *i, " is outside a sequence of ", size));
    return items[*i < 0 ? *i + size : *i];
  }
  const auto part = [&](const Value& v, int64_t otherwise) {
    return v.is_none() ? otherwise : Int(v, range, "the bound of a slice").value_or(0);
  };
  const int64_t step = part(slice->step, 1);
  if (step == 0) return Fail(range, "the step of a slice cannot be 0", "leave it out");
  const auto clamp = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  };
  const int64_t lower = slice->lower.is_none() ? (step > 0 ? 0 : size - 1) : clamp(part(slice->lower, 0));
  const int64_t upper = slice->upper.is_none() ? (step > 0 ? size : -1) : clamp(part(slice->upper, 0));
  std::vector<Value> out;
  for (int64_t i = lower; step > 0 ? i < upper : i > upper; i += std::clamp<int64_t>(step, -size - 1, size + 1))
    out.push_back(items[i]);
  if (sequence != nullptr) return New(SequenceObject{sequence->kind, std::move(out)});
  std::string text;
  for (const Value& letter : out) text += ToText(letter);
  return Text(std::move(text));
}

// --- Attributes
// -----------------------------------------------------------------------------------------------------------------

namespace {

const char* ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kGlobal: return "global";
    case Scope::kShared: return "shared";
    case Scope::kFragment: return "local.fragment";
    case Scope::kLocal: return "local";
    case Scope::kVar: return "local.var";
    case Scope::kBarrier: return "shared.barrier";
    case Scope::kInvalid: break;
  }
  return "invalid";
}

bool HasMethods(const Value& value) {
  return value.Object<const StringObject>() || value.Object<SequenceObject>() || value.Object<DictObject>();
}

}  // namespace

Value Evaluator::Attribute(const Value& object, const std::string& name, SourceRange range, SourceRange name_range) {
  if (object.poisoned()) return object;
  if (const auto* space = object.As<Namespace>()) return Member(absl::StrCat(*space->path, ".", name), range);
  if (const auto* host = object.As<Host>(); host && host->what->rfind("tilelang.", 0) == 0)
    return Member(absl::StrCat(*host->what, ".", name), range);
  if (const auto* host = object.As<Host>()) return HostAttribute(*host, name, range);
  if (const auto* builtin = object.Object<const Builtin>()) return Member(Cat(builtin->path, ".", name), range);
  if (HasMethods(object)) return static_cast<const Method*>(New(Method{object, name}));
  if ((name == "astype" && IsNumber(object)) || (name == "bit_length" && object.Is<int64_t>()))
    return static_cast<const Method*>(New(Method{object, name}));
  if (const auto* type = object.As<DType>()) {
    if (name == "bits") return int64_t{DTypeBits(*type)};
    if (name == "bytes" || name == "itemsize") return int64_t{DTypeBytes(*type)};
    // A dtype is also the string of its name.
    return static_cast<const Method*>(New(Method{Text(std::string(DTypeName(*type))), name}));
  }
  const auto* region = object.Object<const BufferRegion>();
  const auto* buf = object.As<Buf>() ? object.As<Buf>() : region ? &region->buffer : nullptr;
  if (buf != nullptr) {
    const Buffer& buffer = buf->buffer();
    if (name == "dtype") return buffer.dtype;
    if (name == "data") return *buf;
    if (name == "name") return Text(buffer.name);
    if (name == "scope") return static_cast<const Method*>(New(Method{Text(ScopeName(buffer.scope)), "self"}));
    if (name == "shape" || name == "strides") {
      std::vector<Value> items;
      for (const Expr e : name == "shape" ? buffer.shape : buffer.strides) {
        int64_t known = 0;
        items.push_back(builder_->exprs().AsInt(e, &known) ? Value(known) : Value(builder_->Wrap(e)));
      }
      return Tuple(std::move(items));
    }
    return Fail(name_range, absl::StrCat("a buffer has no attribute '", name, "' here"),
                "shape, strides, dtype, name, data and scope() exist");
  }
  if (const auto* value = object.As<Val>(); value && name == "dtype") return value->dtype();
  if (const auto* function = object.Object<const FunctionObject>()) {
    if (name == "__name__") return Text(function->name);
    // Of a tuner made of the function; whatever is asked of it, the kernel is the same.
    if (name == "set_compile_args" || name == "set_profile_args" || name == "run" || name == "compile")
      return static_cast<const Method*>(New(Method{object, name}));
  }
  return Fail(name_range, absl::StrCat(Describe(object), " has no attribute '", name, "'"));
}

}  // namespace tilert::frontend
