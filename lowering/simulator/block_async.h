// What goes on in a block besides its warps: rings of mbarriers, TMA, wgmma, order tokens.
//
// Asynchronous work is checked when it is issued, as accesses that last until a wait knows them done (a component of the
// clocks each), and happens at a random moment: wgmma in order, between issue and wait; a TMA load at once; a TMA store's
// reads, then its writes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lowering/simulator/block_state.h"

namespace tilert::sim {

class ThreadBlock;

class AsyncWork {
 public:
  explicit AsyncWork(ThreadBlock& block);

  // A statement of the Hopper family but Roles and ForTiles. May leave the warp waiting.
  void Execute(Warp& warp, const CStmt& stmt);
  // Whether a waiting warp may go on, and letting it.
  bool CanPass(const Warp& warp) const;
  void Pass(Warp& warp);
  // Some of the pending work happens; false: there is none.
  bool RunOne();
  // None, one or all of it, as this block is inclined.
  void RunSome();

  void CheckEnd(Warp& warp);  // the warp has ended
  void CheckEnd();            // all have
  std::string Awaited(const Warp& warp) const;
  // The wgmma that may still touch a register buffer in flight.
  int StmtOf(const Warp& warp, uint32_t group) const;
  std::string SlotName(int slot) const;
  // Arrivals of the lanes in `mask` by themselves; `all`: of all lanes of the warp.
  void ArriveByLanes(Warp& warp, const CMbarArrive& arrive, uint32_t mask, bool all);
  // One after the other; what each waits for only itself knows.
  void WaitByLanes(Warp& warp, const CMbarWait& wait, uint32_t mask);
  void ExpectByLanes(Warp& warp, const CMbarExpect& expect, uint32_t mask);
  // Ordinary instructions have written to the shared buffer.
  void SharedWritten(BufferId buffer);

 private:
  struct Slot {
    kir::RingId ring = 0;
    Mbarrier full, empty;
    uint32_t filled = 0, acquired = 0;  // rounds
  };
  struct Token {  // of a role: what each instance has passed on so far
    struct Pass {
      int warps = 0;
      Clock clock;
    };
    std::array<std::vector<Pass>, 2> passes;
  };
  // Elements of an operand as floats, A as [m][k], B as [k][n].
  struct Packed {
    std::vector<int64_t> start;
    uint64_t stamp = 0;
    std::vector<float> values;
  };

  // block_async.cc
  int SlotOf(kir::RingId ring, int64_t position) const;
  int SlotComponent(int slot) const;  // of clocks
  uint32_t RoundOf(kir::RingId ring, int64_t position) const;
  const Mbarrier& Awaits(const Warp& warp, const CAcquire& acquire, bool* parity) const;
  bool Issues(const Warp& warp) const;  // holds the thread that issues TMA
  void WaitAt(Warp& warp);
  void PassRing(Warp& warp, const CAcquire& acquire);
  void Run(Warp& warp, const CExpectTx& expect);
  void Run(Warp& warp, const CRelease& release);
  void ReleaseAt(Warp& warp, AsyncWork& owner, int number, uint32_t round);
  void Run(Warp& warp, const CAdvance& advance);
  int BarrierSlot(Warp& warp, kir::BarrierId id, int64_t at, int lane);
  void ArriveAt(Warp& warp, int number, int lane, const Clock& past);
  void Run(Warp& warp, const CMbarArrive& arrive);
  void Run(Warp& warp, const CMbarWait& wait);
  void Run(Warp& warp, const CMbarExpect& expect);
  Row ByLanes(Warp& warp, const Code& value, uint32_t mask);
  void Announce(Warp& warp, int lane, int number, int64_t bytes);
  void Run(Warp& warp, const CMbarComplete& complete);
  bool IsByHand(int number) const;
  int64_t OrderNeeds(const Warp& warp) const;
  void PassOrder(Warp& warp);
  void ArriveAtSync(Warp& warp, const CStmt& stmt);
  void FailAt(int stmt, const std::string& what);

  // block_tma.cc
  struct Chunk {
    int64_t shared, global, begin, end;
  };  // 16 bytes; begin … end: elements inside the tensor
  template <typename Visit>
  void ForEachChunk(const CTmaTile& tile, int64_t version, const std::vector<int64_t>& coords, int share, Visit visit) const;
  std::vector<int64_t> Coords(Warp& warp, const CTmaTile& tile);
  Observer AsyncObserver(const Warp& warp, int lane, int component, uint32_t epoch) const;
  void TouchTile(Warp& warp, BufferId tile, int64_t version, bool write, const Observer& now);
  void TouchShare(Warp& warp, ThreadBlock& owner, const CTmaTile& tile, int64_t version, const std::vector<int64_t>& coords, int share,
                  bool write, const Observer& now);
  std::vector<int> Receivers(kir::ClusterAxes axes) const;
  void Receive(Warp& warp, ThreadBlock& sender, const PendingLoad& work);
  void TouchTensor(Warp& warp, const CTmaTile& tile, int64_t version, const std::vector<int64_t>& coords, int share,
                   AccessKind kind, const Observer& now);
  void Run(Warp& warp, const CStmt& stmt, const CTmaLoad& load);
  void LoadAt(Warp& warp, const CStmt& stmt, const CTmaLoad& load);
  void Run(Warp& warp, const CStmt& stmt, const CTmaStore& store);
  void Run(Warp& warp, const CStoreWait& wait);
  void Land(const PendingLoad& load);
  void Step(Warp& warp, PendingStore& store);

  // block_wgmma.cc
  void Issue(Warp& warp, const CStmt& stmt, const CWgmma& gemm);
  void Run(Warp& warp, const CWgmmaWait& wait);
  bool TouchRegisters(Warp& warp, const CWgmma& gemm, bool zero);
  void TouchOperand(Warp& warp, const CAccess& access, const std::vector<int64_t>& start, int64_t first, int64_t count,
                    int64_t depth);
  void Multiply(Warp& warp, const PendingWgmma& work);
  const std::vector<float>& Pack(const CWgmma& gemm, const CAccess& access, const std::vector<int64_t>& start, bool is_b);
  std::vector<float> GatherRegisters(Warp& warp, BufferId buffer, const std::vector<CElement>& elements, size_t cells, int stmt,
                                     bool is_operand);

  ThreadBlock& block_;
  const Compiled& kernel_;
  std::vector<Slot> slots_;    // of all rings
  std::vector<Token> tokens_;  // by role
  std::vector<PendingLoad> loads_;
  std::vector<uint64_t> written_;                           // by BufferId: how often it was written,
  std::vector<std::vector<uint64_t>> landed_;               // and each version by TMA
  std::vector<std::array<std::vector<Packed>, 2>> packed_;  // by CWgmma::number: A, B
  int eagerness_ = 0;
};

}  // namespace tilert::sim
