#include "frontend/row_reductions.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/reduction.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

// start = variable + offset.
struct Row {
  Expr variable, offset;
};

class Reductions {
 public:
  Reductions(const std::vector<View>& views, const std::vector<ThreadUse>& threads, Program* program) : p_(*program) {
    for (const View& view : views) base_[view.buffer] = view.base;
    for (const ThreadUse& use : threads) threads_.insert(use.thread);
  }

  void Run() {
    for (Launch& launch : p_.launches) launch.body = Walk(launch.body);
    if (results_.empty()) return;
    for (Launch& launch : p_.launches) Replace(&launch.body);
  }

 private:
  Block Walk(const Block& block) {
    Block out;
    for (const Stmt& stmt : block) Add(stmt, &out);
    return out;
  }

  void Add(Stmt stmt, Block* out) {
    const auto* reduce = std::get_if<Reduce>(&stmt.op);
    if (reduce && p_.buffers[reduce->dst.buffer].scope == Scope::kVar) return AddReduction(*reduce, stmt.loc, out);
    const auto* loop = std::get_if<Parallel>(&stmt.op);
    const bool is_outermost = loop && loops_.empty(), is_conditional = !loop && !loops_.empty();
    if (is_outermost) NoteWrites(stmt);
    if (loop) loops_.push_back(loop);
    conditions_ += is_conditional;
    for (Block* child : ChildBlocks(stmt)) *child = Walk(*child);
    conditions_ -= is_conditional;
    if (loop) loops_.pop_back();
    if (is_outermost) {
      out->insert(out->end(), before_.begin(), before_.end());
      before_.clear();
    }
    out->push_back(std::move(stmt));
  }

  void AddReduction(const Reduce& reduce, SourceLoc loc, Block* out) {
    const Scope scope = p_.buffers[reduce.src.buffer].scope;
    const bool is_tile = (scope == Scope::kShared || scope == Scope::kFragment) && conditions_ == 0 &&
                         p_.buffers[reduce.src.buffer].dtype != DType::kBool;
    std::vector<Row> rows;
    if (!is_tile || UsesThread(reduce.src) || !FindRows(reduce.src, &rows)) return AddLoops(reduce, loc, out);
    AddOverTile(reduce, rows, loc, loops_.empty() ? out : &before_);
  }

  bool UsesThread(const Region& region) const {
    const auto uses = [&](Expr e) {
      bool found = false;
      ForEachNode(p_.exprs, e, [&](Expr, const ExprNode& node) {
        found |= node.op == ExprOp::kVar && threads_.contains(static_cast<VarId>(node.i));
      });
      return found;
    };
    return std::any_of(region.start.begin(), region.start.end(), uses) ||
           std::any_of(region.extent.begin(), region.extent.end(), uses);
  }

  // --- all rows at once, in front of the loops
  // Which dimensions of `src` the loops around walk along, one row a dimension; no variable: not along this one. False where the
  // points take parts that are no rows, or write what they reduce.
  bool FindRows(const Region& src, std::vector<Row>* rows) const {
    if (!loops_.empty() && written_.contains(Root(src.buffer))) return false;
    absl::flat_hash_set<uint32_t> seen;
    for (size_t d = 0; d < src.start.size(); ++d) {
      if (!IsFixed(src.extent[d])) return false;
      rows->push_back({});
      if (!VariesInLoops(src.start[d])) continue;
      rows->back() = RowAt(src.start[d]);
      const Expr variable = rows->back().variable;
      if (!variable || VariesInLoops(rows->back().offset) || !p_.exprs.IsInt(src.extent[d], 1) || !IsFixed(ExtentOf(variable)) ||
          !seen.insert(variable.id).second)
        return false;
    }
    return true;
  }

  Row RowAt(Expr start) const {
    if (ExtentOf(start)) return {start, p_.exprs.Int(0)};
    const ExprNode& node = p_.exprs[start];
    if (node.op != ExprOp::kAdd) return {};
    if (ExtentOf(node.args[0])) return {node.args[0], node.args[1]};
    return ExtentOf(node.args[1]) ? Row{node.args[1], node.args[0]} : Row{};
  }

  // The extent of the open loop whose variable this is; none if it is no such variable.
  Expr ExtentOf(Expr e) const {
    if (p_.exprs[e].op != ExprOp::kVar) return {};
    for (const Parallel* loop : loops_) {
      for (size_t i = 0; i < loop->vars.size(); ++i) {
        if (loop->vars[i] == static_cast<VarId>(p_.exprs[e].i)) return loop->extents[i];
      }
    }
    return {};
  }

