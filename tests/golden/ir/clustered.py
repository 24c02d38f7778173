import tilelang.language as T

N = T.dynamic("N")
c = T.constant("c", [2, 1])
split = T.constant("split", [1, 2])


@T.prim_func
def clustered(
    X: T.Tensor((N, 64), "float32", access="in"),
    Y: T.Tensor((64,), "float32", access="out"),
):
    with T.Kernel(T.ceildiv(N, 64), threads=128, cluster_dims=(c,)) as bx:
        tile = T.alloc_shared((64,), "float32")
        sum = T.alloc_fragment((64,), "float32")
        T.clear(sum)
        for k in T.Pipelined(N, num_stages=2, split=split):
            T.copy(X[k, 0:64], tile)
            for i in T.Parallel(64):
                sum[i] = sum[i] + tile[i]
        T.copy(sum, Y)
