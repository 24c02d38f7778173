#include <algorithm>
#include <vector>

#include "ir/status_util.h"
#include "lowering/kernel_pass.h"

namespace tilert {
namespace {

constexpr int64_t kAlign = 128;
constexpr int64_t kBarrierBytes = 8;

// Statements are numbered in program order; a buffer is live from its first to its last use, and through the whole of any loop that
// uses it, because it may carry values from one iteration to the next.
struct Live {
  BufferId buffer = kNoId;
  int first = -1, last = -1;
  int64_t bytes = 0;
  int64_t align = kAlign;
};

class Liveness {
 public:
  explicit Liveness(const kir::Kernel& kernel) : kernel_(kernel), live_(kernel.buffers.size()) {}

  std::vector<Live> Run() {
    Visit(kernel_.body, false);
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
  void Visit(const kir::Block& block, bool in_loop) {
    for (const kir::Stmt& stmt : block) {
      const bool loop = std::holds_alternative<kir::For>(stmt.op) || std::holds_alternative<kir::While>(stmt.op);
      const bool leaf = kir::ChildBlocks(stmt).empty() || std::holds_alternative<kir::Elementwise>(stmt.op);
      if (leaf || (loop && !in_loop) || std::holds_alternative<kir::If>(stmt.op)) {
        const int begin = ++now_;
        if (!leaf) {
          for (const kir::Block* child : kir::ChildBlocks(stmt)) Visit(*child, in_loop || loop);
        }
        Use(stmt, begin, now_);
      } else {
        const int begin = ++now_;
        for (const kir::Block* child : kir::ChildBlocks(stmt)) Visit(*child, true);
        if (auto* roles = std::get_if<kir::Roles>(&stmt.op)) Concurrent(*roles, begin, ++now_);
      }
    }
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
    // A copy that nobody reads is in flight until it is waited for.
    if (auto* wait = std::get_if<kir::CpAsyncWait>(&stmt.op)) {
      for (const kir::Retired& retired : wait->retires) Extend(retired.buffer, begin, end);
    }
  }

  void Extend(BufferId id, int begin, int end) {
    Live& live = live_[id];
    if (live.first < 0 || begin < live.first) live.first = begin;
    live.last = std::max(live.last, end);
  }

  const kir::Kernel& kernel_;
  std::vector<Live> live_;
  int now_ = 0;
};

std::string Demand(const kir::Kernel& kernel, const std::vector<Live>& live) {
  std::string text;
  for (const Live& l : live) {
    const kir::Buffer& buffer = kernel.buffers[l.buffer];
    text += Cat(text.empty() ? "" : ", ", buffer.name, " ", l.bytes, " B");
    if (buffer.versions > 1) text += Cat(" (", buffer.versions, " versions)");
  }
  return text;
}

}  // namespace

absl::Status PlanSharedMemory(KernelState& state) {
  kir::Kernel& kernel = state.kernel;
  std::vector<Live> live = Liveness(kernel).Run();
  std::stable_sort(live.begin(), live.end(), [](const Live& a, const Live& b) { return a.bytes > b.bytes; });
  std::vector<Live> placed;
  int64_t total = 0;
  for (const Live& next : live) {
    // First fit below the placed buffers that are live at the same time.
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Live& other : placed) {
      if (other.last < next.first || next.last < other.first) continue;
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
  // A buffer that nothing touches still needs a place to be well-formed.
  for (kir::Buffer& buffer : kernel.buffers) {
    if (buffer.space == kir::Space::kShared && buffer.offset < 0) buffer.offset = 0;
  }
  total = (total + kBarrierBytes - 1) / kBarrierBytes * kBarrierBytes;
  for (kir::Ring& ring : kernel.rings) {
    ring.offset = total;
    total += 2 * kBarrierBytes * ring.slots;
  }
  kernel.shared_bytes = total;
  if (total > state.target.max_shared_bytes) {
    return absl::ResourceExhaustedError(Cat("'", kernel.name, "' needs ", total, " bytes of shared memory a block, ", state.target.arch, " has ",
                                            state.target.max_shared_bytes, ": ", Demand(kernel, live), "; use smaller tiles or fewer stages"));
  }
  return absl::OkStatus();
}

}  // namespace tilert
