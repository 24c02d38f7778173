import tilelang.language as T

N = T.dynamic("N")
stages = T.constant("stages", [3, 2, 4])


@T.prim_func
def staged(X: T.Tensor((N,), "float32", access="in"), Y: T.Tensor((N,), "float32", access="out")):
    with T.Kernel(1, threads=32) as bx:
        tile = T.alloc_shared((32,), "float32")
        for k in T.Pipelined(bx, T.ceildiv(N, 32), num_stages=stages):
            T.copy(X[k * 32:(k * 32) + 32], tile)
            T.copy(tile, Y[k * 32:(k * 32) + 32])
        for k in T.Pipelined(bx, T.ceildiv(N, 32), num_stages=stages - 2):
            T.copy(X[k * 32:(k * 32) + 32], tile)
            T.copy(tile, Y[k * 32:(k * 32) + 32])
        for k in T.Pipelined(bx, T.ceildiv(N, 32), num_stages=2):
            T.copy(X[k * 32:(k * 32) + 32], tile)
            T.copy(tile, Y[k * 32:(k * 32) + 32])
