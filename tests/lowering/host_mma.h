// mma.sync of 8-bit operands and of tf32 on the host. Rows and columns of the fragments as the PTX ISA's tables of mma.m16n8k32
// and mma.m16n8k8 give them.
#pragma once

namespace host {

// `value(x, i)`: element i of a lane's registers x. Of K, a register holds `kPack` neighbours.
template <int kPack, typename Sum, typename Words, typename ValueA, typename ValueB>
void MmaOfAnyType(Sum* d, const Words* a, const Words* b, ValueA value_a, ValueB value_b) {
  struct Argument {
    Sum* d;
    const Words *a, *b;
  } argument{d, a, b};
  MeetWarp(&argument, [=](std::vector<void*>& all) {
    constexpr int kDepth = 8 * kPack;
    double ma[16][kDepth], mb[kDepth][8];
    for (int lane = 0; lane < 32; ++lane) {
      const auto* x = static_cast<Argument*>(all[static_cast<size_t>(lane)]);
      const int group = lane / 4, in_group = lane % 4;
      for (int i = 0; i < 4 * kPack; ++i) {
        const int row = group + (i / kPack % 2 != 0 ? 8 : 0),
                  column = in_group * kPack + i % kPack + (i >= 2 * kPack ? 4 * kPack : 0);
        ma[row][column] = value_a(x->a, i);
      }
      for (int i = 0; i < 2 * kPack; ++i)
        mb[in_group * kPack + i % kPack + (i >= kPack ? 4 * kPack : 0)][group] = value_b(x->b, i);
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + (i & 2 ? 8 : 0), column = lane % 4 * 2 + (i & 1);
        double sum = 0;
        for (int k = 0; k < kDepth; ++k) sum += ma[row][k] * mb[k][column];
        Sum& to = static_cast<Argument*>(all[static_cast<size_t>(lane)])->d[i];
        to = static_cast<Sum>(static_cast<double>(to) + sum);
      }
    }
  });
}

inline unsigned Byte(const unsigned* words, int i) { return words[i / 4] >> 8 * (i % 4) & 0xff; }
inline double ValueE4m3(const unsigned* words, int i) { return Packed<e4m3>::value(Byte(words, i)); }
inline double ValueE5m2(const unsigned* words, int i) { return Packed<e5m2>::value(Byte(words, i)); }
inline double ValueS8(const unsigned* words, int i) { return static_cast<signed char>(Byte(words, i)); }
inline double ValueU8(const unsigned* words, int i) { return Byte(words, i); }
inline double ValueTf32(const float* words, int i) { return __uint_as_float(__float_as_uint(words[i]) & 0xffffe000u); }

}  // namespace host

#define HOST_MMA(NAME, SUM, A, B) \
  inline void NAME(SUM* d, const unsigned* a, const unsigned* b) { host::MmaOfAnyType<4>(d, a, b, host::A, host::B); }
HOST_MMA(mma_e4m3_e4m3, float, ValueE4m3, ValueE4m3)
HOST_MMA(mma_e4m3_e5m2, float, ValueE4m3, ValueE5m2)
HOST_MMA(mma_e5m2_e4m3, float, ValueE5m2, ValueE4m3)
HOST_MMA(mma_e5m2_e5m2, float, ValueE5m2, ValueE5m2)
HOST_MMA(mma_s8_s8, int, ValueS8, ValueS8)
HOST_MMA(mma_s8_u8, int, ValueS8, ValueU8)
HOST_MMA(mma_u8_s8, int, ValueU8, ValueS8)
HOST_MMA(mma_u8_u8, int, ValueU8, ValueU8)
inline void mma_tf32(float* d, const float* a, const float* b) {
  host::MmaOfAnyType<1>(d, a, b, host::ValueTf32, host::ValueTf32);
}
