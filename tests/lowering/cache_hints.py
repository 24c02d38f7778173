"""Which reads of tensors stream through the L2 cache: cache_hints_test.cc."""

import tilelang
import tilelang.language as T


@tilelang.jit
def row_scale(X, S, rows=8):
    """X is read once; S by all blocks."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    S: T.Tensor((N,), T.float32)
    Y = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        x = T.alloc_shared((rows, 128), T.float32)
        s = T.alloc_shared((128,), T.float32)
        y = T.alloc_fragment((rows, 128), T.float32)
        for c in T.Pipelined(T.ceildiv(N, 128), num_stages=2):
            T.copy(X[bx * rows, c * 128], x)
            T.copy(S[c * 128], s)
            for i, j in T.Parallel(rows, 128):
                y[i, j] = x[i, j] * s[j]
            T.copy(y, Y[bx * rows, c * 128])
    return Y


@tilelang.jit
def repeated(X, times=2):
    """Each block reads its part of X more than once."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, 4), T.ceildiv(N, 128), threads=128) as (bx, by):
        sum = T.alloc_fragment((4, 128), T.float32)
        x = T.alloc_shared((4, 128), T.float32)
        T.clear(sum)
        for t in T.Pipelined(times, num_stages=2):
            T.copy(X[bx * 4, by * 128], x)
            for i, j in T.Parallel(4, 128):
                sum[i, j] += x[i, j]
        T.copy(sum, Y[bx * 4, by * 128])
    return Y


@tilelang.jit
def overlapping(X):
    """Neighbours read the same rows."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, 4), T.ceildiv(N, 128), threads=128) as (bx, by):
        x = T.alloc_shared((8, 128), T.float32)
        sum = T.alloc_fragment((4, 128), T.float32)
        T.clear(sum)
        for c in T.Pipelined(T.ceildiv(N, 128), num_stages=2):
            T.copy(X[bx * 4, c * 128], x)
            for i, j in T.Parallel(4, 128):
                sum[i, j] += x[i, j] + x[i + 4, j]
        T.copy(sum, Y[bx * 4, by * 128])
    return Y
