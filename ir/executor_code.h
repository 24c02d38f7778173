// Expressions compiled for evaluation over many lanes at once: a flat list of instructions on registers of one Value a lane.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/bind_args.h"
#include "ir/program.h"

namespace tilert::exec {

using Reg = uint32_t;
inline constexpr Reg kNoReg = 0xffffffff;

struct Instr {
  ExprOp op = ExprOp::kInvalid;
  DType type = DType::kInvalid;  // of the result
  DType from = DType::kInvalid;  // of the operands
  Reg dst = kNoReg;
  uint32_t first = 0, count = 0;  // operands: Code::operands[first, first + count)
  Reg mask = kNoReg;              // kLoad: lanes that need the element; none: every active lane
  int32_t slot = -1;              // kVar: the variable's place among the lanes' variables; −1: one value for the whole block
  Value value = {};               // immediates; kVar, kLoad: .i is the id
};

struct Code {
  std::vector<Instr> instrs;
  std::vector<Reg> operands;
  std::vector<Reg> results;  // one a root
  uint32_t regs = 0;
};

// Compiles expressions of one launch. Dims, scalars and constants become immediates.
class CodeCompiler {
 public:
  CodeCompiler(const Program& program, const BoundArgs& bound)
      : program_(program), bound_(bound), slots_(program.vars.size(), -1), homes_(slots_) {}

  // From now on `var` has a value for each lane, or one for the block.
  void DeclareLaneVar(VarId var) {
    if (homes_[var] < 0) homes_[var] = next_slot_++;
    slots_[var] = homes_[var];
  }
  void DeclareBlockVar(VarId var) { slots_[var] = -1; }
  const std::vector<int32_t>& lane_slots() const { return homes_; }  // by VarId; −1: never a lane variable
  int32_t num_slots() const { return next_slot_; }

  absl::StatusOr<Code> Compile(absl::Span<const Expr> roots);

 private:
  absl::StatusOr<Reg> Visit(Expr e, Reg mask, int depth);
  absl::StatusOr<Reg> VisitLazy(Expr e, const ExprNode& node, Reg mask, int depth);
  absl::StatusOr<Reg> VisitLeaf(const ExprNode& node);
  Reg Emit(Instr instr, absl::Span<const Reg> operands);
  Reg Coerce(Reg reg, DType from, DType to);
  Reg Logic(ExprOp op, Reg a, Reg b);
  bool HasLoad(Expr e);

  const Program& program_;
  const BoundArgs& bound_;
  std::vector<int32_t> slots_;  // what a use of the variable means now
  std::vector<int32_t> homes_;
  int32_t next_slot_ = 0;
  Code code_;
  absl::flat_hash_map<std::pair<uint32_t, Reg>, Reg> done_;
  absl::flat_hash_map<uint32_t, bool> has_load_;
};

}  // namespace tilert::exec
