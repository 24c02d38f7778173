// T.rng_init, T.rng_rand, T.rng_rand_float: random numbers as cuRAND's Philox4x32-10 gives them (Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", 2011), written out in integers. Number n of a subsequence is word n % 4 of what
// the cipher makes of the counter (n / 4, subsequence) under the key `seed`: a thread has to remember those three alone.
#include <array>

#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

constexpr int kRounds = 10;
constexpr int64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // what the key's words grow by from round to round

Val Low(ProgramBuilder& b, Val x) { return b.Cast(x, DType::kUInt32); }
Val High(ProgramBuilder& b, Val x) { return b.Cast(x >> 32, DType::kUInt32); }
Val Wide(ProgramBuilder& b, Val x) { return b.Cast(x, DType::kUInt64); }

// Variables that exist in the whole launch, wherever the generator is made: each thread has its own.
RandomNumbers MakeRandom(Evaluator& e) {
  const auto variable = [&](const char* name) {
    const Buf buf = e.builder().Declare(name, DType::kUInt64, Scope::kVar, {});
    e.builder().AddInFront(Alloc{buf.id()});
    return buf;
  };
  return {variable("rng_seed"), variable("rng_sequence"), variable("rng_next")};
}

// tx + bx · threads, along x.
Val DefaultSequence(Evaluator& e) {
  ProgramBuilder& b = e.builder();
  const std::vector<Val>& extents = e.threads().extents;
  const Val tx = extents.size() > 1 ? e.ThreadNumber() % extents[0] : e.ThreadNumber();
  return tx + b.VarVal(b.program().launches.back().block_vars[0]) * extents[0];
}

Value Init(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  if (args.Has("generator")) {
    const auto generator = e.String(args["generator"], args.RangeOf("generator"), "the generator");
    if (!generator) return Poison{};
    if (*generator != "curandStatePhilox4_32_10_t")
      return e.Fail(args.RangeOf("generator"), Cat("there is no generator '", *generator, "'"),
                    "write \"curandStatePhilox4_32_10_t\", or leave it out");
  }
  ProgramBuilder& b = e.builder();
  const Val seed = e.Number(args["seed"], args.RangeOf("seed"), "the seed");
  const bool by_place = !args.Has("seq") || args["seq"].is_none();
  const Val sequence = by_place ? DefaultSequence(e) : e.Number(args["seq"], args.RangeOf("seq"), "the sequence");
  const Val first = args.Has("off") ? e.Number(args["off"], args.RangeOf("off"), "the offset") : b.Lit(int64_t{0});
  if (!seed || !sequence || !first) return Poison{};
  e.ThreadNumber();  // code by thread, whether or not the source asks for its number
  auto& random = e.threads().random;
  if (!random) random = MakeRandom(e);
  b.Store(random->seed, {}, Wide(b, seed));
  b.Store(random->sequence, {}, Wide(b, sequence));
  b.Store(random->next, {}, Wide(b, first));
  return NoneValue{};
}

// The thread's next number; none, after a report, where there is no generator.
Val Next(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return {};
  if (!e.threads().random) {
    e.Fail(args.range(), "there is no random number generator here", "write T.rng_init(seed) before, in this launch");
    return {};
  }
  ProgramBuilder& b = e.builder();
  const RandomNumbers& random = *e.threads().random;
  const Val n = b.Let("n", random.next());
  b.Store(random.next, {}, n + 1);
  const Val key0 = b.Let("key0", Low(b, random.seed())), key1 = b.Let("key1", High(b, random.seed()));
  std::array<Val, 4> word = {Low(b, n >> 2), High(b, n >> 2), Low(b, random.sequence()), High(b, random.sequence())};
  for (uint32_t round = 0; round < kRounds; ++round) {
    const Val p = b.Let("p", Wide(b, word[0]) * kMultiplier0), q = b.Let("q", Wide(b, word[2]) * kMultiplier1);
    word = {High(b, q) ^ word[1] ^ (key0 + int64_t{round * kWeyl0}), Low(b, q),
            High(b, p) ^ word[3] ^ (key1 + int64_t{round * kWeyl1}), Low(b, p)};
  }
  const Val which = n % 4;
  return b.Let("random", b.Select(which == 0, word[0], b.Select(which == 1, word[1], b.Select(which == 2, word[2], word[3]))));
}

Value Rand(Evaluator& e, const Args& args) {
  const Val number = Next(e, args);
  return number ? e.Wrap(number) : Value(Poison{});
}

// Uniform in (0, 1], as curand_uniform and curand_uniform_double.
Value RandFloat(Evaluator& e, const Args& args) {
  const auto bits = args.Has("bit") ? e.Int(args["bit"], args.RangeOf("bit"), "the width") : std::optional<int64_t>(32);
  if (!bits) return Poison{};
  if (*bits != 32 && *bits != 64) return e.Fail(args.RangeOf("bit"), Cat("random floats have 32 or 64 bits, not ", *bits));
  if (args.Has("dist")) {
    const auto dist = e.String(args["dist"], args.RangeOf("dist"), "the distribution");
    if (!dist) return Poison{};
    if (*dist != "uniform")
      return e.Fail(args.RangeOf("dist"), Cat("there is no distribution '", *dist, "'"),
                    "make it of uniform numbers u, v: T.sqrt(-2 * T.log(u)) * T.sin(6.2831855 * v) is normal");
  }
  const Val number = Next(e, args);
  if (!number) return Poison{};
  ProgramBuilder& b = e.builder();
  if (*bits == 32) return e.Wrap(b.Cast(number, DType::kFloat32) * 0x1p-32 + 0x1p-33);
  return e.Wrap(b.Cast(number, DType::kFloat64) * 0x1p-32 + 0x1p-32);
}

}  // namespace

absl::Span<const Builtin> RandomIntrinsics() {
  static constexpr Builtin kBuiltins[] = {
      {"T.rng_init", "seed seq? off? generator?", Init},
      {"T.rng_rand", "", Rand},
      {"T.rng_rand_float", "bit? dist?", RandFloat},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
