// The result of lowering one specialised program for one target and ArgClass: CUDA source and how to launch it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"
#include "lowering/kernel_ir.h"
#include "lowering/target.h"

namespace tilert {

// Facts about arguments that a variant relies on; checked at launch (a few compares). The general class relies on nothing.
struct ArgClass {
  // One per Program::buffers entry of scope kGlobal, in buffer order: the pointer and every stride but the last (which is 1) are multiples of so many
  // bytes. At least the element size.
  std::vector<uint32_t> alignment;
  bool index32 = false;             // every dim, and the span of every tensor in elements, is below 2^30
  std::vector<uint32_t> dim_divisor;  // one per Program::dims: the dim is a multiple of it (1: nothing known)
  std::string ToString() const;
  bool operator==(const ArgClass&) const = default;
};
ArgClass GeneralArgClass(const Program& program);
// 16-byte alignment everywhere, 32-bit indices.
ArgClass FastArgClass(const Program& program);

// One kernel parameter, in order.
struct KernelArg {
  enum class Kind : uint8_t { kTensor, kDim, kScalar, kTensorMap, kGiven };
  Kind kind = Kind::kTensor;
  uint32_t index = 0;  // BufferId, dim or scalar index of the program; kTensorMap: index of LoweredKernel::maps; kGiven: bytes of workspace for each block
  uint32_t bytes = 8;  // 8 for pointers and for dims (4 for dims with index32); the scalar's size; 128 for a tensor map (aligned to 64)
};

// What the host encodes into a CUtensorMap at launch (cuTensorMapEncodeTiled): dims and strides are those of the tensor argument.
struct LoweredTensorMap {
  BufferId buffer = kNoId;   // of the program, scope kGlobal, rank 1 to 5, last stride 1
  DType dtype = DType::kInvalid;
  std::vector<int64_t> box;  // elements, one a tensor dim in the tensor's order (the last is contiguous); at most 256 each
  int swizzle = 0;           // bytes: 0 (none), 32, 64, 128
  bool operator==(const LoweredTensorMap&) const = default;
};

// The parameters of the kernel emitted from `kernel`: its global buffers in order, then its tensor maps, then all dims, then all scalars; last, the workspace in
// which blocks leave sums for each other (kir::SumsGive).
std::vector<KernelArg> KernelArgs(const kir::Kernel& kernel);

struct LoweredKernel {
  std::string symbol;            // extern "C" name
  std::vector<KernelArg> args;
  std::vector<Expr> grid;        // in the arena of the specialised program; the launch is one-dimensional: Π grid blocks
  bool persistent = false;       // the blocks walk over the tiles: launch no more than fit on the GPU at once (SMs · blocks_per_sm)
  uint32_t blocks_per_sm = 1;
  std::vector<uint32_t> cluster;  // blocks of a thread block cluster along each grid dim, then those that share one block of it; empty: no clusters
  std::vector<LoweredTensorMap> maps;
  uint32_t threads = 0;
  uint64_t shared_bytes = 0;     // dynamic
  bool cooperative = false;
};

struct Lowered {
  std::string source;                 // CUDA C++, no includes; one extern "C" kernel a launch
  std::vector<LoweredKernel> kernels; // in launch order
  std::vector<kir::Kernel> kernel_ir; // what the source was emitted from (simulator, `tilert emit`, `tilert layout`)
  std::string report;                 // schedule, conversions and their cost, resources: for people
};

struct LowerOptions {
  std::string print_after;            // name of a pass, or "all": its output is appended to `printed`
  std::string* printed = nullptr;
  std::string without;                // name of a pass over tiles that may be left out ("split-loops"): to test or measure what it does
#ifdef NDEBUG
  bool verify_each = false;           // check the KernelIr after every pass; a fault there is a bug of ours
#else
  bool verify_each = true;
#endif
};

// `program`: verified and specialised (no constants left). ResourceExhausted names the buffers when shared memory or registers do not suffice.
absl::StatusOr<Lowered> Lower(const Program& program, const ArgClass& arg_class, const Target& target, const LowerOptions& options = {});

// Changes whenever emitted code may change: part of the cache key.
std::string LoweringBuildId();

// ---- stages, callable on their own ----
absl::StatusOr<kir::Kernel> Plan(const Program& program, size_t launch, const ArgClass& arg_class, const Target& target, const LowerOptions& options);
// CUDA C++ of one kernel without the prelude.
absl::StatusOr<std::string> EmitKernel(const kir::Kernel& kernel, const Target& target);
// The prelude text that kernels emitted for `target` need.
std::string Prelude(const Target& target);

}  // namespace tilert
