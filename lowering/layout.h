// Layouts: where each element of a tile lives.
//
// A fragment layout is a factor permutation. Every tensor dimension is an ordered list of factors, fastest first, whose
// product is the padded extent; each factor is owned by one digit of {register, lane, warp}: coordinate digit
// c = (coordinate / weight) % size contributes c·stride to its owner's index, where weight is the product of the sizes before it.
// Lane and warp digits that no factor owns are replicas: all of them hold the same value (replica 0: every such digit zero).
// Example, the 16×8 accumulator of mma.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//   rows: {8, lane, 4} {2, reg, 2}    columns: {2, reg, 1} {4, lane, 1}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilert {

inline constexpr int kLanes = 32;
inline constexpr int kWarpgroupWarps = 4;
inline constexpr int64_t kSwizzleRows = 8;  // rows after which a swizzle pattern of shared memory repeats

enum class Owner : uint8_t { kReg, kLane, kWarp };

struct Factor {
  int64_t size = 1;
  Owner owner = Owner::kReg;
  int64_t stride = 0;  // within the owner's index
  bool operator==(const Factor&) const = default;
};

struct LayoutDim {
  int64_t extent = 1;           // valid elements; coordinates from here to the padded extent are masked
  std::vector<Factor> factors;  // fastest first
  int64_t padded() const;
  bool operator==(const LayoutDim&) const = default;
};

struct Place {
  int64_t reg = 0;
  int lane = 0;
  int warp = 0;
  bool operator==(const Place&) const = default;
};

struct FragmentLayout {
  std::vector<LayoutDim> dims;  // empty: a scalar, replicated in every thread
  int warps = 1;

  // Registers a thread holds (elements): 1 + the largest register index.
  int64_t regs() const;
  // Where replica 0 of an element is. REQUIRES: 0 ≤ coords[d] < padded extent.
  Place Locate(const std::vector<int64_t>& coords) const;
  // The element in `place`. Replica digits are ignored. A register no factor reaches gives coordinates of register 0 of that digit.
  std::vector<int64_t> Coords(const Place& place) const;
  // Lane and warp digits that no factor owns, as {size, owner, stride}.
  std::vector<Factor> Replicas() const;
  bool IsReplicaZero(int lane, int warp) const;
  bool operator==(const FragmentLayout&) const = default;
};

// True when the digits of each owner fit into each other without overlap (lanes into 32, warps into `warps`) and no extent
// exceeds its padded extent: what every function here requires.
bool IsWellFormed(const FragmentLayout& layout);

// Merges neighbouring factors that continue each other and drops factors of size 1. Equal functions that differ only so compare equal.
FragmentLayout Canonical(const FragmentLayout& layout);

// The layout of the dimensions `keep` (in that order); the lanes and warps of dropped dimensions become replicas, and
// registers are renumbered densely in factor order (the first kept dimension slowest). All of them in order: `layout` as it is.
FragmentLayout Project(const FragmentLayout& layout, const std::vector<int>& keep);

// The same ownership with registers renumbered without gaps, in the order they had.
FragmentLayout Dense(FragmentLayout layout);

// True when a thread that runs iteration point p of `loop` holds element p of `data` in its own registers (loop and data have
// equal rank; `data` may replicate more).
bool CanRead(const FragmentLayout& data, const FragmentLayout& loop);
// True when, besides, every replica of an element is written by its own thread.
bool CanWrite(const FragmentLayout& data, const FragmentLayout& loop);

// The extent of each dimension.
std::vector<int64_t> ExtentsOf(const FragmentLayout& layout);
// Threads hold places beyond the extent of some dimension.
bool IsPadded(const FragmentLayout& layout);

// The same with the replicas of an element as padding of the first dimension, of which there is one: no element is held twice.
FragmentLayout WithoutReplicas(FragmentLayout layout);

// Threads spread along the last dimension first, `vector` consecutive elements a thread; what is left goes to registers;
// what threads are left over spread along the earlier dimensions, then replicate. Any extents, any warps ≥ 1.
FragmentLayout BlockedLayout(const std::vector<int64_t>& extents, int warps, int64_t vector);

