#include "ir/flat_program.h"

#include <cstring>
#include <optional>
#include <utility>

#include "ir/bundle.h"
#include "ir/flat_fields.h"

namespace tilert {

// The numbers in memory are the numbers on disk.
static_assert(sizeof(flat::Expr) == 16 && sizeof(flat::Stmt) == 24 && sizeof(flat::Loc) == 12);
#define TILERT_DTYPE(name, id, text, bits, kind) static_assert(static_cast<int>(flat::DType::name) == id);
#include "ir/dtype.def"
#define TILERT_STMT_OP(name, id, is_stmt) static_assert(static_cast<int>(flat::StmtOp::name) == id);
#include "ir/stmt_op.def"
#define TILERT_SAME(type, last)                                                         \
  static_assert(static_cast<int>(flat::type::MAX) == static_cast<int>(type::k##last) && \
                static_cast<int>(flat::type::last) == static_cast<int>(type::k##last))
TILERT_SAME(Scope, Barrier);
TILERT_SAME(Access, InOut);
TILERT_SAME(GemmPolicy, FullCol);
TILERT_SAME(ReduceOp, BitXor);
TILERT_SAME(ForKind, Persistent);
TILERT_SAME(AtomicOp, Min);
TILERT_SAME(MemoryOrder, AcqRel);
TILERT_SAME(MemoryScope, System);
TILERT_SAME(BarrierOpKind, ExpectTx);
TILERT_SAME(AnnotationKind, SafeValue);
#undef TILERT_SAME

namespace {

// What For can say of num_stages; anything else needs StagedFor.
std::optional<uint32_t> PlainStages(const ExprArena& exprs, Expr num_stages) {
  int64_t value = 0;
  if (!exprs.AsInt(num_stages, &value) || value < 0 || value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(value);
}

flat::StmtOp OpOf(const ExprArena& exprs, const StmtOp& op) {
  const auto* loop = std::get_if<For>(&op);
  if (loop != nullptr && loop->split) return flat::StmtOp::SplitFor;
  if (loop != nullptr && !PlainStages(exprs, loop->num_stages)) return flat::StmtOp::StagedFor;
  const auto* copy = std::get_if<Copy>(&op);
  if (copy != nullptr && !copy->barrier_indices.empty()) return flat::StmtOp::SlotCopy;
  const auto* sync = std::get_if<SyncThreads>(&op);
  if (sync != nullptr && (sync->barrier != 0 || sync->count != 0)) return flat::StmtOp::SyncGroup;
  const auto* atomic = std::get_if<Atomic>(&op);
  if (atomic != nullptr && atomic->prev != kNoId) return flat::StmtOp::FetchAtomic;
  return std::visit(
      Overloaded{
#define TILERT_STMT_OP_1(name) [](const name&) { return flat::StmtOp::name; },
#define TILERT_STMT_OP_0(name)
#define TILERT_STMT_OP(name, id, is_stmt) TILERT_STMT_OP_##is_stmt(name)
#include "ir/stmt_op.def"
#undef TILERT_STMT_OP_0
#undef TILERT_STMT_OP_1
      },
      op);
}

}  // namespace

uint32_t StringTable::Index(std::string_view text) {
  auto [it, is_new] = index_.try_emplace(std::string(text), static_cast<uint32_t>(strings_.size()));
  if (is_new) strings_.emplace_back(text);
  return it->second;
}

// FlatFields archive: appends words to FlatProgram::operands.
class OperandEncoder {
 public:
  explicit OperandEncoder(FlatProgram& f) : f_(f) {}
  void Buffer(BufferId id) { U32(id); }
  void OptBuffer(BufferId id) { U32(id); }
  void Var(VarId id) { U32(id); }
  void Vars(const std::vector<VarId>& ids) {
    U32(ids.size());
    for (VarId id : ids) U32(id);
  }
  void E(Expr e) { U32(f_.ExprIndex(e)); }
  void OptE(Expr e) { E(e); }
  void Es(const std::vector<Expr>& list) {
    U32(list.size());
    for (Expr e : list) E(e);
  }
  void Rgn(const Region& r) {
    U32(r.buffer), U32(r.start.size());
    for (Expr e : r.start) E(e);
    for (Expr e : r.extent) E(e);
  }
  void U32(uint32_t word) { f_.operands.push_back(word); }
  void Bool(bool value) { U32(value); }
  void Ints(const std::vector<int32_t>& list) {
    U32(list.size());
    for (int32_t value : list) U32(static_cast<uint32_t>(value));
  }
  void Text(const std::string& text) { U32(f_.strings_.Index(text)); }
  void Stages(Expr e, Expr split) {
    const std::optional<uint32_t> plain = PlainStages(f_.p_.exprs, e);
    plain && !split ? U32(*plain) : E(e);
  }
  void Split(Expr e) {
    if (e) E(e);
  }
  void Slot(const std::vector<Expr>& indices) {
    if (!indices.empty()) Es(indices);
  }
  void Group(uint32_t barrier, uint32_t count) {
    if (barrier != 0 || count != 0) U32(barrier), U32(count);
  }
  void Prev(VarId id) {
    if (id != kNoId) Var(id);
  }
  template <typename Value>
  void Enum(Value value, Value) {
    U32(static_cast<uint32_t>(value));
  }

 private:
  FlatProgram& f_;
};

FlatProgram::FlatProgram(const Program& program, StringTable& strings, bool with_locs)
    : p_(program), strings_(strings), with_locs_(with_locs), expr_index_(program.exprs.size(), Expr::kNone) {
  for (const Buffer& buffer : p_.buffers) {
    shapes.push_back(ExprIndices(buffer.shape));
    strides.push_back(ExprIndices(buffer.strides));
  }
  assumptions = ExprIndices(p_.assumptions);
  for (const Launch& launch : p_.launches) {
    grids.push_back(ExprIndices(launch.grid));
    clusters.push_back(ExprIndices(launch.cluster));
    threads.push_back(ExprIndex(launch.threads));
    const size_t begin = stmts.size();
    AddBlock(launch.body);
    stmt_counts.push_back(static_cast<uint32_t>(stmts.size() - begin));
  }
}

flat::Loc FlatProgram::Loc(const SourceLoc& loc) const {
  return with_locs_ ? flat::Loc(loc.file, loc.line, loc.column) : flat::Loc(kNoId, 0, 0);
}

uint32_t FlatProgram::ExprIndex(Expr e) {
  if (!e) return Expr::kNone;
  if (expr_index_[e.id] != Expr::kNone) return expr_index_[e.id];
  const ExprNode& node = p_.exprs[e];
  std::vector<uint32_t> args;
  for (Expr arg : node.args) args.push_back(ExprIndex(arg));
  int64_t value = node.i;
  if (node.op == ExprOp::kFloatImm) std::memcpy(&value, &node.f, sizeof value);
  exprs.emplace_back(static_cast<uint16_t>(node.op), static_cast<flat::DType>(node.dtype), uint8_t{0},
                     static_cast<uint32_t>(args.size()), value);
  expr_args.insert(expr_args.end(), args.begin(), args.end());
  return expr_index_[e.id] = static_cast<uint32_t>(exprs.size()) - 1;
}

std::vector<uint32_t> FlatProgram::ExprIndices(const std::vector<Expr>& list) {
  std::vector<uint32_t> indices;
  for (Expr e : list) indices.push_back(ExprIndex(e));
  return indices;
}

template <typename Encode, typename Children>
void FlatProgram::AddRecord(flat::StmtOp op, const SourceLoc& loc, Encode encode, Children children) {
  const size_t record = stmts.size(), first_operand = operands.size();
  stmts.emplace_back();
  encode();
  const auto operand_count = static_cast<uint32_t>(operands.size() - first_operand);
  children();
  stmts[record] = flat::Stmt(op, uint16_t{0}, operand_count, static_cast<uint32_t>(stmts.size()), Loc(loc));
}

void FlatProgram::AddBlock(const Block& block) {
  for (const Stmt& stmt : block) AddStmt(stmt);
}

void FlatProgram::AddStmt(const Stmt& stmt) {
  OperandEncoder encoder(*this);
  const auto encode = [&] { std::visit([&](const auto& s) { FlatFields(encoder, s); }, stmt.op); };
  AddRecord(OpOf(p_.exprs, stmt.op), stmt.loc, encode, [&] {
    if (const auto* branch = std::get_if<If>(&stmt.op)) {
      for (const Block* part : {&branch->then_body, &branch->else_body}) {
        AddRecord(
            flat::StmtOp::Block, stmt.loc, [] {}, [&] { AddBlock(*part); });
      }
    } else if (const auto* roles = std::get_if<Roles>(&stmt.op)) {
      for (const Role& role : roles->roles) {
        AddRecord(
            flat::StmtOp::Block, stmt.loc, [&] { FlatFields(encoder, role); }, [&] { AddBlock(role.body); });
      }
    } else {
      for (const Block* child : ChildBlocks(stmt)) AddBlock(*child);
    }
  });
}

namespace {

template <typename Record>
void HashArray(Sha256& hash, const std::vector<Record>& array) {
  hash.UpdateField(std::string_view(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(Record)));
}

void HashTables(Sha256& hash, const Program& p) {
  const auto each = [&](const auto& table, auto field) {
    hash.UpdateField(table.size());
    for (const auto& entry : table) field(entry);
  };
  each(p.dims, [&](const Dim& d) { hash.UpdateField(d.name); });
  each(p.constants, [&](const Constant& c) { hash.UpdateField(c.name), HashArray(hash, c.candidates); });
  each(p.scalars,
       [&](const ScalarParam& s) { hash.UpdateField(s.name), hash.UpdateField(uint64_t(s.dtype)), hash.UpdateField(s.dim); });
  each(p.buffers, [&](const Buffer& b) {
    hash.UpdateField(b.name);
    for (uint64_t value : {uint64_t(b.dtype), uint64_t(b.scope), uint64_t{b.arrive_count}}) hash.UpdateField(value);
  });
  each(p.vars, [&](const Var& v) { hash.UpdateField(v.name), hash.UpdateField(uint64_t(v.dtype)); });
  each(p.params, [&](const Param& a) {
    for (uint64_t value : {uint64_t(a.kind), uint64_t{a.index}, uint64_t(a.access)}) hash.UpdateField(value);
  });
  each(p.workspaces, [&](const Workspace& w) { hash.UpdateField(uint64_t{w.buffer}), hash.UpdateField(uint64_t{w.zeroed}); });
  each(p.launches, [&](const Launch& l) {
    hash.UpdateField(l.name), HashArray(hash, l.block_vars), hash.UpdateField(uint64_t{l.cooperative});
  });
}

}  // namespace

Sha256Digest ProgramDigest(const Program& program) {
  StringTable strings;
  const FlatProgram f(program, strings, /*with_locs=*/false);
  Sha256 hash;
  hash.UpdateField("tilert program 1");
  hash.UpdateField(program.name);
  hash.UpdateField(uint64_t{program.fast_math});
  HashTables(hash, program);
  HashArray(hash, f.exprs), HashArray(hash, f.expr_args), HashArray(hash, f.stmts), HashArray(hash, f.operands);
  for (const auto* lists : {&f.shapes, &f.strides, &f.grids}) {
    for (const std::vector<uint32_t>& list : *lists) HashArray(hash, list);
  }
  // Programs without clusters keep the digests that they have always had.
  for (size_t i = 0; i < f.clusters.size(); ++i) {
    if (!f.clusters[i].empty()) hash.UpdateField("cluster"), hash.UpdateField(uint64_t{i}), HashArray(hash, f.clusters[i]);
  }
  HashArray(hash, f.assumptions), HashArray(hash, f.threads), HashArray(hash, f.stmt_counts);
  for (const std::string& text : strings.strings()) hash.UpdateField(text);
  return hash.Finish();
}

}  // namespace tilert
