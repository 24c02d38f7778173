// Tile programs that exercise the whole lowering, as builders.
#pragma once

#include "ir/program.h"

namespace tilert {

struct GemmSample {
  int64_t m = 64, n = 64, k = 32;  // tile
  int64_t stages = 3, threads = 128;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::kBFloat16, result = DType::kBFloat16;
  int64_t swizzle = 0;  // panel of T.use_swizzle
  DType dtype_b = DType::kInvalid;  // that of A if not given
};
// C[M, N] = op(A) · op(B), all dims dynamic. Integers are summed in int32; float32 may go as tf32.
Program GemmProgram(const GemmSample& sample);
// C[i] = A[i] + B[i], in blocks of `tile`.
Program AddProgram(int64_t tile, int64_t threads, DType dtype);
// Y[j, i] = X[i, j], in square tiles.
Program TransposeProgram(int64_t tile, int64_t threads, DType dtype);
// Y = X / rms(X) · W along the last dimension, of fixed extent, `rows` rows a block.
Program RmsNormProgram(int64_t rows, int64_t columns, int64_t threads);
// softmax(Q Kᵀ/√d) V over (B, H, S, d).
Program AttentionProgram(int64_t m, int64_t n, int64_t d, int64_t stages, int64_t threads, bool causal);

}  // namespace tilert
