"""Atomics that give the value before."""
import tilelang
import tilelang.language as T


@tilelang.jit
def tickets(A, N=200, threads=64):
    """Points that hold something take a number each: all numbers are taken, each once."""
    A: T.Tensor((N,), "int32")
    B = T.empty((N + 2,), "int32")
    with T.Kernel(1, threads=threads) as bx:
        taken = T.alloc_shared((1,), "int32")
        total = T.alloc_shared((1,), "int32")
        seen = T.alloc_shared((N + 2,), "int32")
        T.clear(taken)
        T.clear(total)
        T.clear(seen)
        for i in T.Parallel(N):
            if A[i] > 0:
                number = T.atomic_add(taken[0], 1, return_prev=True)
                seen[number] = 1
                T.atomic_add(total[0], number)
        seen[N] = taken[0]
        seen[N + 1] = total[0]
        T.copy(seen, B)
    return B


@tilelang.jit
def into_fragment(A, op="add", dtype="float32", N=48, threads=128):
    """The values before go to a fragment, of which several threads hold each element."""
    A: T.Tensor((N,), dtype)
    B = T.empty((2, N), dtype)
    with T.Kernel(1, threads=threads) as bx:
        memory = T.alloc_shared((N,), dtype)
        before = T.alloc_fragment((N,), dtype)
        for i in T.Parallel(N):
            memory[i] = A[N - 1 - i]
        T.clear(before)
        for i in T.Parallel(N):
            if i % 3 != 1:
                if op == "add":
                    before[i] = T.atomic_add(memory[i], A[i], return_prev=True)
                elif op == "max":
                    before[i] = T.atomic_max(memory[i], A[i], return_prev=True)
                else:
                    before[i] = T.atomic_min(memory[i], A[i], return_prev=True)
        T.copy(before, B[0, 0:N])
        T.copy(memory, B[1, 0:N])
    return B


@tilelang.jit
def of_the_block(A, N=64, threads=96):
    """Among tile statements the whole block has the value: as a subscript, a bound, and where a copy begins."""
    A: T.Tensor((4, N), "int32")
    B = T.empty((4, N), "int32")
    with T.Kernel(1, threads=threads) as bx:
        next_row = T.alloc_shared((1,), "int32")
        tile = T.alloc_shared((N,), "int32")
        T.clear(next_row)
        for k in T.serial(4):
            row = T.atomic_add(next_row[0], 1, return_prev=True)
            T.copy(A[row, 0:N], tile)
            for j in T.serial(row):
                for i in T.Parallel(N):
                    tile[i] += j
            T.copy(tile, B[3 - row, 0:N])
    return B


@tilelang.jit
def by_thread(A, threads=80):
    """Each thread for itself; outside of the memory there is nothing, and nothing before."""
    A: T.Tensor((threads,), "int32")
    B = T.empty((threads,), "int32")
    with T.Kernel(1, threads=threads) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((64,), "int32")
        if tx < 64:
            s[tx] = tx
        T.sync_threads()
        before = T.atomic_max(s[tx], A[tx], return_prev=True)
        T.sync_threads()
        if tx < 64:
            B[tx] = before * 1000 + s[tx]
        else:
            B[tx] = before
    return B


@tilelang.jit
def in_memory(A, N=100, threads=64):
    """Of a tensor, with an order and a scope, by several blocks."""
    A: T.Tensor((3, N), "int32")
    B = T.empty((3, N), "int32")
    with T.Kernel(3, threads=threads) as bx:
        for i in T.Parallel(N):
            B[bx, i] = 7
        for i in T.Parallel(N):
            before = T.atomic_add(B[bx, i], A[bx, i], memory_order="acq_rel", return_prev=True)
            T.atomic_add(B[bx, i], before)
    return B


@tilelang.jit
def in_turn(A, N=100, threads=96):
    """One loop behind the other: what the second finds is all that the first has added."""
    A: T.Tensor((N,), "int32")
    B = T.empty((2, N), "int32")
    with T.Kernel(1, threads=threads) as bx:
        for i in T.Parallel(N):
            B[0, i] = 7
        for i in T.Parallel(N):
            T.atomic_add(B[0, i], A[i])
        for i in T.Parallel(N):
            B[1, i] = T.atomic_add(B[0, N - 1 - i], 1, return_prev=True)
    return B
