# Fragments that more than one role has to do with, and values that all parts of a block look at between its roles.
import tilelang.language as T

N = T.dynamic("N")


@T.prim_func
def cleared_outside(A: T.Tensor((64, N), "float16"), B: T.Tensor((N, 64), "float16"), V: T.Tensor((64,), "float32"), C: T.Tensor((64, 64), "float32")):
    # Only the second role's threads hold acc: they clear it and store it, too.
    with T.Kernel(1, threads=256) as bx:
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        bias = T.alloc_fragment((64,), "float32")
        ready = T.alloc_barrier(arrive_count=128)
        done = T.alloc_barrier(arrive_count=128)
        T.clear(acc)
        T.copy(V, bias)
        for k in T.serial(T.ceildiv(N, 32)):
            with T.ws(0):
                T.barrier_wait(done, (k + 1) % 2)
                T.copy(A[0:64, k * 32:k * 32 + 32], a)
                T.copy(B[k * 32:k * 32 + 32, 0:64], b)
                T.barrier_arrive(ready)
            with T.ws(1):
                T.barrier_wait(ready, k % 2)
                T.gemm(a, b, acc)
                T.barrier_arrive(done)
        for i, j in T.Parallel(64, 64):
            acc[i, j] = acc[i, j] + bias[j]
        T.copy(acc, C)


@T.prim_func
def handed_over(A: T.Tensor((32, N), "float32"), C: T.Tensor((32, 16), "float32")):
    # What one role leaves in a fragment the other goes on with, and all of the block behind them.
    with T.Kernel(1, threads=128) as bx:
        f = T.alloc_fragment((32, 16), "float32")
        g = T.alloc_fragment((32, 16), "float32")
        ready = T.alloc_barrier(arrive_count=64)
        for k in T.serial(T.ceildiv(N, 16)):
            with T.roles():
                with T.role(0, 64):
                    T.copy(A[0:32, k * 16:k * 16 + 16], f)
                    for i, j in T.Parallel(32, 16):
                        f[i, j] = f[i, j] * 2
                    T.barrier_arrive(ready)
                with T.role(64, 128):
                    T.barrier_wait(ready, k % 2)
                    for i, j in T.Parallel(32, 16):
                        g[i, j] = f[i, j] + f[i, 15 - j] + k
                    T.copy(g, f)
            if k == 0:
                T.copy(f, C)
            else:
                for i, j in T.Parallel(32, 16):
                    C[i, j] = C[i, j] + f[31 - i, j]


