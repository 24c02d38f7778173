#include "ir/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace tilert {
namespace {

// The examples published with FIPS 180-4 (NIST "Examples with intermediate values", SHA-256).
TEST(Sha256, FipsVectors) {
  EXPECT_EQ(Sha256Hex(Sha256Of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex(Sha256Of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(Sha256Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(Sha256Of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                               "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu")),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(Sha256Hex(Sha256Of(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, SplitsDoNotMatter) {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i * 37 + 11));
  for (size_t length = 0; length <= text.size(); length += 7) {
    const Sha256Digest whole = Sha256Of(text.data(), length);
    for (size_t cut = 0; cut <= length; cut += 13) {
      Sha256 hash;
      hash.Update(text.data(), cut);
      hash.Update(text.data() + cut, length - cut);
      EXPECT_EQ(hash.Finish(), whole) << length << " cut at " << cut;
    }
  }
}

TEST(Sha256, PortableRoundsAgree) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text.push_back(static_cast<char>(i * 91 + 7));
  for (size_t length = 0; length <= text.size(); length += 17) {
    Sha256 portable(Sha256::Rounds::kPortable);
    portable.Update(text.data(), length);
    EXPECT_EQ(portable.Finish(), Sha256Of(text.data(), length)) << length;
  }
}

TEST(Sha256, FieldsAreDelimited) {
  Sha256 a, b;
  a.UpdateField("ab"), a.UpdateField("c");
  b.UpdateField("a"), b.UpdateField("bc");
  EXPECT_NE(a.Finish(), b.Finish());
}

}  // namespace
}  // namespace tilert