  // Made of numbers and constants, as extents of tiles must be.
  bool IsFixed(Expr e) const {
    bool fixed = true;
    ForEachNode(p_.exprs, e, [&](Expr, const ExprNode& node) {
      fixed &= !node.args.empty() || node.op == ExprOp::kIntImm || node.op == ExprOp::kConstant;
    });
    return fixed;
  }

  // Does `e` use what is made, or may be written, inside the open loops?
  bool VariesInLoops(Expr e) const {
    bool varies = false;
    if (loops_.empty()) return false;
    ForEachNode(p_.exprs, e, [&](Expr, const ExprNode& node) {
      varies |= node.op == ExprOp::kLoad || (node.op == ExprOp::kVar && made_.contains(static_cast<VarId>(node.i)));
    });
    return varies;
  }

  void NoteWrites(const Stmt& loop) {
    written_.clear(), made_.clear();
    ForEachStmt(loop, [&](const Stmt& stmt) {
      std::visit(
          [&](const auto& s) {
            if constexpr (requires { s.dst.buffer; }) written_.insert(Root(s.dst.buffer));
            if constexpr (requires { s.buffer, s.indices; }) written_.insert(Root(s.buffer));
            if constexpr (requires { s.var; }) made_.insert(s.var);
            if constexpr (requires { s.vars; }) made_.insert(s.vars.begin(), s.vars.end());
          },
          stmt.op);
    });
  }

  BufferId Root(BufferId buffer) const {
    for (auto it = base_.find(buffer); it != base_.end() && it->second != buffer; it = base_.find(buffer)) buffer = it->second;
    return buffer;
  }

