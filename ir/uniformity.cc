#include "ir/uniformity.h"

#include <algorithm>

namespace tilert {
namespace {

constexpr int kMaxPasses = 8;  // each pass carries values once around the loops; four levels need few

Uniformity Join(Uniformity a, Uniformity b) { return std::max(a, b); }

// The group that shares thread // size, or that thread < size does not split.
Uniformity OfGroups(int64_t size) {
  if (size > 0 && size % 128 == 0) return Uniformity::kWarpgroup;
  return size > 0 && size % 32 == 0 ? Uniformity::kWarp : Uniformity::kThread;
}

}  // namespace

std::string_view UniformityText(Uniformity u) {
  switch (u) {
    case Uniformity::kBlock: return "block";
    case Uniformity::kWarpgroup: return "warpgroup";
    case Uniformity::kWarp: return "warp";
    case Uniformity::kThread: return "thread";
  }
  return "invalid";
}

ThreadUniformity::ThreadUniformity(const Program& program, const ThreadRegion& region) : p_(program), thread_(region.thread) {
  vars_[thread_] = Uniformity::kThread;
  for (int pass = 0;; ++pass) {
    changed_ = false;
    Walk(region.body, Uniformity::kBlock, nullptr);
    if (!changed_) return;
    if (pass < kMaxPasses) continue;
    // Too deep a chain to follow: nothing is known.
    for (auto* map : {&control_, &divergence_}) {
      for (auto& [key, u] : *map) u = Uniformity::kThread;
    }
    for (auto& [key, u] : vars_) u = Uniformity::kThread;
    for (auto& [key, u] : buffers_) u = Uniformity::kThread;
    return;
  }
}

template <typename Key>
void ThreadUniformity::Raise(absl::flat_hash_map<Key, Uniformity>& map, Key key, Uniformity u) {
  auto [it, is_new] = map.try_emplace(key, u);
  if (is_new) {
    changed_ |= u != Uniformity::kBlock;
  } else if (u > it->second) {
    it->second = u;
    changed_ = true;
  }
}

Uniformity ThreadUniformity::OfNode(const ExprNode& node, const absl::flat_hash_map<uint32_t, Uniformity>& below) const {
  if (node.op == ExprOp::kVar) {
    const auto it = vars_.find(static_cast<VarId>(node.i));
    return it == vars_.end() ? Uniformity::kBlock : it->second;
  }
  Uniformity u = Uniformity::kBlock;
  for (Expr arg : node.args) u = Join(u, below.at(arg.id));
  if (node.op == ExprOp::kLoad) {
    const auto it = buffers_.find(static_cast<BufferId>(node.i));
    return it == buffers_.end() ? u : Join(u, it->second);
  }
  // thread // 32, thread >> 5, thread < 64: whole warps agree.
  const bool is_thread = !node.args.empty() && p_.exprs[node.args[0]].op == ExprOp::kVar && p_.exprs[node.args[0]].i == thread_;
  int64_t size = 0;
  if (!is_thread || node.args.size() != 2 || !p_.exprs.AsInt(node.args[1], &size)) return u;
  if (node.op == ExprOp::kFloorDiv || node.op == ExprOp::kLt || node.op == ExprOp::kGe) return OfGroups(size);
  if (node.op == ExprOp::kShr && size >= 0 && size < 32) return OfGroups(int64_t{1} << size);
  return u;
}

Uniformity ThreadUniformity::Of(Expr e) const {
  if (!e) return Uniformity::kBlock;
  absl::flat_hash_map<uint32_t, Uniformity> below;
  ForEachNode(p_.exprs, e, [&](Expr id, const ExprNode& node) { below[id.id] = OfNode(node, below); });
  return below.at(e.id);
}

Uniformity ThreadUniformity::OfAll(const std::vector<Expr>& list) const {
  Uniformity u = Uniformity::kBlock;
  for (Expr e : list) u = Join(u, Of(e));
  return u;
}

Uniformity ThreadUniformity::ControlOf(const Stmt& stmt) const {
  const auto it = control_.find(&stmt);
  return it == control_.end() ? Uniformity::kThread : it->second;
}

void ThreadUniformity::Visit(const Stmt& stmt, Uniformity control, const Stmt* loop) {
  const auto loop_body = [&](const Block& body, Uniformity trips) {
    Raise(divergence_, &stmt, trips);
    Walk(body, Join(control, divergence_.at(&stmt)), &stmt);
  };
  std::visit(Overloaded{
                 [](const auto&) {},
                 [&](const Alloc& s) { Raise(buffers_, s.buffer, Uniformity::kBlock); },
                 [&](const Let& s) { Raise(vars_, s.var, Of(s.value)); },
                 [&](const Shuffle& s) { Raise(vars_, s.var, Join(Of(s.value), std::max(Uniformity::kWarp, Of(s.lane)))); },
                 [&](const Atomic& s) {
                   if (s.prev != kNoId) Raise(vars_, s.prev, Uniformity::kThread);
                 },
                 [&](const Store& s) {
                   const Scope scope = p_.buffers[s.buffer].scope;
                   const bool is_private = scope == Scope::kLocal || scope == Scope::kVar;
                   if (buffers_.contains(s.buffer)) {
                     Raise(buffers_, s.buffer, Join(control, Join(Of(s.value), OfAll(s.indices))));
                   } else if (is_private) {  // what another region has put there is not known
                     Raise(buffers_, s.buffer, Uniformity::kThread);
                   }
                 },
                 [&](const For& s) {
                   const Uniformity trips = OfAll({s.begin, s.end, s.step});
                   Raise(vars_, s.var, trips);
                   loop_body(s.body, trips);
                 },
                 [&](const While& s) { loop_body(s.body, Of(s.cond)); },
                 [&](const If& s) {
                   const Uniformity inner = Join(control, Of(s.cond));
                   Walk(s.then_body, inner, loop);
                   Walk(s.else_body, inner, loop);
                 },
                 [&](const Break&) {
                   if (loop != nullptr) Raise(divergence_, loop, control);
                 },
                 [&](const Continue&) {
                   if (loop != nullptr) Raise(divergence_, loop, control);
                 },
             },
             stmt.op);
}

void ThreadUniformity::Walk(const Block& block, Uniformity control, const Stmt* loop) {
  for (const Stmt& stmt : block) {
    Raise(control_, &stmt, control);
    Visit(stmt, control, loop);
  }
}

}  // namespace tilert
