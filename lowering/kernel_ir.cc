#include "lowering/kernel_ir.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ir/stmt.h"

namespace tilert::kir {

Stmt::Stmt(StmtOp operation, SourceLoc location) : op(std::move(operation)), loc(location) {}
Stmt::Stmt() = default;
Stmt::Stmt(const Stmt&) = default;
Stmt::Stmt(Stmt&&) noexcept = default;
Stmt& Stmt::operator=(const Stmt&) = default;
Stmt& Stmt::operator=(Stmt&&) noexcept = default;
Stmt::~Stmt() = default;

Kernel::Kernel() = default;
Kernel::Kernel(const Kernel&) = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(const Kernel&) = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;
namespace {

// The nested blocks of a statement, for const and mutable statements alike.
template <typename BlockPtr, typename AnyStmt>
std::vector<BlockPtr> Children(AnyStmt& stmt) {
  return std::visit(
      [](auto& op) -> std::vector<BlockPtr> {
        using Op = std::remove_cvref_t<decltype(op)>;
        std::vector<BlockPtr> blocks;
        if constexpr (std::is_same_v<Op, If>) blocks = {&op.then_body, &op.else_body};
        if constexpr (requires { op.body; }) blocks = {&op.body};
        if constexpr (std::is_same_v<Op, Roles>) {
          for (auto& role : op.roles) blocks.push_back(&role.body);
        }
        return blocks;
      },
      stmt.op);
}

// Visits the expressions an operand holds, whatever kind of operand it is.
template <typename Visit>
class ExprVisitor {
 public:
  explicit ExprVisitor(const Visit& visit) : visit_(visit) {}
  template <typename E> requires std::is_same_v<std::remove_const_t<E>, Expr>
  void operator()(E& e) const { if (e) visit_(e); }
  template <typename Access> requires requires(Access& a) { a.start; }
  void operator()(Access& access) const { Each(access.start); }
  template <typename Exprs> requires std::is_same_v<std::remove_const_t<Exprs>, std::vector<Expr>>
  void operator()(Exprs& exprs) const { Each(exprs); }
  template <typename List> requires std::is_same_v<std::remove_const_t<List>, std::vector<Retired>>
  void operator()(List& retires) const { for (auto& r : retires) (*this)(r.version); }

