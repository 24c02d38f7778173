#include "frontend/legalize.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/element_access.h"
#include "frontend/four_bits.h"
#include "frontend/joined_bits.h"
#include "frontend/program_edit.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

class Legalizer : ElementAccess {
 public:
  Legalizer(const std::vector<View>& views, const std::vector<Reducer>& reducers, Program* program)
      : ElementAccess(views, program), reducers_(reducers) {}

  absl::Status Run() {
    for (uint32_t i = 0; i < p_.launches.size(); ++i) {
      EnterLaunch(i);
      p_.launches[i].body = Walk(p_.launches[i].body);
    }
    return status_;
  }

 private:
  // Stores to a view of another dtype; the value is computed before any of it is overwritten.
  void AddJoinedStore(const Stmt& stmt, const View& view, Store store, Block* out) {
    if (view.splits > 0)
      return Refuse(stmt, store.buffer, "elements are stored as a whole, not through the view", "copy to another buffer first");
    const DType type = p_.buffers[store.buffer].dtype;
    p_.vars.push_back({"bits", type});
    const auto var = static_cast<VarId>(p_.vars.size() - 1);
    out->push_back({Let{var, Converted(store.value, type)}, stmt.loc});
    const std::vector<Expr> parts = JoinedBits(p_).Split(p_.exprs.Leaf(ExprOp::kVar, var, type), p_.buffers[view.base].dtype);
    for (size_t i = 0; i < parts.size(); ++i) {
      Store part{view.base, store.indices, parts[i]};
      part.indices.push_back(p_.exprs.Int(static_cast<int64_t>(i)));
      AddStore(stmt, std::move(part), out);
    }
  }

  // `store` has been lowered but for its target.
  void AddStore(const Stmt& stmt, Store store, Block* out) {
    Resolve(&store.buffer, &store.indices);
    const View* view = Find(store.buffer);
    if (view && view->joins + view->splits > 0) return AddJoinedStore(stmt, *view, std::move(store), out);
    out->push_back({std::move(store), stmt.loc});
  }

  // What is stored in 4 bits is rounded to them; single elements of a tensor share their byte with others.
  void RoundFor(const Stmt& stmt, Store* store) {
    const View* view = Find(store->buffer);
    if (view == nullptr || view->packing == Packing::kNone) return;
    if (view->half)
      return Refuse(stmt, store->buffer, "single elements cannot be stored in the 4-bit tensor", "store a tile with T.copy");
    store->value = FourBits(p_).Rounded(view->packing, store->value);
  }

  // --- statements
  void Refuse(const Stmt& stmt, BufferId buffer, std::string_view what, std::string_view hint) {
    if (!status_.ok()) return;
    const std::string_view name = p_.buffers[buffer].name;
    status_ = absl::InvalidArgumentError(Cat(PlaceOf(p_, stmt.loc), "error: ", what, " '", name, "'\n  hint: ", hint));
  }

  Block Walk(const Block& block) {
    Block out;
    for (const Stmt& stmt : block) Add(stmt, &out);
    return out;
  }

  void Add(Stmt stmt, Block* out) {
    const bool in_loop = parallel_depth_ > 0;
    if (const auto* s = std::get_if<Copy>(&stmt.op); s && (in_loop || Find(s->src.buffer) || Find(s->dst.buffer)))
      return AddCopy(stmt, *s, out);
    if (const auto* s = std::get_if<AtomicTile>(&stmt.op); s && (in_loop || Find(s->src.buffer) || Find(s->dst.buffer)))
      return AddAtomic(stmt, *s, out);
    if (const auto* s = std::get_if<Fill>(&stmt.op);
        s && ((in_loop && p_.buffers[s->dst.buffer].scope != Scope::kLocal) || Find(s->dst.buffer)))
      return AddFill(stmt, *s, out);
    if (std::holds_alternative<Parallel>(stmt.op)) return AddParallel(std::move(stmt), out);
    if (const auto* s = std::get_if<Annotate>(&stmt.op); s && s->buffer != kNoId && Find(s->buffer))
      return AddAnnotation(stmt, *s, out);
    std::vector<Stmt> after;
    std::visit(Overloaded{
                   [](auto&) {},
                   [&](Gemm& s) {
                     Stage(stmt, &s.a, true, false, out, &after);
                     Stage(stmt, &s.b, true, false, out, &after);
                     Stage(stmt, &s.c, !s.clear_accum, true, out, &after);
                   },
                   [&](Reduce& s) {
                     Stage(stmt, &s.src, true, false, out, &after);
                     Stage(stmt, &s.dst, !s.clear, true, out, &after);
                   },
                   [&](Scan& s) {
                     const bool in_place = s.src.buffer == s.dst.buffer && s.src == s.dst;
                     Stage(stmt, &s.src, true, in_place, out, &after);
                     if (in_place) {
                       s.dst = s.src;
                     } else {
                       Stage(stmt, &s.dst, false, true, out, &after);
                     }
                   },
                   [&](For& s) { NoteVar(s.var, s.begin, s.end); },
               },
               stmt.op);
    AddLowered(std::move(stmt), out);
    for (Stmt& copy : after) Add(std::move(copy), out);
  }

