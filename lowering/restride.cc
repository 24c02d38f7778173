#include "lowering/restride.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/status_util.h"
#include "ir/verifier.h"
#include "lowering/tile_access.h"

namespace tilert {
namespace {

// Which of a launch's block numbers subscripts depend on, element by element.
class SharedReads {
 public:
  SharedReads(const Program& program, const Launch& launch, absl::flat_hash_set<BufferId>& shared)
      : program_(program), launch_(launch), shared_(shared) {}

  void Run() {
    for (const VarId var : launch_.block_vars) numbers_[var].insert(var);
    Walk(launch_.body);
  }

 private:
  using Numbers = absl::flat_hash_set<VarId>;

  // A quotient or a remainder alone has the same value in several blocks.
  void AddNumbers(Expr e, Numbers& found) const {
    const ExprNode& node = program_.exprs[e];
    if (node.op == ExprOp::kFloorDiv || node.op == ExprOp::kFloorMod) return;
    if (node.op == ExprOp::kVar) {
      if (const auto it = numbers_.find(static_cast<VarId>(node.i)); it != numbers_.end())
        found.insert(it->second.begin(), it->second.end());
    }
    for (const Expr operand : node.args) AddNumbers(operand, found);
  }

  void Read(BufferId buffer, absl::Span<const Expr> subscripts) {
    if (program_.buffers[buffer].scope != Scope::kGlobal) return;
    Numbers found;
    for (const Expr e : subscripts) AddNumbers(e, found);
    for (size_t i = 0; i < launch_.block_vars.size(); ++i) {
      if (!program_.exprs.IsInt(launch_.grid[i], 1) && !found.contains(launch_.block_vars[i])) shared_.insert(buffer);
    }
  }

  void Set(VarId var, Expr value) {
    Numbers found;
    AddNumbers(value, found);
    numbers_[var] = std::move(found);
  }

  void Walk(const Block& block) {
    for (const Stmt& stmt : block) {
      if (const auto* let = std::get_if<Let>(&stmt.op)) Set(let->var, let->value);
      if (const auto* loop = std::get_if<For>(&stmt.op)) Set(loop->var, loop->begin);
      if (const auto* copy = std::get_if<Copy>(&stmt.op)) Read(copy->src.buffer, copy->src.start);
      if (const auto* gemm = std::get_if<Gemm>(&stmt.op))
        Read(gemm->a.buffer, gemm->a.start), Read(gemm->b.buffer, gemm->b.start);
      if (const auto* reduce = std::get_if<Reduce>(&stmt.op)) Read(reduce->src.buffer, reduce->src.start);
      ForEachExpr(stmt, [&](Expr root) {
        ForEachNode(program_.exprs, root, [&](Expr, const ExprNode& node) {
          if (node.op == ExprOp::kLoad) Read(static_cast<BufferId>(node.i), node.args);
        });
      });
      for (const Block* child : ChildBlocks(stmt)) Walk(*child);
    }
  }

  const Program& program_;
  const Launch& launch_;
  absl::flat_hash_set<BufferId>& shared_;
  absl::flat_hash_map<VarId, Numbers> numbers_;  // of variables
};

}  // namespace

std::vector<BufferId> SharedInputs(const Program& program) {
  absl::flat_hash_set<BufferId> shared;
  for (const Launch& launch : program.launches) SharedReads(program, launch, shared).Run();
  std::vector<int> uses(program.dims.size());
  ForEachExpr(program, [&](Expr root) {
    ForEachNode(program.exprs, root, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kDim) ++uses[static_cast<size_t>(node.i)];
    });
  });
  for (const ScalarParam& scalar : program.scalars) {
    if (scalar.dim != kNoId) ++uses[scalar.dim];
  }
  // Rows can be put elsewhere only where nothing but this stride says where they are.
  const auto is_free = [&](Expr stride) {
    const ExprNode& node = program.exprs[stride];
    return node.op == ExprOp::kDim && uses[static_cast<size_t>(node.i)] == 1;
  };
  std::vector<BufferId> inputs;
  for (const Param& param : program.params) {
    if (param.kind != Param::Kind::kTensor || param.access != Access::kIn || !shared.contains(param.index)) continue;
    const Buffer& buffer = program.buffers[param.index];
    const int64_t bytes = DTypeBytes(buffer.dtype);
    const bool has_rows = buffer.strides.empty() || (program.exprs.IsInt(buffer.strides.back(), 1) &&
                                                     std::all_of(buffer.strides.begin(), buffer.strides.end() - 1, is_free));
    if (buffer.shape.size() >= 2 && has_rows && bytes > 0 && kFastPitchBytes % bytes == 0)
      inputs.push_back(param.index);
  }
  return inputs;
}

