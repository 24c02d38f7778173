// Code by thread, barriers, and help for debugging.
#include <tuple>

#include "absl/strings/str_replace.h"
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/limits.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

Value MakeContext(Evaluator& e, ContextObject context) { return static_cast<const ContextObject*>(e.New(std::move(context))); }

Value ThreadRegion(Evaluator& e, const Args&) {
  ContextObject context;
  context.kind = ContextObject::Kind::kThreadRegion;
  return MakeContext(e, std::move(context));
}

Value Roles(Evaluator& e, const Args&) {
  ContextObject context;
  context.kind = ContextObject::Kind::kRoles;
  return MakeContext(e, std::move(context));
}

Value Role(Evaluator& e, const Args& args) {
  ContextObject context;
  context.kind = ContextObject::Kind::kRole;
  context.thread_begin = e.Number(args["begin"], args.RangeOf("begin"), "the first thread of a role");
  context.thread_end = e.Number(args["end"], args.RangeOf("end"), "the last thread of a role");
  return context.thread_begin && context.thread_end ? MakeContext(e, std::move(context)) : Value(Poison{});
}

Value SyncThreads(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  tilert::SyncThreads sync;
  const std::tuple<const char*, uint32_t*, int64_t> numbers[] = {{"barrier_id", &sync.barrier, 15},
                                                                 {"arrive_count", &sync.count, 1024}};
  for (const auto& [name, field, last] : numbers) {
    if (!args.Has(name)) continue;
    const auto number = e.Int(args[name], args.RangeOf(name), name);
    if (!number) return Poison{};
    if (*number < 0 || *number > last) return e.Fail(args.RangeOf(name), Cat(name, " is 0 to ", last, ", not ", *number));
    *field = static_cast<uint32_t>(*number);
  }
  if (sync.count == 0) sync.barrier = 0;  // the whole block: which barrier stands for it does not matter
  e.builder().Add(sync);
  return NoneValue{};
}

// What `value` is in another lane of the warp: a statement of its own, wherever the call stands in an expression.
Value ShuffleFrom(Evaluator& e, const Args& args, const Val& value, const Val& lane) {
  if (!e.RequireLaunch(args)) return Poison{};
  ProgramBuilder& builder = e.builder();
  const VarId var = builder.NewVar(e.NameHint("shuffled"), value.In(&builder).dtype());
  tilert::Shuffle shuffle{var, builder.E(value), builder.Index(lane)};
  builder.Add(shuffle);
  return builder.VarVal(var);
}

Value Shuffle(Evaluator& e, const Args& args) {
  const Val value = e.Number(args["value"], args.RangeOf("value"), "the value of a shuffle");
  const Val lane = e.Number(args["lane"], args.RangeOf("lane"), "the lane of a shuffle");
  return value && lane ? ShuffleFrom(e, args, value, lane) : Value(Poison{});
}

// A barrier, or one of an array of them.
std::optional<BufferRegion> ReadBarrier(Evaluator& e, const Args& args) {
  auto region = e.Region(args["mbarrier"], args.RangeOf("mbarrier"), "a barrier");
  if (!region) return std::nullopt;
  if (region->buffer.buffer().scope != Scope::kBarrier) {
    e.Fail(args.RangeOf("mbarrier"), Cat("'", region->buffer.buffer().name, "' is no barrier"),
           "make it with T.alloc_barrier(arrivals)");
    return std::nullopt;
  }
  return region;
}

Value BarrierStatement(Evaluator& e, const Args& args, BarrierOpKind kind, std::string_view operand) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto barrier = ReadBarrier(e, args);
  if (!barrier) return Poison{};
  Val number;
  if (!operand.empty()) {
    number = e.Number(args[operand], args.RangeOf(operand), Cat(operand, " of ", args.builtin().path));
    if (!number) return Poison{};
  }
  ProgramBuilder& builder = e.builder();
  if (number && IsInteger(number.dtype())) number = builder.Cast(number, DType::kIndex);
  int64_t bytes = 0;
  const bool known = kind == BarrierOpKind::kExpectTx && builder.exprs().AsInt(builder.E(number), &bytes);
  if (known && (bytes < 0 || bytes > kMaxPhaseCount))
    return e.Fail(args.RangeOf(operand), Cat("a phase of a barrier counts 0 to ", kMaxPhaseCount, " bytes, not ", bytes),
                  "announce what the copies of one phase bring");
  builder.Add(BarrierOp{kind, barrier->buffer.id(), builder.Es(barrier->start), number ? builder.E(number) : Expr{}});
  return NoneValue{};
}

