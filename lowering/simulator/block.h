// One block of threads in execution.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lowering/simulator/block_async.h"
#include "lowering/simulator/block_state.h"
#include "lowering/simulator/cluster.h"

namespace tilert::sim {

class ThreadBlock {
 public:
  ThreadBlock(Cluster& cluster, int rank);
  int rank() const { return rank_; }
  // Appends the warps that can run; true: all have ended.
  bool AddReady(std::vector<Warp*>* ready);
  void RunBurst(Warp& warp);
  bool RunOneAsync() { return async_.RunOne(); }
  void CheckEnd() { async_.CheckEnd(); }
  std::string DescribeWaits() const;
  void FailWaiting(const std::string& what);
  void EndFibers();  // after a failure

 private:
  friend class AsyncWork;
  // block.cc: scheduling and synchronisation.
  bool BindBlock(Warp& warp, int64_t number);
  // A warp of another block of the cluster touches this one's shared memory or barriers: it must know that this block does not end before.
  void ReachedBy(const Warp& other, uint32_t epoch);
  void CheckReached();
  void ArriveAtBarrier(Warp& warp, const CStmt& stmt);
  void ReleaseBarrier(const Group& group);
  void ArriveAtNamed(Warp& warp, const CBarSync& sync);
  void SyncLanes(Warp& warp);
  void TellLanes(Warp& warp);
  void Finish(Warp& warp);
  bool CountStep();

  // block_flow.cc: control flow.
  void Step(Warp& warp);
  bool Advance(Warp& warp);  // to the next statement; false: the warp is done
  void ExecuteStmt(Warp& warp, const CStmt& stmt);
  void EnterLoop(Warp& warp, const CStmt& stmt, const CFor& loop);
  void EnterRoles(Warp& warp, const CStmt& stmt, const CRoles& roles);
  void LeaveRoles(Warp& warp, const CStmt& stmt);
  void EnterTiles(Warp& warp, const CStmt& stmt, const CForTiles& tiles);
  void BindTile(Warp& warp, const CStmt& stmt, int64_t tile);
  void Unwind(Warp& warp, bool leave_loop);
  void Declare(Warp& warp, const CDeclare& declare);

  // block_eval.cc: expressions.
  const Value* Eval(Warp& warp, const Code& code, uint32_t mask, int n);
  void EvalLoad(Warp& warp, const LoadRef& load, uint32_t mask, DType type, Value* out);
  // The value that is the same in all lanes; an error if it is not.
  Value Uniform(Warp& warp, const Code& code);
  Value* RowOf(Warp& warp, Slot slot);
  void SetVar(Warp& warp, VarId var, Value value);

  // block_memory.cc: elements of buffers.
  // `inside`: dimensions declared to be in range; nullptr, for element accesses: all dimensions of registers, none of memory.
  Places Locate(Warp& warp, BufferId buffer, const Value* const* coords, uint32_t mask, const std::vector<bool>* inside);
  bool IsPoint(Warp& warp, const BufferInfo& info, const Value* const* coords);
  uint32_t CheckBounds(Warp& warp, const Places& places, uint32_t mask, const std::vector<bool>* inside);
  LaneData Read(Warp& warp, const Places& places, uint32_t mask);
  void Write(Warp& warp, const Places& places, uint32_t mask, const LaneData& data);
  void WriteRegisters(Warp& warp, const Places& places, uint32_t mask, const LaneData& data);
  // Records accesses of memory; the lanes where every cell of the element holds a defined value.
  uint32_t TouchCells(Warp& warp, const Places& places, uint32_t mask, AccessKind kind, const LaneData* data = nullptr);
  bool LeavesTheSame(const Places& places, uint32_t mask, int lane, const LaneData& data);
  int CellShift(const BufferInfo& info) const;  // log2 of the bytes of a cell of its shadow
  void TouchPoints(Warp& warp, Registers& registers, const Places& places, uint32_t mask, bool write);
  uint8_t* Memory(BufferId buffer);
  Agent AgentOf(const Warp& warp, int lane) const;
  Observer ObserverOf(const Warp& warp, int lane) const;
  Registers& Touch(Warp& warp, BufferId buffer);  // by ordinary instructions

