#include "tests/ir/random_program.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/builder.h"

namespace tilert {
namespace {

constexpr DType kNumbers[] = {DType::kInt8,    DType::kInt32,    DType::kInt64,   DType::kUInt8,  DType::kUInt32,
                              DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

class Generator {
 public:
  Generator(uint64_t seed, int size) : rng_(seed), left_(size), b_("random") {}
  Program Run();

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }
  bool Flip(int one_in = 2) { return Pick(one_in) == 0; }
  template <typename List>
  auto& One(List& list) {
    return list[static_cast<size_t>(Pick(static_cast<int>(list.size())))];
  }
  std::string Name(const char* stem) { return Flip() ? stem : stem + std::to_string(Pick(4)); }

  Val Number(DType type);
  Val IndexExpr(int depth);
  Val Extent() { return Flip() ? Val(Pick(40)) : b_.Apply(ExprOp::kMax, {0, IndexExpr(2)}); }
  Val Cond(int depth);
  Val Value(DType type, int depth);
  std::vector<Val> Subscripts(const Buf& buf, int depth);
  Tile Box(const Buf& buf, std::vector<Val> extent);

  void Body(int depth);
  void TileStmt(int depth);
  void ElementBody(int depth, bool threads);
  void ElementStmt(int depth, bool threads);
  void Loop(int depth);
  void Branch(int depth, bool element, bool threads);
  void TileOp();
  void GemmOp();
  void ReduceOp_();
  void Hints();
  void Expert();

  std::mt19937_64 rng_;
  int left_;
  ProgramBuilder b_;
  Val stages_;                // a constant
  std::vector<Val> indices_;  // index values in scope
  std::vector<Buf> inputs_, outputs_, tiles_,
      vars_;  // readable tensors, writable ones, shared and fragment buffers of 16 × 32 floats
  bool in_loop_ = false;
};

Val Generator::Number(DType type) {
  static constexpr double kFloats[] = {0, -0.0, 0.1, 1, -2.5, 1e-30, 65504, 3e38};
  if (IsFloat(type)) return b_.Float(kFloats[Pick(8)], type);
  const int64_t bits = static_cast<int64_t>(rng_());
  return b_.Int(Flip() ? Pick(10) : bits, type);
}

Val Generator::IndexExpr(int depth) {
  if (depth == 0 || Flip(3)) return indices_.empty() || Flip(3) ? Val(Pick(100)) : One(indices_);
  static constexpr ExprOp kOps[] = {ExprOp::kAdd,      ExprOp::kSub, ExprOp::kMul, ExprOp::kFloorDiv,
                                    ExprOp::kFloorMod, ExprOp::kMin, ExprOp::kMax};
  const Val left = IndexExpr(depth - 1), right = IndexExpr(depth - 1);
  if (Flip(8)) return b_.Cast(Value(DType::kInt32, depth - 1), DType::kIndex);
  if (Flip(8)) return b_.Apply(ExprOp::kFloorDiv, {b_.Apply(ExprOp::kAdd, {left, right}) - 1, right});  // a ceildiv
  return b_.Apply(kOps[Pick(7)], {left, right});
}

Val Generator::Cond(int depth) {
  static constexpr ExprOp kOps[] = {ExprOp::kLt, ExprOp::kLe, ExprOp::kGt, ExprOp::kGe, ExprOp::kEq, ExprOp::kNe};
  if (depth > 0 && Flip(3))
    return Flip() ? And(Cond(depth - 1), Cond(depth - 1)) : Flip() ? Or(Cond(depth - 1), Cond(depth - 1)) : Not(Cond(depth - 1));
  if (Flip()) return b_.Apply(kOps[Pick(6)], {IndexExpr(depth), IndexExpr(depth)});
  const DType type = kNumbers[Pick(9)];
  return b_.Apply(kOps[Pick(6)], {Value(type, depth), Value(type, depth)});
}

Val Generator::Value(DType type, int depth) {
  if (depth == 0 || Flip(4)) {
    if (Flip() && !inputs_.empty()) return b_.Cast(b_.Load(One(inputs_), Subscripts(inputs_[0], 0)), type);
    return Flip() && !vars_.empty() ? b_.Cast(One(vars_)(), type) : Number(type);
  }
  static constexpr ExprOp kBoth[] = {ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kMin, ExprOp::kMax};
  static constexpr ExprOp kInts[] = {ExprOp::kFloorDiv, ExprOp::kFloorMod, ExprOp::kBitAnd, ExprOp::kBitOr,
                                     ExprOp::kBitXor,   ExprOp::kShl,      ExprOp::kShr};
  static constexpr ExprOp kUnary[] = {ExprOp::kExp,     ExprOp::kExp2,  ExprOp::kLog,   ExprOp::kSin,   ExprOp::kTanh,
                                      ExprOp::kSigmoid, ExprOp::kErf,   ExprOp::kSqrt,  ExprOp::kFloor, ExprOp::kRound,
                                      ExprOp::kTrunc,   ExprOp::kRsqrt, ExprOp::kLog1p, ExprOp::kCeil};
  const Val a = Value(type, depth - 1);
  if (Flip(6)) return b_.Select(Cond(1), a, Value(type, depth - 1));
  if (Flip(6)) return b_.Cast(Value(kNumbers[Pick(9)], depth - 1), type);
  if (Flip(8)) return Call(Flip() ? ExprOp::kNeg : ExprOp::kAbs, a);
  if (IsInteger(type) && Flip(8)) return Call(Flip() ? ExprOp::kBitNot : ExprOp::kPopcount, a);
  if (IsFloat(type) && Flip(3)) return Call(kUnary[Pick(14)], a);
  if (IsFloat(type) && Flip(8)) return b_.Apply(ExprOp::kFma, {a, Value(type, depth - 1), Number(type)});
  if (IsFloat(type) && Flip(6)) return b_.Apply(Flip() ? ExprOp::kDiv : ExprOp::kPow, {a, Value(type, depth - 1)});
  if (IsInteger(type) && Flip()) return b_.Apply(kInts[Pick(7)], {a, Value(type, depth - 1)});
  return b_.Apply(kBoth[Pick(5)], {a, Value(type, depth - 1)});
}

std::vector<Val> Generator::Subscripts(const Buf& buf, int depth) {
  std::vector<Val> list;
  for (size_t i = 0; i < buf.buffer().shape.size(); ++i) list.push_back(IndexExpr(depth));
  return list;
}

Tile Generator::Box(const Buf& buf, std::vector<Val> extent) {
  std::vector<Val> start;
  for (size_t i = 0; i < extent.size(); ++i) start.push_back(Flip() ? Val((Pick(4) - 1) * 16) : IndexExpr(2));
  return buf.At(start, std::move(extent));
}

void Generator::GemmOp() {
  const DType type = Flip() ? DType::kFloat16 : DType::kBFloat16;
  const bool transpose_a = Flip(), transpose_b = Flip();
  Buf a = b_.Shared(Name("a"), type, transpose_a ? std::vector<Val>{16, 64} : std::vector<Val>{64, 16});
  Buf b = Flip() ? b_.Fragment("b", type, transpose_b ? std::vector<Val>{32, 16} : std::vector<Val>{16, 32})
                 : b_.Shared("b", type, transpose_b ? std::vector<Val>{32, 16} : std::vector<Val>{16, 32});
  Buf c = b_.Fragment(Name("acc"), Flip() ? DType::kFloat32 : type, {64, 32});
  Gemm gemm{b_.R(a), b_.R(b), b_.R(c), transpose_a, transpose_b, Flip(), static_cast<GemmPolicy>(1 + Pick(3)), Flip(4)};
  b_.Add(gemm);
  if (gemm.is_async) b_.Add(AsyncWait{true, static_cast<uint32_t>(Pick(2))});
}

void Generator::ReduceOp_() {
  const bool bits = Flip(4);
  const DType type = bits ? DType::kInt32 : DType::kFloat32;
  Buf src = b_.Fragment(Name("src"), type, {16, 32});
  const uint32_t axis = static_cast<uint32_t>(Pick(2));
  Buf dst = b_.Fragment(Name("dst"), type,
                        Flip()      ? std::vector<Val>{axis == 0 ? 32 : 16}
                        : axis == 0 ? std::vector<Val>{1, 32}
                                    : std::vector<Val>{16, 1});
  const int op = bits ? 6 + Pick(3) : 1 + Pick(5);
  b_.Add(Reduce{static_cast<ReduceOp>(op), b_.R(src), b_.R(dst), axis, Flip(), Flip(3)});
  b_.Scan(src.At({0, 8}, {16, 8}), src.At({0, Pick(9)}, {16, 8}), static_cast<uint32_t>(Pick(2)), Flip());
}

void Generator::Hints() {
  switch (Pick(5)) {
    case 0: return b_.Add(Annotate{AnnotationKind::kUseSwizzle, kNoId, {b_.E(1 + Pick(9))}, Flip() ? "row" : "col"});
    case 1:
      return b_.Add(Annotate{Flip() ? AnnotationKind::kLayoutSwizzled : AnnotationKind::kLayoutRowMajor, tiles_[0].id(), {}, ""});
    case 2: return b_.Add(Annotate{AnnotationKind::kNoWarpSpecialization});
    case 3: return b_.Add(Annotate{AnnotationKind::kSafeValue, inputs_[0].id(), {b_.E(Number(inputs_[0].buffer().dtype))}, ""});
    default:
      b_.Add(Print{"{} and {}\n", {b_.E(IndexExpr(2)), b_.E(Value(DType::kFloat32, 1))}}),
          b_.Add(Assert{b_.E(Cond(1)), "because \"so\""});
  }
}

void Generator::TileOp() {
  switch (Pick(6)) {
    case 0: {
      Copy copy{b_.R(Box(One(inputs_), {16, 32})), b_.R(One(tiles_))};
      if (Flip(3)) copy.fill = b_.E(Number(b_.program().buffers[copy.src.buffer].dtype));
      copy.coalesced_width = static_cast<uint32_t>(Pick(3) * 4);
      copy.disable_tma = Flip(4);
      copy.is_async = Flip(4);
      b_.Add(copy);
      if (copy.is_async) b_.Add(AsyncWait{false, 0});
      return;
    }
    case 1: {
      const Val extent = Extent();
      return b_.Copy(Box(One(tiles_), {1, extent}), Box(One(outputs_), {1, extent}));
    }
    case 2: return b_.Fill(One(tiles_), Flip() ? Val(0) : Number(DType::kFloat32));
    case 3: return GemmOp();
    case 4: return ReduceOp_();
    default:
      return b_.Add(AtomicTile{static_cast<AtomicOp>(1 + Pick(3)), b_.R(One(tiles_)), b_.R(Box(outputs_[0], {16, 32})),
                               static_cast<MemoryOrder>(1 + Pick(4))});
  }
}

void Generator::Branch(int depth, bool element, bool threads) {
  const auto part = [&] { return element ? ElementBody(depth - 1, threads) : Body(depth - 1); };
  b_.OpenIf(Cond(2));
  part();
  if (Flip()) {
    b_.Else();
    part();
  }
  b_.Close();
}

void Generator::Loop(int depth) {
  const bool was_in_loop = std::exchange(in_loop_, true);
  const auto kind = static_cast<ForKind>(1 + Pick(5));
  const Val num_stages = kind != ForKind::kPipelined ? Val(0) : Flip() ? Val(Pick(4)) : stages_ + Pick(2);
  const Val split = kind == ForKind::kPipelined && Flip() ? Val(1 + Pick(8)) : Val();
  Val k = b_.OpenFor(kind, Name("k"), Flip() ? Val(0) : Val(Pick(4)), b_.Apply(ExprOp::kMin, {IndexExpr(2), 9}), 1 + Pick(2),
                     num_stages, {}, {}, split);
  indices_.push_back(k);
  Body(depth - 1);
  indices_.pop_back();
  b_.Close();
  in_loop_ = was_in_loop;
}

void Generator::ElementStmt(int depth, bool threads) {
  --left_;
  const Buf& out = One(outputs_);
  switch (Pick(depth > 0 ? 6 : 4)) {
    case 0: indices_.push_back(b_.Let(Name("at"), b_.Apply(ExprOp::kAdd, {IndexExpr(2), Val(1)}))); return;
    case 1: return b_.Store(out, Subscripts(out, 2), Value(out.buffer().dtype, 3));
    case 2:
      return b_.Add(Atomic{static_cast<AtomicOp>(1 + Pick(3)), outputs_[0].id(), b_.Es(Subscripts(outputs_[0], 1)),
                           b_.E(Value(DType::kFloat32, 1)), static_cast<MemoryOrder>(1 + Pick(4)),
                           static_cast<MemoryScope>(1 + Pick(3)), Flip() ? b_.NewVar(Name("before"), DType::kFloat32) : kNoId});
    case 3: {
      Buf own = b_.Alloc(Name("own"), kNumbers[Pick(9)], Scope::kLocal, {4});
      b_.Fill(own, Number(own.buffer().dtype));
      return b_.Store(own, {IndexExpr(1)}, Value(own.buffer().dtype, 2));
    }
    case 4: return Branch(depth, true, threads);
    default: {
      indices_.push_back(b_.OpenFor(static_cast<ForKind>(1 + Pick(3)), Name("i"), 0, b_.Apply(ExprOp::kMin, {IndexExpr(1), 9})));
      ElementBody(depth - 1, threads);
      if (Flip(3)) b_.Add(Continue{});
      indices_.pop_back();
      b_.Close();
    }
  }
}

void Generator::ElementBody(int depth, bool threads) {
  const std::vector<Val> indices = indices_;
  for (int i = 1 + Pick(3); i > 0; --i) ElementStmt(depth, threads);
  indices_ = indices;
}

void Generator::Expert() {
  if (Flip()) {
    indices_.push_back(b_.OpenThreadRegion("tx"));
    if (Flip()) {
      const VarId other = b_.NewVar("other");
      b_.Add(Shuffle{other, b_.E(indices_.back()), b_.Index(IndexExpr(1))});
      indices_.push_back(b_.VarVal(other));
      if (Flip()) b_.Add(SyncThreads{2, 32});
      indices_.pop_back();
    }
    ElementBody(2, true);
    b_.Add(SyncThreads{});
    indices_.pop_back();
    b_.Close();
    return;
  }
  Buf full = b_.Alloc("full", DType::kUInt64, Scope::kBarrier, {2}, 1 + static_cast<uint32_t>(Pick(64)));
  b_.OpenRoles();
  for (int role = 0; role < 2; ++role) {
    b_.OpenRole(role * 32, role * 32 + 32);
    b_.Add(BarrierOp{static_cast<BarrierOpKind>(1 + role), full.id(), b_.Es({role}), role == 0 ? Expr{} : b_.E(0)});
    b_.Add(BarrierOp{BarrierOpKind::kExpectTx, full.id(), b_.Es({role}), b_.E(IndexExpr(1))});
    if (Flip()) {
      Buf tile = b_.Shared(Name("tile"), DType::kFloat16, {16, 16}), other = b_.Shared(Name("other"), DType::kFloat16, {16, 16});
      Copy copy{b_.R(other), b_.R(tile)};
      copy.is_async = true;
      copy.barrier = full.id();
      if (Flip()) copy.barrier_indices = b_.Es({role});
      b_.Add(std::move(copy));
    }
    if (Flip()) b_.Add(SyncThreads{1, 64});
    b_.Close();
  }
  b_.Close();
}

void Generator::TileStmt(int depth) {
  --left_;
  switch (Pick(depth > 0 ? 8 : 4)) {
    case 0: return Hints();
    case 1:
    case 2: return TileOp();
    case 3: {
      if (vars_.empty()) return;
      return b_.Store(vars_[0], {}, Value(vars_[0].buffer().dtype, 2));
    }
    case 4: return Loop(depth);
    case 5: return Branch(depth, false, false);
    case 6: {
      const std::vector<Val> outer = indices_;
      for (Val v : b_.OpenParallel({"i", "j"}, {16, Extent()}, static_cast<uint32_t>(Pick(2) * 8))) indices_.push_back(v);
      const std::vector<Buf> vars = std::exchange(vars_, {});
      ElementBody(depth, false);
      vars_ = vars;
      indices_ = outer;
      return b_.Close();
    }
    default: return Flip(3) ? Expert() : TileOp();
  }
}

void Generator::Body(int depth) {
  const std::vector<Val> indices = indices_;
  const std::vector<Buf> tiles = tiles_;
  for (int i = 1 + Pick(4); i > 0 && left_ > 0; --i) {
    if (Flip(8))
      tiles_.push_back(Flip() ? b_.Shared(Name("tile"), DType::kFloat32, {16, 32})
                              : b_.Fragment(Name("tile"), DType::kFloat32, {16, 32}));
    TileStmt(depth);
  }
  if (in_loop_ && Flip(4)) {
    b_.OpenWhile(Cond(1));
    b_.Add(Break{});
    b_.Close();
    if (Flip()) b_.Add(Break{});
  }
  indices_ = indices;
  tiles_ = tiles;
}

Program Generator::Run() {
  Val m = b_.Dim("M"), n = b_.Dim("N");
  Val block = b_.Constant("block", {16, 32, 64});
  stages_ = b_.Constant("stages", {3, 2, 0});
  b_.SetFastMath(Flip());
  inputs_ = {b_.Tensor("X", kNumbers[Pick(9)], {m, n}), b_.Tensor("Y", kNumbers[Pick(9)], {m, n}, Access::kIn, {n * 2, 2})};
  outputs_ = {b_.Tensor("Z", DType::kFloat32, {m, n}, Access::kInOut),
              b_.Tensor("O", kNumbers[Pick(9)], {CeilDiv(m, block), n}, Access::kInOut)};
  outputs_.push_back(b_.Workspace("W", DType::kFloat32, {m, 8}, Flip()));
  b_.Scalar("alpha", DType::kFloat32);
  b_.Scalar("count", DType::kInt32);
  if (Flip()) b_.Assume(n % 8 == 0);
  for (int launch = 1 + Pick(3), i = 0; i < launch; ++i) {
    b_.SetLoc({b_.File(Flip() ? "one.py" : "two.py"), static_cast<uint32_t>(1 + Pick(100)), static_cast<uint32_t>(1 + Pick(80))});
    indices_ = {m, n, block};
    for (Val v : b_.OpenLaunch("k" + std::to_string(i), {CeilDiv(m, block), n, 1}, 64)) indices_.push_back(v);
    if (Flip(4)) b_.SetCooperative();
    tiles_ = {b_.Shared("tile", DType::kFloat32, {16, 32})};
    vars_ = {b_.Mutable("v", kNumbers[Pick(9)])};
    while (left_ > 0 && !Flip(8)) Body(3);
    b_.Close();
  }
  absl::StatusOr<Program> program = b_.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

}  // namespace

Program RandomProgram(uint64_t seed, int size) { return Generator(seed, size).Run(); }

}  // namespace tilert
