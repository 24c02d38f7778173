// Atomics, each returning nothing. Where the hardware has none, compare and swap of the 32-bit word around the element.
template <class T, class Op> DEV void atomic_update(T* p, Op op) {
  if constexpr (sizeof(T) == 8) {
    u64* word = (u64*)p;
    u64 seen = *(volatile u64*)word, expected;
    do {
      expected = seen;
      T x;
      from_bits(x, expected);
      seen = atomicCAS(word, expected, bits_of((T)op(x)));
    } while (seen != expected);
  } else {
    u32* word = (u32*)((u64)p & ~3ull);
    const int r = (int)((u64)p & 3) / (int)sizeof(T);
    u32 seen = *(volatile u32*)word, expected;
    do {
      expected = seen;
      Reg<T> x;
      from_bits(x, expected);
      set<T>(&x, r, op(get<T>(&x, r)));
      seen = atomicCAS(word, expected, bits_of(x));
    } while (seen != expected);
  }
}
template <class T> DEV void atomic_add(T* p, Value<T> x) {
  if constexpr (kSame<T, float> || kSame<T, double> || kSame<T, int> || kSame<T, u32> || kSame<T, u64>) atomicAdd(p, x);
  else if constexpr (kSame<T, i64>) atomicAdd((u64*)p, (u64)x);
  else if constexpr (kReal<Value<T>>) atomic_update(p, [x](Value<T> old) { return old + x; });
  else atomic_update(p, [x](Value<T> old) { return (Value<T>)((u64)old + (u64)x); });
}
template <class T> DEV void atomic_max(T* p, Value<T> x) {
  if constexpr (kSame<T, int> || kSame<T, u32> || kSame<T, i64> || kSame<T, u64>) atomicMax(p, x);
  else atomic_update(p, [x](Value<T> old) { return greatest(old, x); });
}
template <class T> DEV void atomic_min(T* p, Value<T> x) {
  if constexpr (kSame<T, int> || kSame<T, u32> || kSame<T, i64> || kSame<T, u64>) atomicMin(p, x);
  else atomic_update(p, [x](Value<T> old) { return least(old, x); });
}
