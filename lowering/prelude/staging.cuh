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