  // A statement that stays what it is, with what it holds lowered.
  void AddLowered(Stmt stmt, Block* out) {
    ForEachExpr(stmt, [&](Expr& e) { e = Lower(e); });
    if (auto* store = std::get_if<Store>(&stmt.op)) {
      RoundFor(stmt, store);
      return AddStore(stmt, std::move(*store), out);
    }
    std::visit(
        [&](auto& s) {
          if constexpr (requires { s.buffer, s.indices; }) Resolve(&s.buffer, &s.indices);
        },
        stmt.op);
    const auto* atomic = std::get_if<Atomic>(&stmt.op);
    if (const View* view = atomic ? Find(atomic->buffer) : nullptr; view && view->joins + view->splits > 0)
      return Refuse(stmt, atomic->buffer, "an atomic cannot work on the view", "work on the buffer itself");
    for (Block* child : ChildBlocks(stmt)) *child = Walk(*child);
    out->push_back(std::move(stmt));
  }

  // --- parallel loops
  void AddParallel(Stmt stmt, Block* out) {
    auto& loop = std::get<Parallel>(stmt.op);
    while (loop.body.size() == 1) {
      auto* inner = std::get_if<Parallel>(&loop.body[0].op);
      if (inner == nullptr || DependsOn(inner->extents, loop.vars)) break;
      loop.vars.insert(loop.vars.end(), inner->vars.begin(), inner->vars.end());
      loop.extents.insert(loop.extents.end(), inner->extents.begin(), inner->extents.end());
      loop.coalesced_width = std::max(loop.coalesced_width, inner->coalesced_width);
      Block body = std::move(inner->body);
      loop.body = std::move(body);
    }
    for (size_t i = 0; i < loop.vars.size(); ++i) NoteVar(loop.vars[i], p_.exprs.Int(0), loop.extents[i]);
    if (parallel_depth_ > 0) return AddInOrder(stmt.loc, std::move(loop), out);
    Block after;
    for (Stmt& s : loop.body) MoveAccumulation(loop, &s, out, &after);
    ++parallel_depth_;
    AddLowered(std::move(stmt), out);
    --parallel_depth_;
    for (Stmt& s : after) Add(std::move(s), out);
  }

  bool DependsOn(const std::vector<Expr>& exprs, const std::vector<VarId>& vars) const {
    bool depends = false;
    for (const Expr root : exprs) {
      ForEachNode(p_.exprs, root, [&](Expr, const ExprNode& node) {
        depends |= node.op == ExprOp::kVar && std::find(vars.begin(), vars.end(), static_cast<VarId>(node.i)) != vars.end();
      });
    }
    return depends;
  }

  // The points of a parallel loop inside another, one after the other.
  void AddInOrder(SourceLoc loc, Parallel loop, Block* out) {
    Block body = std::move(loop.body);
    for (size_t i = loop.vars.size(); i-- > 0;) {
      For serial;
      serial.kind = ForKind::kSerial;
      serial.var = loop.vars[i];
      serial.begin = serial.num_stages = p_.exprs.Int(0);
      serial.end = loop.extents[i];
      serial.step = p_.exprs.Int(1);
      serial.body = std::move(body);
      body.clear();
      body.push_back({std::move(serial), loc});
    }
    AddLowered(std::move(body[0]), out);
  }

