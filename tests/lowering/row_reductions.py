# Reductions as parts of expressions: of rows, columns, boxes; hoisted in front of the loop, or walked where they stand.
import tilelang
import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")


@T.prim_func
def rows(A: T.Tensor((M, N), "int32"), S: T.Tensor((M, 4), "int32")):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
        a = T.alloc_fragment((16, 24), "int32")
        T.copy(A[bx * 16, 0], a)
        for i in T.Parallel(16):
            S[bx * 16 + i, 0] = T.sum(a[i, :]) * 2 + T.max(a[i, :])
            S[bx * 16 + i, 1] = T.min(a[i, 3:9])
            S[bx * 16 + i, 2] = T.sum(a[i, 5])
            S[bx * 16 + i, 3] = T.max(T.max(a[i, 1:2]), 7)


@T.prim_func
def columns(A: T.Tensor((M, N), "int32"), S: T.Tensor((M, 24), "int32")):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
        a = T.alloc_shared((16, 24), "int32")
        T.copy(A[bx * 16, 0], a)
        for r in T.serial(16):
            for j in T.Parallel(24):
                S[bx * 16 + r, j] = T.sum(a[:, j]) - T.max(a[r + 1 : r + 3, j]) + r


# Rows that begin elsewhere, and a box of three dimensions of which two are reduced.
@T.prim_func
def boxes(A: T.Tensor((M, N), "int32"), S: T.Tensor((M, 2), "int32")):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
        a = T.alloc_shared((16, 24), "int32")
        b = T.alloc_shared((3, 14, 5), "int32")
        T.copy(A[bx * 16, 0], a)
        for k, i, j in T.Parallel(3, 14, 5):
            b[k, i, j] = a[i, j + k]
        for i in T.Parallel(14):
            S[bx * 16 + i, 0] = T.sum(a[2 + i, :]) + T.max(b[:, i, :])
            S[bx * 16 + i, 1] = T.sum(b[1, i, 0:4])
        total = T.sum(b)
        for i in T.Parallel(2):
            S[bx * 16 + 14 + i, 0] = total
            S[bx * 16 + 14 + i, 1] = T.min(b[:, :, i])


# What the loop itself writes, what only some points reduce, what is nested deeper, what lies in global memory.
@T.prim_func
def walked(A: T.Tensor((M, N), "int32"), S: T.Tensor((M, 5), "int32")):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
        a = T.alloc_fragment((16, 24), "int32")
        own = T.alloc_shared((16, 24), "int32")
        T.copy(A[bx * 16, 0], a)
        T.copy(a, own)
        for i in T.Parallel(16):
            own[i, 0] = own[i, 0] + 5
            S[bx * 16 + i, 0] = T.sum(own[i, :])
            S[bx * 16 + i, 1] = T.max(A[bx * 16 + i, 0:N])
            S[bx * 16 + i, 2] = 1
            if i % 3 == 1:
                S[bx * 16 + i, 2] = T.sum(own[15 - i, 2:24])
            best = T.alloc_var("int32")
            best = 0
            for k in T.serial(3):
                best = best + T.sum(own[i, k * 2 : k * 2 + i % 4])
            S[bx * 16 + i, 3] = best
            S[bx * 16 + i, 4] = T.if_then_else(T.any_of(own[i, 0:2]), 1, 0) + T.if_then_else(T.all_of(own[i, 0:3]), 2, 0)


@T.prim_func
def nested(A: T.Tensor((M, N), "int32"), S: T.Tensor((M, 24), "int32")):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
        a = T.alloc_fragment((16, 24), "int32")
        T.copy(A[bx * 16, 0], a)
        for i in T.Parallel(16):
            for j in T.Parallel(24):
                S[bx * 16 + i, j] = a[i, j] + T.sum(a[i, :]) * 3


# The condition of a while is computed in each iteration.
@T.prim_func
def halves(A: T.Tensor((M, N), "int32"), S: T.Tensor((M, 24), "int32")):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
        a = T.alloc_shared((16, 24), "int32")
        T.copy(A[bx * 16, 0], a)
        while T.max(a) > 2:
            for i, j in T.Parallel(16, 24):
                a[i, j] = a[i, j] // 2
        T.copy(a, S[bx * 16, 0])


