"""Softmax of the rows of a matrix, of any length.

The first `block_N` elements of a row stay in registers; longer rows are read twice. The maximum and the sum of a row are kept up to
date chunk by chunk.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def softmax(X, block_M=1, block_N=4096, threads=256, dtype=T.float16):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    Y = T.empty((M, N), dtype)
    log2_e = 1.4426950408889634

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        tile = T.alloc_fragment((block_M, block_N), dtype)
        first = T.alloc_fragment((block_M, block_N), T.float32)
        chunk = T.alloc_fragment((block_M, block_N), T.float32)
        largest = T.alloc_fragment((block_M,), T.float32)
        before = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)
        chunk_total = T.alloc_fragment((block_M,), T.float32)
        chunks = T.ceildiv(N, block_N)

        T.copy(X[bx * block_M, 0], tile)
        for i, j in T.Parallel(block_M, block_N):
            first[i, j] = T.if_then_else(j < N, T.cast(tile[i, j], T.float32) * log2_e, -T.infinity(T.float32))
        T.reduce_max(first, largest, dim=1)
        for i, j in T.Parallel(block_M, block_N):
            chunk[i, j] = T.exp2(first[i, j] - largest[i])
        T.reduce_sum(chunk, total, dim=1)

        for c in T.serial(1, chunks):
            T.copy(X[bx * block_M, c * block_N], tile)
            for i, j in T.Parallel(block_M, block_N):
                chunk[i, j] = T.if_then_else(c * block_N + j < N, T.cast(tile[i, j], T.float32) * log2_e, -T.infinity(T.float32))
            T.copy(largest, before)
            T.reduce_max(chunk, largest, dim=1, clear=False)
            for i, j in T.Parallel(block_M, block_N):
                chunk[i, j] = T.exp2(chunk[i, j] - largest[i])
            T.reduce_sum(chunk, chunk_total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = total[i] * T.exp2(before[i] - largest[i]) + chunk_total[i]

        for i in T.Parallel(block_M):
            total[i] = 1.0 / total[i]
        for i, j in T.Parallel(block_M, block_N):
            tile[i, j] = T.exp2(first[i, j] - largest[i]) * total[i]
        T.copy(tile, Y[bx * block_M, 0])
        for c in T.serial(1, chunks):
            T.copy(X[bx * block_M, c * block_N], tile)
            for i, j in T.Parallel(block_M, block_N):
                tile[i, j] = T.exp2(T.cast(tile[i, j], T.float32) * log2_e - largest[i]) * total[i]
            T.copy(tile, Y[bx * block_M, c * block_N])
    return Y
