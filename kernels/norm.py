"""Normalisation of the rows of a matrix.

A block takes a few rows. The first `block_N` elements of a row stay in registers, so rows up to that length are read once;
longer ones are read again, chunk by chunk, while they are in the L2 cache.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def rms_norm(X, W, block_M=1, block_N=4096, threads=256, eps=1e-6, dtype=T.float16):
    """Y = X / sqrt(mean(X²) + eps) · W, by rows."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    W: T.Tensor((N,), dtype)
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        first = T.alloc_fragment((block_M, block_N), dtype)
        chunk = T.alloc_fragment((block_M, block_N), dtype)
        weight = T.alloc_fragment((block_N,), dtype)
        square = T.alloc_fragment((block_M, block_N), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)
        inverse = T.alloc_fragment((block_M,), T.float32)
        chunks = T.ceildiv(N, block_N)

        # Beyond the end of a row, zeros are read; they add nothing.
        T.copy(X[bx * block_M, 0], first)
        for i, j in T.Parallel(block_M, block_N):
            square[i, j] = T.cast(first[i, j], T.float32) * T.cast(first[i, j], T.float32)
        for c in T.serial(1, chunks):
            T.copy(X[bx * block_M, c * block_N], chunk)
            for i, j in T.Parallel(block_M, block_N):
                square[i, j] += T.cast(chunk[i, j], T.float32) * T.cast(chunk[i, j], T.float32)
        T.reduce_sum(square, total, dim=1)
        for i in T.Parallel(block_M):
            inverse[i] = T.rsqrt(total[i] / T.cast(N, T.float32) + eps)

        T.copy(W[0], weight)
        for i, j in T.Parallel(block_M, block_N):
            first[i, j] = T.cast(first[i, j], T.float32) * inverse[i] * T.cast(weight[j], T.float32)
        T.copy(first, Y[bx * block_M, 0])
        for c in T.serial(1, chunks):
            T.copy(X[bx * block_M, c * block_N], chunk)
            T.copy(W[c * block_N], weight)
            for i, j in T.Parallel(block_M, block_N):
                chunk[i, j] = T.cast(chunk[i, j], T.float32) * inverse[i] * T.cast(weight[j], T.float32)
            T.copy(chunk, Y[bx * block_M, c * block_N])
    return Y


@tilelang.jit
def layer_norm(X, W, B, block_M=1, block_N=2048, threads=256, eps=1e-5, dtype=T.float16):
    """Y = (X − mean(X)) / sqrt(var(X) + eps) · W + B, by rows. The variance is that of the differences, not E[X²] − E[X]²."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    W: T.Tensor((N,), dtype)
    B: T.Tensor((N,), dtype)
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        first = T.alloc_fragment((block_M, block_N), dtype)
        chunk = T.alloc_fragment((block_M, block_N), dtype)
        weight = T.alloc_fragment((block_N,), dtype)
        bias = T.alloc_fragment((block_N,), dtype)
        partial = T.alloc_fragment((block_M, block_N), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)
        mean = T.alloc_fragment((block_M,), T.float32)
        inverse = T.alloc_fragment((block_M,), T.float32)
        chunks = T.ceildiv(N, block_N)

        T.copy(X[bx * block_M, 0], first)
        for i, j in T.Parallel(block_M, block_N):
            partial[i, j] = T.cast(first[i, j], T.float32)
        for c in T.serial(1, chunks):
            T.copy(X[bx * block_M, c * block_N], chunk)
            for i, j in T.Parallel(block_M, block_N):
                partial[i, j] += T.cast(chunk[i, j], T.float32)
        T.reduce_sum(partial, total, dim=1)
        for i in T.Parallel(block_M):
            mean[i] = total[i] / T.cast(N, T.float32)

        # The zeros beyond the end of a row differ from the mean: they are left out.
        for i, j in T.Parallel(block_M, block_N):
            difference = T.cast(first[i, j], T.float32) - mean[i]
            partial[i, j] = T.if_then_else(j < N, difference * difference, 0.0)
        for c in T.serial(1, chunks):
            T.copy(X[bx * block_M, c * block_N], chunk)
            for i, j in T.Parallel(block_M, block_N):
                difference = T.cast(chunk[i, j], T.float32) - mean[i]
                partial[i, j] += T.if_then_else(c * block_N + j < N, difference * difference, 0.0)
        T.reduce_sum(partial, total, dim=1)
        for i in T.Parallel(block_M):
            inverse[i] = T.rsqrt(total[i] / T.cast(N, T.float32) + eps)

        T.copy(W[0], weight)
        T.copy(B[0], bias)
        for i, j in T.Parallel(block_M, block_N):
            normal = (T.cast(first[i, j], T.float32) - mean[i]) * inverse[i]
            first[i, j] = normal * T.cast(weight[j], T.float32) + T.cast(bias[j], T.float32)
        T.copy(first, Y[bx * block_M, 0])
        for c in T.serial(1, chunks):
            T.copy(X[bx * block_M, c * block_N], chunk)
            T.copy(W[c * block_N], weight)
            T.copy(B[c * block_N], bias)
            for i, j in T.Parallel(block_M, block_N):
                normal = (T.cast(chunk[i, j], T.float32) - mean[i]) * inverse[i]
                chunk[i, j] = normal * T.cast(weight[j], T.float32) + T.cast(bias[j], T.float32)
            T.copy(chunk, Y[bx * block_M, c * block_N])
    return Y
