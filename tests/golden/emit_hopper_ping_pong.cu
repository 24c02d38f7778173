
// hopper_gemm for sm_90a
extern "C" __global__ void __launch_bounds__(384, 1)
hopper_gemm(const bf16* __restrict__ A, const bf16* __restrict__ B, bf16* C, const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, const __grid_constant__ TensorMap C_map, int M, int N, int K) {
  extern __shared__ __align__(1024) u8 smem[];
  wgmma_registers_f32x192(acc);
  const u32 smem_base = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int block_warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const u32 ab_full = smem_base + 229376, ab_empty = ab_full + 32;
  if (threadIdx.x == 0) {
    prefetch(A_map);
    prefetch(B_map);
    prefetch(C_map);
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      mbarrier_init(ab_full + i * 8, 1);
      mbarrier_init(ab_empty + i * 8, 4);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  const int trips = (K + 63) >> 6;
  if (block_warp < 8) {
    // consumer
    take_registers<232>();
    const int instance = block_warp >> 2;
    const int warp = block_warp & 3;
    const bool leader = warp == 0 && lane == 0;
    int ab_slot = 0;
    u32 ab_phase = 0;
    if (instance == 1) barrier_arrive<256>(3);
    advance<4>(ab_slot, ab_phase, instance * trips);
    {
      const u32 tiles = (u32)div_positive(N + 191, 192) * (u32)((M + 127) >> 7);
      #pragma unroll 1
      for (u32 tile = blockIdx.x + instance * gridDim.x; tile < tiles; tile += 2 * gridDim.x) {
        int bx, by;
        raster(tile, (u32)div_positive(N + 191, 192), (u32)((M + 127) >> 7), 16, bx, by);
        float acc[192];
        wgmma_forget_f32x192(acc);
        barrier_sync<256>(3 + instance);
        #pragma unroll 1
        for (int t = 0; t < trips; ++t) {
          mbarrier_wait(ab_full + ab_slot * 8, ab_phase);
          wgmma_fence();
          // acc += A_tile * B_tile, wgmma 128x192x64
          {
            const u64 a = wgmma_operand<128>(smem_base) + ab_slot * 1024;
            const u64 b = wgmma_operand<128>(smem_base + 65536, 8192) + ab_slot * 1536;
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
              wgmma_m64n192k16_f32_bf16_bf16_km_r0(acc, a + k * 2, b + k * 128, k > 0 || t != 0);
              wgmma_m64n192k16_f32_bf16_bf16_km_r96(acc, a + k * 2 + 512, b + k * 128, k > 0 || t != 0);
            }
          }
          wgmma_commit();
          wgmma_wait<1>();
          if (t > 0) {
            __syncwarp();
            if (lane == 0) mbarrier_arrive(ab_empty + behind<4>(ab_slot, 1) * 8);
          }
          if (++ab_slot == 4) { ab_slot = 0; ab_phase ^= 1; }
        }
        barrier_arrive<256>(4 - instance);
        wgmma_wait<0>();
        wgmma_take_f32x192(acc);
        if (trips > 0) {
          __syncwarp();
          if (lane == 0) mbarrier_arrive(ab_empty + behind<4>(ab_slot, 1) * 8);
        } else {
          // element by element
          {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
              #pragma unroll
              for (int s = 0; s < 24; ++s) {
                #pragma unroll
                for (int t = 0; t < 2; ++t) {
                  #pragma unroll
                  for (int u = 0; u < 2; ++u) {
                    acc[t * 2 + r * 96 + u + s * 4] = opaque(0.0f);
                  }
                }
              }
            }
          }
        }
        advance<4>(ab_slot, ab_phase, trips);
        if (leader) {
          tma_wait_read<1>();
        }
        barrier_sync<128>(1 + instance);
        // acc -> C_tile, stmatrix, 2 at once
        {
          const int C_tile_at = (lane & 7) * 128 + ((lane >> 3) & 1) * 1024 + warp * 2048 + (((((lane & 7) + ((lane >> 3) & 1) * 8 + warp * 16) & 7) * 16) ^ ((lane >> 4) * 16));
          #pragma unroll
          for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int s = 0; s < 4; ++s) {
              stmatrix(smem_base + (C_tile_at ^ (s * 32)) + ((instance * 2 + 0) * 16384 + r * 8192 + 163840), pair<bf16>(acc[r * 96 + s * 2 * 4], acc[r * 96 + s * 2 * 4 + 1]), pair<bf16>(acc[r * 96 + s * 2 * 4 + 2], acc[r * 96 + s * 2 * 4 + 3]), pair<bf16>(acc[r * 96 + (s * 2 + 1) * 4], acc[r * 96 + (s * 2 + 1) * 4 + 1]), pair<bf16>(acc[r * 96 + (s * 2 + 1) * 4 + 2], acc[r * 96 + (s * 2 + 1) * 4 + 3]));
            }
          }
        }
        fence_async_proxy();
        barrier_sync<128>(1 + instance);
        if (leader) {
          // C_tile -> C, TMA
          tma_store(C_map, smem_base + (instance * 2 + 0) * 16384 + 163840, bx * 192 + 0, by * 128);
          tma_commit();
          tma_wait_read<1>();
        }
        barrier_sync<128>(1 + instance);
        // acc -> C_tile, stmatrix, 2 at once
        {
          const int C_tile_at = (lane & 7) * 128 + ((lane >> 3) & 1) * 1024 + warp * 2048 + (((((lane & 7) + ((lane >> 3) & 1) * 8 + warp * 16) & 7) * 16) ^ ((lane >> 4) * 16));
          #pragma unroll
          for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int s = 0; s < 4; ++s) {
              stmatrix(smem_base + (C_tile_at ^ (s * 32)) + ((instance * 2 + 1) * 16384 + r * 8192 + 163840), pair<bf16>(acc[r * 96 + (s * 2 + 8) * 4], acc[r * 96 + (s * 2 + 8) * 4 + 1]), pair<bf16>(acc[r * 96 + (s * 2 + 8) * 4 + 2], acc[r * 96 + (s * 2 + 8) * 4 + 3]), pair<bf16>(acc[r * 96 + (s * 2 + 9) * 4], acc[r * 96 + (s * 2 + 9) * 4 + 1]), pair<bf16>(acc[r * 96 + (s * 2 + 9) * 4 + 2], acc[r * 96 + (s * 2 + 9) * 4 + 3]));
            }
          }
        }
        fence_async_proxy();
        barrier_sync<128>(1 + instance);
        if (leader) {
          // C_tile -> C, TMA
          tma_store(C_map, smem_base + (instance * 2 + 1) * 16384 + 163840, bx * 192 + 64, by * 128);
          tma_commit();
          tma_wait_read<1>();
        }
        barrier_sync<128>(1 + instance);
        // acc -> C_tile, stmatrix, 2 at once
        {
          const int C_tile_at = (lane & 7) * 128 + ((lane >> 3) & 1) * 1024 + warp * 2048 + (((((lane & 7) + ((lane >> 3) & 1) * 8 + warp * 16) & 7) * 16) ^ ((lane >> 4) * 16));
          #pragma unroll
          for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int s = 0; s < 4; ++s) {
              stmatrix(smem_base + (C_tile_at ^ (s * 32)) + ((instance * 2 + 0) * 16384 + r * 8192 + 163840), pair<bf16>(acc[r * 96 + ((s * 16 + 128) >> 3) % 24 * 4], acc[r * 96 + ((s * 16 + 1 + 128) >> 3) % 24 * 4 + 1]), pair<bf16>(acc[r * 96 + ((s * 16 + 128) >> 3) % 24 * 4 + 2], acc[r * 96 + ((s * 16 + 1 + 128) >> 3) % 24 * 4 + 3]), pair<bf16>(acc[r * 96 + ((s * 16 + 8 + 128) >> 3) % 24 * 4], acc[r * 96 + ((s * 16 + 9 + 128) >> 3) % 24 * 4 + 1]), pair<bf16>(acc[r * 96 + ((s * 16 + 8 + 128) >> 3) % 24 * 4 + 2], acc[r * 96 + ((s * 16 + 9 + 128) >> 3) % 24 * 4 + 3]));
            }
          }
        }
        fence_async_proxy();
        barrier_sync<128>(1 + instance);
        if (leader) {
          // C_tile -> C, TMA
          tma_store(C_map, smem_base + (instance * 2 + 0) * 16384 + 163840, bx * 192 + 128, by * 128);
          tma_commit();
        }
      }
    }
    if (leader) {
      tma_wait_read<0>();
    }
  } else {
    // producer
    give_registers<40>();
    if (block_warp == 8 && elect_one()) {
      int ab_slot = 0;
      u32 ab_phase = 0;
      {
        const u32 tiles = (u32)div_positive(N + 191, 192) * (u32)((M + 127) >> 7);
        #pragma unroll 1
        for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
          int bx, by;
          raster(tile, (u32)div_positive(N + 191, 192), (u32)((M + 127) >> 7), 16, bx, by);
          #pragma unroll 1
          for (int t = 0; t < trips; ++t) {
            mbarrier_wait(ab_empty + ab_slot * 8, ab_phase ^ 1);
            mbarrier_expect(ab_full + ab_slot * 8, 40960);
            // A -> A_tile, TMA
            tma_load(smem_base + ab_slot * 16384, A_map, ab_full + ab_slot * 8, t * 64, by * 128);
            // B -> B_tile, TMA
            #pragma unroll
            for (int p = 0; p < 3; ++p) {
              tma_load(smem_base + ab_slot * 24576 + p * 8192 + 65536, B_map, ab_full + ab_slot * 8, bx * 192 + p * 64, t * 64);
            }
            if (++ab_slot == 4) { ab_slot = 0; ab_phase ^= 1; }
          }
        }
      }
    }
  }
}