Value Arrive(Evaluator& e, const Args& args) { return BarrierStatement(e, args, BarrierOpKind::kArrive, ""); }
Value Wait(Evaluator& e, const Args& args) { return BarrierStatement(e, args, BarrierOpKind::kWait, "parity"); }
Value ExpectTx(Evaluator& e, const Args& args) { return BarrierStatement(e, args, BarrierOpKind::kExpectTx, "tx"); }

// Arrives, and announces bytes: what the producer of a phase does.
Value ArriveExpectTx(Evaluator& e, const Args& args) {
  const Value announced = BarrierStatement(e, args, BarrierOpKind::kExpectTx, "tx");
  return announced.poisoned() ? announced : BarrierStatement(e, args, BarrierOpKind::kArrive, "");
}

Value AsyncWait(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto pending = args.Has("pending") ? e.Int(args["pending"], args.RangeOf("pending"), "the number of unfinished groups")
                                           : std::optional<int64_t>(0);
  if (!pending) return Poison{};
  if (*pending < 0 || *pending > 63) return e.Fail(args.range(), "0 to 63 groups may stay unfinished", "write 0 to wait for all");
  const bool gemms = args.builtin().path == "T.wait_wgmma" || args.builtin().path == "T.warpgroup_wait";
  e.builder().Add(tilert::AsyncWait{gemms, static_cast<uint32_t>(*pending)});
  return NoneValue{};
}

// T.print("x = {}", x, …), and TileLang's T.print(x, msg="…").
Value PrintValue(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  std::vector<Value> values = args.rest();
  if (values.empty()) return e.Fail(args.range(), "T.print needs something to print", "write T.print(\"x = {}\", x)");
  std::string format;
  if (const auto* text = values[0].Object<const StringObject>()) {
    format = text->text;
    values.erase(values.begin());
  } else {
    const std::string message = args.Has("msg") ? ToText(args["msg"]) : "";
    format = absl::StrReplaceAll(message, {{"{", "{{"}, {"}", "}}"}});
    for (size_t i = 0; i < values.size(); ++i) format += format.empty() ? "{}" : " {}";
  }
  ProgramBuilder& builder = e.builder();
  Print print{format, {}};
  for (const Value& value : values) {
    const Val number = e.Number(value, args.range(), "what T.print prints");
    if (!number) return Poison{};
    print.args.push_back(builder.E(number));
  }
  builder.Add(std::move(print));
  return NoneValue{};
}

Value DeviceAssert(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const Val condition = e.Number(args["condition"], args.RangeOf("condition"), "the condition");
  if (!condition) return Poison{};
  const std::string message = args.Has("msg") ? ToText(args["msg"]) : "assertion failed";
  e.builder().Add(Assert{e.builder().E(e.builder().Cast(condition, DType::kBool)), message});
  return NoneValue{};
}

Value LoopBreak(Evaluator& e, const Args& args) {
  if (e.RequireLaunch(args)) e.builder().Add(Break{});
  return NoneValue{};
}

}  // namespace

absl::Span<const Builtin> ThreadIntrinsics() {
  static constexpr Builtin kBuiltins[] = {
      {"T.thread_region", "", ThreadRegion},
      {"T.roles", "", Roles},
      {"T.role", "begin end", Role},
      {"T.sync_threads", "barrier_id? arrive_count?", SyncThreads},
      {"T.shuffle", "value lane", Shuffle},
      {"T.barrier_arrive", "mbarrier", Arrive},
      {"T.mbarrier_arrive", "mbarrier", Arrive},
      {"T.cp_async_barrier_noinc", "mbarrier", Arrive},  // the copies before it are done by then
      {"T.barrier_wait", "mbarrier parity", Wait},
      {"T.mbarrier_wait_parity", "mbarrier parity", Wait},
      {"T.mbarrier_expect_tx", "mbarrier tx", ExpectTx},
      {"T.async_wait", "pending", AsyncWait},
      {"T.wait_wgmma", "pending", AsyncWait},
      {"T.warpgroup_wait", "pending", AsyncWait},
      {"T.ptx_wait_group", "pending", AsyncWait},
      {"T.tma_store_wait", "pending? read?", AsyncWait},
      {"T.mbarrier_arrive_expect_tx", "mbarrier tx", ArriveExpectTx},
      {"T.print", "* msg?", PrintValue},
      {"T.device_assert", "condition msg?", DeviceAssert},
      {"T.loop_break", "", LoopBreak},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
