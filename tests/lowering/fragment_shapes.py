"""Fragments seen in another shape, guarded by row, and too large."""
import tilelang
import tilelang.language as T


@tilelang.jit
def heads(Q, K, W, block_N=64, block_Q=2, heads=16, depth=32, threads=128, dtype="float16"):
    """The rows of a product are the heads of a few queries: scaled by head, then added up over them (examples/deepseek_v32/fp8_lighting_indexer)."""
    N, S = T.const("N, S")
    Q: T.Tensor((S * heads, depth), dtype)
    K: T.Tensor((N, depth), dtype)
    W: T.Tensor((S, heads), "float32")
    Out = T.empty((S, N), "float32")
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(S, block_Q), threads=threads) as (bn, bq):
        q = T.alloc_shared((block_Q * heads, depth), dtype)
        k = T.alloc_shared((block_N, depth), dtype)
        s = T.alloc_fragment((block_N, block_Q * heads), "float32")
        by_head = T.reshape(s, (block_N, block_Q, heads))
        w = T.alloc_fragment((block_Q, heads), "float32")
        sums = T.alloc_fragment((block_N, block_Q), "float32")
        T.copy(Q[bq * block_Q * heads, 0], q)
        T.copy(K[bn * block_N, 0], k)
        T.copy(W[bq * block_Q, 0], w)
        T.gemm(k, q, s, transpose_B=True, clear_accum=True)
        for n, i, h in T.Parallel(block_N, block_Q, heads):
            by_head[n, i, h] = T.max(by_head[n, i, h], 0) * w[i, h]
        T.reduce_sum(by_head, sums, dim=2)
        for i, n in T.Parallel(block_Q, block_N):
            Out[bq * block_Q + i, bn * block_N + n] = sums[n, i]
    return Out


@tilelang.jit
def digits(A, shape=(4, 6, 8), threads=64):
    """A fragment by its three digits, from the slowest on, from the fastest on, and in parts; and one that is as the loop is."""
    a, b, c = shape
    n = a * b * c
    M = T.const("M")
    A: T.Tensor((M, n), "float32")
    B = T.empty((M, n), "float32")
    C = T.empty((M, a, c, b), "float32")
    with T.Kernel(M, threads=threads) as row:
        x = T.alloc_fragment((n,), "float32")
        y = T.alloc_fragment((a, c, b), "float32")
        T.copy(A[row, 0:n], x)
        for i, j, k in T.Parallel(a, b, c):
            x[i * (b * c) + j * c + k] = x[i * (b * c) + j * c + k] * 2.0 + (100 * i + 10 * j + k)
        for i, k, j in T.Parallel(a, c, b):
            y[i, k, j] = x[j * c + k + i * (b * c)] - 1.0
        for i, k in T.Parallel(a, b * c):
            x[i * (b * c) + k] += i
        for i, j in T.Parallel(a - 1, b * c):
            x[i * (b * c) + j] = -x[i * (b * c) + j]
        T.copy(x, B[row, 0:n])
        T.copy(y, C[row, 0:a, 0:c, 0:b])
    return B, C


