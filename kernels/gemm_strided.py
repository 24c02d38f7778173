"""C = op(A) · op(B) of parts of larger row-major matrices: rows lie as far apart as the caller says. Else as gemm.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm_strided(
    A,
    B,
    C,
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=4,
    threads=128,
    transpose_A=False,
    transpose_B=False,
    dtype=T.float16,
    accum_dtype=T.float32,
):
    M, N, K = T.const("M, N, K")
    pitch_A, pitch_B, pitch_C = T.const("pitch_A, pitch_B, pitch_C")
    A: T.StridedTensor((K, M) if transpose_A else (M, K), (pitch_A, 1), dtype)
    B: T.StridedTensor((N, K) if transpose_B else (K, N), (pitch_B, 1), dtype)
    C: T.StridedTensor((M, N), (pitch_C, 1), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((block_K, block_M) if transpose_A else (block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K) if transpose_B else (block_K, block_N), dtype)
        acc = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), dtype)

        T.use_swizzle(16)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            if transpose_A:
                T.copy(A[k * block_K, by * block_M], A_shared)
            else:
                T.copy(A[by * block_M, k * block_K], A_shared)
            if transpose_B:
                T.copy(B[bx * block_N, k * block_K], B_shared)
            else:
                T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_A=transpose_A, transpose_B=transpose_B)
        T.copy(acc, C_shared)
        T.copy(C_shared, C[by * block_M, bx * block_N])
