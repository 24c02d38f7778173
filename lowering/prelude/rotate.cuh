// One digit of the indices of the first kWords words of a register array, of `kCount` values `kStride` words apart: what is at 1
// goes to 0, and so on, and what is at 0 to the end. A loop that is not unrolled takes its registers from index 0 and lets them go
// round, since only constants can be indices; after kCount turns all are where they were.
template <int kStride, int kCount, int kWords, class T> DEV void rotate(T* a) {
  static_assert(kWords % (kStride * kCount) == 0, "whole digits");
  UNROLL
  for (int i = 0; i < kWords; i += kStride * kCount) {
    UNROLL
    for (int j = i; j < i + kStride; ++j) {
      const T first = a[j];
      UNROLL
      for (int k = 0; k < kCount - 1; ++k) a[j + k * kStride] = a[j + (k + 1) * kStride];
      a[j + (kCount - 1) * kStride] = first;
    }
  }
}
// The same in elements that share words.
template <class T, int kStride, int kCount, int kElements> DEV void rotate_packed(u32* a) {
  static_assert(kElements % (kStride * kCount) == 0, "whole digits");
  UNROLL
  for (int i = 0; i < kElements; i += kStride * kCount) {
    UNROLL
    for (int j = i; j < i + kStride; ++j) {
      const T first = pick<T>(a, j);
      UNROLL
      for (int k = 0; k < kCount - 1; ++k) place<T>(a, j + k * kStride, pick<T>(a, j + (k + 1) * kStride));
      place<T>(a, j + (kCount - 1) * kStride, first);
    }
  }
}
