#include "ir/expr.h"

#include <algorithm>
#include <utility>

#include "ir/int_math.h"

namespace tilert {

ExprArena::ExprArena() = default;
// Most copies are only read: what finds equal nodes is made again when one is to be added.
ExprArena::ExprArena(const ExprArena& other) : nodes_(other.nodes_) {}
ExprArena::ExprArena(ExprArena&&) noexcept = default;
ExprArena& ExprArena::operator=(const ExprArena& other) { return *this = ExprArena(other); }
ExprArena& ExprArena::operator=(ExprArena&&) noexcept = default;
ExprArena::~ExprArena() = default;
namespace {

enum class OpClass : uint8_t { kNone, kLeaf, kUnary, kInfix, kCall, kOther };

struct OpInfo {
  int arity = -2;
  OpClass cls = OpClass::kNone;
  std::string_view text = "invalid";
};

OpInfo InfoOf(ExprOp op) {
  // clang-format off
  switch (op) {
    case ExprOp::kInvalid: break;
#define TILERT_EXPR_OP(name, id, arity, cls, text) \
  case ExprOp::k##name: return {arity, OpClass::k##cls, text};
#include "ir/expr_op.def"
  }
  // clang-format on
  return {};
}

// Ids reachable from an expression, ascending, so operands stand before their users. Most expressions are small: a plain list
// then beats a hash set; large ones use a bitmap over ids.
class Reachable {
 public:
  // `descend(id)` says whether the operands of a node count.
  template <typename Descend>
  Reachable(const ExprArena& arena, Expr root, Descend descend) {
    if (!root) return;
    absl::InlinedVector<uint32_t, kSmall> stack = {root.id};
    while (!stack.empty()) {
      const uint32_t id = stack.back();
      stack.pop_back();
      if (!Add(id, root.id) || !descend(Expr{id})) continue;
      for (Expr arg : arena[Expr{id}].args) stack.push_back(arg.id);
    }
    std::sort(ids_.begin(), ids_.end());
  }
  Reachable(const ExprArena& arena, Expr root) : Reachable(arena, root, [](Expr) { return true; }) {}

  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }
  size_t size() const { return ids_.size(); }
  uint32_t operator[](size_t i) const { return ids_[i]; }
  // Position of an id that is there.
  size_t IndexOf(uint32_t id) const { return static_cast<size_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin()); }

 private:
  static constexpr size_t kSmall = 32;

  // False when it was there already. `largest`: no id is above it.
  bool Add(uint32_t id, uint32_t largest) {
    if (ids_.size() < kSmall) {
      if (std::find(ids_.begin(), ids_.end(), id) != ids_.end()) return false;
    } else {
      if (seen_.empty()) {
        seen_.resize(size_t{largest} + 1);
        for (uint32_t known : ids_) seen_[known] = true;
      }
      if (seen_[id]) return false;
      seen_[id] = true;
    }
    ids_.push_back(id);
    return true;
  }

  absl::InlinedVector<uint32_t, kSmall> ids_;
  std::vector<bool> seen_;
};

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
  if (index_.size() < nodes_.size()) {  // a copy
    index_.reserve(nodes_.size() + 1);
    for (const ExprNode& known : nodes_) index_.emplace(known, static_cast<uint32_t>(index_.size()));
  }
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

Expr ExprArena::Binary(ExprOp op, Expr a, Expr b) { return Make(op, IsComparison(op) ? DType::kBool : (*this)[a].dtype, {a, b}); }

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
  // First, from the root down, what `replace` wants to substitute: the operands of such nodes need no copy.
  absl::InlinedVector<std::pair<uint32_t, Expr>, 8> substitutes;
  const Reachable ids(from, root, [&](Expr e) {
    Expr substitute;
    if (replace && &from == &to) {
      substitute = replace(e, ExprNode(from[e]));  // a copy: `replace` may grow the arena
    } else if (replace) {
      substitute = replace(e, from[e]);
    }
    if (substitute) substitutes.emplace_back(e.id, substitute);
    return !substitute;
  });
  absl::InlinedVector<Expr, 32> results(ids.size());
  for (const auto& [id, substitute] : substitutes) results[ids.IndexOf(id)] = substitute;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (results[i]) continue;
    ExprNode node = from[Expr{ids[i]}];
    bool is_same = &from == &to;
    for (Expr& arg : node.args) {
      const Expr moved = results[ids.IndexOf(arg.id)];
      is_same &= moved == arg;
      arg = moved;
    }
    results[i] = is_same ? Expr{ids[i]} : to.Intern(std::move(node));
  }
  return results.back();
}

}  // namespace tilert
