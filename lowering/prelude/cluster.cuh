// Thread block clusters: blocks that run at the same time and see each other's shared memory (PTX ISA, sm_90).

DEV u32 rank_in_cluster() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// What a shared address of this block is in the block of that rank, for instructions on .shared::cluster.
DEV u32 peer_address(u32 address, u32 rank) {
  u32 peer;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(address), "r"(rank));
  return peer;
}

// All threads of all blocks of the cluster.
DEV void cluster_sync() { asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory"); }
// The same where mbarrier_init_fence has told all that must be told.
DEV void cluster_start() { asm volatile("barrier.cluster.arrive.relaxed;\n barrier.cluster.wait.acquire;" ::: "memory"); }

// An arrival at a mbarrier of another block, given by peer_address. Of what it orders only the phase itself is meant: with .release.cluster it costs a fence of
// all memory (measured: a quarter of a GEMM's time).
DEV void mbarrier_arrive_peer(u32 barrier) { asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(barrier) : "memory"); }
// An arrival and a wait that order ordinary accesses to memory too.
DEV void mbarrier_release_peer(u32 barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(barrier) : "memory");
}
DEV void mbarrier_acquire(u32 barrier, u32 parity) {
  asm volatile("{\n .reg .pred p;\nagain:\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n @p bra.uni done;\n bra.uni again;\ndone:\n}"
               :: "r"(barrier), "r"(parity) : "memory");
}

// Four elements of a sum, and the same in another block. As floats where they are floats: registers that ptxas knows as integers cannot stay with the tensor cores.
DEV void part_write(u32 place, float a, float b, float c, float d) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" :: "r"(place), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
DEV void part_write(u32 place, int a, int b, int c, int d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" :: "r"(place), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEV void part_read(float* x, u32 place) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(place) : "memory");
}
DEV void part_read(int* x, u32 place) {
  asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(place) : "memory");
}
DEV void part_write(u32 place, u32 a, u32 b, u32 c, u32 d) { part_write(place, (int)a, (int)b, (int)c, (int)d); }
DEV void part_read(u32* x, u32 place) { part_read((int*)x, place); }

// Sums that blocks have a part of each: `place` is this thread's first chunk of 16 bytes, the next ones are kThreads chunks apart.
template <int kThreads, class T, int kCount> DEV void part_store(u32 place, const T (&r)[kCount]) {
  constexpr int kWhole = kCount / 4 * 4;
UNROLL
  for (int i = 0; i < kWhole; i += 4) part_write(place + i * kThreads * 4, r[i], r[i + 1], r[i + 2], r[i + 3]);
  if constexpr (kWhole < kCount)
    part_write(place + kWhole * kThreads * 4, r[kWhole], kWhole + 1 < kCount ? r[kCount > kWhole + 1 ? kWhole + 1 : 0] : T{}, kWhole + 2 < kCount ? r[kCount > kWhole + 2 ? kWhole + 2 : 0] : T{}, T{});
}
// Some loads are under way before the first is needed: they come from afar.
template <int kThreads, class T, int kCount> DEV void part_add(T (&r)[kCount], u32 peer_place) {
  constexpr int kAhead = 16;
UNROLL
  for (int i = 0; i < kCount; i += kAhead) {
    T x[kAhead];
UNROLL
    for (int j = 0; j < kAhead; j += 4) {
      if (i + j < kCount) part_read(x + j, peer_place + (i + j) * kThreads * 4);
    }
UNROLL
    for (int j = 0; j < kAhead; ++j) {
      if (i + j < kCount) r[i + j] += x[j];
    }
  }
}
