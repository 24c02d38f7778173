// Atomics, each returning the value before. Where the hardware has none, compare and swap of the 32-bit word around the element.
template <class T, class Op> DEV Value<T> atomic_update(T* p, Op op) {
  if constexpr (sizeof(T) == 8) {
    u64* word = (u64*)p;
    u64 seen = *(volatile u64*)word, expected;
    T x;
    do {
      expected = seen;
      from_bits(x, expected);
      seen = atomicCAS(word, expected, bits_of((T)op(x)));
    } while (seen != expected);
    return x;
  } else {
    u32* word = (u32*)((u64)p & ~3ull);
    const int r = (int)((u64)p & 3) / (int)sizeof(T);
    u32 seen = *(volatile u32*)word, expected;
    Value<T> old;
    do {
      expected = seen;
      Reg<T> x;
      from_bits(x, expected);
      old = get<T>(&x, r);
      set<T>(&x, r, op(old));
      seen = atomicCAS(word, expected, bits_of(x));
    } while (seen != expected);
    return old;
  }
}
template <class T> DEV Value<T> atomic_add(T* p, Value<T> x) {
  if constexpr (SameTest<T, float>::kYes || SameTest<T, double>::kYes || SameTest<T, int>::kYes || SameTest<T, u32>::kYes || SameTest<T, u64>::kYes) return atomicAdd(p, x);
  else if constexpr (SameTest<T, i64>::kYes) return (i64)atomicAdd((u64*)p, (u64)x);
  else if constexpr (RealTest<Value<T>>::kYes) return atomic_update(p, [x](Value<T> old) { return old + x; });
  else return atomic_update(p, [x](Value<T> old) { return (Value<T>)((u64)old + (u64)x); });
}
template <class T> DEV Value<T> atomic_max(T* p, Value<T> x) {
  if constexpr (SameTest<T, int>::kYes || SameTest<T, u32>::kYes || SameTest<T, i64>::kYes || SameTest<T, u64>::kYes) return atomicMax(p, x);
  else return atomic_update(p, [x](Value<T> old) { return greatest(old, x); });
}
template <class T> DEV Value<T> atomic_min(T* p, Value<T> x) {
  if constexpr (SameTest<T, int>::kYes || SameTest<T, u32>::kYes || SameTest<T, i64>::kYes || SameTest<T, u64>::kYes) return atomicMin(p, x);
  else return atomic_update(p, [x](Value<T> old) { return least(old, x); });
}
