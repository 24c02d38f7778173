// The expression half of ProgramBuilder: promotion of operands, and statements that convert their values.
#include <utility>

#include "ir/builder.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

bool IsFloat8(DType type) { return IsFloat(type) && DTypeBits(type) == 8; }
bool IsLogic(ExprOp op) { return op == ExprOp::kAnd || op == ExprOp::kOr || op == ExprOp::kNot; }
bool IsBitOp(ExprOp op) {
  return op == ExprOp::kBitAnd || op == ExprOp::kBitOr || op == ExprOp::kBitXor || op == ExprOp::kBitNot;
}
bool IsRounding(ExprOp op) { return op >= ExprOp::kFloor && op <= ExprOp::kTrunc; }

// Operators that compute in floats whatever they are given.
bool IsFloatOp(ExprOp op) {
  return op == ExprOp::kDiv || op == ExprOp::kPow || op == ExprOp::kFma || (op >= ExprOp::kExp && op <= ExprOp::kRsqrt);
}

// The type in which `op` computes, given the common type of its operands.
DType ComputeType(ExprOp op, DType common) {
  if (IsComparison(op) || op == ExprOp::kIsNan || op == ExprOp::kIsInf) return common;
  if (IsFloatOp(op) && !IsFloat(common)) return DType::kFloat32;
  if (IsFloat8(common)) return DType::kFloat32;
  if (common == DType::kBool && !IsBitOp(op)) return DType::kInt32;
  return common;
}

}  // namespace

Val ProgramBuilder::Load(const Buf& buffer, const std::vector<Val>& indices) {
  const Buffer& b = program_.buffers[buffer.id()];
  if (indices.size() != b.shape.size()) {
    Error(Cat(b.name, " has ", b.shape.size(), " dimensions and is read with ", indices.size(), " subscripts"));
  }
  return Wrap(program_.exprs.Load(buffer.id(), b.dtype, Es(indices)));
}

DType ProgramBuilder::Common(const std::vector<Val>& operands) {
  DType common = DType::kInvalid;
  bool weak_float = false;
  for (const Val& v : operands) {
    if (v.is_weak()) {
      weak_float |= v.is_weak_float();
    } else {
      common = common == DType::kInvalid ? v.dtype() : CommonType(common, v.dtype());
    }
  }
  if (common == DType::kInvalid) common = DType::kIndex;
  return weak_float && !IsFloat(common) ? DType::kFloat32 : common;
}

Val ProgramBuilder::Apply(ExprOp op, std::vector<Val> operands) {
  for (const Val& v : operands) {
    if (v) continue;
    Error(Cat("operator ", ExprOpText(op), " needs a value and got none"));
    return Val();
  }
  if (static_cast<int>(operands.size()) != ExprArity(op)) {
    Error(Cat("operator ", ExprOpText(op), " takes ", ExprArity(op), " operands, not ", operands.size()));
    return Val();
  }
  DType type = IsLogic(op) ? DType::kBool : ComputeType(op, Common(operands));
  if (op == ExprOp::kShl || op == ExprOp::kShr) type = ComputeType(op, Common({operands[0]}));
  if (op == ExprOp::kFloorDiv && IsFloat(type)) return Apply(ExprOp::kFloor, {Apply(ExprOp::kDiv, std::move(operands))});
  if (IsRounding(op) && !IsFloat(type)) return operands[0].In(this);
  ExprArgs args;
  for (Val& v : operands) {
    // A number too big for the type it meets keeps its value: the operation is then done in index.
    v = v.As(this, type);
    if (v.dtype() == DType::kIndex && IsInteger(type)) type = DType::kIndex;
  }
  for (const Val& v : operands) args.push_back(Cast(v, type).expr());
  const bool gives_bool = IsComparison(op) || IsLogic(op) || op == ExprOp::kIsNan || op == ExprOp::kIsInf;
  return Wrap(program_.exprs.Make(op, gives_bool ? DType::kBool : type, args));
}

Val ProgramBuilder::Cast(Val value, DType type) {
  value = value.As(this, type);
  if (!value || value.dtype() == type) return value;
  return Wrap(program_.exprs.Cast(value.expr(), type));
}

Val ProgramBuilder::Reinterpret(Val value, DType type) {
  return Wrap(program_.exprs.Make(ExprOp::kReinterpret, type, {E(value)}));
}

