// Declared barriers whose bytes the program announces, of `arrivals` arrivals a phase. From sm_90 on they are mbarriers (PTX ISA "mbarrier", tx-count); before, a
// word that threads change by compare and swap: bytes still to come (32 bits), arrivals still to come (31 bits), parity of the phase.
DEV u32 phase_bytes(i64 bytes) { return (u32)(bytes < 0 ? 0 : bytes > 0xfffff ? 0xfffff : bytes); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEV void counted_init(u32 barrier, u32 arrivals) { declared_init(barrier, arrivals); }
template <u32 arrivals> DEV void counted_arrive(u32 barrier) { declared_arrive(barrier); }
template <u32 arrivals> DEV void counted_expect(u32 barrier, u32 bytes) { declared_expect(barrier, bytes); }
template <u32 arrivals> DEV void counted_complete(u32 barrier, u32 bytes) {
  __threadfence_block();
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
template <u32 arrivals> DEV void counted_wait(u32 barrier, u32 parity) { declared_wait(barrier, parity); }
#else
DEV void counted_init(u32 barrier, u32 arrivals) { asm volatile("st.shared.u64 [%0], %1;" :: "r"(barrier), "l"((u64)arrivals << 32) : "memory"); }
DEV u64 counted_state(u32 barrier) {
  u64 state;
  asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
  return state;
}
template <u32 arrivals> DEV void counted_change(u32 barrier, int bytes, u32 arriving) {
  __threadfence_block();
  u64 seen = counted_state(barrier), old;
  do {
    old = seen;
    const u32 left = (u32)(old >> 32) - arriving;  // under the parity, which it does not reach
    const int missing = (int)(u32)old + bytes;
    const bool over = (left << 1) == 0 && missing == 0;
    const u64 state = over ? (u64)((left ^ 0x80000000u) | arrivals) << 32 : (u64)left << 32 | (u32)missing;
    asm volatile("atom.shared.cas.b64 %0, [%1], %2, %3;" : "=l"(seen) : "r"(barrier), "l"(old), "l"(state) : "memory");
  } while (seen != old);
}
template <u32 arrivals> DEV void counted_arrive(u32 barrier) { counted_change<arrivals>(barrier, 0, 1); }
template <u32 arrivals> DEV void counted_expect(u32 barrier, u32 bytes) { counted_change<arrivals>(barrier, (int)bytes, 0); }
template <u32 arrivals> DEV void counted_complete(u32 barrier, u32 bytes) { counted_change<arrivals>(barrier, -(int)bytes, 0); }
template <u32 arrivals> DEV void counted_wait(u32 barrier, u32 parity) {
  while ((u32)(counted_state(barrier) >> 63) == parity) {
  }
  __threadfence_block();
}
#endif
