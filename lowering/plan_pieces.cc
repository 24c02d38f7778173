// Epilogues in pieces. A fragment that leaves in pieces of its columns need not be worked on as a whole first: the element loops
// and loads just before the store are cut into the same pieces, so that what they need besides (bias, residual, results) takes
// registers for a piece only, and the work on one piece goes on while the one before is being stored.
#include <algorithm>
#include <utility>

#include "lowering/affine.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

bool IsZeroStart(const ExprArena& exprs, const kir::TileAccess& side) {
  return std::all_of(side.start.begin(), side.start.end(), [&](Expr e) { return exprs.IsInt(e, 0); });
}

// Buffers that a loop or copy reads or writes.
absl::flat_hash_set<BufferId> Touched(const ExprArena& exprs, const kir::Stmt& stmt) {
  absl::flat_hash_set<BufferId> touched;
  if (auto* copy = std::get_if<kir::Copy>(&stmt.op)) touched = {copy->dst.buffer, copy->src.buffer};
  auto* loop = std::get_if<kir::Elementwise>(&stmt.op);
  if (loop == nullptr) return touched;
  for (const kir::Stmt& inner : loop->body) {
    auto* store = std::get_if<kir::Store>(&inner.op);
    if (store == nullptr) continue;
    touched.insert(store->buffer);
    ForEachNode(exprs, store->value, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kLoad) touched.insert(static_cast<BufferId>(node.i));
    });
  }
  return touched;
}

// True when the loop reads the vector `id` by its variable number `dim`.
bool ReadsVector(const ExprArena& exprs, const kir::Stmt& stmt, BufferId id, size_t dim) {
  auto* loop = std::get_if<kir::Elementwise>(&stmt.op);
  if (loop == nullptr) return false;
  bool reads = false;
  for (const kir::Stmt& inner : loop->body) {
    ForEachNode(exprs, std::get<kir::Store>(inner.op).value, [&](Expr, const ExprNode& node) {
      if (node.op != ExprOp::kLoad || static_cast<BufferId>(node.i) != id || node.args.size() != 1) return;
      reads = reads || static_cast<VarId>(exprs[node.args[0]].i) == loop->vars[dim];
    });
  }
  return reads;
}

bool TouchesAny(const ExprArena& exprs, const kir::Block& block, BufferId buffer) {
  return std::any_of(block.begin(), block.end(), [&](const kir::Stmt& stmt) { return Touched(exprs, stmt).contains(buffer); });
}

}  // namespace

// `layout` cut to its first `width` columns, when the columns beyond differ only in registers.
bool PlanBuilder::CutColumns(FragmentLayout* layout, int64_t width) {
  LayoutDim& columns = layout->dims.back();
  int64_t product = 1;
  std::vector<Factor> kept;
  for (Factor factor : columns.factors) {
    if (product < width) {
      if (width % product != 0) return false;
      const int64_t wanted = width / product;
      if (factor.size > wanted && (factor.size % wanted != 0 || factor.owner != Owner::kReg)) return false;
      if (factor.size <= wanted && wanted % factor.size != 0) return false;
      factor.size = std::min(factor.size, wanted);
      product *= factor.size;
      kept.push_back(factor);
    } else if (factor.owner != Owner::kReg && factor.size > 1) {
      return false;
    }
  }
  columns = {width, std::move(kept)};
  *layout = Dense(std::move(*layout));
  return product == width;
}

// Elements of each column depend on elements of that column, and of vectors, only.
bool PlanBuilder::IsPieceable(const kir::Elementwise& loop, int64_t columns, int64_t width) const {
  FragmentLayout layout = loop.layout;
  if (layout.dims.size() != 2 || layout.dims.back().extent != columns || !CutColumns(&layout, width)) return false;
  const auto is_var = [&](Expr e, size_t dim) {
    const ExprNode& node = k_.exprs[e];
    return node.op == ExprOp::kVar && static_cast<VarId>(node.i) == loop.vars[dim];
  };
  const auto own = [&](absl::Span<const Expr> at) { return at.size() == 2 && is_var(at[0], 0) && is_var(at[1], 1); };
  for (const kir::Stmt& stmt : loop.body) {
    auto* store = std::get_if<kir::Store>(&stmt.op);
    if (store == nullptr || k_.buffers[store->buffer].space != kir::Space::kRegister || !own(store->indices)) return false;
    bool plain = true;
    ForEachNode(k_.exprs, store->value, [&](Expr, const ExprNode& node) {
      if (node.op != ExprOp::kLoad || k_.buffers[static_cast<BufferId>(node.i)].space != kir::Space::kRegister ||
          node.args.empty())
        return;
      plain = plain && (own(node.args) || (node.args.size() == 1 && (is_var(node.args[0], 0) || is_var(node.args[0], 1))));
    });
    if (!plain) return false;
  }
  return true;
}

// Into a whole fragment, from anywhere.
bool PlanBuilder::IsPieceable(const kir::Copy& copy, int64_t columns, int64_t width) const {
  FragmentLayout layout = copy.layout;
  const std::vector<int> own = {0, 1};
  const auto in_registers = [&](const kir::TileAccess& side) { return k_.buffers[side.buffer].space == kir::Space::kRegister; };
  if (layout.dims.size() != 2 || layout.dims.back().extent != columns || !CutColumns(&layout, width)) return false;
  if (copy.method != kir::CopyMethod::kVector && copy.method != kir::CopyMethod::kRegister) return false;
  if (!in_registers(copy.dst) || copy.dst.follows != own || !IsZeroStart(k_.exprs, copy.dst)) return false;
  return !in_registers(copy.src) || (copy.src.follows == own && IsZeroStart(k_.exprs, copy.src));
}