Val ProgramBuilder::Select(Val cond, Val if_true, Val if_false) {
  const DType type = Common({if_true, if_false});
  return Wrap(program_.exprs.Make(ExprOp::kSelect, type,
                                  {E(Cast(cond, DType::kBool)), Cast(if_true, type).expr(), Cast(if_false, type).expr()}));
}

Expr ProgramBuilder::Index(Val value) {
  if (!value) Error("an extent, subscript or bound has no value");
  return IsInteger(value.dtype()) ? E(Cast(value, DType::kIndex)) : E(value);
}

std::vector<Expr> ProgramBuilder::Es(const std::vector<Val>& values) {
  std::vector<Expr> result;
  for (const Val& v : values) result.push_back(Index(v));
  return result;
}

Region ProgramBuilder::R(const Tile& tile) {
  const Buffer& b = tile.buf.buffer();
  Region region{tile.buf.id(), {}, {}};
  if (tile.is_whole) {
    region.start.assign(b.shape.size(), program_.exprs.Int(0));
    region.extent = b.shape;
    return region;
  }
  if (tile.start.size() != b.shape.size() || tile.extent.size() != b.shape.size()) {
    Error(Cat("a region of ", b.name, " needs ", b.shape.size(), " starts and extents, not ", tile.start.size(), " and ",
              tile.extent.size()));
  }
  region.start = Es(tile.start);
  region.extent = Es(tile.extent);
  return region;
}

Buf ProgramBuilder::Declare(std::string name, DType type, Scope scope, const std::vector<Val>& shape) {
  return Buf(this, NewBuffer({std::move(name), type, scope, Es(shape)}));
}

Buf ProgramBuilder::Alloc(std::string name, DType type, Scope scope, const std::vector<Val>& shape, uint32_t arrive_count) {
  const BufferId id = NewBuffer({std::move(name), type, scope, Es(shape), {}, arrive_count});
  Add(tilert::Alloc{id});
  return Buf(this, id);
}

void ProgramBuilder::Copy(const Tile& src, const Tile& dst) {
  tilert::Copy copy;
  copy.src = R(src);
  copy.dst = R(dst);
  Add(std::move(copy));
}

void ProgramBuilder::Gemm(const Tile& a, const Tile& b, const Tile& c, bool transpose_a, bool transpose_b, bool clear_accum,
                          GemmPolicy policy) {
  Add(tilert::Gemm{R(a), R(b), R(c), transpose_a, transpose_b, clear_accum, policy, false});
}

void ProgramBuilder::Fill(const Tile& dst, Val value) { Add(tilert::Fill{R(dst), E(value.As(this, dst.buf.buffer().dtype))}); }

void ProgramBuilder::Reduce(ReduceOp op, const Tile& src, const Tile& dst, uint32_t axis, bool clear) {
  Add(tilert::Reduce{op, R(src), R(dst), axis, clear, true});
}

void ProgramBuilder::Scan(const Tile& src, const Tile& dst, uint32_t axis, bool reverse) {
  Add(tilert::Scan{R(src), R(dst), axis, reverse});
}

void ProgramBuilder::Store(const Buf& buffer, const std::vector<Val>& indices, Val value) {
  Add(tilert::Store{buffer.id(), Es(indices), E(value.As(this, buffer.buffer().dtype))});
}

Val ProgramBuilder::Let(std::string name, Val value) {
  if (!value) Error(Cat("variable ", name, " gets no value"));
  const Expr e = E(value);
  const VarId id = NewVar(std::move(name), value.dtype());
  Add(tilert::Let{id, e});
  return VarVal(id);
}

void ProgramBuilder::Atomic(AtomicOp op, const Buf& buffer, const std::vector<Val>& indices, Val value) {
  tilert::Atomic atomic;
  atomic.op = op;
  atomic.buffer = buffer.id();
  atomic.indices = Es(indices);
  atomic.value = E(value.As(this, buffer.buffer().dtype));
  Add(std::move(atomic));
}

void ProgramBuilder::AtomicTile(AtomicOp op, const Tile& src, const Tile& dst) {
  Add(tilert::AtomicTile{op, R(src), R(dst), MemoryOrder::kRelaxed});
}

}  // namespace tilert
