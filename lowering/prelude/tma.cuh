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
