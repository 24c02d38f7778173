// Bundle → bytes → Bundle, and what becomes of bytes that are not a bundle.
#include "ir/bundle.h"

#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/container.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/limits.h"
#include "ir/printer.h"
#include "ir/specialize.h"
#include "tests/ir/sample_bundle.h"
#include "tests/ir/sample_programs.h"

namespace tilert {
namespace {

using testing::HasSubstr;

std::string Write(const Bundle& bundle) {
  absl::StatusOr<std::string> bytes = WriteBundle(bundle);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : std::string();
}

std::string ErrorOf(std::string_view bytes, const ReadOptions& options = {}) {
  const absl::StatusOr<Bundle> bundle = ReadBundle(bytes, options);
  return bundle.ok() ? "OK" : std::string(bundle.status().message());
}

TEST(Bundle, RoundTrip) {
  const Bundle bundle = SampleBundle();
  const std::string bytes = Write(bundle);
  const absl::StatusOr<Bundle> back = ReadBundle(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == bundle);
  EXPECT_TRUE(CodeMatchesHash(back->cubins[0]));
  for (size_t i = 0; i < bundle.programs.size(); ++i) {
    EXPECT_EQ(PrintProgram(back->programs[i]), PrintProgram(bundle.programs[i]));
  }
  EXPECT_EQ(Write(*back), bytes);
}

TEST(Bundle, BytesDoNotDependOnTheArenasHistory) {
  Bundle bundle;
  bundle.programs = {GemmProgram()};
  const std::string bytes = Write(bundle);
  for (int i = 0; i < 10; ++i) bundle.programs[0].exprs.Int(1000 + i);
  EXPECT_EQ(Write(bundle), bytes);
  bundle.programs[0] = CompactExprs(bundle.programs[0]);
  EXPECT_EQ(Write(bundle), bytes);
}

TEST(Bundle, StagesOfAPipelineMayBeAKnob) {
  Bundle bundle;
  bundle.programs = {StagedProgram()};
  const std::string bytes = Write(bundle);
  EXPECT_EQ(DecodeHeader(bytes)->minor, 1);
  const absl::StatusOr<Bundle> back = ReadBundle(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == bundle);
  // With its constant at 4 it is a program that any reader knows, for the number is stored as ever.
  absl::StatusOr<Program> four = Specialize(back->programs[0], {{"stages", 4}});
  ASSERT_TRUE(four.ok()) << four.status();
  std::vector<int64_t> stages;
  for (const Stmt& stmt : four->launches[0].body) {
    if (const auto* loop = std::get_if<For>(&stmt.op)) stages.push_back(NumStages(four->exprs, *loop));
  }
  EXPECT_EQ(stages, (std::vector<int64_t>{4, 2, 2}));
  bundle.programs = {*std::move(four)};
  EXPECT_EQ(DecodeHeader(Write(bundle))->minor, 0);
}

TEST(Bundle, SplitLoopsNeedVersion1_2) {
  Bundle bundle;
  bundle.programs = {SplitProgram()};
  const std::string bytes = Write(bundle);
  EXPECT_EQ(DecodeHeader(bytes)->minor, 2);
  const absl::StatusOr<Bundle> back = ReadBundle(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == bundle);
}

// Readers of 1.2 take a loop for one that blocks of a cluster share: they must not be given a choice that they don't know.
TEST(Bundle, LoopsThatAllBlocksMayShareNeedVersion1_3) {
  for (const auto& [candidates, minor] : std::vector<std::pair<std::vector<int64_t>, int>>{{{1, 2}, 2}, {{1, 0}, 3}, {{0}, 3}}) {
    ProgramBuilder b("split");
    const Val n = b.Dim("N"), ways = b.Constant("ways", candidates);
    const Buf x = b.Tensor("X", DType::kFloat32, {n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
    b.Launch<1>("k0", {1}, 32);
    const Buf tile = b.Shared("tile", DType::kFloat32, {32});
    const Val k = b.OpenFor(ForKind::kPipelined, "k", 0, CeilDiv(n, 32), 1, 2, {}, {}, ways);
    b.Copy(x.At({k * 32}, {32}), tile);
    b.Copy(tile, y.At({k * 32}, {32}));
    b.Close();
    b.Close();
    const absl::StatusOr<Program> program = b.Build();
    ASSERT_TRUE(program.ok()) << program.status();
    Bundle bundle;
    bundle.programs = {*program};
    EXPECT_EQ(DecodeHeader(Write(bundle))->minor, minor) << candidates.back();
  }
}

TEST(Bundle, KernelsWithTensorMapsNeedVersion1_1) {
  Bundle bundle = SampleBundle();
  EXPECT_EQ(DecodeHeader(Write(bundle))->minor, 0);
  CubinKernel& kernel = bundle.cubins[1].kernels[0];
  kernel.persistent = true;
  kernel.blocks_per_sm = 2;
  kernel.maps = {{0, DType::kFloat16, {64, 64}, 128}, {2, DType::kFloat32, {1, 32, 16}, 0}};
  kernel.args.push_back({CubinKernel::Arg::Kind::kTensorMap, 1, 128});
  const std::string bytes = Write(bundle);
  EXPECT_EQ(DecodeHeader(bytes)->minor, 1);
  const absl::StatusOr<Bundle> back = ReadBundle(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == bundle);
  EXPECT_EQ(back->cubins[1].kernels[0].maps[1].box, (std::vector<int64_t>{1, 32, 16}));
  const auto refusal = [&](auto change) {
    Bundle changed = bundle;
    change(changed.cubins[1].kernels[0]);
    const absl::StatusOr<std::string> written = WriteBundle(changed);
    return written.ok() ? std::string() : std::string(written.status().message());
  };
  EXPECT_THAT(refusal([](CubinKernel& k) { k.args.back().index = 2; }), HasSubstr("tensor map 2 does not exist"));
  EXPECT_THAT(refusal([](CubinKernel& k) { k.args.back().bytes = 8; }), HasSubstr("an argument of 8 bytes"));
  EXPECT_THAT(refusal([](CubinKernel& k) { k.maps[0].box.clear(); }), HasSubstr("an impossible tensor map"));
  EXPECT_THAT(refusal([](CubinKernel& k) { k.blocks_per_sm = 0; }), HasSubstr("no block on an SM"));
}

TEST(Bundle, ReadsAtEveryAlignment) {
  const Bundle bundle = SampleBundle();
  const std::string bytes = Write(bundle);
  std::string shifted(16, '\0');
  for (int shift = 0; shift < 9; ++shift) {
    shifted.resize(shift);
    shifted += bytes;
    const absl::StatusOr<Bundle> back = ReadBundle(std::string_view(shifted).substr(shift));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == bundle);
  }
}

TEST(Bundle, EmptyBundle) {
  const absl::StatusOr<Bundle> back = ReadBundle(Write(Bundle()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == Bundle());
}

TEST(Bundle, DigestIsOfTheMeaning) {
  const Program program = ScaleProgram();
  Program moved = program;
  moved.files = {"elsewhere.py"};
  moved.launches[0].loc.line = 99;
  EXPECT_EQ(ProgramDigest(moved), ProgramDigest(program));
  Program changed = program;
  changed.constants[0].candidates[1] = 513;
  EXPECT_NE(ProgramDigest(changed), ProgramDigest(program));
  changed = program;
  changed.buffers[0].name = "Z";
  EXPECT_NE(ProgramDigest(changed), ProgramDigest(program));
  changed = program;
  changed.params[0].access = Access::kInOut;
  EXPECT_NE(ProgramDigest(changed), ProgramDigest(program));
}

TEST(Bundle, EveryTruncationIsRefused) {
  const std::string bytes = Write(SampleBundle());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadBundle(std::string_view(bytes).substr(0, size)).ok()) << size;
    EXPECT_FALSE(ReadBundle(std::string_view(bytes).substr(0, size), {.check_hash = false}).ok()) << size;
  }
  EXPECT_THAT(ErrorOf(""), HasSubstr("truncated"));
  EXPECT_THAT(ErrorOf(std::string_view(bytes).substr(0, 63)), HasSubstr("truncated"));
  EXPECT_THAT(ErrorOf(bytes + "x"), HasSubstr("the file has"));
}

TEST(Bundle, EveryFlippedByteOfTheFlatBufferIsSeenByTheHash) {
  const std::string bytes = Write(SampleBundle());
  const BundleHeader header = *DecodeHeader(bytes);
  for (size_t i = kHeaderBytes; i < kHeaderBytes + header.fb_size; i += 7) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    EXPECT_THAT(ErrorOf(bad), HasSubstr("hash"));
  }
}

// Without the hash: either an error, or a bundle whose programs can be printed and written.
TEST(Bundle, EveryFlippedByteIsSafe) {
  const std::string bytes = Write(SampleBundle());
  std::mt19937 rng(1);
  int accepted = 0;
  for (size_t i = 0; i < bytes.size(); i += 1 + rng() % 29) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ (1 + rng() % 255));
    const absl::StatusOr<Bundle> bundle = ReadBundle(bad, {.check_hash = false});
    if (!bundle.ok()) {
      EXPECT_FALSE(bundle.status().message().empty());
      continue;
    }
    ++accepted;
    for (const Program& program : bundle->programs) EXPECT_FALSE(PrintProgram(program).empty());
    EXPECT_TRUE(WriteBundle(*bundle).ok());
  }
  EXPECT_GT(accepted, 0);
}

