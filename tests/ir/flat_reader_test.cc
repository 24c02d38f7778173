// Bundles whose FlatBuffer passes FlatBuffers' own verifier and is wrong all the same: each mistake is refused by name.
#include "ir/flat_reader.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/container.h"
#include "ir/flat_writer.h"
#include "schemas/bundle_generated.h"
#include "tests/ir/sample_bundle.h"
#include "tests/ir/sample_programs.h"

namespace tilert {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// A whole file around a FlatBuffer.
std::string InContainer(std::string_view flat) {
  BundleHeader header;
  header.fb_size = flat.size();
  header.blob_offset = header.file_size = kHeaderBytes + flat.size();
  header.content_hash = ContentHash(flat);
  return EncodeHeader(header) + std::string(flat);
}

std::string ErrorOf(const std::string& bytes) {
  const absl::StatusOr<Bundle> bundle = ReadBundle(bytes, {.check_hash = false});
  return bundle.ok() ? "OK" : std::string(bundle.status().message());
}

template <typename T>
T& Mutable(const T* record) {
  return *const_cast<T*>(record);
}
template <typename T>
T& At(const flatbuffers::Vector<const T*>* list, size_t i) {
  return Mutable(list->Get(static_cast<flatbuffers::uoffset_t>(i)));
}
void Set(const flatbuffers::Vector<uint32_t>* list, size_t i, uint32_t value) {
  const_cast<flatbuffers::Vector<uint32_t>*>(list)->Mutate(static_cast<flatbuffers::uoffset_t>(i), value);
}

// Index of the first statement of a kind.
size_t Find(const flat::Program& p, flat::StmtOp op) {
  size_t i = 0;
  while (i < p.stmts()->size() && p.stmts()->Get(static_cast<flatbuffers::uoffset_t>(i))->op() != op) ++i;
  return i;
}
// Position of the first operand of a statement.
size_t Operands(const flat::Program& p, size_t stmt) {
  size_t position = 0;
  for (size_t i = 0; i < stmt; ++i) position += p.stmts()->Get(static_cast<flatbuffers::uoffset_t>(i))->operand_count();
  return position;
}
void Replace(flat::Stmt& s, flat::StmtOp op, uint32_t operand_count, uint32_t end) {
  s = flat::Stmt(op, 0, operand_count, end, s.loc());
}
void Replace(flat::Expr& e, uint16_t op, uint8_t dtype, uint32_t arg_count, int64_t value) {
  e = flat::Expr(op, static_cast<flat::DType>(dtype), 0, arg_count, value);
}

// What is said when `change` is made to the flat form of the sample programs.
std::string AfterChange(const std::function<void(const flat::Bundle&)>& change) {
  std::string bytes = *WriteBundle(SampleBundle());
  change(*flat::GetBundle(bytes.data() + kHeaderBytes));
  return ErrorOf(bytes);
}
std::string AfterProgramChange(uint32_t program, const std::function<void(const flat::Program&)>& change) {
  return AfterChange([&](const flat::Bundle& b) { change(*b.programs()->Get(program)); });
}

TEST(FlatReader, ExpressionsAreChecked) {
  const auto change = [](auto edit) { return AfterProgramChange(1, [&](const flat::Program& p) { edit(p); }); };
  EXPECT_THAT(change([](auto& p) { Replace(At(p.exprs(), 0), 777, 16, 0, 0); }),
              HasSubstr("programs[1].exprs[0]: operator 777 is unknown"));
  EXPECT_THAT(change([](auto& p) { Replace(At(p.exprs(), 0), 3, 200, 0, 0); }),
              HasSubstr("programs[1].exprs: type 200 is unknown"));
  EXPECT_THAT(change([](auto& p) { Replace(At(p.exprs(), 0), 3, 16, 0, -1); }), HasSubstr("dim -1 does not exist"));
  EXPECT_THAT(change([](auto& p) { Replace(At(p.exprs(), 0), 3, 16, 0, 99); }),
              HasSubstr("dim 99 does not exist; the program has 4"));
  EXPECT_THAT(change([](auto& p) { Replace(At(p.exprs(), 0), 3, 16, 1000000, 0); }),
              HasSubstr("its operands go beyond the array"));
  EXPECT_THAT(change([](auto& p) { Set(p.expr_args(), 0, p.exprs()->size() - 1); }), HasSubstr("is not an earlier expression"));
  EXPECT_THAT(change([](auto& p) { Set(p.expr_args(), 0, 0xffffffff); }), HasSubstr("is not an earlier expression"));
}

TEST(FlatReader, StatementsAreChecked) {
  const auto change = [](auto edit) { return AfterProgramChange(2, [&](const flat::Program& p) { edit(p); }); };
  const auto stmts = [](const flat::Program& p, flat::StmtOp op) -> flat::Stmt& { return At(p.stmts(), Find(p, op)); };
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), static_cast<flat::StmtOp>(777), 1, 1); }),
              HasSubstr("programs[2].stmts[0]: statement 777 is unknown"));
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), flat::StmtOp::Alloc, 1, 0); }),
              HasSubstr("stmts[0]: its end 0 is not within"));
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), flat::StmtOp::Alloc, 1, 0xffffffff); }),
              HasSubstr("its end 4294967295 is not within"));
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), flat::StmtOp::Alloc, 1, 3); }),
              HasSubstr("statements are nested in it that it cannot hold"));
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), flat::StmtOp::Block, 1, 1); }), HasSubstr("or cannot stand here"));
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), flat::StmtOp::Alloc, 0, 1); }),
              HasSubstr("stmts[0] (Alloc): an operand is missing"));
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), flat::StmtOp::Alloc, 2, 1); }),
              HasSubstr("stmts[0] (Alloc): 1 operands are left over"));
  EXPECT_THAT(change([&](auto& p) { Replace(At(p.stmts(), 0), flat::StmtOp::Alloc, 0xffffffff, 1); }),
              HasSubstr("go beyond the array"));
  EXPECT_THAT(change([&](auto& p) {
                flat::Stmt& branch = stmts(p, flat::StmtOp::If);
                Replace(branch, flat::StmtOp::If, 1, static_cast<uint32_t>(Find(p, flat::StmtOp::If)) + 1);
              }),
              HasSubstr("one of its nested blocks is missing"));
  EXPECT_THAT(change([](auto& p) { Set(p.operands(), 0, 99); }), HasSubstr("launches[0].body[0]: buffer 99 does not exist"));
  EXPECT_THAT(change([](auto& p) { Set(p.operands(), Operands(p, Find(p, flat::StmtOp::Reduce)), 9); }),
              HasSubstr("(Reduce): operand 9 is no value of its enumeration"));
  EXPECT_THAT(change([](auto& p) { Set(p.operands(), Operands(p, Find(p, flat::StmtOp::Reduce)), 0x101); }),
              HasSubstr("is no value of its enumeration"));
  EXPECT_THAT(change([](auto& p) { Set(p.operands(), Operands(p, Find(p, flat::StmtOp::Store)) + 1, 0x7fffffff); }),
              HasSubstr("(Store): a list of 2147483647 is longer"));
  EXPECT_THAT(change([](auto& p) { Set(p.operands(), Operands(p, Find(p, flat::StmtOp::Assert)) + 1, 1234567); }),
              HasSubstr("string 1234567 does not exist"));
  EXPECT_THAT(change([](auto& p) { Set(p.operands(), Operands(p, Find(p, flat::StmtOp::While)), 1234567); }),
              HasSubstr("expression 1234567 does not exist"));
  EXPECT_THAT(change([](auto& p) { Set(p.operands(), Operands(p, Find(p, flat::StmtOp::While)), 0xffffffff); }),
              HasSubstr("an operand has no value"));
}

