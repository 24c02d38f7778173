// Sums that blocks leave for each other in the workspace, where they share the iterations of tiles. Blocks run in the order of
// their numbers then: what a block takes, one before it has given.
#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
void ThreadBlock::GiveSums(Warp& warp, const CSumsGive& give) {
  if (warp.share.end >= kernel_.trips) return Fail(warp, 0, "gives away the sums of a tile whose last iterations it has");
  for (const BufferId sum : give.sums) {
    const auto [at, is_new] = run_.given.try_emplace({number_, sum, warp.index});
    if (!is_new) return Fail(warp, 0, Cat("gives ", Info(sum).source->name, " a second time"));
    Places from;
    from.buffer = sum;
    for (int64_t reg = 0; reg < Info(sum).layout->regs() && !failed(); ++reg) {
      from.at.fill(reg);
      at->second.registers.push_back(Read(warp, from, kAllLanes));
    }
  }
}

void ThreadBlock::TakeFrom(Warp& warp, const CSumsTake& take, int64_t block) {
  for (const BufferId sum : take.sums) {
    const auto found = run_.given.find({block, sum, warp.index});
    if (found == run_.given.end())
      return Fail(warp, 0, Cat("waits for ", Info(sum).source->name, " of block ", block, ", which does not give it"));
    if (found->second.taken)
      return Fail(warp, 0, Cat("takes ", Info(sum).source->name, " of block ", block, ", which has been taken"));
    found->second.taken = true;
    Places to;
    to.buffer = sum;
    for (size_t reg = 0; reg < found->second.registers.size() && !failed(); ++reg) {
      const LaneData& part = found->second.registers[reg];
      to.at.fill(static_cast<int64_t>(reg));
      LaneData data = Read(warp, to, kAllLanes);
      for (size_t l = 0; l < kLanes; ++l) data.raw[l] = AddWords(Info(sum).source->dtype, data.raw[l], part.raw[l]);
      data.defined &= part.defined;
      Write(warp, to, kAllLanes, data);
    }
  }
}

void ThreadBlock::TakeSums(Warp& warp, const CSumsTake& take) {
  if (warp.share.end < kernel_.trips) return Fail(warp, 0, "takes sums of a tile whose last iterations are another block's");
  const int64_t workers = run_.blocks / cluster_.size();
  int64_t begin = warp.share.begin;
  for (int64_t worker = cluster_.number_; begin > 0 && worker-- > 0 && !failed();) {
    for (const kir::Share& share : kir::SharesOf(Clusters(kernel_), kernel_.trips, workers, worker)) {
      if (share.tile != warp.share.tile) continue;
      if (share.end != begin) return Fail(warp, 0, Cat("follows iteration ", share.end, " of a tile with iteration ", begin));
      TakeFrom(warp, take, worker * cluster_.size() + rank_);
      begin = share.begin;
    }
  }
  if (begin > 0) Fail(warp, 0, Cat("iterations of the tile before ", begin, " are no block's"));
}

}  // namespace tilert::sim
