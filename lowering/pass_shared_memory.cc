#include <algorithm>
#include <vector>

#include "ir/status_util.h"
#include "lowering/kernel_pass.h"

namespace tilert {
namespace {

constexpr int64_t kAlign = 128;

// Statements are numbered in program order; a buffer is live from its first to its last use, and through the whole of any loop
// that uses it, because it may carry values from one iteration to the next, unless each iteration begins with making it anew.
struct Live {
  BufferId buffer = kNoId;
  int first = -1, last = -1;
  int64_t bytes = 0;
  int64_t align = kAlign;
};

class Liveness {
 public:
  // `reuse_in_loops`: what each iteration makes anew lives in a part of it only. That saves memory, and costs barriers between
  // tiles that would otherwise lie apart.
  Liveness(const kir::Kernel& kernel, bool reuse_in_loops)
      : reuse_in_loops_(reuse_in_loops), kernel_(kernel), live_(kernel.buffers.size()), is_plain_(kernel.buffers.size(), true) {
    for (const kir::Stmt& stmt : kernel.body) {
      for (const kir::SharedUse& use : kir::SharedUses(kernel, stmt)) {
        if (use.proxy || use.async) is_plain_[use.buffer] = false;
      }
    }
  }

  std::vector<Live> Run() {
    Visit(kernel_.body);
    std::vector<Live> used;
    for (BufferId id = 0; id < live_.size(); ++id) {
      if (live_[id].first < 0) continue;
      const kir::Buffer& buffer = kernel_.buffers[id];
      live_[id].buffer = id;
      live_[id].bytes = buffer.shared.version_bytes() * buffer.versions;
      if (buffer.shared.swizzled) live_[id].align = std::max(kAlign, buffer.shared.pitch * kSwizzleRows);
      used.push_back(live_[id]);
    }
    return used;
  }

 private:
  void Visit(const kir::Block& block) {
    for (const kir::Stmt& stmt : block) {
      const bool leaf = kir::ChildBlocks(stmt).empty() || std::holds_alternative<kir::Elementwise>(stmt.op);
      const int begin = ++now_;
      if (!leaf) {
        for (const kir::Block* child : kir::ChildBlocks(stmt)) Visit(*child);
      }
      if (auto* loop = std::get_if<kir::For>(&stmt.op)) {
        UseInLoop(stmt, loop->body, begin, ++now_);
      } else if (auto* loop = std::get_if<kir::While>(&stmt.op)) {
        UseInLoop(stmt, loop->body, begin, ++now_);
      } else if (auto* tiles = std::get_if<kir::ForTiles>(&stmt.op)) {
        UseInLoop(stmt, tiles->body, begin, ++now_);
      } else if (leaf || std::holds_alternative<kir::If>(stmt.op)) {
        Use(stmt, begin, now_);
      } else if (auto* roles = std::get_if<kir::Roles>(&stmt.op)) {
        Concurrent(*roles, begin, ++now_);
      }
    }
  }

  void UseInLoop(const kir::Stmt& stmt, const kir::Block& body, int begin, int end) {
    for (const kir::SharedUse& use : kir::SharedUses(kernel_, stmt)) {
      if (!IsMadeAnew(use.buffer, body)) Extend(use.buffer, begin, end);
    }
  }

  // Does each run of `body` write all of the buffer before anything else touches it, and nothing touch it when its statement is
  // over?
  bool IsMadeAnew(BufferId id, const kir::Block& body) const {
    if (!reuse_in_loops_ || !is_plain_[id]) return false;
    for (const kir::Stmt& stmt : body) {
      bool touches = false, reads = false;
      for (const kir::SharedUse& use : kir::SharedUses(kernel_, stmt)) {
        touches |= use.buffer == id;
        reads |= use.buffer == id && !use.write;
      }
      if (!touches) continue;
      auto* copy = std::get_if<kir::Copy>(&stmt.op);
      return copy != nullptr && !reads && copy->method == kir::CopyMethod::kVector && CoversWhole(*copy, id);
    }
    return false;
  }

  bool CoversWhole(const kir::Copy& copy, BufferId id) const {
    const kir::Buffer& buffer = kernel_.buffers[id];
    const kir::TileAccess& to = copy.dst;
    if (to.buffer != id || buffer.versions != 1) return false;
    const size_t rank = buffer.shared.extents.size();
    std::vector<bool> followed(copy.layout.dims.size());
    for (size_t d = 0; d < rank; ++d) {
      const int dim = to.follows[d + 1];  // after the version
      const bool is_one = dim < 0 && buffer.shared.extents[d] == 1;
      if (!kernel_.exprs.IsInt(to.start[d + 1], 0) || (dim < 0 && !is_one)) return false;
      if (dim < 0) continue;
      if (followed[dim] || copy.layout.dims[dim].extent < buffer.shared.extents[d]) return false;
      followed[dim] = true;
    }
    return true;
  }

