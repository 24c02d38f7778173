#include "sample_kernels.h"

namespace tilert {
namespace {

using kir::CopyMethod;
using kir::Space;

constexpr int64_t kTile = 64, kTileK = 32;

class GemmMaker {
 public:
  kir::Kernel Make(SampleIds* ids) {
    k_.name = "sample_gemm";
    k_.dims = {"M", "N", "K"};
    k_.warps = 4;
    k_.block_vars = {Var("bx"), Var("by")};
    k_.grid = {Op(ExprOp::kFloorDiv, Op(ExprOp::kAdd, Dim(1), Int(kTile - 1)), Int(kTile)),
               Op(ExprOp::kFloorDiv, Op(ExprOp::kAdd, Dim(0), Int(kTile - 1)), Int(kTile))};
    const VarId ko = Var("ko"), i = Var("i"), j = Var("j");
    const BufferId a = Global("A", 0, 2), b = Global("B", 1, 2), c = Global("C", 0, 1);
    k_.buffers[c].written = true;
    const BufferId a_shared = Shared("A_shared"), b_shared = Shared("B_shared");
    const WarpGrid grid{2, 2};
    const BufferId acc = Register("acc", DType::kFloat32, MmaAccumulatorLayout(kTile, kTile, grid));
    const BufferId a_reg = Register("A_reg", DType::kBFloat16, MmaOperandALayout(kTile, kTileK, grid));
    const BufferId b_reg = Register("B_reg", DType::kBFloat16, MmaOperandBLayout(kTile, kTileK, grid));
    *ids = {a, b, c, a_shared, b_shared, a_reg, b_reg, acc, k_.block_vars[0], k_.block_vars[1], ko, i, j};

    Add(k_.body, kir::Declare{acc, true});
    Issue(k_.body, *ids, Int(0), Int(0));
    kir::For loop{ko, Int(0), Op(ExprOp::kFloorDiv, Dim(2), Int(kTileK)), Int(1), kir::Unroll::kNo, {}};
    const Expr slot = Op(ExprOp::kFloorMod, V(ko), Int(2)), next = Op(ExprOp::kAdd, V(ko), Int(1));
    Add(loop.body, kir::CpAsyncWait{0, {{a_shared, slot}, {b_shared, slot}}});
    Add(loop.body, kir::BarSync{});
    Issue(loop.body, *ids, next, Op(ExprOp::kFloorMod, next, Int(2)));
    Add(loop.body, kir::Declare{a_reg, false});
    Add(loop.body, kir::Declare{b_reg, false});
    Ldmatrix(loop.body, a_reg, a_shared, slot);
    Ldmatrix(loop.body, b_reg, b_shared, slot);
    Add(loop.body, kir::Mma{acc, a_reg, b_reg});
    Add(k_.body, std::move(loop));

    kir::Elementwise store{k_.buffers[acc].layout, {i, j}, {}};
    const Expr row = Op(ExprOp::kAdd, Op(ExprOp::kMul, V(k_.block_vars[1]), Int(kTile)), V(i));
    const Expr col = Op(ExprOp::kAdd, Op(ExprOp::kMul, V(k_.block_vars[0]), Int(kTile)), V(j));
    const Expr value = k_.exprs.Cast(k_.exprs.Load(acc, DType::kFloat32, {V(i), V(j)}), DType::kBFloat16);
    Add(store.body, kir::Store{c, {row, col}, value});
    Add(k_.body, std::move(store));
    return std::move(k_);
  }

 private:
  Expr Int(int64_t value) { return k_.exprs.Int(value); }
  Expr Dim(int64_t index) { return k_.exprs.Leaf(ExprOp::kDim, index, DType::kIndex); }
  Expr V(VarId id) { return k_.exprs.Leaf(ExprOp::kVar, id, DType::kIndex); }
  Expr Op(ExprOp op, Expr a, Expr b) { return k_.exprs.Binary(op, a, b); }
  VarId Var(const char* name) {
    k_.vars.push_back({name, DType::kIndex});
    return static_cast<VarId>(k_.vars.size() - 1);
  }
  template <typename T>
  static void Add(kir::Block& block, T op) {
    block.push_back({std::move(op), {}});
  }
  BufferId AddBuffer(kir::Buffer buffer) {
    k_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(k_.buffers.size() - 1);
  }
  static kir::Buffer Named(const char* name, DType type, Space space) {
    kir::Buffer buffer;
    buffer.name = name;
    buffer.dtype = type;
    buffer.space = space;
    return buffer;
  }
  BufferId Global(const char* name, int64_t rows, int64_t cols) {
    kir::Buffer buffer = Named(name, DType::kBFloat16, Space::kGlobal);
    buffer.program_buffer = static_cast<BufferId>(k_.buffers.size());
    buffer.shape = {Dim(rows), Dim(cols)};
    buffer.strides = {Dim(cols), Int(1)};
    buffer.alignment = 16;
    return AddBuffer(std::move(buffer));
  }
  BufferId Shared(const char* name) {
    kir::Buffer buffer = Named(name, DType::kBFloat16, Space::kShared);
    buffer.shared = SwizzledShared({kTile, kTileK}, 2);
    buffer.versions = 2;
    buffer.offset = k_.shared_bytes;
    k_.shared_bytes += 2 * buffer.shared.bytes();
    return AddBuffer(std::move(buffer));
  }
  BufferId Register(const char* name, DType type, FragmentLayout layout) {
    kir::Buffer buffer = Named(name, type, Space::kRegister);
    buffer.layout = std::move(layout);
    return AddBuffer(std::move(buffer));
  }
  // The copies of k-block `block` into `slot`, as one group.
  void Issue(kir::Block& body, const SampleIds& ids, Expr block, Expr slot) {
    const auto copy = [&](BufferId dst, BufferId src, VarId block_var) {
      kir::Copy op;
      op.method = CopyMethod::kCpAsync;
      op.dst = {dst, {slot, Int(0), Int(0)}, {-1, 0, 1}, {true, true, true}};
      op.src = {src, {Op(ExprOp::kMul, V(block_var), Int(kTile)), Op(ExprOp::kMul, block, Int(kTileK))}, {0, 1}, {false, false}};
      op.layout = BlockedLayout({kTile, kTileK}, k_.warps, 8);
      op.width = 8;
      Add(body, op);
    };
    copy(ids.a_shared, ids.a, ids.by);
    copy(ids.b_shared, ids.b, ids.bx);
    Add(body, kir::CpAsyncCommit{});
  }
  void Ldmatrix(kir::Block& body, BufferId dst, BufferId src, Expr slot) {
    kir::Copy op;
    op.method = CopyMethod::kLdmatrix;
    op.dst = {dst, {Int(0), Int(0)}, {0, 1}, {true, true}};
    op.src = {src, {slot, Int(0), Int(0)}, {-1, 0, 1}, {true, true, true}};
    op.layout = k_.buffers[dst].layout;
    op.width = 8;
    Add(body, op);
  }

  kir::Kernel k_;
};

}  // namespace

kir::Kernel SampleGemm(SampleIds* ids) { return GemmMaker().Make(ids); }

}  // namespace tilert