@tilelang.jit
def rescaled(A, B, Need, block_M=64, block_N=64, block_K=32, threads=128, dtype="float16"):
    """An accumulator whose rows are rescaled between products, few of them: a row is held by four lanes."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    Need: T.Tensor((M,), "float32")
    C = T.empty((M, N), "float32")
    Narrow = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        a = T.alloc_shared((block_M, block_K), dtype)
        b = T.alloc_shared((block_K, block_N), dtype)
        acc = T.alloc_fragment((block_M, block_N), "float32")
        narrow = T.alloc_fragment((block_M, block_N), dtype)
        top = T.alloc_fragment((block_M,), "float32")
        need = T.alloc_fragment((block_M,), "float32")
        T.clear(acc)
        T.copy(Need[by * block_M], need)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], a)
            T.copy(B[k * block_K, bx * block_N], b)
            T.reduce_max(acc, top, dim=1)
            for i, j in T.Parallel(block_M, block_N):
                if need[i] > top[i]:
                    acc[i, j] = acc[i, j] * T.exp2(need[i] - top[i] - 2.0) + need[i]
            T.gemm(a, b, acc)
        T.copy(acc, narrow)
        for i, j in T.Parallel(block_M, block_N):
            if need[i] > 1.0:
                narrow[i, j] = T.cast(acc[i, j], dtype) * 0.5
        T.copy(acc, C[by * block_M, bx * block_N])
        T.copy(narrow, Narrow[by * block_M, bx * block_N])
    return C, Narrow


@tilelang.jit
def rescaled_rows(A, block_M=8, N=512, threads=64):
    """The same where a row is held by all lanes of a warp."""
    M = T.const("M")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as by:
        a = T.alloc_fragment((block_M, N), "float32")
        top = T.alloc_fragment((block_M,), "float32")
        T.copy(A[by * block_M, 0], a)
        for k in T.serial(3):
            T.reduce_max(a, top, dim=1)
            for i, j in T.Parallel(block_M, N):
                if top[i] > 3.5:
                    a[i, j] = a[i, j] * 0.75 + T.exp2(a[i, j] - top[i])
        T.copy(a, B[by * block_M, 0])
    return B


@tilelang.jit
def too_large(A, cols=1024, rows=128, threads=128, parts=False):
    """A tile of more registers than a thread has; in parts, each of which dies before the next, it is small."""
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, cols), T.ceildiv(M, rows), threads=threads) as (bx, by):
        if parts:
            xs = [T.alloc_fragment((rows, cols // 8), "float32") for _ in range(8)]
            for p in (0, 1, 2, 3, 4, 5, 6, 7):
                T.copy(A[by * rows, bx * cols + p * (cols // 8)], xs[p])
                for i, j in T.Parallel(rows, cols // 8):
                    xs[p][i, j] = xs[p][i, j] * 2.0
                T.copy(xs[p], B[by * rows, bx * cols + p * (cols // 8)])
        else:
            x = T.alloc_fragment((rows, cols), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            T.copy(A[by * rows, bx * cols], x)
            T.reduce_sum(x, scale, dim=1)
            for i, j in T.Parallel(rows, cols):
                x[i, j] = x[i, j] * scale[i]
            T.copy(x, B[by * rows, bx * cols])
    return B


@tilelang.jit
def seen_twice(X, part=32):
    """A copy between two shapes of one tile, which share elements: all of the source is read first. Atomics likewise."""
    X: T.Tensor((64, 64), "float32")
    Y = T.empty((64, 64), "float32")
    Z = T.empty((64, 64), "float32")
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float32")
        u = T.view(s, (128, 32))
        T.copy(X, s)
        T.copy(u[0:64, 0:part], s[0:64, 64 - part : 64])
        T.copy(s, Y)
        T.atomic_add(s[0:64, 0:32], u[64:128, 0:32])
        T.copy(s, Z)
    return Y, Z


@tilelang.jit
def stored_in_parts(A, B, block_M=64, block_N=64, block_K=32, parts=2, threads=128, dtype="float16"):
    """A product that leaves through a tile of a part of its rows, one part after the other (examples/deepseek_v32/sparse_mla_bwd)."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), "float32")
    rows = block_M // parts
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by_):
        a = T.alloc_shared((block_M, block_K), dtype)
        b = T.alloc_shared((block_K, block_N), dtype)
        acc = T.alloc_fragment((block_M, block_N), "float32")
        scale = T.alloc_fragment((block_M,), "float32")
        part = T.alloc_shared((rows, block_N), "float32")
        T.clear(acc)
        T.fill(scale, 0.5)
        for k in T.serial(T.ceildiv(K, block_K)):
            T.copy(A[by_ * block_M, k * block_K], a)
            T.copy(B[k * block_K, bx * block_N], b)
            T.gemm(a, b, acc)
        for s in range(parts):
            for i, j in T.Parallel(block_M, block_N):
                if i < rows:
                    part[i, j] = acc[i + s * rows, j] * 2.0 * scale[i]
            T.copy(part, C[by_ * block_M + s * rows, bx * block_N])
    return C


@tilelang.jit
def windows(A, rows=24, cols=40, threads=64):
    """Parts of fragments that begin in their middle, in both dimensions, read and written; beyond the end there is nothing."""
    M = T.const("M")
    A: T.Tensor((M, rows, cols), "float32")
    B = T.empty((M, rows, cols), "float32")
    C = T.empty((M, rows, cols), "float32")
    with T.Kernel(M, threads=threads) as m:
        x = T.alloc_fragment((rows, cols), "float32")
        y = T.alloc_shared((rows, cols), "float32")
        T.copy(A[m, 0:rows, 0:cols], x)
        T.clear(y)
        for i, j in T.Parallel(rows - 7, cols - 9):
            y[i, j] = x[i + 7, j + 9] + i
        for k in T.serial(3):
            for i, j in T.Parallel(5, cols):
                x[i + k * 6 + 1, j] = -x[i + k * 6 + 1, j] * (j + 1)
        for i, j in T.Parallel(rows, 8):
            y[i, j + 32] = x[i + 3, j + 30]
        T.copy(x, B[m, 0:rows, 0:cols])
        T.copy(y, C[m, 0:rows, 0:cols])
    return B, C
