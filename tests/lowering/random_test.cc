// T.rng_*: the numbers are cuRAND's, on the executor, in both families, and in the emitted code.
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "host_program.h"
#include "nvrtc_harness.h"

namespace tilert {
namespace {

using Words = std::array<uint32_t, 4>;

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
Words Philox(Words counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xD2511F53} * counter[0], q = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(q >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(q),
               static_cast<uint32_t>(p >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(p)};
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
  return counter;
}

// Number n of a subsequence, as curand_init and curand have it.
uint32_t Number(uint64_t seed, uint64_t sequence, uint64_t n) {
  const Words counter = {static_cast<uint32_t>(n / 4), static_cast<uint32_t>(n / 4 >> 32), static_cast<uint32_t>(sequence),
                         static_cast<uint32_t>(sequence >> 32)};
  return Philox(counter, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32))[n % 4];
}

Program Random(const std::string& entry, const std::string& settings = "") {
  return CompileSource("tests/lowering/random.py", entry, ParseSettings(settings));
}

// The vectors that the authors of Philox publish (Random123, kat_vectors).
TEST(Random, PublishedVectors) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, OneThread) {
  struct Case {
    const char* settings;
    uint64_t seed, first;
    int64_t m;
  };
  for (const Case& c : {Case{"seed=42", 42, 0, 512}, Case{"seed=0 first=3", 0, 3, 512},
                        Case{"seed=81985529216486895 first=2000000000 M=130", 81985529216486895, 2000000000, 130}}) {
    const Program program = Random("one_thread", c.settings);
    ASSERT_FALSE(program.launches.empty());
    Args args = MakeArgs({{DType::kUInt32, {c.m}}});
    ASSERT_TRUE(Execute(program, args.tensors(), {}, Checked()).ok());
    for (int64_t i = 0; i < c.m; ++i) {
      const uint32_t expected = Number(c.seed, 0, c.first + static_cast<uint64_t>(i));
      ASSERT_EQ(static_cast<uint32_t>(args.out().Int(i)), expected) << c.settings << " " << i;
    }
    Comparison comparison(program);
    comparison.ExpectAgrees(MakeArgs({{DType::kUInt32, {c.m}}}), {}, c.settings);
    EXPECT_GT(comparison.compared(), 0);
  }
}

// Where the counter's second word begins to count, too.
TEST(Random, Sequences) {
  const Program program = Random("sequences");
  ASSERT_FALSE(program.launches.empty());
  for (const int64_t seed : {int64_t{42}, int64_t{-7}, int64_t{0x123456789abcdef}}) {
    for (const int64_t first : {int64_t{0}, (int64_t{1} << 34) - 3}) {
      Args args = MakeArgs({{DType::kInt64, {2}}, {DType::kUInt32, {3, 64, 6}}});
      args.arrays[0].SetInt(0, seed);
      args.arrays[0].SetInt(1, first);
      const Args before = args;
      ASSERT_TRUE(Execute(program, args.tensors(), {}, Checked()).ok());
      for (uint64_t thread = 0; thread < 192; ++thread) {
        for (uint64_t i = 0; i < 6; ++i) {
          const uint32_t expected = Number(static_cast<uint64_t>(seed), thread, static_cast<uint64_t>(first) + i);
          ASSERT_EQ(static_cast<uint32_t>(args.out().Int(static_cast<int64_t>(thread * 6 + i))), expected) << thread << " " << i;
        }
      }
      Comparison(program).ExpectAgrees(before, {}, "sequences");
    }
  }
}

TEST(Random, Floats) {
  const Program program = Random("floats");
  ASSERT_FALSE(program.launches.empty());
  Args args = MakeArgs({{DType::kFloat64, {32, 16}}});
  ASSERT_TRUE(Execute(program, args.tensors(), {}, Checked()).ok());
  for (uint64_t t = 0; t < 32; ++t) {
    for (uint64_t i = 0; i < 8; ++i) {
      const uint32_t x = Number(1, t, 2 * i), y = Number(1, t, 2 * i + 1);
      EXPECT_EQ(args.out()[static_cast<int64_t>(t * 16 + 2 * i)], static_cast<float>(x) * 0x1p-32f + 0x1p-33f);
      EXPECT_EQ(args.out()[static_cast<int64_t>(t * 16 + 2 * i + 1)], y * 0x1p-32 + 0x1p-32);
    }
  }
  Comparison(program).ExpectAgrees(MakeArgs({{DType::kFloat64, {32, 16}}}), {}, "floats");
}

// Pairs by Box and Muller: the sine first, the cosine with the next call of the width.
TEST(Random, Normals) {
  const Program program = Random("normals");
  ASSERT_FALSE(program.launches.empty());
  Args args = MakeArgs({{DType::kFloat64, {32, 20}}});
  ASSERT_TRUE(Execute(program, args.tensors(), {}, Checked()).ok());
  for (uint64_t t = 0; t < 32; ++t) {
    uint64_t n = 0;
    std::optional<double> held[2];
    const auto word = [&] { return static_cast<double>(Number(11, t, n++)); };
    const auto normal = [&](bool wide) {
      if (held[wide]) return *std::exchange(held[wide], std::nullopt);
      const auto uniform = [&] {
        if (!wide) return (word() + 0.5) * 0x1p-32;
        const uint64_t low = Number(11, t, n), high = Number(11, t, n + 1);
        n += 2;
        return (static_cast<double>(low ^ high << 21) + 0.5) * 0x1p-53;
      };
      const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::acos(-1.0) * uniform();
      held[wide] = radius * std::cos(angle);
      return radius * std::sin(angle);
    };
    for (uint64_t i = 0; i < 5; ++i) {
      const auto at = [&](uint64_t k) { return args.out()[static_cast<int64_t>(t * 20 + 4 * i + k)]; };
      EXPECT_NEAR(at(0), normal(false), 4e-6) << t << " " << i;
      EXPECT_NEAR(at(1), normal(true), 1e-13) << t << " " << i;
      EXPECT_NEAR(at(2), i % 2 == t % 2 ? normal(false) : 0, 4e-6) << t << " " << i;
      EXPECT_EQ(at(3), word() * 0x1p-32 + 0x1p-32) << t << " " << i;
    }
  }
  const Bound bound{.relative = 0x1p-18, .of_magnitude = 0x1p-18};
  Comparison(program).ExpectAgrees(MakeArgs({{DType::kFloat64, {32, 20}}}), bound, "normals");
}

TEST(Random, EmittedCode) {
  HostProgram(Random("one_thread", "M=130")).Check({{130}}, FillSmall, [](DType) { return 0.0; }, 0);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    if (!HasNvrtc()) continue;
    for (const char* entry : {"one_thread", "sequences", "floats", "normals"}) {
      const Program program = Random(entry);
      const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget(arch));
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const TestCubin cubin = CompileForTest(lowered->source, arch);
      EXPECT_TRUE(cubin.ok) << entry << " " << arch << "\n" << cubin.log;
    }
  }
}

}  // namespace
}  // namespace tilert
