"""Small programs that the lowering once got wrong: what the generator of random tile programs (tests/generator) found, shrunk.

generated_faults_test.cc compares what the lowering makes of each with the executor; the last tensor is the output. All arithmetic is
exact on small integers.
"""

import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")


@T.prim_func
def extents_of_a_block(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # Extents that only the block knows.
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((8, 32), "int32")
        f = T.alloc_fragment((8, 32), "int32")
        T.fill(s, 3)
        T.fill(f, 4)
        T.copy(X[bx * 8 : bx * 8 + T.min(bx + 1, 8), 0:32], s[1 : 1 + T.min(bx + 1, 8), 0:32])
        T.copy(s[0:4, bx : bx + T.max(bx, 2)], f[2:6, 1 : 1 + T.max(bx, 2)])
        T.fill(f[7, 0 : N - bx], 5)
        T.copy(f[0 : T.min(8, M - bx * 8), 0:32], Y[bx * 8 : bx * 8 + T.min(8, M - bx * 8), 0:32])


@T.prim_func
def points_of_a_launch(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    # Loops over as many points as the tensor has.
    with T.Kernel(M, threads=64) as bx:
        s = T.alloc_shared((300,), "float32")
        T.fill(s, 0)
        for j in T.Parallel(N):
            s[j] = X[bx, N - 1 - j] + 1
        for i, j in T.Parallel(T.min(bx, 1), N):
            Y[bx - i - 1, j] = s[j] + X[bx, j]
        if bx == M - 1:
            T.copy(s[0:N], Y[bx, 0:N])


@T.prim_func
def narrow_scan(X: T.Tensor((M, N), "int8"), Y: T.Tensor((M, 64), "int32")):
    # Sums are of the result's type.
    with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
        s = T.alloc_shared((4, 64), "int8")
        f = T.alloc_fragment((4, 64), "int32")
        T.copy(X[bx * 4, 0], s)
        for i, j in T.Parallel(4, 64):
            s[i, j] = s[i, j] * 12
        T.cumsum(s, f, dim=1)
        T.copy(f, Y[bx * 4, 0])


@T.prim_func
def half_scan(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, 64), "float32")):
    # … and at least float32.
    with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
        s = T.alloc_shared((4, 64), "float16")
        f = T.alloc_fragment((4, 64), "float32")
        T.copy(X[bx * 4, 0], s)
        for i, j in T.Parallel(4, 64):
            s[i, j] = T.floor(s[i, j]) * 100 + 1
        T.cumsum(s, f, dim=1)
        T.copy(f, Y[bx * 4, 0])


