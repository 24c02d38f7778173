// Bundles written by each released version must read as what they were. tests/frozen/bundle_v1_0.tilert was written once, from
// SampleBundle(), bundle_v1_1.tilert from StagedBundle(), bundle_v1_2.tilert from ClusteredBundle(), bundle_v1_3.tilert from
// SharedBundle(). To make the file of a new version: frozen_bundle_test --update, with the name of the new file here; never
// rewrite one that is there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/container.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "tests/golden.h"
#include "tests/ir/sample_bundle.h"
#include "tests/ir/sample_programs.h"

namespace tilert {
namespace {

// Made-up code for sm_90a of the bundle's first program.
void AddCode(Bundle& bundle, std::map<std::string, int64_t> constants, size_t tensors, uint32_t launch_abi, CubinKernel kernel) {
  PrebuiltCubin cubin;
  cubin.program_digest = ProgramDigest(bundle.programs[0]);
  cubin.constants = std::move(constants);
  cubin.alignment.assign(tensors, 16);
  cubin.dim_divisor = {1};
  cubin.target = "sm_90a";
  cubin.launch_abi = launch_abi;
  cubin.kernels = {std::move(kernel)};
  cubin.code = bundle.Own(
      "\x7f"
      "ELF");
  cubin.code_sha256 = Sha256Of(cubin.code);
  bundle.cubins = {cubin};
}

// Y = the sum of X's n rows of 64, added up in a pipelined loop that blocks may share.
void AddRowSums(ProgramBuilder& b, Buf x, Buf y, Val n, Val split) {
  Buf tile = b.Shared("tile", DType::kFloat32, {64}), sum = b.Fragment("sum", DType::kFloat32, {64});
  b.Fill(sum, Val(0.0));
  Val k = b.OpenFor(ForKind::kPipelined, "k", 0, n, 1, 2, {}, {}, split);
  b.Copy(x.At({k, 0}, {1, 64}), tile);
  Val i = b.OpenParallel({"i"}, {64})[0];
  b.Store(sum, {i}, sum(i) + tile(i));
  b.Close();
  b.Close();
  b.Copy(sum, y);
}

Bundle StagedBundle() {
  Bundle bundle;
  bundle.programs = {StagedProgram()};
  using Kind = CubinKernel::Arg::Kind;
  CubinKernel kernel{"staged_k0", {{Kind::kTensor, 1, 8}, {Kind::kTensorMap, 0, 128}, {Kind::kDim, 0, 8}}, 256, 65536, false};
  kernel.persistent = true;
  kernel.blocks_per_sm = 2;
  kernel.maps = {{0, DType::kFloat32, {32}, 128}};
  AddCode(bundle, {{"stages", 3}}, 2, 1, kernel);
  return bundle;
}

// A launch in clusters, a loop that blocks share, and code that is launched so.
Bundle ClusteredBundle() {
  ProgramBuilder b("clustered");
  Val n = b.Dim("N"), c = b.Constant("c", {2, 1}), split = b.Constant("split", {1, 2});
  Buf x = b.Tensor("X", DType::kFloat32, {n, 64}), y = b.Tensor("Y", DType::kFloat32, {64}, Access::kOut);
  b.Launch<1>("k0", {CeilDiv(n, 64)}, 128);
  b.SetCluster({c});
  AddRowSums(b, x, y, n, split);
  b.Close();
  Bundle bundle;
  bundle.programs = {*b.Build()};
  using Kind = CubinKernel::Arg::Kind;
  CubinKernel kernel{"clustered_k0", {{Kind::kTensor, 1, 8}, {Kind::kDim, 0, 8}}, 128, 65536, false};
  kernel.cluster = {2, 2};
  AddCode(bundle, {{"c", 2}, {"split", 2}}, 2, 3, kernel);
  return bundle;
}

// A loop that all blocks share if a constant says so, one that they always share, values before atomics, and code that leaves
// sums in the workspace.
Bundle SharedBundle() {
  Bundle bundle;
  for (const bool always : {false, true}) {
    ProgramBuilder b(always ? "always_shared" : "shared");
    Val n = b.Dim("N"), split = always ? Val(0) : b.Constant("split", {1, 0});
    Buf x = b.Tensor("X", DType::kFloat32, {n, 64}), y = b.Tensor("Y", DType::kFloat32, {64}, Access::kOut);
    Buf done = b.Tensor("Done", DType::kInt32, {2}, Access::kInOut);
    b.Launch<1>("k0", {CeilDiv(n, 64)}, 128);
    AddRowSums(b, x, y, n, split);
    const VarId before = b.NewVar("before", DType::kInt32);
    b.Add(Atomic{AtomicOp::kAdd, done.id(), {b.Index(0)}, b.E(b.Int(1, DType::kInt32)), MemoryOrder::kAcqRel,
                 MemoryScope::kDevice, before});
    b.Atomic(AtomicOp::kMax, done, {1}, b.VarVal(before));
    b.Close();
    bundle.programs.push_back(*b.Build());
  }
  using Kind = CubinKernel::Arg::Kind;
  CubinKernel kernel{"shared_k0", {{Kind::kTensor, 1, 8}, {Kind::kDim, 0, 8}, {Kind::kGiven, 65536, 8}}, 128, 65536, false};
  kernel.persistent = true;
  AddCode(bundle, {{"split", 0}}, 3, 4, kernel);
  return bundle;
}

void WriteIfMissing(const std::string& file, const std::string& bytes) {
  const std::filesystem::path path = std::filesystem::path(TILERT_SOURCE_DIR) / file;
  if (std::getenv("TILERT_UPDATE_GOLDEN") == nullptr || std::filesystem::exists(path)) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

void ExpectReads(const std::string& file, uint16_t minor, const Bundle& expected) {
  const absl::StatusOr<std::string> written = WriteBundle(expected);
  ASSERT_TRUE(written.ok()) << written.status();
  WriteIfMissing(file, *written);
  const std::string bytes = ReadSourceFile(file);
  EXPECT_EQ(DecodeHeader(bytes)->minor, minor);
  EXPECT_EQ(DecodeHeader(*written)->minor, minor) << "a writer stamps the lowest version that the content needs";
  const absl::StatusOr<Bundle> bundle = ReadBundle(bytes);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_TRUE(*bundle == expected);
  for (const Program& program : bundle->programs) {
    EXPECT_TRUE(Verify(program).ok()) << Verify(program).status();
    ExpectGolden("ir/" + program.name + ".py", PrintProgram(program));
  }
  for (const PrebuiltCubin& cubin : bundle->cubins) EXPECT_TRUE(CodeMatchesHash(cubin));
}

TEST(FrozenBundle, Version1_0Reads) { ExpectReads("tests/frozen/bundle_v1_0.tilert", 0, SampleBundle()); }
TEST(FrozenBundle, Version1_1Reads) { ExpectReads("tests/frozen/bundle_v1_1.tilert", 1, StagedBundle()); }

TEST(FrozenBundle, Version1_2Reads) { ExpectReads("tests/frozen/bundle_v1_2.tilert", 2, ClusteredBundle()); }

TEST(FrozenBundle, Version1_3Reads) { ExpectReads("tests/frozen/bundle_v1_3.tilert", 3, SharedBundle()); }

// Digests are keys of caches and of cubins: what identifies a program must not change.
TEST(FrozenBundle, DigestsAreStable) {
  std::string digests;
  for (const Program& program : SampleBundle().programs) digests += program.name + " " + Sha256Hex(ProgramDigest(program)) + "\n";
  ExpectGolden("ir/digests_v1.txt", digests);
}

}  // namespace
}  // namespace tilert
