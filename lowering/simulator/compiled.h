// A kernel prepared for one run: dims and scalars bound, expressions flat, layouts as tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "lowering/kernel_ir.h"
#include "lowering/simulator/compiled_async.h"
#include "lowering/simulator/expr_code.h"
#include "lowering/simulator/layout_tables.h"

namespace tilert::sim {

// A buffer in this run. Addresses: bytes from the start of the tensor or of shared memory; registers: the register's number.
struct BufferInfo {
  const kir::Buffer* source = nullptr;
  int bytes = 1;                       // of an element
  std::vector<int64_t> shape;          // shared: the version first
  std::vector<int64_t> strides;        // global: elements. shared: of the element's index into `offsets`
  std::vector<int32_t> offsets;        // shared: byte offset of an element within a version
  int64_t version_bytes = 0;           // shared
  std::shared_ptr<const LayoutTables> layout;  // registers
};

struct CDeclare { BufferId buffer; bool zero; };
struct CFor { VarId var; Code begin, end, step; CBlock body; };
struct CWhile { Code cond; CBlock body; };
struct CIf { Code cond; CBlock then_body, else_body; };
struct CBreak {};
struct CContinue {};
struct CLet { VarId var; Code value; };
// An Elementwise; or one memory statement outside of one, as the single point of a layout without dimensions.
struct CPoints { std::shared_ptr<const LayoutTables> layout; std::vector<VarId> vars; CBlock body; bool waits = false; };
struct CStore {
  BufferId buffer;
  std::vector<Code> indices;
  std::vector<bool> inside;
  Code value;
};
struct CAtomic {
  AtomicOp op;
  BufferId buffer;
  std::vector<Code> indices;
  std::vector<bool> inside;
  Code value;
  VarId prev;
};
struct CPrint { std::vector<Code> args; };
struct CAssert { Code cond; std::string message; };

struct CCopy {
  kir::CopyMethod method;
  CAccess dst, src;
  std::shared_ptr<const LayoutTables> layout;
  int64_t width;
  Code fill;
  bool has_fill;
};
struct CCommit {};
struct CWait { int pending; std::vector<CRetired> retires; };
struct CBarSync { bool by_warpgroup = false; int number = 0, warps = 0; };
struct CShuffle { VarId var; Code value, lane; };

// For each dst register and lane of a warp the reduction of all src elements of that warp that agree in the other dimensions.
struct CLaneReduce {
  ReduceOp op;
  BufferId dst, src;
  bool accumulate;
  struct Source { int32_t cell, reg, lane; };       // cell: index of the result that the element goes to
  struct Target { int32_t cell, reg, lane; };
  struct PerWarp { std::vector<Source> sources; std::vector<Target> targets; int32_t cells = 0; };
  std::vector<PerWarp> warps;
};

// For each warp dense matrices A[m][k], B[k][n], C[m][n] and where their elements are among the warp's registers.
struct CMma {
  BufferId acc, a, b;
  using Element = CElement;
  struct PerWarp { std::vector<Element> a, b, acc; int64_t m = 0, n = 0; };
  int64_t k = 0;
  std::vector<PerWarp> warps;
};

struct CStmt {
  int number = 0;  // index into Compiled::paths
  std::variant<CDeclare, CFor, CWhile, CIf, CBreak, CContinue, CLet, CPoints, CStore, CAtomic, CPrint, CAssert, CCopy, CCommit,
               CWait, CBarSync, CLaneReduce, CMma, CRoles, CForTiles, CWgmma, CWgmmaFence, CWgmmaCommit, CWgmmaWait, CTmaLoad,
               CTmaStore, CStoreCommit, CStoreWait, CProxyFence, CAcquire, CExpectTx, CRelease, CAdvance, COrderWait, COrderPass,
               CClusterSync, CPartStore, CPartAdd, CSumsGive, CSumsTake, CShuffle, CMbarArrive, CMbarWait, CMbarExpect, CMbarComplete>
      op;
};

struct Compiled {
  const kir::Kernel* kernel = nullptr;
  std::vector<BufferInfo> buffers;
  std::vector<Row> constants;
  size_t frame_rows = 0;
  std::vector<int64_t> grid;
  int64_t trips = 0;               // iterations of a tile that the blocks share (kir::Kernel::shared_trips)
  int shared_cell_bytes = 0;       // granularity of the shadow, divides every element; 0: no shared buffers
  CBlock body;
  std::vector<std::string> paths;  // of each statement
  std::vector<SourceLoc> locs;     // of each, too
  bool order_matters = false;      // to the results: float atomics, values before atomics
  bool persistent = false;         // walks over its tiles
  int wgmmas = 0;
  std::vector<int> ring_slots;     // by RingId: index of its first slot among those of all rings; one more at the end
  std::vector<std::vector<BufferId>> overlaps;  // of a shared buffer: those with bytes in common, itself too
};

// The failure, told where in the source it is (SimulatedPlace); as it is where that is not known.
inline constexpr char kPlacePayload[] = "tilert/place";
absl::Status WithPlace(absl::Status failure, const std::string& place);
std::string PlaceOf(const Compiled& kernel, int stmt);

// Internal when a statement is not what KernelIr allows: a layout that is not the instruction's, a copy that its method cannot
// do. `kernel` must outlive the result.
absl::StatusOr<Compiled> CompileKernel(const kir::Kernel& kernel, const std::vector<int64_t>& dims,
                                       const std::vector<Value>& scalars);

// Parts of it (compile_tile.cc): layouts of registers against what Mma, ldmatrix and LaneReduce move.
absl::StatusOr<CMma> CompileMma(const Compiled& kernel, const kir::Mma& mma);
absl::StatusOr<CLaneReduce> CompileLaneReduce(const Compiled& kernel, const kir::LaneReduce& reduce);
absl::Status CheckCopy(const Compiled& kernel, const kir::Copy& copy, const LayoutTables& layout);

}  // namespace tilert::sim
