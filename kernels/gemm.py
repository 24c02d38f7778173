"""C = op(A) · op(B), row-major, every extent known only at launch."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm(
    A,
    B,
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=4,
    threads=128,
    split=1,
    cluster_M=1,
    cluster_N=1,
    transpose_A=False,
    transpose_B=False,
    dtype=T.float16,
    accum_dtype=T.float32,
):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((K, M) if transpose_A else (M, K), dtype)
    B: T.Tensor((N, K) if transpose_B else (K, N), dtype)
    C = T.empty((M, N), dtype)

    # Blocks of a cluster load what they have in common once.
    with T.Kernel(
        T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads, cluster_dims=(cluster_N, cluster_M)
    ) as (bx, by):
        A_shared = T.alloc_shared((block_K, block_M) if transpose_A else (block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K) if transpose_B else (block_K, block_N), dtype)
        acc = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), dtype)

        T.use_swizzle(16)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages, split=split):
            if transpose_A:
                T.copy(A[k * block_K, by * block_M], A_shared)
            else:
                T.copy(A[by * block_M, k * block_K], A_shared)
            if transpose_B:
                T.copy(B[bx * block_N, k * block_K], B_shared)
            else:
                T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_A=transpose_A, transpose_B=transpose_B)
        # Through shared memory, so that rows leave in wide stores.
        T.copy(acc, C_shared)
        T.copy(C_shared, C[by * block_M, bx * block_N])
    return C
