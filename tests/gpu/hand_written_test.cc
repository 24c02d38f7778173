// Programs that divide the work between threads themselves (tests/lowering/threads.py: shuffles, roles, declared barriers, copies
// and products in flight), atomics that give the value before, random numbers and reshaped fragments (atomics.py, random.py,
// fragment_shapes.py) on the GPU: exactly what the executor computes from small integers. Without a GPU the tests
// are skipped. $TILERT_FAMILY chooses the lowering.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "gtest/gtest.h"
#include "ir/executor.h"
#include "ir/numeric.h"
#include "ir/specialize.h"
#include "tests/gpu/std_bundle.h"
#include "tools/device.h"
#include "tools/file.h"

namespace tilert::gpu {
namespace {

using Dims = std::map<std::string, int64_t>;

// Numbers whose sums of a few thousand are exact in every type of the programs.
void MakeSmallIntegers(tool::CallArguments* call) {
  for (size_t i = 0; i < call->arrays.size(); ++i) {
    tool::Array& array = call->arrays[i];
    if (call->access[i] == Access::kOut || !IsFloat(array.dtype)) continue;
    std::vector<Value> values(array.elements());
    const auto count = static_cast<int64_t>(values.size());
    LoadRow(array.dtype, array.bytes.data(), 1, count, values.data());
    for (Value& v : values) v.f = std::clamp(std::round(v.f), -1.0, 1.0);
    StoreRow(array.dtype, values.data(), count, array.bytes.data(), 1);
  }
}

class HandWritten : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    const char* family = std::getenv("TILERT_FAMILY");
    options.family = family == nullptr ? "auto" : family;
    auto device = tool::Device::Open(std::move(options));
    if (!device.ok()) GTEST_SKIP() << device.status();
    device_ = *std::move(device);
  }

  void Check(const std::string& entry, const std::vector<Dims>& cases, const frontend::Settings& settings = {},
             const std::string& file = "threads.py") {
    // In a pack the sources lie beside the tests.
    std::string path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / file;
    if (!std::filesystem::exists(path)) path = TILERT_SOURCE_DIR "/tests/lowering/" + file;
    const auto text = tool::ReadFile(path);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto program = tool::CompileEntry(path, *text, entry, settings);
    ASSERT_TRUE(program.ok()) << program.status();
    for (const Dims& dims : cases) {
      SCOPED_TRACE(testing::Message() << entry << " " << testing::PrintToString(dims));
      auto call = MakeArguments(*program, dims, ++seed_);
      ASSERT_TRUE(call.ok()) << call.status();
      MakeSmallIntegers(&*call);
      tool::CallArguments expected = *call;
      const auto specialised = Specialize(*program, {});
      ASSERT_TRUE(specialised.ok()) << specialised.status();
      const absl::Status executed = Execute(*specialised, expected.Tensors(), expected.scalars);
      ASSERT_TRUE(executed.ok()) << executed;
      const auto run = tool::DeviceCall::Make(*device_, *program, {}, *call);
      ASSERT_TRUE(run.ok()) << run.status();
      // Often: what is ordered by chance is not always ordered.
      for (int repeat = 0; repeat < 20; ++repeat) {
        const absl::Status launched = (*run)->Launch();
        ASSERT_TRUE(launched.ok()) << launched;
        const absl::Status finished = (*run)->Finish(*call);
        ASSERT_TRUE(finished.ok()) << finished;
        for (size_t i = 0; i < call->arrays.size(); ++i)
          ASSERT_EQ(call->arrays[i].bytes, expected.arrays[i].bytes) << call->names[i] << ", launch " << repeat;
      }
    }
  }

  static std::vector<Dims> Products(std::initializer_list<int64_t> depths) {
    std::vector<Dims> cases;
    for (int64_t k : depths) cases.push_back({{"M", 129}, {"N", 136}, {"K", k}});
    return cases;
  }

  std::unique_ptr<tool::Device> device_;
  uint64_t seed_ = 0;
};

