import tilelang.language as T

N = T.dynamic("N")


@T.prim_func
def always_shared(
    X: T.Tensor((N, 64), "float32", access="in"),
    Y: T.Tensor((64,), "float32", access="out"),
    Done: T.Tensor((2,), "int32", access="inout"),
):
    with T.Kernel(T.ceildiv(N, 64), threads=128) as bx:
        tile = T.alloc_shared((64,), "float32")
        sum = T.alloc_fragment((64,), "float32")
        T.clear(sum)
        for k in T.Pipelined(N, num_stages=2, split=0):
            T.copy(X[k, 0:64], tile)
            for i in T.Parallel(64):
                sum[i] = sum[i] + tile[i]
        T.copy(sum, Y)
        before = T.atomic_add(Done[0], 1, memory_order="acq_rel", return_prev=True)
        T.atomic_max(Done[1], before)
