#include "ir/flat_decode.h"

#include <cstring>
#include <optional>
#include <utility>

#include "ir/flat_fields.h"
#include "ir/limits.h"
#include "ir/status_util.h"
#include "ir/structure.h"

namespace tilert {

FlatAccess::FlatAccess(const flat::Bundle& bundle, uint64_t flat_bytes)
    : strings_(bundle.strings()), bytes_left_(flat_bytes), text_left_(kMaxTextBytes) {
  if (strings_ != nullptr && strings_->size() > kMaxStrings) {
    Fail(InvalidArgument("bundle: ", strings_->size(), " strings; at most ", kMaxStrings, " are allowed"));
  }
}

bool FlatAccess::Spend(uint64_t bytes) {
  if (!status_.ok()) return false;
  if (bytes > bytes_left_) {
    Fail(InvalidArgument("bundle: its arrays overlap each other"));
    return false;
  }
  bytes_left_ -= bytes;
  return true;
}

std::string FlatAccess::Text(uint32_t index) {
  if (!status_.ok()) return {};
  const flatbuffers::String* text = strings_ != nullptr && index < strings_->size() ? strings_->Get(index) : nullptr;
  if (text == nullptr) {
    Fail(InvalidArgument("bundle: string ", index, " does not exist; there are ", strings_ == nullptr ? 0 : strings_->size()));
    return {};
  }
  if (text->size() > kMaxStringBytes || text->size() > text_left_) {
    Fail(InvalidArgument("bundle: string ", index, " has ", text->size(), " bytes: more text than is allowed"));
    return {};
  }
  text_left_ -= text->size();
  return text->str();
}

namespace {

SourceLoc FromFlat(const flat::Loc& loc) { return {loc.file(), loc.line(), loc.column()}; }

// Decoding of one program. Errors are sticky: after the first, every step does nothing.
class Decoder {
 public:
  Decoder(const flat::Program& flat, FlatAccess& access, const std::string& path) : flat_(flat), access_(access), path_(path) {}
  absl::StatusOr<Program> Run();

 private:
  friend class OperandDecoder;
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    access_.Fail(InvalidArgument(path_, parts...));
  }
  bool ok() const { return access_.status().ok(); }
  void DecodeExprs();
  void DecodeTables();
  void DecodeLaunches();
  Expr ExprAt(uint32_t index);
  std::vector<Expr> ExprsAt(const flatbuffers::Vector<uint32_t>* indices);
  template <typename Value>
  Value EnumAt(std::string_view what, uint32_t raw, Value last);
  DType TypeAt(std::string_view what, flat::DType raw);
  // Statements [next_stmt_, end) as a block.
  Block DecodeBlock(uint32_t end, size_t depth);
  Block DecodeNested(uint32_t parent, uint32_t end, Role* role, size_t depth);
  void DecodeStmt(Stmt& stmt, uint32_t end, size_t depth);

