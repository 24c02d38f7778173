// sm_90a on the host, for emitted sources: host versions of the instructions behind
// lowering/prelude/{roles,tma,wgmma,staging}.cuh, after the PTX ISA's definitions and apart from the emitter's: mbarriers, tensor
// maps, swizzles, matrix descriptors, fragments. Copies and products happen at once; what must wait for them is the simulator's
// business. Included after host_cuda.h and the prelude.
#include <map>

#define __grid_constant__
static HostIndex gridDim;

template <typename T>
T __shfl_sync(unsigned, T x, int lane) {
  struct Argument {
    T in, out;
  } argument{x, x};
  host::MeetWarp(&argument, [lane](std::vector<void*>& all) {
    for (void* a : all) static_cast<Argument*>(a)->out = static_cast<Argument*>(all[static_cast<size_t>(lane)])->in;
  });
  return argument.out;
}
inline void __syncwarp() {
  host::MeetWarp(nullptr, [](auto&) {});
}

// The prelude's files as they are, their asm statements nothing; functions of instructions get host versions below.
#define asm
#define volatile(...)
#include "lowering/prelude/roles.cuh"
#include "lowering/prelude/staging.cuh"
#include "lowering/prelude/tma.cuh"
#include "lowering/prelude/wgmma.cuh"
#undef asm
#undef volatile
#define PRELUDE_ROLES
#define PRELUDE_TMA
#define PRELUDE_WGMMA
#define PRELUDE_STAGING

