// schemas/bundle.fbs against the frozen copy of each released version: every old bundle must stay readable and mean the same.
// FlatBuffers' own conformity check finds renumbered fields and changed types and defaults; the rest is checked here.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "flatbuffers/idl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace tilert {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Changes = std::vector<std::string>;

class Schema {
 public:
  explicit Schema(const std::string& text) {
    EXPECT_TRUE(parser_.Parse(text.c_str())) << parser_.error_;
  }
  const flatbuffers::Parser& parser() const { return parser_; }
  flatbuffers::Parser& parser() { return parser_; }

 private:
  flatbuffers::Parser parser_;
};

void CompareEnum(const flatbuffers::EnumDef& old_enum, const flatbuffers::Parser& now, Changes& changes) {
  const flatbuffers::EnumDef* new_enum = now.enums_.Lookup(old_enum.defined_namespace->GetFullyQualifiedName(old_enum.name));
  if (new_enum == nullptr) {
    changes.push_back("enum " + old_enum.name + " is gone");
    return;
  }
  if (old_enum.underlying_type.base_type != new_enum->underlying_type.base_type || old_enum.is_union != new_enum->is_union) {
    changes.push_back("enum " + old_enum.name + " has another type");
  }
  for (const flatbuffers::EnumVal* value : old_enum.Vals()) {
    const flatbuffers::EnumVal* kept = new_enum->Lookup(value->name);
    if (kept == nullptr) {
      changes.push_back(old_enum.name + "." + value->name + " is gone");
    } else if (kept->GetAsUInt64() != value->GetAsUInt64()) {
      changes.push_back(old_enum.name + "." + value->name + " has another number");
    }
  }
}

void CompareFields(const flatbuffers::StructDef& before, const flatbuffers::StructDef& after, Changes& changes) {
  if (before.fixed != after.fixed || (before.fixed && before.bytesize != after.bytesize)) {
    changes.push_back("struct " + before.name + " has another layout");
  }
  for (const flatbuffers::FieldDef* field : before.fields.vec) {
    const flatbuffers::FieldDef* kept = after.fields.Lookup(field->name);
    if (kept == nullptr) {
      changes.push_back(before.name + "." + field->name + " is gone (deprecate it instead)");
    } else if (field->IsRequired() != kept->IsRequired()) {
      changes.push_back(before.name + "." + field->name + " changed whether it is required");
    }
  }
  for (const flatbuffers::FieldDef* field : after.fields.vec) {
    if (before.fields.Lookup(field->name) == nullptr && field->IsRequired()) {
      changes.push_back(before.name + "." + field->name + " is new and required");
    }
  }
}

Changes BreakingChanges(const std::string& old_text, const std::string& new_text) {
  Schema before(old_text), after(new_text);
  Changes changes;
  const std::string conform = after.parser().ConformTo(before.parser());
  if (!conform.empty()) changes.push_back(conform);
  for (const flatbuffers::EnumDef* old_enum : before.parser().enums_.vec) CompareEnum(*old_enum, after.parser(), changes);
  for (const flatbuffers::StructDef* table : before.parser().structs_.vec) {
    const flatbuffers::StructDef* kept =
        after.parser().structs_.Lookup(table->defined_namespace->GetFullyQualifiedName(table->name));
    if (kept == nullptr) {
      changes.push_back("table " + table->name + " is gone");
    } else {
      CompareFields(*table, *kept, changes);
    }
  }
  if (before.parser().file_identifier_ != after.parser().file_identifier_) changes.push_back("file_identifier changed");
  const bool same_root = before.parser().root_struct_def_ == nullptr ||
                         (after.parser().root_struct_def_ != nullptr &&
                          before.parser().root_struct_def_->name == after.parser().root_struct_def_->name);
  if (!same_root) changes.push_back("root_type changed");
  return changes;
}

constexpr char kSmall[] =
    "namespace n; enum E : ushort { Invalid = 0, A = 1, B = 2 } struct P { x: int; }"
    "table T { name: string (id: 0, required); size: ulong (id: 1); } root_type T; file_identifier \"ABCD\";";

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(SchemaEvolutionTest, AdditionsAreFine) {
  EXPECT_THAT(BreakingChanges(kSmall, kSmall), IsEmpty());
  EXPECT_THAT(BreakingChanges(kSmall, Replaced("B = 2", "B = 2, C = 3")), IsEmpty());
  EXPECT_THAT(BreakingChanges(kSmall, Replaced("(id: 1);", "(id: 1); more: int (id: 2);")), IsEmpty());
}

TEST(SchemaEvolutionTest, BreakingChangesAreFound) {
  const std::map<std::string, std::pair<std::string, std::string>> edits = {
      {"E.B is gone", {"B = 2", "C = 2"}},
      {"E.A is gone", {"A = 1, ", ""}},
      {"another number", {"B = 2", "B = 3"}},
      {"another layout", {"x: int;", "x: int; y: int;"}},
      {"size is gone", {" size: ulong (id: 1);", ""}},
      {"is new and required", {"(id: 1);", "(id: 1); more: string (id: 2, required);"}},
      {"changed whether it is required", {", required", ""}},
      {"file_identifier", {"ABCD", "ABCE"}},
      {"types differ", {"size: ulong", "size: uint"}},
      {"offsets differ", {"string (id: 0, required); size: ulong (id: 1);", "string (id: 1, required); size: ulong (id: 0);"}},
  };
  for (const auto& [expected, edit] : edits) {
    const Changes changes = BreakingChanges(kSmall, Replaced(edit.first, edit.second));
    EXPECT_THAT(changes, testing::Contains(HasSubstr(expected))) << edit.first << " -> " << edit.second;
  }
}

TEST(SchemaEvolutionTest, BundleSchemaConformsToEveryFrozenVersion) {
  const std::string current = ReadSourceFile("schemas/bundle.fbs");
  int versions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TILERT_SOURCE_DIR) / "tests/frozen")) {
    if (entry.path().extension() != ".fbs") continue;
    ++versions;
    const std::string name = "tests/frozen/" + entry.path().filename().string();
    EXPECT_THAT(BreakingChanges(ReadSourceFile(name), current), IsEmpty()) << "against " << name;
  }
  EXPECT_GT(versions, 0);
}

}  // namespace
}  // namespace tilert
