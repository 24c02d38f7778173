// The statements of a block that move and compute data.
#include <algorithm>

#include "ir/executor_block.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

std::string ValueText(DType type, Value v) {
  if (IsFloat(type)) return absl::StrCat(v.f);
  if (type == DType::kBool) return v.i != 0 ? "true" : "false";
  return KindOf(type) == DTypeKind::kUnsigned ? absl::StrCat(static_cast<uint64_t>(v.i)) : absl::StrCat(v.i);
}

}  // namespace

absl::Status BlockRunner::RunElement(const Step& step, Context& c) {
  Eval(step, c);
  if (const auto* let = std::get_if<Let>(&step.stmt->op)) {
    const DType from = RootType(let->value), to = state_.program.vars[let->var].dtype;
    Value* var = VarOf(let->var, c);
    for (int k = 0; k < c.n; ++k) {
      if (c.active[static_cast<size_t>(k)]) var[k] = ConvertValue(Result(step, 0, c.n)[k], from, to);
    }
    return absl::OkStatus();
  }
  const auto access = [&](const auto& op, auto write) {
    absl::InlinedVector<const Value*, 4> index;
    for (size_t d = 0; d < op.indices.size(); ++d) index.push_back(Result(step, d, c.n));
    const Value* result = Result(step, op.indices.size(), c.n);
    const DType from = RootType(op.value), to = state_.program.buffers[op.buffer].dtype;
    if (from == to) return write(index, result);
    std::vector<Value> values(result, result + c.n);
    ConvertRow(from, to, values.data(), c.n);
    write(index, values.data());
  };
  using Index = absl::Span<const Value* const>;
  if (const auto* store = std::get_if<Store>(&step.stmt->op)) {
    access(*store, [&](Index index, const Value* values) { memory_.Store(store->buffer, index, c.lanes(), values); });
  } else if (const auto* atomic = std::get_if<Atomic>(&step.stmt->op)) {
    Value* const before = atomic->prev != kNoId ? VarOf(atomic->prev, c) : nullptr;
    access(*atomic, [&](Index index, const Value* values) {
      memory_.Atomic(atomic->op, atomic->buffer, index, c.lanes(), values, before);
    });
  }
  return absl::OkStatus();
}

absl::Status BlockRunner::RunAnnotate(const Annotate& op, const Step& step, const Context& c) {
  if (op.kind != AnnotationKind::kSafeValue || op.args.empty()) return absl::OkStatus();
  Eval(step, c);
  memory_.SetOutside(op.buffer,
                     ConvertValue(*Result(step, 0, c.n), RootType(op.args[0]), state_.program.buffers[op.buffer].dtype));
  return absl::OkStatus();
}

// A tile statement inside lanes is executed by each of them.
absl::Status BlockRunner::RunTile(const Step& step, Context& c) {
  Eval(step, c);
  for (int lane = 0; lane < c.n; ++lane) {
    if (!c.active[static_cast<size_t>(lane)]) continue;
    memory_.SetLane(c.first_agent + lane);
    TILERT_RETURN_IF_ERROR(RunTileOn(step, c, lane));
  }
  return absl::OkStatus();
}

