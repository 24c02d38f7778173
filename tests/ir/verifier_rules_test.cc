// One program for each rule of the verifier that verifier_test.cc has none for; what it says to all of them is a golden file.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "tests/golden.h"

namespace tilert {
namespace {

constexpr DType kF16 = DType::kFloat16, kF32 = DType::kFloat32, kI32 = DType::kInt32, kIndex = DType::kIndex;

struct Case {
  std::string name;
  Program program;
};

// A program with dims M and N, tensors X (in) and Y (out) of (M, N), and one launch whose body `fill` makes.
Program With(const std::function<void(ProgramBuilder&, Buf, Buf, Val)>& fill) {
  ProgramBuilder b("broken");
  Val m = b.Dim("M"), n = b.Dim("N");
  b.SetLoc({b.File("broken.py"), 2, 7});
  Buf x = b.Tensor("X", kF16, {m, n}), y = b.Tensor("Y", kF16, {m, n}, Access::kOut);
  b.SetLoc({0, 3, 5});
  auto [bx] = b.Launch<1>("k0", {m}, 128);
  b.SetLoc({0, 4, 9});
  fill(b, x, y, bx);
  b.Close();
  return *b.Build();
}

// The same with a shared buffer, a barrier and a variable, changed afterwards. Buffers: X, Y, tile, bar, v.
Program Changed(const std::function<void(Program&)>& change) {
  Program p = With([](ProgramBuilder& b, Buf, Buf, Val) {
    b.Shared("tile", kF16, {8});
    b.Alloc("bar", DType::kUInt64, Scope::kBarrier, {1}, 1);
    b.Mutable("v", kI32);
  });
  change(p);
  return p;
}
Block& Body(Program& p) { return p.launches[0].body; }
Expr AnElement(Program& p) { return p.exprs.Cast(p.exprs.Load(0, kF16, {p.exprs.Int(0), p.exprs.Int(0)}), kIndex); }

std::vector<Case> TableCases() {
  return {
      {"two launches of one name", Changed([](Program& p) { p.launches.push_back(p.launches[0]), Body(p).clear(); })},
      {"scalar twice", Changed([](Program& p) {
         p.scalars.push_back({"s", kF32});
         for (int i = 0; i < 2; ++i) p.params.push_back({Param::Kind::kScalar, 0});
       })},
      {"tile as a parameter", Changed([](Program& p) {
         p.params.push_back({Param::Kind::kTensor, 2, Access::kIn});
       })},
      {"tile as a workspace", Changed([](Program& p) { p.workspaces.push_back({2}); })},
      {"workspace with strides", Changed([](Program& p) {
         p.buffers.push_back({"W", kF16, Scope::kGlobal, {p.exprs.Int(4)}, {p.exprs.Int(2)}});
         p.workspaces.push_back({static_cast<BufferId>(p.buffers.size() - 1)});
       })},
      {"stride of an element", Changed([](Program& p) {
         p.buffers[0].strides = {AnElement(p), p.exprs.Int(1)};
       })},
      {"tile with strides", Changed([](Program& p) { p.buffers[2].strides = {p.exprs.Int(1)}; })},
      {"tile without elements", Changed([](Program& p) { p.buffers[2].shape = {p.exprs.Int(0)}; })},
      {"variable with dimensions", Changed([](Program& p) { p.buffers[4].shape = {p.exprs.Int(1)}; })},
      {"tile without dimensions", Changed([](Program& p) { p.buffers[2].shape.clear(); })},
      {"barrier of nobody", Changed([](Program& p) { p.buffers[3].arrive_count = 0; })},
      {"barrier of another type", Changed([](Program& p) { p.buffers[3].dtype = kI32; })},
      {"tensor allocated", Changed([](Program& p) {
         Body(p).push_back({Alloc{0}, {0, 5, 9}});
       })},
      {"cluster of another rank", Changed([](Program& p) {
         p.launches[0].cluster = {p.exprs.Int(2), p.exprs.Int(2)};
       })},
      {"cluster by a dim", Changed([](Program& p) { p.launches[0].cluster = {p.exprs.Leaf(ExprOp::kDim, 0, kIndex)}; })},
      {"cluster by an element", Changed([](Program& p) { p.launches[0].cluster = {AnElement(p)}; })},
      {"cluster too long", Changed([](Program& p) { p.launches[0].cluster = {p.exprs.Int(9)}; })},
      {"cluster too large", Changed([](Program& p) {
         p.launches[0].grid.push_back(p.exprs.Int(4));
         p.vars.push_back({"by", kIndex});
         p.launches[0].block_vars.push_back(static_cast<VarId>(p.vars.size() - 1));
         p.launches[0].cluster = {p.exprs.Int(4), p.exprs.Int(4)};
       })},
      {"launch without a grid", Changed([](Program& p) { p.launches[0].grid.clear(), p.launches[0].block_vars.clear(); })},
      {"grid by an element", Changed([](Program& p) { p.launches[0].grid = {AnElement(p)}; })},
      {"grid below nothing", Changed([](Program& p) { p.launches[0].grid = {p.exprs.Int(-1)}; })},
      {"threads by an element", Changed([](Program& p) { p.launches[0].threads = AnElement(p); })},
  };
}

// A number in place of the number of threads: an expression that must be sound by itself.
Program WithNode(ExprNode node) {
  return Changed([&](Program& p) { p.launches[0].threads = p.exprs.Intern(std::move(node)); });
}

std::vector<Case> StructureCases() {
  return {
      {"region of another rank", Changed([](Program& p) {
         Body(p).push_back({Fill{{2, {p.exprs.Int(0), p.exprs.Int(0)}, {p.exprs.Int(1)}}, p.exprs.Float(0, kF16)}, {0, 5, 9}});
       })},
      {"too many candidates", Changed([](Program& p) {
         Constant c{"block", {}};
         for (int64_t i = 1; i < 300; ++i) c.candidates.push_back(i);
         p.constants.push_back(std::move(c));
       })},
      {"operator", WithNode({static_cast<ExprOp>(999), kIndex})},
      {"type of a number", WithNode({ExprOp::kIntImm, static_cast<DType>(99)})},
      {"later operand", WithNode({ExprOp::kNeg, kIndex, 0, 0, {Expr{1000}}})},
      {"float of type index", WithNode({ExprOp::kFloatImm, kIndex, 0, 1.5})},
      {"negative NaN", WithNode({ExprOp::kFloatImm, kF32, 0, -__builtin_nan("")})},
      {"number too large", WithNode({ExprOp::kIntImm, DType::kInt8, 300})},
      {"deep expression", Changed([](Program& p) {
         Expr e = p.exprs.Int(1);
         for (int i = 0; i < 300; ++i) e = p.exprs.Unary(ExprOp::kNeg, e);
         p.launches[0].threads = e;
       })},
      {"wide expression", Changed([](Program& p) {
         Expr e = p.exprs.Int(3);
         for (int i = 0; i < 14; ++i) e = p.exprs.Binary(ExprOp::kMul, e, e);
         p.launches[0].threads = e;
       })},
      {"deep statements", Changed([](Program& p) {
         Block block;
         for (int i = 0; i < 70; ++i) {
           If outer{p.exprs.Int(1, DType::kBool), std::move(block), {}};
           block.clear();
           block.push_back({std::move(outer), {0, 5, 9}});
         }
         Body(p) = std::move(block);
       })},
      {"too many statements", Changed([](Program& p) {
         Body(p).assign(70000, {SyncThreads{}, {0, 5, 9}});
       })},
      {"scope", Changed([](Program& p) { p.buffers[2].scope = Scope::kInvalid; })},
      {"kind of parameter", Changed([](Program& p) { p.params.push_back({}); })},
  };
}

std::vector<Case> TypeCases() {
  const auto value = [](const std::function<Expr(Program&)>& make) {
    return Changed([&](Program& p) { Body(p).push_back({Assert{make(p), "m"}, {0, 5, 9}}); });
  };
  return {
      {"barrier read", value([](Program& p) { return p.exprs.Load(3, DType::kUInt64, {p.exprs.Int(0)}); })},
      {"too few subscripts", value([](Program& p) { return p.exprs.Load(0, kF16, {p.exprs.Int(0)}); })},
      {"subscript of a narrow type", value([](Program& p) { return p.exprs.Load(2, kF16, {p.exprs.Int(0, kI32)}); })},
      {"variable of another type", value([](Program& p) { return p.exprs.Load(4, kF16, {}); })},
      {"bits of floats",
       value([](Program& p) { return p.exprs.Binary(ExprOp::kBitAnd, p.exprs.Float(1, kF16), p.exprs.Float(2, kF16)); })},
      {"choice by a number", value([](Program& p) {
         return p.exprs.Make(ExprOp::kSelect, kIndex, {p.exprs.Int(1), p.exprs.Int(1), p.exprs.Int(2)});
       })},
      {"choice of two types", value([](Program& p) {
         return p.exprs.Make(ExprOp::kSelect, kIndex, {p.exprs.Int(1, DType::kBool), p.exprs.Int(1), p.exprs.Int(2, kI32)});
       })},
      {"assertion of a number", value([](Program& p) { return p.exprs.Int(1); })},
  };
}

std::vector<Case> OperandCases() {
  const auto with = [](const std::function<void(ProgramBuilder&, Buf, Val)>& fill) {
    return With([&](ProgramBuilder& b, Buf, Buf y, Val bx) { fill(b, y, bx); });
  };
  const auto annotation = [&](AnnotationKind kind, bool buffer, std::vector<int64_t> args, std::string text) {
    return with([&](ProgramBuilder& b, Buf, Val) {
      std::vector<Expr> values;
      for (int64_t v : args) values.push_back(b.E(b.Lit(v)));
      b.Add(Annotate{kind, buffer ? b.Shared("s", kF16, {8, 8}).id() : kNoId, values, text});
    });
  };
  // A copy between a tensor and shared memory, changed.
  const auto copy = [](const std::function<void(ProgramBuilder&, Copy&)>& change, Scope scope = Scope::kShared) {
    return With([&](ProgramBuilder& b, Buf x, Buf, Val bx) {
      Copy s{b.R(x.At({bx, 0}, {1, 8})), b.R(b.Alloc("s", kF16, scope, {8}))};
      change(b, s);
      b.Add(std::move(s));
    });
  };
  const auto barrier = [](ProgramBuilder& b) { return b.Alloc("bar", DType::kUInt64, Scope::kBarrier, {1}, 1).id(); };
  return {
      {"barrier of a copy that is done at once", copy([=](ProgramBuilder& b, Copy& s) { s.barrier = barrier(b); })},
      {"barrier of a copy to a fragment",
       copy([=](ProgramBuilder& b, Copy& s) { s.is_async = true, s.barrier = barrier(b); }, Scope::kFragment)},
      {"subscripts of no barrier", copy([](ProgramBuilder& b, Copy& s) { s.is_async = true, s.barrier_indices = b.Es({0}); })},
      {"width of a copy", copy([](ProgramBuilder&, Copy& s) { s.coalesced_width = 256; })},
      {"reduction of floats to integers", with([](ProgramBuilder& b, Buf, Val) {
         b.Reduce(ReduceOp::kSum, b.Fragment("f", kF32, {8, 8}), b.Fragment("r", kI32, {8}), 1);
       })},
      {"scan of floats to integers",
       with([](ProgramBuilder& b, Buf, Val) { b.Scan(b.Fragment("f", kF32, {8}), b.Fragment("r", kI32, {8}), 0); })},
      {"scan along no dimension",
       with([](ProgramBuilder& b, Buf, Val) { b.Scan(b.Fragment("f", kF32, {8}), b.Fragment("r", kF32, {8}), 1); })},
      {"parallel loop of nothing", with([](ProgramBuilder& b, Buf, Val) { b.Add(Parallel{}); })},
      {"parallel loop below nothing", with([](ProgramBuilder& b, Buf, Val) { b.OpenParallel({"i"}, {-3}), b.Close(); })},
      {"split of a serial loop",
       with([](ProgramBuilder& b, Buf, Val) { b.OpenFor(ForKind::kSerial, "i", 0, 8, 1, 0, {}, {}, 2), b.Close(); })},
      {"split too wide",
       with([](ProgramBuilder& b, Buf, Val) { b.OpenFor(ForKind::kPipelined, "i", 0, 8, 1, 2, {}, {}, 9), b.Close(); })},
      {"stage too late", with([](ProgramBuilder& b, Buf y, Val) {
         Val i = b.OpenFor(ForKind::kPipelined, "i", 0, 8, 1, 2, {}, {17});
         b.Store(y, {i, 0}, 1);
         b.Close();
       })},
      {"swizzle of a buffer", annotation(AnnotationKind::kUseSwizzle, true, {4}, "row")},
      {"safe value of nothing", annotation(AnnotationKind::kSafeValue, false, {0}, "")},
      {"operands of an annotation", annotation(AnnotationKind::kNoWarpSpecialization, false, {1}, "")},
      {"text of an annotation", annotation(AnnotationKind::kNoWarpSpecialization, false, {}, "row")},
      {"panel of nothing", annotation(AnnotationKind::kUseSwizzle, false, {0}, "row")},
      {"operand of an arrival", with([=](ProgramBuilder& b, Buf, Val) {
         b.Add(BarrierOp{BarrierOpKind::kArrive, barrier(b), b.Es({0}), b.E(1)});
       })},
      {"arrivals of a phase", with([=](ProgramBuilder& b, Buf, Val) {
         for (uint32_t arrivals : {1048575u, 1048576u, 0xffffffffu})
           b.Alloc("bar", DType::kUInt64, Scope::kBarrier, {1}, arrivals);
       })},
      {"wait for a tile", with([](ProgramBuilder& b, Buf, Val) {
         b.Add(BarrierOp{BarrierOpKind::kWait, b.Shared("s", kF16, {1}).id(), b.Es({0}), b.E(1)});
       })},
  };
}

std::vector<Case> ControlCases() {
  const auto region = [](const std::function<void(ProgramBuilder&, Val)>& fill) {
    return With([&](ProgramBuilder& b, Buf, Buf, Val) {
      Val tx = b.OpenThreadRegion("tx");
      fill(b, tx);
      b.Close();
    });
  };
  const auto role = [](const std::function<void(ProgramBuilder&)>& fill) {
    return With([&](ProgramBuilder& b, Buf, Buf, Val) {
      b.OpenRoles(), b.OpenRole(0, 64);
      fill(b);
      b.Close(), b.Close();
    });
  };
  return {
      {"barrier made by a role", role([](ProgramBuilder& b) { b.Alloc("bar", DType::kUInt64, Scope::kBarrier, {1}, 1); })},
      {"safe value of one role", With([=](ProgramBuilder& b, Buf x, Buf, Val) {
         b.OpenRoles(), b.OpenRole(0, 64);
         b.Add(Annotate{AnnotationKind::kSafeValue, x.id(), {b.E(b.Float(1, kF16))}, ""});
         b.Close(), b.Close();
       })},
      {"pipeline among elements", With([](ProgramBuilder& b, Buf, Buf, Val) {
         b.OpenParallel({"i"}, {8});
         b.OpenFor(ForKind::kPipelined, "k", 0, 4), b.Close();
         b.Close();
       })},
      {"variable of threads among tiles", With([](ProgramBuilder& b, Buf, Buf y, Val bx) {
         Buf v = b.Mutable("v", kF16);
         Val tx = b.OpenThreadRegion("tx");
         b.Store(v, {}, tx);
         b.Close();
         b.Store(v, {}, 1);
         b.Store(y, {bx, 0}, v());
       })},
      {"roles without a role", With([](ProgramBuilder& b, Buf, Buf, Val) { b.OpenRoles(), b.Close(); })},
      {"role of an unknown size",
       With([](ProgramBuilder& b, Buf, Buf, Val bx) { b.OpenRoles(), b.OpenRole(0, bx), b.Close(), b.Close(); })},
      {"number of the whole block", region([](ProgramBuilder& b, Val) {
         b.Add(SyncThreads{3, 0});
       })},
      {"barrier 16", region([](ProgramBuilder& b, Val) {
         b.Add(SyncThreads{16, 64});
       })},
      {"group of part of a warp", region([](ProgramBuilder& b, Val) {
         b.Add(SyncThreads{1, 48});
       })},
      {"group among tiles", With([](ProgramBuilder& b, Buf, Buf, Val) {
         b.Add(SyncThreads{1, 64});
       })},
      {"divergent group, shuffle and gemm", region([](ProgramBuilder& b, Val tx) {
         b.OpenIf(tx < 5);
         b.Add(SyncThreads{1, 64});
         b.Add(Shuffle{b.NewVar("s", kF32), b.E(b.Float(1, kF32)), b.Index(0)});
         b.Close();
       })},
      {"gemm of some threads", With([](ProgramBuilder& b, Buf, Buf, Val) {
         const Buf a = b.Shared("a", kF16, {64, 64}), c = b.Fragment("c", kF32, {64, 64});
         Val tx = b.OpenThreadRegion("tx");
         b.OpenIf(tx < 5);
         b.Add(Gemm{b.R(a), b.R(a), b.R(c), false, false, true, GemmPolicy::kSquare, true});
         b.Close(), b.Close();
       })},
  };
}

TEST(Verifier, RulesSayWhatToDo) {
  std::string text;
  for (const auto& cases : {TableCases(), StructureCases(), TypeCases(), OperandCases(), ControlCases()}) {
    for (const Case& c : cases) {
      const std::vector<VerifyError> errors = FindErrors(c.program);
      EXPECT_FALSE(errors.empty()) << c.name;
      text += c.name + "\n";
      for (const VerifyError& error : errors) text += "  " + error.ToString() + "\n";
    }
  }
  ExpectGolden("ir/verifier_rules.txt", text);
}

}  // namespace
}  // namespace tilert
