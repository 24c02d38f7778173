// Kernels of the Hopper family written out by hand: what the planner makes of a gemm and of an attention, for tests of the
// emitter, the verifier and the simulator.
#pragma once

#include "lowering/kernel_ir.h"

namespace tilert {

// C[M, N] = A[M, K] · B, B being [N, K], or [K, N] if `b_mn_major`; dims M, N, K, buffers A, B, C in that order. K may be
// anything, 0 too. A producer warp(group) fills a ring of A and B tiles by TMA; the consumers split a tile along M, or with
// `ping_pong` take turns with whole tiles.
struct HopperGemm {
  DType dtype = DType::kBFloat16;  // of A and B
  DType c_dtype = DType::kBFloat16;
  DType acc_dtype = DType::kFloat32;
  int64_t bm = 128, bn = 256, bk = 64;
  int stages = 4;
  int warpgroups = 2;      // consumers
  bool ping_pong = false;  // with warpgroups == 2
  bool b_mn_major = false;
  bool staged = true;       // stmatrix and TMA stores of 64 columns (16-bit C); else each thread stores its elements
  bool a_mn_major = false;  // A is [K, M]
  bool split_n = false;     // the consumers split a tile along N; not staged
  bool transposed = false;  // C is [N, M]; staged, bm == 64
  bool add = false;         // float32 C, to which TMA adds chunks of 32 columns; not staged
};
kir::Kernel HopperGemmKernel(const HopperGemm& gemm);

// Where the statements of the kernel are, for tests that damage it.
kir::Block& ConsumerBody(kir::Kernel& kernel);  // role 0
kir::Block& ProducerBody(kir::Kernel& kernel);  // role 1
// The body of the first For in a ForTiles of a role's body.
kir::Block& MainLoop(kir::Block& role_body);

// O[64, 64] = Σ over blocks of 64 keys of 2^(Q·Kᵀ) · V for one block of 64 queries a tile: Q [M, 64], K and V [N, 64] in
// bfloat16, O [M, 64] in float32, N a multiple of 64. The products of the first gemm become the A operand of the second one in
// registers; V is MN-major.
kir::Kernel HopperAttentionKernel(int stages = 2);

}  // namespace tilert
