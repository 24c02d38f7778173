// From tiles to threads: builds the KernelIr of one launch out of a TileState whose layouts are solved.
//
// One builder, one member function a kind of statement, spread over plan_*.cc by topic. What the builder leaves to the kernel passes:
// barriers (pass_barriers.cc), places in shared memory (pass_shared_memory.cc), proofs of bounds (pass_bounds.cc).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "lowering/fragment_uses.h"
#include "lowering/tile_access.h"
#include "lowering/tile_gemm.h"
#include "lowering/tile_rings.h"
#include "lowering/tile_roles.h"
#include "lowering/tile_state.h"

namespace tilert {

class PlanBuilder {
 public:
  explicit PlanBuilder(TileState& state);
  ~PlanBuilder();
  absl::StatusOr<kir::Kernel> Run();

 private:
  friend class ThreadPlanner;
  // plan.cc: tables, expressions, statements.
  void MapParameters();
  void MapGlobal(BufferId id);
  std::vector<Expr> ContiguousStrides(const std::vector<Expr>& shape);
  BufferId NewRegister(std::string name, DType dtype, FragmentLayout layout);
  BufferId NewShared(std::string name, DType dtype, SharedLayout layout, int64_t versions = 1);
  VarId NewVar(std::string name);
  Expr VarExpr(VarId id) { return k_.exprs.Leaf(ExprOp::kVar, id, DType::kIndex); }
  Expr Int(int64_t value) { return k_.exprs.Int(value); }
  Expr Slot(BufferId program_buffer);
  Expr Tr(Expr e);
  std::vector<Expr> Tr(const std::vector<Expr>& es);
  absl::StatusOr<Expr> BlockExpr(Expr e);
  void Emit(kir::StmtOp op);
  absl::Status EmitBlock(const Block& block, kir::Block& out, bool keep_open = false);
  void Prepare(const Stmt& stmt);
  absl::Status EmitStmt(const Stmt& stmt);
  absl::Status EmitFor(const For& loop);
  absl::Status EmitIf(const If& branch);
  absl::Status EmitWhile(const While& loop, const std::function<absl::Status(kir::Block&)>& emit_body);
  absl::Status EmitVarStore(const Store& store);
  bool OverwrittenFirst(const Block& block, size_t at) const;
  absl::Status EmitAlloc(BufferId id, bool overwritten);
  FragmentLayout PrivateLayout(const std::vector<int64_t>& shape) const;
  void EmitFill(BufferId fragment, Expr value);
  absl::Status Unsupported(const Stmt& stmt, std::string_view what) const;

  // plan_copy.cc: copies, conversions between layouts, staging through shared memory.
  absl::Status EmitCopy(const Copy& copy);
  absl::Status EmitPlainCopy(const Copy& copy);
  absl::Status EmitFragmentCopy(const Copy& copy);
  bool FragmentBox(const Region& region, FragmentLayout* layout) const;
  kir::TileAccess Access(const Region& region);
  kir::TileAccess WholeAccess(BufferId kernel_buffer, size_t rank);
  int64_t MemoryWidth(const kir::TileAccess& access, size_t rank) const;
  void EmitTileCopy(kir::TileAccess dst, kir::TileAccess src, FragmentLayout layout, Expr fill = {});
  void MoveFragment(BufferId dst, BufferId src, const std::vector<int>& dst_dims, const std::vector<int>& src_dims);
  BufferId StageOut(BufferId fragment);              // kernel register buffer → new shared buffer with its contents
  void StageIn(BufferId shared, BufferId fragment);  // and back
  BufferId NewScratch(const std::string& name, DType dtype, const std::vector<int64_t>& extents);
  bool TakesStmatrix(const kir::TileAccess& dst, const kir::TileAccess& src, const FragmentLayout& layout) const;
  bool IsAsync(const kir::TileAccess& dst, const kir::TileAccess& src, int64_t width, Expr fill) const;
  void FlushAsync();
  void FlushAsyncFor(const Stmt& stmt);