@T.prim_func
def double_sum(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float64")):
    # A sum into float64 is made in float64.
    with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
        f = T.alloc_fragment((4, 64), "float32")
        total = T.alloc_fragment((4,), "float64")
        T.copy(X[bx * 4, 0], f)
        for i, j in T.Parallel(4, 64):
            f[i, j] = T.floor(f[i, j]) * 1000001 + 1
        T.reduce_sum(f, total, dim=1)
        T.copy(total, Y[bx * 4])


@T.prim_func
def least_absolute(X: T.Tensor((M, N), "int8"), Y: T.Tensor((M,), "int32")):
    # The absolute value of −128 is −128 in int8, whatever the sum's type is.
    with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
        f = T.alloc_fragment((4, 32), "int8")
        total = T.alloc_fragment((4,), "int32")
        most = T.alloc_fragment((4,), "int32")
        T.copy(X[bx * 4, 0], f)
        for i, j in T.Parallel(4, 32):
            if (i + j) % 5 == 0:
                f[i, j] = -128
        T.reduce_abssum(f, total, dim=1)
        T.reduce_absmax(f, most, dim=1)
        for i in T.Parallel(4):
            total[i] += most[i] * 100000
        T.copy(total, Y[bx * 4])


@T.prim_func
def stores_in_turn(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # A point reads what it has stored itself, also where it read the element before.
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((8, 32), "int32")
        T.copy(X[bx * 8, 0], s)
        for i, j in T.Parallel(8, 32):
            s[i, j] = s[i, j] * 3
            s[i, j] = s[i, j] + 1
            if j % 2 == 0:
                s[i, j] = s[i, j] - i
        T.copy(s, Y[bx * 8, 0])


@T.prim_func
def one_point_many_threads(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # Fewer points than threads: where several threads run one, none may read what another of them has written.
    with T.Kernel(T.ceildiv(M, 2), threads=128) as bx:
        s = T.alloc_shared((2, 8), "int32")
        f = T.alloc_fragment((2, 8), "int32")
        row = T.alloc_fragment((2,), "int32")
        T.copy(X[bx * 2, 0], s)
        T.copy(X[bx * 2, 0], f)
        T.reduce_sum(f, row, dim=1)
        for i, j in T.Parallel(2, 8):
            s[i, j] += 1
            f[i, j] += s[i, j]
            if s[i, j] > 0:
                s[i, j] = f[i, j] + row[i]
        for i in T.Parallel(2):
            own = T.alloc_local((4,), "int32")
            T.fill(own, 1)
            for n in T.serial(4):
                own[n] = own[n] + row[i] * n
            for n in T.serial(4):
                row[i] = row[i] + own[(n + i) % 4]
        s[1, 7] = s[1, 7] + s[0, 0]
        for i, j in T.Parallel(2, 8):
            f[i, j] = f[i, j] * 3 + s[i, j] + row[i]
        T.copy(f, Y[bx * 2, 0])


@T.prim_func
def turned_registers(X: T.Tensor((M, N), "float16"), V: T.Tensor((M, 32), "float16"), Y: T.Tensor((64, 32), "float32")):
    # An operand that is in registers, with K as its first dimension.
    with T.Kernel(1, threads=128) as bx:
        x = T.alloc_fragment((32, 64), "float16")
        v = T.alloc_shared((32, 32), "float16")
        acc = T.alloc_fragment((64, 32), "float32")
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(M, 32), num_stages=2):
            T.copy(X[k * 32, 0], x)
            T.copy(V[k * 32, 0], v)
            for i, j in T.Parallel(32, 64):
                x[i, j] = T.floor(x[i, j])
            for i, j in T.Parallel(32, 32):
                v[i, j] = T.floor(v[i, j])
            T.gemm(x, v, acc, transpose_A=True)
        T.copy(acc, Y)


@T.prim_func
def every_thread(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # A block of all the threads that there can be has none left to load for it.
    with T.Kernel(T.ceildiv(M, 32), threads=1000) as bx:
        s = T.alloc_shared((32, 64), "int32")
        total = T.alloc_fragment((32, 64), "int32")
        T.clear(total)
        for k in T.Pipelined(T.ceildiv(N, 64), num_stages=3):
            T.copy(X[bx * 32, k * 64], s)
            for i, j in T.Parallel(32, 64):
                total[i, j] += s[i, j]
        T.copy(total, Y[bx * 32, 0])


@T.prim_func
def one_row(X: T.Tensor((M, N), "bfloat16"), V: T.Tensor((64, N), "bfloat16"), Y: T.Tensor((M, 64), "float32")):
    # Tiles smaller than the pattern of their swizzle, several of them in flight.
    with T.Kernel(M, threads=128) as bx:
        x = T.alloc_shared((1, 16), "bfloat16")
        v = T.alloc_shared((64, 16), "bfloat16")
        acc = T.alloc_fragment((1, 64), "float32")
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(N, 16), num_stages=3):
            T.copy(X[bx, k * 16], x)
            T.copy(V[0, k * 16], v)
            T.gemm(x, v, acc, transpose_B=True)
        T.copy(acc, Y[bx, 0])


@T.prim_func
def registers_of_an_iteration(X: T.Tensor((M, N), "float16"), V: T.Tensor((32, N), "float16"), Y: T.Tensor((64, 32), "float32")):
    # An operand in registers that each iteration makes anew ends with it: so does what is in flight.
    with T.Kernel(1, threads=128) as bx:
        v = T.alloc_shared((32, 32), "float16")
        acc = T.alloc_fragment((64, 32), "float32")
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(N, 32), num_stages=2):
            x = T.alloc_fragment((64, 32), "float16")
            T.copy(X[0, k * 32], x)
            T.copy(V[0, k * 32], v)
            for i, j in T.Parallel(64, 32):
                x[i, j] = T.floor(x[i, j])
            T.gemm(x, v, acc, transpose_B=True)
        T.copy(acc, Y)


@T.prim_func
def padded_row(X: T.Tensor((M, N), "float64"), Y: T.Tensor((1, 2), "float32")):
    # A row whose layout comes from a loop over one row of a tile of two: what threads hold of the other is padding.
    with T.Kernel(1, threads=32) as bx:
        f = T.alloc_fragment((2, 2), "float64")
        row = T.alloc_fragment((1, 2), "float32")
        T.copy(X[0, 0], f)
        T.fill(row, 1)
        T.reduce_min(f, row, dim=0, clear=False)
        for i, j in T.Parallel(1, 2):
            if j < M:
                row[i, j] = row[i, j] * 2 + T.cast(f[i, j], "float32")
        T.copy(row, Y)


@T.prim_func
def read_in_flight(X: T.Tensor((M, 64), "float16"), V: T.Tensor((64, 64), "float16"), Y: T.Tensor((M, 64), "float32")):
    # A gemm in flight reads its tiles until it is waited for: no other tile may lie there.
    with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
        x = T.alloc_shared((64, 64), "float16")
        v = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.copy(X[bx * 64, 0], x)
        T.copy(V, v)
        T.gemm(x, v, acc, clear_accum=True)
        s = T.alloc_shared((64, 64), "float16")
        f = T.alloc_fragment((64, 64), "float16")
        T.copy(X[bx * 64, 0], s)
        for i, j in T.Parallel(64, 64):
            f[i, j] = s[i, 63 - j]
        for i, j in T.Parallel(64, 64):
            acc[i, j] += T.cast(f[i, j], "float32")
        T.copy(acc, Y[bx * 64, 0])


@T.prim_func
def sums_of_one(X: T.Tensor((M, N), "int32"), Y: T.Tensor((3, 4, 2), "int32")):
    # Dimensions of one element beside the one that is summed over.
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((1, 2, 1), "int32")
        a = T.alloc_fragment((1, 2, 1), "int32")
        b = T.alloc_fragment((2,), "int32")
        c = T.alloc_fragment((1, 4, 1, 2), "int32")
        d = T.alloc_fragment((4, 1, 1), "int32")
        T.copy(X[0, 0:2], s[0, 0:2, 0])
        T.reduce_sum(s, a, dim=0)
        T.reduce_max(s, b, dim=2)
        for i, j, k, l in T.Parallel(1, 4, 1, 2):
            c[i, j, k, l] = a[0, l, 0] * (j + 1) + b[l]
        T.reduce_sum(c, d, dim=3)
        T.fill(a, 5)
        T.reduce_sum(s, a, dim=0, clear=False)
        for j, l in T.Parallel(4, 2):
            Y[0, j, l] = a[0, l, 0]
            Y[1, j, l] = b[l]
            Y[2, j, l] = d[j, 0, 0]


@T.prim_func
def staged_operand(X: T.Tensor((M, N), "float16"), Y: T.Tensor((32, 32), "float32")):
    # An operand in registers, in the order of the instruction, that other threads read too: by stmatrix, as any 8×8 matrices.
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((32, 32), "float16")
        b = T.alloc_fragment((32, 32), "float16")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(X[0:32, 0:32], a)
        T.copy(X[0:32, 0:32], b)
        T.gemm(a, b, c, transpose_B=True, clear_accum=True)
        for i, j in T.Parallel(32, 32):
            c[i, j] = c[i, j] + b[31 - j, i]
        T.copy(c, Y)


@T.prim_func
def absolute_of_unsigned(X: T.Tensor((M, N), "int32"), Y: T.Tensor((6,), "int32")):
    # Absolute values that are negative in the type of the result, which begins at 0.
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((6, 40), "uint64")
        r = T.alloc_fragment((6,), "int32")
        for i, j in T.Parallel(6, 40):
            f[i, j] = T.cast(X[i, j] - 20, "uint64")
        T.reduce_absmax(f, r, dim=1)
        T.copy(r, Y)


@T.prim_func
def windows(X: T.Tensor((M, N), "float16", access="in"), start: T.int32, Y: T.Tensor((4, 3, 32, 64), "float16")):
    # Windows of rows: TMA takes those that start at a multiple of 16 bytes of a row, and no others.
    with T.Kernel(3, threads=64) as bx:
        left = T.let(bx * 8)
        for k in T.Pipelined(2, num_stages=2):
            odd = T.alloc_shared((16, 64), "float16")
            whole = T.alloc_shared((16, 64), "float16")
            named = T.alloc_shared((16, 64), "float16")
            given = T.alloc_shared((16, 64), "float16")
            f = T.alloc_fragment((16, 64), "float16")
            T.copy(X[k * 16 : k * 16 + 16, bx : bx + 64], odd)
            T.copy(X[k * 16 : k * 16 + 16, bx * 8 - 8 : bx * 8 + 56], whole)
            T.copy(X[k * 16 : k * 16 + 16, left : left + 64], named)
            T.copy(X[k * 16 : k * 16 + 16, start : start + 64], given)
            T.copy(odd, f)
            T.copy(f, Y[0, bx, k * 16 : k * 16 + 16, 0:64])
            T.copy(whole, f)
            T.copy(f, Y[1, bx, k * 16 : k * 16 + 16, 0:64])
            T.copy(named, f)
            T.copy(f, Y[2, bx, k * 16 : k * 16 + 16, 0:64])
            T.copy(given, f)
            T.copy(f, Y[3, bx, k * 16 : k * 16 + 16, 0:64])


@T.prim_func
def odd_window_stored(X: T.Tensor((M, N), "float16", access="in"), Y: T.Tensor((3, 64, 72), "float16")):
    # The same of a store.
    with T.Kernel(3, threads=128) as bx:
        x = T.alloc_shared((64, 64), "float16")
        f = T.alloc_fragment((64, 64), "float16")
        for k in T.Pipelined(1, num_stages=2):
            T.copy(X[0, bx * 8], x)
            T.copy(x, f)
        T.copy(f, Y[bx, 0:64, bx : bx + 64])


@T.prim_func
def reduced_to_fewer(X: T.Tensor((2, 2), "int32"), Y: T.Tensor((2, 2), "uint8")):
    # One thread reduces what it needs as if two did: the result lies in other lanes than the rows that it is read by.
    with T.Kernel(1, threads=1) as bx:
        f = T.alloc_fragment((2, 2), "uint8")
        r = T.alloc_fragment((2,), "uint8")
        T.copy(X, f)
        T.reduce_min(f, r, dim=0)
        for i, j in T.Parallel(2, 2):
            f[i, j] = r[i]
        T.copy(f, Y)


@T.prim_func
def operand_read_again(X: T.Tensor((M, N), "bfloat16"), Y: T.Tensor((64, 80), "float32")):
    # What a product in flight reads from registers, read by others before it has ended.
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 16), "bfloat16")
        b = T.alloc_fragment((64, 16), "bfloat16")
        acc = T.alloc_fragment((64, 64), "float32")
        y = T.alloc_shared((64, 16), "float32")
        T.copy(X[0:64, 0:16], a)
        T.copy(X[0:64, 0:16], y)
        for i, j in T.Parallel(64, 16):
            b[i, j] = i - j
        T.fill(acc, 2.0)
        T.gemm(a, b, acc, transpose_B=True)
        for i, j in T.Parallel(64, 16):
            if y[i, j] < 50.0:
                y[i, j] = T.cast(b[i, 15 - j], "float32")
        T.copy(y, Y[0:64, 64:80])
        T.copy(acc, Y[0:64, 0:64])