// Fragments of mma.m16n8k16 (16-bit operands) tiled over a warp grid; warp = wm + warps_m·wn. Each warp owns a contiguous
// block of rows and columns; extents are padded up to the atoms. Accumulator: dims (M, N). A: dims (M, K). B: dims (N, K).
// Register order: accumulator [m atom][n atom][4], A [m atom][k atom][8], B [n atom][k atom][4], all in elements.
struct WarpGrid {
  int m = 1;
  int n = 1;
  bool operator==(const WarpGrid&) const = default;
};
FragmentLayout MmaAccumulatorLayout(int64_t m, int64_t n, WarpGrid grid);
FragmentLayout MmaOperandALayout(int64_t m, int64_t k, WarpGrid grid);
FragmentLayout MmaOperandBLayout(int64_t n, int64_t k, WarpGrid grid);

// Fragments of wgmma.m64nNk16 over a grid of warpgroups (4 warps each; warpgroup = gm + grid.m·gn), as lowering/kernel_ir.h's Wgmma wants them. PTX ISA, "Register Fragments
// and Shared Memory Matrix Layouts" of wgmma. m a multiple of 64·grid.m, n of 8·grid.n, k of the instruction's K (32 bytes).
// Register order: accumulator [m block][n / 8][4], A [m block][k step][16 bytes], in elements.
FragmentLayout WgmmaAccumulatorLayout(int64_t m, int64_t n, WarpGrid warpgroups);
FragmentLayout WgmmaOperandALayout(int64_t m, int64_t k, WarpGrid warpgroups, int element_bytes = 2);

// Consecutive registers (a power of two, at most `limit`) that hold consecutive elements of the last dimension, starting on a
// multiple of that width: how wide a vector access of this layout may be.
int64_t ContiguousRegs(const FragmentLayout& layout, int64_t limit);

// Shared memory: the last dimension is cut into panels of `pitch` bytes; a panel stores one row (all leading dimensions collapsed)
// after the other; within a row the 16-byte chunk index is XORed with a function of the row (the "swizzle", as TMA and ldmatrix
// want it: 128-byte rows c ^ (row & 7), 64-byte rows c ^ ((row >> 1) & 3), 32-byte rows c ^ ((row >> 2) & 1)).
struct SharedLayout {
  std::vector<int64_t> extents;
  int element_bytes = 1;
  int64_t pitch = 0;      // bytes from one row to the next within a panel
  int64_t panel = 0;      // bytes of data in a row of a panel (panel ≤ pitch; the rest is padding)
  bool swizzled = false;  // REQUIRES panel = pitch = 32, 64 or 128
  // Rows eight apart are told apart too, chunks c ^ ((row ^ row / 8) & 7): for tiles that threads read across their rows. No TMA, no wgmma.
  bool folded = false;  // REQUIRES swizzled, panel = 128
  int64_t rows() const;
  int64_t bytes() const;  // of one version, a multiple of 16
  int64_t version_bytes() const;  // from one version to the next: bytes() rounded up to 128
  int64_t ByteOffset(const std::vector<int64_t>& coords) const;
  bool operator==(const SharedLayout&) const = default;
};
// Row-major, one panel, rows padded by `pad_bytes`.
SharedLayout RowMajorShared(const std::vector<int64_t>& extents, int element_bytes, int64_t pad_bytes = 0);
// The widest swizzled panels that divide the last extent; row-major when none does.
SharedLayout SwizzledShared(const std::vector<int64_t>& extents, int element_bytes);

// Ways a warp-wide access of these byte addresses (−1: inactive lane, `bytes` each) is serialised beyond the ideal; 1 = conflict-free.
// Of an access that the hardware serves in several phases (8 and 16 bytes): the mean of its phases, rounded up.
int BankConflictWays(const std::vector<int64_t>& byte_addresses, int bytes);

std::string ToString(const FragmentLayout& layout);
std::string ToString(const SharedLayout& layout);

}  // namespace tilert
