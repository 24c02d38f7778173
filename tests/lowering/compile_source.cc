#include "compile_source.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/specialize.h"

namespace tilert {

Program CompileSource(const std::string& path, const std::string& entry, const frontend::Settings& settings) {
  std::ifstream file(absl::StrCat(TILERT_SOURCE_DIR, "/", path));
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  const absl::StatusOr<Program> program = frontend::Compile(text.str(), path, entry, settings);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  absl::StatusOr<Program> special = Specialize(*program, {});
  EXPECT_TRUE(special.ok()) << special.status();
  return special.ok() ? *std::move(special) : Program();
}

frontend::Settings ParseSettings(const std::string& words) {
  frontend::Settings settings;
  std::istringstream stream(words);
  for (std::string word; stream >> word;) EXPECT_TRUE(frontend::AddSetting(word, &settings).ok()) << word;
  return settings;
}

}  // namespace tilert