@T.prim_func
def all_threads_beside_roles(X: T.Tensor((M, N), "int32"), Y: T.Tensor((64,), "int32")):
    # What stands outside roles is done by the first of them; a region of all threads by each, for its threads.
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((64,), "int32")
        T.clear(s)
        with T.roles():
            with T.role(0, 32):
                T.fill(s[0:32], 1)
            with T.role(32, 64):
                T.fill(s[32:64], 2)
        for k in T.serial(2):
            with T.thread_region() as tx:
                mine = T.alloc_var("int32")
                mine = s[63 - tx]
                T.sync_threads()
                s[tx] = s[tx] + tx + mine
        with T.thread_region() as tx:
            s[tx] = s[tx] * tx
        T.copy(s, Y)


@T.prim_func
def row_of_products(X: T.Tensor((M, N), "float16"), Y: T.Tensor((1, 16), "int8")):
    # One row in the registers of a product's first, among those of rows that are not there.
    with T.Kernel(1, threads=16) as bx:
        a = T.alloc_shared((1, 16), "float16")
        b = T.alloc_shared((16, 16), "float16")
        acc = T.alloc_fragment((1, 16), "float32")
        f = T.alloc_fragment((1, 16), "int8")
        g = T.alloc_fragment((1, 16), "int8")
        T.copy(X[0:1, 0:16], a)
        T.copy(X[0:16, 0:16], b)
        T.gemm(a, b, acc, transpose_B=True, clear_accum=True)
        for i, j in T.Parallel(1, 16):
            f[i, j] = j
        T.copy(f, acc)
        for i, j in T.Parallel(1, 16):
            g[i, j] = f[i * 2, j] + 1
        T.copy(g, Y)