# A sum of 16 bits is one of 32.
@T.prim_func
def halves_to_floats(A: T.Tensor((M, N), "float16"), S: T.Tensor((M, 2), "float32")):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
        a = T.alloc_fragment((16, 24), "float16")
        T.copy(A[bx * 16, 0], a)
        for i in T.Parallel(16):
            S[bx * 16 + i, 0] = T.sum(a[i, :])
            S[bx * 16 + i, 1] = T.max(a[i, :]) + T.min(a[i, :])


# Attention whose tiles are fragments, filled straight from global memory; scores in float16.
@tilelang.jit(out_idx=[3])
def attention(
    Q: T.Tensor((64, 32), "float16"),
    K: T.Tensor((96, 32), "float16"),
    V: T.Tensor((96, 32), "float16"),
    scale: T.float32,
    O: T.Tensor((64, 32), "float16"),
):
    with T.Kernel(T.grid(2, 1), threads=64) as (bx, by):
        q = T.alloc_fragment((32, 32), "float16")
        k = T.alloc_fragment((48, 32), "float16")
        v = T.alloc_fragment((48, 32), "float16")
        scores = T.alloc_fragment((32, 48), "float16")
        out = T.alloc_fragment((32, 32), "float16")
        top_before = T.alloc_fragment((32,), "float32")
        top = T.alloc_fragment((32,), "float32")
        rescale = T.alloc_fragment((32,), "float32")
        total = T.alloc_fragment((32,), "float32")
        T.clear(out)
        T.fill(total, 0.0)
        T.fill(top_before, -1e30)
        T.copy(Q[bx * 32, 0], q)
        for step in T.serial(T.ceildiv(96, 48)):
            T.copy(K[step * 48, 0], k)
            T.clear(scores)
            T.gemm(q, k, scores, transpose_B=True)
            T.copy(V[step * 48, 0], v)
            T.copy(top_before, top)
            T.reduce_max(scores, top, dim=1, clear=False)
            for i in T.Parallel(32):
                rescale[i] = T.exp2(top_before[i] * scale - top[i] * scale)
            for i, j in T.Parallel(32, 32):
                out[i, j] *= rescale[i]
            for i, j in T.Parallel(32, 48):
                scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
            T.gemm(scores, v, out)
            for i in T.Parallel(32):
                total[i] = total[i] * rescale[i] + T.sum(scores[i, :])
            T.copy(top, top_before)
        for i, j in T.Parallel(32, 32):
            out[i, j] /= total[i]
        T.copy(out, O[bx * 32, 0])


# A gemm into float16, over a serial loop and T.grid; both operands in fragments, of either order.
@tilelang.jit(out_idx=[2])
def narrow_gemm(
    A: T.Tensor((96, 80), "float16"), B: T.Tensor((80, 64), "float16"), C: T.Tensor((96, 64), "float16")
):
    with T.Kernel(T.grid(3, 2), threads=64) as (bx, by):
        a = T.alloc_shared((32, 16), "float16")
        b = T.alloc_shared((16, 32), "float16")
        c = T.alloc_fragment((32, 32), "float16")
        T.clear(c)
        for step in T.serial(T.ceildiv(80, 16)):
            T.copy(A[bx * 32, step * 16], a)
            T.copy(B[step * 16, by * 32], b)
            T.gemm(a, b, c)
        T.copy(c, C[bx * 32, by * 32])


def fragment_gemm(transpose_A=False, transpose_B=False, dtype="float16", accum="float16"):
    a_shape, b_shape = ((48, 32) if transpose_A else (32, 48)), ((64, 48) if transpose_B else (48, 64))

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((32, 64), accum)):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_fragment(a_shape, dtype)
            b = T.alloc_fragment(b_shape, dtype)
            c = T.alloc_fragment((32, 64), accum)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_A=transpose_A, transpose_B=transpose_B)
            T.copy(c, C)

    return main