// Takes the statements that can be done a piece at a time off the end of the current block. What stands among them and cannot,
// but need not be done in between, stays.
PlanBuilder::Pieces PlanBuilder::TakePieces(int64_t columns, int64_t width) {
  Pieces pieces;  // latest first
  kir::Block stay;
  std::vector<kir::RingId> acquired;
  const auto touched = [&](BufferId id) {
    return TouchesAny(k_.exprs, pieces.work, id) || TouchesAny(k_.exprs, pieces.loads, id);
  };
  const auto loads_vector = [&](const kir::Copy& copy) {
    return copy.layout.dims.size() == 1 && copy.method == kir::CopyMethod::kVector &&
           k_.buffers[copy.dst.buffer].space == kir::Space::kRegister && k_.buffers[copy.src.buffer].space == kir::Space::kGlobal;
  };
  const auto of_columns = [&](const kir::Copy& copy) {  // a vector that is needed a piece at a time
    FragmentLayout layout = copy.layout;
    const bool whole = copy.dst.start.size() == 1 && IsZeroStart(k_.exprs, copy.dst) && layout.dims[0].extent == columns;
    const auto reads = [&](size_t dim) {
      return std::any_of(pieces.work.begin(), pieces.work.end(),
                         [&](const kir::Stmt& s) { return ReadsVector(k_.exprs, s, copy.dst.buffer, dim); });
    };
    return whole && CutColumns(&layout, width) && reads(1) && !reads(0);
  };
  std::vector<BufferId> filled;  // by what is done ahead of its place
  while (!block_->empty()) {
    const kir::Stmt& stmt = block_->back();
    // What is read ahead must not be touched by anything that stood before it.
    const absl::flat_hash_set<BufferId> uses = Touched(k_.exprs, stmt);
    if (std::any_of(filled.begin(), filled.end(), [&](BufferId id) { return uses.contains(id); })) break;
    if (auto* loop = std::get_if<kir::Elementwise>(&stmt.op); loop && IsPieceable(*loop, columns, width)) {
      pieces.work.push_back(stmt);
    } else if (auto* copy = std::get_if<kir::Copy>(&stmt.op); copy && IsPieceable(*copy, columns, width)) {
      const bool load = k_.buffers[copy->src.buffer].space == kir::Space::kGlobal;
      if (load) filled.push_back(copy->dst.buffer);
      (load ? pieces.loads : pieces.work).push_back(stmt);
    } else if (copy && loads_vector(*copy)) {
      filled.push_back(copy->dst.buffer);
      (of_columns(*copy) ? pieces.loads : stay).push_back(stmt);
    } else if (auto* acquire = std::get_if<kir::Acquire>(&stmt.op)) {
      acquired.push_back(acquire->ring);
      stay.push_back(stmt);
    } else if (auto* declare = std::get_if<kir::Declare>(&stmt.op); declare && touched(declare->buffer)) {
      stay.push_back(stmt);
    } else {
      auto* release = std::get_if<kir::Release>(&stmt.op);
      auto* advance = std::get_if<kir::Advance>(&stmt.op);
      if (release == nullptr && advance == nullptr) break;
      const kir::RingId ring = release ? release->ring : advance->ring;
      if (std::count(acquired.begin(), acquired.end(), ring) > 0) break;  // its next slot is waited for here, too
      pieces.after.push_back(stmt);
    }
    block_->pop_back();
  }
  for (kir::Block* part : {&pieces.loads, &pieces.work, &pieces.after, &stay}) std::reverse(part->begin(), part->end());
  if (pieces.work.empty() && pieces.loads.empty())
    stay.insert(stay.end(), pieces.after.begin(), pieces.after.end()), pieces.after.clear();
  block_->insert(block_->end(), stay.begin(), stay.end());
  return pieces;
}

// Columns [column, column + width) of the statements.
void PlanBuilder::EmitPiece(const kir::Block& work, int64_t column, int64_t width) {
  for (kir::Stmt stmt : work) {
    if (auto* copy = std::get_if<kir::Copy>(&stmt.op)) {
      CutColumns(&copy->layout, width);
      const int last = static_cast<int>(copy->layout.dims.size()) - 1;
      for (kir::TileAccess* side : {&copy->dst, &copy->src}) {
        for (size_t d = 0; d < side->follows.size(); ++d) {
          if (side->follows[d] == last) side->start[d] = AddIndex(k_.exprs, side->start[d], column);
        }
      }
    }
    if (auto* loop = std::get_if<kir::Elementwise>(&stmt.op)) {
      CutColumns(&loop->layout, width);
      const std::vector<VarId> old = loop->vars;
      for (VarId& var : loop->vars) var = NewVar(k_.vars[var].name);
      const auto moved = [&](Expr e) {
        return Rewrite(k_.exprs, e, k_.exprs, [&](Expr, const ExprNode& node) -> Expr {
          if (node.op != ExprOp::kVar) return {};
          const auto var = static_cast<VarId>(node.i);
          if (var == old[0]) return VarExpr(loop->vars[0]);
          return var == old[1] ? AddIndex(k_.exprs, VarExpr(loop->vars[1]), column) : Expr{};
        });
      };
      for (kir::Stmt& inner : loop->body) {
        auto& store = std::get<kir::Store>(inner.op);
        for (Expr& e : store.indices) e = moved(e);
        store.value = moved(store.value);
      }
    }
    block_->push_back(std::move(stmt));
  }
}

}  // namespace tilert
