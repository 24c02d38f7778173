#include "tools/npy.h"

#include <cstring>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/numeric.h"

namespace tilert::tool {
namespace {

using testing::HasSubstr;

std::string TempPath(const std::string& name) { return testing::TempDir() + "/npy_test_" + name; }

std::string Write(const std::string& name, const std::string& bytes) {
  const std::string path = TempPath(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// A version 1 file around a header and data, as NumPy would write it.
std::string File(const std::string& header, const std::string& data, char major = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += {major, '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  if (major > 1) bytes += {'\0', '\0'};
  return bytes + header + data;
}

std::string Header(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string Floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

TEST(NpyTest, ReadsWhatNumpyWrites) {
  const auto array = ReadNpy(Write("ok.npy", File(Header("<f4", "False", "(2, 3)"), Floats({1, 2, 3, 4, 5, 6.5f}))));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(Describe(*array), "float32 [2, 3]");
  EXPECT_EQ(std::memcmp(array->bytes.data(), Floats({1, 2, 3, 4, 5, 6.5f}).data(), 24), 0);
}

TEST(NpyTest, ColumnMajorIsTurned) {
  const auto array = ReadNpy(Write("fortran.npy", File(Header("<f4", "True", "(2, 3)"), Floats({1, 4, 2, 5, 3, 6}))));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(std::memcmp(array->bytes.data(), Floats({1, 2, 3, 4, 5, 6}).data(), 24), 0);
}

TEST(NpyTest, VersionsScalarsAndEmptyArrays) {
  EXPECT_TRUE(ReadNpy(Write("v2.npy", File(Header("<f4", "False", "(1,)"), Floats({1}), 2))).ok());
  EXPECT_TRUE(ReadNpy(Write("v3.npy", File(Header("<f4", "False", "(1,)"), Floats({1}), 3))).ok());
  const auto scalar = ReadNpy(Write("scalar.npy", File(Header("|b1", "False", "()"), std::string(1, '\1'))));
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(Describe(*scalar), "bool []");
  const auto empty = ReadNpy(Write("empty.npy", File(Header("<i8", "False", "(0, 7)"), "")));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->elements(), 0);
}

TEST(NpyTest, RoundTripOfEveryType) {
  for (DType type : {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16,
                     DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    Array array = *MakeArray(type, {3, 5});
    for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<uint8_t>(i * 7 + 1);
    const std::string bytes = NpyBytes(array);
    EXPECT_EQ((bytes.size() - array.bytes.size()) % 64, 0u);
    const auto back = ReadNpy(Write("round.npy", bytes));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(Describe(*back), Describe(array));
    EXPECT_EQ(back->bytes, array.bytes);
  }
}

TEST(NpyTest, TypesThatNumpyLacksBecomeFloat32) {
  Array array = *MakeArray(DType::kBFloat16, {2});
  array.bytes = {0xc0, 0x3f, 0x00, 0xc0};  // 1.5, −2
  const auto back = ReadNpy(Write("bf16.npy", NpyBytes(array)));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Describe(*back), "float32 [2]");
  EXPECT_EQ(std::memcmp(back->bytes.data(), Floats({1.5f, -2}).data(), 8), 0);
}

struct Bad {
  const char* name;
  std::string bytes;
  const char* message;
};

TEST(NpyTest, BadFilesAreRefused) {
  const std::string good = File(Header("<f4", "False", "(2, 3)"), Floats({1, 2, 3, 4, 5, 6}));
  const Bad bad[] = {
      {"empty", "", "not a .npy file"},
      {"text", "hello, this is no array at all", "not a .npy file"},
      {"magic only", good.substr(0, 8), "not a .npy file"},
      {"header cut", good.substr(0, 20), "cut off"},
      {"data cut", good.substr(0, good.size() - 1), "holds 23 bytes of data, its shape [2, 3] needs 24"},
      {"data after", good + "x", "holds 25 bytes"},
      {"version", File(Header("<f4", "False", "()"), Floats({1}), 9), "version 9"},
      {"big endian", File(Header(">f4", "False", "(1,)"), Floats({1})), "'>f4'"},
      {"objects", File(Header("|O", "False", "(1,)"), Floats({1})), "'|O'"},
      {"structured", File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", Floats({1})), "structured"},
      {"negative", File(Header("<f4", "False", "(-1,)"), Floats({1})), "header"},
      {"overflow", File(Header("<f4", "False", "(99999999999999999999,)"), ""), "header"},
      {"product", File(Header("<f4", "False", "(4294967296, 4294967296, 4294967296)"), ""), "too large"},
      {"rank", File(Header("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), Floats({1})), "dimensions"},
      {"missing key", File("{'descr': '<f4', 'shape': (1,), }\n", Floats({1})), "header"},
      {"twice", File("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", Floats({1})), "header"},
      {"other key", File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}\n", Floats({1})), "header"},
      {"after", File(Header("<f4", "False", "(1,)") + "boo", Floats({1})), "header"},
      {"no dictionary", File("__import__('os').system('true')\n", Floats({1})), "header"},
  };
  for (const Bad& b : bad) {
    const auto array = ReadNpy(Write("bad.npy", b.bytes));
    ASSERT_FALSE(array.ok()) << b.name;
    EXPECT_THAT(std::string(array.status().message()), HasSubstr(b.message)) << b.name;
    EXPECT_THAT(std::string(array.status().message()), HasSubstr("bad.npy")) << b.name;
  }
  EXPECT_EQ(ReadNpy(TempPath("nowhere.npy")).status().code(), absl::StatusCode::kNotFound);
}

TEST(NpyTest, NoDamagedByteCrashes) {
  const std::string good = File(Header("<f4", "False", "(2, 3)"), Floats({1, 2, 3, 4, 5, 6}));
  for (size_t at = 0; at < good.size() - 24; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      const auto array = ReadNpy(Write("flip.npy", bytes));
      EXPECT_TRUE(!array.ok() || array->bytes.size() == 24u);
    }
  }
}

}  // namespace
}  // namespace tilert::tool
