#include "tests/ir/sample_programs.h"

#include <limits>
#include <utility>

#include "gtest/gtest.h"
#include "ir/builder.h"

namespace tilert {
namespace {

Program Finish(ProgramBuilder& b) {
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

// Stores every operator on elements of X into Y.
void EveryOperator(ProgramBuilder& b, const Buf& x, const Buf& n, const Buf& y, Val i) {
  const auto put = [&](Val value) { b.Store(y, {i}, value); };
  for (ExprOp op : {ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kDiv, ExprOp::kMin, ExprOp::kMax, ExprOp::kPow})
    put(Call(op, x(i), 2.5));
  for (ExprOp op :
       {ExprOp::kFloorDiv, ExprOp::kFloorMod, ExprOp::kBitAnd, ExprOp::kBitOr, ExprOp::kBitXor, ExprOp::kShl, ExprOp::kShr}) {
    put(Call(op, n(i), 3));
    put(Call(op, b.Int(-7, DType::kInt32), n(i)));
  }
  for (ExprOp op : {ExprOp::kLt, ExprOp::kLe, ExprOp::kGt, ExprOp::kGe, ExprOp::kEq, ExprOp::kNe}) {
    put(b.Select(Call(op, x(i), b.Float(0.1, DType::kFloat32)), x(i), -1));
  }
  put(b.Select(And(n(i) > 1, Or(n(i) < 9, Not(n(i) == b.Int(4, DType::kInt32)))), b.Float(-0.0, DType::kFloat32),
               b.Float(1e30, DType::kFloat32)));
  for (ExprOp op : {ExprOp::kNeg, ExprOp::kAbs, ExprOp::kExp, ExprOp::kExp2, ExprOp::kLog, ExprOp::kLog2, ExprOp::kLog1p,
                    ExprOp::kSin, ExprOp::kCos, ExprOp::kTanh, ExprOp::kSigmoid, ExprOp::kErf, ExprOp::kSqrt, ExprOp::kRsqrt,
                    ExprOp::kFloor, ExprOp::kCeil, ExprOp::kRound, ExprOp::kTrunc}) {
    put(Call(op, x(i)));
  }
  put(Call(ExprOp::kBitNot, n(i)));
  put(Call(ExprOp::kPopcount, n(i)));
  put(b.Select(Or(Call(ExprOp::kIsNan, x(i)), Call(ExprOp::kIsInf, x(i))),
               b.Float(std::numeric_limits<double>::quiet_NaN(), DType::kFloat32),
               b.Float(-std::numeric_limits<double>::infinity(), DType::kFloat32)));
  put(b.Apply(ExprOp::kFma, {x(i), x(i), 1.0}));
  put(b.Cast(b.Reinterpret(x(i), DType::kUInt32), DType::kUInt64) + b.Int(-1, DType::kUInt64));
}

void EveryReduction(ProgramBuilder& b) {
  Buf f = b.Fragment("f", DType::kFloat32, {32, 16});
  Buf g = b.Fragment("g", DType::kInt32, {32, 16});
  b.Fill(f, 1.5);
  b.Fill(g, 3);
  Buf rows = b.Fragment("rows", DType::kFloat32, {32});
  Buf bits = b.Fragment("bits", DType::kInt32, {16});
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAbsSum, ReduceOp::kAbsMax})
    b.Reduce(op, f, rows, 1);
  for (ReduceOp op : {ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor}) b.Reduce(op, g, bits, 0, op != ReduceOp::kBitOr);
  b.Add(Reduce{ReduceOp::kMax, b.R(f), b.R(rows), 1, false, false});
  b.Scan(f, f, 1);
  b.Scan(f.At({0, 0}, {32, 8}), f.At({0, 8}, {32, 8}), 0, true);
}

void EveryLoop(ProgramBuilder& b, const Buf& x, const Buf& y, Val n) {
  Buf count = b.Mutable("count", DType::kInt32);
  b.Store(count, {}, 0);
  for (ForKind kind : {ForKind::kSerial, ForKind::kUnrolled, ForKind::kVectorized, ForKind::kPersistent}) {
    Val i = b.OpenFor(kind, "i", kind == ForKind::kSerial ? Val(1) : Val(0), 8, kind == ForKind::kUnrolled ? Val(2) : Val(1));
    b.Store(count, {}, count() + b.Cast(i, DType::kInt32));
    b.Close();
  }
  Buf tile = b.Shared("tile", DType::kFloat32, {32});
  Val k = b.OpenFor(ForKind::kPipelined, "k", 0, CeilDiv(n, 32), 1, 2, {0, 1}, {0, 1});
  b.Copy(x.At({k * 32}, {32}), tile);
  b.Copy(tile, y.At({k * 32}, {32}));
  b.Close();
  b.OpenWhile(count() > 0);
  b.Store(count, {}, count() - 1);
  b.OpenIf(count() == 5);
  b.Add(Continue{});
  b.Else();
  b.OpenIf(count() == 3);
  b.Add(Break{});
  b.Close();
  b.Close();
  b.Close();
}

}  // namespace

