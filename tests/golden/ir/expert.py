import tilelang.language as T

N = T.dynamic("N")


@T.prim_func
def expert(
    X: T.Tensor((N, 64), "float16", access="in"),
    Y: T.Tensor((N, 64), "float16", access="out"),
):
    with T.Kernel(T.ceildiv(N, 64), threads=256) as bx:
        tile = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_shared((256,), "float32")
        full = T.alloc_barrier(128, shape=(2,))
        with T.roles():
            with T.role(0, 128):
                T.mbarrier_expect_tx(full[0], 8192)
                T.async_copy(X[bx * 64:(bx * 64) + 64, 0:64], tile, barrier=full)
                T.barrier_arrive(full[0])
            with T.role(128, 256):
                T.barrier_wait(full[0], 0)
                T.copy(tile, Y[bx * 64:(bx * 64) + 64, 0:64])
        acc = T.alloc_fragment((64, 64), "float32")
        T.wgmma_gemm(tile, tile, acc, transpose_B=True, clear_accum=True)
        T.wait_wgmma(0)
        T.async_copy(X[bx * 64:(bx * 64) + 64, 0:64], tile)
        T.async_wait(1)
        T.async_wait(0)
        with T.thread_region() as tx:
            own = T.alloc_local((4,), "float32")
            own[0] = T.cast(tile[tx % 64, 0], "float32")
            sums[tx] = own[0]
            T.sync_threads()
            if tx == 0:
                Y[bx * 64, 0] = sums[1] + sums[255 - tx]
