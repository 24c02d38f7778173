"""Elementwise sum of two vectors of any length."""

import tilelang
import tilelang.language as T


@tilelang.jit
def add(A, B, block=2048, threads=256, dtype=T.float16):
    N = T.const("N")
    A: T.Tensor((N,), dtype)
    B: T.Tensor((N,), dtype)
    C = T.empty((N,), dtype)

    with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
        a = T.alloc_fragment((block,), dtype)
        b = T.alloc_fragment((block,), dtype)
        # Tiles may reach beyond the end: what is read there is zero, what is written there is dropped.
        T.copy(A[bx * block], a)
        T.copy(B[bx * block], b)
        for i in T.Parallel(block):
            a[i] = a[i] + b[i]
        T.copy(a, C[bx * block])
    return C
