#include "ir/verifier.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/specialize.h"
#include "tests/golden.h"
#include "tests/ir/sample_programs.h"

namespace tilert {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Verifier, SamplesAreValid) {
  for (const Program& program : SamplePrograms()) {
    std::string errors;
    for (const VerifyError& error : FindErrors(program)) errors += error.ToString() + "\n";
    EXPECT_THAT(errors, IsEmpty()) << program.name;
    EXPECT_TRUE(Verify(program).ok());
  }
}

TEST(Verifier, SpecialisedSamplesAreValid) {
  for (const Program& program : SamplePrograms()) {
    const absl::StatusOr<Program> fixed = Specialize(
        program, {}, program.dims.empty() ? std::map<std::string, int64_t>() : std::map<std::string, int64_t>{{"N", 96}});
    ASSERT_TRUE(fixed.ok()) << fixed.status();
    EXPECT_TRUE(Verify(*fixed).ok()) << Verify(*fixed).status();
  }
}

// One mistake: how to make it. What the verifier says to all of them is a golden file.
struct Case {
  std::string name;
  std::function<Program()> make;
};

constexpr DType kF16 = DType::kFloat16, kF32 = DType::kFloat32, kI32 = DType::kInt32;

// A program with dims M and N, tensors X (in) and Y (out) of (M, N), and one launch whose body `fill` makes.
Program With(const std::function<void(ProgramBuilder&, Buf, Buf, Val)>& fill) {
  ProgramBuilder b("broken");
  Val m = b.Dim("M"), n = b.Dim("N");
  Buf x = b.Tensor("X", kF16, {m, n}), y = b.Tensor("Y", kF16, {m, n}, Access::kOut);
  b.SetLoc({b.File("broken.py"), 3, 5});
  auto [bx] = b.Launch<1>("k0", {m}, 128);
  b.SetLoc({0, 4, 9});
  fill(b, x, y, bx);
  b.Close();
  return *b.Build();
}

// The same without statements, changed afterwards.
Program Changed(const std::function<void(Program&)>& change) {
  Program p = With([](ProgramBuilder&, Buf, Buf, Val) {});
  change(p);
  return p;
}

std::vector<Case> TableCases() {
  return {
      {"program name", [] { return Changed([](Program& p) { p.name = "no good\n"; }); }},
      {"tensor named by a keyword", [] { return Changed([](Program& p) { p.buffers[0].name = "lambda"; }); }},
      {"file name with a line break", [] { return Changed([](Program& p) { p.files[0] = "a.py\nint x;"; }); }},
      {"buffer name with an escape code", [] { return Changed([](Program& p) { p.buffers.back().name = "a\x1b[2J"; }); }},
      {"variable name with a line break", [] { return Changed([](Program& p) { p.vars.back().name = "i\nj"; }); }},
      {"two dims of one name", [] { return Changed([](Program& p) { p.dims[1].name = "M"; }); }},
      {"unbound dim",
       [] {
         return Changed(
             [](Program& p) { p.dims.push_back({"K"}), p.launches[0].grid[0] = p.exprs.Leaf(ExprOp::kDim, 2, DType::kIndex); });
       }},
      {"constant without candidates", [] { return Changed([](Program& p) {
                                             p.constants.push_back({"block", {}});
                                           }); }},
      {"candidate twice", [] { return Changed([](Program& p) {
                                 p.constants.push_back({"block", {1, 2, 1}});
                               }); }},
      {"tensor twice", [] { return Changed([](Program& p) { p.params.push_back(p.params[0]); }); }},
      {"scalar without parameter", [] { return Changed([](Program& p) {
                                          p.scalars.push_back({"s", kF32});
                                        }); }},
      {"float scalar binds a dim",
       [] {
         return Changed([](Program& p) { p.scalars.push_back({"s", kF32, 0}), p.params.push_back({Param::Kind::kScalar, 0}); });
       }},
      {"strides of another rank", [] { return Changed([](Program& p) { p.buffers[0].strides = {p.exprs.Int(1)}; }); }},
      {"negative extent", [] { return Changed([](Program& p) { p.buffers[0].shape[1] = p.exprs.Int(-4); }); }},
      {"extent by a load",
       [] {
         return Changed([](Program& p) {
           p.buffers[0].shape[1] = p.exprs.Cast(p.exprs.Load(1, kF16, {p.exprs.Int(0), p.exprs.Int(0)}), DType::kIndex);
         });
       }},
      {"no launch", [] { return Changed([](Program& p) { p.launches.clear(); }); }},
      {"too many threads", [] { return Changed([](Program& p) { p.launches[0].threads = p.exprs.Int(2048); }); }},
      {"block variables", [] { return Changed([](Program& p) { p.launches[0].block_vars.clear(); }); }},
      {"assumption on data",
       [] {
         return Changed([](Program& p) {
           p.assumptions = {
               p.exprs.Binary(ExprOp::kLt, p.exprs.Load(0, kF16, {p.exprs.Int(0), p.exprs.Int(0)}), p.exprs.Float(1, kF16))};
         });
       }},
      {"assumption of a number", [] { return Changed([](Program& p) { p.assumptions = {p.exprs.Int(1)}; }); }},
      {"buffer id", [] { return Changed([](Program& p) { p.launches[0].body = {{Alloc{77}}}; }); }},
      {"operand missing", [] { return Changed([](Program& p) { p.launches[0].body = {{While{}}}; }); }},
      {"enum value", [] { return Changed([](Program& p) { p.launches[0].body = {{AtomicTile{}}}; }); }},
      {"operator's operands",
       [] { return Changed([](Program& p) { p.exprs.Make(ExprOp::kAdd, DType::kIndex, {p.exprs.Int(1)}); }); }},
  };
}

