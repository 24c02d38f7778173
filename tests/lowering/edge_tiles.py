"""Tile statements where a lowering may go wrong: parts of tiles, tiles of one element, elements outside, tiles nobody reads.

edge_tiles_test.cc compares what the lowering makes of each with the executor; the last tensor is the output. All arithmetic is exact
on small integers.
"""

import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")


@T.prim_func
def fill_parts(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((8, 20), "int32")
        f = T.alloc_fragment((8, 20), "int32")
        T.fill(s, 7)
        T.fill(s[2:5, 3:10], -1)
        T.copy(X[bx * 8, 0], f)
        T.fill(f[1:8, bx : bx + 5], 5)
        T.fill(f[3, 19], 9)
        for i, j in T.Parallel(8, 20):
            f[i, j] = f[i, j] + 10 * s[i, j]
        T.copy(f, Y[bx * 8, 0])


@T.prim_func
def copy_parts(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    with T.Kernel(T.ceildiv(M, 4), threads=64) as bx:
        f = T.alloc_fragment((4, 16), "float32")
        g = T.alloc_fragment((16, 4), "float32")
        T.fill(f, 1)
        T.fill(g, 2)
        T.copy(X[bx * 4 : bx * 4 + 3, 0:8], f[1:4, bx : bx + 8])  # from global memory: through shared memory
        T.copy(f[0:4, 2:10], g[bx : bx + 4, 0:8])  # outside of both
        T.copy(X[0:11, 0:1], f[1, 5:16])  # a column becomes a row
        for i, j in T.Parallel(4, 16):
            f[i, j] = f[i, j] + g[j, i]
        T.copy(f, Y[bx * 4, 0])


@T.prim_func
def outside(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    with T.Kernel(T.ceildiv(M, 2), threads=64) as bx:
        one = T.alloc_fragment((1, 64), "float32")
        two = T.alloc_fragment((2, 64), "float32")
        T.copy(X[bx * 2 : bx * 2 + 1, 0:64], one)
        T.copy(X[bx * 2, 0], two)
        for i in T.Parallel(64):
            one[0, i] = one[0, i] + one[3, i] + two[1, i] + two[1000000, i]
        for i in T.Parallel(64):
            two[5, i] = one[0, i]
            two[1, i] = one[0, i] + two[0, i]
        T.copy(two, Y[bx * 2, 0])


@T.prim_func
def unread(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((8, 32), "float32")
        f = T.alloc_fragment((8, 32), "float32")
        T.copy(X[bx * 8, 0], s)  # nobody reads it; its memory serves the tile below
        T.copy(X[bx * 8, 0], f)
        t = T.alloc_shared((8, 32), "float32")
        T.copy(f, t)
        for i, j in T.Parallel(8, 32):
            f[i, j] = t[7 - i, 31 - j] + f[i, j]
        T.copy(f, Y[bx * 8, 0])


@T.prim_func
def one_element(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    with T.Kernel(M, N, threads=32) as (bx, by):
        s = T.alloc_shared((1, 1), "float32")
        f = T.alloc_fragment((1, 1), "float32")
        T.copy(X[bx, by], s)
        T.copy(s, f)
        for i, j in T.Parallel(1, 1):
            f[i, j] = f[i, j] + s[i + 1, j]
        T.copy(f, Y[bx, by])


@T.prim_func
def histogram(X: T.Tensor((M, N), "int32"), Y: T.Tensor((37,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        counts = T.alloc_shared((37,), "int32")
        T.clear(counts)
        for m in T.serial(M):
            for n in T.serial(T.ceildiv(N, 64)):
                for i in T.Parallel(64):
                    if n * 64 + i < N:
                        T.atomic_add(counts[X[m, n * 64 + i] % 37], 1)
        T.copy(counts, Y)


@T.prim_func
def argmax(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "int32")):
    with T.Kernel(T.ceildiv(M, 8), threads=128) as bx:
        tile = T.alloc_fragment((8, 32), "float32")
        index = T.alloc_fragment((8, 32), "int32")
        best = T.alloc_fragment((8,), "float32")
        here = T.alloc_fragment((8,), "float32")
        where = T.alloc_fragment((8,), "int32")
        first = T.alloc_fragment((8,), "int32")
        T.fill(best, -T.infinity("float32"))
        T.fill(where, 0)
        for c in T.serial(T.ceildiv(N, 32)):
            T.copy(X[bx * 8, c * 32], tile, fill=-T.infinity("float32"))
            T.reduce_max(tile, here, dim=1)
            for i, j in T.Parallel(8, 32):
                index[i, j] = T.if_then_else(tile[i, j] == here[i], c * 32 + j, 2147483647)
            T.reduce_min(index, first, dim=1)
            for i in T.Parallel(8):
                if here[i] > best[i]:
                    best[i] = here[i]
                    where[i] = first[i]
        T.copy(where, Y[bx * 8])


@T.prim_func
def rotate(X: T.Tensor((M, N, 5), "float16"), Y: T.Tensor((5, M, N), "float16")):
    with T.Kernel(T.ceildiv(M, 4), T.ceildiv(N, 8), threads=64) as (bx, by):
        s = T.alloc_shared((4, 8, 5), "float16")
        t = T.alloc_shared((5, 4, 8), "float16")
        T.copy(X[bx * 4, by * 8, 0], s)
        for i, j, k in T.Parallel(4, 8, 5):
            t[k, i, j] = s[i, j, k]
        T.copy(t, Y[0, bx * 4, by * 8])


@T.prim_func
def sums_of_sums(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    with T.Kernel(T.ceildiv(M, 3), threads=32) as bx:
        s = T.alloc_shared((3, 50), "int32")
        f = T.alloc_fragment((3, 50), "int32")
        T.copy(X[bx * 3, 0], s)
        T.cumsum(s, f, dim=1, reverse=True)
        T.cumsum(f, f, dim=0)
        T.copy(f, Y[bx * 3, 0])


@T.prim_func
def jumps(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    with T.Kernel(T.ceildiv(M, 4), threads=96) as bx:
        t = T.alloc_shared((4, 33), "int32")
        o = T.alloc_fragment((4, 33), "int32")
        T.copy(X[bx * 4, 0], t)
        T.clear(o)
        for k in T.serial(33):
            if k % 3 == 0:
                continue
            for m in T.serial(k, 33, 5):
                if m > 25:
                    break
                for i, j in T.Parallel(4, 33):
                    if j >= k:
                        o[i, j] += t[i, j - k] * (m - k + 1)
                    elif (j + m) % 2 == 0:
                        o[i, j] -= t[i, j + m]
                    else:
                        o[i, j] = o[i, j] ^ t[i, j]
        T.copy(o, Y[bx * 4, 0])


@T.prim_func
def overwrites(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((4, 16), "int32")
        s = T.alloc_shared((4, 16), "int32")
        T.copy(X[0:4, 0:16], f)
        T.copy(f, Y[0, 0])
        T.copy(f, Y[0, 0])  # by the same threads
        for i, j in T.Parallel(4, 16):
            Y[3 - i, 15 - j] = 2 * f[i, j]
        T.copy(X[0:4, 0:16], s)
        T.copy(s, Y[1, 1])
        for k in T.serial(N):
            T.copy(f, Y[0, k])  # each over most of the one before


@T.prim_func
def reads_back(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    W = T.workspace((M + 1, N), "int32", zeroed=True)
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((16,), "int32")
        for m in T.serial(M):
            for c in T.serial(T.ceildiv(N, 16)):
                T.copy(X[m, c * 16 : c * 16 + 16], f)
                for j in T.Parallel(16):
                    f[j] = f[j] + W[m, N - 1 - (c * 16 + j)]  # what the row before left
                T.copy(f, W[m + 1, c * 16 : c * 16 + 16])
                T.copy(f, Y[m, c * 16 : c * 16 + 16])


@T.prim_func
def prefetched(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    W = T.workspace((64, 32), "float32", zeroed=True)
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((4, 32), "float32")
        f = T.alloc_fragment((4, 32), "float32")
        g = T.alloc_fragment((4, 32), "float32")
        T.copy(X[0:4, 0:32], f)
        T.copy(f, W[0:4, 0:32])
        T.copy(W[1:5, 0:32], s)  # may still be in flight when …
        for i, j in T.Parallel(4, 32):
            W[4 - i, 31 - j] = f[i, j] + 1.0  # … it is overwritten
        T.copy(s, g)
        T.copy(g, Y[0, 0])
        for k in T.Pipelined(3, num_stages=2):
            T.copy(W[k : k + 4, 0:32], s)
            for i, j in T.Parallel(4, 32):
                g[i, j] = g[i, j] + s[3 - i, j]
        T.copy(g, Y[4, 0])


@T.prim_func
def in_order(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32")):
    with T.Kernel(T.ceildiv(M, 4), threads=64) as bx:
        f = T.alloc_fragment((4, 16), "int32")
        T.copy(X[bx * 4, 0], f)
        T.copy(f, Y[bx * 4, 0])
        for c in T.serial(1, T.ceildiv(N, 16)):
            T.copy(X[bx * 4, c * 16], f)
            T.copy(f, Y[bx * 4, c * 16])


@T.prim_func
def chained(
    X: T.Tensor((M, 64), "float16"),
    V: T.Tensor((64, N), "float16"),
    W: T.Tensor((N, 64), "float16"),
    Y: T.Tensor((M, 64), "float32"),
):
    with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
        x = T.alloc_shared((32, 64), "float16")
        v = T.alloc_shared((64, 32), "float16")
        w = T.alloc_shared((32, 64), "float16")
        middle = T.alloc_fragment((32, 32), "float32")
        half = T.alloc_fragment((32, 32), "float16")
        acc = T.alloc_fragment((32, 64), "float32")
        T.copy(X[bx * 32, 0], x)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(N, 32), num_stages=2):
            T.copy(V[0, k * 32], v)
            T.copy(W[k * 32, 0], w)
            T.gemm(x, v, middle, clear_accum=True)
            for i, j in T.Parallel(32, 32):
                half[i, j] = T.max(middle[i, j], 0.0)  # through shared memory, while the next tiles arrive
            T.gemm(half, w, acc)
        T.copy(acc, Y[bx * 32, 0])


@T.prim_func
def across(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
    # Two panels of columns, written by copies and by elements, read across.
    with T.Kernel(T.ceildiv(M, 32), T.ceildiv(N, 128), threads=64) as (bx, by):
        s = T.alloc_shared((32, 128), "float16")
        f = T.alloc_fragment((128, 32), "float16")
        T.copy(X[bx * 32, by * 128], s)
        for i, j in T.Parallel(8, 128):
            s[i, j] = s[i, j] + s[i + 8, j]
        for j, i in T.Parallel(128, 32):
            f[j, i] = s[i, j]
        for j, i in T.Parallel(128, 32):
            s[i, j] = f[j, i] + f[j, i]
        T.copy(s, Y[bx * 32, by * 128])


@T.prim_func
def private_memory(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    # What a point of a parallel loop has for itself: a variable set in branches, an array filled in a short loop, and one under a run-time loop.
    with T.Kernel(T.ceildiv(M, 8), T.ceildiv(N, 32), threads=64) as (bx, by):
        f = T.alloc_fragment((8, 32), "float32")
        T.copy(X[bx * 8, by * 32], f)
        for i, j in T.Parallel(8, 32):
            sign = T.alloc_var("float32")
            if f[i, j] > 0.0:
                sign = 1.0
            else:
                sign = -1.0
            powers = T.alloc_local((4,), "float32")
            T.fill(powers, 1.0)
            for k in T.serial(1, 4):
                powers[k] = powers[k - 1] * f[i, j]
            total = T.alloc_var("float32")
            total = 0.0
            for k in T.unroll(4):
                total += powers[k]
            for k in T.serial(i % 3):
                total += 1.0
            f[i, j] = total * sign
        T.copy(f, Y[bx * 8, by * 32])


@T.prim_func
def safe_value(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((8, 32), "float32")
        lowest = T.alloc_fragment((8,), "float32")
        f = T.alloc_fragment((8, 32), "float32")
        T.annotate_safe_value({X: 100.0})
        T.fill(lowest, 50.0)
        for k in T.serial(T.ceildiv(N, 32)):
            T.copy(X[bx * 8, k * 32], s)
            T.copy(s, f)
            T.reduce_min(f, lowest, dim=1, clear=False)
        for k in T.serial(T.ceildiv(N, 32)):
            for i, j in T.Parallel(8, 32):
                Y[bx * 8 + i, k * 32 + j] = lowest[i] + X[bx * 8 + i, k * 32 + j + 1]


@T.prim_func
def safe_values_in_turn(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    # Each holds among the statements that it stands among: not in front of it in the next iteration, nor after the condition.
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((8, 32), "float32")
        f = T.alloc_fragment((8, 32), "float32")
        T.fill(f, 0.0)
        for k in T.serial(T.ceildiv(N, 32)):
            T.copy(X[bx * 8, k * 32], s)
            for i, j in T.Parallel(8, 32):
                f[i, j] = f[i, j] + s[i, j]
            if k % 2 == bx % 2:
                T.annotate_safe_value({X: 7.0})
                T.copy(X[bx * 8, k * 32 + 3], s)
                T.annotate_safe_value({X: X[0, k]})
            for i, j in T.Parallel(8, 32):
                f[i, j] = f[i, j] * 2.0 + s[i, j] + X[bx * 8 + i, k * 32 + j + 5]
            T.annotate_safe_value({X: X[0, k] + 1.0})
            for i, j in T.Parallel(8, 32):
                f[i, j] = f[i, j] - X[bx * 8 + i, k * 32 + j + 9]
        T.copy(f, Y[bx * 8 : bx * 8 + 8, 0:32])


@T.prim_func
def skips_nan(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    # Square roots of negative numbers are NaN; a row of nothing else gives the least value.
    with T.Kernel(T.ceildiv(M, 8), T.ceildiv(N, 32), threads=64) as (bx, by):
        f = T.alloc_fragment((8, 32), "float32")
        high = T.alloc_fragment((8,), "float32")
        low = T.alloc_fragment((8,), "float32")
        T.copy(X[bx * 8, by * 32], f)
        for i, j in T.Parallel(8, 32):
            f[i, j] = T.sqrt(f[i, j] - 0.5)
        T.reduce_max(f, high, dim=1, nan_propagate=False)
        for i in T.Parallel(8):
            low[i] = T.sqrt(f[i, 0])
        T.reduce_min(f, low, dim=1, clear=False, nan_propagate=False)
        for i, j in T.Parallel(8, 32):
            Y[bx * 8 + i, by * 32 + j] = T.if_then_else(j < 16, high[i], low[i])


@T.prim_func
def begins_by_values(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    # Where tiles begin is in fragments: fixed in front of a pipeline, and changed by a loop.
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        first = T.alloc_fragment((2,), "int32")
        s = T.alloc_shared((8, 16), "float32")
        total = T.alloc_fragment((8, 16), "float32")
        first[0] = bx * 8
        first[1] = 0
        T.clear(total)
        for k in T.Pipelined(T.ceildiv(N, 16), num_stages=2):
            T.copy(X[first[0], k * 16], s)
            for i, j in T.Parallel(8, 16):
                total[i, j] += s[i, j]
        for k in T.serial(T.ceildiv(N, 16)):
            T.copy(X[first[0], first[1]], s)
            for i, j in T.Parallel(8, 16):
                s[i, j] += total[i, j]
            T.copy(s, Y[first[0], first[1]])
            first[1] = first[1] + 16


@T.prim_func
def fewer_stages(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    # Four tiles in flight are more than shared memory holds.
    with T.Kernel(T.ceildiv(M, 128), threads=256) as bx:
        s = T.alloc_shared((128, 128), "float32")
        total = T.alloc_fragment((128, 128), "float32")
        T.clear(total)
        for k in T.Pipelined(T.ceildiv(N, 128), num_stages=4):
            T.copy(X[bx * 128, k * 128], s)
            for i, j in T.Parallel(128, 128):
                total[i, j] += s[i, j]
        T.copy(total, Y[bx * 128, 0])


@T.prim_func
def made_anew(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    # Where three tiles do not fit, those that each iteration makes anew lie in the same memory; the one that lives on does not.
    with T.Kernel(T.ceildiv(M, 128), threads=256) as bx:
        f = T.alloc_fragment((128, 128), "float32")
        a = T.alloc_shared((128, 128), "float32")
        b = T.alloc_shared((128, 128), "float32")
        lives = T.alloc_shared((128, 128), "float32")
        T.fill(lives, 1.0)
        for k in T.serial(T.ceildiv(N, 128)):
            T.copy(X[bx * 128, k * 128], f)
            T.copy(f, a)
            for i, j in T.Parallel(128, 128):
                f[i, j] = a[j, i]
            T.copy(f, b)
            for i, j in T.Parallel(128, 128):
                lives[i, j] += b[i, 127 - j]
            T.copy(lives, Y[bx * 128, k * 128])


@T.prim_func
def narrow_panels(X: T.Tensor((M, 64), "float16"), V: T.Tensor((64, 32), "float16"), Y: T.Tensor((32, M), "float32")):
    # Several warpgroups would share rows of 64 bytes of the operand that lies along them.
    with T.Kernel(T.ceildiv(M, 64), threads=256) as bx:
        x = T.alloc_shared((64, 64), "float16")
        v = T.alloc_shared((64, 32), "float16")
        acc = T.alloc_fragment((32, 64), "float32")
        T.copy(X[bx * 64, 0], x)
        T.copy(V, v)
        T.gemm(v, x, acc, transpose_A=True, transpose_B=True, clear_accum=True)
        T.copy(acc, Y[0, bx * 64])


@T.prim_func
def no_tma(X: T.Tensor((M, 64), "float16"), W: T.Tensor((64, 64), "float16"), Y: T.Tensor((M, 64), "float16")):
    # Operands come by TMA; the result, through a tile of its own, must not leave by it.
    with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
        x = T.alloc_shared((64, 32), "float16")
        w = T.alloc_shared((32, 64), "float16")
        out = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.clear(acc)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(X[bx * 64, k * 32], x)
            T.copy(W[k * 32, 0], w)
            T.gemm(x, w, acc)
        T.copy(acc, out)
        T.copy(out, Y[bx * 64, 0], disable_tma=True)


@T.prim_func
def made_operand(X: T.Tensor((M, 64), "float16"), W: T.Tensor((64, 64), "float16"), Y: T.Tensor((M, 64), "float32")):
    # What the threads wrote before the product they wait for once, not in each of its steps.
    with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
        x = T.alloc_fragment((64, 64), "float16")
        made = T.alloc_shared((64, 64), "float16")
        w = T.alloc_fragment((64, 64), "float16")
        turned = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.copy(X[bx * 64, 0], x)
        T.copy(W, w)
        T.copy(x, made)
        T.copy(w, turned)
        T.gemm(made, turned, acc, clear_accum=True)
        T.copy(acc, Y[bx * 64, 0])


@T.prim_func
def tile_sums(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1, threads=64) as bx:
        T.clear(Y)
    with T.Kernel(T.ceildiv(M, 32), threads=64) as bx:
        x = T.alloc_fragment((32, 64), "float32")
        T.copy(X[bx * 32, 0], x)
        T.atomic_add(Y[0:32, :], x)


@T.prim_func
def ragged_sums(X: T.Tensor((M, N), "float32"), Y: T.Tensor((32, N), "float32")):
    # Neighbours of which one may be outside go singly.
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        T.fill(Y[0:32, bx * 64 : bx * 64 + 64], 0.0)
    with T.Kernel(T.ceildiv(M, 32), T.ceildiv(N, 64), threads=64) as (bx, by):
        x = T.alloc_fragment((32, 64), "float32")
        T.copy(X[bx * 32, by * 64], x)
        T.atomic_add(Y[0:32, by * 64 : by * 64 + 64], x)


@T.prim_func
def onto_itself(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    """Copies and atomics whose source and target overlap: all of the source is read before any of it is written."""
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((9, 40), "float32")
        f = T.alloc_fragment((9, 40), "float32")
        T.copy(X[bx * 8 : bx * 8 + 9, 0:40], s)
        T.copy(s, f)
        T.copy(s[0:8, 0:40], s[1:9, 0:40])  # down
        T.copy(s[0:9, 1:40], s[0:9, 0:39])  # to the left
        T.copy(s[T.index(-3) : T.index(-3) + 8, 0:40], s[1:9, 0:40], fill=4)
        T.copy(f[1:9, 0:40], f[0:8, 0:40])
        for k in T.serial(3):
            T.copy(s[0:9, k : k + 8], s[0:9, 2:10])  # where only a launch knows
            T.copy(s[k : k + 2, 0:40], s[k + 1 : k + 3, 0:40])
            T.copy(s[k, 0:40], s[k + 1, 0:40])  # apart
        T.atomic_add(s[1:9, 0:40], s[0:8, 0:40])
        T.transpose(s[0:9, 0:9], s[0:9, 0:9])
        T.transpose(f[0:8, 3:11], f[0:8, 3:11])
        for i, j in T.Parallel(8, 40):
            s[i, j] = s[i, j] + 3 * f[i, j]
        T.copy(s[0:8, 0:40], Y[bx * 8, 0])


@T.prim_func
def parts_onto_itself(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    """The same of regions whose extents only a launch knows."""
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        s = T.alloc_shared((9, 40), "float32")
        f = T.alloc_fragment((9, 40), "float32")
        T.copy(X[bx * 8 : bx * 8 + 9, 0:40], s)
        T.copy(s, f)
        T.copy(s[0 : M - 1, 0:N], s[1:M, 0:N])
        T.copy(f[0:9, 1 : N // 2], f[0:9, 0 : N // 2 - 1])
        T.copy(f[0:M, 0:40], f[2 : 2 + M, 0:40])
        T.atomic_add(s[0:M, 0:40], s[1 : 1 + M, 0:40])
        for i, j in T.Parallel(8, 40):
            s[i, j] = s[i, j] + 3 * f[i, j]
        T.copy(s[0:8, 0:40], Y[bx * 8, 0])


@T.prim_func
def tensor_onto_itself(Y: T.Tensor((M, 40), "float32")):
    with T.Kernel(1, threads=96) as bx:
        T.copy(Y[0:9, 0:40], Y[1:10, 0:40])
        T.copy(Y[0:16, 2:40], Y[0:16, 0:38])
        T.atomic_add(Y[0:9, 0:40], Y[3:12, 0:40])


def masked_products(A: T.Tensor((M, 16), "float16"), B: T.Tensor((N, 16), "float16"), C: T.Tensor((M, 16), "float32")):
    # Masks that hold for whole tiles: from some iteration on, up to some iteration, and in all or none of a block's.
    with T.Kernel(T.ceildiv(M, 16), threads=32) as bx:
        a = T.alloc_shared((16, 16), "float16")
        b = T.alloc_shared((16, 16), "float16")
        s = T.alloc_fragment((16, 16), "float32")
        c = T.alloc_fragment((16, 16), "float32")
        T.clear(c)
        T.copy(A[bx * 16, 0], a)
        for k in T.Pipelined(T.ceildiv(N, 16), num_stages=2):
            T.copy(B[k * 16, 0], b)
            for i, j in T.Parallel(16, 16):
                s[i, j] = T.if_then_else(k * 16 + j < N, T.if_then_else(bx * 16 + i < M, 1.0, 7.0), -3.0)
            T.gemm(a, b, s, transpose_B=True)
            for i, j in T.Parallel(16, 16):
                c[i, j] += T.if_then_else(k * 16 + j - i >= bx * 16 - 5, s[i, j], 100.0)
        T.copy(c, C[bx * 16, 0])


@T.prim_func
def many_points(X: T.Tensor((70, 1000), "int32"), Y: T.Tensor((70, 1000), "int32")):
    """More points than the registers of a block hold."""
    with T.Kernel(1, threads=32) as bx:
        T.fill(Y, 1)
        for i, j, k in T.Parallel(35, 2, 1000):
            v = T.alloc_local((3,), "int32")
            for n in T.serial(3):
                v[n] = X[i * 2 + k % 2, 999 - k] + n
            Y[i * 2 + j, k] = Y[i * 2 + j, k] + v[k % 3]
        T.atomic_add(Y[0:69, 1:1000], X[1:70, 0:999])


@T.prim_func
def many_copies(X: T.Tensor((100000,), "int32"), Y: T.Tensor((100000,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        T.copy(X, Y)
        for i in T.Parallel(99999):
            if i % 3 == 0:
                Y[99999 - i] = X[i] + 1


@T.prim_func
def safe_parts(X: T.Tensor((20, 16), "float32"), I: T.Tensor((20,), "int32"), Y: T.Tensor((4, 8), "float32"), Z: T.Tensor((2, 8), "int32")):
    # Parts of tiles, some of them outside, in statements other than copies.
    with T.Kernel(2, threads=64) as bx:
        x = T.alloc_shared((20, 16), "float32")
        n = T.alloc_fragment((20,), "int32")
        most = T.alloc_fragment((8,), "float32")
        sums = T.alloc_fragment((8,), "int32")
        total = T.alloc_shared((8, 12), "float32")
        T.copy(X, x)
        T.copy(I, n)
        T.annotate_safe_value({x: -7.0, n: 3})
        T.reduce_max(x[bx * 16:bx * 16 + 8, 10:22], most, dim=1)
        T.copy(most, Y[bx, 0:8])
        T.cumsum(n[bx * 16:bx * 16 + 8], sums, dim=0)
        T.copy(sums, Z[bx, 0:8])
        T.fill(total, 1)
        T.atomic_add(total, x[bx * 16:bx * 16 + 8, 8:20])
        T.reduce_sum(total, most, dim=1)
        T.copy(most, Y[bx + 2, 0:8])
