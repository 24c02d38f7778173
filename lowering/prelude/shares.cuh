// Tiles whose iterations all blocks (or clusters: workers) of the launch share, and the sums that blocks leave for each other.

DEV int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }
DEV u32 same_in_warp(u32 x) { return __shfl_sync(0xffffffffu, x, 0); }
DEV bool same_in_warp(bool x) { return same_in_warp((int)x) != 0; }

// What worker number `worker` of `workers` does of `tiles` tiles of `iterations_each` iterations each: whole tiles, as often as `workers` goes into them; of what is left as many
// iterations as the others, one at most apart, the last first. Where there are several workers for each tile that is left, all tiles get equally many if that leaves
// no more than an eighth of the workers without.
struct Shares {
  u32 tile = 0;
  int begin = 0, end = 0;
  u32 worker;
  DEV Shares(u32 number, u32 count, u32 tiles, int each) : worker(number), workers(count), iterations_each(each), next_whole(number) {
    whole = each > 0 ? tiles / count * count : tiles;
    left = tiles - whole;
    const u32 even = left > 0 && 2 * left <= count ? count / left * left : 0;
    sharers = 8 * even >= 7 * count ? even : count;
  }
  // What is not kept is computed again: the producer has few registers.
  DEV bool next() {
    if (next_whole < whole) return tile = next_whole, next_whole += workers, begin = 0, end = iterations_each, true;
    const i64 first = starts(worker), last = next_whole == kShared ? (i64)(tile - whole) * iterations_each + begin : starts(worker + 1);
    next_whole = kShared;
    if (last <= first) return false;
    const u32 number = (u32)((u64)(last - 1) / (u32)iterations_each);
    tile = whole + number;
    const i64 start = (i64)number * iterations_each;
    begin = start > first ? 0 : (int)(first - start);
    end = (int)(last - start);
    return true;
  }
  // Moves `other`, the worker itself at first, on to the next that has iterations of the tile before its own; false: nobody has.
  DEV bool helped_by(u32& other) const {
    if (tile < whole) return false;
    const i64 start = (i64)(tile - whole) * iterations_each;
    i64 from = starts(other);
    while (from > start) {
      const i64 to = from;
      from = starts(--other);
      if (from < to) return true;
    }
    return false;
  }

 private:
  enum : u32 { kShared = 0xffffffff };
  DEV i64 starts(u32 number) const { return (i64)((u64)left * iterations_each * min(number, sharers) / sharers); }
  u32 workers, whole, left, sharers;
  int iterations_each;
  u32 next_whole;
};

// Sums in the workspace: a thread's first chunk of 16 bytes, the next ones kThreads chunks apart. As floats where they are floats: registers that ptxas knows as
// integers cannot stay with the tensor cores. Past the caches of the SM.
DEV void given_write(u8* place, float a, float b, float c, float d) {
  asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" :: "l"(place), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
DEV void given_write(u8* place, int a, int b, int c, int d) {
  asm volatile("st.global.cg.v4.b32 [%0], {%1, %2, %3, %4};" :: "l"(place), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEV void given_write(u8* place, u32 a, u32 b, u32 c, u32 d) { given_write(place, (int)a, (int)b, (int)c, (int)d); }
DEV void given_read(float* x, const u8* place) {
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "l"(place) : "memory");
}
DEV void given_read(int* x, const u8* place) {
  asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "l"(place) : "memory");
}
DEV void given_read(u32* x, const u8* place) { given_read((int*)x, place); }

template <int kThreads, class T, int kCount> DEV void sum_give(u8* place, const T (&r)[kCount]) {
UNROLL
  for (int i = 0; i < kCount; i += 4)
    given_write(place + i * kThreads * 4, r[i], i + 1 < kCount ? r[i + 1 < kCount ? i + 1 : 0] : T{}, i + 2 < kCount ? r[i + 2 < kCount ? i + 2 : 0] : T{},
                i + 3 < kCount ? r[i + 3 < kCount ? i + 3 : 0] : T{});
}
// Some loads are under way before the first is needed.
template <int kThreads, class T, int kCount> DEV void sum_take(T (&r)[kCount], const u8* place) {
  constexpr int kAhead = 32;
UNROLL
  for (int i = 0; i < kCount; i += kAhead) {
    T x[kAhead];
UNROLL
    for (int j = 0; j < kAhead; j += 4) {
      if (i + j < kCount) given_read(x + j, place + (i + j) * kThreads * 4);
    }
UNROLL
    for (int j = 0; j < kAhead; ++j) {
      if (i + j < kCount) r[i + j] += x[j];
    }
  }
}

// A warp's flag that its sums are there. Who takes them takes the flag away too: no launch finds one that an earlier one left, and memory that holds something else
// is no flag. The lanes' accesses are ordered with those of the lane that sets or sees the flag by __syncwarp.
enum Flag : u64 { kNotGiven = 0, kGiven = 0xb5c0fbcfec4d3b2full };
DEV void sums_given(u8* flag, int lane) {
  __syncwarp();
  if (lane == 0) {
    asm volatile("st.release.gpu.global.b64 [%0], %1;" :: "l"(flag), "l"((u64)kGiven) : "memory");
  }
}
DEV void sums_wait(const u8* flag, int lane) {
  if (lane == 0) {
    u64 seen;
    do {
      asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
    } while (seen != kGiven);
  }
  __syncwarp();
}
DEV void sums_taken(u8* flag, int lane) {
  __syncwarp();
  if (lane == 0) {
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" :: "l"(flag), "l"((u64)kNotGiven) : "memory");
  }
}