@T.prim_func
def sums_in_turns(A: T.Tensor((64, N), "float16"), B: T.Tensor((N, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    # Two roles multiply into one accumulator, one after the other.
    with T.Kernel(1, threads=256) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        first = T.alloc_barrier(arrive_count=128)
        T.clear(acc)
        for k in T.serial(T.ceildiv(N, 64)):
            T.copy(A[0:64, k * 64:k * 64 + 64], a)
            T.copy(B[k * 64:k * 64 + 64, 0:64], b)
            with T.roles():
                with T.role(0, 128):
                    T.gemm(a[0:64, 0:32], b[0:32, 0:64], acc)
                    T.barrier_arrive(first)
                with T.role(128, 256):
                    T.barrier_wait(first, k % 2)
                    T.gemm(a[0:64, 32:64], b[32:64, 0:64], acc)
        T.copy(acc, C)


@T.prim_func
def two_homes(A: T.Tensor((N, 32), "float32"), C: T.Tensor((N, 32), "float32")):
    # Each role has a fragment of its own, and one statement behind them needs both.
    with T.Kernel(T.ceildiv(N, 16), threads=128) as bx:
        f = T.alloc_fragment((16, 32), "float32")
        g = T.alloc_fragment((16, 32), "float32")
        h = T.alloc_fragment((16,), "float32")
        with T.roles():
            with T.role(0, 32):
                T.copy(A[bx * 16:bx * 16 + 16, 0:32], f)
            with T.role(32, 128):
                T.copy(A[bx * 16:bx * 16 + 16, 0:32], g)
                T.reduce_max(g, h, dim=1)
        for i, j in T.Parallel(16, 32):
            f[i, j] = f[i, j] - g[i, 31 - j] * h[i]
        T.copy(f, C[bx * 16:bx * 16 + 16, 0:32])


@T.prim_func
def looked_at(L: T.Tensor((8,), "int32"), A: T.Tensor((64, 16), "float32"), C: T.Tensor((8, 16), "float32")):
    # Elements of fragments that say how often a loop around roles runs, whether, with what, and where a tile begins.
    with T.Kernel(1, threads=128) as bx:
        f = T.alloc_fragment((8,), "int32")
        s = T.alloc_shared((16,), "float32")
        t = T.alloc_shared((16,), "float32")
        T.copy(L, f)
        T.clear(t)
        for k in T.serial(T.max(f[0] % 4, 1)):
            row = f[k] % 8 + 8
            T.copy(A[row + f[7] % 4, 0], s)
            if f[k] % 2 == 0:
                with T.roles():
                    with T.role(0, 64):
                        for j in T.Parallel(16):
                            s[j] = s[j] + row
                    with T.role(64, 128):
                        for j in T.Parallel(16):
                            t[j] = t[j] + row * f[k + 1]
            for i in T.Parallel(8):
                f[i] = f[i] + i
            T.cumsum(f, f, dim=0)
            for j in T.Parallel(16):
                C[k, j] = s[j] + t[j]


@T.prim_func
def looks_and_changes(A: T.Tensor((8,), "int32"), C: T.Tensor((8,), "int32")):
    # What all parts look at, one role changes: no part may be late.
    with T.Kernel(1, threads=96) as bx:
        s = T.alloc_shared((8,), "int32")
        out = T.alloc_shared((8,), "int32")
        T.copy(A, s)
        for k in T.serial(s[7] % 3 + 2):
            x = s[k]
            with T.roles():
                with T.role(0, 32):
                    for i in T.Parallel(8):
                        s[i] = s[i] * 3 + x
                with T.role(32, 96):
                    for i in T.Parallel(8):
                        out[i] = i + x
            if s[1] % 2 == 0:
                with T.roles():
                    with T.role(0, 32):
                        for i in T.Parallel(8):
                            out[i] = out[i] * 5
                    with T.role(32, 96):
                        for i in T.Parallel(8):
                            s[i] = s[i] + 1
            if s[2] % 5 == 4:
                break
            y = s[3]
            with T.roles():
                with T.role(32, 96):
                    s[3] = y + 1
        for i in T.Parallel(8):
            C[i] = out[i] + s[i]


@T.prim_func
def scan_that_says_where(A: T.Tensor((N,), "float32"), C: T.Tensor((3, 8), "float32")):
    # Only a scan changes the elements that say where the next tile begins.
    with T.Kernel(1, threads=32) as bx:
        f = T.alloc_fragment((8,), "int32")
        s = T.alloc_shared((8,), "float32")
        T.fill(f, 1)
        for k in T.serial(3):
            T.copy(A[f[3]:f[3] + 8], s)
            T.copy(s, C[k, 0:8])
            T.cumsum(f, f, dim=0)


@T.prim_func
def divided_anew(A: T.Tensor((64, N), "float16"), B: T.Tensor((N, 64), "float16"), C: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float32")):
    # Roles that wait for each other halve the threads; those behind them, which do not, divide them in other ways.
    with T.Kernel(1, threads=256) as bx:
        tx = T.get_thread_binding()
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        s = T.alloc_shared((64, 64), "float32")
        acc = T.alloc_fragment((64, 64), "float32")
        full = T.alloc_barrier(128)
        empty = T.alloc_barrier(128)
        if tx >= 128:
            T.clear(acc)
        for k in T.serial(T.ceildiv(N, 32)):
            if tx < 128:
                T.barrier_wait(empty, (k + 1) % 2)
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.barrier_arrive(full)
            else:
                T.barrier_wait(full, k % 2)
                T.gemm(a, b, acc)
                T.barrier_arrive(empty)
        if tx >= 128:
            T.copy(acc, s)
        if tx < 64:
            for i, j in T.Parallel(64, 64):
                C[i, j] = s[i, j] * 2.0
        elif tx < 96:
            for i, j in T.Parallel(64, 64):
                D[i, j] = s[j, i] + acc[i, j]


@T.prim_func
def divided_in_turns(A: T.Tensor((N, 32), "float32"), C: T.Tensor((N, 32), "float32")):
    # No division is that of the launch.
    with T.Kernel(1, threads=128) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((32,), "float32")
        f = T.alloc_fragment((32,), "float32")
        T.clear(f)
        for k in T.serial(N):
            if tx < 64:
                T.copy(A[k, :], s)
            else:
                for i in T.Parallel(32):
                    f[i] = f[i] + k
            if tx < 32:
                for i in T.Parallel(32):
                    C[k, i] = s[i] * 3.0
            elif tx >= 96:
                for i in T.Parallel(32):
                    f[i] = f[i] + s[31 - i]
        for i in T.Parallel(32):
            C[0, i] = f[i]
