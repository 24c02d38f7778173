"""Loops that several blocks may share (T.Pipelined(split=…)), and some that only say so. split_sums_test.cc. The last tensor is the output."""

import tilelang
import tilelang.language as T


@tilelang.jit
def product(A, B, R, dtype=T.float16, bm=64, bn=64, bk=64, threads=128, stages=3, split=2, start=False):
    """With something to start from and something to do after the sum."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    R: T.Tensor((M, N), T.float32)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        a = T.alloc_shared((bm, bk), dtype)
        b = T.alloc_shared((bn, bk), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        if start:
            T.copy(R[by * bm, bx * bn], acc)
        else:
            T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages, split=split):
            T.copy(A[by * bm, k * bk], a)
            T.copy(B[bx * bn, k * bk], b)
            T.gemm(a, b, acc, transpose_B=True)
        for i, j in T.Parallel(bm, bn):
            acc[i, j] = T.max(acc[i, j], 0.0)
        T.copy(acc, C[by * bm, bx * bn])
    return C


@tilelang.jit
def two_products(A, B, D, split=2):
    """C = A · Bᵀ + A · Dᵀ: two products into one sum."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((N, K), T.float16)
    D: T.Tensor((N, K), T.float16)
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), T.float16)
        b = T.alloc_shared((64, 32), T.float16)
        d = T.alloc_shared((64, 32), T.float16)
        acc = T.alloc_fragment((64, 64), T.float32)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2, split=split):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[bx * 64, k * 32], b)
            T.copy(D[bx * 64, k * 32], d)
            T.gemm(a, b, acc, transpose_B=True)
            T.gemm(a, d, acc, transpose_B=True)
        T.copy(acc, C[by * 64, bx * 64])
    return C


@tilelang.jit
def row_sums(X, split=3, stages=2):
    """No product at all: sums of rows, and of their squares."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M,), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        x = T.alloc_shared((8, 128), T.float32)
        wide = T.alloc_fragment((8, 128), T.float32)
        total = T.alloc_fragment((8,), T.float32)
        squares = T.alloc_fragment((8, 128), T.float32)
        T.clear(wide)
        T.clear(squares)
        for c in T.Pipelined(T.ceildiv(N, 128), num_stages=stages, split=split):
            T.copy(X[bx * 8, c * 128], x)
            for i, j in T.Parallel(8, 128):
                wide[i, j] = wide[i, j] + x[i, j]
                squares[i, j] += x[i, j] * x[i, j]
        for i, j in T.Parallel(8, 128):
            wide[i, j] = wide[i, j] + squares[i, j]
        T.reduce_sum(wide, total, dim=1)
        T.copy(total, Y[bx * 8])
    return Y


@tilelang.jit
def largest(X, split=2):
    """A maximum is no sum."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M,), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        x = T.alloc_shared((8, 128), T.float32)
        top = T.alloc_fragment((8, 128), T.float32)
        most = T.alloc_fragment((8,), T.float32)
        T.clear(top)
        for c in T.Pipelined(T.ceildiv(N, 128), num_stages=2, split=split):
            T.copy(X[bx * 8, c * 128], x)
            for i, j in T.Parallel(8, 128):
                top[i, j] = T.max(top[i, j], x[i, j])
        T.reduce_max(top, most, dim=1)
        T.copy(most, Y[bx * 8])
    return Y


@tilelang.jit
def last_chunk(X, split=2):
    """What the last iteration leaves is read after the loop, beside a sum."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, 128), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        x = T.alloc_shared((8, 128), T.float32)
        total = T.alloc_fragment((8, 128), T.float32)
        T.clear(total)
        T.clear(x)
        for c in T.Pipelined(T.ceildiv(N, 128), num_stages=2, split=split):
            T.copy(X[bx * 8, c * 128], x)
            for i, j in T.Parallel(8, 128):
                total[i, j] += x[i, j]
        for i, j in T.Parallel(8, 128):
            total[i, j] = total[i, j] + x[i, j]
        T.copy(total, Y[bx * 8, 0])
    return Y


@tilelang.jit
def writes_inside(X, Z, split=2):
    """Each iteration writes to memory."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Z: T.Tensor((M, N), T.float32)
    Y = T.empty((M, 128), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        x = T.alloc_shared((8, 128), T.float32)
        total = T.alloc_fragment((8, 128), T.float32)
        T.clear(total)
        for c in T.Pipelined(T.ceildiv(N, 128), num_stages=2, split=split):
            T.copy(X[bx * 8, c * 128], x)
            for i, j in T.Parallel(8, 128):
                total[i, j] += x[i, j]
            T.copy(x, Z[bx * 8, c * 128])
        T.copy(total, Y[bx * 8, 0])
    return Y


@tilelang.jit
def inner_loop(X, split=2):
    """The loop stands in another one."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, 128), T.float32)
    with T.Kernel(1, threads=64) as bx:
        x = T.alloc_shared((8, 128), T.float32)
        total = T.alloc_fragment((8, 128), T.float32)
        for r in T.serial(T.ceildiv(M, 8)):
            T.clear(total)
            for c in T.Pipelined(T.ceildiv(N, 128), num_stages=2, split=split):
                T.copy(X[r * 8, c * 128], x)
                for i, j in T.Parallel(8, 128):
                    total[i, j] += x[i, j]
            T.copy(total, Y[r * 8, 0])
    return Y


@tilelang.jit
def ragged(X, split=0):
    """How many iterations there are depends on the block."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, 128), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        x = T.alloc_shared((8, 128), T.float32)
        total = T.alloc_fragment((8, 128), T.float32)
        T.clear(total)
        for c in T.Pipelined(bx + 1, num_stages=2, split=split):
            T.copy(X[bx * 8, c * 128], x)
            for i, j in T.Parallel(8, 128):
                total[i, j] += x[i, j]
        T.copy(total, Y[bx * 8, 0])
    return Y


@tilelang.jit
def roles_behind(X, split=2):
    """Threads have roles of their own behind the loop."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, 128), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        x = T.alloc_shared((8, 128), T.float32)
        last = T.alloc_shared((8, 128), T.float32)
        total = T.alloc_fragment((8, 128), T.float32)
        T.clear(total)
        for c in T.Pipelined(T.ceildiv(N, 128), num_stages=2, split=split):
            T.copy(X[bx * 8, c * 128], x)
            for i, j in T.Parallel(8, 128):
                total[i, j] += x[i, j]
        T.copy(total, last)
        with T.roles():
            with T.role(0, 32):
                T.copy(last[0:4, :], Y[bx * 8 : bx * 8 + 4, :])
            with T.role(32, 64):
                T.copy(last[4:8, :], Y[bx * 8 + 4 : bx * 8 + 8, :])
    return Y