  // `r[i] += v` in a loop over i and j: v goes to an element of its own, and the sums over j are added to r after the loop.
  void MoveAccumulation(const Parallel& loop, Stmt* stmt, Block* before, Block* after) {
    auto* store = std::get_if<Store>(&stmt->op);
    const auto reducer =
        std::find_if(reducers_.begin(), reducers_.end(), [&](const Reducer& r) { return store && r.buffer == store->buffer; });
    if (reducer == reducers_.end()) return;
    std::vector<bool> kept(loop.vars.size());
    Region target{store->buffer, {}, {}};
    size_t next = 0;
    for (const Expr index : store->indices) {
      while (next < loop.vars.size() && index != p_.exprs.Leaf(ExprOp::kVar, loop.vars[next], DType::kIndex)) ++next;
      if (next == loop.vars.size())
        return Refuse(*stmt, store->buffer, "the subscripts are not variables of the loop, in its order, of the reducer",
                      "accumulate as r[i] += value in a loop over i and others");
      kept[next] = true;
      target.start.push_back(p_.exprs.Int(0));
      target.extent.push_back(loop.extents[next++]);
    }
    if (std::find(kept.begin(), kept.end(), false) == kept.end()) return;
    const ExprOp op = reducer->op == ReduceOp::kSum ? ExprOp::kAdd : reducer->op == ReduceOp::kMax ? ExprOp::kMax : ExprOp::kMin;
    const ExprNode node = p_.exprs[store->value];
    const Expr old = p_.exprs.Load(store->buffer, p_.buffers[store->buffer].dtype, store->indices);
    if (node.op != op || (node.args[0] != old && node.args[1] != old))
      return Refuse(*stmt, store->buffer, "this is not an accumulation into the reducer",
                    "write r[i] += value, or r[i] = T.max(r[i], value)");
    const Expr value = node.args[0] == old ? node.args[1] : node.args[0];
    Region tile = Temporary(store->buffer, loop.extents, stmt->loc, before);
    store->buffer = tile.buffer;
    store->indices.clear();
    for (const VarId var : loop.vars) store->indices.push_back(p_.exprs.Leaf(ExprOp::kVar, var, DType::kIndex));
    store->value = value;
    for (size_t axis = kept.size(); axis-- > 0;) {
      if (kept[axis]) continue;
      kept.erase(kept.begin() + static_cast<ptrdiff_t>(axis));
      const bool is_last = std::find(kept.begin(), kept.end(), false) == kept.end();
      std::vector<Expr> extents = tile.extent;
      extents.erase(extents.begin() + static_cast<ptrdiff_t>(axis));
      const Region to = is_last ? target : Temporary(target.buffer, extents, stmt->loc, after);
      after->push_back({Reduce{reducer->op, tile, to, static_cast<uint32_t>(axis), !is_last}, stmt->loc});
      tile = to;
    }
  }

  // A new buffer like `model` of these extents, as a whole.
  Region Temporary(BufferId model, const std::vector<Expr>& extents, SourceLoc loc, Block* block) {
    Buffer buffer = p_.buffers[model];
    if (buffer.scope == Scope::kGlobal) buffer = {.name = buffer.name, .dtype = buffer.dtype, .scope = Scope::kFragment};
    buffer.shape = extents;
    const auto id = static_cast<BufferId>(p_.buffers.size());
    p_.buffers.push_back(std::move(buffer));
    block->push_back({Alloc{id}, loc});
    return {id, std::vector<Expr>(extents.size(), p_.exprs.Int(0)), extents};
  }

  // --- views
  // A parallel loop over the extents of `region` that are not 1. `vars` gets one variable each.
  Parallel LoopOver(const Region& region, std::vector<Expr>* vars) {
    static constexpr const char* kNames[] = {"i", "j", "k", "l"};
    Parallel loop;
    for (const Expr extent : region.extent) {
      if (p_.exprs.IsInt(extent, 1)) continue;
      loop.vars.push_back(static_cast<VarId>(p_.vars.size()));
      p_.vars.push_back({kNames[vars->size() % 4], DType::kIndex});
      loop.extents.push_back(extent);
      vars->push_back(p_.exprs.Leaf(ExprOp::kVar, loop.vars.back(), DType::kIndex));
    }
    if (!loop.vars.empty()) return loop;
    loop.vars.push_back(static_cast<VarId>(p_.vars.size()));
    p_.vars.push_back({"i", DType::kIndex});
    loop.extents.push_back(p_.exprs.Int(1));
    return loop;
  }

  // The element of `region` at `vars`, which stand for its extents that are not 1; nothing if their numbers differ.
  std::optional<std::vector<Expr>> ElementOf(const Region& region, const std::vector<Expr>& vars) {
    std::vector<Expr> indices;
    size_t next = 0;
    for (size_t i = 0; i < region.start.size(); ++i) {
      const bool is_one = p_.exprs.IsInt(region.extent[i], 1);
      if (!is_one && next == vars.size()) return std::nullopt;
      indices.push_back(is_one ? region.start[i] : Binary(ExprOp::kAdd, region.start[i], vars[next++]));
    }
    return next == vars.size() ? std::optional(std::move(indices)) : std::nullopt;
  }

