// Loops of the program.
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

Value Loop(Evaluator& e, LoopObject loop) { return static_cast<const LoopObject*>(e.New(std::move(loop))); }

bool CheckBound(Evaluator& e, const Value& value, SourceRange range, std::string_view what) {
  const Val number = e.Number(value, range, what);
  if (!number) return false;
  if (IsFloat(number.dtype())) return e.Fail(range, Cat(what, " must be an integer"), "use // for a division of integers"), false;
  return true;
}

// (end), (begin, end) or (begin, end, step).
bool ReadBounds(Evaluator& e, const Args& args, LoopObject* loop) {
  const bool two = args.Has("stop");
  loop->kind = LoopObject::Kind::kFor;
  loop->begin = two ? args["start"] : Value(int64_t{0});
  loop->end = two ? args["stop"] : args["start"];
  loop->step = args.Has("step") ? args["step"] : Value(int64_t{1});
  const auto* step = loop->step.As<int64_t>();
  if (step && *step == 0) return e.Fail(args.RangeOf("step"), "the step of a loop cannot be 0"), false;
  return CheckBound(e, loop->begin, args.RangeOf("start"), "the bound of a loop") &&
         CheckBound(e, loop->end, args.RangeOf("stop"), "the bound of a loop") &&
         CheckBound(e, loop->step, args.RangeOf("step"), "the step of a loop");
}

template <ForKind kind>
Value Counted(Evaluator& e, const Args& args) {
  LoopObject loop;
  loop.for_kind = kind;
  if (args["start"].Object<SequenceObject>()) {
    return e.Fail(args.range(), Cat(args.builtin().path, " over several extents is not supported yet"),
                  "use T.Kernel over all tiles");
  }
  return ReadBounds(e, args, &loop) ? Loop(e, std::move(loop)) : Value(Poison{});
}

// A number of 0 to 16 or an expression of constants, which the verifier bounds.
bool ReadStages(Evaluator& e, const Args& args, LoopObject* loop) {
  if (!args.Has("num_stages")) return true;
  const SourceRange range = args.RangeOf("num_stages");
  loop->num_stages = args["num_stages"];
  const Val number = e.Number(loop->num_stages, range, "num_stages");
  if (!number) return false;
  bool is_fixed = !number.is_weak_float() && !IsFloat(number.dtype());
  if (!number.is_weak()) {
    ForEachNode(e.builder().exprs(), number.expr(), [&](Expr, const ExprNode& node) {
      is_fixed = is_fixed && (ExprArity(node.op) > 0 || node.op == ExprOp::kIntImm || node.op == ExprOp::kConstant);
    });
  }
  const auto* stages = loop->num_stages.As<int64_t>();
  if (stages && (*stages < 0 || *stages > 16)) return e.Fail(range, Cat("num_stages must be 0 to 16, not ", *stages)), false;
  return is_fixed || e.Int(loop->num_stages, range, "num_stages");
}

Value Pipelined(Evaluator& e, const Args& args) {
  LoopObject loop;
  loop.for_kind = ForKind::kPipelined;
  if (!ReadBounds(e, args, &loop) || !ReadStages(e, args, &loop)) return Poison{};
  for (const char* name : {"order", "stage"}) {
    if (!args.Has(name)) continue;
    const auto list = e.Ints(args[name], args.RangeOf(name), name);
    if (!list) return Poison{};
    (name[0] == 'o' ? loop.order : loop.stage) = *list;
  }
  return Loop(e, std::move(loop));
}

template <LoopObject::Kind kind>
Value Extents(Evaluator& e, const Args& args) {
  LoopObject loop;
  loop.kind = kind;
  for (size_t i = 0; i < args.rest().size(); ++i) {
    const auto extents = e.Extents(args.rest()[i], args.rest_ranges()[i], Cat("an extent of ", args.builtin().path));
    if (!extents) return Poison{};
    loop.extents.insert(loop.extents.end(), extents->begin(), extents->end());
  }
  if (loop.extents.empty()) return e.Fail(args.range(), Cat(args.builtin().path, " needs an extent"));
  if (args.Has("coalesced_width")) {
    const auto width = e.Int(args["coalesced_width"], args.RangeOf("coalesced_width"), "coalesced_width");
    if (!width) return Poison{};
    if (*width < 0 || *width > 1024)
      return e.Fail(args.RangeOf("coalesced_width"), Cat("coalesced_width counts elements, 1 to 1024, not ", *width));
    loop.coalesced_width = static_cast<uint32_t>(*width);
  }
  return Loop(e, std::move(loop));
}

}  // namespace

absl::Span<const Builtin> LoopIntrinsics() {
  static constexpr std::string_view kCounted = "start stop? step? | annotations? explicit? unroll_factor?";
  static constexpr Builtin kBuiltins[] = {
      {"T.serial", kCounted, Counted<ForKind::kSerial>},
      {"T.Serial", kCounted, Counted<ForKind::kSerial>},
      {"T.unroll", kCounted, Counted<ForKind::kUnrolled>},
      {"T.Unroll", kCounted, Counted<ForKind::kUnrolled>},
      {"T.vectorized", kCounted, Counted<ForKind::kVectorized>},
      {"T.Vectorized", kCounted, Counted<ForKind::kVectorized>},
      {"T.Persistent", "start stop? step? group_size?", Counted<ForKind::kPersistent>},
      {"T.Pipelined", "start stop? num_stages? order? stage? sync? group? annotations? | step?", Pipelined},
      {"T.Parallel", "* coalesced_width? loop_layout? prefer_async? annotations?", Extents<LoopObject::Kind::kParallel>},
      {"T.parallel", "* coalesced_width? loop_layout? prefer_async? annotations?", Extents<LoopObject::Kind::kParallel>},
      {"T.pipelined", "start stop? num_stages? order? stage? sync? group? annotations? | step?", Pipelined},
      {"T.grid", "*", Extents<LoopObject::Kind::kGrid>},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