TEST_F(HandWritten, RowSums) { Check("row_sums", {{{"M", 33}, {"N", 1}}, {{"M", 33}, {"N", 63}}, {{"M", 5}, {"N", 2000}}}); }
TEST_F(HandWritten, Gemv) { Check("gemv", {{{"N", 1}, {"K", 1}}, {{"N", 5}, {"K", 255}}, {{"N", 300}, {"K", 1027}}}); }
TEST_F(HandWritten, Butterfly) { Check("butterfly", {{{"b", 7}}}); }
TEST_F(HandWritten, Ranks) { Check("ranks", {{{"N", 1}}, {{"N", 1000}}}); }
TEST_F(HandWritten, StagedCopy) { Check("staged_copy", {{{"M", 64}, {"N", 64}}, {{"M", 190}, {"N", 128}}}); }
TEST_F(HandWritten, TwoRoles) { Check("matmul_two_roles", Products({0, 32, 64, 96, 160, 1024})); }
TEST_F(HandWritten, TwoStages) { Check("matmul_two_stages", Products({0, 32, 64, 96, 160, 1024})); }
TEST_F(HandWritten, InFlight) { Check("matmul_in_flight", Products({64, 200, 320, 1024})); }
TEST_F(HandWritten, Gathered) {
  Check("matmul_gathered", {{{"M", 129}, {"N", 136}, {"K", 64}, {"R", 9}}, {{"M", 129}, {"N", 136}, {"K", 1000}, {"R", 9}}});
}
TEST_F(HandWritten, ThreeRoles) { Check("matmul_three_roles", Products({0, 64, 200, 1024})); }
TEST_F(HandWritten, Halves) { Check("matmul_halves", Products({32, 100, 1024})); }
TEST_F(HandWritten, SingleThreadsArrive) {
  for (const char* entry : {"thread_arrives", "lanes_arrive", "rounds_of_arrivals"}) Check(entry, {{}});
  Check("matmul_elected", Products({0, 32, 64, 96, 160, 1024}));
}
TEST_F(HandWritten, SingleThreadsWait) {
  for (const char* entry : {"threads_wait", "one_waits_for_all"}) Check(entry, {{}});
}
TEST_F(HandWritten, AnnouncedBytes) {
  const auto cases = Products({0, 32, 64, 96, 160, 1000, 1024});
  for (const int64_t stages : {1, 2, 3}) Check("matmul_announced", cases, {{"stages", stages}});
  Check("matmul_announced", Products({64, 1024}), {{"late", true}});
  Check("matmul_announced", {{{"M", 65}, {"N", 67}, {"K", 500}}});  // rows that TMA cannot take
  Check("matmul_announced_by_all", Products({0, 32, 64, 160, 1024}));
}
TEST_F(HandWritten, FragmentShapes) {
  for (const int64_t heads : {8, 16, 64})
    Check("heads", {{{"N", 130}, {"S", 9}}}, {{"heads", heads}, {"block_Q", int64_t{64} / heads}}, "fragment_shapes.py");
  Check("digits", {{{"M", 5}}}, {}, "fragment_shapes.py");
  Check("seen_twice", {{}}, {}, "fragment_shapes.py");
  Check("windows", {{{"M", 5}}}, {}, "fragment_shapes.py");
  Check("stored_in_parts", Products({32, 100}), {}, "fragment_shapes.py");
}
TEST_F(HandWritten, ValuesBeforeAtomics) {
  for (const char* entry : {"tickets", "of_the_block", "by_thread", "in_memory", "in_turn"}) Check(entry, {{}}, {}, "atomics.py");
  for (const char* op : {"add", "max", "min"}) {
    for (const char* type : {"float32", "float16", "bfloat16", "float64", "int32", "uint32", "int64", "uint64"}) {
      const frontend::Settings settings = {{"op", std::string(op)}, {"dtype", std::string(type)}};
      Check("into_fragment", {{}}, settings, "atomics.py");
    }
  }
}
TEST_F(HandWritten, RandomNumbers) {
  for (const char* entry : {"one_thread", "sequences", "floats"}) Check(entry, {{}}, {}, "random.py");
}
// What random programs have brought to light (generated_faults.py).
TEST_F(HandWritten, GeneratedFaults) {
  const std::vector<Dims> cases = {{{"M", 64}, {"N", 80}}, {{"M", 37}, {"N", 67}}};
  for (const char* entry :
       {"windows", "odd_window_stored", "operand_read_again", "extents_of_a_block", "stores_in_turn", "every_thread",
        "least_absolute", "turned_registers", "registers_of_an_iteration", "staged_operand", "sums_of_one",
        "extremes_of_negatives", "reduced_into_itself"})
    Check(entry, cases, {}, "generated_faults.py");
  for (const char* entry : {"read_in_flight", "half_a_product"})
    Check(entry, {{{"M", 64}}, {{"M", 37}}}, {}, "generated_faults.py");
  Check("roles_in_loops", {{{"N", 0}}, {{"N", 40}}, {{"N", 64}}, {{"N", 200}}}, {}, "generated_faults.py");
}

}  // namespace
}  // namespace tilert::gpu
