// Expressions: a hash-consed arena of nodes, referred to by id.
//
// Equal expressions of one arena have equal ids, so `==` on ids is structural equality. Nodes only refer to earlier
// nodes: an arena has no cycles and can be walked by index. Operators and their arity: ir/expr_op.def.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/dtype.h"

namespace tilert {

enum class ExprOp : uint16_t {
  kInvalid = 0,
#define TILERT_EXPR_OP(name, id, arity, cls, text) k##name = id,
#include "ir/expr_op.def"
};

// Number of operands; −1 when any number is allowed; −2 when `op` is no operator.
int ExprArity(ExprOp op);
// The spelling of ir/expr_op.def.
std::string_view ExprOpText(ExprOp op);
bool IsCallOp(ExprOp op);   // printed T.text(operands)
bool IsInfixOp(ExprOp op);  // printed a text b
bool IsComparison(ExprOp op);
bool IsValidExprOp(uint32_t raw);

// A handle into one ExprArena; the default value means "none".
struct Expr {
  static constexpr uint32_t kNone = 0xffffffff;
  uint32_t id = kNone;
  explicit operator bool() const { return id != kNone; }
  friend bool operator==(Expr a, Expr b) { return a.id == b.id; }
  friend bool operator!=(Expr a, Expr b) { return a.id != b.id; }
  template <typename H>
  friend H AbslHashValue(H h, Expr e) {
    return H::combine(std::move(h), e.id);
  }
};

using ExprArgs = absl::InlinedVector<Expr, 3>;

struct ExprNode {
  ExprOp op = ExprOp::kInvalid;
  DType dtype = DType::kInvalid;  // type of the value; comparisons and logic give kBool
  int64_t i = 0;                  // IntImm's value, or an index into a table of the Program (see expr_op.def)
  double f = 0;                   // FloatImm's value
  ExprArgs args;
  // Floats are compared by bits, so NaN equals NaN and 0.0 differs from −0.0.
  friend bool operator==(const ExprNode& a, const ExprNode& b);
  template <typename H>
  friend H AbslHashValue(H h, const ExprNode& n) {
    uint64_t bits;
    static_assert(sizeof bits == sizeof n.f);
    __builtin_memcpy(&bits, &n.f, sizeof bits);
    return H::combine(std::move(h), n.op, n.dtype, n.i, bits, n.args);
  }
};

class ExprArena {
 public:
  // Defined in expr.cc: compiled once, not in each source that holds one by value.
  ExprArena();
  ExprArena(const ExprArena&);
  ExprArena(ExprArena&&) noexcept;
  ExprArena& operator=(const ExprArena&);
  ExprArena& operator=(ExprArena&&) noexcept;
  ~ExprArena();

  // The id of `node`, added if new. REQUIRES: its operands are ids of this arena.
  Expr Intern(ExprNode node);
  const ExprNode& operator[](Expr e) const { return nodes_[e.id]; }
  size_t size() const { return nodes_.size(); }
  absl::Span<const ExprNode> nodes() const { return nodes_; }

  // Leaves and operators by type; no folding, no type check (the builder and verifier do that).
  Expr Int(int64_t value, DType type = DType::kIndex);
  Expr Float(double value, DType type = DType::kFloat32);
  Expr Leaf(ExprOp op, int64_t index, DType type);
  Expr Make(ExprOp op, DType type, absl::Span<const Expr> args, int64_t i = 0);
  Expr Unary(ExprOp op, Expr a) { return Make(op, (*this)[a].dtype, {a}); }
  // Type of the result: kBool for comparisons, else the type of `a`.
  Expr Binary(ExprOp op, Expr a, Expr b);
  Expr Cast(Expr a, DType type);
  Expr Load(int64_t buffer, DType type, absl::Span<const Expr> indices) { return Make(ExprOp::kLoad, type, indices, buffer); }

  // The value of an integer immediate; false when `e` is none.
  bool AsInt(Expr e, int64_t* value) const;
  bool IsInt(Expr e, int64_t value) const;

 private:
  std::vector<ExprNode> nodes_;
  absl::flat_hash_map<ExprNode, uint32_t> index_;
};

// Equality of two expressions that live in different arenas.
bool SameExpr(const ExprArena& arena_a, Expr a, const ExprArena& arena_b, Expr b);

// Calls `visit` on each distinct node under `root`, operands first.
void ForEachNode(const ExprArena& arena, Expr root, const std::function<void(Expr, const ExprNode&)>& visit);

// Copies `root` from `from` into `to` (which may be the same arena). `leaf` may return a replacement (in `to`) for any
// node, visited before its operands; none = keep and copy.
Expr Rewrite(const ExprArena& from, Expr root, ExprArena& to, const std::function<Expr(Expr, const ExprNode&)>& replace);

// Folds integer, index and bool arithmetic on immediates and the identities x+0, x*1, x*0, x//1, x%1, select(true, …),
// exactly as docs/ir_spec.md evaluates them; floats are left alone.
Expr Fold(ExprArena& arena, Expr root);

}  // namespace tilert
