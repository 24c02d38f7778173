"""Triton kernels of the jobs that scripts/peers compares, for when it is given none: Triton reads their text from this file."""
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, count, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = at < count
    tl.store(z_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + depth
        a = tl.load(a_ptr + row[:, None] * stride_am + k[None, :] * stride_ak, mask=(row[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + column[None, :] * stride_bn, mask=(k[:, None] < K) & (column[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c_ptr + row[:, None] * stride_cm + column[None, :] * stride_cn, total, mask=inside)
