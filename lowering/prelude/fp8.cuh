// 8-bit floats: by hardware from sm_89 on, else in float. Conversion to them saturates and keeps NaN.
#if __CUDA_ARCH__ >= 890
DEV u32 e4m3_encode(float x) { return cvt_e4m3(x); }
DEV u32 e5m2_encode(float x) { return cvt_e5m2(x); }
DEV float e4m3_decode(u32 code) { return cvt_f32((u16)cvt_f16x2_e4m3x2((u16)(code & 0xff))); }
#else
// kMantissa bits; the least normal number is 2^kLeast.
template <int kMantissa, int kLeast> DEV u32 fp8_encode(float x, float largest) {
  const u32 bits = __float_as_uint(x), sign = bits >> 24 & 0x80;
  if (x != x) return 0x7f;
  const float a = fminf(fabsf(x), largest);
  const int e = max((int)(__float_as_uint(a) >> 23) - 127, kLeast);
  const int n = __float2int_rn(a * __uint_as_float((u32)(127 + kMantissa - e) << 23));
  return sign | (((e - kLeast) << kMantissa) + n);
}
DEV u32 e4m3_encode(float x) { return fp8_encode<3, -6>(x, 448.f); }
DEV u32 e5m2_encode(float x) { return fp8_encode<2, -14>(x, 57344.f); }
DEV float e4m3_decode(u32 code) {
  const u32 e = code >> 3 & 15, m = code & 7;
  const float a = (code & 0x7f) == 0x7f ? __uint_as_float(0x7fffffff)
                  : e == 0 ? m * 0x1p-9f : __uint_as_float(((e + 120) << 23) | (m << 20));
  return code & 0x80 ? -a : a;
}
#endif
template <> struct Packed<e4m3> {
  using Reg = u32; using Value = float; enum { kEach = 4 };
  static DEV u32 code(float x) { return e4m3_encode(x); }
  static DEV float value(u32 bits) { return e4m3_decode(bits); }
};
template <> struct Packed<e5m2> {
  using Reg = u32; using Value = float; enum { kEach = 4 };
  // What was infinite in memory stays so; conversions saturate before (cast).
  static DEV u32 code(float x) { return fabsf(x) == __uint_as_float(0x7f800000u) ? (x < 0 ? 0xfcu : 0x7cu) : e5m2_encode(x); }
  static DEV float value(u32 bits) { return Packed<f16>::value((bits & 0xff) << 8); }  // the upper half of a float16
};
