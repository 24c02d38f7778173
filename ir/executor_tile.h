// The tile statements on boxes: copy, fill, gemm, reduce, scan.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "ir/executor_memory.h"
#include "ir/program.h"

namespace tilert::exec {

// Scratch memory and the memory of one block. InvalidArgument: boxes that do not agree in shape.
class TileOps {
 public:
  TileOps(Memory* memory, const ExecOptions& options) : memory_(*memory), options_(options) {}

  // `fill`: of the source's type.
  absl::Status Copy(const Box& src, const Box& dst, Value fill);
  absl::Status Atomic(AtomicOp op, const Box& src, const Box& dst);
  // `value`: of the destination's type.
  void Fill(Box dst, Value value);
  absl::Status Gemm(const tilert::Gemm& op, const Box& a, const Box& b, const Box& c);
  absl::Status Reduce(const tilert::Reduce& op, const Box& src, const Box& dst);
  absl::Status Scan(const tilert::Scan& op, const Box& src, const Box& dst);

 private:
  struct Matrix {
    int64_t rows = 0, columns = 0;
    std::vector<Value> values;
  };
  DType TypeOf(const Box& box) const { return memory_.view(box.buffer).buffer->dtype; }
  absl::string_view NameOf(const Box& box) const { return memory_.view(box.buffer).buffer->name; }
  Value OutsideOf(const Box& box) const { return memory_.view(box.buffer).outside; }
  // Reads all of `box` as values of type `type`; `fill`, of the box's own type, stands for what is outside.
  absl::Status ReadAll(const Box& box, DType type, Value fill, std::vector<Value>* out);
  // The same for a box that is a matrix; with `clear`, all zero instead.
  absl::Status ReadMatrix(const Box& box, DType type, bool clear, Matrix* out);
  absl::Status CheckSize(const Box& box) const;
  absl::Status CheckSameShape(const Box& src, const Box& dst) const;
  void Clip(Box* src, Box* dst) const;
  template <typename F>
  absl::Status Stream(Box src, Box dst, Value fill, F write);

  Memory& memory_;
  const ExecOptions& options_;
  Matrix a_, b_, c_;
  std::vector<Value> row_;
};

}  // namespace tilert::exec
