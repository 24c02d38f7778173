// The statements of KernelIr that start, count and wait for asynchronous work of the Hopper family: wgmma, TMA, rings of mbarriers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "lowering/kernel_tables.h"

namespace tilert::kir {

// acc[m, n] = (zero ? 0 : acc[m, n]) + Σ_k a[m, k]·b[n, k] on the warpgroups of the role, asynchronously (PTX ISA "wgmma.mma_async"): operands may be read
// and acc written at any time until the WgmmaWait that retires the group it is committed to. Warpgroup g of the role takes rows block g % grid.m of M and
// block g / grid.m of N. acc: registers in WgmmaAccumulatorLayout(m, n, grid), or with its two dims swapped if `transposed` (acc[n, m]).
// a: shared, or registers in WgmmaOperandALayout(m, k, grid); b: shared. Shared operands are swizzled panels. follows: 0 = M (of b: N), 1 = K; an operand is
// K-major when its last subscript follows K. k is a multiple of the instruction's (32 bytes), n / grid.n a multiple of 8, at most 256; m / grid.m of 64.
struct Wgmma { BufferId acc = kNoId; TileAccess a, b; int64_t m = 0, n = 0, k = 0; WarpGrid grid; Expr zero; bool transposed = false; };
// Before the first Wgmma after its registers were touched. `touched`: those, but for accumulators that are cleared, so that the compiler has their
// values in place here, and moves none later. Accumulators that no fence names are the instructions' own.
struct WgmmaFence { std::vector<BufferId> touched = {}; };
struct WgmmaCommit {};  // closes a group: the Wgmma since the last commit
// Until at most `pending` groups of this warpgroup are unfinished. `retires`: the registers that may be used again and the shared tiles that are read no more.
struct WgmmaWait { int pending = 0; std::vector<Retired> retires; };

// Asynchronous box copies, issued by one thread (of a role that is not one_thread: its first). A tile of several panels takes one copy a panel, `box` being a
// panel wide; coords: the first element of the tile, one a tensor dim.
// Into the ring's current slot, counted by its full barrier. `multicast`: the n CTAs that differ along these axes only copy the same box to the same place; each
// loads an n-th of it, its panels or else its rows, in order of their ranks, for all of them, and `box` is that part (of one panel). coords: of the whole tile.
struct TmaLoad { MapId map = 0; BufferId dst = kNoId; RingId ring = 0; std::vector<Expr> coords; ClusterAxes multicast = 0; BarrierId barrier = kNoId; Expr index, version; };
enum class StoreOp : uint8_t { kStore, kAdd };
struct TmaStore { MapId map = 0; BufferId src = kNoId; Expr version; std::vector<Expr> coords; StoreOp op = StoreOp::kStore; };
struct StoreCommit {};
// The issuing thread waits until at most `pending` groups of its stores still read shared memory (`read`), or are not yet complete.
struct StoreWait { int pending = 0; bool read = true; std::vector<Retired> retires; };

struct ProxyFence {};  // this thread's writes to shared memory become visible to the async proxy (TMA stores, wgmma); then a BarSync for other threads

// Ring positions. Acquire: waits for the current slot, the filling side (`fill`) until it is empty, else until it is full. ExpectTx: arrives at full
// and expects `bytes`. Release: one arrival of each warp at empty of the slot `behind` positions ago. Advance: moves on by `count` ≥ 0 positions.
struct Acquire { RingId ring = 0; bool fill = false; };
struct ExpectTx { RingId ring = 0; int64_t bytes = 0; };
struct Release { RingId ring = 0; int behind = 0; };
struct Advance { RingId ring = 0; Expr count; };
// The order token of a role with two instances: instance 0 has it first; OrderWait blocks until this instance has it, OrderPass gives it to the other.
struct OrderWait {};
struct OrderPass {};
// A barrier across CTAs; what threads wrote before it, to shared memory of any CTA too, the others see after it (PTX ISA "barrier.cluster"). Outside Roles: of all
// warps of all CTAs of the cluster. In a role: of its warps in the CTAs that work on the same block (they differ along the last axis of the cluster only).
struct ClusterSync {};

// Declared barriers (kir::Barrier). Arrive: once for each thread of the role (or block). Wait: until the phase of that parity is complete, which makes what its
// arrivals and copies brought visible. Expect: one thread announces bytes that are yet to come; it is no arrival. Complete: one thread says that bytes have come,
// which threads have copied; TmaLoads say so themselves. In an Elementwise of one point a thread, without replicas, Arrive, Wait and Expect are of each thread that
// comes to them: they tell what that thread has done, and it what it waited for, and no other lane of its warp.
struct MbarArrive { BarrierId barrier = 0; Expr index; };
struct MbarWait { BarrierId barrier = 0; Expr index, parity; };
struct MbarExpect { BarrierId barrier = 0; Expr index, bytes; };
struct MbarComplete { BarrierId barrier = 0; Expr index; int64_t bytes = 0; };

}  // namespace tilert::kir
