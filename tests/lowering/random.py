"""Random numbers: cuRAND's Philox4x32-10."""
import tilelang
import tilelang.language as T


@tilelang.jit
def one_thread(M=512, seed=42, first=0):
    """As in TileLang's examples/rand."""
    A = T.empty((M,), "uint32")
    with T.Kernel(T.ceildiv(M, 128), threads=1) as bx:
        tx = T.get_thread_binding()
        T.rng_init(seed, 0, bx * 128 + tx * 128 + first)
        for i, j in T.Parallel(1, 128):
            idx = bx * 128 + j
            if idx < M:
                A[idx] = T.rng_rand()
    return A


@tilelang.jit
def sequences(S, threads=64, blocks=3, count=6):
    """Each thread has a sequence of its own; the seed, and where to begin, are known at launch only."""
    S: T.Tensor((2,), "int64")
    A = T.empty((blocks, threads, count), "uint32")
    with T.Kernel(blocks, threads=threads) as bx:
        tx = T.get_thread_binding()
        T.rng_init(S[0], off=S[1])
        for i in T.serial(count):
            A[bx, tx, i] = T.rng_rand()
    return A


@tilelang.jit
def floats(count=8, seed=1):
    A = T.empty((32, 2 * count), "float64")
    with T.Kernel(1, threads=32) as bx:
        tx = T.get_thread_binding()
        if bx < 1:
            T.rng_init(seed, tx, generator="curandStatePhilox4_32_10_t")
            for i in T.serial(count):
                A[tx, 2 * i] = T.cast(T.rng_rand_float(), "float64")
                A[tx, 2 * i + 1] = T.rng_rand_float(bit=64, dist="uniform")
    return A


@tilelang.jit
def normals(count=5, seed=11):
    """In pairs, of both widths, and uniform ones between."""
    A = T.empty((32, 4 * count), "float64")
    with T.Kernel(1, threads=32) as bx:
        tx = T.get_thread_binding()
        T.rng_init(seed, tx)
        for i in T.serial(count):
            A[tx, 4 * i] = T.cast(T.rng_rand_float(dist="normal"), "float64")
            A[tx, 4 * i + 1] = T.rng_rand_float(bit=64, dist="normal")
            if i % 2 == tx % 2:
                A[tx, 4 * i + 2] = T.cast(T.rng_rand_float(dist="normal"), "float64")
            else:
                A[tx, 4 * i + 2] = 0.0
            A[tx, 4 * i + 3] = T.rng_rand_float(bit=64)
