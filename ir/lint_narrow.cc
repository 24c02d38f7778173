// Values of 16 bits or less where their rounding does harm. An exponent that is off by d makes a power off by the factor e^d:
// float16 scores around 10 are off by 2^-8. And a difference is off by what its operands are.
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/lint_context.h"

namespace tilert::lint {
namespace {

bool IsNarrow(DType type) { return IsFloat(type) && DTypeBits(type) <= 16; }

bool IsArithmetic(ExprOp op) {
  return op == ExprOp::kAdd || op == ExprOp::kSub || op == ExprOp::kMul || op == ExprOp::kDiv || op == ExprOp::kFma;
}

class NarrowChecker {
 public:
  explicit NarrowChecker(Context& c) : c_(c) {}

  void Run() {
    for (const Launch& launch : c_.p.launches) ForEachStmt(launch.body, [&](const Stmt& stmt) { NoteLet(stmt); });
    for (size_t i = 0; i < c_.p.launches.size(); ++i) {
      auto scope = c_.path.Enter("launches", i);
      auto body = c_.path.Enter("body");
      narrowed_.clear();
      Walk(c_.p.launches[i].body);
    }
  }

 private:
  enum class How : uint8_t { kRounded, kSummed };  // a wider value was stored; a gemm adds up in it
  using Narrowed = absl::flat_hash_map<BufferId, How>;
  static constexpr int kMaxDepth = 8;  // of loops whose iterations are told apart: each doubles the work

  bool IsTile(BufferId id) const { return c_.p.buffers[id].scope != Scope::kGlobal && IsNarrow(c_.p.buffers[id].dtype); }

  void NoteLet(const Stmt& stmt) {
    if (const auto* let = std::get_if<Let>(&stmt.op)) lets_[let->var] = let->value;
  }

  bool IsWhole(const Region& r) const {
    const std::vector<Expr>& shape = c_.p.buffers[r.buffer].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!c_.p.exprs.IsInt(r.start[d], 0) || r.extent[d] != shape[d]) return false;
    }
    return true;
  }

  // `dst` now holds what `src` held.
  void NoteMove(const Region& src, const Region& dst) {
    if (IsWhole(dst)) narrowed_.erase(dst.buffer);
    const Buffer& from = c_.p.buffers[src.buffer];
    if (!IsTile(dst.buffer) || from.scope == Scope::kGlobal) return;
    const auto it = narrowed_.find(src.buffer);
    if (it != narrowed_.end()) {
      const How how = it->second;
      narrowed_.emplace(dst.buffer, how);
    } else if (IsFloat(from.dtype) && !IsNarrow(from.dtype)) {
      narrowed_.emplace(dst.buffer, How::kRounded);
    }
  }

  void NoteWrites(const Stmt& stmt) {
    std::visit(Overloaded{
                   [](const auto&) {},
                   [&](const Gemm& s) {
                     if (IsTile(s.c.buffer)) narrowed_[s.c.buffer] = How::kSummed;
                   },
                   [&](const Fill& s) {
                     if (IsWhole(s.dst)) narrowed_.erase(s.dst.buffer);
                   },
                   [&](const Copy& s) { NoteMove(s.src, s.dst); },
                   [&](const Reduce& s) { NoteMove(s.src, s.dst); },
                   [&](const Store& s) {
                     if (IsTile(s.buffer) && IsComputed(s.value)) narrowed_.emplace(s.buffer, How::kRounded);
                   },
               },
               stmt.op);
  }

  // Is this more than elements and numbers as they are, converted or chosen between?
  bool IsComputed(Expr e) const {
    const ExprNode& node = c_.p.exprs[e];
    if (node.op == ExprOp::kCast || node.op == ExprOp::kNeg || node.op == ExprOp::kAbs) return IsComputed(node.args[0]);
    if (node.op == ExprOp::kMin || node.op == ExprOp::kMax) return IsComputed(node.args[0]) || IsComputed(node.args[1]);
    if (node.op == ExprOp::kSelect) return IsComputed(node.args[1]) || IsComputed(node.args[2]);
    if (node.op == ExprOp::kVar) {
      const auto it = lets_.find(static_cast<VarId>(node.i));
      return it != lets_.end() && IsComputed(it->second);
    }
    return !node.args.empty() && node.op != ExprOp::kLoad && IsFloat(node.dtype);
  }

