// Vector accesses: kCount consecutive elements (4, 8 or 16 bytes) between memory and a register array.
// kConst: nobody writes this memory while the kernel runs.
template <bool kConst, class V> DEV V fetch(const void* p) {
  if constexpr (kConst) return __ldg((const V*)p); else return *(const V*)p;
}
template <class T, int kCount, bool kConst = false> DEV void load(Reg<T>* r, const T* p) {
  constexpr int kBytes = kCount * (int)sizeof(T);
  if constexpr (sizeof(Reg<T>) == 8) {
    if constexpr (kBytes == 16) {
      const ulonglong2 v = fetch<kConst, ulonglong2>(p);
      from_bits(r[0], v.x); from_bits(r[1], v.y);
    } else {
      from_bits(r[0], fetch<kConst, u64>(p));
    }
  } else if constexpr (kBytes == 16) {
    const uint4 v = fetch<kConst, uint4>(p);
    from_bits(r[0], v.x); from_bits(r[1], v.y); from_bits(r[2], v.z); from_bits(r[3], v.w);
  } else if constexpr (kBytes == 8) {
    const uint2 v = fetch<kConst, uint2>(p);
    from_bits(r[0], v.x); from_bits(r[1], v.y);
  } else {
    static_assert(kBytes == 4, "width of a vector access");
    from_bits(r[0], fetch<kConst, u32>(p));
  }
}
template <class T, int kCount> DEV void store(T* p, const Reg<T>* r) {
  constexpr int kBytes = kCount * (int)sizeof(T);
  if constexpr (sizeof(Reg<T>) == 8) {
    if constexpr (kBytes == 16) *(ulonglong2*)p = make_ulonglong2(bits_of(r[0]), bits_of(r[1]));
    else *(u64*)p = bits_of(r[0]);
  } else if constexpr (kBytes == 16) {
    *(uint4*)p = make_uint4(bits_of(r[0]), bits_of(r[1]), bits_of(r[2]), bits_of(r[3]));
  } else if constexpr (kBytes == 8) {
    *(uint2*)p = make_uint2(bits_of(r[0]), bits_of(r[1]));
  } else {
    static_assert(kBytes == 4, "width of a vector access");
    *(u32*)p = bits_of(r[0]);
  }
}

template <class T, int kCount> DEV void fill(Reg<T>* r, Value<T> x) {
UNROLL
  for (int i = 0; i < kCount; ++i) set<T>(r, i, x);
}
// An element of memory that nobody writes, or zero: branches would let one load wait for another.
template <class T> DEV T load_or_zero(bool inside, const T* p) {
  const typename BitsOf<sizeof(T)>::Type bits = ldg_if(inside, (const typename BitsOf<sizeof(T)>::Type*)p);
  return *(const T*)&bits;
}
// All or nothing: `other` where not `inside`.
template <class T, int kCount, bool kConst = false> DEV void load_if(bool inside, Reg<T>* r, const T* p, Value<T> other) {
  if (inside) load<T, kCount, kConst>(r, p); else fill<T, kCount>(r, other);
}
// The first n elements, `other` for the rest; n may be anything.
template <class T, int kCount, bool kConst = false> DEV void load_first(int n, Reg<T>* r, const T* p, Value<T> other) {
  if (n >= kCount) {
    load<T, kCount, kConst>(r, p);
  } else {
UNROLL
    for (int i = 0; i < kCount; ++i) set<T>(r, i, i < n ? value(p[i]) : other);
  }
}
template <class T, int kCount> DEV void store_first(int n, T* p, const Reg<T>* r) {
  if (n >= kCount) {
    store<T, kCount>(p, r);
  } else {
UNROLL
    for (int i = 0; i < kCount; ++i) if (i < n) put(p[i], get<T>(r, i));
  }
}
// Elements of a vector of `width` that lie before the end, `rest` elements away.
DEV int clip(int rest, int width) { return min(max(rest, 0), width); }
DEV int clip(i64 rest, int width) { return (int)min(max(rest, 0ll), (i64)width); }
// A coordinate of a box of a tensor, none of whose dims is above 2^30, as far outside as the box needs.
DEV int box_start(i64 at) { return (int)min(max(at, -(1ll << 30)), 1ll << 30); }

// Byte offset of a column (in bytes) of a row in panels of `panel` bytes, `pitch` bytes from row to row.
DEV int paneled(int row, int column, int rows, int panel, int pitch) { return (column / panel * rows + row) * pitch + column % panel; }
// The same in panels of kPanel bytes whose 16-byte chunks are swizzled.
template <int kPanel> DEV int swizzled(int row, int column, int rows) {
  const int chunk = kPanel == 128 ? row & 7 : kPanel == 64 ? row >> 1 & 3 : row >> 2 & 1;
  return (column / kPanel * rows + row) * kPanel + ((column & (kPanel - 1)) ^ (chunk << 4));
}
// Panels of 128 bytes again; rows eight apart get different chunks too, for tiles that threads read across their rows.
DEV int folded(int row, int column, int rows) {
  return (column / 128 * rows + row) * 128 + ((column & 127) ^ (((row ^ row >> 3) & 7) << 4));
}