 private:
  template <typename List>
  void Each(List& list) const { for (auto& e : list) visit_(e); }
  const Visit& visit_;
};

// Ops without expressions of their own. A new op must be put here or given a line in VisitExprs.
template <typename Op>
constexpr bool kNoExprs = false;
template <> constexpr bool kNoExprs<Declare> = true;
template <> constexpr bool kNoExprs<Break> = true;
template <> constexpr bool kNoExprs<Continue> = true;
template <> constexpr bool kNoExprs<Elementwise> = true;
template <> constexpr bool kNoExprs<CpAsyncCommit> = true;
template <> constexpr bool kNoExprs<LaneReduce> = true;
template <> constexpr bool kNoExprs<Mma> = true;
template <> constexpr bool kNoExprs<BarSync> = true;
template <> constexpr bool kNoExprs<Roles> = true;
template <> constexpr bool kNoExprs<ForTiles> = true;
template <> constexpr bool kNoExprs<WgmmaFence> = true;
template <> constexpr bool kNoExprs<WgmmaCommit> = true;
template <> constexpr bool kNoExprs<StoreCommit> = true;
template <> constexpr bool kNoExprs<ProxyFence> = true;
template <> constexpr bool kNoExprs<Acquire> = true;
template <> constexpr bool kNoExprs<ExpectTx> = true;
template <> constexpr bool kNoExprs<Release> = true;
template <> constexpr bool kNoExprs<OrderWait> = true;
template <> constexpr bool kNoExprs<OrderPass> = true;
template <> constexpr bool kNoExprs<ClusterSync> = true;
template <> constexpr bool kNoExprs<PartStore> = true;
template <> constexpr bool kNoExprs<SumsGive> = true;
template <> constexpr bool kNoExprs<SumsTake> = true;

// The visitor of ForEachExpr; `visit` takes Expr& or const Expr&.
template <typename AnyStmt, typename Visit>
void VisitExprs(AnyStmt& stmt, const Visit& visit) {
  const ExprVisitor v(visit);
  std::visit(Overloaded{
                 [&](auto& op) requires requires { op.begin; } { v(op.begin), v(op.end), v(op.step); },
                 [&](auto& op) requires requires { op.cond; } { v(op.cond); },
                 [&](auto& op) requires(requires { op.value; } && !requires { op.indices; } && !requires { op.lane; }) { v(op.value); },
                 [&](auto& op) requires requires { op.lane; } { v(op.value), v(op.lane); },
                 [&](auto& op) requires(requires { op.index; } && !requires { op.coords; }) {
                   v(op.index);
                   if constexpr (requires { op.parity; }) v(op.parity);
                   if constexpr (std::is_same_v<std::remove_cvref_t<decltype(op)>, MbarExpect>) v(op.bytes);
                 },
                 [&](auto& op) requires requires { op.indices; } { v(op.indices), v(op.value); },
                 [&](auto& op) requires requires { op.fill, op.dst.start; } { v(op.dst), v(op.src), v(op.fill); },
                 [&](auto& op) requires requires { op.retires; } { v(op.retires); },
                 [&](auto& op) requires requires { op.args; } { v(op.args); },
                 [&](auto& op) requires requires { op.zero, op.a.start; } { v(op.a), v(op.b), v(op.zero); },
                 [&](auto& op) requires(requires { op.coords; } && !requires { op.version; }) { v(op.coords); },
                 [&](auto& op) requires requires { op.coords, op.version; } {
                   v(op.version), v(op.coords);
                   if constexpr (requires { op.index; }) v(op.index);
                 },
                 [&](auto& op) requires requires { op.count; } { v(op.count); },
                 [&](auto& op) requires requires { op.peer; } { v(op.peer); },
                 [](auto& op) requires kNoExprs<std::remove_cvref_t<decltype(op)>> {},
             },
             stmt.op);
}

void AddUse(const SharedUse& use, std::vector<SharedUse>* uses) {
  for (SharedUse& u : *uses) {
    if (u.buffer == use.buffer && u.version == use.version && u.async == use.async && u.proxy == use.proxy) {
      u.write = u.write || use.write;
      return;
    }
  }
  uses->push_back(use);
}

void AddUses(const Kernel& kernel, const Stmt& stmt, std::vector<SharedUse>* uses) {
  const auto is_shared = [&kernel](BufferId id) { return kernel.buffers[id].space == Space::kShared; };
  ForEachExpr(stmt, [&](Expr e) {
    ForEachNode(kernel.exprs, e, [&](Expr, const ExprNode& node) {
      const auto id = static_cast<BufferId>(node.i);
      if (node.op == ExprOp::kLoad && is_shared(id)) AddUse({id, node.args[0], false, false}, uses);
    });
  });
  if (const auto* store = std::get_if<Store>(&stmt.op)) {
    if (is_shared(store->buffer)) AddUse({store->buffer, store->indices[0], true, false}, uses);
  } else if (const auto* atomic = std::get_if<Atomic>(&stmt.op)) {
    if (is_shared(atomic->buffer)) AddUse({atomic->buffer, atomic->indices[0], true, false}, uses);
  } else if (const auto* copy = std::get_if<Copy>(&stmt.op)) {
    if (is_shared(copy->src.buffer)) AddUse({copy->src.buffer, copy->src.start[0], false, false}, uses);
    if (is_shared(copy->dst.buffer))
      AddUse({copy->dst.buffer, copy->dst.start[0], true, copy->method == CopyMethod::kCpAsync}, uses);
  } else if (const auto* gemm = std::get_if<Wgmma>(&stmt.op)) {
    for (const TileAccess* operand : {&gemm->a, &gemm->b}) {
      if (is_shared(operand->buffer)) AddUse({operand->buffer, operand->start[0], false, true, true}, uses);
    }
  } else if (const auto* load = std::get_if<TmaLoad>(&stmt.op)) {
    AddUse({load->dst, load->version, true, true, true}, uses);
  } else if (const auto* store = std::get_if<TmaStore>(&stmt.op)) {
    AddUse({store->src, store->version, false, true, true}, uses);
  } else if (const auto* part = std::get_if<PartStore>(&stmt.op)) {
    AddUse({part->part, {}, true}, uses);
  }
  for (const Block* block : ChildBlocks(stmt)) {
    for (const Stmt& child : *block) AddUses(kernel, child, uses);
  }
}

}  // namespace

std::vector<Block*> ChildBlocks(Stmt& stmt) { return Children<Block*>(stmt); }
std::vector<const Block*> ChildBlocks(const Stmt& stmt) { return Children<const Block*>(stmt); }

void ForEachExpr(Stmt& stmt, const std::function<void(Expr&)>& visit) { VisitExprs(stmt, visit); }
void ForEachExpr(const Stmt& stmt, const std::function<void(Expr)>& visit) { VisitExprs(stmt, visit); }

bool IsPersistent(const Kernel& kernel) {
  const auto walks = [](const Block& block) {
    return std::any_of(block.begin(), block.end(), [](const Stmt& stmt) { return std::holds_alternative<ForTiles>(stmt.op); });
  };
  for (const Stmt& stmt : kernel.body) {
    if (std::holds_alternative<ForTiles>(stmt.op)) return true;
    if (!std::holds_alternative<Roles>(stmt.op)) continue;
    for (const Block* body : ChildBlocks(stmt)) {
      if (walks(*body)) return true;
    }
  }
  return false;
}

int ClusterExtent(const Kernel& kernel, ClusterAxes axes) {
  int extent = 1;
  for (size_t d = 0; d < kernel.cluster.size(); ++d) {
    if (axes >> d & 1) extent *= kernel.cluster[d];
  }
  return extent;
}
int ClusterSize(const Kernel& kernel) { return ClusterExtent(kernel, ~ClusterAxes{0}); }
ClusterAxes SplitAxis(const Kernel& kernel) { return kernel.cluster.empty() ? 0 : ClusterAxes{1} << (kernel.cluster.size() - 1); }

std::vector<int> PeersOf(const Kernel& kernel, const Ring& ring, int rank) {
  std::vector<int> peers;
  for (int peer = 0; peer < ClusterSize(kernel); ++peer) {
    ClusterAxes differ = 0;
    int a = rank, b = peer;
    for (size_t d = 0; d < kernel.cluster.size(); ++d) {
      if (a % kernel.cluster[d] != b % kernel.cluster[d]) differ |= ClusterAxes{1} << d;
      a /= kernel.cluster[d], b /= kernel.cluster[d];
    }
    const bool shares = std::any_of(ring.multicasts.begin(), ring.multicasts.end(), [differ](ClusterAxes axes) { return (differ & ~axes) == 0; });
    if (differ == 0 || shares) peers.push_back(peer);
  }
  return peers;
}

std::vector<int64_t> PartExtents(int64_t registers, int warps) { return {(registers + 3) / 4, int64_t{warps} * kLanes, 4}; }
int64_t PartBytes(int64_t registers, int warps) {
  int64_t bytes = 4;
  for (const int64_t extent : PartExtents(registers, warps)) bytes *= extent;
  return bytes;
}

size_t SubscriptCount(const Buffer& buffer) {
  switch (buffer.space) {
    case Space::kGlobal:
      return buffer.shape.size();
    case Space::kShared:
      return buffer.shared.extents.size() + 1;
    case Space::kRegister:
      return buffer.layout.dims.size();
    case Space::kInvalid:
      break;
  }
  return 0;
}

std::vector<SharedUse> SharedUses(const Kernel& kernel, const Stmt& stmt) {
  std::vector<SharedUse> uses;
  AddUses(kernel, stmt, &uses);
  return uses;
}

namespace {

// The sums that statements of `block` give, and how many warps run them.
const SumsGive* FindGive(const Block& block, int* warps) {
  for (const Stmt& stmt : block) {
    if (auto* give = std::get_if<SumsGive>(&stmt.op)) return give;
    if (auto* roles = std::get_if<Roles>(&stmt.op)) {
      for (const Role& role : roles->roles) {
        *warps = role.warps;
        if (const SumsGive* give = FindGive(role.body, warps)) return give;
      }
      continue;
    }
    for (const Block* child : ChildBlocks(stmt)) {
      if (const SumsGive* give = FindGive(*child, warps)) return give;
    }
  }
  return nullptr;
}

}  // namespace

int64_t GivenBytes(const Kernel& kernel) {
  int warps = kernel.warps;
  const SumsGive* const give = FindGive(kernel.body, &warps);
  if (give == nullptr) return 0;
  int64_t bytes = kFlagBytes;
  for (BufferId id : give->sums) bytes += PartBytes(kernel.buffers[id].layout.regs(), warps);
  return (bytes + 255) / 256 * 256;
}

int64_t Sharers(int64_t left, int64_t workers) {
  const int64_t even = left > 0 && 2 * left <= workers ? workers / left * left : 0;
  return 8 * even >= 7 * workers ? even : workers;
}

std::vector<Share> SharesOf(int64_t tiles, int64_t trips, int64_t workers, int64_t worker) {
  std::vector<Share> shares;
  const int64_t whole = trips <= 0 ? tiles : tiles / workers * workers;
  for (int64_t tile = worker; tile < whole; tile += workers) shares.push_back({tile, 0, std::max<int64_t>(trips, 0)});
  const int64_t left = tiles - whole, rest = left * trips;
  const int64_t sharers = Sharers(left, workers);
  if (worker >= sharers) return shares;
  const int64_t first = rest * worker / sharers;
  for (int64_t end = rest * (worker + 1) / sharers; end > first;) {
    const int64_t tile = (end - 1) / trips, start = tile * trips, begin = std::max(first, start);
    shares.push_back({whole + tile, begin - start, end - start});
    end = begin;
  }
  return shares;
}

}  // namespace tilert::kir
