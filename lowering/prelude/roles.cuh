// Roles of a block: barriers of some of its warps, mbarriers between them, registers that move from one role to another (PTX ISA, sm_90a).

// One lane of the warp, which must be converged.
DEV bool elect_one() {
  u32 elected;
  asm volatile("{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  return elected != 0;
}
template <int kRegisters> DEV void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(kRegisters)); }
template <int kRegisters> DEV void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(kRegisters)); }

// Named barriers (number 0 is that of __syncthreads).
template <int kThreads> DEV void barrier_sync(int number) { asm volatile("bar.sync %0, %1;" :: "r"(number), "n"(kThreads) : "memory"); }
template <int kThreads> DEV void barrier_arrive(int number) { asm volatile("bar.arrive %0, %1;" :: "r"(number), "n"(kThreads) : "memory"); }

DEV void mbarrier_init(u32 barrier, u32 arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory"); }
// After mbarrier_init, before __syncthreads: the copies of TMA see the barriers too.
DEV void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;\n fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void mbarrier_arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory"); }
DEV void mbarrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
// Until the phase of this parity is over: on a fresh barrier 1 passes, 0 blocks. The waiter is at most one phase behind.
DEV void mbarrier_wait(u32 barrier, u32 parity) {
  asm volatile("{\n .reg .pred p;\nagain:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra.uni done;\n bra.uni again;\ndone:\n}"
               :: "r"(barrier), "r"(parity) : "memory");
}

// A position in a ring of kSlots moves on by `count`; the parity flips when it wraps.
template <int kSlots> DEV void advance(int& slot, u32& phase, u32 count) {
  const u32 at = slot + count;
  slot = at % kSlots;
  phase ^= at / kSlots & 1;
}
// The slot `count` < kSlots positions ago.
template <int kSlots> DEV int behind(int slot, int count) { return slot < count ? slot - count + kSlots : slot - count; }