namespace host {

inline void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// ---- barriers
struct Mbarrier {
  int count = 0, pending = 0;
  long long bytes = 0;
  unsigned phase = 0;
};
static std::map<unsigned, Mbarrier> mbarriers;
static std::map<int, Meeting> named;

inline void Settle(Mbarrier& b) {
  Require(b.pending >= 0, "more arrivals than an mbarrier counts");
  if (b.pending > 0 || b.bytes != 0) return;
  b.phase ^= 1;
  b.pending = b.count;
}
inline Mbarrier& At(unsigned address) {
  Require(mbarriers.count(address) == 1, "an mbarrier that was not initialised");
  return mbarriers[address];
}
inline void Init(unsigned address, unsigned count) {
  Require(address % 8 == 0, "misaligned mbarrier");
  mbarriers[address] = {static_cast<int>(count), static_cast<int>(count), 0, 0};
}
inline void Arrive(unsigned address) { --At(address).pending, Settle(At(address)); }
inline void Expect(unsigned address, unsigned bytes) { At(address).bytes += bytes, Arrive(address); }
inline void Wait(unsigned address, unsigned parity) {
  while ((At(address).phase & 1) == (parity & 1)) Yield();
}
inline void Enter(int number, size_t count, bool wait) {
  Meeting& meeting = named[number];
  const size_t generation = meeting.generation;
  if (++meeting.arrived == count) meeting.arrived = 0, ++meeting.generation;
  while (wait && meeting.generation == generation) Yield();
}
template <int kThreads>
void BarrierSync(int number) {
  Enter(number, kThreads, true);
}
template <int kThreads>
void BarrierArrive(int number) {
  Enter(number, kThreads, false);
}

// ---- swizzles: of 16-byte chunks, by address bits from 7 on
inline unsigned Swizzled(unsigned address, unsigned bytes) {
  const unsigned mask = bytes == 128 ? 7 : bytes == 64 ? 3 : bytes == 32 ? 1 : 0;
  return address ^ (address >> 7 & mask) << 4;
}

// ---- tensor maps, as HostTensorMap (host_kernel.h) makes them: base, rank | element bytes << 8 | swizzle << 16, dims, strides
// in bytes, box
template <typename Move>
void Box(const TensorMap& map, unsigned address, const std::vector<int>& at, Move move) {
  const auto* w = map.words;
  const unsigned rank = w[1] & 0xff, bytes = w[1] >> 8 & 0xff, swizzle = w[1] >> 16;
  Require(rank == at.size() && address % (swizzle ? 8 * swizzle : 128) == 0, "a box at a wrong address or of a wrong rank");
  unsigned total = 1;
  for (unsigned d = 0; d < rank; ++d) total *= w[11 + d / 4] >> d % 4 * 16 & 0xffff;
  for (unsigned i = 0; i < total; ++i) {
    long long offset = 0;
    bool inside = true;
    for (unsigned d = 0, rest = i; d < rank; ++d) {
      const unsigned extent = w[11 + d / 4] >> d % 4 * 16 & 0xffff;
      const long long x = at[d] + static_cast<long long>(rest % extent);
      rest /= extent;
      inside = inside && x >= 0 && x < static_cast<long long>(w[2 + d]);
      offset += x * static_cast<long long>(d == 0 ? bytes : w[6 + d]);
    }
    move(smem + Swizzled(address + i * bytes, swizzle), reinterpret_cast<unsigned char*>(w[0]) + offset, bytes, inside);
  }
}
template <typename... Ints>
void Load(unsigned to, const TensorMap& map, unsigned barrier, Ints... at) {
  Box(map, to, {at...}, [barrier](unsigned char* shared, const unsigned char* global, unsigned bytes, bool inside) {
    inside ? (void)std::memcpy(shared, global, bytes) : (void)std::memset(shared, 0, bytes);
    At(barrier).bytes -= bytes;
  });
  Settle(At(barrier));
}
template <typename... Ints>
void LoadHinted(unsigned to, const TensorMap& map, unsigned barrier, unsigned long long policy, Ints... at) {
  Require(policy >> 60 == 1, "no policy of the L2 cache");
  Load(to, map, barrier, at...);
}
template <typename... Ints>
void Store(const TensorMap& map, unsigned from, Ints... at) {
  Box(map, from, {at...}, [](const unsigned char* shared, unsigned char* global, unsigned bytes, bool inside) {
    if (inside) std::memcpy(global, shared, bytes);
  });
}
template <typename... Ints>
void Add(const TensorMap& map, unsigned from, Ints... at) {
  Box(map, from, {at...}, [](const unsigned char* shared, unsigned char* global, unsigned, bool inside) {
    if (inside) *reinterpret_cast<float*>(global) += *reinterpret_cast<const float*>(shared);
  });
}

// ---- wgmma
struct F16 {
  static constexpr int kBytes = 2;
  static float Value(const unsigned char* p) {
    unsigned short x;
    std::memcpy(&x, p, 2);
    return cvt_f32(x);
  }
};
struct Bf16 {
  static constexpr int kBytes = 2;
  static float Value(const unsigned char* p) {
    unsigned short x;
    std::memcpy(&x, p, 2);
    return __uint_as_float(static_cast<unsigned>(x) << 16);
  }
};
struct Tf32 {
  static constexpr int kBytes = 4;
  static float Value(const unsigned char* p) {
    unsigned x;
    std::memcpy(&x, p, 4);
    return __uint_as_float(x & 0xffffe000u);
  }
};
struct S8 {
  static constexpr int kBytes = 1;
  static float Value(const unsigned char* p) { return static_cast<signed char>(*p); }
};
struct U8 {
  static constexpr int kBytes = 1;
  static float Value(const unsigned char* p) { return *p; }
};
struct E4m3 {
  static constexpr int kBytes = 1;
  static float Value(const unsigned char* p) { return Packed<e4m3>::value(*p); }
};
struct E5m2 {
  static constexpr int kBytes = 1;
  static float Value(const unsigned char* p) { return Packed<e5m2>::value(*p); }
};

// Element (row of M or N, k) of the matrix a descriptor describes. PTX ISA, "Matrix Descriptor Format", "Strides", "Canonical
// Layouts".
template <class T>
float Operand(unsigned long long descriptor, int row, int k, bool k_major) {
  const unsigned start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4,
                 stride = (descriptor >> 32 & 0x3fff) << 4, mode = descriptor >> 62,
                 width = mode == 1   ? 128
                         : mode == 2 ? 64
                                     : 32;
  Require(mode != 0 && (descriptor >> 49 & 7) == 0, "a descriptor without swizzle, or with a base offset");
  unsigned address = start;
  if (k_major) {
    address += row / 8 * stride + row % 8 * width + k * T::kBytes;
  } else {
    const int each = static_cast<int>(width) / T::kBytes;
    address += row / each * leading + k / 8 * stride + k % 8 * width + row % each * T::kBytes;
  }
  return T::Value(smem + Swizzled(address, width));
}
// Adds to element `e` of an accumulator; float16 ones are packed.
inline void Accumulate(float* d, int e, double sum, bool keep) { d[e] = static_cast<float>((keep ? d[e] : 0) + sum); }
inline void Accumulate(int* d, int e, double sum, bool keep) { d[e] = (keep ? d[e] : 0) + static_cast<int>(sum); }
inline void Accumulate(unsigned* d, int e, double sum, bool keep) {
  unsigned short* const half = reinterpret_cast<unsigned short*>(d) + e;
  *half = cvt_f16(static_cast<float>((keep ? cvt_f32(*half) : 0) + sum));
}

// This thread's elements of d[64, N]: d[4j + e] is in row lane / 4 + 8·(e / 2) of the warp's 16, column 8j + 2·(lane % 4) + e
// % 2.
template <int kN, int kK, class B, bool kBKMajor, class D, class Row>
void Products(D* d, unsigned long long b, bool keep, Row a_row) {
  const int lane = static_cast<int>(current->x % 32);
  float a[2][kK];
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < kK; ++k) a[half][k] = a_row(static_cast<int>(current->x / 32 % 4) * 16 + lane / 4 + 8 * half, k);
  }
  for (int column = 0; column < kN / 4; ++column) {
    const int n = column / 2 * 8 + lane % 4 * 2 + column % 2;
    double sums[2] = {};
    for (int k = 0; k < kK; ++k) {
      const double x = Operand<B>(b, n, k, kBKMajor);
      sums[0] += a[0][k] * x, sums[1] += a[1][k] * x;
    }
    for (int half = 0; half < 2; ++half) Accumulate(d, column / 2 * 4 + half * 2 + column % 2, sums[half], keep);
  }
}
template <int kN, int kK, class A, class B, bool kAKMajor, bool kBKMajor, class D>
void Wgmma(D* d, unsigned long long a, unsigned long long b, bool keep) {
  Products<kN, kK, B, kBKMajor>(d, b, keep, [a](int row, int k) { return Operand<A>(a, row, k, kAKMajor); });
}
// A in registers, 16-bit: register i holds row lane / 4 + 8·(i % 2), columns 2·(lane % 4) + {0, 1} + 8·(i / 2).
template <int kN, int kK, class A, class B, bool kAKMajor, bool kBKMajor, class D>
void Wgmma(D* d, const unsigned* a, unsigned long long b, bool keep) {
  struct Argument {
    const unsigned* a;
    float rows[16][kK];
  } argument{a, {}};
  MeetWarp(&argument, [](std::vector<void*>& all) {
    for (void* to : all) {
      for (int row = 0; row < 16; ++row) {
        for (int k = 0; k < kK; ++k) {
          const auto* from = static_cast<Argument*>(all[static_cast<size_t>(row % 8 * 4 + k % 8 / 2)]);
          const unsigned short element = static_cast<unsigned short>(from->a[row / 8 + k / 8 * 2] >> 16 * (k % 2));
          static_cast<Argument*>(to)->rows[row][k] = A::Value(reinterpret_cast<const unsigned char*>(&element));
        }
      }
    }
  });
  Products<kN, kK, B, kBKMajor>(d, b, keep, [&](int row, int k) { return argument.rows[row % 16][k]; });
}

