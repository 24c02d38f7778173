// Data movement and atomics.
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "frontend/regions.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

BufferId ReadBarrier(Evaluator& e, const Args& args, std::vector<Expr>* indices) {
  if (!args.Has("barrier")) return kNoId;
  const auto* buffer = args["barrier"].As<Buf>();
  const auto* region = args["barrier"].Object<const BufferRegion>();
  const Buf* barrier = buffer ? buffer : region ? &region->buffer : nullptr;
  if (barrier != nullptr && barrier->buffer().scope == Scope::kBarrier) {
    if (region != nullptr) *indices = e.builder().Es(region->start);
    return barrier->id();
  }
  e.Fail(args.RangeOf("barrier"),
         Cat("what a copy completes on must be made by T.alloc_barrier, not ", Describe(args["barrier"])),
         "write barrier = T.alloc_barrier(1)");
  return kNoId;
}

Value Copy(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  auto src = e.Region(args["src"], args.RangeOf("src"), "the source of a copy"),
       dst = e.Region(args["dst"], args.RangeOf("dst"), "the target of a copy");
  if (!src || !dst || !MatchExtents(e, &*src, &*dst, args.range(), "a copy")) return Poison{};
  ProgramBuilder& builder = e.builder();
  tilert::Copy copy;
  copy.src = builder.R(e.ToTile(*src));
  copy.dst = builder.R(e.ToTile(*dst));
  if (args.Has("fill")) {
    const Val fill = e.Number(args["fill"], args.RangeOf("fill"), "the fill value of a copy");
    if (!fill) return Poison{};
    copy.fill = builder.E(fill.As(&builder, src->buffer.buffer().dtype));
  }
  const auto width = args.Has("coalesced_width")
                         ? e.Int(args["coalesced_width"], args.RangeOf("coalesced_width"), "coalesced_width")
                         : std::optional<int64_t>(0);
  const auto disable_tma = e.Bool(args["disable_tma"], args.RangeOf("disable_tma"), "disable_tma");
  if (!width || !disable_tma) return Poison{};
  if (*width < 0 || *width > 1024)
    return e.Fail(args.RangeOf("coalesced_width"), Cat("coalesced_width counts elements, 1 to 1024, not ", *width));
  copy.coalesced_width = static_cast<uint32_t>(*width);
  copy.disable_tma = *disable_tma;
  copy.is_async = args.builtin().path != "T.copy";
  copy.barrier = ReadBarrier(e, args, &copy.barrier_indices);
  if (args.Has("swizzle")) {  // copy(..., swizzle="bank") asks for a layout without bank conflicts
    const BufferId shared = dst->buffer.buffer().scope == Scope::kShared ? dst->buffer.id() : src->buffer.id();
    builder.Add(Annotate{AnnotationKind::kLayoutSwizzled, shared, {}, ""});
  }
  builder.Add(std::move(copy));
  return NoneValue{};
}

// --- Atomics
// ----------------------------------------------------------------------------------------------------------------------

std::optional<MemoryOrder> ReadOrder(Evaluator& e, const Args& args) {
  if (!args.Has("memory_order")) return MemoryOrder::kRelaxed;
  static constexpr std::pair<std::string_view, MemoryOrder> kOrders[] = {{"relaxed", MemoryOrder::kRelaxed},
                                                                         {"acquire", MemoryOrder::kAcquire},
                                                                         {"consume", MemoryOrder::kAcquire},
                                                                         {"release", MemoryOrder::kRelease},
                                                                         {"acq_rel", MemoryOrder::kAcqRel}};
  const auto text = e.String(args["memory_order"], args.RangeOf("memory_order"), "memory_order");
  if (!text) return std::nullopt;
  for (const auto& [name, order] : kOrders) {
    if (name == *text) return order;
  }
  e.Fail(args.RangeOf("memory_order"), Cat("there is no memory order '", *text, "'"),
         "relaxed, acquire, release and acq_rel exist");
  return std::nullopt;
}

std::optional<MemoryScope> ReadScope(Evaluator& e, const Args& args) {
  if (!args.Has("scope")) return MemoryScope::kDevice;
  const auto text = e.String(args["scope"], args.RangeOf("scope"), "scope");
  if (!text) return std::nullopt;
  if (*text == "block") return MemoryScope::kBlock;
  if (*text == "device") return MemoryScope::kDevice;
  if (*text == "system") return MemoryScope::kSystem;
  e.Fail(args.RangeOf("scope"), Cat("there is no scope '", *text, "'"), "block, device and system exist");
  return std::nullopt;
}

