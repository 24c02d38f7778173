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
    for (const Launch& launch : c_.p.launches)
      ForEachStmt(launch.body, [&](const Stmt& stmt) { NoteLet(stmt), NoteWrites(stmt); });
    for (bool grows = true; grows;) {
      const size_t before = narrowed_.size();
      for (const Launch& launch : c_.p.launches) ForEachStmt(launch.body, [&](const Stmt& stmt) { Spread(stmt); });
      grows = narrowed_.size() > before;
    }
    for (size_t i = 0; i < c_.p.launches.size(); ++i) {
      auto scope = c_.path.Enter("launches", i);
      auto body = c_.path.Enter("body");
      Walk(c_.p.launches[i].body);
    }
  }

 private:
  enum class How : uint8_t { kRounded, kSummed };  // a wider value was stored; a gemm adds up in it

  bool IsTile(BufferId id) const { return c_.p.buffers[id].scope != Scope::kGlobal && IsNarrow(c_.p.buffers[id].dtype); }

  void NoteLet(const Stmt& stmt) {
    if (const auto* let = std::get_if<Let>(&stmt.op)) lets_[let->var] = let->value;
  }

  void NoteWrites(const Stmt& stmt) {
    if (const auto* s = std::get_if<Gemm>(&stmt.op); s && IsTile(s->c.buffer)) narrowed_[s->c.buffer] = How::kSummed;
    const auto note_move = [&](const Region& src, const Region& dst) {
      if (IsTile(dst.buffer) && DTypeBits(c_.p.buffers[src.buffer].dtype) > 16 && IsFloat(c_.p.buffers[src.buffer].dtype) &&
          c_.p.buffers[src.buffer].scope != Scope::kGlobal)
        narrowed_.emplace(dst.buffer, How::kRounded);
    };
    if (const auto* s = std::get_if<Copy>(&stmt.op)) note_move(s->src, s->dst);
    if (const auto* s = std::get_if<Reduce>(&stmt.op)) note_move(s->src, s->dst);
    if (const auto* s = std::get_if<Store>(&stmt.op); s && IsTile(s->buffer) && IsComputed(s->value))
      narrowed_.emplace(s->buffer, How::kRounded);
  }

  // What is made of narrowed tiles without another rounding.
  void Spread(const Stmt& stmt) {
    const auto spread = [&](const Region& src, const Region& dst) {
      const auto it = narrowed_.find(src.buffer);
      if (it == narrowed_.end() || c_.p.buffers[dst.buffer].scope == Scope::kGlobal) return;
      const How how = it->second;
      narrowed_.emplace(dst.buffer, how);
    };
    if (const auto* s = std::get_if<Copy>(&stmt.op)) spread(s->src, s->dst);
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
      CheckStmt(block[i]);
      const std::vector<const Block*> children = ChildBlocks(block[i]);
      for (size_t part = 0; part < children.size(); ++part) {
        auto nested = c_.path.EnterPart(block[i], part);
        Walk(*children[part]);
      }
    }
  }

  void CheckStmt(const Stmt& stmt) {
    bool warned = false;  // once a statement
    ForEachExpr(stmt, [&](Expr root) {
      ForEachNode(c_.p.exprs, root, [&](Expr, const ExprNode& node) {
        if (warned) return;
        if (node.op == ExprOp::kExp || node.op == ExprOp::kExp2) warned = CheckExponent(stmt, node);
        if (node.op == ExprOp::kSub && IsFloat(node.dtype)) warned = warned || CheckDifference(stmt, node);
      });
    });
  }

  bool CheckExponent(const Stmt& stmt, const ExprNode& node) {
    const std::optional<std::string> what = Narrowed(node.args[0]);
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
  std::optional<std::string> Narrowed(Expr e) const {
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
      return it == lets_.end() ? std::nullopt : Narrowed(it->second);
    }
    if (IsNarrow(node.dtype) && node.op == ExprOp::kCast && !IsNarrow(c_.p.exprs[node.args[0]].dtype) && IsComputed(node.args[0]))
      return Cat("rounded to ", DTypeName(node.dtype));
    for (size_t i = node.op == ExprOp::kSelect ? 1 : 0; i < node.args.size(); ++i) {
      if (auto what = Narrowed(node.args[i])) return what;
    }
    if (IsNarrow(node.dtype) && IsArithmetic(node.op)) return Cat("computed in ", DTypeName(node.dtype));
    return std::nullopt;
  }

  Context& c_;
  absl::flat_hash_map<VarId, Expr> lets_;
  absl::flat_hash_map<BufferId, How> narrowed_;
};

}  // namespace

void CheckNarrowing(Context& c) { NarrowChecker(c).Run(); }

}  // namespace tilert::lint
