// What single threads do: their numbers, exchange between the lanes of a warp, reductions over threads, partitions of the block.
// TileLang lets this stand anywhere in a launch; thread_structure.h makes regions of it afterwards.
#include <algorithm>
#include <iterator>

#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

constexpr int64_t kWarp = 32, kWarpgroup = 128;

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// --- Numbers of threads

// Extents of the block, x first; an error when they are not numbers.
std::optional<std::vector<int64_t>> BlockExtents(Evaluator& e, const Args& args) {
  std::vector<int64_t> extents;
  for (const Val& extent : e.threads().extents) {
    int64_t value = 0;
    if (!e.builder().exprs().AsInt(e.builder().Index(extent), &value)) {
      e.Fail(args.range(), "code by thread needs a number of threads that is known",
             "give threads= a number, or fix it with --set");
      return std::nullopt;
    }
    extents.push_back(value);
  }
  return extents;
}

// The thread's place along dimension `dim` of the block.
Val PlaceAlong(Evaluator& e, const std::vector<int64_t>& extents, size_t dim) {
  if (dim >= extents.size()) return e.builder().Lit(int64_t{0});
  Val place = e.ThreadNumber();
  int64_t below = 1, above = 1;
  for (size_t d = 0; d < dim; ++d) below *= extents[d];
  for (size_t d = dim + 1; d < extents.size(); ++d) above *= extents[d];
  if (below > 1) place = FloorDiv(place, below);
  return above > 1 ? place % extents[dim] : place;
}

Value ThreadBinding(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto dim = args.Has("dim") ? e.Int(args["dim"], args.RangeOf("dim"), "dim") : std::optional<int64_t>(0);
  const auto extents = BlockExtents(e, args);
  if (!dim || !extents) return Poison{};
  if (*dim < 0 || *dim > 2) return e.Fail(args.RangeOf("dim"), "a block of threads has dimensions 0 to 2", "write 0 for x");
  return PlaceAlong(e, *extents, static_cast<size_t>(*dim));
}

Value ThreadBindings(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto extents = BlockExtents(e, args);
  if (!extents) return Poison{};
  return e.Tuple({PlaceAlong(e, *extents, 0), PlaceAlong(e, *extents, 1), PlaceAlong(e, *extents, 2)});
}

Value ThreadExtent(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto dim = args.Has("dim") ? e.Int(args["dim"], args.RangeOf("dim"), "dim") : std::optional<int64_t>(0);
  const auto extents = BlockExtents(e, args);
  if (!dim || !extents || *dim < 0) return Poison{};
  return static_cast<size_t>(*dim) < extents->size() ? (*extents)[static_cast<size_t>(*dim)] : int64_t{1};
}