AtomicOp OpOf(const Args& args) {
  const std::string_view path = args.builtin().path;
  if (path == "T.atomic_max") return AtomicOp::kMax;
  return path == "T.atomic_min" ? AtomicOp::kMin : AtomicOp::kAdd;
}

Value FailTilePrev(Evaluator& e, const Args& args) {
  return e.Fail(args.RangeOf("return_prev"), "an atomic on a tile gives no values before",
                "write it element by element in T.Parallel: before = T.atomic_add(A[i], x, return_prev=True)");
}

Value Atomic(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  auto dst = e.Region(args["dst"], args.RangeOf("dst"), "the target of an atomic");
  const auto order = ReadOrder(e, args);
  const auto scope = ReadScope(e, args);
  if (!dst || !order || !scope) return Poison{};
  const auto return_prev = e.Bool(args["return_prev"], args.RangeOf("return_prev"), "return_prev");
  if (!return_prev) return Poison{};
  ProgramBuilder& builder = e.builder();
  const Value& value = args["value"];
  if (dst->IsElement() && e.IsNumber(value)) {
    const Val number = e.Number(value, args.RangeOf("value"), "the value of an atomic");
    if (!number) return Poison{};
    tilert::Atomic atomic{
        OpOf(args), dst->buffer.id(), builder.Es(dst->start), builder.E(number.As(&builder, dst->buffer.buffer().dtype)), *order,
        *scope};
    if (*return_prev) atomic.prev = builder.NewVar(e.NameHint("before"), dst->buffer.buffer().dtype);
    const VarId prev = atomic.prev;
    builder.Add(std::move(atomic));
    return prev == kNoId ? Value(NoneValue{}) : Value(builder.VarVal(prev));
  }
  if (*return_prev) return FailTilePrev(e, args);
  auto src = e.Region(value, args.RangeOf("value"), "the value of an atomic on a tile");
  if (!src || !MatchExtents(e, &*src, &*dst, args.range(), "an atomic")) return Poison{};
  builder.Add(tilert::AtomicTile{OpOf(args), builder.R(e.ToTile(*src)), builder.R(e.ToTile(*dst)), *order});
  return NoneValue{};
}

// T.atomic_addx2(A[i, j], B[k, l]): two or four neighbours at once.
Value AtomicVector(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const int64_t width = args.builtin().path.back() - '0';
  auto dst = e.Region(args["dst"], args.RangeOf("dst"), "the target of an atomic"),
       src = e.Region(args["value"], args.RangeOf("value"), "the value of an atomic");
  const auto return_prev = e.Bool(args["return_prev"], args.RangeOf("return_prev"), "return_prev");
  if (!dst || !src || !return_prev) return Poison{};
  if (*return_prev) return FailTilePrev(e, args);
  if (dst->extent.empty() || src->extent.empty())
    return e.Fail(args.range(), "a vector atomic needs operands with a dimension", "use T.atomic_add");
  if (dst->IsElement()) dst->extent.back() = e.builder().Lit(width);
  if (src->IsElement()) src->extent.back() = e.builder().Lit(width);
  if (!MatchExtents(e, &*src, &*dst, args.range(), "an atomic")) return Poison{};
  e.builder().AtomicTile(AtomicOp::kAdd, e.ToTile(*src), e.ToTile(*dst));
  return NoneValue{};
}

}  // namespace

absl::Span<const Builtin> CopyIntrinsics() {
  static constexpr std::string_view kCopy =
      "src dst | fill? coalesced_width? disable_tma? eviction_policy? prefer_instruction? annotations? loop_layout? swizzle? "
      "barrier?";
  static constexpr std::string_view kTmaCopy =
      "src dst | barrier? cluster_mask? leader_scope_threads? eviction_policy? annotations?";
  static constexpr std::string_view kAtomic = "dst value memory_order? return_prev? use_tma? | scope? annotations?";
  static constexpr Builtin kBuiltins[] = {
      {"T.copy", kCopy, Copy},
      {"T.async_copy", kCopy, Copy},
      {"T.tma_copy", kTmaCopy, Copy},
      {"T.atomic_add", kAtomic, Atomic},
      {"T.atomic_max", kAtomic, Atomic},
      {"T.atomic_min", kAtomic, Atomic},
      {"T.atomic_addx2", "dst value return_prev?", AtomicVector},
      {"T.atomic_addx4", "dst value return_prev?", AtomicVector},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
