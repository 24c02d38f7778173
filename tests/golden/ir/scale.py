import tilelang.language as T

N = T.dynamic("N")
block = T.constant("block", [256, 512])


@T.prim_func
def scale(
    X: T.Tensor((N,), "float32", access="in"),
    Y: T.Tensor((N,), "float32", access="out"),
    alpha: T.float32,
):
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            Y[(bx * block) + i] = X[(bx * block) + i] * alpha