// A thread's registers of PTX for the accumulator whose array is `d`.
template <class T, size_t kCount>
T* PtxRegisters(T (&)[kCount], const char* name) {
  std::vector<unsigned>& registers = current->ptx_registers[name];
  registers.resize(std::max(registers.size(), kCount), 0xffffffffu);  // NaN
  return reinterpret_cast<T*>(registers.data());
}
template <class T, size_t kCount>
void Forget(T (&d)[kCount], const char* name) { std::memset(PtxRegisters(d, name), 0xff, sizeof d); }
template <class T, size_t kCount>
void Take(T (&d)[kCount], const char* name) { std::memcpy(d, PtxRegisters(d, name), sizeof d); }

// ---- stmatrix
template <bool kTrans, typename... Registers>
void Stmatrix(unsigned row, Registers... registers) {
  struct Argument {
    unsigned row;
    unsigned registers[4];
  } argument{row, {static_cast<unsigned>(registers)...}};
  MeetWarp(&argument, [](std::vector<void*>& all) {
    for (size_t m = 0; m < sizeof...(Registers); ++m) {
      for (size_t r = 0; r < 8; ++r) {
        const unsigned to = static_cast<Argument*>(all[8 * m + r])->row;
        Require(to % 16 == 0, "misaligned stmatrix");
        for (size_t j = 0; j < 8; ++j) {
          const size_t i = kTrans ? j : r, column = kTrans ? r : j;
          const unsigned pair = static_cast<Argument*>(all[i * 4 + column / 2])->registers[m];
          const unsigned short element = static_cast<unsigned short>(pair >> 16 * (column % 2));
          std::memcpy(smem + to + 2 * j, &element, 2);
        }
      }
    }
  });
}

}  // namespace host

#define elect_one() (threadIdx.x % 32 == 0)
#define barrier_sync host::BarrierSync
#define barrier_arrive host::BarrierArrive
#define mbarrier_init host::Init
#define mbarrier_arrive host::Arrive
#define mbarrier_expect host::Expect
#define mbarrier_wait host::Wait
#define tma_load host::Load
#define tma_load_hinted host::LoadHinted
#define tma_store host::Store
#define tma_add host::Add
#define stmatrix host::Stmatrix<false>
#define stmatrix_trans host::Stmatrix<true>
