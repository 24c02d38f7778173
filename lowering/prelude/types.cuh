// Element types. 8- and 16-bit floats are containers of bits: arithmetic on them is done in float and rounded.
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct e4m3 { u8 bits; };
struct e5m2 { u8 bits; };
struct b8 { u8 bits; };  // bool in memory

template <int kBytes> struct BitsOf;
template <> struct BitsOf<1> { using Type = u8; };
template <> struct BitsOf<2> { using Type = u16; };
template <> struct BitsOf<4> { using Type = u32; };
template <> struct BitsOf<8> { using Type = u64; };

// Elements narrower than 32 bits are packed into 32-bit registers, the first in the lowest bits; wider ones sit in registers
// as they are. Packed<T>::code(value) gives the bits of an element, Packed<T>::value(bits) reads the lowest.
template <class T> struct Packed { using Reg = T; using Value = T; enum { kEach = 1 }; };
template <class T> using Reg = typename Packed<T>::Reg;
template <class T> using Value = typename Packed<T>::Value;

template <> struct Packed<bf16> {
  using Reg = u32; using Value = float; enum { kEach = 2 };
  static DEV u32 code(float x) { return cvt_bf16(x); }
  static DEV u32 pair(float lo, float hi) { return cvt_bf16x2(lo, hi); }
  static DEV float value(u32 bits) { return __uint_as_float(bits << 16); }
  static DEV float high(u32 bits) { return __uint_as_float(bits & 0xffff0000u); }
};
template <> struct Packed<f16> {
  using Reg = u32; using Value = float; enum { kEach = 2 };
  static DEV u32 code(float x) { return cvt_f16(x); }
  static DEV u32 pair(float lo, float hi) { return cvt_f16x2(lo, hi); }
  static DEV float value(u32 bits) { return cvt_f32((u16)bits); }
  static DEV float high(u32 bits) { return value(bits >> 16); }
};
template <> struct Packed<i16> {
  using Reg = u32; using Value = int; enum { kEach = 2 };
  static DEV u32 code(int x) { return (u16)x; }
  static DEV u32 pair(int lo, int hi) { return __byte_perm(lo, hi, 0x5410); }
  static DEV int value(u32 bits) { return (i16)bits; }
  static DEV int high(u32 bits) { return (int)bits >> 16; }
};
template <> struct Packed<u16> {
  using Reg = u32; using Value = u32; enum { kEach = 2 };
  static DEV u32 code(u32 x) { return (u16)x; }
  static DEV u32 pair(u32 lo, u32 hi) { return __byte_perm(lo, hi, 0x5410); }
  static DEV u32 value(u32 bits) { return (u16)bits; }
  static DEV u32 high(u32 bits) { return bits >> 16; }
};
template <> struct Packed<i8> {
  using Reg = u32; using Value = int; enum { kEach = 4 };
  static DEV u32 code(int x) { return (u8)x; }
  static DEV int value(u32 bits) { return (i8)bits; }
};
template <> struct Packed<u8> {
  using Reg = u32; using Value = u32; enum { kEach = 4 };
  static DEV u32 code(u32 x) { return (u8)x; }
  static DEV u32 value(u32 bits) { return (u8)bits; }
};
template <> struct Packed<b8> {
  using Reg = u32; using Value = bool; enum { kEach = 4 };
  static DEV u32 code(bool x) { return x; }
  static DEV bool value(u32 bits) { return (u8)bits != 0; }
};

// Element r of a register array. r is a constant once loops are unrolled.
template <class T> DEV Value<T> get(const Reg<T>* a, int r) {
  if constexpr (Packed<T>::kEach == 1) return a[r];
  else if constexpr (Packed<T>::kEach == 2) return r & 1 ? Packed<T>::high(a[r >> 1]) : Packed<T>::value(a[r >> 1]);
  else return Packed<T>::value(a[r >> 2] >> (r & 3) * 8);
}
template <class T> DEV void insert(u32* a, int r, u32 code) {
  if constexpr (Packed<T>::kEach == 2) a[r >> 1] = __byte_perm(a[r >> 1], code, r & 1 ? 0x5410 : 0x3254);
  else a[r >> 2] = __byte_perm(a[r >> 2], code, 0x3210 ^ ((r & 3) ^ 4) << (r & 3) * 4);
}
template <class T> DEV void set(Reg<T>* a, int r, Value<T> x) {
  if constexpr (Packed<T>::kEach == 1) a[r] = x;
  else insert<T>(a, r, Packed<T>::code(x));
}
template <class T> DEV u32 pair(Value<T> lo, Value<T> hi) { return Packed<T>::pair(lo, hi); }

// An element in memory.
template <class T> DEV Value<T> value(const T& x) {
  if constexpr (Packed<T>::kEach == 1) return x;
  else return Packed<T>::value(*(const typename BitsOf<sizeof(T)>::Type*)&x);
}
template <class T> DEV void put(T& x, Value<T> v) {
  if constexpr (Packed<T>::kEach == 1) x = v;
  else *(typename BitsOf<sizeof(T)>::Type*)&x = Packed<T>::code(v);
}
// `x` rounded to a narrow float type.
template <class T> DEV float rounded(float x) { return Packed<T>::value(Packed<T>::code(x)); }
