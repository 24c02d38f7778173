
// add_kernel for sm_80
//   B_tile: free, 1024 (lane 32@1, warp 4@1, reg 8@1), 4 warps
//   A_tile: follows its loop, 1024 (lane 32@1, warp 4@1, reg 8@1), 4 warps
//   C_tile: follows its loop, 1024 (lane 32@1, warp 4@1, reg 8@1), 4 warps
//   B → B_tile: vectors of 4 bytes
//   A → A_tile: vectors of 4 bytes
//   C_tile → C: vectors of 4 bytes
extern "C" __global__ void __launch_bounds__(128, 1)
add_kernel(const float* __restrict__ A, const float* __restrict__ B, float* C, i64 N) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int bx = blockIdx.x;
  float B_tile[8] = {};
  // B -> B_tile
  {
    const int col0 = lane + warp * 32;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int col = col0 + r * 128;
      B_tile[r] = load_or_zero((i64)bx * 1024 + col < N, B + (i64)bx * 1024 + col);
    }
  }
  float A_tile[8] = {};
  // A -> A_tile
  {
    const int col0 = lane + warp * 32;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int col = col0 + r * 128;
      A_tile[r] = load_or_zero((i64)bx * 1024 + col < N, A + (i64)bx * 1024 + col);
    }
  }
  float C_tile[8] = {};
  // element by element
  {
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
      C_tile[r] = A_tile[r] + B_tile[r];
    }
  }
  // C_tile -> C
  {
    const int col0 = lane + warp * 32;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int col = col0 + r * 128;
      if ((i64)bx * 1024 + col < N) C[(i64)bx * 1024 + col] = C_tile[r];
    }
  }
}
