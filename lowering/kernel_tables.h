// What the statements of a KernelIr refer to by number: buffers, variables, rings, tensor maps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "lowering/layout.h"

namespace tilert::kir {

enum class Space : uint8_t { kInvalid, kGlobal, kShared, kRegister };

struct Buffer {
  std::string name;
  DType dtype = DType::kInvalid;
  Space space = Space::kInvalid;
  // kGlobal: a pointer argument of the kernel.
  BufferId program_buffer = kNoId;
  std::vector<Expr> shape, strides;  // elements
  bool written = false;              // else `const … __restrict__`
  uint32_t alignment = 1;            // bytes, of the pointer and of every stride but the last (which is then 1)
  // Conditions over dims under which its reads ask to be the first, or the last, to leave the L2 cache (PTX ISA "cache eviction priority"). None: never.
  Expr evict_first, evict_last;
  // kShared: byte offset of version 0 in the dynamic shared memory, a multiple of 128; versions lie shared.bytes() rounded up to 128 apart.
  SharedLayout shared;
  int64_t versions = 1;
  int64_t offset = -1;
  bool by_warpgroup = false;         // each warpgroup touches its own share of the rows only: its own barriers suffice
  // kRegister: registers of each thread, layout.regs() elements. Rank 0: one scalar a thread (a mutable variable).
  FragmentLayout layout;
};

struct Var {
  std::string name;
  DType dtype = DType::kIndex;
};

// A ring of `slots` versions of shared tiles, filled by TMA and emptied by the warps that compute. Each slot has two mbarriers (PTX ISA "mbarrier"):
// `full`, whose phase one arrive.expect_tx of the filling thread and the bytes of its copies complete, and `empty`, whose phase one arrival of
// each consuming warp completes. Each role (instance) walks the ring with a position of its own, slot and phase parity, that starts at slot 0,
// parity 0 and moves by Advance only; the parity flips whenever the slot wraps to 0.
using RingId = uint32_t;
inline constexpr int kBarrierBytes = 8;  // of an mbarrier in shared memory
// Axes of Kernel::cluster, axis d as bit d. CTAs of a cluster that differ along the axes of a set only share what is multicast along it.
using ClusterAxes = uint32_t;
struct Ring {
  std::string name;
  int slots = 1;
  int consumers = 1;              // warps that Release a slot
  std::vector<BufferId> buffers;  // shared, versions == slots; written by TmaLoad of this ring only, read between Acquire and Release
  VarId slot = kNoId;             // the position's slot, for version subscripts; changed by Advance
  int64_t offset = -1;            // bytes into the dynamic shared memory: full[slots], then empty[slots], 8 bytes each
  // The sets of axes along which copies of this ring are multicast, each once. A slot is then released to every CTA that fills a part of it, `empty` counts the
  // warps of all CTAs that this one fills for, and all CTAs concerned walk the ring in step.
  std::vector<ClusterAxes> multicasts = {};
};

// Barriers that the program declared: an array of mbarriers, of each of which `arrivals` arrivals, and all bytes announced having come, complete a phase.
using BarrierId = uint32_t;
struct Barrier {
  std::string name;
  int size = 1;
  int arrivals = 1;
  bool by_hand = false;  // the program announces the bytes, not the copies
  int64_t offset = -1;   // bytes into the dynamic shared memory, 8 each
};

// A tensor map (CUtensorMap, PTX ISA "tensor-map"): a `const __grid_constant__` parameter that the host encodes for each launch. Box in elements, one a tensor
// dim (row-major order: the last dim is contiguous); reads outside the tensor give zero, writes are dropped.
using MapId = uint32_t;
struct TensorMap {
  BufferId buffer = kNoId;  // kGlobal, of rank 1 to 5, last stride 1, aligned to 16 bytes
  std::vector<int64_t> box;
  int swizzle = 0;          // bytes: 0 (none), 32, 64, 128
  bool operator==(const TensorMap&) const = default;
};

// One side of a copy: the element of iteration point p is buffer[start[d] + (follows[d] < 0 ? 0 : p[follows[d]])] over its dims d
// (shared buffers: d = 0 is the version).
struct TileAccess {
  BufferId buffer = kNoId;
  std::vector<Expr> start;
  std::vector<int> follows;
  std::vector<bool> inside;  // proven in range for every point, no check needed; one a dim
};

// One version of a shared buffer, or a register buffer (no version), that asynchronous work no longer touches.
struct Retired { BufferId buffer = kNoId; Expr version; };

}  // namespace tilert::kir