absl::Status BlockRunner::RunTileOn(const Step& step, const Context& c, int lane) {
  size_t root = 0;
  const auto box = [&](const Region& region) { return NextBox(region, step, c, lane, &root); };
  const auto value = [&](Expr e, BufferId like) {
    const DType to = state_.program.buffers[like].dtype;
    return e ? ConvertValue(Result(step, root, c.n)[lane], RootType(e), to) : Value{};
  };
  return std::visit(Overloaded{
                        [&](const auto&) { return Internal("a statement that the executor does not know"); },
                        [&](const Copy& s) -> absl::Status {
                          TILERT_ASSIGN_OR_RETURN(const Box src, box(s.src));
                          TILERT_ASSIGN_OR_RETURN(const Box dst, box(s.dst));
                          return tile_.Copy(src, dst, s.fill ? value(s.fill, s.src.buffer) : memory_.view(s.src.buffer).outside);
                        },
                        [&](const Gemm& s) -> absl::Status {
                          TILERT_ASSIGN_OR_RETURN(const Box a, box(s.a));
                          TILERT_ASSIGN_OR_RETURN(const Box b, box(s.b));
                          TILERT_ASSIGN_OR_RETURN(const Box acc, box(s.c));
                          return tile_.Gemm(s, a, b, acc);
                        },
                        [&](const Fill& s) -> absl::Status {
                          TILERT_ASSIGN_OR_RETURN(const Box dst, box(s.dst));
                          tile_.Fill(dst, value(s.value, s.dst.buffer));
                          return absl::OkStatus();
                        },
                        [&](const Reduce& s) -> absl::Status {
                          TILERT_ASSIGN_OR_RETURN(const Box src, box(s.src));
                          TILERT_ASSIGN_OR_RETURN(const Box dst, box(s.dst));
                          return tile_.Reduce(s, src, dst);
                        },
                        [&](const Scan& s) -> absl::Status {
                          TILERT_ASSIGN_OR_RETURN(const Box src, box(s.src));
                          TILERT_ASSIGN_OR_RETURN(const Box dst, box(s.dst));
                          return tile_.Scan(s, src, dst);
                        },
                        [&](const AtomicTile& s) -> absl::Status {
                          TILERT_ASSIGN_OR_RETURN(const Box src, box(s.src));
                          TILERT_ASSIGN_OR_RETURN(const Box dst, box(s.dst));
                          return tile_.Atomic(s.op, src, dst);
                        },
                    },
                    step.stmt->op);
}

// The box of `region`, whose starts and extents are the roots from *root on.
absl::StatusOr<Box> BlockRunner::NextBox(const Region& region, const Step& step, const Context& c, int lane, size_t* root) const {
  const int n = c.n;
  const Buffer& buffer = state_.program.buffers[region.buffer];
  Box box;
  box.buffer = region.buffer;
  box.lane = static_cast<int>(c.first_lane) + lane;
  for (size_t d = 0; d < region.start.size(); ++d) box.start.push_back(Result(step, (*root)++, n)[lane].i);
  for (size_t d = 0; d < region.extent.size(); ++d) box.extent.push_back(Result(step, (*root)++, n)[lane].i);
  if (box.start.size() != buffer.shape.size() || box.extent.size() != buffer.shape.size()) {
    return InvalidArgument("a region of ", box.start.size(), " dimensions of '", buffer.name, "', which has ",
                           buffer.shape.size());
  }
  for (size_t d = 0; d < box.extent.size(); ++d) {
    if (box.extent[d] < 0)
      return InvalidArgument("the region of '", buffer.name, "' has extent ", box.extent[d], " in dimension ", d);
  }
  return box;
}

// `{}` is an argument, `{{` and `}}` are braces; arguments without a place follow, separated by spaces.
absl::Status BlockRunner::RunPrint(const Print& op, const Step& step, const Context& c) {
  Eval(step, c);
  for (int lane = 0; state_.options.print != nullptr && lane < c.n; ++lane) {
    if (!c.active[static_cast<size_t>(lane)]) continue;
    std::string text;
    size_t next = 0;
    const auto argument = [&] {
      const std::string value = ValueText(RootType(op.args[next]), Result(step, next, c.n)[lane]);
      ++next;
      return value;
    };
    for (size_t k = 0; k < op.format.size(); ++k) {
      const std::string_view pair = std::string_view(op.format).substr(k, 2);
      if (pair == "{}" && next < op.args.size()) {
        text += argument();
        ++k;
      } else {
        text += op.format[k];
        if (pair == "{{" || pair == "}}") ++k;
      }
    }
    while (next < op.args.size()) text += (text.empty() ? "" : " ") + argument();
    const std::lock_guard lock(state_.print_lock);
    state_.options.print(text);
  }
  return absl::OkStatus();
}

absl::Status BlockRunner::RunAssert(const Assert& op, const Step& step, const Context& c) {
  Eval(step, c);
  for (int lane = 0; lane < c.n; ++lane) {
    if (!c.active[static_cast<size_t>(lane)] || Result(step, 0, c.n)[lane].i != 0) continue;
    return absl::FailedPreconditionError(Cat("assertion failed in block ", block_, op.message.empty() ? "" : ": ", op.message));
  }
  return absl::OkStatus();
}

}  // namespace tilert::exec
