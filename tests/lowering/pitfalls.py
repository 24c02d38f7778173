# What users of TileLang have stumbled over, by kind.
import tilelang
import tilelang.language as T


# A shared tile of (128, 64) whose layout somebody wrote by hand; it stays right whatever is made of the wish.
def own_layout(layout="xor"):
    @T.prim_func
    def main(A: T.Tensor((256, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((256, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((128, 64), "float32")
            if layout == "xor":
                T.annotate_layout({a: T.Layout((128, 64), lambda i, j: [i, (j // 8 ^ i % 8) * 8 + j % 8])})
            elif layout == "transposed":
                T.annotate_layout({a: T.Layout((128, 64), lambda i, j: [j, i]), b: tilelang.layout.make_swizzled_layout(b)})
            elif layout == "blocks":
                T.annotate_layout({a: T.Layout((128, 64), lambda i, j: [i // 8, j // 8, i % 8, j % 8])})
            else:
                T.annotate_layout({a: tilelang.layout.make_swizzled_layout(a)})
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[bx * 128, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * 128, 0])

    return main


# The gradient of Q in attention: products and differences in float16 lose what float32 keeps.
def backward(narrow=False):
    kind = "float16" if narrow else "float32"

    @T.prim_func
    def main(
        Q: T.Tensor((64, 32), "float16"),
        K: T.Tensor((96, 32), "float16"),
        V: T.Tensor((96, 32), "float16"),
        dO: T.Tensor((64, 32), "float16"),
        lse: T.Tensor((64,), "float32"),
        delta: T.Tensor((64,), "float32"),
        dQ: T.Tensor((64, 32), "float32"),
    ):
        with T.Kernel(2, threads=64) as bx:
            q = T.alloc_shared((32, 32), "float16")
            k = T.alloc_shared((32, 32), "float16")
            v = T.alloc_shared((32, 32), "float16")
            do = T.alloc_shared((32, 32), "float16")
            scores = T.alloc_fragment((32, 32), kind)
            weights = T.alloc_fragment((32, 32), "float32")
            gradient = T.alloc_fragment((32, 32), kind)
            cast = T.alloc_fragment((32, 32), "float16")
            dq = T.alloc_fragment((32, 32), "float32")
            T.copy(Q[bx * 32, 0], q)
            T.copy(dO[bx * 32, 0], do)
            T.clear(dq)
            for step in T.Pipelined(3, num_stages=1):
                T.copy(K[step * 32, 0], k)
                T.copy(V[step * 32, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.clear(gradient)
                T.gemm(do, v, gradient, transpose_B=True)
                for i, j in T.Parallel(32, 32):
                    weights[i, j] = T.exp2(scores[i, j] * 0.25 - lse[bx * 32 + i])
                for i, j in T.Parallel(32, 32):
                    cast[i, j] = weights[i, j] * (gradient[i, j] - delta[bx * 32 + i])
                T.gemm(cast, k, dq)
            T.copy(dq, dQ[bx * 32, 0])

    return main