  // plan_loops.cc: element loops.
  absl::Status EmitParallel(const Parallel& loop);
  bool ReadsWhatItWrites(const Parallel& loop, const std::vector<FragmentUse>& uses, const FragmentLayout& layout) const;
  absl::Status EmitElementBlock(const Block& block, kir::Block& out);
  absl::Status EmitElementFill(const Fill& fill, const SourceLoc& loc, kir::Block& out);
  absl::Status EmitElementStmt(const Stmt& stmt, kir::Block& out);

  // plan_reduce.cc
  absl::Status EmitReduce(const Reduce& reduce);
  void CombineInto(BufferId dst, BufferId src, ReduceOp op);

  // plan_gemm.cc
  absl::Status EmitGemm(const Gemm& gemm);
  absl::Status EmitMmaGemm(const Gemm& gemm, WarpGrid grid);
  absl::Status EmitSimtGemm(const Gemm& gemm);
  bool IsDirect(BufferId accumulator, const FragmentLayout& wanted) const;
  struct Operand {
    bool in_registers = false;
    kir::TileAccess access;    // follows: 0 = M or N, 1 = K
    DType dtype = DType::kInvalid;
    Expr k_start;              // start of the K subscript
    int k_dim = 0;             // which subscript of `access` it is
    bool k_last = false;       // K is the last subscript
    bool aligned = false;      // rows of 8 elements are aligned 16-byte chunks of shared memory
  };
  absl::StatusOr<Operand> GemmOperand(const Region& region, bool k_last, const FragmentLayout& wanted);
  BufferId OperandRegisters(const Operand& operand, const FragmentLayout& layout, bool ragged, std::string name);
  void LoadOperand(const Operand& operand, BufferId registers, Expr k, bool ragged);

  // plan_wgmma.cc: tensor core work that goes on while later statements run.
  struct PendingRelease {
    kir::RingId ring = 0;
    int behind = 0;  // positions between the slot and where the ring is now
  };
  struct OpenGroup {  // committed, not yet waited for; oldest first
    BufferId acc = kNoId;              // kernel buffers
    std::vector<BufferId> reads;       // register operands and shared tiles outside rings
    std::vector<PendingRelease> releases;
    Expr exists;                       // set: issued only if this holds (an iteration ago, or by a loop that may not run)
  };
  bool IsWgmma(const Stmt& stmt) const;
  absl::Status EmitWgmmaGemm(const Gemm& gemm, const GemmChoice& choice);
  kir::TileAccess WgmmaOperand(const Region& region, bool k_last, const FragmentLayout& wanted, OpenGroup* group);
  void Retire(size_t count);
  void RetireAll() { Retire(open_.size()); }
  void RetireFor(const Stmt& stmt);
  void FillLazily(BufferId fragment, Expr value);
  void FillNow(const std::vector<BufferId>& fragments);
  bool CanStartFromZero(const Stmt& stmt, BufferId acc);
  void FillBefore(const Stmt& stmt);
  void NameEnd(kir::For* loop, const std::string& var);
  absl::Status EmitLoopBody(const For& loop, kir::For& out);

  // plan_roles.cc: warps that compute, and a thread that fills the rings of tiles for them.
  absl::Status EmitRoles();
  void MakeRings();
  void ShareRing(size_t number, kir::Ring* ring) const;
  bool TakesTurns() const;
  void SkipOthers(kir::Block* out, bool before);
  void TakeTurns(kir::Block* tile);
  void SetProducerVars();
  absl::Status EmitProducer(const Block& block, kir::Block& out);
  void EmitFills(const RingGroup& group, const Copy& copy);
  void Acquire(const Block& block, size_t at);
  void Release(const Block& block, size_t at);
  kir::MapId MapOf(BufferId program_buffer, const std::vector<int64_t>& box, int64_t panel, int swizzle);

  // plan_cluster.cc: blocks that run together.
  void FormCluster();
  void FitRaster();
  absl::Status EmitDrain(kir::Block* out);
  absl::Status OnlyInsideGrid(kir::Block* tile);