  // One dimension after the other is reduced, the last first. What the variable of `reduce` would be is an element of the result.
  void AddOverTile(const Reduce& reduce, const std::vector<Row>& rows, SourceLoc loc, Block* out) {
    Region src = reduce.src;
    std::vector<Expr> at;
    std::vector<size_t> dims, reduced;  // of src, apart from extents of 1; positions in dims
    for (size_t d = 0; d < rows.size(); ++d) {
      const bool is_row = static_cast<bool>(rows[d].variable);
      if (!is_row && p_.exprs.IsInt(src.extent[d], 1)) continue;
      if (is_row) {
        at.push_back(rows[d].variable);
        src.start[d] = rows[d].offset;
        src.extent[d] = ExtentOf(rows[d].variable);
      } else {
        reduced.push_back(dims.size());
      }
      dims.push_back(d);
    }
    if (reduced.empty()) {  // of one element
      const size_t d =
          static_cast<size_t>(std::find_if(rows.begin(), rows.end(), [](Row r) { return !r.variable; }) - rows.begin());
      if (d == rows.size()) return AddLoops(reduce, loc, out);
      reduced.push_back(0);
      dims.insert(dims.begin(), d);
    }
    for (; !reduced.empty(); reduced.pop_back()) {
      const auto axis = static_cast<uint32_t>(dims[reduced.back()]);
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(reduced.back()));
      std::vector<Expr> extents;
      for (const size_t d : dims) extents.push_back(src.extent[d]);
      if (extents.empty()) extents.push_back(p_.exprs.Int(1));
      const Region to = Temporary(reduce.dst.buffer, extents, loc, out);
      out->push_back({Reduce{reduce.op, src, to, axis, true}, loc});
      src = to;
      for (size_t d = 0; d < dims.size(); ++d) dims[d] = d;
    }
    if (at.empty()) at.push_back(p_.exprs.Int(0));
    results_[reduce.dst.buffer] = p_.exprs.Load(src.buffer, p_.buffers[src.buffer].dtype, at);
  }

  Region Temporary(BufferId model, const std::vector<Expr>& extents, SourceLoc loc, Block* out) {
    Buffer buffer = p_.buffers[model];
    buffer.scope = Scope::kFragment;
    buffer.shape = extents;
    p_.buffers.push_back(std::move(buffer));
    const auto id = static_cast<BufferId>(p_.buffers.size() - 1);
    out->push_back({Alloc{id}, loc});
    return {id, std::vector<Expr>(extents.size(), p_.exprs.Int(0)), extents};
  }

  // Takes the variables of reductions that are elements of tiles out of `block`.
  void Replace(Block* block) {
    std::erase_if(*block, [&](const Stmt& stmt) {
      const auto* alloc = std::get_if<Alloc>(&stmt.op);
      return alloc != nullptr && results_.contains(alloc->buffer);
    });
    for (Stmt& stmt : *block) {
      ForEachExpr(stmt, [&](Expr& e) {
        e = Rewrite(p_.exprs, e, p_.exprs, [&](Expr, const ExprNode& node) {
          const auto it = node.op == ExprOp::kLoad ? results_.find(static_cast<BufferId>(node.i)) : results_.end();
          return it == results_.end() ? Expr{} : it->second;
        });
      });
      for (Block* child : ChildBlocks(stmt)) Replace(child);
    }
  }

  // --- element by element
  void AddLoops(const Reduce& reduce, SourceLoc loc, Block* out) {
    const BufferId result = reduce.dst.buffer;
    const DType type = p_.buffers[result].dtype;
    out->push_back({Store{result, {}, IdentityOf(reduce.op, type, p_.exprs)}, loc});
    std::vector<Expr> element = reduce.src.start;
    std::vector<For> loops;
    for (size_t d = 0; d < element.size(); ++d) {
      if (p_.exprs.IsInt(reduce.src.extent[d], 1)) continue;
      For loop;
      loop.kind = ForKind::kSerial;
      loop.var = static_cast<VarId>(p_.vars.size());
      p_.vars.push_back({"k", DType::kIndex});
      loop.begin = loop.num_stages = p_.exprs.Int(0);
      loop.end = reduce.src.extent[d];
      loop.step = p_.exprs.Int(1);
      const Expr at = p_.exprs.Leaf(ExprOp::kVar, loop.var, DType::kIndex);
      element[d] = p_.exprs.IsInt(element[d], 0) ? at : p_.exprs.Binary(ExprOp::kAdd, element[d], at);
      loops.push_back(std::move(loop));
    }
    const ExprOp op = reduce.op == ReduceOp::kSum ? ExprOp::kAdd : reduce.op == ReduceOp::kMax ? ExprOp::kMax : ExprOp::kMin;
    const BufferId buffer = reduce.src.buffer;
    Expr value = p_.exprs.Load(buffer, p_.buffers[buffer].dtype, element);
    if (p_.exprs[value].dtype != type) value = p_.exprs.Cast(value, type);
    Block body{{Store{result, {}, p_.exprs.Binary(op, p_.exprs.Load(result, type, {}), value)}, loc}};
    for (; !loops.empty(); loops.pop_back()) {
      loops.back().body = std::move(body);
      body.clear();
      body.push_back({std::move(loops.back()), loc});
    }
    out->push_back(std::move(body[0]));
  }

  Program& p_;
  absl::flat_hash_map<BufferId, BufferId> base_;  // of views
  absl::flat_hash_set<VarId> threads_;
  std::vector<const Parallel*> loops_;           // that are open, outermost first
  int conditions_ = 0;                           // open statements in the outermost loop that are no parallel loops
  absl::flat_hash_set<BufferId> written_;        // in the outermost loop
  absl::flat_hash_set<VarId> made_;              // likewise
  Block before_;                                 // what goes in front of it
  absl::flat_hash_map<BufferId, Expr> results_;  // instead of these variables
};

}  // namespace

DType ReductionType(ReduceOp op, DType src) {
  if (op != ReduceOp::kSum || DTypeBits(src) >= 32) return src;
  if (KindOf(src) == DTypeKind::kUnsigned) return DType::kUInt32;
  return IsFloat(src) ? DType::kFloat32 : DType::kInt32;
}

Value ReductionExpression(Evaluator& e, const Args& args, ReduceOp op, const Value& part, SourceRange range) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto region = e.Region(part, range, Cat("the argument of ", args.builtin().path));
  if (!region) return Poison{};
  ProgramBuilder& builder = e.builder();
  const std::string name(args.builtin().path.substr(2));
  const Buf result = builder.Alloc(name, ReductionType(op, region->buffer.buffer().dtype), Scope::kVar, {});
  builder.Add(tilert::Reduce{op, builder.R(e.ToTile(*region)), builder.R(result), 0});
  return e.Wrap(builder.Load(result, {}));
}

void LowerReductionExpressions(const std::vector<View>& views, const std::vector<ThreadUse>& threads, Program* program) {
  Reductions(views, threads, program).Run();
}

}  // namespace tilert::frontend