@T.prim_func
def filled_with_a_number(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
    # A fill value of another type, where the extent is known to a launch only.
    with T.Kernel(M, threads=32) as bx:
        T.fill(Y[bx, 0:N], bx)
        T.copy(X[bx, 3 : 3 + T.min(N, 40)], Y[bx, 0 : T.min(N, 40)], fill=bx + 1)


@T.prim_func
def extremes_of_negatives(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    # ptxas before CUDA 13.4 loses the minus of an operand of two extremes on Hopper.
    with T.Kernel(M, threads=64) as bx:
        narrow = T.alloc_fragment((64,), "int16")
        T.copy(X[bx, 0:64], narrow)
        for j in T.Parallel(64):
            least = T.min(T.min(X[bx, j], -X[bx, j + 1]), X[bx, j + 2])
            least_of_narrow = T.min(narrow[j], T.min(-narrow[j], narrow[j] - 5))
            chosen = T.if_then_else(X[bx, j] < -X[bx, j + 1], X[bx, j], -X[bx, j + 1])
            greatest = T.max(X[bx, j + 2], T.max(-X[bx, j], X[bx, j + 1]))
            if j < N:
                Y[bx, j] = least * 17 + least_of_narrow * 257 + greatest * 1009 + T.if_then_else(chosen < X[bx, j + 2], chosen, X[bx, j + 2])


@T.prim_func
def half_a_product(X: T.Tensor((M, 48), "float8_e5m2"), Y: T.Tensor((64, 8), "float32")):
    # 48 of K is one instruction of 32 and a half, whose operands ptxas knows to be zero in part.
    with T.Kernel(1, threads=32) as bx:
        acc = T.alloc_fragment((64, 8), "float32")
        T.clear(acc)
        for k in T.Pipelined(2, num_stages=2):
            a = T.alloc_shared((64, 48), "float8_e5m2")
            via = T.alloc_shared((8, 48), "float8_e5m2")
            b = T.alloc_shared((8, 48), "float8_e4m3")
            T.copy(X[0:64, 0:48], a)
            T.copy(X[0:8, 0:48], via)
            T.copy(via, b)
            T.gemm(a, b, acc, transpose_B=True)
        T.copy(acc, Y)


@T.prim_func
def reduced_into_itself(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, 5), "int32")):
    with T.Kernel(M, threads=32) as bx:
        f = T.alloc_fragment((1, 4), "int32")
        s = T.alloc_shared((1, 4), "int32")
        T.copy(X[bx, 0:4], f[0, 0:4])
        T.copy(f, s)
        T.reduce_absmax(f, f, dim=0)
        T.copy(f[0, 0:4], Y[bx, 0:4])
        T.reduce_absmax(s, s[0:1, 2:3], dim=1)
        T.reduce_sum(f, f[0:1, 1:2], dim=1, clear=False)
        T.reduce_min(f, f, dim=0)
        T.reduce_absmax(f, f, dim=0, clear=False)
        Y[bx, 4] = s[0, 2] * 1000 + f[0, 1]


