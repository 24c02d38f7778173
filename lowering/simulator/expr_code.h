// Expressions of a kernel as flat code over 32 lanes: compiled once, run for every batch of points.
//
// Operands are slots: s ≥ 0 is a row of 32 values in the warp's frame (the kernel's variables, then temporaries), s < 0 is row
// ~s of the constants (immediates, dims, scalars).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/numeric.h"
#include "lowering/kernel_ir.h"
#include "lowering/ranges.h"

namespace tilert::sim {

using Slot = int32_t;
using Row = std::array<Value, kLanes>;

struct Instr {
  enum class Kind : uint8_t {
    kOp,       // dst = op(a, b, c)
    kLoad,     // dst = load `load` for the active lanes
    kMask,     // until the matching kUnmask only lanes where `a` is true are active
    kMaskNot,  // … where `a` is false
    kUnmask,
  };
  Kind kind = Kind::kOp;
  ExprOp op = ExprOp::kInvalid;
  DType type = DType::kInvalid;    // of the first operand (Select: of the result)
  DType result = DType::kInvalid;
  Slot dst = 0, a = 0, b = 0, c = 0;
  int32_t load = -1;
  // What the emitter relies on of the result: that it lies in [lo, hi].
  bool bounded = false;
  int64_t lo = 0, hi = 0;
};

struct LoadRef {
  BufferId buffer = kNoId;
  std::vector<Slot> indices;
  std::vector<bool> inside;  // of each subscript: proven, so that the emitted load has no guard
};

struct Code {
  std::vector<Instr> instrs;
  std::vector<LoadRef> loads;
  Slot result = 0;
  DType type = DType::kInvalid;
  // Holds a load: evaluated by every lane on its own, even where the value must be the same in all of them.
  bool per_lane() const { return !loads.empty(); }
};

class ExprCompiler {
 public:
  // `dims`, `scalars`: their values in this run.
  ExprCompiler(const kir::Kernel& kernel, const std::vector<int64_t>& dims, const std::vector<Value>& scalars)
      : kernel_(kernel), dims_(dims), scalars_(scalars), ranges_(kernel) {}

  Code Compile(Expr root);
  // The value converted to `type`.
  Code CompileAs(Expr root, DType type);
  Slot Constant(Value value);
  // Of an access to a buffer: which of its subscripts are proven to be inside, here.
  std::vector<bool> Inside(BufferId buffer, const std::vector<Expr>& indices) const;
  // What is known where the next expression stands; the emitter knows the same.
  Ranges& ranges() { return ranges_; }
  void BindKernelVars();

  const std::vector<Row>& constants() const { return constants_; }
  // Rows of a warp's frame.
  size_t frame_rows() const { return kernel_.vars.size() + temps_; }

 private:
  Slot Visit(Expr e);
  Slot VisitMasked(Instr::Kind kind, Slot cond, Expr e);
  Slot VisitLogic(const ExprNode& node);
  Slot Emit(Instr instr);

  const kir::Kernel& kernel_;
  const std::vector<int64_t>& dims_;
  const std::vector<Value>& scalars_;
  Ranges ranges_;
  std::vector<Row> constants_;
  std::map<int64_t, Slot> constant_slots_;  // by bits
  size_t temps_ = 0;

  // Of the code being compiled.
  Code code_;
  size_t next_temp_ = 0;
  absl::flat_hash_map<uint32_t, Slot> done_;  // nodes whose value is at hand under the current mask
};

// out[l] = op(a[l], b[l], c[l]) for n lanes. `instr.kind` is kOp.
void EvalOp(const Instr& instr, const Value* a, const Value* b, const Value* c, Value* out, int n);

// The lanes of a row of bools that are true.
inline uint32_t TrueLanes(const Value* row, int n = kLanes) {
  uint32_t mask = 0;
  for (int l = 0; l < n; ++l) mask |= uint32_t{row[l].i != 0} << l;
  return mask;
}

}  // namespace tilert::sim
