// Text → program → bytes → program → text is the identity, on random programs over every statement and operator.
#include <gtest/gtest.h>

#include <string>

#include "frontend/frontend.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "tests/ir/random_program.h"

namespace tilert::frontend {
namespace {

TEST(RandomRoundTrip, TextProgramBytesProgramText) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = PrintProgram(RandomProgram(seed));
    const absl::StatusOr<Program> read = Compile(text, "printed.py", "random", {});
    ASSERT_TRUE(read.ok()) << "seed " << seed << "\n" << read.status().message() << "\n" << text;
    ASSERT_EQ(PrintProgram(*read), text) << "seed " << seed;
    EXPECT_TRUE(Verify(*read).ok()) << "seed " << seed << "\n" << Verify(*read).status().message();

    Bundle bundle;
    bundle.programs = {*read};
    const absl::StatusOr<std::string> bytes = WriteBundle(bundle);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<Bundle> back = ReadBundle(*bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(back->programs[0] == *read) << "seed " << seed;
    ASSERT_EQ(PrintProgram(back->programs[0]), text) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tilert::frontend