@T.prim_func
def roles_in_loops(X: T.Tensor((64, N), "float16"), V: T.Tensor((N, 64), "float16"), Y: T.Tensor((64, 64), "float32")):
    # Loops around roles whose iterations only their conditions know: all parts leave them together.
    with T.Kernel(1, threads=256) as bx:
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        ready = T.alloc_barrier(arrive_count=128)
        done = T.alloc_barrier(arrive_count=128)
        n = T.alloc_var("int32")
        n = 0
        T.clear(a)
        with T.ws(1):
            T.clear(acc)
        while n * 32 < N:
            with T.ws(0):
                T.barrier_wait(done, (n + 1) % 2)
                T.tma_copy(X[0, n * 32], a, barrier=ready)
                T.tma_copy(V[n * 32, 0], b, barrier=ready)
                T.barrier_arrive(ready)
            with T.ws(1):
                T.barrier_wait(ready, n % 2)
                T.gemm(a, b, acc)
                T.barrier_arrive(done)
            n = n + 1
            if n == 3:
                break
        for k in T.serial(5):
            with T.ws(1):
                for i, j in T.Parallel(64, 64):
                    acc[i, j] = acc[i, j] + k
            if k < 2:
                continue
            if n + k > 5:
                T.fill(a, k)
                break
        with T.ws(1):
            for i, j in T.Parallel(64, 64):
                Y[i, j] = acc[i, j] + a[i, j % 32]


