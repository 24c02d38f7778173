// CUDA on the host, for emitted sources: what NVRTC predeclares, and host versions of lowering/prelude/ptx.cuh. The rest of the
// prelude and the kernel itself run as they are. Included before them; define HOST_CUDA_ARITHMETIC_ONLY to leave out threads.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)

// ---- intrinsics
inline float __uint_as_float(unsigned x) { float r; std::memcpy(&r, &x, 4); return r; }
inline unsigned __float_as_uint(float x) { unsigned r; std::memcpy(&r, &x, 4); return r; }
inline double __longlong_as_double(long long x) { double r; std::memcpy(&r, &x, 8); return r; }
inline long long __double_as_longlong(double x) { long long r; std::memcpy(&r, &x, 8); return r; }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long both = a | static_cast<unsigned long long>(b) << 32;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= static_cast<unsigned>(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return r;
}
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
template <typename T, typename F> T HostSaturated(F x) {
  if (x <= static_cast<F>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<F>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}
inline int __float2int_rz(float x) { return HostSaturated<int>(x); }
inline int __double2int_rz(double x) { return HostSaturated<int>(x); }
inline unsigned __float2uint_rz(float x) { return HostSaturated<unsigned>(x); }
inline unsigned __double2uint_rz(double x) { return HostSaturated<unsigned>(x); }
inline long long __float2ll_rz(float x) { return HostSaturated<long long>(x); }
inline long long __double2ll_rz(double x) { return HostSaturated<long long>(x); }
inline unsigned long long __float2ull_rz(float x) { return HostSaturated<unsigned long long>(x); }
inline unsigned long long __double2ull_rz(double x) { return HostSaturated<unsigned long long>(x); }
template <typename X> float HostTowardZero(X x) {
  const float r = static_cast<float>(x);
  return std::fabs(static_cast<long double>(r)) > std::fabs(static_cast<long double>(x)) ? std::nextafterf(r, 0) : r;
}
inline float __double2float_rz(double x) { return std::isinf(x) ? static_cast<float>(x) : HostTowardZero(x); }
inline float __int2float_rz(int x) { return HostTowardZero(x); }
inline float __uint2float_rz(unsigned x) { return HostTowardZero(x); }
inline float __ll2float_rz(long long x) { return HostTowardZero(x); }
inline float __ull2float_rz(unsigned long long x) { return HostTowardZero(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
template <typename T> T min(T a, T b) { return b < a ? b : a; }
template <typename T> T max(T a, T b) { return a < b ? b : a; }

// ---- instructions of ptx.cuh
inline unsigned short cvt_bf16(float x) {
  const unsigned u = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return static_cast<unsigned short>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
// Not by _Float16, which not every host compiler has.
inline unsigned short cvt_f16(float x) {
  if (x != x) return 0x7fff;
  const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x47800000) return static_cast<unsigned short>(sign | 0x7c00);  // 2^16 and more
  // Below 2^-14, multiples of 2^-24; else ten bits of the mantissa. Ties to even.
  const bool denormal = magnitude < 0x38800000;
  const unsigned rounded = denormal ? static_cast<unsigned>(std::nearbyintf(std::fabs(x) * 0x1p24f))
                                    : (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  return static_cast<unsigned short>(sign | rounded);
}
inline float cvt_f32(unsigned short f16_bits) {
  const unsigned sign = f16_bits >> 15 << 31, magnitude = f16_bits & 0x7fff;
  if (magnitude >= 0x7c00) return __uint_as_float(sign | 0x7f800000 | magnitude << 13);
  if (magnitude < 0x400) return static_cast<float>(magnitude) * (sign != 0 ? -0x1p-24f : 0x1p-24f);
  return __uint_as_float(sign | ((magnitude << 13) + 0x38000000));
}
inline unsigned cvt_bf16x2(float lo, float hi) { return cvt_bf16(lo) | static_cast<unsigned>(cvt_bf16(hi)) << 16; }
inline unsigned cvt_f16x2(float lo, float hi) { return cvt_f16(lo) | static_cast<unsigned>(cvt_f16(hi)) << 16; }
inline float min_nan(float a, float b) { return a != a || b != b ? NAN : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b; }
inline float max_nan(float a, float b) { return a != a || b != b ? NAN : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b; }
inline float exp2_(float x) { return std::exp2(x); }
inline float divide(float a, float b) { return a / b; }
inline float sqrt_(float x) { return std::sqrt(x); }
inline float rsqrt_(float x) { return 1 / std::sqrt(x); }
inline float fast_log2(float x) { return std::log2(x); }
inline float fast_tanh(float x) { return std::tanh(x); }
inline float fast_divide(float a, float b) { return a / b; }
inline unsigned short fma_f16_bits(unsigned short a, unsigned short b, unsigned short c) {
  return cvt_f16(static_cast<float>(std::fma(static_cast<double>(cvt_f32(a)), cvt_f32(b), cvt_f32(c))));
}
inline unsigned short fma_bf16_bits(unsigned short a, unsigned short b, unsigned short c) {
  const auto value = [](unsigned short x) { return __uint_as_float(static_cast<unsigned>(x) << 16); };
  return cvt_bf16(static_cast<float>(std::fma(static_cast<double>(value(a)), value(b), value(c))));
}

#ifndef HOST_CUDA_ARITHMETIC_ONLY
#include <ucontext.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
template <typename T> T __ldg(const T* p) {
  if (reinterpret_cast<uintptr_t>(p) % sizeof(T) != 0) { std::fprintf(stderr, "misaligned load\n"); std::abort(); }
  return *p;
}
template <typename T> T ldg_if(bool inside, const T* p) { return inside ? __ldg(p) : T{}; }
inline void __threadfence() {}
inline void __threadfence_system() {}
inline void __trap() { std::fprintf(stderr, "trap\n"); std::abort(); }
template <typename T> T atomicAdd(T* p, T x) { T old = *p; *p = old + x; return old; }
#define PRELUDE_SUMS
inline void atomic_add2(float* p, float x, float y) { p[0] += x, p[1] += y; }
template <typename T> T atomicMax(T* p, T x) { T old = *p; *p = old > x ? old : x; return old; }
template <typename T> T atomicMin(T* p, T x) { T old = *p; *p = old < x ? old : x; return old; }
template <typename T> T atomicCAS(T* p, T expected, T x) { T old = *p; if (old == expected) *p = x; return old; }

#define __shared__
#define __align__(n)
extern "C" {
alignas(1024) unsigned char smem[256 * 1024];
}

// ---- threads of one block as fibers, in random order
namespace host {

struct Copy { unsigned to; const unsigned char* from; int width, bytes; };
struct Thread {
  unsigned x = 0;
  ucontext_t context;
  std::vector<char> stack;
  bool done = false;
  std::vector<Copy> open;                  // issued, not committed
  std::vector<std::vector<Copy>> groups;   // committed, not complete
  std::map<std::string, std::vector<unsigned>> ptx_registers;  // that PTX declares, by accumulator
};
struct Meeting {  // of the threads of a warp, or of the block
  size_t arrived = 0, generation = 0;
  std::vector<void*> arguments;
};
static std::vector<Thread> threads;
static std::vector<Meeting> warps;
static Meeting block;
static Thread* current = nullptr;
static ucontext_t scheduler;
static std::function<void()> body;

inline void Yield() { swapcontext(&current->context, &scheduler); }
// Waits for `count` threads; the last one to come runs `work` on all their arguments.
template <typename Work> void Meet(Meeting& meeting, size_t count, size_t index, void* argument, Work work) {
  meeting.arguments.resize(count);
  meeting.arguments[index] = argument;
  const size_t generation = meeting.generation;
  if (++meeting.arrived == count) {
    work(meeting.arguments);
    meeting.arrived = 0;
    ++meeting.generation;
  }
  while (meeting.generation == generation) Yield();
}
template <typename Work>
void MeetWarp(void* argument, Work work) {
  Meet(warps[current->x / 32], 32, current->x % 32, argument, work);
}
inline void Entry() { body(); current->done = true; Yield(); }
// False when the threads wait for each other for ever.
inline bool RunBlock(unsigned thread_count, unsigned seed) {
  std::mt19937 random(seed);
  threads = std::vector<Thread>(thread_count);
  warps = std::vector<Meeting>((thread_count + 31) / 32);
  block = {};
  for (unsigned i = 0; i < thread_count; ++i) {
    Thread& t = threads[i];
    t.x = i;
    t.stack.resize(256 * 1024);
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.data();
    t.context.uc_stack.ss_size = t.stack.size();
    t.context.uc_link = nullptr;
    makecontext(&t.context, Entry, 0);
  }
  std::vector<unsigned> live(thread_count);
  for (unsigned i = 0; i < thread_count; ++i) live[i] = i;
  for (long long idle = 0; !live.empty();) {
    const size_t pick = random() % live.size();
    current = &threads[live[pick]];
    swapcontext(&scheduler, &current->context);
    if (current->done) {
      live[pick] = live.back();
      live.pop_back();
      idle = 0;
    } else if (++idle > 20000000) {
      return false;
    }
  }
  return true;
}

}  // namespace host

struct HostIndex { unsigned x; };
#define threadIdx (*host::current)
static HostIndex blockIdx;
inline void __syncthreads() {
  host::Meet(host::block, host::threads.size(), host::current->x, nullptr, [](auto&) {});
}
template <typename T> T __shfl_xor_sync(unsigned, T x, int mask) {
  struct Argument { T in, out; } argument{x, x};
  host::MeetWarp(&argument, [mask](std::vector<void*>& all) {
    for (size_t i = 0; i < 32; ++i)
      static_cast<Argument*>(all[i])->out = static_cast<Argument*>(all[i ^ static_cast<size_t>(mask)])->in;
  });
  return argument.out;
}
inline unsigned shared_address(const void* p) { return static_cast<unsigned>(static_cast<const unsigned char*>(p) - smem); }

inline unsigned here(unsigned x) { return x; }
template <int kBytes> void cp_async(unsigned to, const void* from, int bytes) {
  const auto* source = static_cast<const unsigned char*>(from);
  if (to % kBytes != 0 || (bytes > 0 && reinterpret_cast<uintptr_t>(source) % kBytes != 0)) {
    std::fprintf(stderr, "misaligned cp.async\n");
    std::abort();
  }
  host::current->open.push_back({to, source, kBytes, bytes});
}
template <int kBytes> void cp_async(unsigned to, const void* from) { cp_async<kBytes>(to, from, kBytes); }
template <int kBytes> void cp_async_if(bool on, unsigned to, const void* from, int bytes = kBytes) {
  if (on) cp_async<kBytes>(to, from, bytes);
}
inline void cp_async_commit() {
  host::current->groups.push_back(std::move(host::current->open));
  host::current->open.clear();
}
// As late as it may: what is not waited for is not there.
template <int kPending> void cp_async_wait() {
  auto& groups = host::current->groups;
  while (groups.size() > kPending) {
    for (const host::Copy& copy : groups.front()) {
      std::memset(smem + copy.to, 0, static_cast<size_t>(copy.width));
      if (copy.bytes > 0) std::memcpy(smem + copy.to, copy.from, static_cast<size_t>(copy.bytes));
    }
    groups.erase(groups.begin());
  }
}

inline void HostLdmatrix(unsigned* registers[], int count, unsigned row, bool trans) {
  struct Argument { unsigned row; unsigned** registers; } argument{row, registers};
  host::MeetWarp(&argument, [count, trans](std::vector<void*>& all) {
    for (int m = 0; m < count; ++m) {
      unsigned short matrix[8][8];
      for (int r = 0; r < 8; ++r) {
        const unsigned from = static_cast<Argument*>(all[static_cast<size_t>(8 * m + r)])->row;
        if (from % 16 != 0) { std::fprintf(stderr, "misaligned ldmatrix\n"); std::abort(); }
        std::memcpy(matrix[r], smem + from, 16);
      }
      for (int lane = 0; lane < 32; ++lane) {
        const int i = lane / 4, j = lane % 4 * 2;
        const unsigned short lo = trans ? matrix[j][i] : matrix[i][j], hi = trans ? matrix[j + 1][i] : matrix[i][j + 1];
        *static_cast<Argument*>(all[static_cast<size_t>(lane)])->registers[m] = lo | static_cast<unsigned>(hi) << 16;
      }
    }
  });
}
inline void ldmatrix(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, unsigned row) {
  unsigned* r[] = {&r0, &r1, &r2, &r3};
  HostLdmatrix(r, 4, row, false);
}
inline void ldmatrix(unsigned& r0, unsigned& r1, unsigned row) { unsigned* r[] = {&r0, &r1}; HostLdmatrix(r, 2, row, false); }
inline void ldmatrix(unsigned& r0, unsigned row) { unsigned* r[] = {&r0}; HostLdmatrix(r, 1, row, false); }
inline void ldmatrix_trans(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, unsigned row) {
  unsigned* r[] = {&r0, &r1, &r2, &r3};
  HostLdmatrix(r, 4, row, true);
}
inline void ldmatrix_trans(unsigned& r0, unsigned& r1, unsigned row) {
  unsigned* r[] = {&r0, &r1};
  HostLdmatrix(r, 2, row, true);
}
inline void ldmatrix_trans(unsigned& r0, unsigned row) { unsigned* r[] = {&r0}; HostLdmatrix(r, 1, row, true); }

// Rows and columns of the fragments as the PTX ISA's tables of mma.m16n8k16 give them.
template <typename Value> void HostMma(float* d, const unsigned* a, const unsigned* b, Value value) {
  struct Argument { float* d; const unsigned *a, *b; } argument{d, a, b};
  host::MeetWarp(&argument, [value](std::vector<void*>& all) {
    float ma[16][16], mb[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const auto* x = static_cast<Argument*>(all[static_cast<size_t>(lane)]);
      for (int i = 0; i < 8; ++i) {
        const int row = lane / 4 + (i & 2 ? 8 : 0), column = lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        ma[row][column] = value(static_cast<unsigned short>(x->a[i / 2] >> 16 * (i & 1)));
      }
      for (int i = 0; i < 4; ++i)
        mb[lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0)][lane / 4] = value(static_cast<unsigned short>(x->b[i / 2] >> 16 * (i & 1)));
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + (i & 2 ? 8 : 0), column = lane % 4 * 2 + (i & 1);
        double sum = 0;
        for (int k = 0; k < 16; ++k) sum += static_cast<double>(ma[row][k]) * mb[k][column];
        float& to = static_cast<Argument*>(all[static_cast<size_t>(lane)])->d[i];
        to = static_cast<float>(to + sum);
      }
    }
  });
}
inline void mma_bf16(float* d, const unsigned* a, const unsigned* b) {
  HostMma(d, a, b, [](unsigned short x) { return __uint_as_float(static_cast<unsigned>(x) << 16); });
}
inline void mma_f16(float* d, const unsigned* a, const unsigned* b) { HostMma(d, a, b, cvt_f32); }
inline void mma_f16(unsigned* d, const unsigned* a, const unsigned* b) {
  float wide[4] = {cvt_f32(static_cast<unsigned short>(d[0])), cvt_f32(static_cast<unsigned short>(d[0] >> 16)),
                   cvt_f32(static_cast<unsigned short>(d[1])), cvt_f32(static_cast<unsigned short>(d[1] >> 16))};
  HostMma(wide, a, b, cvt_f32);
  d[0] = cvt_f16x2(wide[0], wide[1]);
  d[1] = cvt_f16x2(wide[2], wide[3]);
}
#endif  // HOST_CUDA_ARITHMETIC_ONLY
