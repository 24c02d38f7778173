"""Y[j, i] = X[i, j] for a row-major matrix of any extents."""

import tilelang
import tilelang.language as T


@tilelang.jit
def transpose(X, block=64, threads=256, dtype=T.float16):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    Y = T.empty((N, M), dtype)

    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
        tile = T.alloc_shared((block, block), dtype)
        turned = T.alloc_fragment((block, block), dtype)

        T.copy(X[by * block, bx * block], tile)
        for j, i in T.Parallel(block, block):
            turned[j, i] = tile[i, j]
        T.copy(turned, Y[bx * block, by * block])
    return Y
