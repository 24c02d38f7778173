#ifndef PRELUDE_ROLES
#define PRELUDE_ROLES
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
#endif
#ifndef PRELUDE_TMA
#define PRELUDE_TMA
// Bulk tensor copies (TMA): boxes of a tensor between global and shared memory (PTX ISA "cp.async.bulk.tensor"). Coordinates: the innermost dim first.

// What the host encodes (CUtensorMap).
struct alignas(64) TensorMap { u64 words[16]; };
DEV void prefetch(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory"); }

// Counted in bytes by the mbarrier.
DEV void tma_load(u32 to, const TensorMap& map, u32 barrier, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0) : "memory");
}
DEV void tma_load(u32 to, const TensorMap& map, u32 barrier, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1) : "memory");
}
DEV void tma_load(u32 to, const TensorMap& map, u32 barrier, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEV void tma_load(u32 to, const TensorMap& map, u32 barrier, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEV void tma_load(u32 to, const TensorMap& map, u32 barrier, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// With a priority for the L2 cache: what createpolicy.fractional gives for all of an access.
enum Policy : u64 { kEvictNormal = 0x1000000000000000, kEvictFirst = 0x12F0000000000000, kEvictLast = 0x14F0000000000000 };
DEV void tma_load_hinted(u32 to, const TensorMap& map, u32 barrier, u64 policy, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3}], [%2], %4;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "l"(policy) : "memory");
}
DEV void tma_load_hinted(u32 to, const TensorMap& map, u32 barrier, u64 policy, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "l"(policy) : "memory");
}
DEV void tma_load_hinted(u32 to, const TensorMap& map, u32 barrier, u64 policy, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "l"(policy) : "memory");
}
DEV void tma_load_hinted(u32 to, const TensorMap& map, u32 barrier, u64 policy, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], %7;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(policy) : "memory");
}
DEV void tma_load_hinted(u32 to, const TensorMap& map, u32 barrier, u64 policy, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "l"(policy) : "memory");
}
// Part of the thread's open group of stores.
DEV void tma_store(const TensorMap& map, u32 from, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%2}], [%1];" :: "l"(&map), "r"(from), "r"(c0) : "memory");
}
DEV void tma_store(const TensorMap& map, u32 from, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1) : "memory");
}
DEV void tma_store(const TensorMap& map, u32 from, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEV void tma_store(const TensorMap& map, u32 from, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEV void tma_store(const TensorMap& map, u32 from, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
DEV void tma_add(const TensorMap& map, u32 from, int c0) {
  asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%0, {%2}], [%1];" :: "l"(&map), "r"(from), "r"(c0) : "memory");
}
DEV void tma_add(const TensorMap& map, u32 from, int c0, int c1) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1) : "memory");
}
DEV void tma_add(const TensorMap& map, u32 from, int c0, int c1, int c2) {
  asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.bulk_group [%0, {%2, %3, %4}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEV void tma_add(const TensorMap& map, u32 from, int c0, int c1, int c2, int c3) {
  asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.bulk_group [%0, {%2, %3, %4, %5}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEV void tma_add(const TensorMap& map, u32 from, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" :: "l"(&map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
DEV void tma_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kPending> DEV void tma_wait() { asm volatile("cp.async.bulk.wait_group %0;" :: "n"(kPending) : "memory"); }
// Until the memory that older groups store from may be written again.
template <int kPending> DEV void tma_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(kPending) : "memory"); }
#endif
#ifndef PRELUDE_WGMMA
#define PRELUDE_WGMMA
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
#endif
#ifndef PRELUDE_STAGING
#define PRELUDE_STAGING
// Registers in accumulator order to shared memory, for TMA to store (PTX ISA "stmatrix"). Lane 8i + r gives the address of row r of matrix i.
DEV void stmatrix(u32 row, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(row), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEV void stmatrix(u32 row, u32 r0, u32 r1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" :: "r"(row), "r"(r0), "r"(r1) : "memory");
}
DEV void stmatrix(u32 row, u32 r0) { asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(row), "r"(r0) : "memory"); }
DEV void stmatrix_trans(u32 row, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(row), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEV void stmatrix_trans(u32 row, u32 r0, u32 r1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" :: "r"(row), "r"(r0), "r"(r1) : "memory");
}
DEV void stmatrix_trans(u32 row, u32 r0) { asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" :: "r"(row), "r"(r0) : "memory"); }
// This thread's writes to shared memory become visible to wgmma and TMA.
DEV void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#endif
#ifndef wgmma_registers_f32x128
#define wgmma_registers_f32x128(d) asm volatile(".reg .f32 " #d "_r<128>;")
#endif
#ifndef wgmma_forget_f32x128
#define wgmma_forget_f32x128(d) asm volatile("{ .reg .f32 u; mov.f32 " #d "_r0, u; mov.f32 " #d "_r1, u; mov.f32 " #d "_r2, u; mov.f32 " #d "_r3, u; mov.f32 " #d "_r4, u; mov.f32 " #d "_r5, u; mov.f32 " #d "_r6, u; mov.f32 " #d "_r7, u; mov.f32 " #d "_r8, u; mov.f32 " #d "_r9, u; mov.f32 " #d "_r10, u; mov.f32 " #d "_r11, u; mov.f32 " #d "_r12, u; mov.f32 " #d "_r13, u; mov.f32 " #d "_r14, u; mov.f32 " #d "_r15, u; mov.f32 " #d "_r16, u; mov.f32 " #d "_r17, u; mov.f32 " #d "_r18, u; mov.f32 " #d "_r19, u; mov.f32 " #d "_r20, u; mov.f32 " #d "_r21, u; mov.f32 " #d "_r22, u; mov.f32 " #d "_r23, u; mov.f32 " #d "_r24, u; mov.f32 " #d "_r25, u; mov.f32 " #d "_r26, u; mov.f32 " #d "_r27, u; mov.f32 " #d "_r28, u; mov.f32 " #d "_r29, u; mov.f32 " #d "_r30, u; mov.f32 " #d "_r31, u; mov.f32 " #d "_r32, u; mov.f32 " #d "_r33, u; mov.f32 " #d "_r34, u; mov.f32 " #d "_r35, u; mov.f32 " #d "_r36, u; mov.f32 " #d "_r37, u; mov.f32 " #d "_r38, u; mov.f32 " #d "_r39, u; mov.f32 " #d "_r40, u; mov.f32 " #d "_r41, u; mov.f32 " #d "_r42, u; mov.f32 " #d "_r43, u; mov.f32 " #d "_r44, u; mov.f32 " #d "_r45, u; mov.f32 " #d "_r46, u; mov.f32 " #d "_r47, u; mov.f32 " #d "_r48, u; mov.f32 " #d "_r49, u; mov.f32 " #d "_r50, u; mov.f32 " #d "_r51, u; mov.f32 " #d "_r52, u; mov.f32 " #d "_r53, u; mov.f32 " #d "_r54, u; mov.f32 " #d "_r55, u; mov.f32 " #d "_r56, u; mov.f32 " #d "_r57, u; mov.f32 " #d "_r58, u; mov.f32 " #d "_r59, u; mov.f32 " #d "_r60, u; mov.f32 " #d "_r61, u; mov.f32 " #d "_r62, u; mov.f32 " #d "_r63, u; mov.f32 " #d "_r64, u; mov.f32 " #d "_r65, u; mov.f32 " #d "_r66, u; mov.f32 " #d "_r67, u; mov.f32 " #d "_r68, u; mov.f32 " #d "_r69, u; mov.f32 " #d "_r70, u; mov.f32 " #d "_r71, u; mov.f32 " #d "_r72, u; mov.f32 " #d "_r73, u; mov.f32 " #d "_r74, u; mov.f32 " #d "_r75, u; mov.f32 " #d "_r76, u; mov.f32 " #d "_r77, u; mov.f32 " #d "_r78, u; mov.f32 " #d "_r79, u; mov.f32 " #d "_r80, u; mov.f32 " #d "_r81, u; mov.f32 " #d "_r82, u; mov.f32 " #d "_r83, u; mov.f32 " #d "_r84, u; mov.f32 " #d "_r85, u; mov.f32 " #d "_r86, u; mov.f32 " #d "_r87, u; mov.f32 " #d "_r88, u; mov.f32 " #d "_r89, u; mov.f32 " #d "_r90, u; mov.f32 " #d "_r91, u; mov.f32 " #d "_r92, u; mov.f32 " #d "_r93, u; mov.f32 " #d "_r94, u; mov.f32 " #d "_r95, u; mov.f32 " #d "_r96, u; mov.f32 " #d "_r97, u; mov.f32 " #d "_r98, u; mov.f32 " #d "_r99, u; mov.f32 " #d "_r100, u; mov.f32 " #d "_r101, u; mov.f32 " #d "_r102, u; mov.f32 " #d "_r103, u; mov.f32 " #d "_r104, u; mov.f32 " #d "_r105, u; mov.f32 " #d "_r106, u; mov.f32 " #d "_r107, u; mov.f32 " #d "_r108, u; mov.f32 " #d "_r109, u; mov.f32 " #d "_r110, u; mov.f32 " #d "_r111, u; mov.f32 " #d "_r112, u; mov.f32 " #d "_r113, u; mov.f32 " #d "_r114, u; mov.f32 " #d "_r115, u; mov.f32 " #d "_r116, u; mov.f32 " #d "_r117, u; mov.f32 " #d "_r118, u; mov.f32 " #d "_r119, u; mov.f32 " #d "_r120, u; mov.f32 " #d "_r121, u; mov.f32 " #d "_r122, u; mov.f32 " #d "_r123, u; mov.f32 " #d "_r124, u; mov.f32 " #d "_r125, u; mov.f32 " #d "_r126, u; mov.f32 " #d "_r127, u; }")
#endif
#ifndef wgmma_take_f32x128
#define wgmma_take_f32x128(d) do { \
  asm volatile("mov.f32 %0, " #d "_r0; mov.f32 %1, " #d "_r1; mov.f32 %2, " #d "_r2; mov.f32 %3, " #d "_r3; mov.f32 %4, " #d "_r4; mov.f32 %5, " #d "_r5; mov.f32 %6, " #d "_r6; mov.f32 %7, " #d "_r7; mov.f32 %8, " #d "_r8; mov.f32 %9, " #d "_r9; mov.f32 %10, " #d "_r10; mov.f32 %11, " #d "_r11; mov.f32 %12, " #d "_r12; mov.f32 %13, " #d "_r13; mov.f32 %14, " #d "_r14; mov.f32 %15, " #d "_r15; " : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15])); \
  asm volatile("mov.f32 %0, " #d "_r16; mov.f32 %1, " #d "_r17; mov.f32 %2, " #d "_r18; mov.f32 %3, " #d "_r19; mov.f32 %4, " #d "_r20; mov.f32 %5, " #d "_r21; mov.f32 %6, " #d "_r22; mov.f32 %7, " #d "_r23; mov.f32 %8, " #d "_r24; mov.f32 %9, " #d "_r25; mov.f32 %10, " #d "_r26; mov.f32 %11, " #d "_r27; mov.f32 %12, " #d "_r28; mov.f32 %13, " #d "_r29; mov.f32 %14, " #d "_r30; mov.f32 %15, " #d "_r31; " : "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])); \
  asm volatile("mov.f32 %0, " #d "_r32; mov.f32 %1, " #d "_r33; mov.f32 %2, " #d "_r34; mov.f32 %3, " #d "_r35; mov.f32 %4, " #d "_r36; mov.f32 %5, " #d "_r37; mov.f32 %6, " #d "_r38; mov.f32 %7, " #d "_r39; mov.f32 %8, " #d "_r40; mov.f32 %9, " #d "_r41; mov.f32 %10, " #d "_r42; mov.f32 %11, " #d "_r43; mov.f32 %12, " #d "_r44; mov.f32 %13, " #d "_r45; mov.f32 %14, " #d "_r46; mov.f32 %15, " #d "_r47; " : "=f"(d[32]), "=f"(d[33]), "=f"(d[34]), "=f"(d[35]), "=f"(d[36]), "=f"(d[37]), "=f"(d[38]), "=f"(d[39]), "=f"(d[40]), "=f"(d[41]), "=f"(d[42]), "=f"(d[43]), "=f"(d[44]), "=f"(d[45]), "=f"(d[46]), "=f"(d[47])); \
  asm volatile("mov.f32 %0, " #d "_r48; mov.f32 %1, " #d "_r49; mov.f32 %2, " #d "_r50; mov.f32 %3, " #d "_r51; mov.f32 %4, " #d "_r52; mov.f32 %5, " #d "_r53; mov.f32 %6, " #d "_r54; mov.f32 %7, " #d "_r55; mov.f32 %8, " #d "_r56; mov.f32 %9, " #d "_r57; mov.f32 %10, " #d "_r58; mov.f32 %11, " #d "_r59; mov.f32 %12, " #d "_r60; mov.f32 %13, " #d "_r61; mov.f32 %14, " #d "_r62; mov.f32 %15, " #d "_r63; " : "=f"(d[48]), "=f"(d[49]), "=f"(d[50]), "=f"(d[51]), "=f"(d[52]), "=f"(d[53]), "=f"(d[54]), "=f"(d[55]), "=f"(d[56]), "=f"(d[57]), "=f"(d[58]), "=f"(d[59]), "=f"(d[60]), "=f"(d[61]), "=f"(d[62]), "=f"(d[63])); \
  asm volatile("mov.f32 %0, " #d "_r64; mov.f32 %1, " #d "_r65; mov.f32 %2, " #d "_r66; mov.f32 %3, " #d "_r67; mov.f32 %4, " #d "_r68; mov.f32 %5, " #d "_r69; mov.f32 %6, " #d "_r70; mov.f32 %7, " #d "_r71; mov.f32 %8, " #d "_r72; mov.f32 %9, " #d "_r73; mov.f32 %10, " #d "_r74; mov.f32 %11, " #d "_r75; mov.f32 %12, " #d "_r76; mov.f32 %13, " #d "_r77; mov.f32 %14, " #d "_r78; mov.f32 %15, " #d "_r79; " : "=f"(d[64]), "=f"(d[65]), "=f"(d[66]), "=f"(d[67]), "=f"(d[68]), "=f"(d[69]), "=f"(d[70]), "=f"(d[71]), "=f"(d[72]), "=f"(d[73]), "=f"(d[74]), "=f"(d[75]), "=f"(d[76]), "=f"(d[77]), "=f"(d[78]), "=f"(d[79])); \
  asm volatile("mov.f32 %0, " #d "_r80; mov.f32 %1, " #d "_r81; mov.f32 %2, " #d "_r82; mov.f32 %3, " #d "_r83; mov.f32 %4, " #d "_r84; mov.f32 %5, " #d "_r85; mov.f32 %6, " #d "_r86; mov.f32 %7, " #d "_r87; mov.f32 %8, " #d "_r88; mov.f32 %9, " #d "_r89; mov.f32 %10, " #d "_r90; mov.f32 %11, " #d "_r91; mov.f32 %12, " #d "_r92; mov.f32 %13, " #d "_r93; mov.f32 %14, " #d "_r94; mov.f32 %15, " #d "_r95; " : "=f"(d[80]), "=f"(d[81]), "=f"(d[82]), "=f"(d[83]), "=f"(d[84]), "=f"(d[85]), "=f"(d[86]), "=f"(d[87]), "=f"(d[88]), "=f"(d[89]), "=f"(d[90]), "=f"(d[91]), "=f"(d[92]), "=f"(d[93]), "=f"(d[94]), "=f"(d[95])); \
  asm volatile("mov.f32 %0, " #d "_r96; mov.f32 %1, " #d "_r97; mov.f32 %2, " #d "_r98; mov.f32 %3, " #d "_r99; mov.f32 %4, " #d "_r100; mov.f32 %5, " #d "_r101; mov.f32 %6, " #d "_r102; mov.f32 %7, " #d "_r103; mov.f32 %8, " #d "_r104; mov.f32 %9, " #d "_r105; mov.f32 %10, " #d "_r106; mov.f32 %11, " #d "_r107; mov.f32 %12, " #d "_r108; mov.f32 %13, " #d "_r109; mov.f32 %14, " #d "_r110; mov.f32 %15, " #d "_r111; " : "=f"(d[96]), "=f"(d[97]), "=f"(d[98]), "=f"(d[99]), "=f"(d[100]), "=f"(d[101]), "=f"(d[102]), "=f"(d[103]), "=f"(d[104]), "=f"(d[105]), "=f"(d[106]), "=f"(d[107]), "=f"(d[108]), "=f"(d[109]), "=f"(d[110]), "=f"(d[111])); \
  asm volatile("mov.f32 %0, " #d "_r112; mov.f32 %1, " #d "_r113; mov.f32 %2, " #d "_r114; mov.f32 %3, " #d "_r115; mov.f32 %4, " #d "_r116; mov.f32 %5, " #d "_r117; mov.f32 %6, " #d "_r118; mov.f32 %7, " #d "_r119; mov.f32 %8, " #d "_r120; mov.f32 %9, " #d "_r121; mov.f32 %10, " #d "_r122; mov.f32 %11, " #d "_r123; mov.f32 %12, " #d "_r124; mov.f32 %13, " #d "_r125; mov.f32 %14, " #d "_r126; mov.f32 %15, " #d "_r127; " : "=f"(d[112]), "=f"(d[113]), "=f"(d[114]), "=f"(d[115]), "=f"(d[116]), "=f"(d[117]), "=f"(d[118]), "=f"(d[119]), "=f"(d[120]), "=f"(d[121]), "=f"(d[122]), "=f"(d[123]), "=f"(d[124]), "=f"(d[125]), "=f"(d[126]), "=f"(d[127])); \
} while (0)
#endif
#ifndef wgmma_m64n256k16_f32_bf16_bf16_kk_r0
// d[64, 256] = a[64, 16] * b[256, 16] + (keep ? d : 0)
#define wgmma_m64n256k16_f32_bf16_bf16_kk_r0(d, a, b, keep) \
  asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %2, 0;\n wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" \
               #d "_r0, " #d "_r1, " #d "_r2, " #d "_r3, " #d "_r4, " #d "_r5, " #d "_r6, " #d "_r7, " #d "_r8, " #d "_r9, " #d "_r10, " #d "_r11, " #d "_r12, " #d "_r13, " #d "_r14, " #d "_r15, " \
               #d "_r16, " #d "_r17, " #d "_r18, " #d "_r19, " #d "_r20, " #d "_r21, " #d "_r22, " #d "_r23, " #d "_r24, " #d "_r25, " #d "_r26, " #d "_r27, " #d "_r28, " #d "_r29, " #d "_r30, " #d "_r31, " \
               #d "_r32, " #d "_r33, " #d "_r34, " #d "_r35, " #d "_r36, " #d "_r37, " #d "_r38, " #d "_r39, " #d "_r40, " #d "_r41, " #d "_r42, " #d "_r43, " #d "_r44, " #d "_r45, " #d "_r46, " #d "_r47, " \
               #d "_r48, " #d "_r49, " #d "_r50, " #d "_r51, " #d "_r52, " #d "_r53, " #d "_r54, " #d "_r55, " #d "_r56, " #d "_r57, " #d "_r58, " #d "_r59, " #d "_r60, " #d "_r61, " #d "_r62, " #d "_r63, " \
               #d "_r64, " #d "_r65, " #d "_r66, " #d "_r67, " #d "_r68, " #d "_r69, " #d "_r70, " #d "_r71, " #d "_r72, " #d "_r73, " #d "_r74, " #d "_r75, " #d "_r76, " #d "_r77, " #d "_r78, " #d "_r79, " \
               #d "_r80, " #d "_r81, " #d "_r82, " #d "_r83, " #d "_r84, " #d "_r85, " #d "_r86, " #d "_r87, " #d "_r88, " #d "_r89, " #d "_r90, " #d "_r91, " #d "_r92, " #d "_r93, " #d "_r94, " #d "_r95, " \
               #d "_r96, " #d "_r97, " #d "_r98, " #d "_r99, " #d "_r100, " #d "_r101, " #d "_r102, " #d "_r103, " #d "_r104, " #d "_r105, " #d "_r106, " #d "_r107, " #d "_r108, " #d "_r109, " #d "_r110, " #d "_r111, " \
               #d "_r112, " #d "_r113, " #d "_r114, " #d "_r115, " #d "_r116, " #d "_r117, " #d "_r118, " #d "_r119, " #d "_r120, " #d "_r121, " #d "_r122, " #d "_r123, " #d "_r124, " #d "_r125, " #d "_r126, " #d "_r127}, " \
               "%0, %1, p, 1, 1, 0, 0;\n}" \
               :: "l"(a), "l"(b), "r"((int)(keep)))
#endif

// hopper_gemm for sm_90a
extern "C" __global__ void __launch_bounds__(384, 1)
hopper_gemm(const bf16* __restrict__ A, const bf16* __restrict__ B, bf16* C, const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, const __grid_constant__ TensorMap C_map, int M, int N, int K) {
  extern __shared__ __align__(1024) u8 smem[];
  wgmma_registers_f32x128(acc);
  const u32 smem_base = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int block_warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const u32 ab_full = smem_base + 229376, ab_empty = ab_full + 32;
  if (threadIdx.x == 0) {
    prefetch(A_map);
    prefetch(B_map);
    prefetch(C_map);
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      mbarrier_init(ab_full + i * 8, 1);
      mbarrier_init(ab_empty + i * 8, 8);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  const int trips = (K + 63) >> 6;
  if (block_warp < 8) {
    // consumer
    take_registers<232>();
    const int warp = block_warp;
    const bool leader = warp == 0 && lane == 0;
    int ab_slot = 0;
    u32 ab_phase = 0;
    {
      const u32 tiles = (u32)((N + 255) >> 8) * (u32)((M + 127) >> 7);
      #pragma unroll 1
      for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int bx, by;
        raster(tile, (u32)((N + 255) >> 8), (u32)((M + 127) >> 7), 16, bx, by);
        float acc[128];
        wgmma_forget_f32x128(acc);
        #pragma unroll 1
        for (int t = 0; t < trips; ++t) {
          mbarrier_wait(ab_full + ab_slot * 8, ab_phase);
          wgmma_fence();
          // acc += A_tile * B_tile, wgmma 128x256x64
          {
            const u64 a = wgmma_operand<128>(smem_base + (warp >> 2) * 8192) + ab_slot * 1024;
            const u64 b = wgmma_operand<128>(smem_base + 65536) + ab_slot * 2048;
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
              wgmma_m64n256k16_f32_bf16_bf16_kk_r0(acc, a + k * 2, b + k * 2, k > 0 || t != 0);
            }
          }
          wgmma_commit();
          wgmma_wait<1>();
          if (t > 0) {
            __syncwarp();
            if (lane == 0) mbarrier_arrive(ab_empty + behind<4>(ab_slot, 1) * 8);
          }
          if (++ab_slot == 4) { ab_slot = 0; ab_phase ^= 1; }
        }
        wgmma_wait<0>();
        wgmma_take_f32x128(acc);
        if (trips > 0) {
          __syncwarp();
          if (lane == 0) mbarrier_arrive(ab_empty + behind<4>(ab_slot, 1) * 8);
        } else {
          // element by element
          {
            #pragma unroll
            for (int r = 0; r < 32; ++r) {
              #pragma unroll
              for (int s = 0; s < 2; ++s) {
                #pragma unroll
                for (int t = 0; t < 2; ++t) {
                  acc[s * 2 + t + r * 4] = opaque(0.0f);
                }
              }
            }
          }
        }
        if (leader) {
          tma_wait_read<1>();
        }
        barrier_sync<256>(1);
        // acc -> C_tile, stmatrix, 2 at once
        {
          const int C_tile_at = (lane & 7) * 128 + ((lane >> 3) & 1) * 1024 + (warp & 3) * 2048 + (warp >> 2) * 8192 + (((((lane & 7) + ((lane >> 3) & 1) * 8 + (warp & 3) * 16 + (warp >> 2) * 64) & 7) * 16) ^ ((lane >> 4) * 16));
          #pragma unroll
          for (int r = 0; r < 4; ++r) {
            stmatrix(smem_base + (C_tile_at ^ (r * 32)) + 196608, pair<bf16>(acc[r * 2 * 4], acc[r * 2 * 4 + 1]), pair<bf16>(acc[r * 2 * 4 + 2], acc[r * 2 * 4 + 3]), pair<bf16>(acc[(r * 2 + 1) * 4], acc[(r * 2 + 1) * 4 + 1]), pair<bf16>(acc[(r * 2 + 1) * 4 + 2], acc[(r * 2 + 1) * 4 + 3]));
          }
        }
        fence_async_proxy();
        barrier_sync<256>(1);
        if (leader) {
          // C_tile -> C, TMA
          tma_store(C_map, smem_base + 196608, bx * 256 + 0, by * 128);
          tma_commit();
          tma_wait_read<1>();
        }
        barrier_sync<256>(1);
        // acc -> C_tile, stmatrix, 2 at once
        {
          const int C_tile_at = (lane & 7) * 128 + ((lane >> 3) & 1) * 1024 + (warp & 3) * 2048 + (warp >> 2) * 8192 + (((((lane & 7) + ((lane >> 3) & 1) * 8 + (warp & 3) * 16 + (warp >> 2) * 64) & 7) * 16) ^ ((lane >> 4) * 16));
          #pragma unroll
          for (int r = 0; r < 4; ++r) {
            stmatrix(smem_base + (C_tile_at ^ (r * 32)) + 212992, pair<bf16>(acc[(r * 2 + 8) * 4], acc[(r * 2 + 8) * 4 + 1]), pair<bf16>(acc[(r * 2 + 8) * 4 + 2], acc[(r * 2 + 8) * 4 + 3]), pair<bf16>(acc[(r * 2 + 9) * 4], acc[(r * 2 + 9) * 4 + 1]), pair<bf16>(acc[(r * 2 + 9) * 4 + 2], acc[(r * 2 + 9) * 4 + 3]));
          }
        }
        fence_async_proxy();
        barrier_sync<256>(1);
        if (leader) {
          // C_tile -> C, TMA
          tma_store(C_map, smem_base + 212992, bx * 256 + 64, by * 128);
          tma_commit();
          tma_wait_read<1>();
        }
        barrier_sync<256>(1);
        // acc -> C_tile, stmatrix, 2 at once
        {
          const int C_tile_at = (lane & 7) * 128 + ((lane >> 3) & 1) * 1024 + (warp & 3) * 2048 + (warp >> 2) * 8192 + (((((lane & 7) + ((lane >> 3) & 1) * 8 + (warp & 3) * 16 + (warp >> 2) * 64) & 7) * 16) ^ ((lane >> 4) * 16));
          #pragma unroll
          for (int r = 0; r < 4; ++r) {
            stmatrix(smem_base + (C_tile_at ^ (r * 32)) + 196608, pair<bf16>(acc[(r * 2 + 16) * 4], acc[(r * 2 + 16) * 4 + 1]), pair<bf16>(acc[(r * 2 + 16) * 4 + 2], acc[(r * 2 + 16) * 4 + 3]), pair<bf16>(acc[(r * 2 + 17) * 4], acc[(r * 2 + 17) * 4 + 1]), pair<bf16>(acc[(r * 2 + 17) * 4 + 2], acc[(r * 2 + 17) * 4 + 3]));
          }
        }
        fence_async_proxy();
        barrier_sync<256>(1);
        if (leader) {
          // C_tile -> C, TMA
          tma_store(C_map, smem_base + 196608, bx * 256 + 128, by * 128);
          tma_commit();
          tma_wait_read<1>();
        }
        barrier_sync<256>(1);
        // acc -> C_tile, stmatrix, 2 at once
        {
          const int C_tile_at = (lane & 7) * 128 + ((lane >> 3) & 1) * 1024 + (warp & 3) * 2048 + (warp >> 2) * 8192 + (((((lane & 7) + ((lane >> 3) & 1) * 8 + (warp & 3) * 16 + (warp >> 2) * 64) & 7) * 16) ^ ((lane >> 4) * 16));
          #pragma unroll
          for (int r = 0; r < 4; ++r) {
            stmatrix(smem_base + (C_tile_at ^ (r * 32)) + 212992, pair<bf16>(acc[(r * 2 + 24) * 4], acc[(r * 2 + 24) * 4 + 1]), pair<bf16>(acc[(r * 2 + 24) * 4 + 2], acc[(r * 2 + 24) * 4 + 3]), pair<bf16>(acc[(r * 2 + 25) * 4], acc[(r * 2 + 25) * 4 + 1]), pair<bf16>(acc[(r * 2 + 25) * 4 + 2], acc[(r * 2 + 25) * 4 + 3]));
          }
        }
        fence_async_proxy();
        barrier_sync<256>(1);
        if (leader) {
          // C_tile -> C, TMA
          tma_store(C_map, smem_base + 212992, bx * 256 + 192, by * 128);
          tma_commit();
        }
      }
    }
    if (leader) {
      tma_wait_read<0>();
    }
  } else {
    // producer
    give_registers<40>();
    if (block_warp == 8 && elect_one()) {
      int ab_slot = 0;
      u32 ab_phase = 0;
      {
        const u32 tiles = (u32)((N + 255) >> 8) * (u32)((M + 127) >> 7);
        #pragma unroll 1
        for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
          int bx, by;
          raster(tile, (u32)((N + 255) >> 8), (u32)((M + 127) >> 7), 16, bx, by);
          #pragma unroll 1
          for (int t = 0; t < trips; ++t) {
            mbarrier_wait(ab_empty + ab_slot * 8, ab_phase ^ 1);
            mbarrier_expect(ab_full + ab_slot * 8, 49152);
            // A -> A_tile, TMA
            tma_load(smem_base + ab_slot * 16384, A_map, ab_full + ab_slot * 8, t * 64, by * 128);
            // B -> B_tile, TMA
            tma_load(smem_base + ab_slot * 32768 + 65536, B_map, ab_full + ab_slot * 8, t * 64, bx * 256);
            if (++ab_slot == 4) { ab_slot = 0; ab_phase ^= 1; }
          }
        }
      }
    }
  }
}