// T.thread_binding(0, 128, thread="threadIdx.x"): the thread's place along a dimension that the block has.
Value BoundThread(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto* name = args["thread"].Object<const StringObject>();
  constexpr std::string_view kNames[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
  const auto* found = name == nullptr ? std::end(kNames) : std::find(std::begin(kNames), std::end(kNames), name->text);
  if (found == std::end(kNames))
    return e.Fail(args.RangeOf("thread"), "a thread is bound to threadIdx.x, threadIdx.y or threadIdx.z",
                  "write thread=\"threadIdx.x\"");
  const bool one = !args.Has("stop");
  const auto begin = one ? std::optional<int64_t>(0) : e.Int(args["start"], args.RangeOf("start"), "the first thread");
  const auto end = e.Int(args[one ? "start" : "stop"], args.RangeOf(one ? "start" : "stop"), "the last thread");
  const auto extents = BlockExtents(e, args);
  if (!begin || !end || !extents) return Poison{};
  const auto dim = static_cast<size_t>(found - std::begin(kNames));
  const int64_t threads = dim < extents->size() ? (*extents)[dim] : 1;
  if (*begin != 0 || *end != threads)
    return e.Fail(args.range(), Cat("the block has threads 0 to ", threads, " there, not ", *begin, " to ", *end),
                  "use T.get_thread_binding(dim)");
  return PlaceAlong(e, *extents, dim);
}

// T.get_lane_idx(), T.get_warp_idx(), T.get_warp_group_idx().
Value GroupNumber(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const std::string_view path = args.builtin().path;
  const int64_t size = path == "T.get_warp_group_idx" ? kWarpgroup : kWarp;
  return path == "T.get_lane_idx" ? e.ThreadNumber() % size : FloorDiv(e.ThreadNumber(), size);
}

// T.shuffle_elect(128): holds for one thread of each 128; of the block where that is 0.
Value Elected(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto extent = e.Int(args["thread_extent"], args.RangeOf("thread_extent"), "the number of threads");
  if (!extent) return Poison{};
  if (*extent < 0) return e.Fail(args.RangeOf("thread_extent"), Cat("one of ", *extent, " threads cannot be elected"));
  return *extent == 0 ? e.ThreadNumber() == 0 : e.ThreadNumber() % *extent == 0;
}

// `with T.ws(0):` – threads [128 i, 128 (i + 1)) of the block, for each i given.
Value WarpGroups(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  Val condition;
  for (size_t i = 0; i < args.rest().size(); ++i) {
    const auto group = e.Int(args.rest()[i], args.rest_ranges()[i], "the number of a warp group");
    if (!group) return Poison{};
    const Val tx = e.ThreadNumber();
    const Val here = *group == 0 ? tx < kWarpgroup
                                 : e.builder().Apply(ExprOp::kAnd, {tx >= *group * kWarpgroup, tx < (*group + 1) * kWarpgroup});
    condition = condition ? e.builder().Apply(ExprOp::kOr, {condition, here}) : here;
  }
  if (!condition) return e.Fail(args.range(), "T.ws takes the numbers of warp groups", "write `with T.ws(0):`");
  ContextObject context;
  context.kind = ContextObject::Kind::kIf;
  context.condition = condition;
  return static_cast<const ContextObject*>(e.New(std::move(context)));
}

// --- Exchange between lanes

Val FromLane(Evaluator& e, const Val& value, const Val& lane) {
  ProgramBuilder& builder = e.builder();
  const Val from = value.In(&builder);
  const VarId var = builder.NewVar("shuffled", from.dtype());
  builder.Add(tilert::Shuffle{var, builder.E(from), builder.Index(lane)});
  return builder.VarVal(var);
}

Val Lane(Evaluator& e) { return e.ThreadNumber() % kWarp; }

Value ShuffleBy(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const Val value = e.Number(args["value"], args.RangeOf("value"), "the value of a shuffle");
  const Val by = e.Number(args["by"], args.RangeOf("by"), "the lane of a shuffle");
  const auto width =
      args.Has("width") ? e.Int(args["width"], args.RangeOf("width"), "the width of a shuffle") : std::optional<int64_t>(kWarp);
  if (!value || !by || !width) return Poison{};
  if (!IsPowerOfTwo(*width) || *width > kWarp)
    return e.Fail(args.RangeOf("width"), Cat("the width of a shuffle is a power of two up to 32, not ", *width));
  ProgramBuilder& builder = e.builder();
  const Val lane = Lane(e), place = *width == kWarp ? lane : lane % *width;
  const std::string_view path = args.builtin().path;
  Val from;
  if (path == "T.shfl_xor") from = builder.Apply(ExprOp::kBitXor, {lane, builder.Cast(by, DType::kIndex)});
  if (path == "T.shfl_down") from = builder.Select(place + by < *width, lane + by, lane);
  if (path == "T.shfl_up") from = builder.Select(place >= by, lane - by, lane);
  if (!from) from = lane - place + by % *width;  // T.shfl_sync, T.tvm_warp_shuffle
  return FromLane(e, value, from);
}

// `value` combined over groups of `count` lanes; each lane has the result, and all have the same bits.
template <typename Combine>
Val Butterfly(Evaluator& e, Val value, int64_t count, Combine combine) {
  for (int64_t step = 1; step < count; step *= 2) {
    value = combine(value, FromLane(e, value, e.builder().Apply(ExprOp::kBitXor, {Lane(e), e.builder().Lit(step)})));
    if (!value) return value;
  }
  return value;
}

Value WarpReduce(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const Val value = e.Number(args["value"], args.RangeOf("value"), "what is reduced");
  if (!value) return Poison{};
  const std::string_view path = args.builtin().path;
  const ExprOp op = path == "T.warp_reduce_max"      ? ExprOp::kMax
                    : path == "T.warp_reduce_min"    ? ExprOp::kMin
                    : path == "T.warp_reduce_bitand" ? ExprOp::kBitAnd
                    : path == "T.warp_reduce_bitor"  ? ExprOp::kBitOr
                                                     : ExprOp::kAdd;
  return Butterfly(e, value.In(&e.builder()), kWarp, [&](Val a, Val b) { return e.builder().Apply(op, {a, b}); });
}

// --- Reductions over threads

Value CommReducer(Evaluator& e, const Args& args) {
  e.threads().reducer = args["combine"];
  return NoneValue{};
}

Value Attr(Evaluator& e, const Args&) {
  ContextObject context;
  context.kind = ContextObject::Kind::kNothing;
  return static_cast<const ContextObject*>(e.New(std::move(context)));
}

// T.tvm_thread_allreduce(T.uint32(1), value, True, result, tk): result = value combined over the threads that differ along tk
// only.
Value AllReduce(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const std::vector<Value>& rest = args.rest();
  if (rest.size() < 5)
    return e.Fail(args.range(), "T.tvm_thread_allreduce takes a count, a value, a condition, a result and threads",
                  "write T.tvm_thread_allreduce(T.uint32(1), value, True, result[0], tx)");
  const Val count = e.Number(rest[0], args.rest_ranges()[0], "the number of values");
  const auto always = e.Bool(rest[2], args.rest_ranges()[2], "the condition");
  const Val value = e.Number(rest[1], args.rest_ranges()[1], "what is reduced");
  auto result = e.Region(rest[3], args.rest_ranges()[3], "the result");
  const auto extents = BlockExtents(e, args);
  if (!count || !always || !value || !result || !extents) return Poison{};
  if (!e.builder().exprs().IsInt(e.builder().E(count), 1) || !*always)
    return e.Fail(args.range(), "only one value is reduced at a time, and by all threads", "pass T.uint32(1) and True");
  if (e.threads().reducer.is_none())
    return e.Fail(args.range(), "how to combine the values is not said",
                  "put it under `with T.attr(T.comm_reducer(…), \"reduce_scope\", …):`");
  ProgramBuilder& builder = e.builder();
  std::vector<bool> reduced(extents->size(), false);
  for (size_t i = 4; i < rest.size(); ++i) {
    const Val place = e.Number(rest[i], args.rest_ranges()[i], "a thread index");
    if (!place) return Poison{};
    bool known = false;
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (builder.E(place) == builder.E(PlaceAlong(e, *extents, d))) known = reduced[d] = true;
    }
    if (!known && !builder.exprs().IsInt(builder.Index(place), 0))
      return e.Fail(args.rest_ranges()[i], "this is no T.get_thread_binding of the block", "pass one");
  }
  const Value reducer = e.threads().reducer;
  const auto combine = [&](Val a, Val b) {
    return e.Number(e.CallValue(reducer, {a, b}, args.range()), args.range(), "what a reducer gives");
  };
  int64_t group = 1;
  bool in_front = true;  // dimensions 0 … d only: neighbours
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) group *= (*extents)[d];
    in_front &= reduced[d] || (*extents)[d] == 1 || (d > 0 && group > 1);
  }
  in_front = in_front && (reduced[0] || (*extents)[0] == 1);
  bool gap = false;
  for (size_t d = 0, seen = 0; d < reduced.size(); ++d) {
    if ((*extents)[d] == 1) continue;
    seen |= !reduced[d];
    gap |= reduced[d] && seen;
  }
  Val total;
  if (in_front && !gap && IsPowerOfTwo(group) && group <= kWarp) {
    total = Butterfly(e, value.In(&builder), group, combine);
  } else {
    // Through shared memory: each thread walks over the values of its group, all in the same order.
    int64_t all = 1;
    for (int64_t extent : *extents) all *= extent;
    const DType type = value.In(&builder).dtype();
    Buf values = builder.Alloc("reduced", type, Scope::kShared, {all}), sum = builder.Alloc("total", type, Scope::kVar, {});
    builder.Store(values, {e.ThreadNumber()}, value);
    Val first = e.ThreadNumber();
    int64_t stride = 1;
    for (size_t d = 0; d < reduced.size(); stride *= (*extents)[d++]) {
      if (reduced[d]) first = first - PlaceAlong(e, *extents, d) * stride;
    }
    builder.Store(sum, {}, values(first));
    const Val k = builder.OpenFor(ForKind::kSerial, "k", 1, group);
    Val at = first, rest_of = k;
    stride = 1;
    for (size_t d = 0; d < reduced.size(); stride *= (*extents)[d++]) {
      if (!reduced[d]) continue;
      at = at + rest_of % (*extents)[d] * stride;
      rest_of = FloorDiv(rest_of, (*extents)[d]);
    }
    const Val next = combine(sum(), values(at));
    if (next) builder.Store(sum, {}, next);
    builder.Close();
    if (!next) return Poison{};
    total = sum();
  }
  if (!total) return Poison{};
  builder.Store(result->buffer, result->start, total);
  return NoneValue{};
}