  // plan_split.cc: loops that blocks share.
  void BindShare();
  void BindShareOfAll();
  absl::Status EmitFirstShare(const If& branch);
  absl::Status EmitLastShare(const If& branch);

  // plan_store.cc: results that leave through shared memory, by TMA or in pieces that the threads copy.
  void FindStores();
  Copy Direct(const Copy& store) const;
  bool CanTmaStore(const Copy& copy, std::string* why = nullptr) const;
  bool CanLeaveInPieces(const Copy& copy) const;
  bool SplitsByWarpgroup(const Region& fragment) const;
  int64_t SharedLeft() const;
  int64_t OddChunk(const FragmentLayout& layout, int64_t rows, int64_t bytes) const;
  int64_t StoreChunk(const Copy& copy) const;
  absl::Status EmitTmaStore(const Copy& copy);
  kir::MapId EmitBoxStore(const Region& to, BufferId from, Expr version, int64_t column);

  // plan_pieces.cc: work on a fragment that leaves in pieces, done a piece at a time.
  struct Pieces {
    kir::Block loads;  // from global memory, issued while the piece before is stored
    kir::Block work;   // in registers, on columns by themselves
    kir::Block after;  // what had to wait for all of it
  };
  static bool CutColumns(FragmentLayout* layout, int64_t width);
  Pieces TakePieces(int64_t columns, int64_t width);
  bool IsPieceable(const kir::Elementwise& loop, int64_t columns, int64_t width) const;
  bool IsPieceable(const kir::Copy& copy, int64_t columns, int64_t width) const;
  void EmitPiece(const kir::Block& work, int64_t column, int64_t width);

  // plan_cache.cc: hints for the L2 cache.
  void HintCaches();
  void ReportHints();

  // plan_barriers.cc: declared barriers, thread regions, roles of the program.
  absl::Status EmitThreadRegion(const Stmt& stmt, const ThreadRegion& region);
  absl::Status EmitSync(const SyncThreads& sync, int64_t threads_here);
  FragmentLayout PointPerThread() const;
  absl::Status EmitBarrier(BufferId id);
  Expr BarrierIndex(BufferId id, const std::vector<Expr>& indices);
  absl::Status EmitBarrierOp(const BarrierOp& op, const std::vector<Expr>& indices, Expr operand);
  absl::Status EmitBarrierOp(const BarrierOp& op);
  absl::Status EmitElementBarrierOp(const Stmt& stmt, const BarrierOp& op, kir::Block& out);
  absl::Status EmitAsyncCopy(const Stmt& stmt, const Copy& copy);
  int64_t PanelAtBarrier(const Copy& copy) const;

  // plan_program_roles.cc: roles that the program declares.
  absl::Status EmitProgramRoles();
  absl::Status EmitPart(const Block& block, size_t part, kir::Block& out);
  absl::Status EmitPartAlloc(BufferId id, size_t part);
  absl::Status EmitPartControl(const Stmt& stmt, size_t part);
  bool LooksAtMemory(Expr root) const;
  bool LooksAtMemory(const Stmt& stmt) const;
  void Meet();

  // plan_report.cc: which way copies go, for people.
  void Report(const std::string& line);
  void ReportTma(const Copy& copy, kir::MapId map);
  void ReportPlainCopy(const Copy& copy, size_t first);

  // plan_pipeline.cc
  struct Producer {
    const Copy* copy = nullptr;
    size_t stmt = 0;   // in the loop body
    size_t use = 0;    // the statement that first needs it
    size_t group = 0;  // copies that are first needed by the same statement share a group
    bool async = false;  // by cp.async; known once it has been emitted
  };
  std::vector<Producer> FindProducers(const For& loop) const;
  absl::Status EmitPipelined(const For& loop, std::vector<Producer> producers);
  absl::Status IssueStage(const For& loop, std::vector<Producer>& producers, Expr iteration, Expr limit, int64_t versions, size_t first, size_t end);
  static int CommittedAfter(const std::vector<Producer>& producers, size_t group, int ahead);
  bool FillsSm(const For& loop) const;
  absl::Status FillPipeline(const For& loop, std::vector<Producer>& producers, int ahead, Expr limit, int64_t versions);
  void WaitForGroup(const std::vector<Producer>& producers, size_t group, int pending);

