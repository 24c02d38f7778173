// Barriers that the program declares: mbarriers (PTX ISA "mbarrier"), in all families.
DEV void declared_init(u32 barrier, u32 arrivals) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory"); }
DEV void declared_arrive(u32 barrier) {
  asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0];\n}" :: "r"(barrier) : "memory");
}
// Until the phase of this parity is over: on a fresh barrier 1 passes, 0 blocks.
DEV void declared_wait(u32 barrier, u32 parity) {
  u32 over;
  do {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
#else
    asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
#endif
  } while (over == 0);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Bytes that copies of TMA will bring before the phase is over; no arrival.
DEV void declared_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
#endif
