#include "lowering/emit_unroll.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "ir/status_util.h"

namespace tilert {
namespace {

// ---- registers that go round

// What a loop adds to the index of a register: nothing, or a multiple of its counter; none where it is neither.
std::optional<int64_t> RegisterStride(const LayoutDim& dim, const Nest::Loop& loop) {
  int64_t weight = 1, stride = 0;
  for (const Factor& f : dim.factors) {
    const int64_t end = weight * f.size;
    if (loop.weight < end && loop.weight * loop.size > weight) {
      const bool whole = loop.weight % weight == 0 && f.size % (loop.weight / weight * loop.size) == 0;
      if (!whole) return std::nullopt;
      if (f.owner == Owner::kReg) stride = loop.weight / weight * f.stride;
    } else if (loop.weight >= end && loop.weight % end != 0) {
      return std::nullopt;
    }
    weight = end;
  }
  return stride;
}

// A register buffer that a loop goes along, and how.
struct Rotation {
  size_t use;      // in the list of uses
  int64_t stride;  // elements
};

// What of `uses` rotates after each turn of `loop`; none where something cannot. `reach`: per use, how many of the buffer's first
// elements the loop and those in it touch.
std::optional<std::vector<Rotation>> Rotations(const EmitContext& c, const Nest::Loop& loop, const std::vector<RegisterUse>& uses,
                                               const std::vector<int64_t>& reach) {
  std::vector<Rotation> rotations;
  for (size_t u = 0; u < uses.size(); ++u) {
    const kir::Buffer& buffer = c.buffer(uses[u].buffer);
    if (buffer.space != kir::Space::kRegister) continue;
    int64_t stride = 0;
    for (size_t d = 0; d < uses[u].follows.size(); ++d) {
      if (uses[u].follows[d] == RegisterUse::kOther) return std::nullopt;
      if (uses[u].follows[d] != static_cast<int>(loop.dim)) continue;
      const std::optional<int64_t> added = RegisterStride(buffer.layout.dims[d], loop);
      if (!added || (stride != 0 && *added != 0)) return std::nullopt;
      stride += *added;
    }
    if (stride == 0) continue;
    // What wgmma may be reading meanwhile stays where it is; nobody touches accumulators before they are there.
    if (c.operands[uses[u].buffer] || reach[u] % (stride * loop.size) != 0) return std::nullopt;
    rotations.push_back({u, stride});
  }
  return rotations;
}

std::string Call(const EmitContext& c, const RegisterUse& use, const Rotation& rotation, int64_t count, int64_t reach) {
  const DType type = c.buffer(use.buffer).dtype;
  const int64_t each = PerWord(type);
  if (rotation.stride % each == 0)
    return Cat("rotate<", rotation.stride / each, ", ", count, ", ", reach / each, ">(", c.buffers[use.buffer], ")");
  const std::string arguments = Cat(rotation.stride, ", ", count, ", ", reach, ">(", c.buffers[use.buffer], ")");
  return Cat("rotate_packed<", MemoryType(type), ", ", arguments);
}

// Each buffer goes along a loop in one way.
bool RotateAlike(const EmitContext& c, const std::vector<RegisterUse>& uses) {
  for (const RegisterUse& use : uses) {
    if (c.buffer(use.buffer).space != kir::Space::kRegister) continue;
    for (const RegisterUse& other : uses) {
      if (use.buffer == other.buffer && !(use == other)) return false;
    }
  }
  return true;
}

int64_t GreatestDivisor(int64_t n, int64_t most) {
  int64_t divisor = std::clamp<int64_t>(most, 1, n);
  while (n % divisor != 0) --divisor;
  return divisor;
}

}  // namespace

int64_t LargestPart(std::vector<int64_t> sizes, int64_t most) {
  std::sort(sizes.begin(), sizes.end());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t share = most / static_cast<int64_t>(sizes.size() - i);
    if (sizes[i] > share) return share;
    most -= sizes[i];
  }
  return std::numeric_limits<int64_t>::max();
}

