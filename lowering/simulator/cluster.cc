// Scheduling of the blocks of a cluster, and what happens between them.
#include "lowering/simulator/cluster.h"

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {

Cluster::Cluster(Run& run, uint32_t number)
    : run_(run),
      kernel_(*run.kernel),
      number_(number),
      components_{kernel_.kernel->warps * kir::ClusterSize(*kernel_.kernel),
                  kernel_.ring_slots.back() * kir::ClusterSize(*kernel_.kernel)} {
  for (int rank = 0; rank < kir::ClusterSize(*kernel_.kernel); ++rank)
    blocks_.push_back(std::make_unique<ThreadBlock>(*this, rank));
}
Cluster::~Cluster() = default;

absl::Status Cluster::Execute() {
  run_.report->blocks += size();
  std::vector<Warp*> ready;
  while (status_.ok()) {
    ready.clear();
    bool done = true;
    for (auto& block : blocks_) done = block->AddReady(&ready) && done;
    if (done) break;
    if (ready.empty()) {
      if (!RunOne()) ReportDeadlock();
      continue;
    }
    Warp& warp = *ready[run_.random() % ready.size()];
    blocks_[static_cast<size_t>(warp.rank)]->RunBurst(warp);
  }
  for (auto& block : blocks_) {
    status_.ok() ? block->CheckEnd() : block->EndFibers();
  }
  return status_;
}

bool Cluster::RunOne() {
  const size_t first = blocks_.size() == 1 ? 0 : run_.random() % blocks_.size();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[(first + i) % blocks_.size()]->RunOneAsync()) return true;
  }
  return false;
}

Cluster::Sync& Cluster::SyncOf(int role, int rank) {
  const kir::Kernel& kernel = *kernel_.kernel;
  const int blocks = kir::ClusterSize(kernel) / kir::ClusterExtent(kernel, kir::SplitAxis(kernel));
  auto [found, is_new] = syncs_.try_emplace({role, role < 0 ? 0 : rank % blocks});
  if (is_new) found->second.arriving = found->second.last = Clock(components_);
  return found->second;
}

// No warp can run and nothing is pending.
void Cluster::ReportDeadlock() {
  std::string text;
  const ThreadBlock* first = nullptr;
  for (const auto& block : blocks_) {
    const std::string waits = block->DescribeWaits();
    if (waits.empty()) continue;
    if (first == nullptr) first = block.get();
    text += Cat(text.empty() ? "" : "; ", size() > 1 ? Cat("block ", block->rank(), " of the cluster: ") : "", waits);
  }
  blocks_[static_cast<size_t>(first->rank())]->FailWaiting(Cat("deadlock: ", text));
}

}  // namespace tilert::sim
