"""Element loops with more work than is unrolled: loops of theirs stay loops, and registers go round in them.

long_bodies_test.cc runs the emitted source of each and compares with the executor. All arithmetic is exact on small integers.
"""

import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")


@T.macro
def long(x, y):
    # Two divisions of numbers that only the run knows.
    return (x * 7 + y) // T.max(y, 2) + (y * 5 - x) % (T.abs(x) + 3)


@T.prim_func
def fragments(X: T.Tensor((M, N), "int32"), R: T.Tensor((N,), "int32"), C: T.Tensor((M,), "int32"), Y: T.Tensor((M, N), "int32")):
    # Of one layout, with what is read along its rows and its columns; the extents are no multiples of the threads.
    with T.Kernel(T.ceildiv(M, 24), T.ceildiv(N, 72), threads=32) as (bx, by):
        f = T.alloc_fragment((24, 72), "int32")
        g = T.alloc_fragment((24, 72), "float32")
        r = T.alloc_fragment((72,), "int32")
        c = T.alloc_fragment((24,), "int32")
        T.copy(X[bx * 24, by * 72], f)
        T.copy(R[by * 72], r)
        T.copy(C[bx * 24], c)
        T.fill(g, 1)
        for i, j in T.Parallel(24, 72):
            g[i, j] += T.cast(long(f[i, j], r[j]), "float32")
            f[i, j] = long(c[i], f[i, j]) + i - j
        for i, j in T.Parallel(24, 72):
            f[i, j] = f[i, j] * 2 + T.cast(g[i, j], "int32")
        T.copy(f, Y[bx * 24, by * 72])


@T.prim_func
def packed(X: T.Tensor((M, N), "int8"), H: T.Tensor((M, N), "bfloat16"), Y: T.Tensor((M, N), "int16"), Z: T.Tensor((M, N), "bfloat16")):
    # Two and four elements a register.
    with T.Kernel(T.ceildiv(M, 32), T.ceildiv(N, 64), threads=32) as (bx, by):
        b = T.alloc_fragment((32, 64), "int8")
        h = T.alloc_fragment((32, 64), "bfloat16")
        y = T.alloc_fragment((32, 64), "int16")
        T.copy(X[bx * 32, by * 64], b)
        T.copy(H[bx * 32, by * 64], h)
        for i, j in T.Parallel(32, 64):
            y[i, j] = T.cast(long(T.cast(b[i, j], "int32"), T.cast(h[i, j], "int32")), "int16")
            h[i, j] = T.cast(long(T.cast(y[i, j], "int32"), i + j) % 5, "bfloat16")
        for i, j in T.Parallel(32, 64):
            if j % 3 != i % 2:
                b[i, j] = T.cast(T.cast(h[i, j], "int32") + T.cast(y[i, j], "int32") % 7, "int8")
        for i, j in T.Parallel(32, 64):
            y[i, j] = y[i, j] + T.cast(b[i, j], "int16")
        T.copy(y, Y[bx * 32, by * 64])
        T.copy(h, Z[bx * 32, by * 64])


@T.prim_func
def odd_parts(X: T.Tensor((M, N), "int8"), Y: T.Tensor((M, N), "int32")):
    # A thread has five elements of a row, in registers of four.
    with T.Kernel(T.ceildiv(M, 24), threads=32) as bx:
        s = T.alloc_shared((24, 35), "int32")
        T.fill(s, 0)
        for i, j in T.Parallel(24, 35):
            s[i, j] = long(T.cast(X[bx * 24 + i, j], "int32"), j - i)
        T.copy(s, Y[bx * 24, 0])


@T.prim_func
def strides(X: T.Tensor((M, N, K), "int32"), Y: T.Tensor((N, M, K), "int32")):
    # A tile in registers that is an odd part of a tensor: each element has an address of its own.
    with T.Kernel(T.ceildiv(M, 64), T.ceildiv(N, 32), threads=32) as (bx, by):
        f = T.alloc_fragment((64, 32), "int32")
        for i, j in T.Parallel(64, 32):
            f[i, j] = X[bx * 64 + i, by * 32 + j, 1]
        for i, j in T.Parallel(64, 32):
            Y[by * 32 + j, bx * 64 + i, 0] = f[i, j] + 1
            Y[by * 32 + j, bx * 64 + i, 1] = f[i, j] - 1


@T.prim_func
def inner_loops(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # Loops and memory of each point.
    with T.Kernel(T.ceildiv(M, 16), threads=32) as bx:
        f = T.alloc_fragment((16, 64), "int32")
        T.copy(X[bx * 16, 0], f)
        for i, j in T.Parallel(16, 64):
            own = T.alloc_local((3,), "int32")
            own[0] = f[i, j]
            own[1] = i
            own[2] = 1
            for k in T.serial(9):
                own[2] = long(own[0] + k, own[1] - own[2]) % 100
                if own[2] > 50:
                    own[0] = own[0] + 1
            f[i, j] = own[2] + own[0]
        T.copy(f, Y[bx * 16, 0])


@T.prim_func
def short(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # Nothing that would be too much.
    with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
        f = T.alloc_fragment((32, 64), "int32")
        T.copy(X[bx * 32, 0], f)
        for i, j in T.Parallel(32, 64):
            f[i, j] = f[i, j] * 3 + i
        T.copy(f, Y[bx * 32, 0])


@T.prim_func
def many(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # Each body is short, and there are many.
    with T.Kernel(T.ceildiv(M, 64), threads=32) as bx:
        f = T.alloc_fragment((64, 64), "int32")
        T.copy(X[bx * 64, 0], f)
        for turn in T.unroll(24):
            for i, j in T.Parallel(64, 64):
                f[i, j] = T.max(f[i, j] * 3 + i, j - turn) ^ (f[i, j] & 7)
            for i, j in T.Parallel(64, 64):
                f[i, j] = T.min(f[i, j] + j, i * turn) | (f[i, j] >> 2)
        T.copy(f, Y[bx * 64, 0])
