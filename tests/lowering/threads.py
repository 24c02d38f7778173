"""Programs that say themselves which thread does what: written as TileLang's own examples are."""
import tilelang
import tilelang.language as T


# --- code by thread


@tilelang.jit
def row_sums(X, threads=64):
    """Sums of rows: each thread a part, then lanes by shuffles, then warps through shared memory."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), "float32")
    Y = T.empty((M,), "float32")
    with T.Kernel(M, threads=threads) as row:
        tx = T.get_thread_binding()
        parts = T.alloc_shared((threads // 32,), "float32")
        sum = T.alloc_var("float32")
        sum = 0
        for i in T.serial(T.ceildiv(N, threads)):
            sum += X[row, i * threads + tx]
        for i in T.unroll(5):
            sum += T.shfl_xor(sum, 1 << i)
        if tx % 32 == 0:
            parts[tx // 32] = sum
        if tx == 0:
            for w in T.serial(1, threads // 32):
                parts[0] += parts[w]
            Y[row] = parts[0]
    return Y


@tilelang.jit
def gemv(A, B, BLOCK_N=4, reduce_threads=32):
    """A thread a column and part of K, as in TileLang's examples/gemv; the parts added by tvm_thread_allreduce."""
    N, K = T.const("N, K")
    TILE_K = 8
    BLOCK_K = reduce_threads * TILE_K
    A: T.Tensor((K,), "float16")
    B: T.Tensor((N, K), "float16")
    C = T.empty((N,), "float16")
    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=(BLOCK_N, reduce_threads)) as bn:
        tn = T.get_thread_binding(0)
        tk = T.get_thread_binding(1)
        A_local = T.alloc_local((TILE_K,), "float16")
        B_local = T.alloc_local((TILE_K,), "float16")
        C_accum = T.alloc_local((1,), "float32")
        T.clear(C_accum)
        for bk in T.serial(T.ceildiv(K, BLOCK_K)):
            for k in T.vectorized(TILE_K):
                A_local[k] = A[bk * BLOCK_K + tk * TILE_K + k]
                B_local[k] = B[bn * BLOCK_N + tn, bk * BLOCK_K + tk * TILE_K + k]
            for k in T.serial(TILE_K):
                C_accum[0] += A_local[k].astype("float32") * B_local[k].astype("float32")
        C_reduced = T.alloc_local((1,), "float32")
        with T.attr(T.comm_reducer(lambda x, y: x + y, [T.cast(0, "float32")]), "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
            T.evaluate(T.tvm_thread_allreduce(T.uint32(1), C_accum[0], True, C_reduced[0], tk, dtype="handle"))
        C[bn * BLOCK_N + tn] = C_reduced[0]
    return C


@tilelang.jit
def butterfly(A, n=256, threads=32):
    """The Hadamard transform of rows, lanes exchanging by tvm_warp_shuffle (examples/hadamard_transform)."""
    b = T.const("b")
    A: T.Tensor((b, n), "float32")
    B = T.empty((b, n), "float32")
    elements = n // threads
    with T.Kernel(b, threads=threads) as bx:
        local = T.alloc_local((elements,), "float32")
        other = T.alloc_local((elements,), "float32")
        tx = T.get_thread_binding(0)
        for i in T.vectorized(elements):
            local[i] = A[bx, tx * elements + i]
        for i in T.serial(3):
            for j in T.serial(elements // (2 << i)):
                for k in T.serial(1 << i):
                    at = j * (2 << i) + k
                    local[at] = local[at] + local[at + (1 << i)]
                    local[at + (1 << i)] = local[at] - 2 * local[at + (1 << i)]
        for i in T.serial(5):
            sign = (tx >> i) & 1
            for j in T.serial(elements):
                other[j] = T.tvm_warp_shuffle(0xFFFFFFFF, local[j], (tx ^ (1 << i)) % 32, 32, 32)
                local[j] = T.if_then_else(sign == 0, local[j] + other[j], other[j] - local[j])
        for i in T.vectorized(elements):
            B[bx, tx * elements + i] = local[i]
    return B


@tilelang.jit
def ranks(X, threads=96):
    """How many elements of a block are smaller: a suffix sum over a histogram by some of the warps, T.sync_threads(id, count) among them."""
    N = T.const("N")
    X: T.Tensor((N,), "int32")
    Y = T.empty((N,), "int32")
    with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
        tx = T.get_thread_binding()
        histogram = T.alloc_shared((65,), "int32")
        value = T.alloc_var("int32")
        more = T.alloc_var("int32")
        T.fill(histogram, 0)
        value = X[bx * threads + tx]
        if bx * threads + tx < N:
            T.atomic_add(histogram[value & 63], 1)
        T.sync_threads()
        if tx < 64:
            for i in T.serial(6):
                offset = 1 << i
                T.sync_threads(3, 64)
                if tx < 64 - offset:
                    more = histogram[tx] + histogram[tx + offset]
                T.sync_threads(3, 64)
                if tx < 64 - offset:
                    histogram[tx] = more
        T.sync_threads()
        Y[bx * threads + tx] = histogram[(value & 63) + 1]
    return Y


# --- roles


@tilelang.jit
def matmul_two_roles(A, B, block_M=64, block_N=64, block_K=32, dtype="float16"):
    """One warpgroup copies, the other multiplies (examples/warp_specialize/…copy_0_gemm_1)."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        data_is_ready = T.alloc_barrier(arrive_count=128)
        compute_is_done = T.alloc_barrier(arrive_count=128)
        with T.ws(1):
            T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=0):
            with T.ws(0):
                T.barrier_wait(compute_is_done, (ko + 1) % 2)
                T.tma_copy(A[by * block_M, ko * block_K], A_shared, barrier=data_is_ready)
                T.tma_copy(B[ko * block_K, bx * block_N], B_shared, barrier=data_is_ready)
                T.barrier_arrive(data_is_ready)
            with T.ws(1):
                T.barrier_wait(data_is_ready, ko % 2)
                T.gemm(A_shared, B_shared, C_local)
                T.barrier_arrive(compute_is_done)
        with T.ws(1):
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def matmul_two_stages(A, B, block_M=64, block_N=64, block_K=32, dtype="float16"):
    """The same with two tiles of each in turn (examples/warp_specialize/…barrierpipe_stage2)."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    num_stages = 2
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        A_shared = T.alloc_shared((num_stages, block_M, block_K), dtype)
        B_shared = T.alloc_shared((num_stages, block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        mbars = T.alloc_barrier([128, 128] * num_stages)
        with T.ws(0):
            T.clear(C_local)
        for ko in range(T.ceildiv(K, block_K)):
            with T.ws(1):
                T.mbarrier_wait_parity(mbarrier=mbars[ko % num_stages + num_stages], parity=((ko // num_stages) % num_stages) ^ 1)
                T.tma_copy(A[by * block_M : (by + 1) * block_M, ko * block_K : (ko + 1) * block_K], A_shared[ko % num_stages, :, :], barrier=mbars[ko % num_stages])
                T.tma_copy(B[ko * block_K : (ko + 1) * block_K, bx * block_N : (bx + 1) * block_N], B_shared[ko % num_stages, :, :], barrier=mbars[ko % num_stages])
                T.mbarrier_arrive(mbarrier=mbars[ko % num_stages])
            with T.ws(0):
                T.mbarrier_wait_parity(mbarrier=mbars[ko % num_stages], parity=(ko // num_stages) % num_stages)
                T.gemm(A_shared[ko % num_stages, :, :], B_shared[ko % num_stages, :, :], C_local)
                T.mbarrier_arrive(mbarrier=mbars[ko % num_stages + num_stages])
        with T.ws(0):
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def matmul_in_flight(A, B, block_M=64, block_N=64, block_K=64, dtype="float16"):
    """if tx < 128 … else: with products that are waited for by hand."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        full = T.alloc_barrier(arrive_count=128)
        empty = T.alloc_barrier(arrive_count=128)
        tx = T.get_thread_binding()
        if tx < 128:
            T.set_max_nreg(240, 1)
            T.clear(C_local)
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.barrier_wait(full, ko % 2)
                T.wgmma_gemm(A_shared, B_shared, C_local)
                T.wait_wgmma(0)
                T.barrier_arrive(empty)
            T.copy(C_local, C[by * block_M, bx * block_N])
        else:
            T.set_max_nreg(24, 0)
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.barrier_wait(empty, (ko + 1) % 2)
                T.tma_copy(A[by * block_M, ko * block_K], A_shared, barrier=full)
                T.tma_copy(B[ko * block_K, bx * block_N], B_shared, barrier=full)
                T.barrier_arrive(full)
    return C


@tilelang.jit
def matmul_gathered(A, Rows, B, block_M=64, block_N=64, block_K=64, dtype="float16"):
    """Threads of one role gather rows of A element by element (examples/deepseek_mla/…decode_ws), warpgroups of another multiply."""
    M, N, K, R = T.const("M, N, K, R")
    A: T.Tensor((R, K), dtype)
    Rows: T.Tensor((M,), "int32")
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        A_shared = T.alloc_shared((2, block_M, block_K), dtype)
        B_shared = T.alloc_shared((2, block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        row = T.alloc_var("int32")
        full = T.alloc_barrier(arrive_count=[128] * 2)
        empty = T.alloc_barrier(arrive_count=[128] * 2)
        tx = T.thread_binding(0, 256, thread="threadIdx.x")
        if tx < 128:
            T.clear(C_local)
            for k in T.serial(T.ceildiv(T.ceildiv(K, block_K), 2)):
                for stage in T.unroll(2):
                    T.barrier_wait(full[stage], k & 1)
                    T.wgmma_gemm(A_shared[stage, :, :], B_shared[stage, :, :], C_local)
                    T.wait_wgmma(0)
                    T.barrier_arrive(empty[stage])
            T.copy(C_local, C[by * block_M, bx * block_N])
        elif tx >= 128:
            for k in T.serial(T.ceildiv(T.ceildiv(K, block_K), 2)):
                for stage in T.unroll(2):
                    T.barrier_wait(empty[stage], (k & 1) ^ 1)
                    for r in T.serial(block_M // 16):
                        row = Rows[by * block_M + r * 16 + (tx - 128) // 8]
                        for u in T.serial(block_K // 64):
                            T.ptx_cp_async(
                                T.access_ptr(A_shared[stage, r * 16 + (tx - 128) // 8, 64 * u + (tx - 128) % 8 * 8], "w", 8),
                                T.access_ptr(A[row, (k * 2 + stage) * block_K + 64 * u + (tx - 128) % 8 * 8], "r", 8),
                                8,
                            )
                    T.tma_copy(B[(k * 2 + stage) * block_K, bx * block_N], B_shared[stage, :, :], barrier=full[stage])
                    T.cp_async_barrier_noinc(full[stage])
    return C


@tilelang.jit
def matmul_three_roles(A, B, block_M=64, block_N=128, block_K=64, dtype="float16"):
    """One warpgroup copies for two that multiply, each its half of the columns."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    half = block_N // 2
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=384) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared_0 = T.alloc_shared((block_K, half), dtype)
        B_shared_1 = T.alloc_shared((block_K, half), dtype)
        C_local_0 = T.alloc_fragment((block_M, half), "float32")
        C_local_1 = T.alloc_fragment((block_M, half), "float32")
        full = T.alloc_barrier(arrive_count=128)
        empty = T.alloc_barrier(arrive_count=256)
        tx = T.get_thread_binding()
        if tx < 128:
            T.clear(C_local_0)
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.barrier_wait(full, ko % 2)
                T.gemm(A_shared, B_shared_0, C_local_0)
                T.barrier_arrive(empty)
            T.copy(C_local_0, C[by * block_M, bx * block_N])
        elif tx < 256:
            T.clear(C_local_1)
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.barrier_wait(full, ko % 2)
                T.gemm(A_shared, B_shared_1, C_local_1)
                T.barrier_arrive(empty)
            T.copy(C_local_1, C[by * block_M, bx * block_N + half])
        else:
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.barrier_wait(empty, (ko + 1) % 2)
                T.tma_copy(A[by * block_M, ko * block_K], A_shared, barrier=full)
                T.tma_copy(B[ko * block_K, bx * block_N], B_shared_0, barrier=full)
                T.tma_copy(B[ko * block_K, bx * block_N + half], B_shared_1, barrier=full)
                T.barrier_arrive(full)
    return C


@tilelang.jit
def matmul_halves(A, B, block_M=64, block_N=64, block_K=32, dtype="float16"):
    """A tile for all threads, then each warpgroup its half of the columns (examples/warp_specialize/…copy_gemm_0_1)."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    half = block_N // 2
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared_g0 = T.alloc_shared((block_K, half), dtype)
        B_shared_g1 = T.alloc_shared((block_K, half), dtype)
        C_local_g0 = T.alloc_fragment((block_M, half), "float32")
        C_local_g1 = T.alloc_fragment((block_M, half), "float32")
        with T.ws(1):
            T.clear(C_local_g1)
        with T.ws(0):
            T.clear(C_local_g0)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=0):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            with T.ws(1):
                T.copy(B[ko * block_K, bx * block_N], B_shared_g1)
                T.gemm(A_shared, B_shared_g1, C_local_g1)
            with T.ws(0):
                T.copy(B[ko * block_K, bx * block_N + half], B_shared_g0)
                T.gemm(A_shared, B_shared_g0, C_local_g0)
        with T.ws(1):
            T.copy(C_local_g1, C[by * block_M, bx * block_N])
        with T.ws(0):
            T.copy(C_local_g0, C[by * block_M, bx * block_N + half])
    return C


@tilelang.jit
def staged_copy(X, Y_rows=32, dtype="float32"):
    """Asynchronous copies in turn, waited for by hand."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    Y = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        one = T.alloc_shared((32, 64), dtype)
        two = T.alloc_shared((32, 64), dtype)
        for i in T.serial(T.ceildiv(M, 64)):
            T.async_copy(X[i * 64 : i * 64 + 32, bx * 64 : bx * 64 + 64], one)
            T.async_copy(X[i * 64 + 32 : i * 64 + 64, bx * 64 : bx * 64 + 64], two)
            T.ptx_wait_group(1)
            T.copy(one, Y[i * 64 : i * 64 + 32, bx * 64 : bx * 64 + 64])
            T.ptx_wait_group(0)
            T.copy(two, Y[i * 64 + 32 : i * 64 + 64, bx * 64 : bx * 64 + 64])
    return Y


@T.prim_func
def warp_arrives(A: T.Tensor((96,), "float32", access="in"), B: T.Tensor((96,), "float32", access="out")):
    """One warp reads what a copy by all brought, and arrives under a condition that the others don't meet."""
    with T.Kernel(1, threads=96) as bx:
        s = T.alloc_shared((96,), "float32")
        t = T.alloc_shared((32,), "float32")
        bar = T.alloc_barrier(32, shape=(1,))
        T.copy(A, s)
        with T.thread_region() as tx:
            if tx < 32:
                t[tx] = s[95 - tx]
                T.barrier_arrive(bar[0])
            else:
                T.barrier_wait(bar[0], 0)
                B[tx] = t[tx % 32] + s[tx]


@tilelang.jit
def thread_arrives(A, n=64):
    """A single thread arrives for all, which have met before."""
    A: T.Tensor((n,), "float32")
    B = T.empty((n,), "float32")
    with T.Kernel(1, threads=n) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((n,), "float32")
        bar = T.alloc_barrier(1)
        s[tx] = A[tx]
        T.sync_threads()
        if tx == 0:
            T.barrier_arrive(bar)
        T.barrier_wait(bar, 0)
        B[tx] = s[n - 1 - tx]
    return B


@T.prim_func
def lanes_arrive(A: T.Tensor((64,), "float32", access="in"), B: T.Tensor((64,), "float32", access="out")):
    """Five lanes of each warp tell of their element, each at a barrier of its own, of which all wait for all."""
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((10,), "float32")
        bar = T.alloc_barrier(1, shape=(10,))
        with T.thread_region() as tx:
            if tx % 32 < 5:
                s[(tx // 32) * 5 + tx % 32] = A[tx]
                T.barrier_arrive(bar[(tx // 32) * 5 + tx % 32])
            for i in T.serial(10):
                T.barrier_wait(bar[i], 0)
            B[tx] = s[tx % 10]


@T.prim_func
def rounds_of_arrivals(A: T.Tensor((40,), "float32", access="in"), B: T.Tensor((40,), "float32", access="out")):
    """Threads that are no whole warps: each in turn gives the next one a sum."""
    with T.Kernel(1, threads=40) as bx:
        s = T.alloc_shared((40,), "float32")
        bar = T.alloc_barrier(1, shape=(1,))
        met = T.alloc_barrier(40, shape=(1,))
        T.copy(A, s)
        T.barrier_arrive(met[0])
        with T.thread_region() as tx:
            T.barrier_wait(met[0], 0)
            for i in T.serial(1, 40):
                if tx == i - 1:
                    s[i] = s[i] + s[i - 1]
                    T.barrier_arrive(bar[0])
                T.barrier_wait(bar[0], (i - 1) % 2)
        T.copy(s, B)


@tilelang.jit
def matmul_elected(A, B, block_M=64, block_N=64, block_K=32, dtype="float16"):
    """One thread of each role arrives for all of it: behind copies, and behind products."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        tx = T.get_thread_binding()
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        data_is_ready = T.alloc_barrier(1)
        compute_is_done = T.alloc_barrier(1)
        with T.ws(1):
            T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=0):
            with T.ws(0):
                T.barrier_wait(compute_is_done, (ko + 1) % 2)
                T.tma_copy(A[by * block_M, ko * block_K], A_shared, barrier=data_is_ready)
                T.copy(B[ko * block_K, bx * block_N], B_shared, disable_tma=True)
                if tx == 0:
                    T.barrier_arrive(data_is_ready)
            with T.ws(1):
                T.barrier_wait(data_is_ready, ko % 2)
                T.gemm(A_shared, B_shared, C_local)
                if T.shuffle_elect(128):
                    T.barrier_arrive(compute_is_done)
        with T.ws(1):
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@T.prim_func
def threads_wait(A: T.Tensor((64,), "float32", access="in"), B: T.Tensor((64,), "float32", access="out")):
    """Single threads wait, each for another phase, in loops and under conditions of their own; then they tell all."""
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((8,), "float32")
        bar = T.alloc_barrier(1, shape=(8,))
        with T.thread_region() as tx:
            if tx < 8:
                s[tx] = A[tx]
                T.barrier_arrive(bar[tx])
            if tx % 9 == 1:
                for i in T.serial(tx // 9 + 1):
                    if i % 2 == 0:
                        T.barrier_wait(bar[i], 0)
                    else:
                        T.barrier_wait(bar[tx // 9 - (tx // 9 - i)], 0)
                B[tx] = s[tx // 9]
            else:
                B[tx] = A[tx]


@tilelang.jit
def one_waits_for_all(A, n=64, rounds=3):
    """One thread waits for a role's arrivals; the tile statements behind it are everybody's."""
    A: T.Tensor((rounds, n), "float32")
    B = T.empty((rounds, n), "float32")
    with T.Kernel(1, threads=128) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((n,), "float32")
        full = T.alloc_barrier(1)
        empty = T.alloc_barrier(64)
        for i in T.serial(rounds):
            if tx < 64:
                if tx == 5:
                    T.mbarrier_wait_parity(empty, (i + 1) % 2)
                T.copy(A[i, 0:n], s)
                if tx == 63:
                    T.mbarrier_arrive(full)
            else:
                if tx == 64:
                    T.mbarrier_wait_parity(full, i % 2)
                T.copy(s, B[i, 0:n])
                T.mbarrier_arrive(empty)
    return B


@tilelang.jit
def matmul_announced(A, B, block_M=64, block_N=64, block_K=32, stages=2, bytes=0, late=False, dtype="float16"):
    """One thread waits, arrives and announces the bytes of the copies behind it. `bytes`: so many too many; `late`: it announces them after the copies."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    tile_bytes = (block_M + block_N) * block_K * 2 + bytes
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        tx = T.get_thread_binding()
        A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
        B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        full = T.alloc_barrier([1] * stages)
        empty = T.alloc_barrier([1] * stages)
        with T.ws(1):
            T.clear(C_local)
        for ko in T.serial(T.ceildiv(K, block_K)):
            slot = ko % stages
            with T.ws(0):
                if tx == 0:
                    T.mbarrier_wait_parity(empty[slot], (ko // stages + 1) % 2)
                    if not late:
                        T.mbarrier_arrive_expect_tx(full[slot], tile_bytes)
                T.tma_copy(A[by * block_M, ko * block_K], A_shared[slot, :, :], barrier=full[slot])
                T.tma_copy(B[ko * block_K, bx * block_N], B_shared[slot, :, :], barrier=full[slot])
                if late:
                    if tx == 0:
                        T.mbarrier_arrive_expect_tx(full[slot], tile_bytes)
            with T.ws(1):
                T.mbarrier_wait_parity(full[slot], (ko // stages) % 2)
                T.gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                if T.shuffle_elect(128):
                    T.mbarrier_arrive(empty[slot])
        with T.ws(1):
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def matmul_announced_by_all(A, B, block_M=64, block_N=64, block_K=32, dtype="float16"):
    """Each thread of the role that copies announces its share, and arrives; one of the tiles is announced for a half only, where the other is not copied."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        tx = T.get_thread_binding()
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        full = T.alloc_barrier(128)
        empty = T.alloc_barrier(128)
        with T.ws(1):
            T.clear(C_local)
        with T.ws(0):
            T.clear(B_shared)
        for ko in T.serial(T.ceildiv(K, block_K)):
            with T.ws(0):
                T.mbarrier_wait_parity(empty, (ko + 1) % 2)
                if tx % 2 == 0:
                    T.mbarrier_expect_tx(full, block_M * block_K * 2 // 64)
                T.tma_copy(A[by * block_M, ko * block_K], A_shared, barrier=full)
                if ko % 2 == 0:
                    T.mbarrier_expect_tx(full, block_K * block_N * 2)
                    T.tma_copy(B[ko * block_K, bx * block_N], B_shared, barrier=full)
                T.mbarrier_arrive(full)
            with T.ws(1):
                T.mbarrier_wait_parity(full, ko % 2)
                T.gemm(A_shared, B_shared, C_local)
                T.mbarrier_arrive(empty)
        with T.ws(1):
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@T.prim_func
def parts_of_threads(X: T.Tensor((6, 50), "float32"), Y: T.Tensor((6, 50), "float32")):
    # What a part of the threads does, in code by thread: all of it, however many they are.
    with T.Kernel(1, threads=96) as bx:
        tx = T.get_thread_binding()
        n = T.alloc_var("int32")
        n = 0
        if tx < 32:
            T.copy(X[0, 0:50], Y[0, 0:50])
        elif tx < 70:
            while n < 2:
                for j in T.Parallel(50):
                    Y[1 + n, j] = X[1 + n, j]
                n = n + 1
        else:
            T.copy(X[3:4, :], Y[3:4, :])
        if tx == 95:
            T.copy(X[4, :], Y[4, :])
        if (tx >= 3) and (tx <= 9):
            if tx > 5:
                T.copy(X[5, :], Y[5, :])