TEST(FlatReader, TablesAreChecked) {
  const auto change = [](auto edit) { return AfterChange([&](const flat::Bundle& b) { edit(b); }); };
  const auto scalar = [](const auto* table, flatbuffers::voffset_t field, auto value) {
    ASSERT_TRUE(
        reinterpret_cast<flatbuffers::Table*>(const_cast<std::remove_const_t<std::remove_pointer_t<decltype(table)>>*>(table))
            ->SetField(field, value, decltype(value)(0)));
  };
  EXPECT_THAT(change([&](auto& b) { scalar(b.programs()->Get(0)->buffers()->Get(0), flat::Buffer::VT_DTYPE, uint8_t{200}); }),
              HasSubstr("buffers: type 200 is unknown"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.programs()->Get(0)->buffers()->Get(0), flat::Buffer::VT_SCOPE, uint8_t{77}); }),
              HasSubstr("77 is no value of its enumeration"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.programs()->Get(0)->params()->Get(0), flat::Param::VT_INDEX, 99u); }),
              HasSubstr("buffer 99 does not exist"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.programs()->Get(0)->dims()->Get(0), flat::Dim::VT_NAME, 99999u); }),
              HasSubstr("string 99999 does not exist"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.programs()->Get(0)->launches()->Get(0), flat::Launch::VT_STMT_COUNT, 99u); }),
              HasSubstr("a body goes beyond"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.programs()->Get(0)->launches()->Get(0), flat::Launch::VT_STMT_COUNT, 0u); }),
              HasSubstr("belong to no launch"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.cubins()->Get(0), flat::Cubin::VT_BLOB, 9u); }), HasSubstr("blob 9 does not exist"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.blobs()->Get(0), flat::Blob::VT_OFFSET, uint64_t{1} << 40); }),
              HasSubstr("go beyond the file"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.blobs()->Get(0), flat::Blob::VT_SIZE, ~uint64_t{0}); }),
              HasSubstr("go beyond the file"));
  EXPECT_THAT(change([&](auto& b) { scalar(b.blobs()->Get(1), flat::Blob::VT_OFFSET, uint64_t{1}); }),
              HasSubstr("is not aligned"));
}

