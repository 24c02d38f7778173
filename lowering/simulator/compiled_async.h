// Compiled statements of the Hopper family: roles, rings, TMA, wgmma.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lowering/kernel_ir.h"
#include "lowering/simulator/expr_code.h"

namespace tilert::sim {

struct CStmt;
using CBlock = std::vector<CStmt>;

struct CAccess { BufferId buffer; std::vector<Code> start; std::vector<int> follows; std::vector<bool> inside; };
struct CElement { int32_t cell, reg, lane; };  // a cell of a dense matrix and where its element is among a warp's registers
struct CRetired { BufferId buffer; Code version; bool has_version; };

struct CRole {
  const kir::Role* source = nullptr;
  int first_warp = 0;  // of the block
  CBlock body;
};
struct CRoles { std::vector<CRole> roles; };
struct CForTiles { CBlock body; };

// A warp's part: rows `row_of[i]` and columns column0 … of the product. Its accumulators are cells [i][column − column0].
struct CWgmma {
  BufferId acc;
  CAccess a, b;
  int64_t m, n, k;
  Code zero;
  bool has_zero;
  bool a_in_registers;
  int number;  // among the kernel's wgmma, for the cache of operands
  struct PerWarp {
    std::vector<int32_t> row_of;
    int64_t column0 = 0, columns = 0;
    int64_t row0 = 0, rows = 0;             // of the whole warpgroup: what the instruction reads of A
    std::vector<CElement> acc, a;           // a: cells [i][k]; empty when in shared memory
  };
  std::vector<PerWarp> warps;
};
struct CWgmmaFence { std::vector<BufferId> touched; };
struct CWgmmaCommit {};
struct CWgmmaWait { int pending; std::vector<CRetired> retires; };

// A tile and the box of a tensor map: row r of the tile is row-major position r of the leading box dims, columns follow the last.
struct CTmaTile {
  BufferId tensor, tile;
  std::vector<int64_t> box;
  std::vector<Code> coords;
  int shares = 1;  // warpgroups, or blocks of a cluster, that move a part of the rows each; `box` is the whole tile's
  bool by_panel = false;  // a part of the columns instead
};
struct CTmaLoad { CTmaTile tile; kir::RingId ring; kir::ClusterAxes multicast = 0; kir::BarrierId barrier = kNoId; Code index = {}, version = {}; bool has_version = false; };
struct CTmaStore { CTmaTile tile; Code version; bool has_version; bool add; };
struct CStoreCommit {};
struct CStoreWait { int pending; bool read; std::vector<CRetired> retires; };
struct CProxyFence {};

struct CAcquire { kir::RingId ring; bool fill; };
struct CExpectTx { kir::RingId ring; int64_t bytes; };
struct CRelease { kir::RingId ring; int behind; };
struct CAdvance { kir::RingId ring; Code count; };
struct CMbarArrive { kir::BarrierId barrier; Code index; };
struct CMbarWait { kir::BarrierId barrier; Code index, parity; };
struct CMbarExpect { kir::BarrierId barrier; Code index, bytes; };
struct CMbarComplete { kir::BarrierId barrier; Code index; int64_t bytes; };
struct COrderWait {};
struct COrderPass {};
struct CClusterSync {};
struct CPartStore { BufferId part, src; };
struct CPartAdd { BufferId acc, part; Code peer; };
struct CSumsGive { std::vector<BufferId> sums; };
struct CSumsTake { std::vector<BufferId> sums; };

struct Compiled;
// What the statements ask of layouts, types and alignment (compile_async.cc). Internal when it is not so.
absl::StatusOr<CWgmma> CompileWgmma(const Compiled& kernel, const kir::Wgmma& gemm);  // but for a, b and zero
absl::Status CheckTmaTile(const Compiled& kernel, const kir::TensorMap& map, BufferId tile, size_t coords);
absl::Status CheckRings(const Compiled& kernel);
absl::Status CheckRoles(const kir::Kernel& kernel, const kir::Roles& roles);

}  // namespace tilert::sim
