"""Softmax of the rows of a matrix, of any length.

A block takes a few rows, one after the other, and loads the next while it works on one. The first `block_N` elements of a row stay in
registers; longer rows are read twice. The maximum and the sum of a row are kept up to date chunk by chunk. `whole=1` leaves that out: no
row is longer than `block_N`.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def softmax(X, block_M=2, block_N=8192, num_stages=3, threads=256, whole=0, dtype=T.float16):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    Y = T.empty((M, N), dtype)
    log2_e = 1.4426950408889634

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        tile = T.alloc_shared((block_N,), dtype)
        chunk = T.alloc_fragment((block_N,), dtype)
        first = T.alloc_fragment((block_N,), T.float32)
        power = T.alloc_fragment((block_N,), T.float32)
        largest = T.alloc_fragment((1,), T.float32)
        before = T.alloc_fragment((1,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        chunk_total = T.alloc_fragment((1,), T.float32)
        chunks = T.ceildiv(N, block_N)

        for i in T.Pipelined(block_M, num_stages=num_stages):
            row = bx * block_M + i
            T.copy(X[row, 0], tile)
            T.copy(tile, chunk)
            for j in T.Parallel(block_N):
                first[j] = T.if_then_else(j < N, T.cast(chunk[j], T.float32) * log2_e, -T.infinity(T.float32))
            T.reduce_max(first, largest, dim=0)
            for j in T.Parallel(block_N):
                power[j] = T.exp2(first[j] - largest[0])
            T.reduce_sum(power, total, dim=0)

            if not whole:
                for c in T.serial(1, chunks):
                    T.copy(X[row, c * block_N], chunk)
                    for j in T.Parallel(block_N):
                        power[j] = T.if_then_else(c * block_N + j < N, T.cast(chunk[j], T.float32) * log2_e, -T.infinity(T.float32))
                    before[0] = largest[0]
                    T.reduce_max(power, largest, dim=0, clear=False)
                    for j in T.Parallel(block_N):
                        power[j] = T.exp2(power[j] - largest[0])
                    T.reduce_sum(power, chunk_total, dim=0)
                    total[0] = total[0] * T.exp2(before[0] - largest[0]) + chunk_total[0]

            total[0] = 1.0 / total[0]
            for j in T.Parallel(block_N):
                chunk[j] = T.exp2(first[j] - largest[0]) * total[0]
            T.copy(chunk, Y[row, 0])
            if not whole:
                for c in T.serial(1, chunks):
                    T.copy(X[row, c * block_N], chunk)
                    for j in T.Parallel(block_N):
                        chunk[j] = T.exp2(T.cast(chunk[j], T.float32) * log2_e - largest[0]) * total[0]
                    T.copy(chunk, Y[row, c * block_N])
    return Y
