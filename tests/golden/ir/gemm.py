import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")
lda_1 = T.dynamic("lda")
block_M = T.constant("block_M", [128, 64])
block_N = T.constant("block_N", [128])
block_K = T.constant("block_K", [32])
stages = T.constant("stages", [3])


@T.prim_func
def gemm(
    A: T.StridedTensor((M, K), (lda_1, 1), "bfloat16", access="in"),
    B: T.Tensor((N, K), "bfloat16", access="in"),
    C: T.Tensor((M, N), "bfloat16", access="out"),
    lda: T.scalar("int64", dim=lda_1),
):
    T.assume((K % 8) == 0)
    T.assume((lda_1 >= K) and (stages > 0))
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        T.use_swizzle(10)
        A_shared = T.alloc_shared((block_M, block_K), "bfloat16")
        B_shared = T.alloc_shared((block_N, block_K), "bfloat16")
        acc = T.alloc_fragment((block_M, block_N), "float32")
        T.annotate_layout({A_shared: T.make_swizzled_layout(A_shared)})
        T.clear(acc)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M:(by * block_M) + block_M, ko * block_K:(ko * block_K) + block_K], A_shared)
            T.copy(B[bx * block_N:(bx * block_N) + block_N, ko * block_K:(ko * block_K) + block_K], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
        T.copy(acc, C[by * block_M:(by * block_M) + block_M, bx * block_N:(bx * block_N) + block_N])