@T.prim_func
def filled_again(X: T.Tensor((64, 64), "float16"), V: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float32")):
    # Zeros that nothing reads before other values take their place.
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        f = T.alloc_fragment((64,), "float32")
        T.clear(f)
        T.clear(acc)
        T.copy(X, a)
        T.copy(V, b)
        T.fill(acc, 3)
        T.gemm(a, b, acc)
        T.fill(f, 1)
        for i, j in T.Parallel(64, 64):
            acc[i, j] = acc[i, j] + f[i]
        T.copy(acc, Y)


@T.prim_func
def sums_in_a_loop(X: T.Tensor((64, 64), "float16"), V: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float32")):
    # Sums that a loop makes anew in each turn, in a loop of their own, and an element by element statement behind it.
    with T.Kernel(1, threads=128) as bx:
        for n in T.serial(3):
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.serial(4):
                a = T.alloc_shared((64, 16), "float16")
                b = T.alloc_shared((16, 64), "float16")
                T.copy(X[0:64, k * 16:k * 16 + 16], a)
                T.copy(V[k * 16:k * 16 + 16, 0:64], b)
                T.gemm(a, b, acc)
            for i, j in T.Parallel(64, 64):
                acc[63 - i, j] = acc[63 - i, j] + n
            T.copy(acc, Y)


@T.prim_func
def matrices_with_ones(X: T.Tensor((32, 32), "float16"), V: T.Tensor((32, 32), "float16"), Y: T.Tensor((2, 32, 3, 32), "float32")):
    # Operands of gemm whose matrix is not in their last two dims, or has more dims before it.
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((32, 2, 32), "float16")
        b = T.alloc_fragment((32, 1, 32), "float16")
        between = T.alloc_fragment((32, 1, 32), "float32")
        before = T.alloc_fragment((1, 32, 32), "float32")
        behind = T.alloc_fragment((32, 32, 1), "float32")
        sums = T.alloc_fragment((2, 32, 3, 32), "float32")
        T.copy(V, b)
        T.fill(between, 1)
        T.fill(before, 2)
        T.clear(sums)
        for n in T.serial(2):
            T.copy(X, a[:, n, :])
            T.gemm(a[:, n, :], b, before)
            T.gemm(b, a[:, n, :], between, transpose_A=True)
            T.gemm(a[:, n, :], b, behind, transpose_B=True, clear_accum=True)
            for m in range(3):
                T.gemm(a[:, n, :], b, sums[n, :, m, :], clear_accum=m == 1)
        for n, i, j in T.Parallel(2, 32, 32):
            sums[n, i, 0, j] = sums[n, i, 0, j] + between[i, 0, j] * 3
            sums[n, i, 1, j] = sums[n, i, 1, j] + before[0, i, j] * 5
            sums[n, i, 2, j] = sums[n, i, 2, j] + behind[i, j, 0] * 7
        T.copy(sums, Y)


@T.prim_func
def exact_matrices_with_ones(X: T.Tensor((32, 32), "float32"), V: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 1, 32), "float32")):
    # The same without tensor cores.
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_fragment((32, 1, 32), "float32")
        b = T.alloc_shared((1, 32, 1, 32), "float32")
        sums = T.alloc_fragment((32, 1, 32), "float32")
        T.copy(X, a)
        T.copy(V, b)
        T.fill(sums, 1)
        T.gemm(a, b, sums)
        T.gemm(a, b, sums, transpose_A=True, transpose_B=True)
        T.copy(sums, Y)


