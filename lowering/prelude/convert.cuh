// Conversions between values. What goes to a narrow float stays a float here; Packed<T>::code rounds it.
// Enumerators, as constants of type bool would take up memory.
template <class T> struct RealTest { enum { kYes = 0 }; };
template <> struct RealTest<float> { enum { kYes = 1 }; };
template <> struct RealTest<double> { enum { kYes = 1 }; };
template <class A, class B> struct SameTest { enum { kYes = 0 }; };
template <class A> struct SameTest<A, A> { enum { kYes = 1 }; };

// Registers as plain bits.
DEV u32 bits_of(u32 x) { return x; }
DEV u32 bits_of(int x) { return x; }
DEV u32 bits_of(float x) { return __float_as_uint(x); }
DEV void from_bits(u32& x, u32 bits) { x = bits; }
DEV void from_bits(int& x, u32 bits) { x = bits; }
DEV void from_bits(float& x, u32 bits) { x = __uint_as_float(bits); }
DEV u64 bits_of(u64 x) { return x; }
DEV u64 bits_of(i64 x) { return x; }
DEV u64 bits_of(double x) { return __double_as_longlong(x); }
DEV void from_bits(u64& x, u64 bits) { x = bits; }
DEV void from_bits(i64& x, u64 bits) { x = bits; }
DEV void from_bits(double& x, u64 bits) { x = __longlong_as_double(bits); }

// An element of a register array in its memory type, bits unchanged.
template <class T> DEV T pick(const Reg<T>* a, int r) {
  if constexpr (Packed<T>::kEach == 1) return a[r];
  else { const typename BitsOf<sizeof(T)>::Type x = a[r / Packed<T>::kEach] >> r % Packed<T>::kEach * (8 * sizeof(T)); return *(const T*)&x; }
}
template <class T> DEV void place(Reg<T>* a, int r, T x) {
  if constexpr (Packed<T>::kEach == 1) a[r] = x;
  else insert<T>(a, r, *(const typename BitsOf<sizeof(T)>::Type*)&x);
}
template <class T> DEV T make(Value<T> v) { T x; put(x, v); return x; }
template <class D, class S> DEV Value<D> reinterpret(Value<S> x) {
  if constexpr (sizeof(D) < 4) { const D d = *(const D*)&(const S&)make<S>(x); return value(d); }
  else { Reg<D> r; from_bits(r, bits_of(x)); return r; }
}

// `x` in float, rounded to odd: a later rounding to a narrower type is then as if it were the only one.
DEV float make_odd(float toward_zero, bool exact) { return __uint_as_float(__float_as_uint(toward_zero) | !exact); }
DEV float odd(float x) { return x; }
DEV float odd(bool x) { return x; }
DEV float odd(double x) { const float r = __double2float_rz(x); return x != x ? r : make_odd(r, r == x); }
DEV float odd(int x) { const float r = __int2float_rz(x); return make_odd(r, (double)r == x); }
DEV float odd(u32 x) { const float r = __uint2float_rz(x); return make_odd(r, (double)r == x); }
DEV float odd(i64 x) { const float r = __ll2float_rz(x); return make_odd(r, __float2ll_rz(r) == x); }
DEV float odd(u64 x) { const float r = __ull2float_rz(x); return make_odd(r, __float2ull_rz(r) == x); }

// Towards zero, saturated to T; NaN gives 0.
template <class T, class F> DEV Value<T> saturated(F x) {
  if (x != x) return 0;
  if constexpr (SameTest<T, i64>::kYes) { if constexpr (SameTest<F, float>::kYes) return __float2ll_rz(x); else return __double2ll_rz(x); }
  else if constexpr (SameTest<T, u64>::kYes) { if constexpr (SameTest<F, float>::kYes) return __float2ull_rz(x); else return __double2ull_rz(x); }
  else if constexpr (SameTest<T, u32>::kYes) { if constexpr (SameTest<F, float>::kYes) return __float2uint_rz(x); else return __double2uint_rz(x); }
  else {
    int i;
    if constexpr (SameTest<F, float>::kYes) i = __float2int_rz(x); else i = __double2int_rz(x);
    if constexpr (SameTest<T, i8>::kYes) return min(max(i, -128), 127);
    else if constexpr (SameTest<T, u8>::kYes) return min(max(i, 0), 255);
    else if constexpr (SameTest<T, i16>::kYes) return min(max(i, -32768), 32767);
    else if constexpr (SameTest<T, u16>::kYes) return min(max(i, 0), 65535);
    else return i;
  }
}

template <class T, class V> DEV Value<T> cast(V x) {
  if constexpr (SameTest<T, b8>::kYes) return x != 0;
  else if constexpr (SameTest<T, float>::kYes || SameTest<T, double>::kYes) return (T)x;
  else if constexpr (SameTest<T, e5m2>::kYes) return fabsf(odd(x)) > 57344.f ? copysignf(57344.f, odd(x)) : odd(x);
  else if constexpr (SameTest<Value<T>, float>::kYes) return odd(x);
  else if constexpr (RealTest<V>::kYes) return saturated<T>(x);
  else return (Value<T>)(T)x;
}

// kCount consecutive elements of register arrays: d = s, converted.
template <class D, class S, int kCount> DEV void convert(Reg<D>* d, const Reg<S>* s) {
  if constexpr (SameTest<D, S>::kYes) {
UNROLL
    for (int i = 0; i < (kCount + Packed<D>::kEach - 1) / Packed<D>::kEach; ++i) d[i] = s[i];
  } else if constexpr (Packed<D>::kEach == 2 && kCount % 2 == 0) {
UNROLL
    for (int i = 0; i < kCount; i += 2) d[i / 2] = pair<D>(cast<D>(get<S>(s, i)), cast<D>(get<S>(s, i + 1)));
  } else {
UNROLL
    for (int i = 0; i < kCount; ++i) set<D>(d, i, cast<D>(get<S>(s, i)));
  }
}
