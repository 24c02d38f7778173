# Rows of which few have something to do: `if` in T.Parallel whose condition is one for a whole row, or a column, or a point.
import tilelang
import tilelang.language as T

M = T.dynamic("M")


@T.prim_func
def rows(A: T.Tensor((M, 252), "float32"), B: T.Tensor((M, 252), "float32")):
    with T.Kernel(T.ceildiv(M, 24), threads=32) as bx:
        a = T.alloc_fragment((24, 252), "float32")
        top = T.alloc_fragment((24,), "float32")
        T.copy(A[bx * 24, 0], a)
        T.reduce_sum(a, top, dim=1)
        for i, j in T.Parallel(24, 252):
            if top[i] > 24.0:
                a[i, j] = a[i, j] * top[i] + j
        T.copy(a, B[bx * 24, 0])


# A condition of each point, which the point changes.
@T.prim_func
def changing(A: T.Tensor((M, 252), "float32"), B: T.Tensor((M, 252), "float32")):
    with T.Kernel(T.ceildiv(M, 24), threads=32) as bx:
        a = T.alloc_fragment((24, 252), "float32")
        T.copy(A[bx * 24, 0], a)
        for i, j in T.Parallel(24, 252):
            if a[i, j] > 1.0:
                a[i, j] = -a[i, j]
        T.copy(a, B[bx * 24, 0])


@T.prim_func
def columns(A: T.Tensor((M, 252), "float32"), B: T.Tensor((M, 252), "float32")):
    with T.Kernel(T.ceildiv(M, 24), threads=32) as bx:
        a = T.alloc_fragment((24, 252), "float32")
        top = T.alloc_fragment((252,), "float32")
        T.copy(A[bx * 24, 0], a)
        T.reduce_sum(a, top, dim=0)
        for i, j in T.Parallel(24, 252):
            if top[j] > 7.0:
                a[i, j] += i
        T.copy(a, B[bx * 24, 0])
