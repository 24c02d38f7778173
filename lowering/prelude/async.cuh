// Copies from global to shared memory that the memory system does on its own (PTX ISA, "cp.async").
DEV u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
template <int kBytes> DEV void cp_async(u32 to, const void* from) {
  if constexpr (kBytes == 16) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
  else asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(kBytes) : "memory");
}
// The first `bytes` bytes, zeros for the rest.
template <int kBytes> DEV void cp_async(u32 to, const void* from, int bytes) {
  if constexpr (kBytes == 16) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
  else asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" :: "r"(to), "l"(from), "n"(kBytes), "r"(bytes) : "memory");
}
DEV void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending> DEV void cp_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(kPending) : "memory"); }
