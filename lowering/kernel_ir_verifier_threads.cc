// VerifyKernel: what threads do by themselves, and declared barriers.
#include "lowering/kernel_ir_verifier.h"

namespace tilert::kir {

void KernelVerifier::Tables(const Barrier& barrier) {
  Requires(barrier.size >= 1 && barrier.arrivals >= 1 && barrier.arrivals <= kMaxPhaseCount, "barrier '", barrier.name, "' has ", barrier.size,
           " elements of ", barrier.arrivals, " arrivals");
  if (barrier.offset < 0) return;  // not placed yet
  const int64_t end = barrier.offset + int64_t{8} * barrier.size;
  Requires(barrier.offset % 8 == 0 && end <= kernel_.shared_bytes, "barrier '", barrier.name, "' is at bytes ", barrier.offset, " to ", end, " of ",
           kernel_.shared_bytes);
  for (const Buffer& buffer : kernel_.buffers) {
    if (buffer.space != Space::kShared || buffer.offset < 0) continue;
    const int64_t size = buffer.shared.version_bytes() * buffer.versions;
    Requires(end <= buffer.offset || buffer.offset + size <= barrier.offset, "barrier '", barrier.name, "' lies in '", buffer.name, "'");
  }
}

void KernelVerifier::Check(const BarSync& op) {
  Requires(op.number >= 0 && op.number <= kNamedBarriers, "barrier number ", op.number, "; 1 to ", kNamedBarriers, " are possible");
  Requires((op.number > 0) == (op.warps > 0) && op.warps <= kernel_.warps, "barrier ", op.number, " is of ", op.warps, " warps of the kernel's ",
           kernel_.warps);
}

void KernelVerifier::Check(const Shuffle& op) {
  const bool by_thread = points_ != nullptr && points_->layout.regs() == 1;
  if (!Requires(by_thread, "a shuffle outside an elementwise loop of one point a thread")) return;
  Value(op.value);
  Integer(op.lane, "lane");
  Bind(op.var);
  if (failed()) return;
  const Var& var = kernel_.vars[op.var];
  Requires(kernel_.exprs[op.value].dtype == var.dtype, "'", var.name, "' has another type than its value");
}

void KernelVerifier::BarrierAt(BarrierId id, Expr index) {
  if (Requires(id < kernel_.barriers.size(), "uses barrier ", id, " of ", kernel_.barriers.size())) Integer(index, "index of a barrier");
}

// Threads that come to a barrier by themselves are told apart by their points.
void KernelVerifier::BarrierByThread(BarrierId id, Expr index) {
  const bool by_thread = points_ == nullptr || (points_->layout.regs() == 1 && points_->layout.Replicas().empty());
  if (Requires(by_thread, "a barrier in an elementwise loop of more or less than one point a thread")) BarrierAt(id, index);
}

void KernelVerifier::Check(const MbarArrive& op) { BarrierByThread(op.barrier, op.index); }

void KernelVerifier::Check(const MbarWait& op) {
  BarrierByThread(op.barrier, op.index);
  Integer(op.parity, "parity");
}

void KernelVerifier::Check(const MbarExpect& op) {
  BarrierByThread(op.barrier, op.index);
  Integer(op.bytes, "bytes");  // how many, a launch may know only
}

void KernelVerifier::Check(const MbarComplete& op) {
  BarrierAt(op.barrier, op.index);
  Requires(op.bytes > 0 && op.bytes <= kMaxPhaseCount, "completes ", op.bytes, " bytes");
}

}  // namespace tilert::kir