  const flat::Program& flat_;
  FlatAccess& access_;
  const std::string path_;
  Program p_;
  std::vector<Expr> exprs_;  // by index of the flat array
  absl::Span<const flat::Stmt> stmts_;
  absl::Span<const uint32_t> operands_;
  uint32_t next_stmt_ = 0;
  size_t next_operand_ = 0;
};

std::optional<StmtOp> EmptyStmt(flat::StmtOp op) {
  switch (op) {
#define TILERT_STMT_OP_1(name) \
  case flat::StmtOp::name:     \
    return StmtOp(name{});
#define TILERT_STMT_OP_0(name)
#define TILERT_STMT_OP(name, id, is_stmt) TILERT_STMT_OP_##is_stmt(name)
#include "ir/stmt_op.def"
#undef TILERT_STMT_OP_0
#undef TILERT_STMT_OP_1
    case flat::StmtOp::StagedFor:
    case flat::StmtOp::SplitFor: return StmtOp(For{});
    case flat::StmtOp::SlotCopy: return StmtOp(Copy{});
    case flat::StmtOp::SyncGroup: return StmtOp(SyncThreads{});
    case flat::StmtOp::FetchAtomic: return StmtOp(Atomic{});
    default: return std::nullopt;
  }
}

// FlatFields archive: takes words of one statement. Ids are checked by ir/structure.h afterwards; here only what cannot wait.
class OperandDecoder {
 public:
  OperandDecoder(Decoder& d, uint32_t stmt) : d_(d), stmt_(stmt), left_(d.stmts_[stmt].operand_count()) {
    if (left_ > d_.operands_.size() - d_.next_operand_) {
      Error("its ", left_, " operands go beyond the array of ", d_.operands_.size());
      left_ = 0;
    }
  }
  // Every word must have been taken.
  void Finish() {
    if (d_.ok() && left_ != 0) Error(left_, " operands are left over");
  }
  void Buffer(BufferId& id) { id = Word(); }
  void OptBuffer(BufferId& id) { id = Word(); }
  void Var(VarId& id) { id = Word(); }
  void Vars(std::vector<VarId>& ids) {
    ids.resize(Count());
    for (VarId& id : ids) id = Word();
  }
  void E(Expr& e) { OptE(e); }
  void OptE(Expr& e) { e = d_.ExprAt(Word()); }
  void Es(std::vector<Expr>& list) {
    list.resize(Count());
    for (Expr& e : list) E(e);
  }
  void Rgn(Region& r) {
    r.buffer = Word();
    r.start.resize(Count());
    r.extent.resize(r.start.size());
    for (Expr& e : r.start) E(e);
    for (Expr& e : r.extent) E(e);
  }
  void U32(uint32_t& word) { word = Word(); }
  void Bool(bool& value) {
    const uint32_t word = Word();
    if (word > 1) Error("operand ", word, " is no truth value");
    value = word != 0;
  }
  void Ints(std::vector<int32_t>& list) {
    list.resize(Count());
    for (int32_t& value : list) value = static_cast<int32_t>(Word());
  }
  void Text(std::string& text) { text = d_.access_.Text(Word()); }
  void Stages(Expr& e, Expr) {
    if (d_.stmts_[stmt_].op() != flat::StmtOp::For) return E(e);
    e = d_.p_.exprs.Int(Word());
  }
  void Split(Expr& e) {
    if (d_.stmts_[stmt_].op() == flat::StmtOp::SplitFor) E(e);
  }
  void Slot(std::vector<Expr>& indices) {
    if (d_.stmts_[stmt_].op() == flat::StmtOp::SlotCopy) Es(indices);
  }
  void Group(uint32_t& barrier, uint32_t& count) {
    if (d_.stmts_[stmt_].op() == flat::StmtOp::SyncGroup) U32(barrier), U32(count);
  }
  void Prev(VarId& id) {
    if (d_.stmts_[stmt_].op() == flat::StmtOp::FetchAtomic) Var(id);
  }
  template <typename Value>
  void Enum(Value& value, Value last) {
    const uint32_t word = Word();
    if (word == 0 || word > static_cast<uint32_t>(last)) Error("operand ", word, " is no value of its enumeration");
    value = static_cast<Value>(word <= static_cast<uint32_t>(last) ? word : 0);
  }

 private:
  template <typename... Parts>
  void Error(const Parts&... parts) {
    const auto op = d_.stmts_[stmt_].op();
    d_.Fail(".stmts[", stmt_, "] (", flat::EnumNameStmtOp(op), "): ", parts...);
  }
  uint32_t Word() {
    if (left_ == 0) {
      Error("an operand is missing");
      return 0;
    }
    --left_;
    return d_.operands_[d_.next_operand_++];
  }
  // A list's length, never more than what is left.
  uint32_t Count() {
    const uint32_t count = Word();
    if (count <= left_) return count;
    Error("a list of ", count, " is longer than the operands");
    return 0;
  }

