import tilelang.language as T

N = T.dynamic("N")


@T.prim_func
def every_statement(
    X: T.Tensor((N,), "float32", access="in"),
    Y: T.Tensor((N,), "float32", access="inout"),
    idx: T.Tensor((N,), "int32", access="in"),
    total: T.Tensor((), "float32", access="inout"),
):
    T.fast_math()
    partial = T.workspace((N, 2, 8), "float32", zeroed=True)
    with T.Kernel(T.ceildiv(N, 32), 1, 1, threads=64, name="first", cooperative=True) as (bx, by, bz):
        f = T.alloc_fragment((32, 16), "float32")
        g = T.alloc_fragment((32, 16), "int32")
        T.fill(f, 1.5)
        T.fill(g, 3)
        rows = T.alloc_fragment((32,), "float32")
        bits = T.alloc_fragment((16,), "int32")
        T.reduce_sum(f, rows, dim=1)
        T.reduce_max(f, rows, dim=1)
        T.reduce_min(f, rows, dim=1)
        T.reduce_abssum(f, rows, dim=1)
        T.reduce_absmax(f, rows, dim=1)
        T.reduce_bitand(g, bits, dim=0)
        T.reduce_bitor(g, bits, dim=0, clear=False)
        T.reduce_bitxor(g, bits, dim=0)
        T.reduce_max(f, rows, dim=1, clear=False, nan_propagate=False)
        T.cumsum(f, f, dim=1)
        T.cumsum(f[0:32, 0:8], f[0:32, 8:16], dim=0, reverse=True)
        count = T.alloc_var("int32")
        count = 0
        for i in T.serial(1, 8):
            count = count + T.cast(i, "int32")
        for i in T.unroll(0, 8, 2):
            count = count + T.cast(i, "int32")
        for i in T.vectorized(8):
            count = count + T.cast(i, "int32")
        for i in T.Persistent(8):
            count = count + T.cast(i, "int32")
        tile = T.alloc_shared((32,), "float32")
        for k in T.Pipelined(T.ceildiv(N, 32), num_stages=2, order=[0, 1], stage=[0, 1]):
            T.copy(X[k * 32:(k * 32) + 32], tile)
            T.copy(tile, Y[k * 32:(k * 32) + 32])
        while count > 0:
            count = count - 1
            if count == 5:
                continue
            elif count == 3:
                break
        for i in T.Parallel(32, coalesced_width=4):
            at = T.let((((bx * 32) + i) + by) + bz)
            Y[at] = X[at] + 2.5
            Y[at] = X[at] - 2.5
            Y[at] = X[at] * 2.5
            Y[at] = X[at] / 2.5
            Y[at] = T.min(X[at], 2.5)
            Y[at] = T.max(X[at], 2.5)
            Y[at] = T.pow(X[at], 2.5)
            Y[at] = idx[at] // 3
            Y[at] = -7 // idx[at]
            Y[at] = idx[at] % 3
            Y[at] = -7 % idx[at]
            Y[at] = idx[at] & 3
            Y[at] = -7 & idx[at]
            Y[at] = idx[at] | 3
            Y[at] = -7 | idx[at]
            Y[at] = idx[at] ^ 3
            Y[at] = -7 ^ idx[at]
            Y[at] = idx[at] << 3
            Y[at] = T.int32(-7) << idx[at]
            Y[at] = idx[at] >> 3
            Y[at] = T.int32(-7) >> idx[at]
            Y[at] = T.if_then_else(X[at] < 0.1, X[at], -1.0)
            Y[at] = T.if_then_else(X[at] <= 0.1, X[at], -1.0)
            Y[at] = T.if_then_else(X[at] > 0.1, X[at], -1.0)
            Y[at] = T.if_then_else(X[at] >= 0.1, X[at], -1.0)
            Y[at] = T.if_then_else(X[at] == 0.1, X[at], -1.0)
            Y[at] = T.if_then_else(X[at] != 0.1, X[at], -1.0)
            Y[at] = T.if_then_else((idx[at] > 1) and ((idx[at] < 9) or (not (idx[at] == 4))), T.float32(-0.0), T.float32(1e+30))
            Y[at] = -X[at]
            Y[at] = T.abs(X[at])
            Y[at] = T.exp(X[at])
            Y[at] = T.exp2(X[at])
            Y[at] = T.log(X[at])
            Y[at] = T.log2(X[at])
            Y[at] = T.log1p(X[at])
            Y[at] = T.sin(X[at])
            Y[at] = T.cos(X[at])
            Y[at] = T.tanh(X[at])
            Y[at] = T.sigmoid(X[at])
            Y[at] = T.erf(X[at])
            Y[at] = T.sqrt(X[at])
            Y[at] = T.rsqrt(X[at])
            Y[at] = T.floor(X[at])
            Y[at] = T.ceil(X[at])
            Y[at] = T.round(X[at])
            Y[at] = T.trunc(X[at])
            Y[at] = ~idx[at]
            Y[at] = T.popcount(idx[at])
            Y[at] = T.if_then_else(T.isnan(X[at]) or T.isinf(X[at]), T.float32("nan"), T.float32("-inf"))
            Y[at] = T.fma(X[at], X[at], 1.0)
            Y[at] = T.cast(T.reinterpret(X[at], "uint32"), "uint64") + T.uint64(18446744073709551615)
            Y[T.cast(idx[at], "index")] = X[at]
            T.atomic_add(total[()], X[at])
            T.atomic_max(Y[at], X[at], memory_order="acq_rel", scope="system")
        s = T.alloc_shared((2, 8), "float32")
        T.annotate_layout({s: T.make_row_major_layout(s)})
        T.annotate_safe_value({s: 1.0})
        T.fill(s, 1.0)
        T.atomic_min(partial[bx, 0:2, 0:8], s)
        T.copy(X[bx * 32:(bx * 32) + 8], s[1, 0:8], fill=-1.0, coalesced_width=2, disable_tma=True)
    with T.Kernel(1, threads=32) as bx:
        T.disable_warp_specialized()
        T.use_swizzle(4, order="col")
        T.print("total = {} \"quoted\"\n\\ {{\x01\xff}}", total[()])
        T.device_assert(N > 0, "N must be positive")
        t = T.alloc_fragment((16, 16), "float16")
        u = T.alloc_fragment((16, 16), "float16")
        acc = T.alloc_fragment((16, 16), "float32")
        T.fill(t, 0.1)
        T.fill(u, T.cast(T.int8(2), "float16"))
        T.gemm(t, u, acc, transpose_A=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
