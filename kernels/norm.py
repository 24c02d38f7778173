"""Normalisation of the rows of a matrix.

A block takes a few rows, one after the other, and loads the next while it works on one. The first `block_N` elements of a row stay in
registers, so rows up to that length are read once; longer ones are read again, chunk by chunk, while they are in the L2 cache.
`whole=1` leaves that out: no row is longer than `block_N`.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def rms_norm(X, W, block_M=2, block_N=8192, num_stages=3, threads=256, whole=0, eps=1e-6, dtype=T.float16):
    """Y = X / sqrt(mean(X²) + eps) · W, by rows."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    W: T.Tensor((N,), dtype)
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        tile = T.alloc_shared((block_N,), dtype)
        first = T.alloc_fragment((block_N,), dtype)
        chunk = T.alloc_fragment((block_N,), dtype)
        first_weight = T.alloc_fragment((block_N,), dtype)
        weight = T.alloc_fragment((block_N,), dtype)
        square = T.alloc_fragment((block_N,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        inverse = T.alloc_fragment((1,), T.float32)
        chunks = T.ceildiv(N, block_N)

        T.copy(W[0], first_weight)
        for i in T.Pipelined(block_M, num_stages=num_stages):
            row = bx * block_M + i
            # Beyond the end of a row, zeros are read; they add nothing.
            T.copy(X[row, 0], tile)
            T.copy(tile, first)
            for j in T.Parallel(block_N):
                square[j] = T.cast(first[j], T.float32) * T.cast(first[j], T.float32)
            if not whole:
                for c in T.serial(1, chunks):
                    T.copy(X[row, c * block_N], chunk)
                    for j in T.Parallel(block_N):
                        square[j] += T.cast(chunk[j], T.float32) * T.cast(chunk[j], T.float32)
            T.reduce_sum(square, total, dim=0)
            inverse[0] = T.rsqrt(total[0] / T.cast(N, T.float32) + eps)

            for j in T.Parallel(block_N):
                first[j] = T.cast(first[j], T.float32) * inverse[0] * T.cast(first_weight[j], T.float32)
            T.copy(first, Y[row, 0])
            if not whole:
                for c in T.serial(1, chunks):
                    T.copy(X[row, c * block_N], chunk)
                    T.copy(W[c * block_N], weight)
                    for j in T.Parallel(block_N):
                        chunk[j] = T.cast(chunk[j], T.float32) * inverse[0] * T.cast(weight[j], T.float32)
                    T.copy(chunk, Y[row, c * block_N])
    return Y


@tilelang.jit
def layer_norm(X, W, B, block_M=4, block_N=8192, num_stages=3, threads=256, whole=0, eps=1e-5, dtype=T.float16):
    """Y = (X − mean(X)) / sqrt(var(X) + eps) · W + B, by rows. The variance is that of the differences, not E[X²] − E[X]²."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    W: T.Tensor((N,), dtype)
    B: T.Tensor((N,), dtype)
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        tile = T.alloc_shared((block_N,), dtype)
        first_weight = T.alloc_shared((block_N,), dtype)
        first_bias = T.alloc_shared((block_N,), dtype)
        first = T.alloc_fragment((block_N,), dtype)
        chunk = T.alloc_fragment((block_N,), dtype)
        weight = T.alloc_fragment((block_N,), dtype)
        bias = T.alloc_fragment((block_N,), dtype)
        partial = T.alloc_fragment((block_N,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        mean = T.alloc_fragment((1,), T.float32)
        inverse = T.alloc_fragment((1,), T.float32)
        chunks = T.ceildiv(N, block_N)

        T.copy(W[0], first_weight)
        T.copy(B[0], first_bias)
        for i in T.Pipelined(block_M, num_stages=num_stages):
            row = bx * block_M + i
            T.copy(X[row, 0], tile)
            T.copy(tile, first)
            for j in T.Parallel(block_N):
                partial[j] = T.cast(first[j], T.float32)
            if not whole:
                for c in T.serial(1, chunks):
                    T.copy(X[row, c * block_N], chunk)
                    for j in T.Parallel(block_N):
                        partial[j] += T.cast(chunk[j], T.float32)
            T.reduce_sum(partial, total, dim=0)
            mean[0] = total[0] / T.cast(N, T.float32)

            # The zeros beyond the end of a row differ from the mean: they are left out.
            for j in T.Parallel(block_N):
                difference = T.cast(first[j], T.float32) - mean[0]
                partial[j] = T.if_then_else(j < N, difference * difference, 0.0)
            if not whole:
                for c in T.serial(1, chunks):
                    T.copy(X[row, c * block_N], chunk)
                    for j in T.Parallel(block_N):
                        difference = T.cast(chunk[j], T.float32) - mean[0]
                        partial[j] += T.if_then_else(c * block_N + j < N, difference * difference, 0.0)
            T.reduce_sum(partial, total, dim=0)
            inverse[0] = T.rsqrt(total[0] / T.cast(N, T.float32) + eps)

            T.copy(first_weight, weight)
            T.copy(first_bias, bias)
            for j in T.Parallel(block_N):
                normal = (T.cast(first[j], T.float32) - mean[0]) * inverse[0]
                first[j] = normal * T.cast(weight[j], T.float32) + T.cast(bias[j], T.float32)
            T.copy(first, Y[row, 0])
            if not whole:
                for c in T.serial(1, chunks):
                    T.copy(X[row, c * block_N], chunk)
                    T.copy(W[c * block_N], weight)
                    T.copy(B[c * block_N], bias)
                    for j in T.Parallel(block_N):
                        normal = (T.cast(chunk[j], T.float32) - mean[0]) * inverse[0]
                        chunk[j] = normal * T.cast(weight[j], T.float32) + T.cast(bias[j], T.float32)
                    T.copy(chunk, Y[row, c * block_N])
    return Y
