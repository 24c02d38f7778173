// Accesses of a block to global memory: which pairs of them need a barrier in between, because two threads may meet at one element.
#pragma once

#include <vector>

#include "lowering/kernel_ir.h"
#include "lowering/ranges.h"

namespace tilert {

class GlobalOrder {
 public:
  // `kernel` must outlive this.
  explicit GlobalOrder(const kir::Kernel& kernel);

  // What `stmt` itself reads and writes in global memory, and an Elementwise in its body: numbers, equal ones for equal accesses.
  std::vector<int> Accesses(const kir::Stmt& stmt);
  // To be called before the body of a loop or what follows a Let is looked at.
  void Bind(const kir::For& loop);
  void Bind(const kir::Let& let);

  // Something that was accessed before.
  struct Earlier {
    int access = -1;
    VarId loop = kNoId;  // at least one iteration of this loop ago
    bool loose = false;  // its variables may have had any other of their values
    bool operator==(const Earlier&) const = default;
  };
  // `earlier` as seen from the next iteration of a loop over `var` (none: kNoId) that binds `inner` in its body.
  Earlier Around(Earlier earlier, VarId var, const std::vector<VarId>& inner) const;
  // `earlier` as seen from behind that loop.
  Earlier Behind(Earlier earlier, VarId var, const std::vector<VarId>& inner) const;
  // True unless the two only read, cannot meet at an element, or meet at none that different threads access.
  bool Conflict(const Earlier& earlier, int now) const;

 private:
  struct Access {
    BufferId buffer = kNoId;
    bool write = false;
    AtomicOp op = AtomicOp::kInvalid;  // of an atomic
    bool box = false;                  // what follows is known: a box, point p of which the thread of `layout` accesses
    bool async = false;
    std::vector<Expr> start;
    std::vector<int64_t> extent;
    std::vector<int> follows;
    FragmentLayout layout;
    bool operator==(const Access&) const = default;
  };
  void Add(Access access, std::vector<int>* numbers);
  bool Uses(const Access& access, VarId var) const;
  bool SameThread(const Earlier& earlier, const Access& before, const Access& now) const;
  bool Disjoint(const Earlier& earlier, const Access& before, const Access& now) const;

  const kir::Kernel& k_;
  Ranges ranges_;
  std::vector<Access> accesses_;
  std::vector<int64_t> step_;  // of a loop variable; 0: unknown
};

// Variables that statements of `block`, nested ones included, bind.
std::vector<VarId> BoundIn(const kir::Block& block);

}  // namespace tilert
