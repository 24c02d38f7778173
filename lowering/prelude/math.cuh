// Arithmetic of tile programs where C++'s differs from it.

// Integers: wrap, round towards minus infinity, and give 0 for a division by zero.
DEV int wrap_add(int a, int b) { return (int)((u32)a + (u32)b); }
DEV i64 wrap_add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
DEV int wrap_sub(int a, int b) { return (int)((u32)a - (u32)b); }
DEV i64 wrap_sub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
DEV int wrap_mul(int a, int b) { return (int)((u32)a * (u32)b); }
DEV i64 wrap_mul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
// ptxas of CUDA before 13.4 makes one instruction of Hopper (VIMNMX3) of min(min(b, -a), c) for signed integers and loses the minus. What
// it does not see as a minus it cannot lose, nor take an extreme for another's operand that passes through two complements.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1304
DEV int complement(int a) { asm("not.b32 %0, %0;" : "+r"(a)); return a; }
DEV int wrap_negate(int a) { return (int)((u32)complement(a) + 1); }
DEV int extreme(int a) { return complement(complement(a)); }
#else
DEV int wrap_negate(int a) { return (int)(0 - (u32)a); }
DEV int extreme(int a) { return a; }
#endif
DEV i64 wrap_negate(i64 a) { return (i64)(0 - (u64)a); }
// The next value of a loop's variable; past 64 bits its last one, which is below no end.
DEV i64 advanced(i64 i, i64 step) { return i > 0x7fffffffffffffffll - step ? 0x7fffffffffffffffll : i + step; }
// For operands that are known not to be negative.
DEV int div_positive(int a, int b) { return (int)((u32)a / (u32)b); }
DEV i64 div_positive(i64 a, i64 b) { return (i64)((u64)a / (u64)b); }
DEV int mod_positive(int a, int b) { return (int)((u32)a % (u32)b); }
DEV i64 mod_positive(i64 a, i64 b) { return (i64)((u64)a % (u64)b); }
template <class T> DEV T floor_div(T a, T b) {
  if (b == 0) return 0;
  if constexpr ((T)-1 < (T)0) {
    if (b == -1) return wrap_negate(a);
    const T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
  } else {
    return a / b;
  }
}
template <class T> DEV T floor_mod(T a, T b) {
  if (b == 0) return 0;
  if constexpr ((T)-1 < (T)0) {
    if (b == -1) return 0;
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  } else {
    return a % b;
  }
}
// Shifts of kBits-bit integers.
template <int kBits, class T> DEV T shift_left(T a, T n) { return (u64)n < kBits ? (T)((u64)a << n) : 0; }
template <int kBits, class T> DEV T shift_right(T a, T n) {
  if constexpr (kBits == 64 && sizeof(T) == 4) return (u64)n < kBits ? (T)((i64)a >> n) : a < 0 ? (T)-1 : 0;  // of 64 bits, in a register of 32
  else return (u64)n < kBits ? a >> n : a < 0 ? (T)-1 : 0;
}
template <class T> DEV T least(T a, T b) { return a < b ? a : b; }
template <class T> DEV T greatest(T a, T b) { return a > b ? a : b; }
template <> DEV int least(int a, int b) { return extreme(a < b ? a : b); }
template <> DEV int greatest(int a, int b) { return extreme(a > b ? a : b); }
DEV int magnitude(int a) { return a < 0 ? (int)(0 - (u32)a) : a; }
DEV i64 magnitude(i64 a) { return a < 0 ? wrap_negate(a) : a; }

// Floats: NaN if either operand is NaN, −0 below +0.
template <> DEV float least(float a, float b) { return min_nan(a, b); }
template <> DEV float greatest(float a, float b) { return max_nan(a, b); }
template <> DEV double least(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
template <> DEV double greatest(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }

DEV bool is_nan(float x) { return x != x; }
DEV bool is_nan(double x) { return x != x; }
DEV bool is_inf(float x) { return fabsf(x) == __uint_as_float(0x7f800000u); }
DEV bool is_inf(double x) { return fabs(x) == __longlong_as_double(0x7ff0000000000000ll); }
DEV float sigmoid(float x) { return divide(1.f, 1.f + expf(-x)); }
DEV double sigmoid(double x) { return 1 / (1 + exp(-x)); }
// One rounding, which fmaf and a conversion would not be.
DEV float fma_f16(float a, float b, float c) { return cvt_f32(fma_f16_bits(cvt_f16(a), cvt_f16(b), cvt_f16(c))); }
DEV float fma_bf16(float a, float b, float c) { return Packed<bf16>::value(fma_bf16_bits(cvt_bf16(a), cvt_bf16(b), cvt_bf16(c))); }
DEV float fast_exp(float x) { return exp2_(x * 1.4426950408889634f); }
