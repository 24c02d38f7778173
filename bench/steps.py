"""kernels/gemm.py's C = A · Bᵀ with each step of its schedule left out by a setting: what each is worth (docs/schedules.md)."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm(
    A,
    B,
    block_M=128,
    block_N=256,
    block_K=64,
    num_stages=4,
    threads=256,
    cluster_M=1,
    cluster_N=1,
    tma=1,
    tma_store=1,
    raster=16,
    dtype=T.bfloat16,
):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(
        T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads, cluster_dims=(cluster_N, cluster_M)
    ) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K), dtype)
        acc = T.alloc_fragment((block_M, block_N), T.float32)

        if raster:
            T.use_swizzle(raster)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            if tma:
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
            else:
                T.copy(A[by * block_M, k * block_K], A_shared, disable_tma=True)
                T.copy(B[bx * block_N, k * block_K], B_shared, disable_tma=True)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        if tma_store:
            T.copy(acc, C[by * block_M, bx * block_N])
        else:
            T.copy(acc, C[by * block_M, bx * block_N], disable_tma=True)
    return C
