// Instructions of all targets that C++ has no word for (PTX ISA); those of sm_90a are in files of their own.

// ---- conversions, rounding to nearest even
DEV u16 cvt_bf16(float x) { u16 r; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
DEV u32 cvt_bf16x2(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
DEV u16 cvt_f16(float x) { u16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
DEV u32 cvt_f16x2(float lo, float hi) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
DEV float cvt_f32(u16 f16_bits) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(f16_bits)); return r; }
#if __CUDA_ARCH__ >= 890
DEV u32 cvt_e4m3(float x) { u16 r; asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.f), "f"(x)); return r; }
DEV u32 cvt_e5m2(float x) { u16 r; asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.f), "f"(x)); return r; }
DEV u32 cvt_f16x2_e4m3x2(u16 codes) { u32 r; asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(codes)); return r; }
DEV u32 cvt_f16x2_e5m2x2(u16 codes) { u32 r; asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(r) : "h"(codes)); return r; }
#endif

// ---- arithmetic
DEV float min_nan(float a, float b) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
DEV float max_nan(float a, float b) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
DEV float exp2_(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEV float divide(float a, float b) { float r; asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
DEV float sqrt_(float x) { float r; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEV float rsqrt_(float x) { float r; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEV u16 fma_f16_bits(u16 a, u16 b, u16 c) { u16 r; asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r) : "h"(a), "h"(b), "h"(c)); return r; }
DEV u16 fma_bf16_bits(u16 a, u16 b, u16 c) { u16 r; asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(r) : "h"(a), "h"(b), "h"(c)); return r; }
// Relative error up to 2⁻²⁰.
DEV float fast_log2(float x) { float r; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEV float fast_tanh(float x) { float r; asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEV float fast_divide(float a, float b) { float r; asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }

// ---- loads of memory that nobody writes; zero, and no access, where not `inside`
DEV u8 ldg_if(bool inside, const u8* p) {
  u16 r;
  asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u16 %0, 0; @p ld.global.nc.u8 %0, [%1]; }" : "=h"(r) : "l"(p), "r"((u32)inside));
  return (u8)r;
}
DEV u16 ldg_if(bool inside, const u16* p) {
  u16 r;
  asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u16 %0, 0; @p ld.global.nc.u16 %0, [%1]; }" : "=h"(r) : "l"(p), "r"((u32)inside));
  return r;
}
DEV u32 ldg_if(bool inside, const u32* p) {
  u32 r;
  asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u32 %0, 0; @p ld.global.nc.u32 %0, [%1]; }" : "=r"(r) : "l"(p), "r"((u32)inside));
  return r;
}
DEV u64 ldg_if(bool inside, const u64* p) {
  u64 r;
  asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u64 %0, 0; @p ld.global.nc.u64 %0, [%1]; }" : "=l"(r) : "l"(p), "r"((u32)inside));
  return r;
}

// The value, computed here each time: what does not change from one iteration to the next is not kept in a register around a loop for it.
DEV u32 here(u32 x) { asm volatile("" : "+r"(x)); return x; }

// ---- copies from global to shared memory that the memory system does on its own
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
// The same, or nothing at all. A predicate in the text: a branch would be a border for the compiler's scheduling.
template <int kBytes> DEV void cp_async_if(bool on, u32 to, const void* from, int bytes = kBytes) {
  if constexpr (kBytes == 16)
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %0, 0;\n @p cp.async.cg.shared.global.L2::128B [%1], [%2], 16, %3;\n}" :: "r"((int)on), "r"(to), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %0, 0;\n @p cp.async.ca.shared.global.L2::128B [%1], [%2], %4, %3;\n}" :: "r"((int)on), "r"(to), "l"(from), "r"(bytes), "n"(kBytes) : "memory");
}
DEV void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending> DEV void cp_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(kPending) : "memory"); }

// ---- tensor cores
// "Matrix Fragments for mma.m16n8k16". Each lane gives ldmatrix the address of
// one row of 16 bytes, lane 8i + r that of row r of matrix i, and gets two elements of each matrix.
DEV void ldmatrix(u32& r0, u32& r1, u32& r2, u32& r3, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(row) : "memory");
}
DEV void ldmatrix(u32& r0, u32& r1, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(row) : "memory");
}
DEV void ldmatrix(u32& r0, u32 row) { asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r0) : "r"(row) : "memory"); }
DEV void ldmatrix_trans(u32& r0, u32& r1, u32& r2, u32& r3, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(row) : "memory");
}
DEV void ldmatrix_trans(u32& r0, u32& r1, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(row) : "memory");
}
DEV void ldmatrix_trans(u32& r0, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r0) : "r"(row) : "memory");
}

// d[16×8] += a[16×16] · b[8×16]ᵀ
DEV void mma_bf16(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEV void mma_f16(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// d[16×8] += a[16×32] · b[8×32]ᵀ of 8-bit elements.
#define MMA_OF_BYTES(KIND_A, KIND_B, KIND_SUM, SUM_TYPE, BIND) \
  DEV void mma_##KIND_A##_##KIND_B(SUM_TYPE* d, const u32* a, const u32* b) { \
    asm volatile("mma.sync.aligned.m16n8k32.row.col." #KIND_SUM "." #KIND_A "." #KIND_B "." #KIND_SUM " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : BIND(d[0]), BIND(d[1]), BIND(d[2]), BIND(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
  }
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
// ptxas makes two products of float16 of each here, which have no such instruction; of an operand that it knows to be zero it makes
// another number, though (CUDA 13.5 does, too). Written out, it is the same code and right.
#define MMA_OF_FLOAT8(KIND_A, KIND_B) \
  DEV void mma_##KIND_A##_##KIND_B(float* d, const u32* a, const u32* b) { \
    u32 x[2][4], y[2][2]; \
    for (int i = 0; i < 8; ++i) x[i & 1][i >> 1] = cvt_f16x2_##KIND_A##x2((u16)(a[i >> 1] >> (i & 1) * 16)); \
    for (int i = 0; i < 4; ++i) y[i & 1][i >> 1] = cvt_f16x2_##KIND_B##x2((u16)(b[i >> 1] >> (i & 1) * 16)); \
    mma_f16(d, x[0], y[0]); \
    mma_f16(d, x[1], y[1]); \
  }
#else
#define MMA_OF_FLOAT8(KIND_A, KIND_B) MMA_OF_BYTES(KIND_A, KIND_B, f32, float, "+f")
#endif
MMA_OF_FLOAT8(e4m3, e4m3)
MMA_OF_FLOAT8(e4m3, e5m2)
MMA_OF_FLOAT8(e5m2, e4m3)
MMA_OF_FLOAT8(e5m2, e5m2)
MMA_OF_BYTES(s8, s8, s32, int, "+r")
MMA_OF_BYTES(s8, u8, s32, int, "+r")
MMA_OF_BYTES(u8, s8, s32, int, "+r")
MMA_OF_BYTES(u8, u8, s32, int, "+r")
// d[16×8] += a[16×8] · b[8×8]ᵀ of float32, the low 13 bits of which are not looked at.
DEV void mma_tf32(float* d, const float* a, const float* b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
                 "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
// d[16×8] += a[16×16] · b[8×16]ᵀ with a float16 accumulator.
DEV void mma_f16(u32* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