std::vector<Case> TypeCases() {
  const auto store = [](const std::function<Val(ProgramBuilder&, Buf)>& value) {
    return [value] { return With([&](ProgramBuilder& b, Buf x, Buf y, Val bx) { b.Store(y, {bx, 0}, value(b, x)); }); };
  };
  const auto raw = [](ProgramBuilder& b, ExprOp op, DType type, Val l, Val r) {
    return b.Wrap(b.exprs().Make(op, type, {b.E(l), b.E(r)}));
  };
  return {
      {"operands of two types",
       store([=](ProgramBuilder& b, Buf x) { return raw(b, ExprOp::kAdd, kF16, x(0, 0), b.Float(1, kF32)); })},
      {"result of another type", store([=](ProgramBuilder& b, Buf x) { return raw(b, ExprOp::kAdd, kF32, x(0, 0), x(0, 1)); })},
      {"float8 arithmetic", store([=](ProgramBuilder& b, Buf) {
         return raw(b, ExprOp::kMul, DType::kFloat8E4M3, b.Float(1, DType::kFloat8E4M3), b.Float(1, DType::kFloat8E4M3));
       })},
      {"division of integers",
       store([=](ProgramBuilder& b, Buf) { return raw(b, ExprOp::kDiv, kI32, b.Int(4, kI32), b.Int(2, kI32)); })},
      {"floor division of floats",
       store([=](ProgramBuilder& b, Buf x) { return raw(b, ExprOp::kFloorDiv, kF16, x(0, 0), x(0, 1)); })},
      {"and of numbers",
       store([=](ProgramBuilder& b, Buf) { return raw(b, ExprOp::kAnd, DType::kBool, b.Int(4, kI32), b.Int(2, kI32)); })},
      {"reinterpret to another width", store([](ProgramBuilder& b, Buf x) { return b.Reinterpret(x(0, 0), DType::kUInt32); })},
      {"float subscript", [] { return With([](ProgramBuilder& b, Buf x, Buf y, Val) {
                                 b.Store(y, {x(0, 0), 0}, 1);
                               }); }},
      {"condition is a number",
       [] { return With([](ProgramBuilder& b, Buf, Buf, Val) {
              b.Add(Assert{b.E(b.Int(1, kI32)), "m"});
            }); }},
      {"let of another type",
       [] { return With([](ProgramBuilder& b, Buf x, Buf, Val) {
              b.Add(Let{b.NewVar("v", kF32), b.E(x(0, 0))});
            }); }},
  };
}

