// Loops of the program.
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/limits.h"
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

// T.Persistent([rows, columns], wave_size, index): the points index, index + wave_size, … of a box, counted row by row.
Value PersistentDomain(Evaluator& e, const Args& args) {
  LoopObject loop;
  loop.kind = LoopObject::Kind::kDomain;
  const auto extents = e.Extents(args["start"], args.RangeOf("start"), "the domain of T.Persistent");
  if (!extents) return Poison{};
  if (extents->empty() || !args.Has("stop") || !args.Has("step"))
    return e.Fail(args.range(), "T.Persistent takes a domain, a number of blocks, and the index of this one",
                  "write T.Persistent([rows, columns], blocks, bx)");
  if (!CheckBound(e, args["stop"], args.RangeOf("stop"), "the number of blocks") ||
      !CheckBound(e, args["step"], args.RangeOf("step"), "the index"))
    return Poison{};
  loop.extents = *extents;
  loop.step = args["stop"];
  loop.begin = args["step"];
  return Loop(e, std::move(loop));
}

template <ForKind kind>
Value Counted(Evaluator& e, const Args& args) {
  LoopObject loop;
  loop.for_kind = kind;
  if (kind == ForKind::kPersistent && args["start"].Object<SequenceObject>()) return PersistentDomain(e, args);
  return ReadBounds(e, args, &loop) ? Loop(e, std::move(loop)) : Value(Poison{});
}

// A number from `least` to `most`, or an expression of constants, which the verifier bounds.
bool ReadConstant(Evaluator& e, const Args& args, const char* name, int64_t least, int64_t most, Value* value) {
  const SourceRange range = args.RangeOf(name);
  *value = args[name];
  const Val number = e.Number(*value, range, name);
  if (!number) return false;
  bool is_fixed = !number.is_weak_float() && !IsFloat(number.dtype());
  if (!number.is_weak()) {
    ForEachNode(e.builder().exprs(), number.expr(), [&](Expr, const ExprNode& node) {
      is_fixed = is_fixed && (ExprArity(node.op) > 0 || node.op == ExprOp::kIntImm || node.op == ExprOp::kConstant);
    });
  }
  const auto* known = value->As<int64_t>();
  if (known && (*known < least || *known > most))
    return e.Fail(range, Cat(name, " must be ", least, " to ", most, ", not ", *known)), false;
  return is_fixed || e.Int(*value, range, name);
}

Value Pipelined(Evaluator& e, const Args& args) {
  LoopObject loop;
  loop.for_kind = ForKind::kPipelined;
  if (!ReadBounds(e, args, &loop)) return Poison{};
  if (args.Has("num_stages") && !ReadConstant(e, args, "num_stages", 0, 16, &loop.num_stages)) return Poison{};
  if (args.Has("split") && !ReadConstant(e, args, "split", 1, kMaxClusterBlocks, &loop.split.emplace())) return Poison{};
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
  if (loop.extents.empty())
    return e.Fail(args.range(), Cat(args.builtin().path, " needs an extent"), Cat("write ", args.builtin().path, "(128)"));
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
      {"T.Pipelined", "start stop? num_stages? order? stage? sync? group? annotations? | step? split?", Pipelined},
      {"T.Parallel", "* coalesced_width? loop_layout? prefer_async? annotations?", Extents<LoopObject::Kind::kParallel>},
      {"T.parallel", "* coalesced_width? loop_layout? prefer_async? annotations?", Extents<LoopObject::Kind::kParallel>},
      {"T.pipelined", "start stop? num_stages? order? stage? sync? group? annotations? | step? split?", Pipelined},
      {"T.grid", "*", Extents<LoopObject::Kind::kGrid>},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