  // --- where it does harm
  void Walk(const Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      auto scope = c_.path.Enter("", i);
      if (silent_ == 0) CheckStmt(block[i]);
      NoteWrites(block[i]);
      if (!ChildBlocks(block[i]).empty()) WalkChildren(block[i]);
    }
  }

  // What may be narrowed on some path is narrowed.
  void WalkChildren(const Stmt& stmt) {
    const std::vector<const Block*> children = ChildBlocks(stmt);
    const Narrowed before = narrowed_;
    const bool is_loop = std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op);
    if (is_loop && depth_ < kMaxDepth) {  // what an iteration leaves to the next
      ++silent_, ++depth_;
      Walk(*children[0]);
      --silent_, --depth_;
      narrowed_.insert(before.begin(), before.end());
    }
    const bool may_skip = !std::holds_alternative<Parallel>(stmt.op);
    Narrowed after = may_skip ? before : Narrowed{};
    const Narrowed start = narrowed_;
    for (size_t part = 0; part < children.size(); ++part) {
      auto nested = c_.path.EnterPart(stmt, part);
      narrowed_ = start;
      ++depth_;
      Walk(*children[part]);
      --depth_;
      after.insert(narrowed_.begin(), narrowed_.end());
    }
    narrowed_ = std::move(after);
  }

  // One warning a statement; exponents first, of which differences are a part.
  void CheckStmt(const Stmt& stmt) {
    bool warned = false;
    for (const bool exponents : {true, false}) {
      ForEachExpr(stmt, [&](Expr root) {
        ForEachNode(c_.p.exprs, root, [&](Expr, const ExprNode& node) {
          const bool is_exponent = node.op == ExprOp::kExp || node.op == ExprOp::kExp2;
          const bool is_difference = node.op == ExprOp::kSub && IsFloat(node.dtype);
          if (warned || !(exponents ? is_exponent : is_difference)) return;
          warned = exponents ? CheckExponent(stmt, node) : CheckDifference(stmt, node);
        });
      });
    }
  }

  bool CheckExponent(const Stmt& stmt, const ExprNode& node) {
    const std::optional<std::string> what = NarrowIn(node.args[0]);
    if (!what) return false;
    c_.Warn(stmt.loc,
            Cat("the exponent of this ", ExprOpText(node.op), " is ", *what, ": its rounding is a relative error of the result"),
            "compute the exponent in float32, and narrow after the exp");
    return true;
  }

  bool CheckDifference(const Stmt& stmt, const ExprNode& node) {
    for (const Expr operand : node.args) {
      const ExprNode* load = &c_.p.exprs[operand];
      while (load->op == ExprOp::kCast) load = &c_.p.exprs[load->args[0]];
      if (load->op != ExprOp::kLoad) continue;
      const auto it = narrowed_.find(static_cast<BufferId>(load->i));
      if (it == narrowed_.end() || it->second != How::kSummed) continue;
      c_.Warn(
          stmt.loc,
          Cat("this difference takes ", Summed(it->first), ": where its operands are close, their rounding is all that is left"),
          Cat("accumulate ", c_.Name(it->first), " in float32"));
      return true;
    }
    return false;
  }

  std::string Summed(BufferId id) const {
    return Cat(c_.Name(id), ", which a gemm sums up in ", DTypeName(c_.p.buffers[id].dtype));
  }

  // How narrow values enter `e`; nothing if none do.
  std::optional<std::string> NarrowIn(Expr e) const {
    const ExprNode& node = c_.p.exprs[e];
    if (node.op == ExprOp::kLoad) {
      const auto it = narrowed_.find(static_cast<BufferId>(node.i));
      if (it == narrowed_.end()) return std::nullopt;
      if (it->second == How::kSummed) return Cat("made of ", Summed(it->first));
      return Cat("made of ", c_.Name(it->first), ", which was computed and then rounded to ",
                 DTypeName(c_.p.buffers[it->first].dtype));
    }
    if (node.op == ExprOp::kVar) {
      const auto it = lets_.find(static_cast<VarId>(node.i));
      return it == lets_.end() ? std::nullopt : NarrowIn(it->second);
    }
    if (IsNarrow(node.dtype) && node.op == ExprOp::kCast && !IsNarrow(c_.p.exprs[node.args[0]].dtype) && IsComputed(node.args[0]))
      return Cat("rounded to ", DTypeName(node.dtype));
    for (size_t i = node.op == ExprOp::kSelect ? 1 : 0; i < node.args.size(); ++i) {
      if (auto what = NarrowIn(node.args[i])) return what;
    }
    if (IsNarrow(node.dtype) && IsArithmetic(node.op)) return Cat("computed in ", DTypeName(node.dtype));
    return std::nullopt;
  }

  Context& c_;
  absl::flat_hash_map<VarId, Expr> lets_;
  Narrowed narrowed_;  // tiles, where the walk is
  int silent_ = 0, depth_ = 0;
};

}  // namespace

void CheckNarrowing(Context& c) { NarrowChecker(c).Run(); }

}  // namespace tilert::lint