std::vector<Case> ScopeCases() {
  return {
      {"buffer used before its allocation",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           Program& p = const_cast<Program&>(b.program());
           p.buffers.push_back({"late", kF16, Scope::kShared, {b.E(8)}});
           Buf late(&b, static_cast<BufferId>(p.buffers.size()) - 1);
           b.Fill(late, 0);
           b.Add(Alloc{late.id()});
         });
       }},
      {"buffer used after its block",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val bx) {
           b.OpenIf(bx == 0);
           Buf inner = b.Shared("inner", kF16, {8});
           b.Close();
           b.Fill(inner, 0);
         });
       }},
      {"buffer allocated twice",
       [] { return With([](ProgramBuilder& b, Buf, Buf, Val) { b.Add(Alloc{b.Shared("s", kF16, {8}).id()}); }); }},
      {"variable of another loop",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf y, Val) {
           Val i = b.OpenFor(ForKind::kSerial, "i", 0, 4);
           b.Close();
           b.Store(y, {i, 0}, 1);
         });
       }},
      {"variable bound twice",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val bx) {
           const VarId v = b.NewVar("v");
           b.Add(Let{v, b.E(bx)});
           b.Add(Let{v, b.E(bx)});
         });
       }},
      {"input written", [] { return With([](ProgramBuilder& b, Buf x, Buf, Val bx) {
                               b.Store(x, {bx, 0}, 1);
                             }); }},
      {"output read", [] { return With([](ProgramBuilder& b, Buf, Buf y, Val bx) {
                             b.Store(y, {bx, 0}, y(bx, 1));
                           }); }},
  };
}

std::vector<Case> RegionCases() {
  const auto gemm = [](DType a, DType c, std::vector<Val> as, std::vector<Val> bs, bool transpose_b) {
    return [=] {
      return With([&](ProgramBuilder& b, Buf, Buf, Val) {
        b.Gemm(b.Shared("A", a, as), b.Shared("B", kF16, bs), b.Fragment("C", c, {64, 32}), false, transpose_b);
      });
    };
  };
  return {
      {"copy of another shape",
       [] {
         return With([](ProgramBuilder& b, Buf x, Buf, Val bx) { b.Copy(x.At({bx, 0}, {1, 32}), b.Shared("s", kF16, {64})); });
       }},
      {"copy from a variable",
       [] { return With([](ProgramBuilder& b, Buf, Buf y, Val bx) {
              b.Copy(b.Mutable("v", kF16), y.At({bx, 0}, {1, 1}));
            }); }},
      {"gemm types", gemm(DType::kBFloat16, kF32, {64, 16}, {16, 32}, false)},
      {"gemm accumulator type", gemm(kF16, DType::kInt32, {64, 16}, {16, 32}, false)},
      {"gemm inner extents", gemm(kF16, kF32, {64, 16}, {32, 16}, false)},
      {"gemm outer extents", gemm(kF16, kF32, {64, 16}, {16, 16}, true)},
      {"gemm rank", gemm(kF16, kF32, {4, 64, 16}, {16, 32}, false)},
      {"gemm from global memory",
       [] {
         return With([](ProgramBuilder& b, Buf x, Buf, Val) {
           b.Gemm(x, b.Shared("B", kF16, {16, 32}), b.Fragment("C", kF32, {64, 32}));
         });
       }},
      {"reduce dim",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           b.Reduce(ReduceOp::kSum, b.Fragment("f", kF32, {8, 8}), b.Fragment("r", kF32, {8}), 2);
         });
       }},
      {"reduce shape",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           b.Reduce(ReduceOp::kSum, b.Fragment("f", kF32, {8, 16}), b.Fragment("r", kF32, {8}), 0);
         });
       }},
      {"bitwise reduction of floats",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           b.Reduce(ReduceOp::kBitOr, b.Fragment("f", kF32, {8, 8}), b.Fragment("r", kF32, {8}), 0);
         });
       }},
      {"subscripts",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf y, Val bx) { b.Add(Store{y.id(), {b.E(bx)}, b.E(b.Float(1, kF16))}); });
       }},
  };
}

