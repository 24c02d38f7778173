# Operands that statements and loops change while they run: they were evaluated before. (operands_test.cc)
import tilelang.language as T


@T.prim_func
def fills(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "int32")
        f = T.alloc_fragment((64,), "int32")
        g = T.alloc_fragment((64,), "int32")
        h = T.alloc_local((3,), "int32")
        T.copy(A, Y)
        T.copy(A, s)
        T.copy(A, f)
        T.fill(g, f[3] + 1)
        T.fill(f[2:20], f[3] + f[50])
        T.fill(f, f[63] * 2 + f[4])
        T.fill(s[8:24], s[9] + 1)
        T.fill(s[A[0] + 30 : A[0] + 40], s[35])
        T.fill(s[s[50] + 50 : s[50] + 60], 3)
        h[0] = s[5]
        T.fill(h, h[0] + 1)
        T.fill(Y[0:40], Y[7] + h[2])
        for i in T.Parallel(64):
            p = T.alloc_local((4,), "int32")
            p[0] = s[i]
            T.fill(p, p[0] + 1)
            Y[i] = Y[i] + p[0] * 3 + p[3] * 5 + f[i] + g[63 - i]


@T.prim_func
def tiles(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "int32")
        t = T.alloc_shared((64,), "int32")
        f = T.alloc_fragment((64,), "int32")
        T.copy(A, Y)
        T.copy(A, s)
        T.copy(A, f)
        T.copy(A[60:68], s[0:8], fill=s[1])
        T.copy(A[s[1] + 20 : s[1] + 28], s[0:8])
        T.copy(A[40:48], s[s[12] + 9 : s[12] + 17])
        T.copy(s[s[33] + 40 : s[33] + 48], s[30:38])
        T.copy(Y[Y[2] + 20 : Y[2] + 30], Y[Y[3] + 1 : Y[3] + 11])
        T.copy(f[f[7] + 20 : f[7] + 28], f[f[9] + 4 : f[9] + 12])
        T.atomic_add(s[s[20] + 15 : s[20] + 23], A[0:8])
        T.reduce_sum(s[s[0] + 20 : s[0] + 28], s[s[0] : s[0] + 1], dim=0)
        T.clear(t)
        T.cumsum(s[s[0] + 20 : s[0] + 28], t[t[0] : t[0] + 8], dim=0)
        for i in T.Parallel(64):
            Y[i] = Y[i] * 100 + s[i] * 10 + f[i] + t[i]


@T.prim_func
def points(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "int32")
        f = T.alloc_fragment((64,), "int32")
        T.copy(A, s)
        T.copy(A, f)
        T.copy(A, Y)
        for i in T.Parallel(64):
            n = T.alloc_var("int32", init=5)
            t = T.alloc_var("int32", init=0)
            for j in T.serial(n):
                n = 2
                t += 1
            for j in T.serial(s[i]):
                s[i] = 1
                t += 10
            for j in T.serial(f[i]):
                f[i] = 1
                t += 100
            for j in T.serial(Y[i], Y[i] + 4):
                Y[i] = 3
                t += 1000
            Y[i] = t


@T.prim_func
def threads(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        s = T.alloc_shared((64,), "int32")
        p = T.alloc_local((4,), "int32")
        n = T.alloc_var("int32", init=5)
        t = T.alloc_var("int32", init=0)
        s[tx] = A[tx]
        for j in T.serial(n):
            n = 2
            t += 1
        for j in T.serial(s[tx] + 2):
            s[tx] = 0
            t += 10
        p[0] = A[tx]
        T.fill(p, p[0] + 1)
        Y[tx] = t + p[0] * 100 + p[3] * 1000


@T.prim_func
def loops(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "int32")
        f = T.alloc_fragment((64,), "int32")
        t = T.alloc_shared((8,), "int32")
        v = T.alloc_var("int32", init=4)
        T.clear(Y)
        T.copy(A, s)
        T.copy(A, f)
        for i in T.Pipelined(v, num_stages=3):
            T.copy(A[i * 8 : i * 8 + 8], t)
            v = 1
            T.copy(t, Y[i * 8 : i * 8 + 8])
        T.copy(A, s)
        for i in T.Pipelined(s[60] + 3, num_stages=2):
            T.copy(A[i * 8 : i * 8 + 8], t)
            s[60] = 0
            for j in T.Parallel(8):
                Y[i * 8 + j] = Y[i * 8 + j] + t[j] * 3
        for i in T.Pipelined(f[60] + 3, num_stages=2):
            T.copy(A[i * 8 + 1 : i * 8 + 9], t)
            f[60] = 0
            for j in T.Parallel(8):
                Y[i * 8 + j] = Y[i * 8 + j] + t[j] * 5
        for i in T.serial(s[61] + 3):
            s[61] = 0
            Y[i] = Y[i] + 7
        for i in T.serial(3):
            T.copy(A[f[3] : f[3] + 8], t)
            T.cumsum(f, dim=0)
            for j in T.Parallel(8):
                Y[i * 8 + j] = Y[i * 8 + j] + t[j] * 1000


@T.prim_func
def places(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32"), Z: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "int32")
        t = T.alloc_shared((8,), "int32")
        f = T.alloc_fragment((8,), "int32")
        T.clear(Z)
        T.clear(Y)
        T.clear(s)
        T.copy(A[0:8], t)
        Y[63] = 1
        T.copy(t, Z[Y[63] : Y[63] + 8])
        Y[63] = 10
        T.copy(A[Y[63] : Y[63] + 8], f)
        Y[63] = 20
        T.copy(f, Z[Y[63] : Y[63] + 8])
        for i in T.Pipelined(3, num_stages=2):
            T.copy(A[i * 8 : i * 8 + 8], t)
            T.copy(t, Z[Y[63] + 10 : Y[63] + 18])
            Y[63] = i + 30
        for i in T.serial(3):
            s[63] = i * 4
            T.copy(A[s[63] : s[63] + 4], t[0:4])
            T.atomic_add(Z[s[63] : s[63] + 4], t[0:4])
