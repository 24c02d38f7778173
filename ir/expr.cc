#include "ir/expr.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/int_math.h"

namespace tilert {
namespace {

enum class OpClass : uint8_t { kNone, kLeaf, kUnary, kInfix, kCall, kOther };

struct OpInfo {
  int arity = -2;
  OpClass cls = OpClass::kNone;
  std::string_view text = "invalid";
};

OpInfo InfoOf(ExprOp op) {
  switch (op) {
    case ExprOp::kInvalid: break;
#define TILERT_EXPR_OP(name, id, arity, cls, text) \
  case ExprOp::k##name: return {arity, OpClass::k##cls, text};
#include "ir/expr_op.def"
  }
  return {};
}

// Ids reachable from `root`, ascending, so operands stand before their users.
std::vector<uint32_t> Reachable(const ExprArena& arena, Expr root, absl::flat_hash_set<uint32_t>* stop = nullptr) {
  absl::flat_hash_set<uint32_t> seen;
  std::vector<uint32_t> stack, ids;
  if (root) stack.push_back(root.id);
  while (!stack.empty()) {
    const uint32_t id = stack.back();
    stack.pop_back();
    if (!seen.insert(id).second) continue;
    ids.push_back(id);
    if (stop != nullptr && stop->contains(id)) continue;
    for (Expr arg : arena[Expr{id}].args) stack.push_back(arg.id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

int ExprArity(ExprOp op) { return InfoOf(op).arity; }
std::string_view ExprOpText(ExprOp op) { return InfoOf(op).text; }
bool IsCallOp(ExprOp op) { return InfoOf(op).cls == OpClass::kCall; }
bool IsInfixOp(ExprOp op) { return InfoOf(op).cls == OpClass::kInfix; }
bool IsComparison(ExprOp op) { return op >= ExprOp::kLt && op <= ExprOp::kNe; }
bool IsValidExprOp(uint32_t raw) { return raw <= 0xffff && ExprArity(static_cast<ExprOp>(raw)) >= -1; }

bool operator==(const ExprNode& a, const ExprNode& b) {
  uint64_t bits_a, bits_b;
  __builtin_memcpy(&bits_a, &a.f, sizeof bits_a);
  __builtin_memcpy(&bits_b, &b.f, sizeof bits_b);
  return a.op == b.op && a.dtype == b.dtype && a.i == b.i && bits_a == bits_b && a.args == b.args;
}

Expr ExprArena::Intern(ExprNode node) {
  auto [it, is_new] = index_.try_emplace(node, static_cast<uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back(std::move(node));
  return Expr{it->second};
}

Expr ExprArena::Int(int64_t value, DType type) { return Leaf(ExprOp::kIntImm, WrapInt(value, type), type); }

Expr ExprArena::Float(double value, DType type) {
  ExprNode node;
  node.op = ExprOp::kFloatImm;
  node.dtype = type;
  node.f = value;
  return Intern(node);
}

Expr ExprArena::Leaf(ExprOp op, int64_t index, DType type) { return Make(op, type, {}, index); }

Expr ExprArena::Make(ExprOp op, DType type, absl::Span<const Expr> args, int64_t i) {
  ExprNode node;
  node.op = op;
  node.dtype = type;
  node.i = i;
  node.args.assign(args.begin(), args.end());
  return Intern(std::move(node));
}

Expr ExprArena::Binary(ExprOp op, Expr a, Expr b) {
  return Make(op, IsComparison(op) ? DType::kBool : (*this)[a].dtype, {a, b});
}

Expr ExprArena::Cast(Expr a, DType type) { return Make(ExprOp::kCast, type, {a}); }

bool ExprArena::AsInt(Expr e, int64_t* value) const {
  if (!e || (*this)[e].op != ExprOp::kIntImm) return false;
  *value = (*this)[e].i;
  return true;
}

bool ExprArena::IsInt(Expr e, int64_t value) const {
  int64_t found = 0;
  return AsInt(e, &found) && found == value;
}

bool SameExpr(const ExprArena& arena_a, Expr a, const ExprArena& arena_b, Expr b) {
  absl::flat_hash_map<uint32_t, uint32_t> paired;
  std::vector<std::pair<Expr, Expr>> stack = {{a, b}};
  while (!stack.empty()) {
    auto [x, y] = stack.back();
    stack.pop_back();
    if (!x || !y) {
      if (x != y) return false;
      continue;
    }
    auto [it, is_new] = paired.try_emplace(x.id, y.id);
    if (it->second != y.id) return false;
    if (!is_new) continue;
    ExprNode node_x = arena_a[x], node_y = arena_b[y];
    if (node_x.args.size() != node_y.args.size()) return false;
    for (size_t i = 0; i < node_x.args.size(); ++i) stack.push_back({node_x.args[i], node_y.args[i]});
    node_x.args.clear();
    node_y.args.clear();
    if (!(node_x == node_y)) return false;
  }
  return true;
}

void ForEachNode(const ExprArena& arena, Expr root, const std::function<void(Expr, const ExprNode&)>& visit) {
  for (uint32_t id : Reachable(arena, root)) visit(Expr{id}, arena[Expr{id}]);
}

Expr Rewrite(const ExprArena& from, Expr root, ExprArena& to, const std::function<Expr(Expr, const ExprNode&)>& replace) {
  if (!root) return root;
  absl::flat_hash_map<uint32_t, Expr> done;
  absl::flat_hash_set<uint32_t> replaced;
  // First, from the root down, what `replace` wants to substitute: the operands of such nodes need no copy.
  std::vector<uint32_t> stack = {root.id};
  absl::flat_hash_set<uint32_t> seen;
  while (!stack.empty()) {
    const Expr e{stack.back()};
    stack.pop_back();
    if (!seen.insert(e.id).second) continue;
    const ExprNode node = from[e];  // a copy: `replace` may grow `to`, which may be `from`
    if (Expr substitute = replace ? replace(e, node) : Expr{}) {
      done[e.id] = substitute;
      replaced.insert(e.id);
      continue;
    }
    for (Expr arg : node.args) stack.push_back(arg.id);
  }
  for (uint32_t id : Reachable(from, root, &replaced)) {
    if (done.contains(id)) continue;
    ExprNode node = from[Expr{id}];
    for (Expr& arg : node.args) arg = done.at(arg.id);
    done[id] = to.Intern(std::move(node));
  }
  return done.at(root.id);
}

}  // namespace tilert