std::vector<Case> OperandCases() {
  return {
      {"step of a loop",
       [] { return With([](ProgramBuilder& b, Buf, Buf, Val) { b.OpenFor(ForKind::kSerial, "i", 8, 0, -1), b.Close(); }); }},
      {"stages of a pipeline",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val bx) {
           for (Val stages : {bx, Val(17), b.Constant("stages", {-1, 2})}) {
             b.OpenFor(ForKind::kPipelined, "i", 0, 8, 1, stages);
             b.Close();
           }
           b.OpenFor(ForKind::kSerial, "i", 0, 8, 1, 2);
           b.Close();
         });
       }},
      {"order of a pipeline",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf y, Val) {
           Val i = b.OpenFor(ForKind::kPipelined, "i", 0, 8, 1, 2, {0, 0}, {0});
           b.Store(y, {i, 0}, 1);
           b.Store(y, {i, 1}, 1);
           b.Close();
         });
       }},
      {"atomics on bytes",
       [] {
         return With(
             [](ProgramBuilder& b, Buf, Buf, Val) { b.Atomic(AtomicOp::kAdd, b.Shared("s", DType::kInt8, {8}), {0}, 1); });
       }},
      {"atomics on a fragment",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) { b.Atomic(AtomicOp::kAdd, b.Fragment("s", kF32, {8}), {0}, 1); });
       }},
      {"print format",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val bx) {
           b.Add(Print{"{} {}", {b.E(bx)}}), b.Add(Print{"{d}", {b.E(bx)}});
         });
       }},
      {"annotation",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           b.Add(Annotate{AnnotationKind::kUseSwizzle, kNoId, {b.E(0)}, "diagonal"});
         });
       }},
      {"wait without parity",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           b.Add(BarrierOp{BarrierOpKind::kWait, b.Alloc("bar", DType::kUInt64, Scope::kBarrier, {1}, 1).id(), b.Es({0}), {}});
         });
       }},
      {"dynamic tile",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val bx) {
           Buf f = b.Fragment("f", kF32, {8, 8});
           b.Reduce(ReduceOp::kSum, f.At({0, 0}, {8, bx}), b.Fragment("r", kF32, {8}), 1);
         });
       }},
      {"negative extent",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           Buf f = b.Fragment("f", kF32, {8, 8});
           b.Reduce(ReduceOp::kSum, f.At({0, 0}, {8, -1}), b.Fragment("r", kF32, {8}), 1);
         });
       }},
  };
}

std::vector<Case> ControlCases() {
  return {
      {"copy in a parallel loop",
       [] {
         return With([](ProgramBuilder& b, Buf x, Buf, Val) {
           Buf s = b.Shared("s", kF16, {8});
           Val i = b.OpenParallel({"i"}, {8})[0];
           b.Copy(x.At({i, 0}, {1, 8}), s);
           b.Close();
         });
       }},
      {"break outside a loop",
       [] { return With([](ProgramBuilder& b, Buf, Buf, Val bx) { b.OpenIf(bx == 0), b.Add(Break{}), b.Close(); }); }},
      {"break out of a parallel loop",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           b.OpenFor(ForKind::kSerial, "k", 0, 4);
           b.OpenParallel({"i"}, {8});
           b.Add(Break{});
           b.Close();
           b.Close();
         });
       }},
      {"shared variable written by points",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           Buf v = b.Mutable("v", kI32);
           b.OpenParallel({"i"}, {8});
           b.Store(v, {}, 1);
           b.Close();
         });
       }},
      {"shared memory allocated by threads",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) { b.OpenThreadRegion("tx"), b.Shared("s", kF16, {8}), b.Close(); });
       }},
  };
}