  // plan_ahead.cc: pipelined loops around one product, whose fragments are loaded a step ahead.
  struct AheadProduct {
    const Gemm* gemm = nullptr;  // none: the loop is no such loop
    SourceLoc loc;
    FragmentLayout a, b;         // of one step
    int64_t depth = 0, steps = 0;  // elements of K in a step; steps of an iteration
  };
  AheadProduct FindAheadProduct(const For& loop, const std::vector<Producer>& producers);
  absl::StatusOr<std::vector<kir::Block>> StageBySteps(const For& loop, std::vector<Producer>& producers, Expr iteration, Expr limit, int64_t versions,
                                                       int64_t steps, bool together);
  absl::Status EmitAhead(const For& loop, const AheadProduct& product, std::vector<Producer>& producers, Expr begin, Expr limit, int64_t versions);

  TileState& s_;
  kir::Kernel k_;
  kir::Block* block_ = nullptr;
  SourceLoc loc_;
  absl::flat_hash_map<BufferId, BufferId> buffers_;  // program → kernel
  absl::flat_hash_map<BufferId, BufferId> staged_;   // program fragment → shared buffer that stands for it in the current loop
  absl::flat_hash_map<BufferId, Expr> slots_;        // program shared buffer → current version
  absl::flat_hash_map<VarId, Expr> substitutes_;     // program var → kernel expression
  absl::flat_hash_map<BufferId, int64_t> versions_;  // program shared buffer → number of versions
  absl::flat_hash_map<BufferId, kir::BarrierId> barriers_;  // program barrier → kernel barrier
  int64_t first_thread_ = 0;                         // of the warps that run the current statements
  RoleParts parts_;                                  // of a program with roles
  absl::flat_hash_set<BufferId> changing_;           // memory that such a program writes
  bool looked_ = false;                              // since the parts met last, each has looked at such memory
  bool all_meet_ = false;                            // in a thread region that all parts run: threads that meet are those of all
  int64_t threads_ = 0;                              // and how many they are
  bool writes_tiles_ = true;                         // they write shared memory by ordinary instructions
  bool region_writes_ = false;                       // so does the thread region that is planned
  RingPlan rings_;
  int split_ = 1;  // blocks of a cluster that work on one block of the grid together
  std::vector<OpenGroup> open_;
  absl::flat_hash_map<BufferId, Expr> lazy_fills_;   // kernel accumulators known to hold this value, not yet written
  absl::flat_hash_map<BufferId, Expr> zero_when_;    // kernel accumulator → its next gemm starts from zero if this holds
  absl::flat_hash_map<const Copy*, const Copy*> forwarded_;  // tile → tensor: the fragment → tile copy it stands for as well
  absl::flat_hash_set<const Copy*> skipped_;         // those fragment → tile copies
  std::map<std::tuple<int64_t, int64_t, int64_t, DType>, BufferId> store_stages_;  // rows, columns, versions, type: what results pass through
  int instances_ = 1;                                // of the role that computes
  Expr turn_;                                        // number of the instance, when there are several
  bool stores_by_warpgroup_ = true;                  // each warpgroup stores what it computed
  int store_stages_wanted_ = 0;                      // copies that leave by TMA or in pieces
  absl::flat_hash_set<BufferId> forwarded_tiles_;    // program tiles that only lead to a tensor
  std::vector<VarId> producer_vars_;                 // variables that the producer has so far
  bool drains_ = false;                              // what EmitProducer makes gives slots back instead of filling them
  int loops_ = 0;                                    // loops of the program around the statement
  bool wgmma_ = false;                               // the launch has gemms by wgmma
  std::vector<BufferId> outstanding_;                // kernel shared buffers with copies in flight outside a pipeline
  absl::flat_hash_set<BufferId> sources_in_flight_;  // tensors that these copies read
};

}  // namespace tilert
