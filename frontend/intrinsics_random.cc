// T.rng_init, T.rng_rand, T.rng_rand_float: random numbers as cuRAND's Philox4x32-10 gives them (Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", 2011), written out in integers. Number n of a subsequence is word n % 4 of what
// the cipher makes of the counter (n / 4, subsequence) under the key `seed`: a thread has to remember those three alone.
// Normal numbers come in pairs (Box, Muller, "A note on the generation of random normal deviates", 1958), the second of which is
// held for the next call.
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

// A variable that exists in the whole launch, wherever the generator is made: each thread has its own.
Buf Variable(Evaluator& e, const char* name, DType type = DType::kUInt64) {
  const Buf buf = e.builder().Declare(name, type, Scope::kVar, {});
  e.builder().AddInFront(Alloc{buf.id()});
  return buf;
}

RandomNumbers MakeRandom(Evaluator& e) {
  return {Variable(e, "rng_seed"), Variable(e, "rng_sequence"), Variable(e, "rng_next"), Variable(e, "rng_holds"), {}, {}};
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
  b.Store(random->holds, {}, b.Lit(int64_t{0}));
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
Val Uniform(Evaluator& e, const Args& args, DType type) {
  const Val number = Next(e, args);
  if (!number) return {};
  return e.builder().Cast(number, type) * 0x1p-32 + (type == DType::kFloat32 ? 0x1p-33 : 0x1p-32);
}

// Uniform in (0, scale] as the normal numbers take it: of one word, or of 53 bits of two.
Val UniformOf(ProgramBuilder& b, const std::vector<Val>& words, DType type, double scale) {
  if (type == DType::kFloat32) return b.Cast(words[0], type) * (0x1p-32 * scale) + 0x1p-33 * scale;
  return b.Cast(Wide(b, words[0]) ^ (Wide(b, words[1]) << 21), type) * (0x1p-53 * scale) + 0x1p-54 * scale;
}

// Of mean 0 and variance 1, as curand_normal and curand_normal_double.
Val Normal(Evaluator& e, const Args& args, DType type) {
  if (!e.RequireLaunch(args) || !e.threads().random) return Next(e, args);  // which reports it
  ProgramBuilder& b = e.builder();
  RandomNumbers& random = *e.threads().random;
  const bool is_wide = type == DType::kFloat64;
  auto& held = is_wide ? random.held64 : random.held32;
  if (!held) held = Variable(e, is_wide ? "rng_held64" : "rng_held32", type);
  const Buf normal = b.Alloc("normal", type, Scope::kVar, {});
  const int64_t bit = is_wide ? 2 : 1;
  const Val holds = b.Let("holds", random.holds());
  b.Store(random.holds, {}, holds ^ bit);
  b.OpenIf((holds & bit) != 0);
  b.Store(normal, {}, (*held)());
  b.Else();
  std::vector<Val> first, second;
  for (std::vector<Val>* words : {&first, &second}) {
    for (int64_t n = 0; n < bit; ++n) words->push_back(Next(e, args));
  }
  constexpr double kTurn = 6.283185307179586;
  const Val radius = b.Let("radius", Call(ExprOp::kSqrt, Call(ExprOp::kLog, UniformOf(b, first, type, 1)) * -2.0));
  const Val angle = b.Let("angle", UniformOf(b, second, type, kTurn));
  b.Store(normal, {}, Call(ExprOp::kSin, angle) * radius);
  b.Store(*held, {}, Call(ExprOp::kCos, angle) * radius);
  b.Close();
  return b.Let("random", normal());
}

Value RandFloat(Evaluator& e, const Args& args) {
  const auto bits = args.Has("bit") ? e.Int(args["bit"], args.RangeOf("bit"), "the width") : std::optional<int64_t>(32);
  if (!bits) return Poison{};
  if (*bits != 32 && *bits != 64) return e.Fail(args.RangeOf("bit"), Cat("random floats have 32 or 64 bits, not ", *bits));
  std::string dist = "uniform";
  if (args.Has("dist")) {
    const auto given = e.String(args["dist"], args.RangeOf("dist"), "the distribution");
    if (!given) return Poison{};
    dist = *given;
  }
  if (dist != "uniform" && dist != "normal")
    return e.Fail(args.RangeOf("dist"), Cat("there is no distribution '", dist, "'"), "write \"uniform\" or \"normal\"");
  const DType type = *bits == 32 ? DType::kFloat32 : DType::kFloat64;
  const Val number = dist == "normal" ? Normal(e, args, type) : Uniform(e, args, type);
  return number ? e.Wrap(number) : Value(Poison{});
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