  // Views of the same memory.
  bool Overlap(const Region& a, const Region& b) {
    const View *const x = Find(a.buffer), *const y = Find(b.buffer);
    return parallel_depth_ == 0 && (x != nullptr ? x->base : a.buffer) == (y != nullptr ? y->base : b.buffer);
  }

  Expr Converted(Expr value, DType type) { return p_.exprs[value].dtype == type ? value : p_.exprs.Cast(value, type); }

  void AddCopy(const Stmt& stmt, const Copy& s, Block* out) {
    if (s.is_async && s.barrier != kNoId)
      return Refuse(stmt, Find(s.src.buffer) ? s.src.buffer : s.dst.buffer,
                    "an asynchronous copy with a barrier cannot take the view", "use T.copy");
    if (Overlap(s.src, s.dst)) {  // all of the source is read first
      Copy first = s, second = s;
      first.dst = second.src = Temporary(s.src.buffer, s.src.extent, stmt.loc, out);
      second.fill = {};
      Add({std::move(first), stmt.loc}, out);
      return Add({std::move(second), stmt.loc}, out);
    }
    std::vector<Expr> vars;
    Parallel loop = LoopOver(s.src, &vars);
    const auto from = ElementOf(s.src, vars), to = ElementOf(s.dst, vars);
    if (const View* view = Find(s.dst.buffer); view && view->half) return AddPackedCopy(stmt, s, out);
    if (!from || !to)
      return Refuse(stmt, s.src.buffer, "the operands of this copy differ in rank; one of them is", "give both the same extents");
    const Buffer& src = p_.buffers[s.src.buffer];
    Expr value = p_.exprs.Load(s.src.buffer, src.dtype, *from);
    if (s.fill) {
      for (size_t i = 0; i < loop.vars.size(); ++i) NoteVar(loop.vars[i], p_.exprs.Int(0), loop.extents[i]);
      Expr inside;
      for (size_t i = 0; i < from->size(); ++i) inside = Both(inside, Inside((*from)[i], src.shape[i]));
      if (inside) value = p_.exprs.Make(ExprOp::kSelect, src.dtype, {inside, value, s.fill});
    }
    loop.coalesced_width = s.coalesced_width;
    loop.body.push_back({Store{s.dst.buffer, *to, Converted(value, p_.buffers[s.dst.buffer].dtype)}, stmt.loc});
    Add({std::move(loop), stmt.loc}, out);
  }

  // Two elements a byte, the last dimension of the target by pairs.
  void AddPackedCopy(const Stmt& stmt, const Copy& s, Block* out) {
    const View* view = Find(s.dst.buffer);
    int64_t extent = 1;
    const bool is_even = IsEven(s.dst.start.back()) && p_.exprs.AsInt(s.dst.extent.back(), &extent) && extent % 2 == 0;
    Region bytes{view->base, s.dst.start, s.dst.extent}, pairs = s.src;
    bytes.start.back() = Binary(ExprOp::kFloorDiv, bytes.start.back(), p_.exprs.Int(2));
    bytes.extent.back() = p_.exprs.Int(extent / 2);
    pairs.extent.back() = bytes.extent.back();
    std::vector<Expr> vars;
    Parallel loop = LoopOver(bytes, &vars);
    const auto from = ElementOf(pairs, vars), to = ElementOf(bytes, vars);
    if (!is_even || !from || !to || p_.exprs.IsInt(bytes.extent.back(), 1))
      return Refuse(stmt, s.dst.buffer, "a copy writes whole bytes, from an even column on, of the 4-bit tensor",
                    "copy an even number of columns");
    const Buffer& src = p_.buffers[s.src.buffer];
    Expr byte;
    for (int64_t half = 0; half < 2; ++half) {
      std::vector<Expr> at = *from;
      const Expr pair = Binary(ExprOp::kSub, at.back(), s.src.start.back());
      at.back() = Binary(ExprOp::kAdd, Binary(ExprOp::kAdd, s.src.start.back(), Binary(ExprOp::kMul, pair, p_.exprs.Int(2))),
                         p_.exprs.Int(half));
      const Expr value = Converted(p_.exprs.Load(s.src.buffer, src.dtype, at), ElementType(view->packing));
      const Expr code = FourBits(p_).Encode(view->packing, value);
      byte = half == 0
                 ? code
                 : p_.exprs.Binary(ExprOp::kBitOr, byte, p_.exprs.Binary(ExprOp::kShl, code, p_.exprs.Int(4, DType::kUInt8)));
    }
    loop.body.push_back({Store{view->base, *to, byte}, stmt.loc});
    Add({std::move(loop), stmt.loc}, out);
  }