  // What several roles touch, and what the async proxy touches, may be in use at any time while the roles run: the order of
  // statements says nothing about it.
  void Concurrent(const kir::Roles& roles, int begin, int end) {
    int workers = 0;
    for (const kir::Role& role : roles.roles) workers += role.one_thread ? 0 : role.instances;
    for (const kir::Role& role : roles.roles) {
      for (const kir::Stmt& stmt : role.body) {
        for (const kir::SharedUse& use : kir::SharedUses(kernel_, stmt)) {
          if (use.proxy || workers > 1) Extend(use.buffer, begin, end);
        }
      }
    }
  }

  void Use(const kir::Stmt& stmt, int begin, int end) {
    for (const kir::SharedUse& use : kir::SharedUses(kernel_, stmt)) Extend(use.buffer, begin, end);
    // What is in flight touches its tiles until it is waited for, whoever else does.
    const auto retire = [&](const std::vector<kir::Retired>& list) {
      for (const kir::Retired& retired : list) {
        if (kernel_.buffers[retired.buffer].space == kir::Space::kShared) Extend(retired.buffer, begin, end);
      }
    };
    if (auto* wait = std::get_if<kir::CpAsyncWait>(&stmt.op)) retire(wait->retires);
    if (auto* wait = std::get_if<kir::WgmmaWait>(&stmt.op)) retire(wait->retires);
    if (auto* wait = std::get_if<kir::StoreWait>(&stmt.op)) retire(wait->retires);
  }

  void Extend(BufferId id, int begin, int end) {
    Live& live = live_[id];
    if (live.first < 0 || begin < live.first) live.first = begin;
    live.last = std::max(live.last, end);
  }

  const bool reuse_in_loops_;
  const kir::Kernel& kernel_;
  std::vector<Live> live_;
  std::vector<bool> is_plain_;  // touched only by statements that are done with it when they end
  int now_ = 0;
};

// Conditions on the block's rank in its cluster under which all uses of a buffer stand. A block has one rank: where two buffers'
// conditions exclude each other, no block uses both.
class RankConditions {
 public:
  explicit RankConditions(const kir::Kernel& kernel) : kernel_(kernel), of_(kernel.buffers.size()), used_(kernel.buffers.size()) {
    if (!kernel.cluster.empty()) Visit(kernel.body);
  }
  bool Exclusive(BufferId a, BufferId b) const {
    return std::any_of(of_[a].begin(), of_[a].end(), [&](const Fact& x) {
      return std::any_of(of_[b].begin(), of_[b].end(), [&](const Fact& y) { return x.cond == y.cond && x.holds != y.holds; });
    });
  }

 private:
  struct Fact {
    Expr cond;
    bool holds = true;
    bool operator==(const Fact&) const = default;
  };

  bool IsOfRank(Expr cond) const {
    bool rank = false, other = false;
    ForEachNode(kernel_.exprs, cond, [&](Expr, const ExprNode& node) {
      rank |= node.op == ExprOp::kVar && static_cast<VarId>(node.i) == kernel_.cluster_rank;
      other |= (node.op == ExprOp::kVar && static_cast<VarId>(node.i) != kernel_.cluster_rank) || node.op == ExprOp::kLoad;
    });
    return rank && !other;
  }
  Fact FactOf(Expr cond) const {
    const ExprNode& node = kernel_.exprs[cond];
    return node.op == ExprOp::kNot ? Fact{node.args[0], false} : Fact{cond, true};
  }

  void Use(BufferId id) {
    if (!used_[id]) of_[id] = facts_;
    used_[id] = true;
    std::erase_if(of_[id], [&](const Fact& fact) { return std::find(facts_.begin(), facts_.end(), fact) == facts_.end(); });
  }
  void Visit(const kir::Block& block) {
    for (const kir::Stmt& stmt : block) {
      const std::vector<const kir::Block*> children = kir::ChildBlocks(stmt);
      if (children.empty() || std::holds_alternative<kir::Elementwise>(stmt.op)) {
        for (const kir::SharedUse& use : kir::SharedUses(kernel_, stmt)) Use(use.buffer);
        continue;
      }
      kir::ForEachExpr(stmt, [&](Expr e) {
        ForEachNode(kernel_.exprs, e, [&](Expr, const ExprNode& node) {
          if (node.op == ExprOp::kLoad) Use(static_cast<BufferId>(node.i));
        });
      });
      auto* branch = std::get_if<kir::If>(&stmt.op);
      const bool tells = branch != nullptr && IsOfRank(branch->cond);
      for (const kir::Block* child : children) {
        if (tells) facts_.push_back(FactOf(branch->cond));
        if (tells && child == &branch->else_body) facts_.back().holds = !facts_.back().holds;
        Visit(*child);
        if (tells) facts_.pop_back();
      }
    }
  }

