// Around wgmma, whose instructions the emitter writes out: groups, operands in shared memory, registers in flight (PTX ISA "wgmma").

DEV void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending> DEV void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(kPending) : "memory"); }
// The matrix descriptor of panels of kSwizzle bytes. `leading`: bytes from one panel to the next along M or N (operands that are not K-major); eight
// rows are `8 * kSwizzle` bytes. Sums of addresses and offsets in 16-byte units are descriptors too.
template <int kSwizzle> DEV u64 wgmma_operand(u32 address, u32 leading = 16) {
  constexpr u64 kMode = kSwizzle == 128 ? 1 : kSwizzle == 64 ? 2 : 3;
  return (kMode << 62) | ((u64)(8 * kSwizzle >> 4) << 32) | ((leading & 0x3ffff) >> 4 << 16) | ((address & 0x3ffff) >> 4);
}
// Registers that wgmma wrote, or read, are not used before this point.
template <int kCount> DEV void settle(float (&r)[kCount]) {
UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(r[i]) :: "memory");
}
template <class T, int kCount> DEV void settle(T (&r)[kCount]) {
UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(r[i]) :: "memory");
}
// Registers that nobody has set: no instruction.
template <int kCount> DEV void unset(float (&r)[kCount]) {
UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "=f"(r[i]));
}
template <class T, int kCount> DEV void unset(T (&r)[kCount]) {
UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "=r"(r[i]));
}
// A value that the compiler knows nothing about: accumulators that are cleared in a branch stay in their registers, where knowing it would make
// a second copy of the code that follows.
DEV float opaque(float x) { asm volatile("" : "+f"(x)); return x; }
DEV int opaque(int x) { asm volatile("" : "+r"(x)); return x; }
