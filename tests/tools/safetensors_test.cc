#include "tools/safetensors.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilert::tool {
namespace {

using testing::HasSubstr;

std::string TempPath(const std::string& name) { return testing::TempDir() + "/safetensors_test_" + name; }

std::string Write(const std::string& name, const std::string& bytes) {
  const std::string path = TempPath(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string File(const std::string& header, const std::string& data, int64_t claimed = -1) {
  const uint64_t size = claimed < 0 ? header.size() : static_cast<uint64_t>(claimed);
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(size >> (8 * i) & 0xff);
  return bytes + header + data;
}

TEST(SafetensorsTest, ReadsOneTensor) {
  const std::string path =
      Write("two.safetensors", File(R"( {"__metadata__":{"format":"pt"}, "a.b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},
      "z\u00e9":{"shape":[],"dtype":"I32","data_offsets":[0,4]}} )",
                                    std::string("\1\0\0\0\xc0\x3f\0\xc0", 8)));
  const auto array = ReadSafetensor(path, "a.b");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(Describe(*array), "bfloat16 [2]");
  EXPECT_EQ(array->bytes, (std::vector<uint8_t>{0xc0, 0x3f, 0x00, 0xc0}));
  const auto scalar = ReadSafetensor(path, "z\xc3\xa9");
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(Describe(*scalar), "int32 []");
  const auto none = ReadSafetensor(path, "c");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("'a.b'"));
}

TEST(SafetensorsTest, RoundTrip) {
  std::map<std::string, Array> tensors;
  tensors["x"] = *MakeArray(DType::kFloat8E4M3, {3, 5});
  tensors["we\"ird\\\n"] = *MakeArray(DType::kFloat64, {2});
  tensors["none"] = *MakeArray(DType::kUInt16, {0, 4});
  for (auto& [name, array] : tensors) {
    for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<uint8_t>(i + name.size());
  }
  const std::string path = Write("round.safetensors", SafetensorsBytes(tensors));
  for (const auto& [name, array] : tensors) {
    const auto back = ReadSafetensor(path, name);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(Describe(*back), Describe(array));
    EXPECT_EQ(back->bytes, array.bytes);
  }
}

TEST(SafetensorsTest, BadFilesAreRefused) {
  const std::string data(8, 'x');
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return std::string(R"({"a":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  struct Bad {
    const char* name;
    std::string bytes;
    const char* message;
  };
  const Bad bad[] = {
      {"empty", "", "not a safetensors file"},
      {"short", "abc", "not a safetensors file"},
      {"huge header", File("{}", "", int64_t{1} << 40), "not a safetensors file"},
      {"header beyond the file", File("{}", "", 3), "cut off within its header"},
      {"no json", File("hello", data), "header"},
      {"after", File(entry("F32", "[2]", "[0,8]") + "}", data), "header"},
      {"cut", File(entry("F32", "[2]", "[0,8]").substr(0, 30), data), "header"},
      {"size", File(entry("F32", "[3]", "[0,8]"), data), "its shape [3] needs 12"},
      {"absurd", File(entry("F32", "[4000000000]", "[0,8]"), data), "needs 16000000000"},
      {"outside", File(entry("F32", "[4]", "[0,16]"), data), "at bytes 0 to 16 of 8"},
      {"backwards", File(entry("F32", "[2]", "[8,0]"), data), "at bytes 8 to 0"},
      {"negative offset", File(entry("F32", "[2]", "[-8,0]"), data), "at bytes -8"},
      {"negative extent", File(entry("F32", "[-2]", "[0,8]"), data), "negative extent"},
      {"product", File(entry("F32", "[4294967296,4294967296,4294967296]", "[0,8]"), data), "too large"},
      {"overflow", File(entry("F32", "[99999999999999999999]", "[0,8]"), data), "header"},
      {"fraction", File(entry("F32", "[2.5]", "[0,8]"), data), "header"},
      {"type", File(entry("Q4", "[2]", "[0,8]"), data), "unsupported type 'Q4'"},
      {"offsets", File(entry("F32", "[2]", "[0,8,9]"), data), "header"},
      {"twice",
       File(R"({"a":{"dtype":"I8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"I8","shape":[8],"data_offsets":[0,8]}})", data),
       "listed twice"},
      {"deep", File(R"({"a":{"x":)" + std::string(2000, '[') + std::string(2000, ']') + "}}", data), "header"},
      {"surrogate", File(R"({"\ud800":{}})", data), "header"},
      {"no fields", File(R"({"a":{}})", data), "unsupported type ''"},
  };
  for (const Bad& b : bad) {
    const auto array = ReadSafetensor(Write("bad.safetensors", b.bytes), "a");
    ASSERT_FALSE(array.ok()) << b.name;
    EXPECT_THAT(std::string(array.status().message()), HasSubstr(b.message)) << b.name;
    EXPECT_THAT(std::string(array.status().message()), HasSubstr("bad.safetensors")) << b.name;
  }
}

}  // namespace
}  // namespace tilert::tool
