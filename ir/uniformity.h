// Which threads of a block agree on a value, and run a statement together, inside a thread region (docs/ir_spec.md section 6).
// Everywhere else a value is the whole block's (or role's) by definition.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/program.h"

namespace tilert {

// The largest group of threads that is sure to agree; coarsest first.
enum class Uniformity : uint8_t { kBlock, kWarpgroup, kWarp, kThread };
std::string_view UniformityText(Uniformity u);

// Inference for one thread region. Loads of global and shared memory count as equal where their subscripts are: whoever writes
// there meanwhile has a race. Refers to `program` and `region`, which must stay.
class ThreadUniformity {
 public:
  ThreadUniformity(const Program& program, const ThreadRegion& region);

  Uniformity Of(Expr e) const;
  // Of the control under which `stmt` runs: a statement of the region, at the address at which it is there (kThread for a copy).
  Uniformity ControlOf(const Stmt& stmt) const;

 private:
  void Walk(const Block& block, Uniformity control, const Stmt* loop);
  void Visit(const Stmt& stmt, Uniformity control, const Stmt* loop);
  template <typename Key>
  void Raise(absl::flat_hash_map<Key, Uniformity>& map, Key key, Uniformity u);
  Uniformity OfAll(const std::vector<Expr>& list) const;
  Uniformity OfNode(const ExprNode& node, const absl::flat_hash_map<uint32_t, Uniformity>& below) const;

  const Program& p_;
  const VarId thread_;
  absl::flat_hash_map<VarId, Uniformity> vars_;
  absl::flat_hash_map<BufferId, Uniformity> buffers_;  // local and var buffers
  absl::flat_hash_map<const Stmt*, Uniformity> control_;
  absl::flat_hash_map<const Stmt*, Uniformity> divergence_;  // of loops: where threads leave or skip on their own
  bool changed_ = false;
};

}  // namespace tilert