Program ScaleProgram() {
  ProgramBuilder b("scale");
  Val n = b.Dim("N"), block = b.Constant("block", {256, 512});
  Buf x = b.Tensor("X", DType::kFloat32, {n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
  Val alpha = b.Scalar("alpha", DType::kFloat32);
  b.SetLoc({b.File("scale.py"), 7, 5});
  auto [bx] = b.Launch<1>("k0", {CeilDiv(n, block)}, 128);
  b.SetLoc({b.File("scale.py"), 8, 9});
  Val i = b.OpenParallel({"i"}, {block})[0];
  b.Store(y, {bx * block + i}, x(bx * block + i) * alpha);
  b.Close();
  b.Close();
  return Finish(b);
}

Program GemmProgram() {
  ProgramBuilder b("gemm");
  Val m = b.Dim("M"), n = b.Dim("N"), k = b.Dim("K");
  Val bm = b.Constant("block_M", {128, 64}), bn = b.Constant("block_N", {128}), bk = b.Constant("block_K", {32});
  Val stages = b.Constant("stages", {3});
  Val row = b.Dim("lda");
  Buf a = b.Tensor("A", DType::kBFloat16, {m, k}, Access::kIn, {row, 1});
  Buf w = b.Tensor("B", DType::kBFloat16, {n, k}), c = b.Tensor("C", DType::kBFloat16, {m, n}, Access::kOut);
  b.Scalar("lda", DType::kInt64, row);
  b.Assume(k % 8 == 0);
  b.Assume(And(row >= k, stages > 0));
  auto [bx, by] = b.Launch<2>("k0", {CeilDiv(n, bn), CeilDiv(m, bm)}, 128);
  b.Add(Annotate{AnnotationKind::kUseSwizzle, kNoId, {b.E(10)}, "row"});
  Buf as = b.Shared("A_shared", DType::kBFloat16, {bm, bk}), bs = b.Shared("B_shared", DType::kBFloat16, {bn, bk});
  Buf acc = b.Fragment("acc", DType::kFloat32, {bm, bn});
  b.Add(Annotate{AnnotationKind::kLayoutSwizzled, as.id(), {}, ""});
  b.Fill(acc, 0);
  Val ko = b.OpenFor(ForKind::kPipelined, "ko", 0, CeilDiv(k, bk), 1, 3);
  b.Copy(a.At({by * bm, ko * bk}, {bm, bk}), as);
  b.Copy(w.At({bx * bn, ko * bk}, {bn, bk}), bs);
  b.Gemm(as, bs, acc, false, true, false, GemmPolicy::kFullRow);
  b.Close();
  b.Copy(acc, c.At({by * bm, bx * bn}, {bm, bn}));
  b.Close();
  return Finish(b);
}

Program EveryStatementProgram() {
  ProgramBuilder b("every_statement");
  b.SetFastMath(true);
  Val n = b.Dim("N");
  Buf x = b.Tensor("X", DType::kFloat32, {n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kInOut);
  Buf idx = b.Tensor("idx", DType::kInt32, {n}), total = b.Tensor("total", DType::kFloat32, {}, Access::kInOut);
  Buf partial = b.Workspace("partial", DType::kFloat32, {n, 2, 8}, true);
  auto [bx, by, bz] = b.Launch<3>("first", {CeilDiv(n, 32), 1, 1}, 64);
  b.SetCooperative();
  EveryReduction(b);
  EveryLoop(b, x, y, n);
  Val i = b.OpenParallel({"i"}, {32}, 4)[0];
  Val at = b.Let("at", bx * 32 + i + by + bz);
  EveryOperator(b, x, idx, y, at);
  b.Store(y, {b.Cast(idx(at), DType::kIndex)}, x(at));
  b.Atomic(AtomicOp::kAdd, total, {}, x(at));
  b.Add(Atomic{AtomicOp::kMax, y.id(), b.Es({at}), b.E(x(at)), MemoryOrder::kAcqRel, MemoryScope::kSystem});
  b.Close();
  Buf s = b.Shared("s", DType::kFloat32, {2, 8});
  b.Add(Annotate{AnnotationKind::kLayoutRowMajor, s.id(), {}, ""});
  b.Add(Annotate{AnnotationKind::kSafeValue, s.id(), {b.E(b.Float(1, DType::kFloat32))}, ""});
  b.Fill(s, 1.0);
  b.AtomicTile(AtomicOp::kMin, s, partial.At({bx, 0, 0}, {1, 2, 8}));
  b.Add(Copy{b.R(x.At({bx * 32}, {8})), b.R(s.At({1, 0}, {1, 8})), b.E(b.Float(-1, DType::kFloat32)), 2, true});
  b.Close();
  b.Launch<1>("k1", {1}, 32);
  b.Add(Annotate{AnnotationKind::kNoWarpSpecialization});
  b.Add(Annotate{AnnotationKind::kUseSwizzle, kNoId, {b.E(4)}, "col"});
  b.Add(Print{"total = {} \"quoted\"\n\\ {{\x01\xff}}", {b.E(total())}});
  b.Add(Assert{b.E(n > 0), "N must be positive"});
  Buf t = b.Fragment("t", DType::kFloat16, {16, 16});
  Buf u = b.Fragment("u", DType::kFloat16, {16, 16}), acc = b.Fragment("acc", DType::kFloat32, {16, 16});
  b.Fill(t, 0.1);
  b.Fill(u, b.Cast(b.Int(2, DType::kInt8), DType::kFloat16));
  b.Gemm(t, u, acc, true, false, true, GemmPolicy::kFullCol);
  b.Close();
  return Finish(b);
}

Program ExpertProgram() {
  ProgramBuilder b("expert");
  Val n = b.Dim("N");
  Buf x = b.Tensor("X", DType::kFloat16, {n, 64}), y = b.Tensor("Y", DType::kFloat16, {n, 64}, Access::kOut);
  auto [bx] = b.Launch<1>("k0", {CeilDiv(n, 64)}, 256);
  Buf tile = b.Shared("tile", DType::kFloat16, {64, 64}), sums = b.Shared("sums", DType::kFloat32, {256});
  Buf full = b.Alloc("full", DType::kUInt64, Scope::kBarrier, {2}, 128);
  b.OpenRoles();
  b.OpenRole(0, 128);
  Copy load{b.R(x.At({bx * 64, 0}, {64, 64})), b.R(tile)};
  load.is_async = true;
  load.barrier = full.id();
  b.Add(BarrierOp{BarrierOpKind::kExpectTx, full.id(), b.Es({0}), b.E(64 * 64 * 2)});
  b.Add(load);
  b.Add(BarrierOp{BarrierOpKind::kArrive, full.id(), b.Es({0}), {}});
  b.Close();
  b.OpenRole(128, 256);
  b.Add(BarrierOp{BarrierOpKind::kWait, full.id(), b.Es({0}), b.E(0)});
  b.Copy(tile, y.At({bx * 64, 0}, {64, 64}));
  b.Close();
  b.Close();
  Buf acc = b.Fragment("acc", DType::kFloat32, {64, 64});
  Gemm gemm{b.R(tile), b.R(tile), b.R(acc), false, true, true, GemmPolicy::kSquare, true};
  b.Add(gemm);
  b.Add(AsyncWait{true, 0});
  load.barrier = kNoId;
  b.Add(load);
  b.Add(AsyncWait{false, 1});
  b.Add(AsyncWait{false, 0});
  Val tx = b.OpenThreadRegion("tx");
  Buf own = b.Alloc("own", DType::kFloat32, Scope::kLocal, {4});
  b.Store(own, {0}, b.Cast(tile(tx % 64, 0), DType::kFloat32));
  b.Store(sums, {tx}, own(0));
  b.Add(SyncThreads{});
  b.OpenIf(tx == 0);
  b.Store(y, {bx * 64, 0}, sums(1) + sums(255 - tx));
  b.Close();
  b.Close();
  b.Close();
  return Finish(b);
}

Program StagedProgram() {
  ProgramBuilder b("staged");
  Val n = b.Dim("N"), stages = b.Constant("stages", {3, 2, 4});
  Buf x = b.Tensor("X", DType::kFloat32, {n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
  auto [bx] = b.Launch<1>("k0", {1}, 32);
  Buf tile = b.Shared("tile", DType::kFloat32, {32});
  for (Val num_stages : {stages, stages - 2, Val(2)}) {
    Val k = b.OpenFor(ForKind::kPipelined, "k", bx, CeilDiv(n, 32), 1, num_stages);
    b.Copy(x.At({k * 32}, {32}), tile);
    b.Copy(tile, y.At({k * 32}, {32}));
    b.Close();
  }
  b.Close();
  return Finish(b);
}

Program SplitProgram() {
  ProgramBuilder b("split");
  Val n = b.Dim("N"), ways = b.Constant("ways", {1, 2, 4});
  Buf x = b.Tensor("X", DType::kFloat32, {n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
  b.Launch<1>("k0", {1}, 32);
  Buf tile = b.Shared("tile", DType::kFloat32, {32});
  for (Val split : {ways, Val(1), ways * 2}) {
    Val k = b.OpenFor(ForKind::kPipelined, "k", 0, CeilDiv(n, 32), 1, 2, {}, {}, split);
    b.Copy(x.At({k * 32}, {32}), tile);
    b.Copy(tile, y.At({k * 32}, {32}));
    b.Close();
  }
  b.Close();
  return Finish(b);
}

std::vector<Program> SamplePrograms() { return {ScaleProgram(), GemmProgram(), EveryStatementProgram(), ExpertProgram()}; }

}  // namespace tilert