std::vector<RegisterUse> RegisterUses(const EmitContext& c, const kir::Elementwise& loop) {
  std::vector<RegisterUse> uses;
  std::vector<VarId> inner;  // bound in the body
  const auto add = [&](BufferId buffer, absl::Span<const Expr> subscripts) {
    if (c.buffer(buffer).space != kir::Space::kRegister) return;
    RegisterUse use{buffer, {}};
    for (Expr e : subscripts) {
      int follows = RegisterUse::kNone;
      ForEachNode(c.kernel.exprs, e, [&](Expr, const ExprNode& node) {
        if (node.op != ExprOp::kVar) return;
        const auto var = std::find(loop.vars.begin(), loop.vars.end(), static_cast<VarId>(node.i));
        const bool alone = c.node(e).op == ExprOp::kVar;
        if (var != loop.vars.end()) follows = alone ? static_cast<int>(var - loop.vars.begin()) : RegisterUse::kOther;
        if (std::count(inner.begin(), inner.end(), static_cast<VarId>(node.i)) > 0) follows = RegisterUse::kOther;
      });
      use.follows.push_back(follows);
    }
    if (std::count(uses.begin(), uses.end(), use) == 0) uses.push_back(use);
  };
  const std::function<void(const kir::Block&)> walk = [&](const kir::Block& body) {
    for (const kir::Stmt& stmt : body) {
      if (const auto* let = std::get_if<kir::Let>(&stmt.op)) inner.push_back(let->var);
      if (const auto* store = std::get_if<kir::Store>(&stmt.op)) add(store->buffer, store->indices);
      kir::ForEachExpr(stmt, [&](Expr root) {
        ForEachNode(c.kernel.exprs, root, [&](Expr, const ExprNode& node) {
          if (node.op == ExprOp::kLoad) add(static_cast<BufferId>(node.i), node.args);
        });
      });
      for (const kir::Block* block : kir::ChildBlocks(stmt)) walk(*block);
    }
  };
  walk(loop.body);
  return uses;
}

RegisterUse RegisterUseOf(const EmitContext& c, const kir::TileAccess& access) {
  RegisterUse use{access.buffer, access.follows};
  for (size_t d = 0; d < use.follows.size(); ++d) {
    if (use.follows[d] >= 0 && !c.kernel.exprs.IsInt(access.start[d], 0)) use.follows[d] = RegisterUse::kOther;
  }
  return use;
}

void LimitUnrolling(EmitContext& c, Nest& nest, int64_t size, const std::vector<RegisterUse>& uses) {
  int64_t total = size * nest.vector, most = size < kLongPoint ? INT64_MAX : kMostOfLongPoints;
  for (const Nest::Loop& loop : nest.loops) total *= loop.size;
  c.unrolled_sizes.push_back(std::min(total, std::max(size, most)) * c.turns_around);
  most = std::min(most, c.most_unrolled / c.turns_around);
  c.limited = total > most;
  if (!c.limited || !RotateAlike(c, uses)) return;
  std::vector<int64_t> reach;
  for (const RegisterUse& use : uses) reach.push_back(c.buffer(use.buffer).layout.regs());
  for (size_t i = 0; i < nest.loops.size() && total > most; ++i) {
    const int64_t part = GreatestDivisor(nest.loops[i].size, most / (total / nest.loops[i].size));
    if (part == nest.loops[i].size) continue;
    Nest::Loop kept = nest.loops[i];
    kept.size /= part, kept.weight *= part;
    const std::optional<std::vector<Rotation>> rotations = Rotations(c, kept, uses, reach);
    if (!rotations) continue;
    total /= kept.size;
    std::vector<std::string> calls;
    for (const Rotation& rotation : *rotations) {
      int64_t& reached = reach[rotation.use];
      calls.push_back(Call(c, uses[rotation.use], rotation, kept.size, reached));
      total += rotation.stride % PerWord(c.buffer(uses[rotation.use].buffer).dtype) == 0 ? reached : 2 * reached;
      if (rotation.stride * kept.size == reached) reached = rotation.stride;
    }
    if (part > 1) SplitLoop(c, nest, i, part);
    KeepLoop(nest, i, calls);
    c.rotates |= !calls.empty();
    if (part > 1) ++i;
  }
}

}  // namespace tilert
