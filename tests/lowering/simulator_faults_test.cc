// Small kernels with one fault each: the simulator names it. Each has a sound twin, so that the fault is what is found.
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernel_maker.h"
#include "lowering/simulator.h"

namespace tilert {
namespace {

using kir::CopyMethod;
using testing::AnyOf;
using testing::HasSubstr;

// 64 threads; in and out are 256 floats, i runs over them four a thread, `tile` and `data` hold them in shared memory and
// registers.
class Fault : public testing::Test {
 protected:
  Fault() : m(2) {
    in = m.Global("in", DType::kFloat32, {m.Int(256)});
    out = m.Global("out", DType::kFloat32, {m.Int(256)}, true);
    tile = m.Shared("tile", DType::kFloat32, {256}, 2);
    layout = BlockedLayout({256}, 2, 4);
    data = m.Register("data", DType::kFloat32, layout);
    i = m.Var("i");
    t = m.Var("t");
    for (size_t e = 0; e < from.size(); ++e) from[e] = static_cast<float>(e) / 8;
  }

  absl::Status Simulated(SimOptions options = {}) {
    const auto bytes = [](std::vector<float>& v) { return absl::MakeSpan(reinterpret_cast<uint8_t*>(v.data()), v.size() * 4); };
    return Simulate(m.k, {dims, {}, {bytes(from), bytes(to)}}, options).status();
  }
  void ExpectSound() { EXPECT_TRUE(Simulated().ok()) << Simulated(); }
  void ExpectFault(const std::string& what) {
    const absl::Status status = Simulated();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_THAT(std::string(status.message()), HasSubstr("body["));
  }

  // A race shows in one of several ways, by who comes first.
  void ExpectRace() {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const absl::Status status = Simulated({.seed = seed});
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << "seed " << seed;
      EXPECT_THAT(std::string(status.message()),
                  AnyOf(HasSubstr("not ordered before it"), HasSubstr("never written"), HasSubstr("in flight")));
    }
  }

  kir::Copy LoadData() { return m.WholeCopy(CopyMethod::kVector, data, in, layout, 4); }
  kir::Copy StoreData() { return m.WholeCopy(CopyMethod::kVector, out, data, layout, 4); }
  kir::Copy Async(Expr version) {
    kir::Copy copy = m.WholeCopy(CopyMethod::kCpAsync, tile, in, layout, 4);
    copy.dst.start[0] = version;
    return copy;
  }
  // out[i] = tile[version, 255 − i]: the element of another thread.
  void StoreReversed(Expr version) {
    m.Points(layout, {i}, [&] { m.Store(out, {m.V(i)}, m.Load(tile, {version, m.Op(ExprOp::kSub, m.Int(255), m.V(i))})); });
  }
  // out[i] = tile[version, i]: the thread's own.
  void StoreOwn(Expr version) {
    m.Points(layout, {i}, [&] { m.Store(out, {m.V(i)}, m.Load(tile, {version, m.V(i)})); });
  }
  kir::For Loop(VarId var, int64_t end) { return {var, m.Int(0), m.Int(end), m.Int(1), kir::Unroll::kNo, {}}; }