  // block_points.cc: Elementwise.
  void RunPoints(Warp& warp, const CPoints& points);
  void StartPoints(Warp& warp, const CPoints& points);
  void ResumePoints(Warp& warp);
  void AwaitInPoints(Warp& warp, int slot, bool parity);
  bool AllAre(const Warp& warp, uint32_t mask) const;
  void FenceByLanes(Warp& warp, uint32_t mask);
  void RunShuffle(Warp& warp, const CShuffle& shuffle, uint32_t mask);
  uint32_t RunLanes(Warp& warp, const CBlock& block, uint32_t mask, Flow& flow);
  void RunLaneStmt(Warp& warp, const CStmt& stmt, uint32_t& mask, Flow& flow);
  void RunLaneFor(Warp& warp, const CFor& loop, uint32_t& mask);
  void RunLaneWhile(Warp& warp, const CWhile& loop, uint32_t& mask);
  void RunStore(Warp& warp, const CStore& store, uint32_t mask);
  void RunAtomic(Warp& warp, const CAtomic& atomic, uint32_t mask);
  Places LocateAt(Warp& warp, BufferId buffer, const std::vector<Code>& indices, const std::vector<bool>& inside, uint32_t mask,
                  std::vector<Row>& rows, std::vector<const Value*>& coords);

  // block_copy.cc
  Side BeginSide(Warp& warp, const CAccess& access);
  void LocateSide(Warp& warp, const CCopy& copy, Side& side, int64_t reg, uint32_t mask);
  void RunCopy(Warp& warp, const CCopy& copy);
  LaneData FetchElements(Warp& warp, const CCopy& copy, const Side& src, uint32_t mask, Value fill);
  void CheckVectors(Warp& warp, const CCopy& copy, Side& side, int64_t reg, uint32_t mask);
  void CheckMatrixRows(Warp& warp, const CCopy& copy, const Side& src, int64_t reg, uint32_t mask);
  void IssueAsync(Warp& warp, const CCopy& copy, Side& dst, Side& src, int64_t reg, Value fill);
  void Commit(Warp& warp);
  void Wait(Warp& warp, const CWait& wait);
  void Land(AsyncPiece& piece);
  void LandSome();
  void Settle(Warp& warp, std::vector<AsyncPiece>& pieces);

  // block_cluster.cc
  struct PartCoords {
    std::array<Row, 4> rows;  // version, chunk, thread, element
    std::array<const Value*, 4> list;
  };
  Places PartPlaces(const Warp& warp, BufferId part, int64_t reg, PartCoords& coords) const;
  void RunPartStore(Warp& warp, const CPartStore& store);
  void RunPartAdd(Warp& warp, const CPartAdd& add);
  // block_shares.cc
  void GiveSums(Warp& warp, const CSumsGive& give);
  void TakeSums(Warp& warp, const CSumsTake& take);
  void TakeFrom(Warp& warp, const CSumsTake& take, int64_t block);

  // block_matrix.cc
  void RunMma(Warp& warp, const CMma& mma);
  template <typename T>
  void RunMmaOf(Warp& warp, const CMma& mma);
  template <typename T>
  std::vector<T> Gather(Warp& warp, BufferId buffer, const std::vector<CMma::Element>& elements, size_t cells, bool is_operand);
  void RunLaneReduce(Warp& warp, const CLaneReduce& reduce);

  // The first failure is kept; everything stops at the next statement.
  void Fail(const Warp& warp, int lane, const std::string& what);
  void FailAs(absl::StatusCode code, const Warp& warp, int lane, const std::string& what);
  bool failed() const { return !status_.ok(); }
  std::string Describe(const Places& places, int lane) const;
  std::string Describe(const Agent& agent) const;
  std::string NameOf(const Warp& warp) const;
  const std::string& PathOf(int stmt) const { return kernel_.paths[static_cast<size_t>(stmt)]; }
  const BufferInfo& Info(BufferId buffer) const { return kernel_.buffers[buffer]; }

  Cluster& cluster_;
  Run& run_;
  const Compiled& kernel_;
  const int rank_;         // in the cluster
  const uint32_t number_;  // in the launch
  const Components& components_;
  std::vector<Group> groups_;  // [0]: the block
  std::vector<Warp> warps_;
  std::vector<kir::Share> shares_;  // where blocks share the iterations of tiles: this one's
  std::vector<uint8_t> shared_;
  SharedShadow shared_shadow_;
  std::vector<Agent> reached_;  // by component of the other warp: the last time
  AsyncWork async_;
  absl::Status& status_;  // of the cluster
  // The Elementwise that runs, and the register that its points are in now.
  const CPoints* points_ = nullptr;
  int64_t point_reg_ = 0;
  uint32_t replica_zero_ = 0;
  uint64_t point_base_ = 0, point_ = 0;  // 0: not in a loop over several points
};

}  // namespace tilert::sim