  Decoder& d_;
  const uint32_t stmt_;
  uint32_t left_;
};

Expr Decoder::ExprAt(uint32_t index) {
  if (index == Expr::kNone) return Expr{};
  if (index < exprs_.size()) return exprs_[index];
  Fail(": expression ", index, " does not exist; there are ", exprs_.size());
  return Expr{};
}

std::vector<Expr> Decoder::ExprsAt(const flatbuffers::Vector<uint32_t>* indices) {
  std::vector<Expr> list;
  for (uint32_t index : access_.Scalars(indices)) list.push_back(ExprAt(index));
  return list;
}

template <typename Value>
Value Decoder::EnumAt(std::string_view what, uint32_t raw, Value last) {
  if (raw <= static_cast<uint32_t>(last)) return static_cast<Value>(raw);
  Fail(".", what, ": ", raw, " is no value of its enumeration");
  return Value::kInvalid;
}

DType Decoder::TypeAt(std::string_view what, flat::DType raw) {
  if (IsValidDType(static_cast<uint32_t>(raw))) return static_cast<DType>(raw);
  Fail(".", what, ": type ", static_cast<int>(raw), " is unknown");
  return DType::kInvalid;
}

void Decoder::DecodeExprs() {
  const auto nodes = access_.Structs(flat_.exprs());
  const auto args = access_.Scalars(flat_.expr_args());
  if (nodes.size() > kMaxExprs) return Fail(".exprs: ", nodes.size(), " expressions; at most ", kMaxExprs, " are allowed");
  size_t next_arg = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const flat::Expr& in = nodes[i];
    ExprNode node;
    if (!IsValidExprOp(in.op())) return Fail(".exprs[", i, "]: operator ", in.op(), " is unknown to this library");
    node.op = static_cast<ExprOp>(in.op());
    node.dtype = TypeAt("exprs", in.dtype());
    const bool has_value = ExprArity(node.op) == 0 || node.op == ExprOp::kLoad;
    if (!has_value && in.value() != 0) return Fail(".exprs[", i, "]: a value where none belongs");
    if (in.arg_count() > args.size() - next_arg)
      return Fail(".exprs[", i, "]: its operands go beyond the array of ", args.size());
    for (uint32_t k = 0; k < in.arg_count(); ++k) {
      const uint32_t arg = args[next_arg++];
      if (arg >= i) return Fail(".exprs[", i, "]: operand ", arg, " is not an earlier expression");
      node.args.push_back(exprs_[arg]);
    }
    const int64_t value = in.value();
    if (node.op == ExprOp::kFloatImm) {
      std::memcpy(&node.f, &value, sizeof node.f);
    } else {
      node.i = value;
    }
    exprs_.push_back(p_.exprs.Intern(std::move(node)));
  }
  if (next_arg != args.size()) Fail(".expr_args: ", args.size() - next_arg, " entries are left over");
}

void Decoder::DecodeTables() {
  p_.name = access_.Text(flat_.name());
  p_.fast_math = flat_.fast_math();
  for (uint32_t file : access_.Scalars(flat_.files())) p_.files.push_back(access_.Text(file));
  for (const flat::Dim* d : access_.Tables(flat_.dims())) p_.dims.push_back({access_.Text(d->name())});
  for (const flat::Constant* c : access_.Tables(flat_.constants())) {
    const auto candidates = access_.Scalars(c->candidates());
    p_.constants.push_back({access_.Text(c->name()), {candidates.begin(), candidates.end()}});
  }
  for (const flat::Scalar* s : access_.Tables(flat_.scalars())) {
    p_.scalars.push_back({access_.Text(s->name()), TypeAt("scalars", s->dtype()), s->dim()});
  }
  for (const flat::Buffer* b : access_.Tables(flat_.buffers())) {
    Buffer buffer{access_.Text(b->name()), TypeAt("buffers", b->dtype())};
    buffer.scope = EnumAt("buffers", static_cast<uint32_t>(b->scope()), Scope::kBarrier);
    buffer.shape = ExprsAt(b->shape());
    buffer.strides = ExprsAt(b->strides());
    buffer.arrive_count = b->arrive_count();
    buffer.loc = {b->file(), b->line(), b->column()};
    p_.buffers.push_back(std::move(buffer));
  }
  for (const flat::Var* v : access_.Tables(flat_.vars()))
    p_.vars.push_back({access_.Text(v->name()), TypeAt("vars", v->dtype())});
  for (const flat::Param* a : access_.Tables(flat_.params())) {
    p_.params.push_back({EnumAt("params", static_cast<uint32_t>(a->kind()), Param::Kind::kScalar), a->index(),
                         EnumAt("params", static_cast<uint32_t>(a->access()), Access::kInOut)});
  }
  p_.assumptions = ExprsAt(flat_.assumptions());
  for (const flat::Workspace* w : access_.Tables(flat_.workspaces())) p_.workspaces.push_back({w->buffer(), w->zeroed()});
}

Block Decoder::DecodeNested(uint32_t parent, uint32_t end, Role* role, size_t depth) {
  if (!ok()) return {};
  if (next_stmt_ >= end || stmts_[next_stmt_].op() != flat::StmtOp::Block) {
    Fail(".stmts[", parent, "]: one of its nested blocks is missing");
    return {};
  }
  const uint32_t self = next_stmt_++, block_end = stmts_[self].end();
  if (block_end <= self || block_end > end) {
    Fail(".stmts[", self, "] (Block): its end ", block_end, " is not within its parent's ", end);
    return {};
  }
  OperandDecoder operands(*this, self);
  if (role != nullptr) FlatFields(operands, *role);
  operands.Finish();
  return DecodeBlock(block_end, depth);
}

