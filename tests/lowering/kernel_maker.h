// Kernels written out by hand, statement by statement, for tests of what takes KernelIr.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lowering/kernel_ir.h"

namespace tilert {

class KernelMaker {
 public:
  explicit KernelMaker(int warps, int64_t blocks = 1) {
    k.name = "made";
    k.warps = warps;
    k.block_vars = {Var("bx")};
    k.grid = {Int(blocks)};
  }

  Expr Int(int64_t value) { return k.exprs.Int(value); }
  Expr Real(double value) { return k.exprs.Float(value, DType::kFloat32); }
  Expr Dim(const std::string& name) {
    for (size_t d = 0; d < k.dims.size(); ++d) {
      if (k.dims[d] == name) return k.exprs.Leaf(ExprOp::kDim, static_cast<int64_t>(d), DType::kIndex);
    }
    k.dims.push_back(name);
    return k.exprs.Leaf(ExprOp::kDim, static_cast<int64_t>(k.dims.size()) - 1, DType::kIndex);
  }
  VarId Var(const char* name, DType type = DType::kIndex) {
    k.vars.push_back({name, type});
    return static_cast<VarId>(k.vars.size() - 1);
  }
  Expr V(VarId id) { return k.exprs.Leaf(ExprOp::kVar, id, k.vars[id].dtype); }
  Expr Op(ExprOp op, Expr a, Expr b) { return k.exprs.Binary(op, a, b); }
  Expr Sum(Expr a, Expr b) { return Op(ExprOp::kAdd, a, b); }
  Expr Load(BufferId buffer, const std::vector<Expr>& at) { return k.exprs.Load(buffer, k.buffers[buffer].dtype, at); }
  Expr bx() { return V(k.block_vars[0]); }

  // A contiguous tensor; program_buffer counts the tensors made so far.
  BufferId Global(const char* name, DType type, const std::vector<Expr>& shape, bool written = false, uint32_t alignment = 16) {
    kir::Buffer buffer{.name = name, .dtype = type, .space = kir::Space::kGlobal};
    buffer.program_buffer = tensors_++;
    buffer.shape = shape;
    buffer.strides.assign(shape.size(), Int(1));
    for (size_t d = shape.size(); d-- > 1;) buffer.strides[d - 1] = Op(ExprOp::kMul, buffer.strides[d], shape[d]);
    buffer.written = written;
    buffer.alignment = alignment;
    return AddBuffer(std::move(buffer));
  }
  BufferId Shared(const char* name, DType type, const std::vector<int64_t>& extents, int64_t versions = 1) {
    kir::Buffer buffer{.name = name, .dtype = type, .space = kir::Space::kShared};
    buffer.shared = RowMajorShared(extents, DTypeBytes(type));
    buffer.versions = versions;
    buffer.offset = k.shared_bytes;
    k.shared_bytes += versions * ((buffer.shared.bytes() + 127) / 128 * 128);
    return AddBuffer(std::move(buffer));
  }
  BufferId Register(const char* name, DType type, FragmentLayout layout) {
    kir::Buffer buffer{.name = name, .dtype = type, .space = kir::Space::kRegister};
    buffer.layout = std::move(layout);
    return AddBuffer(std::move(buffer));
  }
  BufferId Scalar(const char* name, DType type) { return Register(name, type, FragmentLayout{{}, k.warps}); }

  template <typename T>
  void Add(T op) {
    block_->push_back({std::move(op), {}});
  }
  // What `body` adds, as a block of its own.
  template <typename F>
  kir::Block BlockOf(F body) {
    kir::Block block;
    kir::Block* const outer = std::exchange(block_, &block);
    body();
    block_ = outer;
    return block;
  }
  // What `body` adds goes into the first child block of `op`.
  template <typename T, typename F>
  void With(T op, F body) {
    kir::Stmt stmt{std::move(op), {}};
    *kir::ChildBlocks(stmt)[0] = BlockOf(body);
    block_->push_back(std::move(stmt));
  }
  template <typename F>
  void Points(const FragmentLayout& layout, const std::vector<VarId>& vars, F body) {
    With(kir::Elementwise{layout, vars, {}}, body);
  }
  void Store(BufferId buffer, const std::vector<Expr>& at, Expr value) { Add(kir::Store{buffer, at, value}); }
  // All of one buffer to all of the other (version 0), one iteration dim a dim.
  kir::Copy WholeCopy(kir::CopyMethod method, BufferId dst, BufferId src, const FragmentLayout& layout, int64_t width = 1) {
    return {method, Whole(dst, layout.dims.size()), Whole(src, layout.dims.size()), layout, width};
  }
  kir::TileAccess Whole(BufferId buffer, size_t rank) {
    kir::TileAccess access;
    access.buffer = buffer;
    if (k.buffers[buffer].space == kir::Space::kShared) Extend(access, -1);
    for (size_t d = 0; d < rank; ++d) Extend(access, static_cast<int>(d));
    return access;
  }

  kir::Kernel k;

 private:
  void Extend(kir::TileAccess& access, int follows) {
    access.start.push_back(Int(0));
    access.follows.push_back(follows);
    access.inside.push_back(true);
  }
  BufferId AddBuffer(kir::Buffer buffer) {
    k.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(k.buffers.size() - 1);
  }

  BufferId tensors_ = 0;
  kir::Block* block_ = &k.body;
};

}  // namespace tilert