  KernelMaker m;
  BufferId in, out, tile, data;
  FragmentLayout layout;
  VarId i, t;
  std::vector<int64_t> dims;
  std::vector<float> from = std::vector<float>(256), to = std::vector<float>(256, -1);
};

TEST_F(Fault, ReadBeforeWriteIsOrdered) {
  m.Add(m.WholeCopy(CopyMethod::kVector, tile, in, layout, 4));
  StoreReversed(m.Int(0));
  ExpectRace();
}

TEST_F(Fault, NeedsNoBarrierForItsOwnElements) {
  m.Add(m.WholeCopy(CopyMethod::kVector, tile, in, layout, 4));
  StoreOwn(m.Int(0));
  ExpectSound();
}

TEST_F(Fault, LanesOfOneWarpNeedABarrierToo) {
  m.k.warps = 1;
  layout = BlockedLayout({256}, 1, 4);
  m.Add(m.WholeCopy(CopyMethod::kVector, tile, in, layout, 4));
  StoreReversed(m.Int(0));
  ExpectRace();
}

TEST_F(Fault, OverwrittenWhileRead) {
  m.With(Loop(t, 3), [&] {
    m.Add(m.WholeCopy(CopyMethod::kVector, tile, in, layout, 4));
    m.Add(kir::BarSync{});
    StoreReversed(m.Int(0));
  });
  ExpectRace();
}

TEST_F(Fault, TwoVersionsNeedOneBarrier) {
  m.With(Loop(t, 5), [&] {
    kir::Copy copy = m.WholeCopy(CopyMethod::kVector, tile, in, layout, 4);
    copy.dst.start[0] = m.Op(ExprOp::kFloorMod, m.V(t), m.Int(2));
    m.Add(copy);
    m.Add(kir::BarSync{});
    StoreReversed(copy.dst.start[0]);
  });
  ExpectSound();
  EXPECT_EQ(to[0], from[255]);
}

TEST_F(Fault, TwoThreadsWriteOneElement) {
  m.Points(layout, {i}, [&] {
    m.Store(tile, {m.Int(0), m.Op(ExprOp::kFloorMod, m.V(i), m.Int(128))}, m.k.exprs.Cast(m.V(i), DType::kFloat32));
  });
  ExpectFault("also written");
}

TEST_F(Fault, TwoThreadsMayLeaveTheSameInOneElement) {
  m.Points(layout, {i}, [&] { m.Store(tile, {m.Int(0), m.Op(ExprOp::kFloorMod, m.V(i), m.Int(128))}, m.Real(1)); });
  ExpectSound();
}

TEST_F(Fault, TwoBlocksWriteOneElement) {
  m.k.grid = {m.Int(2)};
  m.Add(kir::Declare{data});
  m.Add(LoadData());
  m.Add(StoreData());
  ExpectFault("of another block");
}

TEST_F(Fault, OneBlockReadsWhatAnotherWrites) {
  m.k.grid = {m.Int(2)};
  const FragmentLayout half = BlockedLayout({128}, 2, 1);
  m.Points(half, {i}, [&] {
    const Expr mine = m.Sum(m.Op(ExprOp::kMul, m.bx(), m.Int(128)), m.V(i));
    m.Store(out, {mine}, m.Load(out, {m.Op(ExprOp::kSub, m.Int(255), mine)}));
  });
  ExpectFault("of another block");
}

TEST_F(Fault, AtomicsDoNotRace) {
  m.k.grid = {m.Int(3)};
  m.Points(layout, {i}, [&] {
    m.Add(kir::Atomic{AtomicOp::kMax, out, {m.Op(ExprOp::kFloorDiv, m.V(i), m.Int(2))}, m.Load(in, {m.V(i)})});
  });
  ExpectSound();
  EXPECT_EQ(to[5], from[11]);
  m.Points(layout, {i}, [&] { m.Store(out, {m.V(i)}, m.Real(0)); });
  ExpectFault("not ordered before it");
}

TEST_F(Fault, AsyncCopyWithoutWait) {
  m.Add(Async(m.Int(0)));
  m.Add(kir::CpAsyncCommit{});
  m.Add(kir::BarSync{});
  StoreReversed(m.Int(0));
  ExpectRace();
}

TEST_F(Fault, AsyncCopyIsVisibleToItsThreadAfterTheWait) {
  m.Add(Async(m.Int(0)));
  m.Add(kir::CpAsyncCommit{});
  m.Add(kir::CpAsyncWait{0, {{tile, m.Int(0)}}});
  StoreOwn(m.Int(0));
  ExpectSound();
  EXPECT_EQ(to, from);
}

TEST_F(Fault, AsyncCopyIsNotVisibleToOthersBeforeABarrier) {
  m.Add(Async(m.Int(0)));
  m.Add(kir::CpAsyncCommit{});
  m.Add(kir::BarSync{});
  m.Add(kir::CpAsyncWait{0, {{tile, m.Int(0)}}});
  StoreReversed(m.Int(0));
  ExpectRace();
}

TEST_F(Fault, AsyncCopyThatWasNotCommitted) {
  m.Add(Async(m.Int(0)));
  m.Add(kir::CpAsyncWait{0, {}});
  m.Add(kir::BarSync{});
  StoreReversed(m.Int(0));
  ExpectRace();
}

TEST_F(Fault, WaitsDeclareTheTruth) {
  m.Add(Async(m.Int(0)));
  m.Add(kir::CpAsyncCommit{});
  m.Add(Async(m.Int(1)));
  m.Add(kir::CpAsyncCommit{});
  m.Add(kir::CpAsyncWait{1, {{tile, m.Int(0)}}});
  m.Add(kir::BarSync{});
  StoreReversed(m.Int(0));
  ExpectSound();
  std::get<kir::CpAsyncWait>(m.k.body[4].op).retires[0].version = m.Int(1);
  ExpectFault("declares version 1 of tile complete");
}

TEST_F(Fault, SlotOverwrittenByAnAsyncCopyWhileRead) {
  m.With(Loop(t, 3), [&] {
    m.Add(Async(m.Int(0)));
    m.Add(kir::CpAsyncCommit{});
    m.Add(kir::CpAsyncWait{0, {}});
    m.Add(kir::BarSync{});
    StoreReversed(m.Int(0));
  });
  ExpectRace();
}

TEST_F(Fault, BuffersThatOverlap) {
  const BufferId other = m.Shared("other", DType::kFloat32, {256});
  m.k.buffers[other].offset = m.k.buffers[tile].offset + 512;
  m.Add(m.WholeCopy(CopyMethod::kVector, tile, in, layout, 4));
  m.Add(m.WholeCopy(CopyMethod::kVector, other, in, layout, 4));
  ExpectFault("also written");
}

TEST_F(Fault, BarrierUnderDivergentControl) {
  const BufferId flag = m.Register("flag", DType::kFloat32, BlockedLayout({64}, 2, 1));
  m.Add(kir::Declare{flag, true});
  m.With(kir::If{m.Op(ExprOp::kLt, m.Load(flag, {m.Int(3)}), m.Real(1)), {}, {}}, [&] { m.Add(kir::BarSync{}); });
  ExpectFault("another thread holds");
}

TEST_F(Fault, WarpsThatMissABarrier) {
  const BufferId count = m.Shared("count", DType::kInt32, {1});
  m.Points(FragmentLayout{{}, 2}, {}, [&] { m.Store(count, {m.Int(0), m.Int(0)}, m.k.exprs.Int(0, DType::kInt32)); });
  m.Add(kir::BarSync{});
  m.Add(kir::Atomic{AtomicOp::kAdd, count, {m.Int(0), m.Int(0)}, m.k.exprs.Int(1, DType::kInt32)});
  m.Add(kir::BarSync{});
  const Expr twice = m.k.exprs.Cast(m.Load(count, {m.Int(0), m.Int(0)}), DType::kIndex);
  m.With(kir::For{t, m.Int(0), twice, m.Int(1), kir::Unroll::kNo, {}}, [&] { m.Add(kir::BarSync{}); });
  ExpectSound();
}

// A dim that breaks the promise of 32-bit indices stands for a wrong proof: the code that is emitted has no guard.
TEST_F(Fault, AccessThatNothingGuards) {
  const auto twin = [&](int64_t dim, const auto& access) {
    m.k.body.clear();
    m.k.index32 = true;
    const Expr far = m.Op(ExprOp::kMax, m.Op(ExprOp::kSub, m.Dim("N"), m.Int((int64_t{1} << 30) - 1)), m.Int(0));
    dims = {dim};
    m.Points(layout, {i}, [&] { access(m.Sum(m.V(i), far)); });
  };
  const auto store = [&](Expr at) { m.Store(out, {at}, m.Real(1)); };
  const auto load = [&](Expr at) { m.Store(out, {m.V(i)}, m.Load(in, {at})); };
  const auto add = [&](Expr at) { m.Add(kir::Atomic{AtomicOp::kAdd, out, {at}, m.Real(1)}); };
  const auto to_shared = [&](Expr at) { m.Store(tile, {m.Int(0), at}, m.Real(1)); };
  for (const std::function<void(Expr)>& access : std::vector<std::function<void(Expr)>>{store, load, add, to_shared}) {
    twin((int64_t{1} << 30) - 1, access);
    ExpectSound();
    twin((int64_t{1} << 30) + 100, access);
    ExpectFault("are relied on");
  }
}

TEST_F(Fault, UnwrittenRegister) {
  m.Add(kir::Declare{data});
  m.Points(layout, {i}, [&] { m.Store(out, {m.V(i)}, m.Op(ExprOp::kMul, m.Load(data, {m.V(i)}), m.Real(0))); });
  ExpectFault("data[");
  ExpectFault("never written");
}

TEST_F(Fault, UnwrittenRegisterReachesMemoryByCopies) {
  m.Add(kir::Declare{data});
  m.Add(m.WholeCopy(CopyMethod::kVector, tile, data, layout, 4));
  m.Add(m.WholeCopy(CopyMethod::kVector, data, tile, layout, 4));
  ExpectSound();
  m.Add(StoreData());
  ExpectFault("never written");
}

TEST_F(Fault, UnwrittenOnlyWhereNotChosen) {
  m.Points(layout, {i}, [&] {
    const Expr low = m.Op(ExprOp::kLt, m.V(i), m.Int(100));
    m.Store(out, {m.V(i)}, m.k.exprs.Make(ExprOp::kSelect, DType::kFloat32, {low, m.Load(in, {m.V(i)}), m.Real(2)}));
  });
  m.Add(kir::Declare{data});
  m.Points(layout, {i}, [&] {
    const Expr low = m.Op(ExprOp::kLt, m.V(i), m.Int(100));
    m.With(kir::If{low, {}, {}}, [&] { m.Store(data, {m.V(i)}, m.Real(3)); });
    m.Store(out, {m.V(i)},
            m.k.exprs.Make(ExprOp::kSelect, DType::kFloat32, {low, m.Load(data, {m.V(i)}), m.Load(out, {m.V(i)})}));
  });
  ExpectSound();
  EXPECT_EQ(to[99], 3);
  EXPECT_EQ(to[100], 2);
}

TEST_F(Fault, DeclareMakesANewBuffer) {
  m.With(Loop(t, 2), [&] {
    m.Add(kir::Declare{data});
    m.With(kir::If{m.Op(ExprOp::kEq, m.V(t), m.Int(0)), {}, {}}, [&] { m.Add(LoadData()); });
    m.Add(StoreData());
  });
  ExpectFault("never written");
}

TEST_F(Fault, FalseInside) {
  kir::Copy copy = LoadData();
  copy.src.start[0] = m.Int(4);
  m.Add(kir::Declare{data});
  m.Add(copy);
  ExpectFault("relied on to be inside");
  std::get<kir::Copy>(m.k.body[1].op).src.inside[0] = false;
  m.Add(StoreData());
  ExpectSound();
  EXPECT_EQ(to[251], from[255]);
  EXPECT_EQ(to[252], 0);
}

TEST_F(Fault, MisalignedVector) {
  kir::Copy copy = LoadData();
  copy.src.start[0] = m.Int(2);
  copy.src.inside[0] = false;
  m.Add(kir::Declare{data});
  m.Add(copy);
  ExpectFault("not aligned");
}

TEST_F(Fault, VectorBeyondThePromisedAlignment) {
  m.k.buffers[in].alignment = 4;
  m.Add(kir::Declare{data});
  m.Add(LoadData());
  ExpectFault("promises 4 bytes only");
}

TEST_F(Fault, VectorOfStridedElements) {
  m.k.buffers[in].shape = {m.Int(128)};
  m.k.buffers[in].strides = {m.Int(2)};
  kir::Copy copy = LoadData();
  copy.layout.dims[0].extent = 128;
  m.Add(kir::Declare{data});
  m.Add(copy);
  ExpectFault("not contiguous");
}

TEST_F(Fault, WrittenThoughReadOnly) {
  m.k.buffers[out].written = false;
  m.Points(layout, {i}, [&] { m.Store(out, {m.V(i)}, m.Real(0)); });
  ExpectFault("read only");
}

TEST_F(Fault, ElementOfAnotherThread) {
  m.Add(kir::Declare{data, true});
  m.Points(layout, {i}, [&] { m.Store(out, {m.V(i)}, m.Load(data, {m.Op(ExprOp::kSub, m.Int(255), m.V(i))})); });
  ExpectFault("another thread holds");
}

TEST_F(Fault, PointsThatDependOnEachOther) {
  const BufferId sum = m.Scalar("sum", DType::kFloat32);
  m.Add(kir::Declare{sum, true});
  m.Points(layout, {i}, [&] { m.Store(sum, {}, m.Sum(m.Load(sum, {}), m.Load(in, {m.V(i)}))); });
  ExpectFault("depend on each other");
}

TEST_F(Fault, NoSuchVersion) {
  m.Add(kir::CpAsyncCommit{});
  StoreOwn(m.Int(2));
  ExpectFault("no such version");
}

// What may not fit 32 bits is computed in 64.
TEST_F(Fault, IndexBeyond32Bits) {
  m.k.index32 = true;
  m.Points(layout, {i}, [&] {
    const Expr far = m.Op(ExprOp::kMul, m.V(i), m.Int(1 << 28));
    m.Store(out, {m.V(i)}, m.Load(in, {m.Op(ExprOp::kFloorMod, far, m.Int(7))}));
  });
  ExpectSound();
  m.k.index32 = false;
  ExpectSound();
}

TEST_F(Fault, EndlessLoop) {
  m.With(kir::While{m.k.exprs.Int(1, DType::kBool), {}}, [&] { m.Add(kir::CpAsyncCommit{}); });
  EXPECT_EQ(Simulated({.max_steps = 10000}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Simulated({.max_seconds = 0.05}).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(Fault, AssertionsAreTheProgramsOwn) {
  m.Points(layout, {i}, [&] { m.Add(kir::Assert{m.Op(ExprOp::kLt, m.V(i), m.Int(200)), "too far"}); });
  const absl::Status status = Simulated();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("too far"));
}

TEST_F(Fault, ArgumentsThatDoNotFit) {
  to.resize(100);
  m.Add(kir::CpAsyncCommit{});
  EXPECT_EQ(Simulated().code(), absl::StatusCode::kInvalidArgument);
  dims = {3};
  EXPECT_EQ(Simulated().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Fault, ControlFlowInsidePoints) {
  // out[i] = how many t below 10 are not multiples of 3 and below i.
  const BufferId count = m.Register("count", DType::kFloat32, layout);
  m.Add(kir::Declare{count, true});
  m.Points(layout, {i}, [&] {
    m.With(Loop(t, 10), [&] {
      m.With(kir::If{m.Op(ExprOp::kGe, m.V(t), m.V(i)), {}, {}}, [&] { m.Add(kir::Break{}); });
      m.With(kir::If{m.Op(ExprOp::kEq, m.Op(ExprOp::kFloorMod, m.V(t), m.Int(3)), m.Int(0)), {}, {}},
             [&] { m.Add(kir::Continue{}); });
      m.Store(count, {m.V(i)}, m.Sum(m.Load(count, {m.V(i)}), m.Real(1)));
    });
    m.Store(out, {m.V(i)}, m.Load(count, {m.V(i)}));
  });
  ExpectSound();
  for (int e = 0; e < 256; ++e) {
    int expected = 0;
    for (int v = 0; v < std::min(e, 10); ++v) expected += v % 3 != 0;
    ASSERT_EQ(to[static_cast<size_t>(e)], static_cast<float>(expected)) << e;
  }
}

}  // namespace
}  // namespace tilert
