// Split reductions: T.Pipelined(…, split=S) gives each of S blocks, a cluster, a part of the loop's iterations. That is possible where all that an iteration
// leaves to later ones is sums in fragments: each block adds up its own from zero, the first one adds the others' to its own in the order of their ranks, so
// that the result is always the same, and runs what follows the loop. split=0: all blocks of the launch share the iterations of all tiles (kir::SharesOf); the one
// that has a tile's last iterations adds the others' sums to its own, and goes on.
//   acc = x; for k in range(n): acc += …; use(acc)   becomes
//   acc = x; if rank != 0: acc = 0; for k in range(n * rank // S, n * (rank + 1) // S): acc += …; if rank == 0: acc += Σ of the others'; use(acc)
#include <algorithm>

#include "ir/limits.h"
#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/tile_access.h"
#include "lowering/tile_roles.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

bool IsZero(const ExprArena& exprs, Expr e) {
  const ExprNode& node = exprs[e];
  return (node.op == ExprOp::kIntImm && node.i == 0) || (node.op == ExprOp::kFloatImm && node.f == 0);
}

class SumSplitter {
 public:
  SumSplitter(TileState& state, size_t at) : s_(state), body_(state.L().body), at_(at), loop_(std::get<For>(body_[at].op)) {}

  // Empty when the loop's iterations can be shared; then sums() are known.
  std::string WhyNot(int64_t ways) {
    if (s_.target.family != Family::kHopper) return ways == 0 ? "blocks of the target take one tile each" : "the target has no clusters";
    const std::string why = ways == 0 ? WhyNotEvenly() : WhyNoCluster(ways);
    if (!why.empty()) return why;
    if (s_.L().cooperative) return "the launch is cooperative";
    if (std::any_of(body_.begin(), body_.end(), HoldsRoles)) return "threads of the launch have roles";
    if (HasJump(loop_.body)) return "iterations may be left out";
    for (size_t i = 0; i <= at_; ++i) {
      if (const std::string what = EffectOf(body_[i]); !what.empty()) return Cat(i < at_ ? "what stands before it " : "it ", what);
    }
    std::vector<BufferId> written, inside;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.op)) inside.push_back(alloc->buffer);
    });
    for (BufferId id : BuffersWritten(body_[at_])) {
      if (std::count(inside.begin(), inside.end(), id) == 0) written.push_back(id);
    }
    std::sort(written.begin(), written.end());
    for (BufferId id : written) {
      if (IsSum(id)) {
        sums_.push_back(id);
      } else if (!WrittenFirst(loop_.body, 0, id) || !WrittenFirst(body_, at_ + 1, id)) {
        return Cat("'", s_.buffer(id).name, "' carries more than a sum in registers from one iteration to the next");
      }
    }
    return sums_.empty() ? "it adds up nothing" : "";
  }

  void Split(int ways) {
    ExprArena& e = s_.E();
    SplitSums split{.ways = ways, .trips = Trips(), .sums = sums_};
    For loop = loop_;
    loop.split = {};
    Expr keeps;  // this block goes on with what the sums were before the loop; the others' begin from zero
    const auto at_trip = [&](Expr trip) { return Fold(e, e.Binary(ExprOp::kAdd, loop_.begin, e.Binary(ExprOp::kMul, trip, loop_.step))); };
    if (ways == 0) {
      split.trips = Fold(e, e.Binary(ExprOp::kMax, split.trips, e.Int(0)));
      split.begin = s_.NewVar("share_begin"), split.end = s_.NewVar("share_end");
      keeps = e.Binary(ExprOp::kEq, s_.VarExpr(split.begin), e.Int(0));
      split.goes_on = e.Binary(ExprOp::kEq, s_.VarExpr(split.end), split.trips);
      loop.begin = at_trip(s_.VarExpr(split.begin));
      loop.end = at_trip(s_.VarExpr(split.end));
    } else {
      split.rank = s_.NewVar("rank");
      const Expr rank = s_.VarExpr(split.rank);
      keeps = split.goes_on = e.Binary(ExprOp::kEq, rank, e.Int(0));
      const auto part = [&](Expr r) { return at_trip(e.Binary(ExprOp::kFloorDiv, e.Binary(ExprOp::kMul, split.trips, r), e.Int(ways))); };
      loop.begin = part(rank);
      loop.end = part(AddIndex(e, rank, 1));
    }
    Block body(body_.begin(), body_.begin() + static_cast<std::ptrdiff_t>(at_));
    Block clears;
    for (BufferId id : sums_) {
      if (!StartsFromZero(id)) clears.push_back({Fill{s_.Whole(id), Zero(id)}, body_[at_].loc});
    }
    if (!clears.empty()) body.push_back({If{e.Unary(ExprOp::kNot, keeps), std::move(clears), {}}, body_[at_].loc});
    body.push_back({std::move(loop), body_[at_].loc});
    Block rest(body_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, body_.end());
    const SourceLoc loc = rest.empty() ? body_[at_].loc : rest.front().loc;
    body.push_back({If{split.goes_on, std::move(rest), {}}, loc});
    body_ = std::move(body);
    s_.split = std::move(split);
  }

  const std::vector<BufferId>& sums() const { return sums_; }

 private:
  std::string WhyNoCluster(int64_t blocks) const {
    for (Expr extent : s_.L().cluster) {
      int64_t across = 1;
      if (s_.program.exprs.AsInt(extent, &across)) blocks *= across;
    }
    return blocks > kMaxClusterBlocks ? Cat("clusters would have ", blocks, " blocks, more than ", kMaxClusterBlocks) : "";
  }

  // What all blocks share is alike in every tile.
  std::string WhyNotEvenly() const {
    bool alike = true;
    for (Expr bound : {loop_.begin, loop_.end, loop_.step}) {
      ForEachNode(s_.program.exprs, bound, [&](Expr, const ExprNode& node) { alike &= node.op != ExprOp::kVar && node.op != ExprOp::kLoad; });
    }
    return alike ? "" : "how many iterations there are depends on the block";
  }

  Expr Trips() {
    ExprArena& e = s_.E();
    int64_t step = 1;
    e.AsInt(loop_.step, &step);
    const Expr span = e.Binary(ExprOp::kSub, loop_.end, loop_.begin);
    return e.Binary(ExprOp::kFloorDiv, AddIndex(e, span, step - 1), e.Int(step));
  }

  // What others than the block would notice of `root`; empty: nothing.
  std::string EffectOf(const Stmt& root) const {
    std::string effect;
    ForEachStmt(root, [&](const Stmt& stmt) {
      const bool concurrent = std::holds_alternative<ThreadRegion>(stmt.op) || std::holds_alternative<Roles>(stmt.op) ||
                              std::holds_alternative<BarrierOp>(stmt.op) || std::holds_alternative<AsyncWait>(stmt.op);
      if (concurrent) effect = "has threads or barriers of its own";
      if (std::holds_alternative<Print>(stmt.op)) effect = "prints";
      if (std::holds_alternative<AtomicTile>(stmt.op)) effect = "has atomics";
    });
    for (BufferId id : BuffersWritten(root)) {
      if (s_.scope(id) == Scope::kGlobal) effect = Cat("writes '", s_.buffer(id).name, "'");
    }
    return effect;
  }

  bool Reads(Expr e, BufferId id) const { return Loads(s_.program.exprs, e, id); }

  // id[at] = id[at] + x (or x + id[at], id[at] − x), x and the subscripts being free of id.
  bool AddsTo(const Store& store, BufferId id) const {
    const ExprNode& value = s_.program.exprs[store.value];
    if (value.op != ExprOp::kAdd && value.op != ExprOp::kSub) return false;
    const auto is_itself = [&](Expr e) {
      const ExprNode& node = s_.program.exprs[e];
      return node.op == ExprOp::kLoad && static_cast<BufferId>(node.i) == id &&
             std::equal(node.args.begin(), node.args.end(), store.indices.begin(), store.indices.end());
    };
    if (std::any_of(store.indices.begin(), store.indices.end(), [&](Expr e) { return Reads(e, id); })) return false;
    if (is_itself(value.args[0])) return !Reads(value.args[1], id);
    return value.op == ExprOp::kAdd && is_itself(value.args[1]) && !Reads(value.args[0], id);
  }

  // Nothing but additions touches `id` in the loop.
  bool IsSum(BufferId id) const {
    const DType type = s_.buffer(id).dtype;
    if (s_.scope(id) != Scope::kFragment || DTypeBytes(type) != 4 || s_.buffer(id).shape.empty()) return false;
    bool sum = true;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      if (!ReadsDirectly(s_.program, stmt, id) && !WritesDirectly(stmt, id)) return;
      bool adds = false;
      if (auto* gemm = std::get_if<Gemm>(&stmt.op)) adds = gemm->c.buffer == id && !gemm->clear_accum && gemm->a.buffer != id && gemm->b.buffer != id;
      if (auto* reduce = std::get_if<Reduce>(&stmt.op)) {
        adds = reduce->dst.buffer == id && reduce->src.buffer != id && !reduce->clear && (reduce->op == ReduceOp::kSum || reduce->op == ReduceOp::kAbsSum);
      }
      if (auto* store = std::get_if<Store>(&stmt.op)) adds = store->buffer == id && AddsTo(*store, id);
      sum &= adds;
    });
    return sum;
  }

  // Whether the first statement of `block` from `from` on that touches `id`, if any does, overwrites all of it.
  bool WrittenFirst(const Block& block, size_t from, BufferId id) const {
    for (size_t i = from; i < block.size(); ++i) {
      const bool reads = BuffersRead(s_.program, block[i]).contains(id), writes = BuffersWritten(block[i]).contains(id);
      if (!reads && !writes) continue;
      if (auto* gemm = std::get_if<Gemm>(&block[i].op)) {
        return gemm->c.buffer == id && gemm->clear_accum && s_.IsWhole(gemm->c) && gemm->a.buffer != id && gemm->b.buffer != id;
      }
      if (auto* reduce = std::get_if<Reduce>(&block[i].op)) {
        return reduce->dst.buffer == id && reduce->clear && s_.IsWhole(reduce->dst) && reduce->src.buffer != id;
      }
      if (reads) return false;
      if (auto* copy = std::get_if<Copy>(&block[i].op)) return s_.IsWhole(copy->dst);
      if (auto* fill = std::get_if<Fill>(&block[i].op)) return s_.IsWhole(fill->dst);
      if (auto* store = std::get_if<Store>(&block[i].op)) return store->indices.empty();
      auto* loop = std::get_if<Parallel>(&block[i].op);
      return loop != nullptr && StoresAll(*loop, id);
    }
    return true;
  }

  bool StoresAll(const Parallel& loop, BufferId id) const {
    return s_.Extents(loop.extents) == s_.Shape(id) && std::any_of(loop.body.begin(), loop.body.end(), [&](const Stmt& stmt) {
      auto* store = std::get_if<Store>(&stmt.op);
      if (store == nullptr || store->buffer != id || store->indices.size() != loop.vars.size()) return false;
      for (size_t d = 0; d < loop.vars.size(); ++d) {
        const ExprNode& index = s_.program.exprs[store->indices[d]];
        if (index.op != ExprOp::kVar || static_cast<VarId>(index.i) != loop.vars[d]) return false;
      }
      return true;
    });
  }

  // Whether `id` is zero when the loop begins.
  bool StartsFromZero(BufferId id) const {
    for (size_t i = at_; i-- > 0;) {
      if (auto* alloc = std::get_if<Alloc>(&body_[i].op)) {
        if (alloc->buffer == id) return true;
        continue;
      }
      if (!BuffersWritten(body_[i]).contains(id)) continue;
      auto* fill = std::get_if<Fill>(&body_[i].op);
      return fill != nullptr && s_.IsWhole(fill->dst) && IsZero(s_.program.exprs, fill->value);
    }
    return false;
  }

  Expr Zero(BufferId id) {
    const DType type = s_.buffer(id).dtype;
    return IsFloat(type) ? s_.E().Float(0, type) : s_.E().Int(0, type);
  }

  TileState& s_;
  Block& body_;
  const size_t at_;
  const For loop_;
  std::vector<BufferId> sums_;
};

}  // namespace

