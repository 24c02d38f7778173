"""Attention, forward: O = softmax(Q · Kᵀ / sqrt(head_dim)) · V.

Tensors are (batch, sequence, heads, head_dim). Several query heads may share a head of K and V. With `causal`, a query sees
the keys up to its own position, counted from the end of both sequences. Queries that see no key give zeros.

Exponentials are relative to the largest one of their row so far, or with `slack` to an earlier one which that exceeds by at most 2^slack: then
sums are seldom scaled. With `longest_first` (and `causal`) the blocks that see the most keys begin first, those of all heads, so that none that
takes long begins last. Both are for mma.sync.

With `with_lse` there is a second result, which attention_backward.py needs: of each query the logarithm of its sum of exponentials,
(batch, heads, seq_q), in float32; −∞ where it sees no key.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def attention(
    Q,
    K,
    V,
    head_dim=128,
    causal=False,
    block_M=128,
    block_N=64,
    num_stages=2,
    threads=128,
    cluster=1,
    slack=0,
    longest_first=0,
    with_lse=False,
    dtype=T.float16,
):
    batch, seq_q, seq_kv, heads, heads_kv = T.const("batch, seq_q, seq_kv, heads, heads_kv")
    Q: T.Tensor((batch, seq_q, heads, head_dim), dtype)
    K: T.Tensor((batch, seq_kv, heads_kv, head_dim), dtype)
    V: T.Tensor((batch, seq_kv, heads_kv, head_dim), dtype)
    O = T.empty((batch, seq_q, heads, head_dim), dtype)
    if with_lse:
        lse = T.empty((batch, heads, seq_q), T.float32)
    assert heads % heads_kv == 0

    root = (1.0 / head_dim) ** 0.5
    scale = root * 1.4426950408889634  # exponentials are powers of two
    offset = seq_kv - seq_q  # position of the first query among the keys
    tiles = T.ceildiv(seq_q, block_M)

    # The blocks of queries of a head load K and V together, `cluster` of them.
    with T.Kernel(tiles, heads, batch, threads=threads, cluster_dims=cluster) as (x, y, bz):
        bx = x
        by = y
        if causal:
            bx = T.if_then_else(longest_first > 0, tiles - 1 - (y * tiles + x) // heads, x)
            by = T.if_then_else(longest_first > 0, (y * tiles + x) % heads, y)

        Q_shared = T.alloc_shared((block_M, head_dim), dtype)
        K_shared = T.alloc_shared((block_N, head_dim), dtype)
        V_shared = T.alloc_shared((block_N, head_dim), dtype)
        O_shared = T.alloc_shared((block_M, head_dim), dtype)
        scores = T.alloc_fragment((block_M, block_N), T.float32)
        weights = T.alloc_fragment((block_M, block_N), dtype)
        acc = T.alloc_fragment((block_M, head_dim), T.float32)
        largest = T.alloc_fragment((block_M,), T.float32)
        reference = T.alloc_fragment((block_M,), T.float32)  # exponentials are relative to 2^reference
        rescale = T.alloc_fragment((block_M,), T.float32)
        growth = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)

        T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
        T.clear(acc)
        T.clear(total)
        T.fill(reference, -1e30)  # finite, so that a row without keys stays free of NaN

        head = by // (heads // heads_kv)
        blocks = T.ceildiv(seq_kv, block_N)
        if causal:
            blocks = T.min(blocks, T.ceildiv(offset + (bx + 1) * block_M, block_N))

        for k in T.Pipelined(blocks, num_stages=num_stages):
            T.copy(K[bz, k * block_N : (k + 1) * block_N, head, :], K_shared)
            T.copy(V[bz, k * block_N : (k + 1) * block_N, head, :], V_shared)
            # The mask is what the product is added to.
            for i, j in T.Parallel(block_M, block_N):
                if causal:
                    scores[i, j] = T.if_then_else(k * block_N + j <= offset + bx * block_M + i, 0.0, -T.infinity(T.float32))
                else:
                    scores[i, j] = T.if_then_else(k * block_N + j < seq_kv, 0.0, -T.infinity(T.float32))
            T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

            T.reduce_max(scores, largest, dim=1)
            if slack > 0:
                for i in T.Parallel(block_M):
                    growth[i] = largest[i] * scale - reference[i]
                    if growth[i] > slack:
                        rescale[i] = T.exp2(-growth[i])
                        reference[i] = largest[i] * scale
                        total[i] *= rescale[i]
                for i, j in T.Parallel(block_M, head_dim):
                    if growth[i] > slack:
                        acc[i, j] *= rescale[i]
            else:
                T.copy(reference, rescale)
                for i in T.Parallel(block_M):
                    reference[i] = T.max(reference[i], largest[i] * scale)
                    rescale[i] = T.exp2(rescale[i] - reference[i])
                    total[i] *= rescale[i]
                for i, j in T.Parallel(block_M, head_dim):
                    acc[i, j] *= rescale[i]
            for i, j in T.Parallel(block_M, block_N):
                scores[i, j] = T.exp2(scores[i, j] * scale - reference[i])
            T.reduce_sum(scores, total, dim=1, clear=False)
            T.copy(scores, weights)
            T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)

        if with_lse:
            for i in T.Parallel(block_M):
                reference[i] = T.if_then_else(total[i] > 0.0, (reference[i] + T.log2(total[i])) * 0.6931471805599453, -T.infinity(T.float32))
            T.copy(reference, lse[bz, by, bx * block_M : (bx + 1) * block_M])
        for i in T.Parallel(block_M):
            total[i] = T.if_then_else(total[i] > 0.0, 1.0 / total[i], 0.0)
        for i, j in T.Parallel(block_M, head_dim):
            acc[i, j] *= total[i]
        T.copy(acc, O_shared)
        T.copy(O_shared, O[bz, bx * block_M : (bx + 1) * block_M, by, :])
    if with_lse:
        return O, lse
    return O