@T.prim_func
def bytes_of_a_phase(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
    # How many bytes a phase is told of, a launch may know only; here none is told of as many as this.
    with T.Kernel(1, threads=128) as bx:
        full = T.alloc_barrier(arrive_count=128)
        a = T.alloc_shared((64, 64), "float16")
        for k in T.serial(2):
            T.mbarrier_expect_tx(full, T.if_then_else(k < 2, 64 * 64 * 2, (k + 1) << 40))
            T.tma_copy(X[k * 64, 0], a, barrier=full)
            T.barrier_arrive(full)
            T.mbarrier_wait_parity(full, k % 2)
            T.copy(a, Y[k * 64, 0])
        if N > 1 << 30:
            T.mbarrier_expect_tx(full, T.max(T.min(N, 0), -1) - (1 << 40) + 1)


@T.prim_func
def two_grids_of_warps(X: T.Tensor((16, 16), "float16"), V: T.Tensor((16, 8), "float16"), Y: T.Tensor((16, 8), "float32")):
    # One small tile of sums, of which only one warp holds elements, whichever way the warps are laid out.
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((16, 16), "float16")
        b = T.alloc_shared((16, 8), "float16")
        sums = T.alloc_fragment((16, 8), "float32")
        T.copy(X, a)
        T.copy(V, b)
        T.clear(sums)
        for k in T.Pipelined(2, num_stages=2):
            T.gemm(a, b, sums, policy=T.GemmWarpPolicy.FullRow)
            T.gemm(a, b, sums, policy=T.GemmWarpPolicy.FullCol)
        T.gemm(a, b, sums)
        T.copy(sums, Y)


@T.prim_func
def products_with_the_sums(X: T.Tensor((16, 16), "float16"), V: T.Tensor((16, 16), "float32"), Y: T.Tensor((16, 64), "float32")):
    # Operands that are the accumulator, or a part of what it is a part of: as they were before.
    with T.Kernel(1, threads=64) as bx:
        h = T.alloc_fragment((16, 16), "float16")
        f = T.alloc_fragment((16, 16), "float32")
        g = T.alloc_fragment((16, 32), "float32")
        v = T.alloc_shared((16, 16), "float32")
        T.copy(X, h)
        T.copy(V, v)
        T.copy(V, f)
        T.copy(V, g[:, 16:32])
        T.fill(g[:, 0:16], 2)
        T.gemm(h, h, h)
        T.gemm(f, v, f, clear_accum=True)
        T.gemm(v, f, f)
        T.gemm(g[:, 0:16], g[:, 16:32], g[:, 16:32], transpose_B=True)
        T.copy(h, Y[:, 0:16])
        T.copy(f, Y[:, 16:32])
        T.copy(g, Y[:, 32:64])


@T.prim_func
def tiles_of_a_trip(X: T.Tensor((128, 64), "float16"), V: T.Tensor((64, 128), "float16"), Y: T.Tensor((128, 128), "float32")):
    # A pipeline makes all its tiles anew in each trip, sums too.
    with T.Kernel(1, threads=128) as bx:
        total = T.alloc_fragment((128, 128), "float32")
        T.clear(total)
        for k in T.Pipelined(4, num_stages=2):
            part = T.alloc_fragment((128, 128), "float32")
            a = T.alloc_shared((128, 16), "float16")
            b = T.alloc_shared((16, 128), "float16")
            T.copy(X[0:128, k * 16:k * 16 + 16], a)
            T.copy(V[k * 16:k * 16 + 16, 0:128], b)
            T.gemm(a, b, part, clear_accum=True)
            for i, j in T.Parallel(128, 128):
                total[i, j] += part[i, j]
        T.copy(total, Y)
