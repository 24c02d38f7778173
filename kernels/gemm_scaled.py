"""C = scale_A · scale_B · (A · Bᵀ) of 8-bit operands with a scale each: float8_e4m3, float8_e5m2 or int8. Every extent is known only at launch.

Both operands lie along K: B is (N, K), as most models store weights. float8 operands are accumulated in float32, of which the tensor cores
of Hopper keep about 13 bits; with `fast_accum=False` blocks of K are added in full float32. int8 operands are summed in int32, exactly.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm_scaled(
    A,
    B,
    scale_A: T.float32,
    scale_B: T.float32,
    block_M=64,
    block_N=64,
    block_K=64,
    num_stages=3,
    threads=256,
    dtype=T.float8_e4m3,
    accum_dtype=T.float32,
    out_dtype=T.bfloat16,
    fast_accum=True,
):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), out_dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K), dtype)
        acc = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), out_dtype)
        scaled = acc
        if dtype == T.int8:
            scaled = T.alloc_fragment((block_M, block_N), T.float32)
        if not fast_accum:
            partial = T.alloc_fragment((block_M, block_N), accum_dtype)

        T.use_swizzle(8)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[bx * block_N, k * block_K], B_shared)
            if fast_accum:
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            else:
                T.gemm(A_shared, B_shared, partial, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    acc[i, j] += partial[i, j]
        for i, j in T.Parallel(block_M, block_N):
            scaled[i, j] = T.cast(acc[i, j], T.float32) * (scale_A * scale_B)
        T.copy(scaled, C_shared)
        T.copy(C_shared, C[by * block_M, bx * block_N])
    return C
