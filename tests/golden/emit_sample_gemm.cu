
// sample_gemm for sm_80
// 64×64×32, 4 warps
// 2 versions
extern "C" __global__ void __launch_bounds__(128, 1)
sample_gemm(const bf16* __restrict__ A, const bf16* __restrict__ B, bf16* C, int M, int N, int K) {
  extern __shared__ __align__(128) u8 smem[];
  const u32 smem_base = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int bx = blockIdx.x % (u32)((N + 63) >> 6);
  const u32 block = blockIdx.x / (u32)((N + 63) >> 6);
  const int by = block;
  float acc[32] = {};
  // A -> A_shared, cp.async, 8 at once
  {
    const int row0 = (lane >> 2) + warp * 8;
    const int col0 = (lane & 3) * 8;
    const int A_shared_at = (lane >> 2) * 64 + warp * 512 + ((((((lane >> 2) + warp * 8) >> 1) & 3) * 16) ^ ((lane & 3) * 16));
    const u32 A_from = here((u32)((by * 64 + row0) * K + (0 * 32 + col0)));
    const int A_left = (int)here((u32)(M - (by * 64 + row0)));
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      cp_async<16>(smem_base + A_shared_at + r * 2048, A + (A_from + (u32)(r * 32) * K), (0 * 32 + col0 < K) & (r * 32 < A_left) ? 16 : 0);
    }
  }
  // B -> B_shared, cp.async, 8 at once
  {
    const int row0 = (lane >> 2) + warp * 8;
    const int col0 = (lane & 3) * 8;
    const int B_shared_at = (lane >> 2) * 64 + warp * 512 + ((((((lane >> 2) + warp * 8) >> 1) & 3) * 16) ^ ((lane & 3) * 16));
    const u32 B_from = here((u32)((bx * 64 + row0) * K + (0 * 32 + col0)));
    const int B_left = (int)here((u32)(N - (bx * 64 + row0)));
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      cp_async<16>(smem_base + B_shared_at + (r * 2048 + 8192), B + (B_from + (u32)(r * 32) * K), (0 * 32 + col0 < K) & (r * 32 < B_left) ? 16 : 0);
    }
  }
  cp_async_commit();
  #pragma unroll 1
  for (int ko = 0; ko < K >> 5; ++ko) {
    // have A_shared, B_shared
    cp_async_wait<0>();
    __syncthreads();
    // A -> A_shared, cp.async, 8 at once
    {
      const int row0 = (lane >> 2) + warp * 8;
      const int col0 = (lane & 3) * 8;
      const int A_shared_at = (lane >> 2) * 64 + warp * 512 + ((((((lane >> 2) + warp * 8) >> 1) & 3) * 16) ^ ((lane & 3) * 16));
      const u32 A_from = here((u32)((by * 64 + row0) * K + ((ko + 1) * 32 + col0)));
      const int A_left = (int)here((u32)(M - (by * 64 + row0)));
      #pragma unroll
      for (int r = 0; r < 2; ++r) {
        cp_async<16>(smem_base + A_shared_at + (((ko + 1) & 1) * 4096 + r * 2048), A + (A_from + (u32)(r * 32) * K), ((ko + 1) * 32 + col0 < K) & (r * 32 < A_left) ? 16 : 0);
      }
    }
    // B -> B_shared, cp.async, 8 at once
    {
      const int row0 = (lane >> 2) + warp * 8;
      const int col0 = (lane & 3) * 8;
      const int B_shared_at = (lane >> 2) * 64 + warp * 512 + ((((((lane >> 2) + warp * 8) >> 1) & 3) * 16) ^ ((lane & 3) * 16));
      const u32 B_from = here((u32)((bx * 64 + row0) * K + ((ko + 1) * 32 + col0)));
      const int B_left = (int)here((u32)(N - (bx * 64 + row0)));
      #pragma unroll
      for (int r = 0; r < 2; ++r) {
        cp_async<16>(smem_base + B_shared_at + (((ko + 1) & 1) * 4096 + r * 2048 + 8192), B + (B_from + (u32)(r * 32) * K), ((ko + 1) * 32 + col0 < K) & (r * 32 < B_left) ? 16 : 0);
      }
    }
    cp_async_commit();
    u32 A_reg[16];  // bfloat16, 2 a register
    u32 B_reg[16];  // bfloat16, 2 a register
    // A_shared -> A_reg, ldmatrix, 8 at once
    {
      const int A_shared_at = (lane & 7) * 64 + ((lane >> 3) & 1) * 512 + (warp & 1) * 2048 + ((((((lane & 7) + ((lane >> 3) & 1) * 8 + (warp & 1) * 32) >> 1) & 3) * 16) ^ ((lane >> 4) * 16));
      #pragma unroll
      for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int s = 0; s < 2; ++s) {
          ldmatrix(A_reg[r * 8 + s * 4], A_reg[r * 8 + s * 4 + 1], A_reg[r * 8 + s * 4 + 2], A_reg[r * 8 + s * 4 + 3], smem_base + (A_shared_at ^ (s * 32)) + ((ko & 1) * 4096 + r * 1024));
        }
      }
    }
    // B_shared -> B_reg, ldmatrix, 8 at once
    {
      const int B_shared_at = (lane & 7) * 64 + (warp >> 1) * 2048 + ((((((lane & 7) + (warp >> 1) * 32) >> 1) & 3) * 16) ^ (((lane >> 3) & 1) * 16 + (lane >> 4) * 32));
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        ldmatrix(B_reg[r * 4], B_reg[r * 4 + 1], B_reg[r * 4 + 2], B_reg[r * 4 + 3], smem_base + B_shared_at + ((ko & 1) * 4096 + r * 512 + 8192));
      }
    }
    // acc += A_reg * B_reg
    {
      #pragma unroll
      for (int kk = 0; kk < 2; ++kk) {
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
          #pragma unroll
          for (int s = 0; s < 4; ++s) {
            const int j = i & 1 ? 3 - s : s;
            mma_bf16(acc + i * 16 + j * 4, A_reg + i * 8 + kk * 4, B_reg + j * 4 + kk * 2);
          }
        }
      }
    }
  }
  // element by element
  {
    const int i0 = (lane >> 2) + (warp & 1) * 32;
    const int j0 = (lane & 3) * 2 + (warp >> 1) * 32;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      #pragma unroll
      for (int s = 0; s < 4; ++s) {
        #pragma unroll
        for (int t = 0; t < 2; ++t) {
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int i = i0 + r * 16 + t * 8;
            const int j = j0 + s * 8 + u;
            if ((by * 64 + i < M) & (bx * 64 + j < N)) put(C[(by * 64 + i) * N + (bx * 64 + j)], acc[t * 2 + r * 16 + u + s * 4]);
          }
        }
      }
    }
  }
}
