// The simulator: runs a KernelIr on the CPU as a GPU would, and looks for what a GPU would not tell.
//
// Blocks run one after another in random order (in their own where they share tiles: one waits for those before it only); the warps of a block (of all its roles) are interleaved at random, statement
// by statement, and asynchronous work (cp.async, TMA, wgmma) happens at random moments in between, from a seed that an error
// names, so that it can be replayed. Every thread has its own registers, laid out as the kernel says; shared memory is one
// byte array. Reported, each with statement, thread and coordinates:
//   - races in shared memory (happens-before by BarSync, mbarriers and the order token: also between lanes of one warp) and
//     in global memory, within and between blocks;
//   - asynchronous work whose data is touched before the wait that covers it, waits whose `retires` is not true, work nobody
//     waits for;
//   - writes that the async proxy (TMA stores, wgmma) reads without a ProxyFence of their thread; accumulators and A
//     registers touched while a wgmma may use them, or used by one without a WgmmaFence since they were touched;
//   - arrivals, bytes and parities of mbarriers as the hardware counts them; deadlocks, with who waits for what;
//   - barriers that not every warp reaches, or reaches at another statement or iteration;
//   - values that were never written reaching arithmetic or global memory (registers and shared memory begin unwritten);
//   - elements that the executing thread does not hold, layouts and alignments that are not those of the instruction (mma,
//     ldmatrix, stmatrix, wgmma, TMA), points of one Elementwise that depend on each other;
//   - `inside` flags that are not true, versions and register elements that do not exist, vectors that are not aligned or not
//     contiguous; tiles of a persistent kernel that are visited twice or never, sums of shared tiles that are given or taken twice or
//     never.
// Its word is "checked", not "proved": it sees the interleavings, trip counts and shapes it is given. Happens-before does not
// depend on the interleaving, so a missing barrier is found by any of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/numeric.h"
#include "lowering/kernel_ir.h"

namespace tilert {

struct SimArgs {
  std::vector<int64_t> dims;                  // one per Kernel::dims
  std::vector<Value> scalars;                 // one per Kernel::scalars, of its type
  std::vector<absl::Span<uint8_t>> tensors;   // by Buffer::program_buffer; others are left empty. Borrowed.
};

struct SimOptions {
  uint64_t seed = 1;
  // Whole runs from the same data; their results must agree bit by bit unless float atomics are used.
  int interleavings = 2;
  // Blocks to launch of a kernel that walks over its tiles; 0: any number up to that of the tiles, chosen by the seed.
  int64_t blocks = 0;
  int64_t max_steps = 200000000;  // statements of warps, all interleavings together
  double max_seconds = 120;
};

// What was run and checked.
struct SimReport {
  int64_t blocks = 0;            // of all interleavings
  int64_t statements = 0;        // executed by a warp
  int64_t barriers = 0;          // completed, per block
  int64_t async_copies = 0;      // cp.async vectors
  int64_t tma_loads = 0, tma_stores = 0;  // boxes of all panels of a tile
  int64_t wgmmas = 0;            // statements, per warp
  int64_t shared_accesses = 0;   // elements
  int64_t global_accesses = 0;   // elements
  std::string ToString() const;
};

// Runs `kernel` and leaves its results in args.tensors (of the last interleaving). InvalidArgument: arguments that do not fit the
// kernel. Internal: a fault of the kernel. FailedPrecondition: an assertion of the program. ResourceExhausted: over max_steps or
// max_seconds.
absl::StatusOr<SimReport> Simulate(const kir::Kernel& kernel, const SimArgs& args, const SimOptions& options = {});

// "file:line:column" of the source statement that a failure of Simulate is about; empty where it is about none.
std::string SimulatedPlace(const absl::Status& failure);

}  // namespace tilert
