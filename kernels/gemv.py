"""y = W · x for a row-major matrix of any extents."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemv(W, x, block_N=8, block_K=512, threads=128, dtype=T.float16, accum_dtype=T.float32):
    N, K = T.const("N, K")
    W: T.Tensor((N, K), dtype)
    x: T.Tensor((K,), dtype)
    y = T.empty((N,), dtype)

    with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
        W_tile = T.alloc_fragment((block_N, block_K), dtype)
        x_tile = T.alloc_fragment((block_K,), dtype)
        partial = T.alloc_fragment((block_N, block_K), accum_dtype)
        total = T.alloc_fragment((block_N,), accum_dtype)

        T.clear(partial)
        for k in T.serial(T.ceildiv(K, block_K)):
            T.copy(W[bx * block_N, k * block_K], W_tile)
            T.copy(x[k * block_K], x_tile)
            # Products are added up where they are; threads meet once, at the end.
            for i, j in T.Parallel(block_N, block_K):
                partial[i, j] += T.cast(W_tile[i, j], accum_dtype) * T.cast(x_tile[j], accum_dtype)
        T.reduce_sum(partial, total, dim=1)
        T.copy(total, y[bx * block_N])
    return y
