#include "lowering/kernel_pass.h"
#include "lowering/ranges.h"

namespace tilert {
namespace {

class BoundsProver {
 public:
  explicit BoundsProver(kir::Kernel& kernel) : k_(kernel), ranges_(kernel) {
    for (size_t d = 0; d < k_.block_vars.size(); ++d) BindBelow(k_.block_vars[d], k_.exprs.Int(0), k_.grid[d]);
    for (const kir::Ring& ring : k_.rings) BindBelow(ring.slot, k_.exprs.Int(0), k_.exprs.Int(ring.slots));
  }

  void Process(kir::Block& block) {
    for (kir::Stmt& stmt : block) {
      if (auto* let = std::get_if<kir::Let>(&stmt.op)) {
        ranges_.Bind(let->var, ranges_.Of(let->value));
      } else if (auto* loop = std::get_if<kir::For>(&stmt.op)) {
        int64_t step = 0;
        if (k_.exprs.AsInt(loop->step, &step) && step > 0) BindBelow(loop->var, loop->begin, loop->end);
        Process(loop->body);
      } else if (auto* branch = std::get_if<kir::If>(&stmt.op)) {
        {
          const Ranges::Assume known(ranges_, branch->cond);
          Process(branch->then_body);
        }
        Process(branch->else_body);
      } else if (auto* loop = std::get_if<kir::While>(&stmt.op)) {
        Process(loop->body);
      } else if (auto* roles = std::get_if<kir::Roles>(&stmt.op)) {
        for (kir::Role& role : roles->roles) {
          if (role.instance != kNoId) BindBelow(role.instance, k_.exprs.Int(0), k_.exprs.Int(role.instances));
          Process(role.body);
        }
      } else if (auto* tiles = std::get_if<kir::ForTiles>(&stmt.op)) {
        Process(tiles->body);
      } else if (auto* copy = std::get_if<kir::Copy>(&stmt.op)) {
        Prove(copy->src, copy->layout);
        Prove(copy->dst, copy->layout);
      }
    }
  }

 private:
  // A loop or block variable: begin ≤ var < end.
  void BindBelow(VarId var, Expr begin, Expr end) {
    const Range from = ranges_.Of(begin), to = ranges_.Of(end);
    ranges_.Bind(var, Range{from.lo, to.hi - 1 < from.lo ? from.lo : to.hi - 1, 1}, end);
  }

  void Prove(kir::TileAccess& access, const FragmentLayout& layout) {
    const kir::Buffer& buffer = k_.buffers[access.buffer];
    for (size_t d = 0; d < access.start.size(); ++d) {
      const int64_t extent = access.follows[d] < 0 ? 1 : layout.dims[access.follows[d]].extent;
      const Range start = ranges_.Of(access.start[d]);
      const bool below = extent == 1 && buffer.space == kir::Space::kGlobal && ranges_.ProveLess(access.start[d], buffer.shape[d]);
      access.inside[d] = start.lo >= 0 && (below || start.hi + extent <= Least(buffer, d));
    }
  }

  // The smallest that dimension `d` of `buffer` can be.
  int64_t Least(const kir::Buffer& buffer, size_t d) const {
    if (buffer.space == kir::Space::kGlobal) return ranges_.Of(buffer.shape[d]).lo;
    if (buffer.space == kir::Space::kRegister) return buffer.layout.dims[d].extent;
    return d == 0 ? buffer.versions : buffer.shared.extents[d - 1];
  }

  kir::Kernel& k_;
  Ranges ranges_;
};

}  // namespace

absl::Status ProveBounds(KernelState& state) {
  BoundsProver(state.kernel).Process(state.kernel.body);
  return absl::OkStatus();
}

}  // namespace tilert