  const kir::Kernel& kernel_;
  std::vector<std::vector<Fact>> of_;
  std::vector<bool> used_;
  std::vector<Fact> facts_;  // that hold where the walk is
};

std::string Demand(const kir::Kernel& kernel, const std::vector<Live>& live) {
  std::string text;
  for (const Live& l : live) {
    const kir::Buffer& buffer = kernel.buffers[l.buffer];
    text += Cat(text.empty() ? "" : ", ", buffer.name, " ", l.bytes, " B");
    if (buffer.versions > 1) text += Cat(" (", buffer.versions, " versions)");
  }
  for (const kir::Barrier& barrier : kernel.barriers) text += Cat(text.empty() ? "" : ", ", barrier.name, " ", kir::kBarrierBytes * barrier.size, " B");
  return text;
}

bool HasClusterSync(const kir::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const kir::Stmt& stmt) {
    const std::vector<const kir::Block*> children = kir::ChildBlocks(stmt);
    return std::holds_alternative<kir::ClusterSync>(stmt.op) ||
           std::any_of(children.begin(), children.end(), [](const kir::Block* child) { return HasClusterSync(*child); });
  });
}

// Some role waits for other blocks of its cluster.
bool SyncsInRoles(const kir::Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const kir::Stmt& stmt) { return std::holds_alternative<kir::Roles>(stmt.op) && HasClusterSync({stmt}); });
}

}  // namespace

// Gives the buffers their places; returns the bytes that they take together.
static int64_t Place(kir::Kernel& kernel, std::vector<Live>& live) {
  const RankConditions ranks(kernel);
  std::stable_sort(live.begin(), live.end(), [](const Live& a, const Live& b) { return a.bytes > b.bytes; });
  std::vector<Live> placed;
  int64_t total = 0;
  for (const Live& next : live) {
    // First fit below the placed buffers that are live at the same time.
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Live& other : placed) {
      if (other.last < next.first || next.last < other.first || ranks.Exclusive(other.buffer, next.buffer)) continue;
      taken.push_back({kernel.buffers[other.buffer].offset, kernel.buffers[other.buffer].offset + other.bytes});
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + next.bytes <= begin) break;
      offset = std::max(offset, (end + next.align - 1) / next.align * next.align);
    }
    kernel.buffers[next.buffer].offset = offset;
    total = std::max(total, offset + next.bytes);
    placed.push_back(next);
  }
  return total;
}

absl::Status PlanSharedMemory(KernelState& state) {
  kir::Kernel& kernel = state.kernel;
  std::vector<Live> live = Liveness(kernel, false).Run();
  int64_t total = Place(kernel, live);
  if (total > state.target.max_shared_bytes) {
    live = Liveness(kernel, true).Run();
    total = Place(kernel, live);
  }
  // A buffer that nothing touches still needs a place to be well-formed.
  for (kir::Buffer& buffer : kernel.buffers) {
    if (buffer.space == kir::Space::kShared && buffer.offset < 0) buffer.offset = 0;
  }
  total = (total + kir::kBarrierBytes - 1) / kir::kBarrierBytes * kir::kBarrierBytes;
  for (kir::Ring& ring : kernel.rings) {
    ring.offset = total;
    total += 2 * kir::kBarrierBytes * ring.slots;
  }
  for (kir::Barrier& barrier : kernel.barriers) {
    barrier.offset = total;
    total += kir::kBarrierBytes * barrier.size;
  }
  if (SyncsInRoles(kernel)) {
    kernel.cluster_barrier = total;
    total += kir::kBarrierBytes;
  }
  kernel.shared_bytes = total;
  if (total > state.target.max_shared_bytes) {
    return absl::ResourceExhaustedError(Cat("'", kernel.name, "' needs ", total, " bytes of shared memory a block, ",
                                            state.target.arch, " has ", state.target.max_shared_bytes, ": ", Demand(kernel, live),
                                            "; use smaller tiles or fewer stages"));
  }
  return absl::OkStatus();
}

}  // namespace tilert
