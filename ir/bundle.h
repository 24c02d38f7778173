// A kernel bundle in memory: programs and what belongs to them. Bytes: ir/flat_writer.h, ir/flat_reader.h, docs/bundle_format.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "ir/sha256.h"

namespace tilert {

// A condition on one dim at launch: min <= dim <= max and dim % divisor == 0.
struct DimGuard {
  uint32_t dim = kNoId;  // index into Program::dims
  int64_t min = 0, max = INT64_MAX;
  int64_t divisor = 1;
  bool operator==(const DimGuard&) const = default;
};

// A choice of constants worth compiling for targets and dims that satisfy the guards.
struct Variant {
  std::string name;
  uint32_t program = kNoId;                  // index into Bundle::programs
  std::map<std::string, int64_t> constants;  // by name; missing ones take their first candidate
  std::string target;                        // "sm_90a", …; empty: any
  std::vector<DimGuard> guards;              // all must hold
  bool operator==(const Variant&) const = default;
};

// A measurement: on `sku`, for dims in the bucket, `variant` took `microseconds`.
struct TuningRecord {
  std::string sku;         // the GPU's name as the driver gives it
  uint32_t variant = kNoId;  // index into Bundle::variants
  std::vector<DimGuard> bucket;
  double microseconds = 0;
  bool operator==(const TuningRecord&) const = default;
};

// How to launch one kernel of a cubin. The grid follows from the program.
struct CubinKernel {
  struct Arg {
    enum class Kind : uint8_t { kInvalid, kTensor, kDim, kScalar, kTensorMap, kGiven };
    Kind kind = Kind::kInvalid;
    uint32_t index = kNoId;  // BufferId, dim or scalar of the program; kTensorMap: index into maps; kGiven: bytes for each block
    uint32_t bytes = 0;
    bool operator==(const Arg&) const = default;
  };
  // A tensor map that the host encodes for a launch: what TMA copies know about a tensor.
  struct Map {
    uint32_t buffer = kNoId;   // BufferId of the program
    DType dtype = DType::kInvalid;
    std::vector<int64_t> box;  // elements, one a tensor dim
    int swizzle = 0;           // bytes: 0 (none), 32, 64, 128
    bool operator==(const Map&) const = default;
  };
  std::string symbol;
  std::vector<Arg> args;
  uint32_t threads = 0;
  uint64_t shared_bytes = 0;
  bool cooperative = false;
  bool persistent = false;  // no more blocks than fit on the GPU at once: SMs · blocks_per_sm
  uint32_t blocks_per_sm = 1;
  std::vector<Map> maps;
  std::vector<uint32_t> cluster = {};  // blocks of a cluster along each grid dim, then those that share one; empty: no clusters
  bool operator==(const CubinKernel&) const = default;
};

// A compiled program. A capability: a host that does not trust the bundle must not use it.
struct PrebuiltCubin {
  Sha256Digest program_digest{};  // ProgramDigest of the program, before specialisation
  std::map<std::string, int64_t> constants, dims;
  std::vector<uint32_t> alignment, dim_divisor;  // the ArgClass
  bool index32 = false;
  std::string target;
  uint32_t launch_abi = 0;
  std::vector<CubinKernel> kernels;  // in launch order
  std::string_view code;             // see Bundle::Own and, for bundles that were read, ReadBundle
  Sha256Digest code_sha256{};        // as written in the bundle; check with CodeMatchesHash before use
  bool operator==(const PrebuiltCubin&) const = default;
};

struct Bundle {
  std::vector<Program> programs;
  std::map<std::string, std::string> metadata;
  std::vector<Variant> variants;
  std::vector<TuningRecord> tuning;
  std::vector<PrebuiltCubin> cubins;
  std::vector<std::shared_ptr<const std::string>> owned;

  // Keeps `bytes` as long as the bundle (and its copies), for PrebuiltCubin::code.
  std::string_view Own(std::string bytes) { return *owned.emplace_back(std::make_shared<const std::string>(std::move(bytes))); }
  // Programs with the name; nullptr when there is none.
  const Program* Find(std::string_view name) const;
};

// Everything but `owned`.
bool operator==(const Bundle& a, const Bundle& b);

// What identifies a program's meaning and its tables: names, types, statements, expressions; not where it was written.
// REQUIRES: its structure holds (it was read, verified or built without error).
Sha256Digest ProgramDigest(const Program& program);

// True when the code is what its hash says.
bool CodeMatchesHash(const PrebuiltCubin& cubin);

}  // namespace tilert