// --- Copies by thread

// A place in memory is what the other arguments say how to use.
Value AccessPtr(Evaluator&, const Args& args) { return args["base"]; }

// T.ptx_cp_async(to, from, n): the thread copies n elements, zeros where `predicate` does not hold. The copies are done when they
// are waited for; done at once they are right too.
Value CopyByThread(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  auto to = e.Region(args["dst_access_ptr"], args.RangeOf("dst_access_ptr"), "where to copy to"),
       from = e.Region(args["src_access_ptr"], args.RangeOf("src_access_ptr"), "where to copy from");
  const auto count = e.Int(args["num_elems"], args.RangeOf("num_elems"), "the number of elements");
  if (!to || !from || !count) return Poison{};
  if (to->start.empty() || from->start.empty())
    return e.Fail(args.range(), "memory is copied between places of buffers with dimensions", "use T.alloc_local");
  ProgramBuilder& builder = e.builder();
  const Val i = builder.OpenFor(ForKind::kVectorized, "i", 0, *count);
  to->start.back() = to->start.back() + i;
  from->start.back() = from->start.back() + i;
  Val value = from->buffer(from->start);
  if (args.Has("predicate")) {
    const Val predicate = e.Number(args["predicate"], args.RangeOf("predicate"), "a predicate");
    if (predicate)
      value = builder.Select(builder.Cast(predicate, DType::kBool), value, builder.Cast(builder.Lit(int64_t{0}), value.dtype()));
  }
  builder.Store(to->buffer, to->start, value);
  builder.Close();
  return NoneValue{};
}