Expr PaddedPitch(ExprArena& exprs, Expr columns, DType dtype) {
  const int64_t bytes = DTypeBytes(dtype);
  const Expr fast = exprs.Int(kFastPitchBytes / bytes), row = exprs.Int(kCopiedPitchBytes / bytes);
  const Expr is_fast = exprs.Binary(ExprOp::kEq, exprs.Binary(ExprOp::kFloorMod, columns, fast), exprs.Int(0));
  const Expr up = exprs.Binary(ExprOp::kAdd, columns, exprs.Int(kCopiedPitchBytes / bytes - 1));
  const Expr padded = exprs.Binary(ExprOp::kMul, exprs.Binary(ExprOp::kFloorDiv, up, row), row);
  return Fold(exprs, exprs.Make(ExprOp::kSelect, DType::kIndex, {is_fast, columns, padded}));
}

Program WithPaddedRows(const Program& program, absl::Span<const BufferId> inputs) {
  Program padded = program;
  ExprArena& exprs = padded.exprs;
  for (const BufferId id : inputs) {
    Buffer& buffer = padded.buffers[id];
    if (!buffer.strides.empty()) continue;
    const size_t rank = buffer.shape.size();
    buffer.strides.assign(rank, exprs.Int(1));
    buffer.strides[rank - 2] = PaddedPitch(exprs, buffer.shape[rank - 1], buffer.dtype);
    for (size_t d = rank - 2; d-- > 0;)
      buffer.strides[d] = Fold(exprs, exprs.Binary(ExprOp::kMul, buffer.strides[d + 1], buffer.shape[d + 1]));
  }
  return padded;
}

bool MayHaveSlowRows(const Program& program) {
  return std::any_of(program.params.begin(), program.params.end(), [&](const Param& param) {
    if (param.kind != Param::Kind::kTensor) return false;
    const Buffer& buffer = program.buffers[param.index];
    if (buffer.shape.size() < 2) return false;
    const auto is_slow = [&](Expr elements) {
      int64_t known = 0;
      return !program.exprs.AsInt(elements, &known) || known * DTypeBytes(buffer.dtype) % kFastPitchBytes != 0;
    };
    if (buffer.strides.empty()) return is_slow(buffer.shape.back());
    return program.exprs.IsInt(buffer.strides.back(), 1) && std::any_of(buffer.strides.begin(), buffer.strides.end() - 1, is_slow);
  });
}

ArgClass PaddedArgClass(const Program& program, absl::Span<const BufferId> inputs) {
  ArgClass args = GeneralArgClass(program);
  args.index32 = true;
  size_t next = 0;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].scope != Scope::kGlobal) continue;
    if (std::find(inputs.begin(), inputs.end(), id) != inputs.end()) args.alignment[next] = kFastPitchBytes;
    ++next;
  }
  return args;
}

absl::StatusOr<VerifiedProgram> RestrideProgram(DType dtype, size_t rank, bool strided) {
  constexpr int kThreads = 256, kRows = 8, kColumns = 512;
  ProgramBuilder b(Cat("restride_", strided ? "strided_" : "", DTypeName(dtype), "_", rank, "d"));
  std::vector<Val> shape, strides(rank, Val(1));
  for (size_t d = 0; d < rank; ++d) shape.push_back(b.Dim(absl::StrCat("n", d)));
  strides[rank - 2] = b.Wrap(PaddedPitch(b.exprs(), b.E(shape[rank - 1]), dtype));
  for (size_t d = rank - 2; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  std::vector<Val> given;
  for (size_t d = 0; strided && d < rank; ++d) given.push_back(d + 1 < rank ? b.Dim(absl::StrCat("s", d)) : Val(1));
  const Buf x = b.Tensor("X", dtype, shape, Access::kIn, given), y = b.Tensor("Y", dtype, shape, Access::kOut, strides);
  Val matrices(1);
  for (size_t d = 0; d + 2 < rank; ++d) matrices = matrices * shape[d];
  const auto blocks = b.OpenLaunch(
      "copy", {CeilDiv(shape[rank - 1], Val(kColumns)), CeilDiv(shape[rank - 2], Val(kRows)), matrices.In(&b)}, Val(kThreads));
  const Buf tile = b.Fragment("tile", dtype, {Val(kRows), Val(kColumns)});
  std::vector<Val> start(rank), extent(rank, Val(1));
  Val rest = blocks[2];
  for (size_t d = rank - 2; d-- > 0; rest = FloorDiv(rest, shape[d])) start[d] = rest % shape[d];
  start[rank - 2] = blocks[1] * Val(kRows), extent[rank - 2] = Val(kRows);
  start[rank - 1] = blocks[0] * Val(kColumns), extent[rank - 1] = Val(kColumns);
  b.Copy(x.At(start, extent), tile);
  b.Copy(tile, y.At(start, extent));
  b.Close();
  TILERT_ASSIGN_OR_RETURN(Program program, b.Build());
  return Verify(std::move(program));
}

}  // namespace tilert
