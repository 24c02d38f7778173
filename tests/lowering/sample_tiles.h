// Tile programs like those that engines need, at block sizes that are quick to simulate. All extents are dynamic unless a
// parameter fixes them.
#pragma once

#include "ir/program.h"

namespace tilert {

struct GemmTiles {
  DType type = DType::kBFloat16;
  DType out = DType::kBFloat16;
  bool transpose_a = false, transpose_b = false;
  int64_t block_m = 64, block_n = 64, block_k = 32;
  uint32_t stages = 3;
  int64_t threads = 128;
  bool stage_out = false;  // C through shared memory
};
// C[M, N] = op(A) · op(B), A [M, K] or [K, M], B [K, N] or [N, K].
Program GemmTilesProgram(const GemmTiles& options);
// C[N] = A[N] + B[N], blocks of 256.
Program AddProgram(DType type);
// B[N, M] = A[M, N]ᵀ through shared memory, 32 × 32 tiles.
Program TransposeProgram(DType type);
// Y[M, N] = X · rsqrt(mean(X²) + eps) · W, rows of at most `padded`.
Program RmsNormProgram(int64_t padded);
// Y = softmax of the rows of X[M, N], any N, a row a block, tiles of `tile`.
Program SoftmaxRowsProgram(int64_t tile);
// y[N] = A[N, K] · x[K] in float32, by products and a reduction.
Program GemvProgram(int64_t block_n, int64_t block_k);
// O[H, L, dim] = softmax(Q · Kᵀ / √dim) · V of H heads, L queries and S keys, float16, online softmax. No keys: zeros.
Program AttentionTilesProgram(bool causal, int64_t dim, int64_t block_m, int64_t block_n, uint32_t stages);
// Two launches with a workspace between them: y = sum of X[N], exactly, in int32.
Program SplitSumProgram();

}  // namespace tilert
