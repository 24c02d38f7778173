#include <algorithm>

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
        if (k_.exprs.AsInt(loop->step, &step) && step > 0) BindBelow(loop->var, loop->begin, loop->end, step);
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
        LoadByElements(*copy);
      }
    }
  }

 private:
  // A loop or block variable: begin ≤ var < end.
  void BindBelow(VarId var, Expr begin, Expr end, int64_t step = 1) {
    ranges_.Bind(var, LoopRange(ranges_.Of(begin), ranges_.Of(end), ConstantRange(step)), end);
  }

  void Prove(kir::TileAccess& access, const FragmentLayout& layout) {
    const kir::Buffer& buffer = k_.buffers[access.buffer];
    const size_t first = buffer.space == kir::Space::kShared ? 1 : 0;
    for (size_t d = 0; d < access.start.size(); ++d) {
      const int64_t extent = access.follows[d] < 0 ? 1 : layout.dims[access.follows[d]].extent;
      const Range at = Sum(ranges_.Of(access.start[d]), {0, std::max<int64_t>(extent - 1, 0)});
      access.inside[d] = d < first ? at.lo >= 0 && at.hi < buffer.versions
                                   : ranges_.ProveInside(buffer, d - first, at, extent == 1 ? access.start[d] : Expr{});
    }
  }

  // ldmatrix has no predicate for what lies outside its tile. (The first subscript is a version, which there is.)
  void LoadByElements(kir::Copy& copy) const {
    if (copy.method != kir::CopyMethod::kLdmatrix && copy.method != kir::CopyMethod::kLdmatrixTrans) return;
    if (std::all_of(copy.src.inside.begin() + 1, copy.src.inside.end(), [](bool inside) { return inside; })) return;
    copy.method = kir::CopyMethod::kVector;
    copy.width = 1;
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