  bool IsEven(Expr e) const {
    int64_t number = 0;
    if (p_.exprs.AsInt(e, &number)) return number % 2 == 0;
    const ExprNode& node = p_.exprs[e];
    if (node.op == ExprOp::kMul) return IsEven(node.args[0]) || IsEven(node.args[1]);
    return (node.op == ExprOp::kAdd || node.op == ExprOp::kSub) && IsEven(node.args[0]) && IsEven(node.args[1]);
  }

  void AddFill(const Stmt& stmt, const Fill& s, Block* out) {
    std::vector<Expr> vars;
    Parallel loop = LoopOver(s.dst, &vars);
    loop.body.push_back({Store{s.dst.buffer, *ElementOf(s.dst, vars), s.value}, stmt.loc});
    Add({std::move(loop), stmt.loc}, out);
  }

  void AddAtomic(const Stmt& stmt, const AtomicTile& s, Block* out) {
    if (Overlap(s.src, s.dst)) {
      AtomicTile second = s;
      second.src = Temporary(s.src.buffer, s.src.extent, stmt.loc, out);
      Add({Copy{s.src, second.src}, stmt.loc}, out);
      return Add({std::move(second), stmt.loc}, out);
    }
    std::vector<Expr> vars;
    Parallel loop = LoopOver(s.src, &vars);
    const auto from = ElementOf(s.src, vars), to = ElementOf(s.dst, vars);
    if (!from || !to)
      return Refuse(stmt, s.dst.buffer, "the operands of this atomic differ in rank; one of them is",
                    "give both the same extents");
    const Expr value =
        Converted(p_.exprs.Load(s.src.buffer, p_.buffers[s.src.buffer].dtype, *from), p_.buffers[s.dst.buffer].dtype);
    loop.body.push_back({Atomic{s.op, s.dst.buffer, *to, value, s.order}, stmt.loc});
    Add({std::move(loop), stmt.loc}, out);
  }

  void AddAnnotation(const Stmt& stmt, const Annotate& s, Block* out) {
    const bool is_itself = Find(s.buffer)->base == s.buffer;
    if (s.kind == AnnotationKind::kSafeValue && !is_itself)
      return Refuse(stmt, s.buffer, "a safe value cannot be given for the view", "annotate the buffer itself");
    if (s.kind == AnnotationKind::kSafeValue) out->push_back(stmt);  // a layout is that of the buffer below, which has its own
  }

  // A region of a view that a statement works on as a whole: a buffer of its own, copied in before and out after.
  void Stage(const Stmt& stmt, Region* region, bool is_read, bool is_written, Block* out, std::vector<Stmt>* after) {
    if (Find(region->buffer) == nullptr) return;
    const Buffer& view = p_.buffers[region->buffer];
    if (view.scope == Scope::kGlobal)
      return Refuse(stmt, region->buffer, "this statement cannot work on the view", "copy it to shared memory first");
    const Region whole = Temporary(region->buffer, region->extent, stmt.loc, out);
    if (is_read) Add({Copy{*region, whole}, stmt.loc}, out);
    if (is_written) after->push_back({Copy{whole, *region}, stmt.loc});
    *region = whole;
  }

  const std::vector<Reducer>& reducers_;
  int parallel_depth_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<BufferId>> Legalize(const std::vector<View>& views, const std::vector<Reducer>& reducers,
                                               Program* program) {
  if (absl::Status status = Legalizer(views, reducers, program).Run(); !status.ok()) return status;
  if (absl::Status status = SplitAtGridSyncs(program); !status.ok()) return status;
  std::vector<bool> is_view(program->buffers.size());
  for (const View& view : views) is_view[view.buffer] = view.base != view.buffer;
  std::vector<BufferId> number;
  BufferId next = 0;
  for (const bool gone : is_view) number.push_back(gone ? kNoId : next++);
  if (!views.empty()) Renumber(number, program);
  return number;
}

}  // namespace tilert::frontend