std::vector<Case> ThreadCases() {
  return {
      {"fragment in a thread region",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf y, Val) {
           Buf f = b.Fragment("f", kF16, {8});
           Val tx = b.OpenThreadRegion("tx");
           b.Store(y, {tx, 0}, f(tx));
           b.Store(f, {tx}, 1);
           b.Close();
         });
       }},
      {"divergent sync",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           Val tx = b.OpenThreadRegion("tx");
           b.OpenIf(FloorDiv(tx, 32) == 1);
           b.Add(SyncThreads{});
           b.Close();
           b.OpenFor(ForKind::kSerial, "i", 0, tx);
           b.Add(SyncThreads{});
           b.Close();
           b.OpenFor(ForKind::kSerial, "j", 0, 8);
           b.Add(SyncThreads{});  // a thread may have left before
           b.OpenIf(tx < 7);
           b.Add(Break{});
           b.Close();
           b.Close();
           b.Close();
         });
       }},
      {"sync in a role",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf, Val) {
           b.OpenRoles();
           b.OpenRole(0, 32);
           b.Add(SyncThreads{});
           b.Close();
           b.OpenRole(16, 256);
           b.Close();
           b.OpenRole(40, 80);
           b.Close();
           b.Close();
         });
       }},
  };
}

std::vector<Case> LimitCases() {
  return {
      {"huge tile", [] { return With([](ProgramBuilder& b, Buf, Buf, Val) {
                           b.Shared("s", kF16, {1 << 20, 1 << 20});
                         }); }},
      {"unrolled bomb",
       [] {
         return With([](ProgramBuilder& b, Buf, Buf y, Val) {
           for (int i = 0; i < 6; ++i) b.OpenFor(ForKind::kUnrolled, "i", 0, 1000);
           b.Store(y, {0, 0}, 1);
           for (int i = 0; i < 6; ++i) b.Close();
         });
       }},
  };
}

TEST(Verifier, Messages) {
  std::string text;
  for (const auto& cases :
       {TableCases(), TypeCases(), ScopeCases(), RegionCases(), OperandCases(), ControlCases(), ThreadCases(), LimitCases()}) {
    for (const Case& c : cases) {
      const std::vector<VerifyError> errors = FindErrors(c.make());
      EXPECT_FALSE(errors.empty()) << c.name;
      text += c.name + "\n";
      for (const VerifyError& error : errors) text += "  " + error.ToString() + "\n";
    }
  }
  ExpectGolden("ir/verifier_messages.txt", text);
}

TEST(Verifier, ErrorsAreCollectedAndCapped) {
  const Program p = With([](ProgramBuilder& b, Buf x, Buf, Val bx) {
    for (int i = 0; i < 200; ++i) b.Store(x, {bx, i}, 1);
  });
  EXPECT_EQ(FindErrors(p).size(), kMaxVerifyErrors);
}

TEST(Verifier, StatusListsEveryError) {
  const Program p = With([](ProgramBuilder& b, Buf x, Buf y, Val bx) {
    b.Store(x, {bx, 0}, 1);
    b.Store(y, {bx, 0}, y(bx, 1));
  });
  const absl::Status status = Verify(p).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("broken is not a valid program:\nbroken.py:4:9: launches[0].body[0]: 'X' is written"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\nbroken.py:4:9: launches[0].body[1]: 'Y' is read"));
}

TEST(Verifier, MistakesOfOneCandidateNameIt) {
  ProgramBuilder b("tile");
  Val n = b.Dim("N"), block = b.Constant("block", {64, 32});
  Buf x = b.Tensor("X", kF16, {n});
  b.Launch<1>("k0", {1}, 32);
  b.Copy(x.At({0}, {32}), b.Shared("s", kF16, {block}));
  b.Close();
  const Program p = *b.Build();
  const std::vector<VerifyError> errors = FindErrors(p);
  ASSERT_EQ(errors.size(), 1);
  EXPECT_THAT(errors[0].message, HasSubstr("(with block=64)"));
  EXPECT_THAT(FindErrors(*Specialize(p, {{"block", 32}})), IsEmpty());
}

}  // namespace
}  // namespace tilert