absl::Status SplitSumsOverBlocks(TileState& state) {
  const auto ways_of = [&](const For& loop) {
    int64_t ways = 1;
    if (loop.split) state.E().AsInt(loop.split, &ways);
    return ways;
  };
  const auto name = [&](const For& loop, const SourceLoc& loc) { return Cat("  loop over ", state.program.vars[loop.var].name, Where(state.program, loc)); };
  for (size_t i = 0; i < state.L().body.size(); ++i) {
    auto* loop = std::get_if<For>(&state.L().body[i].op);
    if (loop == nullptr || ways_of(*loop) == 1) continue;
    SumSplitter splitter(state, i);
    const std::string text = name(*loop, state.L().body[i].loc), why = splitter.WhyNot(ways_of(*loop));
    if (!why.empty()) {
      state.report += Cat(text, ": not split: ", why, "\n");
      continue;
    }
    const int ways = static_cast<int>(ways_of(*loop));
    std::string sums;
    for (BufferId id : splitter.sums()) sums += Cat(sums.empty() ? "" : ", ", state.buffer(id).name);
    state.report += Cat(text, ways == 0 ? ": shared by all blocks" : Cat(": split over ", ways, " blocks"), ", which add up ", sums, "\n");
    splitter.Split(ways);
    break;
  }
  ForEachStmt(state.L().body, [&](const Stmt& stmt) {
    auto* loop = std::get_if<For>(&stmt.op);
    const bool known = loop == nullptr || ways_of(*loop) == 1 || state.report.find(name(*loop, stmt.loc)) != std::string::npos;
    if (!known) state.report += Cat(name(*loop, stmt.loc), ": not split: ", state.split ? "another loop is" : "it stands in a loop or condition", "\n");
  });
  return absl::OkStatus();
}

}  // namespace tilert
