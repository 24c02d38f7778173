// Copies of TMA into shared memory of several blocks of a cluster, at the same place and counted by the barrier at the same place in each (PTX ISA
// "cp.async.bulk.tensor", .multicast::cluster). blocks: one bit a rank.
DEV void tma_multicast(u32 to, const TensorMap& map, u32 barrier, u32 blocks, u64 policy, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%3}], [%2], %4, %5;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "h"((u16)blocks), "l"(policy) : "memory");
}
DEV void tma_multicast(u32 to, const TensorMap& map, u32 barrier, u32 blocks, u64 policy, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5, %6;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "h"((u16)blocks), "l"(policy) : "memory");
}
DEV void tma_multicast(u32 to, const TensorMap& map, u32 barrier, u32 blocks, u64 policy, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6, %7;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "h"((u16)blocks), "l"(policy) : "memory");
}
DEV void tma_multicast(u32 to, const TensorMap& map, u32 barrier, u32 blocks, u64 policy, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], %7, %8;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"((u16)blocks), "l"(policy) : "memory");
}
DEV void tma_multicast(u32 to, const TensorMap& map, u32 barrier, u32 blocks, u64 policy, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8, %9;"
               :: "r"(to), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "h"((u16)blocks), "l"(policy) : "memory");
}