TEST(FlatReader, UnknownFeaturesAreNamed) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto strings = fbb.CreateVectorOfStrings({"quantum_tiles"});
  const auto features = fbb.CreateVector(std::vector<uint32_t>{0});
  flat::FinishBundleBuffer(fbb, flat::CreateBundle(fbb, strings, features));
  const std::string bytes = InContainer({reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize()});
  EXPECT_EQ(ReadBundle(bytes).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("needs the feature \"quantum_tiles\""));
}

// A small file whose tables all point at the same large arrays must not cost what the arrays add up to.
TEST(FlatReader, OverlappingArraysAreNotAmplified) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto strings = fbb.CreateVectorOfStrings({"p", std::string(60000, 'x')});
  std::vector<flat::Expr> exprs(100000, flat::Expr(1, flat::DType::Index, 0, 0, 0));
  const auto shared_exprs = fbb.CreateVectorOfStructs(exprs);
  std::vector<flatbuffers::Offset<flat::Program>> programs;
  for (int i = 0; i < 1000; ++i) {
    flat::ProgramBuilder program(fbb);
    program.add_exprs(shared_exprs);
    programs.push_back(program.Finish());
  }
  const auto list = fbb.CreateVector(programs);
  flat::FinishBundleBuffer(fbb, flat::CreateBundle(fbb, strings, 0, 0, list));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(ErrorOf(InContainer({reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize()})), HasSubstr("overlap"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(FlatReader, RepeatedTextIsNotAmplified) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto strings = fbb.CreateVectorOfStrings({std::string(60000, 'x')});
  std::vector<flatbuffers::Offset<flat::Metadata>> metadata;
  std::vector<flatbuffers::Offset<flat::Variant>> variants;
  for (int i = 0; i < 1000; ++i) variants.push_back(flat::CreateVariant(fbb, 0, 0, 0, 0));
  const auto list = fbb.CreateVector(variants);
  flat::FinishBundleBuffer(fbb, flat::CreateBundle(fbb, strings, 0, 0, 0, list));
  EXPECT_THAT(ErrorOf(InContainer({reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize()})),
              HasSubstr("more text than is allowed"));
}

TEST(FlatReader, TooManyTablesAreRefused) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto strings = fbb.CreateVectorOfStrings({"p"});
  const auto one = flat::CreateVariant(fbb, 0, 0, 0, 0);
  const auto list = fbb.CreateVector(std::vector<flatbuffers::Offset<flat::Variant>>(70000, one));
  flat::FinishBundleBuffer(fbb, flat::CreateBundle(fbb, strings, 0, 0, 0, list));
  EXPECT_THAT(ErrorOf(InContainer({reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize()})),
              HasSubstr("malformed"));
}

}  // namespace
}  // namespace tilert
