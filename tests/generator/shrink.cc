#include "tests/generator/shrink.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "ir/specialize.h"

namespace tilert {
namespace {

class Shrinker {
 public:
  Shrinker(TileCase tile_case, const StillFails& fails, int max_tries)
      : best_(std::move(tile_case)), fails_(fails), left_(max_tries) {}

  TileCase Run() {
    bool smaller = true;
    while (smaller && left_ > 0) {
      smaller = false;
      smaller |= RemoveLaunches();
      smaller |= RemoveStatements();
      smaller |= Unnest();
      smaller |= SimplifyExpressions();
      smaller |= ShrinkDims();
      smaller |= ShrinkNumbers();
      smaller |= DropUnused();
    }
    return std::move(best_);
  }

 private:
  bool Try(TileCase candidate) {
    if (left_-- <= 0 || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // Every block of statements of a program, outer ones first.
  static std::vector<Block*> Blocks(Program& program) {
    std::vector<Block*> blocks;
    for (Launch& launch : program.launches) blocks.push_back(&launch.body);
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (Stmt& stmt : *blocks[i]) {
        for (Block* child : ChildBlocks(stmt)) blocks.push_back(child);
      }
    }
    return blocks;
  }

  bool RemoveLaunches();
  bool RemoveStatements();
  bool Unnest();
  bool SimplifyExpressions();
  bool ShrinkDims();
  bool ShrinkNumbers();
  bool DropUnused();

  TileCase best_;
  const StillFails& fails_;
  int left_;
};

bool Shrinker::RemoveLaunches() {
  bool any = false;
  for (size_t i = best_.program.launches.size(); best_.program.launches.size() > 1 && i-- > 0;) {
    TileCase candidate = best_;
    candidate.program.launches.erase(candidate.program.launches.begin() + static_cast<int64_t>(i));
    any |= Try(std::move(candidate));
  }
  return any;
}

// Halves, then quarters, … then single statements of every block, last ones first. An allocation whose buffer is still used makes
// a candidate that does not verify.
bool Shrinker::RemoveStatements() {
  bool any = false;
  for (size_t b = 0; b < Blocks(best_.program).size(); ++b) {
    for (size_t size = std::max<size_t>(Blocks(best_.program)[b]->size() / 2, 1); size > 0; size /= 2) {
      size_t end = Blocks(best_.program)[b]->size();
      while (end > 0) {
        const size_t begin = end > size ? end - size : 0;
        TileCase candidate = best_;
        Block& block = *Blocks(candidate.program)[b];
        block.erase(block.begin() + static_cast<int64_t>(begin), block.begin() + static_cast<int64_t>(end));
        any |= Try(std::move(candidate));
        if (b >= Blocks(best_.program).size()) return any;
        end = std::min(begin, Blocks(best_.program)[b]->size());
      }
    }
  }
  return any;
}

// A loop becomes its first iteration, a branch one of its sides.
bool Shrinker::Unnest() {
  bool any = false;
  for (size_t b = 0; b < Blocks(best_.program).size(); ++b) {
    for (size_t i = Blocks(best_.program)[b]->size(); i-- > 0;) {
      const size_t sides = ChildBlocks((*Blocks(best_.program)[b])[i]).size();
      for (size_t side = 0; side < sides; ++side) {
        TileCase candidate = best_;
        Block& block = *Blocks(candidate.program)[b];
        const Stmt stmt = block[i];
        if (std::holds_alternative<Parallel>(stmt.op)) break;
        Block body = *ChildBlocks(stmt)[side];
        if (const auto* loop = std::get_if<For>(&stmt.op)) body.insert(body.begin(), Stmt(Let{loop->var, loop->begin}));
        block.erase(block.begin() + static_cast<int64_t>(i));
        block.insert(block.begin() + static_cast<int64_t>(i), body.begin(), body.end());
        if (!Try(std::move(candidate))) continue;
        any = true;
        break;
      }
      if (b >= Blocks(best_.program).size() || i > Blocks(best_.program)[b]->size()) break;
    }
  }
  return any;
}

// Each operand of a statement: one of its own operands of the same type, or zero.
bool Shrinker::SimplifyExpressions() {
  bool any = false;
  size_t statement = 0;
  const auto nth = [](Program& program, size_t n) -> Stmt* {
    for (Block* block : Blocks(program)) {
      if (n < block->size()) return &(*block)[n];
      n -= block->size();
    }
    return nullptr;
  };
  for (; nth(best_.program, statement) != nullptr && left_ > 0; ++statement) {
    for (size_t operand = 0;; ++operand) {
      bool exists = false;
      for (bool smaller = true; smaller;) {
        smaller = false;
        std::vector<Expr> choices;
        size_t at = 0;
        ForEachExpr(std::as_const(*nth(best_.program, statement)), [&](Expr e) {
          if (at++ != operand || !e) return;
          exists = true;
          const ExprNode node = best_.program.exprs[e];
          for (Expr arg : node.args) {
            if (best_.program.exprs[arg].dtype == node.dtype) choices.push_back(arg);
          }
          const bool leaf = node.op == ExprOp::kIntImm || node.op == ExprOp::kFloatImm;
          if (!leaf)
            choices.push_back(IsFloat(node.dtype) ? best_.program.exprs.Float(0, node.dtype)
                                                  : best_.program.exprs.Int(0, node.dtype));
        });
        exists |= at > operand;
        for (Expr choice : choices) {
          TileCase candidate = best_;
          size_t place = 0;
          ForEachExpr(*nth(candidate.program, statement), [&](Expr& e) {
            if (place++ == operand) e = choice;
          });
          if (!Try(std::move(candidate))) continue;
          smaller = any = true;
          break;
        }
      }
      if (!exists) break;
    }
  }
  return any;
}

bool Shrinker::ShrinkDims() {
  bool any = false;
  for (size_t d = 0; d < best_.dims.size(); ++d) {
    for (int64_t size : {int64_t{1}, int64_t{8}, int64_t{16}, best_.dims[d] / 2, best_.dims[d] - 1}) {
      if (size < 1 || size >= best_.dims[d]) continue;
      TileCase candidate = best_;
      candidate.dims[d] = size;
      if (Try(std::move(candidate))) any = true;
    }
  }
  return any;
}

// Every place where a number stands gets a smaller one: extents of tiles, their copies and loops stay in agreement.
bool Shrinker::ShrinkNumbers() {
  bool any = false;
  std::set<int64_t, std::greater<>> numbers;
  ForEachExpr(std::as_const(best_.program), [&](Expr root) {
    if (!root) return;
    ForEachNode(best_.program.exprs, root, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kIntImm && node.dtype == DType::kIndex && node.i > 1) numbers.insert(node.i);
    });
  });
  for (int64_t number : numbers) {
    for (int64_t smaller : {int64_t{1}, int64_t{2}, int64_t{8}, int64_t{16}, int64_t{32}, number / 2}) {
      if (smaller >= number || smaller < 1) continue;
      TileCase candidate = best_;
      ExprArena& arena = candidate.program.exprs;
      const ExprArena before = arena;
      ForEachExpr(candidate.program, [&](Expr& root) {
        if (!root) return;
        root = Rewrite(before, root, arena, [&](Expr, const ExprNode& node) {
          return node.op == ExprOp::kIntImm && node.dtype == DType::kIndex && node.i == number ? arena.Int(smaller) : Expr{};
        });
      });
      if (!Try(std::move(candidate))) continue;
      any = true;
      break;
    }
  }
  return any;
}

// Tensors that no statement mentions, so that the text of the case is short. Dims stay, bound by those that are left.
bool Shrinker::DropUnused() {
  bool any = false;
  for (size_t i = best_.program.params.size(); i-- > 0;) {
    TileCase candidate = best_;
    const Param param = candidate.program.params[i];
    candidate.program.params.erase(candidate.program.params.begin() + static_cast<int64_t>(i));
    if (param.kind != Param::Kind::kTensor) continue;
    // Buffers are numbered: the tensor becomes a tile that nothing allocates, and so nobody's.
    Buffer& buffer = candidate.program.buffers[param.index];
    buffer.scope = Scope::kVar;
    buffer.shape.clear();
    buffer.strides.clear();
    any |= Try(std::move(candidate));
  }
  TileCase candidate = best_;
  candidate.program = CompactExprs(candidate.program);
  best_ = std::move(candidate);
  return any;
}

}  // namespace

TileCase Shrink(TileCase tile_case, const StillFails& fails, int max_tries) {
  return Shrinker(std::move(tile_case), fails, max_tries).Run();
}

}  // namespace tilert