std::string WithHeader(std::string bytes, size_t offset, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes[offset + i] = static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

TEST(Bundle, HeaderFieldsAreChecked) {
  const std::string bytes = Write(SampleBundle());
  EXPECT_THAT(ErrorOf("GGUF" + bytes.substr(4)), HasSubstr("not a tilert bundle"));
  EXPECT_THAT(ErrorOf(WithHeader(bytes, 8, 128, 4)), HasSubstr("header size"));
  EXPECT_THAT(ErrorOf(WithHeader(bytes, 12, 2, 2)), HasSubstr("needs format 2.0; this library reads up to 1.3"));
  EXPECT_EQ(ReadBundle(WithHeader(bytes, 12, 2, 2)).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(ErrorOf(WithHeader(bytes, 12, 0, 2)), HasSubstr("major version 0"));
  EXPECT_THAT(ErrorOf(WithHeader(bytes, 14, 9, 2)), HasSubstr("needs format 1.9"));
  EXPECT_THAT(ErrorOf(WithHeader(bytes, 16, 1, 8)), HasSubstr("flags"));
  for (size_t offset : {24, 32, 40, 48}) {
    for (uint64_t value :
         {uint64_t{0}, uint64_t{1}, uint64_t{63}, bytes.size() + 1, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 63}) {
      EXPECT_FALSE(ReadBundle(WithHeader(bytes, offset, value, 8)).ok()) << offset << " " << value;
      EXPECT_FALSE(ReadBundle(WithHeader(bytes, offset, value, 8), {.check_hash = false}).ok()) << offset << " " << value;
    }
  }
}

TEST(Bundle, IdentifierIsChecked) {
  std::string bytes = Write(SampleBundle());
  bytes[kHeaderBytes + 4] = 'X';
  EXPECT_THAT(ErrorOf(bytes, {.check_hash = false}), HasSubstr("TLRT"));
}

TEST(Bundle, CorruptCodeIsFoundOnUse) {
  const std::string bytes = Write(SampleBundle());
  std::string bad = bytes;
  bad.back() = static_cast<char>(bad.back() ^ 1);
  const absl::StatusOr<Bundle> bundle = ReadBundle(bad);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_FALSE(CodeMatchesHash(bundle->cubins.back()));
}

TEST(Bundle, WriterRefusesWhatAReaderWould) {
  const auto refusal = [](auto break_it) {
    Bundle bundle = SampleBundle();
    break_it(bundle);
    const absl::StatusOr<std::string> bytes = WriteBundle(bundle);
    return bytes.ok() ? "OK" : std::string(bytes.status().message());
  };
  EXPECT_THAT(refusal([](Bundle& b) { b.variants[0].program = 99; }), HasSubstr("variants[0]: program 99 does not exist"));
  EXPECT_THAT(refusal([](Bundle& b) { b.variants[0].constants["nope"] = 1; }), HasSubstr("has no constant nope"));
  EXPECT_THAT(refusal([](Bundle& b) { b.variants[0].constants.begin()->second = 7; }), HasSubstr("7 is no candidate"));
  EXPECT_THAT(refusal([](Bundle& b) { b.variants[0].guards[0].dim = 9; }), HasSubstr("dim 9 does not exist"));
  EXPECT_THAT(refusal([](Bundle& b) { b.variants[0].guards[0].divisor = 0; }), HasSubstr("is not one of a dim"));
  EXPECT_THAT(refusal([](Bundle& b) { b.tuning[0].variant = 9; }), HasSubstr("variant 9 does not exist"));
  EXPECT_THAT(refusal([](Bundle& b) { b.tuning[0].microseconds = -1; }), HasSubstr("no time"));
  EXPECT_THAT(refusal([](Bundle& b) { b.cubins[0].kernels[0].threads = 2000; }), HasSubstr("2000 threads"));
  EXPECT_THAT(refusal([](Bundle& b) { b.programs.push_back(b.programs[0]); }), HasSubstr("a second program is named"));
  EXPECT_THAT(refusal([](Bundle& b) { std::get<Parallel>(b.programs[0].launches[0].body[0].op).vars[0] = 77; }),
              HasSubstr("launches[0].body[0]: variable 77 does not exist"));
  EXPECT_THAT(refusal([](Bundle& b) { b.metadata["big"] = std::string(kMaxStringBytes + 1, 'x'); }),
              HasSubstr("more text than is allowed"));
}

TEST(Bundle, DepthIsBounded) {
  ProgramBuilder b("deep");
  b.Launch<1>("k0", {1}, 32);
  for (int i = 0; i < 100; ++i) b.OpenIf(b.Int(1, DType::kBool));
  for (int i = 0; i < 101; ++i) b.Close();
  Bundle bundle;
  bundle.programs = {*b.Build()};
  EXPECT_THAT(std::string(WriteBundle(bundle).status().message()), HasSubstr("nested deeper than 64"));
  // A chain of doublings is small in the arena and huge as a tree.
  ProgramBuilder c("bomb");
  Val x = c.Dim("N");
  for (int i = 0; i < 40; ++i) x = x + x;
  c.Launch<1>("k0", {x}, 32);
  c.Close();
  bundle.programs = {*c.Build()};
  EXPECT_THAT(std::string(WriteBundle(bundle).status().message()), HasSubstr("more than 4096 nodes"));
}

}  // namespace
}  // namespace tilert
