"""Programs whose subscripts lead out of every buffer: from data, by wrapping, behind guards that say half of what must hold.

hostile_test.cc runs what the lowering makes of each on the host, between pages that no access survives, and in the simulator.
"""

import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")


@T.prim_func
def in_front(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32", access="inout")):
    # Vectors that begin in front of a tensor whose end may cut them.
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        s = T.alloc_shared((64,), "float32")
        f = T.alloc_fragment((64,), "float32")
        T.copy(X[bx * 64 - 8 : bx * 64 + 56], s)
        T.copy(X[bx * 64 - 72 : bx * 64 - 8], f)
        for i in T.Parallel(64):
            f[i] = f[i] + s[i]
        T.copy(f, Y[bx * 64 - 8 : bx * 64 + 56])
        if bx == 0:
            T.copy(s, Y[bx * 64 - 64 : bx * 64])


@T.prim_func
def gathered(At: T.Tensor((16,), "int64"), X: T.Tensor((M, N), "float16"), Y: T.Tensor((16, M, N), "float16", access="inout")):
    # Tiles that begin where data says, asynchronously too.
    with T.Kernel(16, threads=64) as bx:
        s = T.alloc_shared((16, 32), "float16")
        t = T.alloc_shared((16, 32), "float16")
        at = T.let(T.cast(At[bx], "index"))
        T.copy(X[at : at + 16, 0:32], s)
        T.copy(X[T.max(at, 0) * 16 : T.max(at, 0) * 16 + 16, T.max(at, 0) * 8 : T.max(at, 0) * 8 + 32], t)
        T.copy(s, Y[bx, at : at + 16, 0:32])
        T.copy(t, Y[bx, T.max(at, 0) + 5 : T.max(at, 0) + 21, T.abs(at) : T.abs(at) + 32])


@T.prim_func
def half_guarded(At: T.Tensor((64,), "int64"), Big: T.Tensor((64,), "uint64"), X: T.Tensor((N,), "int32"), Y: T.Tensor((N,), "int32", access="inout")):
    # Each guard proves one side, for a number that 64 bits may not hold.
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            v = T.let(T.cast(At[i], "index"))
            up = T.let(T.max(v, 0) + 5)
            if up < N:
                T.atomic_add(Y[up], 1)
            size = T.let(T.abs(v))
            if size < N:
                T.atomic_add(Y[size], X[size])
            big = T.let(T.cast(Big[i], "index"))
            if big < N:
                T.atomic_add(Y[big], X[big])
            times = T.let(T.max(v, 0) * 5)
            if times < N:
                T.atomic_add(Y[times], 1)
            less = T.let(T.min(v, 0) - 5)
            if less < N:
                T.atomic_add(Y[less], 1)


@T.prim_func
def racing(A: T.Tensor((M,), "int32", access="inout"), X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32", access="inout")):
    # Subscripts that others may write between a guard and its access: a race, and safe all the same.
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((16,), "int32")
        T.copy(A[0:16], s)
        with T.thread_region() as tx:
            own = T.alloc_local((4,), "float32")
            own[A[tx]] = X[A[tx + 1]] + X[s[tx % 16]]
            Y[A[tx + 2]] = own[A[tx + 3]]
            A[tx] = tx * 1000


@T.prim_func
def long_steps(At: T.Tensor((8,), "int64"), Y: T.Tensor((8, N), "int32", access="inout")):
    # The step after the last one would not fit 64 bits.
    with T.Kernel(8, threads=32) as bx:
        for k in T.serial(0, T.cast(At[bx], "index"), 4611686018427387904):
            if k < N:
                for i in T.Parallel(N):
                    Y[bx, i] = Y[bx, i] + T.cast(k, "int32") + 1


@T.prim_func
def rows_of_operands(At: T.Tensor((4,), "int32"), A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((4, 32, 64), "float32")):
    # Parts of operands that begin where data says.
    with T.Kernel(4, threads=64) as bx:
        a = T.alloc_shared((32, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((32, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        at = T.let(T.cast(At[bx], "index"))
        T.gemm(a[at : at + 32, 0:16], b[0:64, T.min(at, 64) : T.min(at, 64) + 16], c, transpose_B=True, clear_accum=True)
        T.copy(c, C[bx, 0:32, 0:64])


@T.prim_func
def far_shifts(At: T.Tensor((64,), "int64"), X: T.Tensor((N,), "int32"), Y: T.Tensor((N,), "int32", access="inout")):
    # Indices that fit 32 bits, shifted by more than that.
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        for i in T.Parallel(64):
            at = T.let(bx * 64 + i)
            T.atomic_add(Y[at], X[(at >> 37) + at] + T.cast((at - 40) >> 33, "int32") + T.cast(at >> 63, "int32"))
            by = T.let(T.cast(At[i], "index"))
            T.atomic_add(Y[(at - 7) >> by], 1)
