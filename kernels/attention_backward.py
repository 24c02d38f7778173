"""Attention, backward: the gradients of Q, K and V from that of O = softmax(Q · Kᵀ / sqrt(head_dim)) · V.

Tensors are (batch, sequence, heads, head_dim), masks and shared heads as in attention.py. `lse` is what attention.py gives with
`with_lse`: of each query the logarithm of its sum of exponentials, (batch, heads, seq_q). All that lies between the products is
kept in float32. Gradients of Q are added up by atomics: their last bits differ from run to run.

A block has rows of K and V and walks over the queries; weights[i, j] is that of key i for query j, so that the products for dV and dK
take their left operand from registers:
    S = K · Qᵀ    P = exp(S / sqrt(head_dim) − lse)    dV += P · dO    dS = P ∘ (V · dOᵀ − delta)    dK += dS · Q    dQ += dSᵀ · K
with delta, of each query, the sum of O ∘ dO (section 3.1.2 of the FlashAttention-2 paper).

With `shared_weights` P and dS go through shared memory: warps then share out the products in squares and load less of the other operands. The sums of
dQ lie in the workspace as mma.sync leaves them in registers, 8 × 8 elements together, so that what a warp adds at once is one line of memory. With
`longest_first` (and `causal`) the blocks that see the most queries begin first, those of all heads, so that none that takes long begins last.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def attention_backward(
    Q,
    K,
    V,
    O,
    dO,
    lse,
    head_dim=128,
    causal=False,
    block_M=64,
    block_N=128,
    num_stages=2,
    threads=256,
    shared_weights=0,
    longest_first=0,
    dtype=T.float16,
):
    batch, seq_q, seq_kv, heads, heads_kv = T.const("batch, seq_q, seq_kv, heads, heads_kv")
    Q: T.Tensor((batch, seq_q, heads, head_dim), dtype)
    K: T.Tensor((batch, seq_kv, heads_kv, head_dim), dtype)
    V: T.Tensor((batch, seq_kv, heads_kv, head_dim), dtype)
    O: T.Tensor((batch, seq_q, heads, head_dim), dtype)
    dO: T.Tensor((batch, seq_q, heads, head_dim), dtype)
    lse: T.Tensor((batch, heads, seq_q), T.float32)
    dQ = T.empty((batch, seq_q, heads, head_dim), dtype)
    dK = T.empty((batch, seq_kv, heads_kv, head_dim), dtype)
    dV = T.empty((batch, seq_kv, heads_kv, head_dim), dtype)
    assert heads % heads_kv == 0

    root = (1.0 / head_dim) ** 0.5
    offset = seq_kv - seq_q  # position of the first query among the keys
    blocks = T.ceildiv(seq_q, block_M)
    # Of a tile of dQ: rows, or 8 × 8 elements together.
    groups = T.if_then_else(shared_weights > 0, block_M // 8, block_M)
    atoms = T.if_then_else(shared_weights > 0, head_dim // 8, 1)
    pair = T.if_then_else(shared_weights > 0, 2, 1)
    line = T.if_then_else(shared_weights > 0, 32, head_dim)
    dQ_sums = T.workspace((batch, heads, blocks, groups, atoms, pair, line), T.float32, zeroed=True)
    rows = T.workspace((batch, heads, blocks, 2, block_M), T.float32)  # of each query: −lse · sqrt(head_dim), and −delta

    with T.Kernel(blocks, heads, batch, threads=threads) as (bx, by, bz):
        o = T.alloc_fragment((block_M, head_dim), dtype)
        do = T.alloc_fragment((block_M, head_dim), dtype)
        product = T.alloc_fragment((block_M, head_dim), T.float32)
        delta = T.alloc_fragment((block_M,), T.float32)

        T.copy(O[bz, bx * block_M : (bx + 1) * block_M, by, :], o)
        T.copy(dO[bz, bx * block_M : (bx + 1) * block_M, by, :], do)
        for i, j in T.Parallel(block_M, head_dim):
            product[i, j] = T.cast(o[i, j], T.float32) * T.cast(do[i, j], T.float32)
        T.reduce_sum(product, delta, dim=1)
        for i in T.Parallel(block_M):
            q = bx * block_M + i
            # Queries that see no key, and those beyond the end, give all keys the weight exp(−∞).
            sees = T.if_then_else(q < seq_q, lse[bz, by, q] > -T.infinity(T.float32), False)
            rows[bz, by, bx, 0, i] = T.if_then_else(sees, lse[bz, by, q] * (-1.0 / root), -T.infinity(T.float32))
            rows[bz, by, bx, 1, i] = -delta[i]

    tiles = T.ceildiv(seq_kv, block_N)
    with T.Kernel(tiles, heads_kv, batch, threads=threads) as (x, y, bz):
        bx = x
        by = y
        if causal:
            bx = T.if_then_else(longest_first > 0, (y * tiles + x) // heads_kv, x)
            by = T.if_then_else(longest_first > 0, (y * tiles + x) % heads_kv, y)

        K_shared = T.alloc_shared((block_N, head_dim), dtype)
        V_shared = T.alloc_shared((block_N, head_dim), dtype)
        Q_shared = T.alloc_shared((block_M, head_dim), dtype)
        dO_shared = T.alloc_shared((block_M, head_dim), dtype)
        rows_shared = T.alloc_shared((2, block_M), T.float32)
        P_shared = T.alloc_shared((block_N, block_M), dtype)
        dS_shared = T.alloc_shared((block_N, block_M), dtype)
        scores = T.alloc_fragment((block_N, block_M), T.float32)
        slopes = T.alloc_fragment((block_N, block_M), T.float32)
        weights_16 = T.alloc_fragment((block_N, block_M), dtype)
        slopes_16 = T.alloc_fragment((block_N, block_M), dtype)
        dk = T.alloc_fragment((block_N, head_dim), T.float32)
        dv = T.alloc_fragment((block_N, head_dim), T.float32)
        dq = T.alloc_fragment((block_M, head_dim), T.float32)

        T.copy(K[bz, bx * block_N : (bx + 1) * block_N, by, :], K_shared)
        T.copy(V[bz, bx * block_N : (bx + 1) * block_N, by, :], V_shared)
        T.clear(dk)
        T.clear(dv)

        first = 0
        if causal:
            first = T.max(0, (bx * block_N - offset) // block_M)
        for g in T.serial(heads // heads_kv):
            head = by * (heads // heads_kv) + g
            for m in T.Pipelined(first, blocks, num_stages=num_stages):
                # What the products are added to: the logarithms of the sums, and the mask.
                T.copy(rows[bz, head, m, :, :], rows_shared)
                T.copy(Q[bz, m * block_M : (m + 1) * block_M, head, :], Q_shared)
                for i, j in T.Parallel(block_N, block_M):
                    if causal:
                        scores[i, j] = T.if_then_else(
                            i - j <= offset + m * block_M - bx * block_N, rows_shared[0, j], -T.infinity(T.float32)
                        )
                    else:
                        scores[i, j] = T.if_then_else(bx * block_N + i < seq_kv, rows_shared[0, j], -T.infinity(T.float32))
                if shared_weights > 0:
                    T.gemm(K_shared, Q_shared, scores, transpose_B=True)
                else:
                    T.gemm(K_shared, Q_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_N, block_M):
                    scores[i, j] = T.exp2(scores[i, j] * (root * 1.4426950408889634))

                T.copy(dO[bz, m * block_M : (m + 1) * block_M, head, :], dO_shared)
                if shared_weights == 0:
                    T.copy(scores, weights_16)
                    T.gemm(weights_16, dO_shared, dv, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_N, block_M):
                    slopes[i, j] = rows_shared[1, j]
                if shared_weights > 0:
                    T.gemm(V_shared, dO_shared, slopes, transpose_B=True)
                    T.copy(scores, P_shared)
                else:
                    T.gemm(V_shared, dO_shared, slopes, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_N, block_M):
                    slopes[i, j] *= scores[i, j]

                if shared_weights > 0:
                    T.copy(slopes, dS_shared)
                    T.gemm(P_shared, dO_shared, dv)
                    T.gemm(dS_shared, Q_shared, dk)
                else:
                    T.copy(slopes, slopes_16)
                    T.copy(slopes_16, dS_shared)
                    T.gemm(slopes_16, Q_shared, dk, policy=T.GemmWarpPolicy.FullRow)
                T.gemm(dS_shared, K_shared, dq, transpose_A=True, clear_accum=True)
                if shared_weights > 0:
                    for i, j in T.Parallel(block_M, head_dim):
                        T.atomic_add(dQ_sums[bz, head, m, i // 8, j // 8, j % 2, i % 8 * 4 + j % 8 // 2], dq[i, j])
                else:
                    T.atomic_add(dQ_sums[bz, head, m, 0:block_M, 0, 0, 0:head_dim], dq)

        for i, j in T.Parallel(block_N, head_dim):
            dk[i, j] *= root
        T.copy(dk, dK[bz, bx * block_N : (bx + 1) * block_N, by, :])
        T.copy(dv, dV[bz, bx * block_N : (bx + 1) * block_N, by, :])

    with T.Kernel(blocks, heads, batch, threads=threads) as (bx, by, bz):
        dq = T.alloc_fragment((block_M, head_dim), T.float32)
        if shared_weights > 0:
            for i, j in T.Parallel(block_M, head_dim):
                dq[i, j] = dQ_sums[bz, by, bx, i // 8, j // 8, j % 2, i % 8 * 4 + j % 8 // 2]
        else:
            T.copy(dQ_sums[bz, by, bx, 0:block_M, 0, 0, 0:head_dim], dq)
        for i, j in T.Parallel(block_M, head_dim):
            dq[i, j] *= root
        T.copy(dq, dQ[bz, bx * block_M : (bx + 1) * block_M, by, :])
    return dQ, dK, dV
