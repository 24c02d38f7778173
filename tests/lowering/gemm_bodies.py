"""Products with something around them: what engines fuse into a gemm, and gemms written in other ways. gemm_bodies_test.cc asks that the
schedule stays that of the plain product, and that results are the executor's. The last tensor is the output.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def plain(A, B, dtype=T.float16, bm=64, bn=128, bk=64, threads=128, stages=3):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        B_shared = T.alloc_shared((bn, bk), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        C_shared = T.alloc_shared((bm, bn), dtype)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(A[by * bm, k * bk], A_shared)
            T.copy(B[bx * bn, k * bk], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        T.copy(acc, C_shared)
        T.copy(C_shared, C[by * bm, bx * bn])
    return C


@tilelang.jit
def renamed(X, W, Trips, dtype=T.float16, bm=64, bn=128, bk=64, threads=128, stages=3):
    """Other names, other orders, and statements that have nothing to do with it."""
    rows, features, depth = T.const("rows, features, depth")
    X: T.Tensor((rows, depth), dtype)
    W: T.Tensor((features, depth), dtype)
    Trips: T.Tensor((rows,), T.float32)
    out = T.empty((rows, features), dtype)
    with T.Kernel(T.ceildiv(features, bn), T.ceildiv(rows, bm), threads=threads) as (j_block, i_block):
        staged = T.alloc_shared((bm, bn), dtype)
        trips = T.alloc_fragment((bm,), T.float32)
        total = T.alloc_fragment((bm, bn), T.float32)
        w = T.alloc_shared((bn, bk), dtype)
        x = T.alloc_shared((bm, bk), dtype)
        T.clear(trips)
        T.clear(total)
        for step in T.Pipelined(T.ceildiv(depth, bk), num_stages=stages):
            T.copy(W[j_block * bn : (j_block + 1) * bn, step * bk : (step + 1) * bk], w)
            for r in T.Parallel(bm):
                trips[r] = trips[r] + 1.0
            T.copy(X[i_block * bm : (i_block + 1) * bm, step * bk : (step + 1) * bk], x)
            T.gemm(x, w, total, transpose_B=True)
        if j_block == 0:
            T.copy(trips, Trips[i_block * bm])
        T.copy(total, staged)
        T.copy(staged, out[i_block * bm, j_block * bn])
    return out


@tilelang.jit
def straight_out(A, B, dtype=T.float16, bm=64, bn=128, bk=64, threads=128, stages=3):
    """Scaled in place, stored without a tile in between."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        B_shared = T.alloc_shared((bn, bk), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(A[by * bm, k * bk], A_shared)
            T.copy(B[bx * bn, k * bk], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        for i, j in T.Parallel(bm, bn):
            acc[i, j] = T.max(acc[i, j] * 0.5, 0.0)
        T.copy(acc, C[by * bm, bx * bn])
    return C


@tilelang.jit
def element_stores(A, B, Bias, dtype=T.float16, bm=64, bn=128, bk=64, threads=128, stages=3):
    """The epilogue as one element loop over tensors."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    Bias: T.Tensor((N,), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        B_shared = T.alloc_shared((bn, bk), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(A[by * bm, k * bk], A_shared)
            T.copy(B[bx * bn, k * bk], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        for i, j in T.Parallel(bm, bn):
            C[by * bm + i, bx * bn + j] = acc[i, j] + T.cast(Bias[bx * bn + j], T.float32)
    return C


@tilelang.jit
def bias_gelu_residual_quantise(A, B, Bias, R, scale: T.float32, dtype=T.float16, out_dtype=T.float8_e4m3, bm=64, bn=128, bk=64, threads=128, stages=3):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    Bias: T.Tensor((N,), dtype)
    R: T.Tensor((M, N), dtype)
    C = T.empty((M, N), out_dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        B_shared = T.alloc_shared((bn, bk), dtype)
        R_shared = T.alloc_shared((bm, bn), dtype)
        bias = T.alloc_fragment((bn,), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        C_shared = T.alloc_shared((bm, bn), out_dtype)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(A[by * bm, k * bk], A_shared)
            T.copy(B[bx * bn, k * bk], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        T.copy(Bias[bx * bn], bias)
        T.copy(R[by * bm, bx * bn], R_shared)
        for i, j in T.Parallel(bm, bn):
            acc[i, j] += T.cast(bias[j], T.float32)
        for i, j in T.Parallel(bm, bn):
            acc[i, j] = 0.5 * acc[i, j] * (1.0 + T.erf(acc[i, j] * 0.7071067811865476))
        for i, j in T.Parallel(bm, bn):
            acc[i, j] = (acc[i, j] + T.cast(R_shared[i, j], T.float32)) * scale
        T.copy(acc, C_shared)
        T.copy(C_shared, C[by * bm, bx * bn])
    return C


@tilelang.jit
def gate_up(A, Gate, Up, dtype=T.float16, bm=64, bn=128, bk=64, threads=128, stages=3):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    Gate: T.Tensor((N, K), dtype)
    Up: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        Gate_shared = T.alloc_shared((bn, bk), dtype)
        Up_shared = T.alloc_shared((bn, bk), dtype)
        gate = T.alloc_fragment((bm, bn), T.float32)
        up = T.alloc_fragment((bm, bn), T.float32)
        C_shared = T.alloc_shared((bm, bn), dtype)
        T.clear(gate)
        T.clear(up)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(A[by * bm, k * bk], A_shared)
            T.copy(Gate[bx * bn, k * bk], Gate_shared)
            T.copy(Up[bx * bn, k * bk], Up_shared)
            T.gemm(A_shared, Gate_shared, gate, transpose_B=True)
            T.gemm(A_shared, Up_shared, up, transpose_B=True)
        for i, j in T.Parallel(bm, bn):
            gate[i, j] = gate[i, j] * T.sigmoid(gate[i, j]) * up[i, j]
        T.copy(gate, C_shared)
        T.copy(C_shared, C[by * bm, bx * bn])
    return C


@tilelang.jit
def two_into_one(A, B, X, Y, dtype=T.float16, bm=64, bn=128, bk=64, threads=128, stages=3):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    X: T.Tensor((M, K), dtype)
    Y: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        B_shared = T.alloc_shared((bn, bk), dtype)
        X_shared = T.alloc_shared((bm, bk), dtype)
        Y_shared = T.alloc_shared((bn, bk), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        C_shared = T.alloc_shared((bm, bn), dtype)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(A[by * bm, k * bk], A_shared)
            T.copy(B[bx * bn, k * bk], B_shared)
            T.copy(X[by * bm, k * bk], X_shared)
            T.copy(Y[bx * bn, k * bk], Y_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
            T.gemm(X_shared, Y_shared, acc, transpose_B=True)
        T.copy(acc, C_shared)
        T.copy(C_shared, C[by * bm, bx * bn])
    return C


@tilelang.jit
def one_by_one(A, B, X, Y, dtype=T.float16, bm=64, bn=64, bk=32, threads=128, stages=3):
    """As two_into_one, but each product's operands are asked for where it stands."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    X: T.Tensor((M, K), dtype)
    Y: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        B_shared = T.alloc_shared((bn, bk), dtype)
        X_shared = T.alloc_shared((bm, bk), dtype)
        Y_shared = T.alloc_shared((bn, bk), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(A[by * bm, k * bk], A_shared)
            T.copy(B[bx * bn, k * bk], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
            T.copy(X[by * bm, k * bk], X_shared)
            T.copy(Y[bx * bn, k * bk], Y_shared)
            T.gemm(X_shared, Y_shared, acc, transpose_B=True)
        T.copy(acc, C[by * bm, bx * bn])
    return C


@tilelang.jit
def gathered_rows(A, Rows, B, dtype=T.float16, bm=64, bn=128, bk=64, threads=128, stages=3):
    """Row i of the first operand is row Rows[i] of A (nothing where that is outside)."""
    M, N, K, S = T.const("M, N, K, S")
    A: T.Tensor((S, K), dtype)
    Rows: T.Tensor((M,), T.int32)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((bm, bk), dtype)
        B_shared = T.alloc_shared((bn, bk), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)
        C_shared = T.alloc_shared((bm, bn), dtype)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            for i, j in T.Parallel(bm, bk):
                A_shared[i, j] = A[Rows[by * bm + i], k * bk + j]
            T.copy(B[bx * bn, k * bk], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        T.copy(acc, C_shared)
        T.copy(C_shared, C[by * bm, bx * bn])
    return C
