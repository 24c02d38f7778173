
// rmsnorm_kernel for sm_80
//   x: free, 2 (reg 2@8) x 1024 (reg 8@1, lane 32@1, warp 4@1), 4 warps
//   square: follows its loop, 2 (reg 2@8) x 1024 (reg 8@1, lane 32@1, warp 4@1), 4 warps
//   scale: follows its loop, 2 (reg 2@1), 4 warps
//   W_tile: follows its loop, 1024 (reg 8@1, lane 32@1, warp 4@1), 4 warps
//   X → x: vectors of 16 bytes
//   W → W_tile: vectors of 16 bytes
//   x → Y: vectors of 16 bytes
extern "C" __global__ void __launch_bounds__(128, 1)
rmsnorm_kernel(const bf16* __restrict__ X, const bf16* __restrict__ W, bf16* Y, int M) {
  extern __shared__ __align__(128) u8 smem[];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int bx = blockIdx.x;
  float x[16] = {};
  float square[16] = {};
  float scale[2] = {};
  // X -> x, 8 at once
  {
    const int col0 = lane * 8 + warp * 256;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      u32 in[4];
      load_if<bf16, 8, true>(bx * 2 + r < M, in, X + (bx * 2 + r) * 1024 + col0, 0.0f);
      convert<float, bf16, 8>(x + r * 8, in);
    }
  }
  // element by element
  {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      #pragma unroll
      for (int s = 0; s < 8; ++s) {
        square[r * 8 + s] = x[r * 8 + s] * x[r * 8 + s];
      }
    }
  }
  float scale_partial[2];
  // scale_partial = sum of square along dimension 1
  {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      float x_1 = square[r * 8];
      #pragma unroll
      for (int s_1 = 1; s_1 < 8; ++s_1) {
        x_1 = x_1 + square[r * 8 + s_1];
      }
      x_1 = x_1 + __shfl_xor_sync(0xffffffffu, x_1, 1);
      x_1 = x_1 + __shfl_xor_sync(0xffffffffu, x_1, 2);
      x_1 = x_1 + __shfl_xor_sync(0xffffffffu, x_1, 4);
      x_1 = x_1 + __shfl_xor_sync(0xffffffffu, x_1, 8);
      x_1 = x_1 + __shfl_xor_sync(0xffffffffu, x_1, 16);
      scale_partial[r] = x_1;
    }
  }
  // scale_partial -> scale_warps
  {
    const int scale_warps_at = warp * 4;
    if (lane == 0) {
      #pragma unroll
      for (int r = 0; r < 2; ++r) {
        *(float*)(smem + scale_warps_at + r * 16) = scale_partial[r];
      }
    }
  }
  float scale_gathered[8];
  __syncthreads();
  // scale_warps -> scale_gathered
  {
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      #pragma unroll
      for (int s = 0; s < 2; ++s) {
        scale_gathered[s + r * 2] = *(float*)(smem + s * 16 + r * 4);
      }
    }
  }
  // scale = sum of scale_gathered along dimension 1
  {
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
      float x_1 = scale_gathered[s];
      #pragma unroll
      for (int s_1 = 1; s_1 < 4; ++s_1) {
        x_1 = x_1 + scale_gathered[s + s_1 * 2];
      }
      scale[s] = x_1;
    }
  }
  // element by element
  {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      scale[r] = rsqrt_(divide(scale[r], 1024.0f) + 1e-06f);
    }
  }
  u32 W_tile[4] = {};  // bfloat16, 2 a register
  // W -> W_tile, 8 at once
  {
    const int col0 = lane * 8 + warp * 256;
    load<bf16, 8, true>(W_tile, W + col0);
  }
  // element by element
  {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      #pragma unroll
      for (int s = 0; s < 8; ++s) {
        x[r * 8 + s] = x[r * 8 + s] * scale[r] * get<bf16>(W_tile, s);
      }
    }
  }
  // x -> Y, 8 at once
  {
    const int col0 = lane * 8 + warp * 256;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      u32 out[4];
      convert<bf16, float, 8>(out, x + r * 8);
      if (bx * 2 + r < M) store<bf16, 8>(Y + (bx * 2 + r) * 1024 + col0, out);
    }
  }
}