void Decoder::DecodeStmt(Stmt& stmt, uint32_t end, size_t depth) {
  const uint32_t self = next_stmt_++;
  OperandDecoder operands(*this, self);
  std::visit([&](auto& s) { FlatFields(operands, s); }, stmt.op);
  operands.Finish();
  std::visit(Overloaded{
                 [&](If& s) {
                   s.then_body = DecodeNested(self, end, nullptr, depth);
                   s.else_body = DecodeNested(self, end, nullptr, depth);
                 },
                 [&](Roles& s) {
                   while (ok() && next_stmt_ < end) {
                     Role& role = s.roles.emplace_back();
                     role.body = DecodeNested(self, end, &role, depth);
                   }
                 },
                 [&](auto& s) {
                   if constexpr (requires { s.body; }) s.body = DecodeBlock(end, depth);
                 },
             },
             stmt.op);
  if (ok() && next_stmt_ != end)
    Fail(".stmts[", self, "] (", flat::EnumNameStmtOp(stmts_[self].op()), "): statements are nested in it that it cannot hold");
}

Block Decoder::DecodeBlock(uint32_t end, size_t depth) {
  Block block;
  if (depth > kMaxStatementDepth) Fail(".stmts[", next_stmt_, "]: nested deeper than ", kMaxStatementDepth);
  while (ok() && next_stmt_ < end) {
    const flat::Stmt& in = stmts_[next_stmt_];
    std::optional<StmtOp> op = EmptyStmt(in.op());
    if (!op) {
      Fail(".stmts[", next_stmt_, "]: statement ", static_cast<int>(in.op()),
           " is unknown to this library, or cannot stand here");
    } else if (in.end() <= next_stmt_ || in.end() > end) {
      Fail(".stmts[", next_stmt_, "]: its end ", in.end(), " is not within its parent's ", end);
    } else {
      block.push_back({*std::move(op), FromFlat(in.loc())});
      DecodeStmt(block.back(), in.end(), depth + 1);
    }
  }
  return block;
}

void Decoder::DecodeLaunches() {
  stmts_ = access_.Structs(flat_.stmts());
  operands_ = access_.Scalars(flat_.operands());
  if (stmts_.size() > kMaxStatements) Fail(".stmts: ", stmts_.size(), " statements; at most ", kMaxStatements, " are allowed");
  for (const flat::Launch* l : access_.Tables(flat_.launches())) {
    if (!ok()) return;
    if (l->stmt_count() > stmts_.size() - next_stmt_)
      return Fail(".launches: a body goes beyond the array of ", stmts_.size(), " statements");
    Launch launch;
    launch.name = access_.Text(l->name());
    launch.grid = ExprsAt(l->grid());
    const auto block_vars = access_.Scalars(l->block_vars());
    launch.block_vars.assign(block_vars.begin(), block_vars.end());
    launch.threads = ExprAt(l->threads());
    launch.cooperative = l->cooperative();
    launch.cluster = ExprsAt(l->cluster());
    launch.loc = {l->file(), l->line(), l->column()};
    launch.body = DecodeBlock(next_stmt_ + l->stmt_count(), 1);
    p_.launches.push_back(std::move(launch));
  }
  if (!ok()) return;
  if (next_stmt_ != stmts_.size()) Fail(".stmts: ", stmts_.size() - next_stmt_, " statements belong to no launch");
  if (next_operand_ != operands_.size()) Fail(".operands: ", operands_.size() - next_operand_, " words are left over");
}

absl::StatusOr<Program> Decoder::Run() {
  DecodeExprs();
  if (ok()) DecodeTables();
  if (ok()) DecodeLaunches();
  TILERT_RETURN_IF_ERROR(access_.status());
  const std::vector<VerifyError> errors = FindStructureErrors(p_);
  if (!errors.empty()) return InvalidArgument(path_, " (", p_.name, "): ", errors[0].ToString());
  return std::move(p_);
}

}  // namespace

absl::StatusOr<Program> DecodeProgram(const flat::Program& flat, FlatAccess& access, const std::string& path) {
  return Decoder(flat, access, path).Run();
}

}  // namespace tilert
