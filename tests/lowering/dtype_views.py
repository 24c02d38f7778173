# Views of another dtype: the same bits.
import tilelang
import tilelang.language as T


# A shared tile of 16 bits holds floats of 32 bits for a while, half as many rows at a time.
@T.prim_func
def reuse(A: T.Tensor((16, 32), "bfloat16"), C: T.Tensor((16, 32), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tile = T.alloc_shared((16, 32), "bfloat16")
        floats = T.view(tile, (8, 32), "float32")
        kept = T.alloc_fragment((16, 32), "float32")
        T.copy(A, tile)
        T.copy(tile, kept)
        for half in T.serial(2):
            for i, j in T.Parallel(8, 32):
                floats[i, j] = kept[half * 8 + i, j] * 3.0 + 0.1
            for i, j in T.Parallel(8, 32):
                floats[i, j] = floats[i, j] - 1.0
            T.copy(floats, C[half * 8, 0])


# Bytes and halves of numbers; the default shape; a view of a view.
@T.prim_func
def parts(A: T.Tensor((8, 4), "int32"), C: T.Tensor((8, 28), "int32")):
    with T.Kernel(1, threads=64) as bx:
        tile = T.alloc_shared((8, 4), "int32")
        T.copy(A, tile)
        halves = T.view(tile, (8, 8), "int16")
        flat = T.reshape(halves, (64,))
        bits = T.view(tile, dtype="float32")
        for i, j in T.Parallel(8, 4):
            C[i, j] = T.reinterpret(bits[i, j], "int32")
        for i, j in T.Parallel(8, 16):
            C[i, 4 + j] = T.cast(T.view(tile, dtype="uint8")[i, j], "int32")
        for i, j in T.Parallel(8, 8):
            C[i, 20 + j] = T.cast(halves[i, j], "int32") + T.cast(flat[i * 8 + j], "int32")


# A gemm on a view works on a copy of it.
@T.prim_func
def operand(A: T.Tensor((32, 32), "uint16"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, threads=128) as bx:
        tile = T.alloc_shared((32, 32), "uint16")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A, tile)
        T.clear(c)
        T.gemm(T.view(tile, dtype="float16"), T.view(tile, dtype="float16"), c, transpose_B=True)
        T.copy(c, C)
