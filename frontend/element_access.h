#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "frontend/views.h"
#include "ir/program.h"

namespace tilert::frontend {

// Elements of views (frontend/views.h) in terms of the buffers that exist, one launch at a time.
class ElementAccess {
 protected:
  // `views` and `program` must outlive this object.
  ElementAccess(const std::vector<View>& views, Program* program);

  // What follows belongs to this launch.
  void EnterLaunch(uint32_t index);
  // A variable takes values from the least of `begin` to below the greatest of `end`.
  void NoteVar(VarId var, Expr begin, Expr end);

  // Null for what is no view in this launch.
  const View* Find(BufferId buffer) const;
  // `root` without views.
  Expr Lower(Expr root);
  // Where in its base an element of a view lies, until the base is no view or is one of another dtype.
  void Resolve(BufferId* buffer, std::vector<Expr>* indices);

  Expr Binary(ExprOp op, Expr a, Expr b);
  // Is `index` within [0, extent)? None if it is in any case.
  Expr Inside(Expr index, Expr extent);
  // Either may be none.
  Expr Both(Expr a, Expr b);

  Program& p_;
  const std::vector<View>& views_;

 private:
  // Numbers between which an index lies, both included.
  struct Bounds {
    int64_t low, high;
  };
  std::optional<Bounds> BoundsOf(Expr e) const;
  Expr LowerLoad(const ExprNode& node);
  Expr Element(BufferId buffer, std::vector<Expr> indices);

  absl::flat_hash_map<BufferId, const View*> active_;
  absl::flat_hash_map<VarId, Bounds> bounds_;
};

}  // namespace tilert::frontend