Value Nothing(Evaluator&, const Args&) { return NoneValue{}; }

}  // namespace

absl::Span<const Builtin> SimtIntrinsics() {
  static constexpr Builtin kBuiltins[] = {
      {"T.get_thread_binding", "dim?", ThreadBinding},
      {"T.get_thread_bindings", "", ThreadBindings},
      {"T.get_thread_extent", "dim?", ThreadExtent},
      {"T.thread_binding", "start stop? thread", BoundThread},
      {"T.get_lane_idx", "warp_size?", GroupNumber},
      {"T.get_warp_idx", "warp_size?", GroupNumber},
      {"T.get_warp_idx_sync", "warp_size?", GroupNumber},
      {"T.get_warp_group_idx", "warp_size? warps_per_group?", GroupNumber},
      {"T.shuffle_elect", "thread_extent", Elected},
      {"T.ws", "*", WarpGroups},
      {"T.WarpSpecialize", "*", WarpGroups},
      {"T.shfl_xor", "value by width? mask?", ShuffleBy},
      {"T.shfl_down", "value by width? mask?", ShuffleBy},
      {"T.shfl_up", "value by width? mask?", ShuffleBy},
      {"T.shfl_sync", "value by width? mask?", ShuffleBy},
      {"T.tvm_warp_shuffle", "mask value by width warp_size?", ShuffleBy},
      {"T.warp_reduce_sum", "value", WarpReduce},
      {"T.warp_reduce_max", "value", WarpReduce},
      {"T.warp_reduce_min", "value", WarpReduce},
      {"T.warp_reduce_bitand", "value", WarpReduce},
      {"T.warp_reduce_bitor", "value", WarpReduce},
      {"T.comm_reducer", "combine identity", CommReducer},
      {"T.attr", "node key value", Attr},
      {"T.tvm_thread_allreduce", "* dtype?", AllReduce},
      {"T.access_ptr", "base access_type? * offset? extent? ignore_last_ndim?", AccessPtr},
      {"T.ptx_cp_async", "dst_access_ptr src_access_ptr num_elems predicate?", CopyByThread},
      {"T.evaluate", "value", Nothing},
      {"T.sync_warp", "mask?", Nothing},
      // Left to the lowering, which knows where they belong.
      {"T.set_max_nreg", "reg_count is_inc", Nothing},
      {"T.inc_max_nreg", "reg_count", Nothing},
      {"T.dec_max_nreg", "reg_count", Nothing},
      {"T.fence_proxy_async", "", Nothing},
      {"T.warpgroup_arrive", "", Nothing},
      {"T.warpgroup_commit_batch", "", Nothing},
      {"T.warpgroup_fence_operand", "* **", Nothing},
      {"T.ptx_commit_group", "", Nothing},
      {"T.tma_store_arrive", "", Nothing},
      // A launch begins when the one before it has ended.
      {"T.pdl_trigger", "", Nothing},
      {"T.pdl_sync", "", Nothing},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
