#include "ir/uniformity.h"

#include <functional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/builder.h"

namespace tilert {
namespace {

// The uniformity of each Let's value and control in a thread region made by `fill`, in order.
std::vector<std::pair<Uniformity, Uniformity>> Infer(const std::function<void(ProgramBuilder&, Val, Buf)>& fill) {
  ProgramBuilder b("u");
  Buf x = b.Tensor("X", DType::kInt32, {64});
  b.Launch<1>("k0", {1}, 256);
  Val tx = b.OpenThreadRegion("tx");
  fill(b, tx, x);
  b.Close();
  b.Close();
  const Program p = *b.Build();
  const auto& region = std::get<ThreadRegion>(p.launches[0].body[0].op);
  const ThreadUniformity u(p, region);
  std::vector<std::pair<Uniformity, Uniformity>> found;
  ForEachStmt(region.body, [&](const Stmt& stmt) {
    if (const auto* let = std::get_if<Let>(&stmt.op)) found.push_back({u.Of(let->value), u.ControlOf(stmt)});
    EXPECT_EQ(u.ControlOf(Stmt(stmt)), Uniformity::kThread) << "nothing is known of a copy";
  });
  return found;
}

constexpr auto kB = Uniformity::kBlock, kG = Uniformity::kWarpgroup, kW = Uniformity::kWarp, kT = Uniformity::kThread;

TEST(Uniformity, OfValues) {
  const auto found = Infer([](ProgramBuilder& b, Val tx, Buf x) {
    b.Let("v", tx + 1);
    b.Let("v", FloorDiv(tx, 32) * 2);
    b.Let("v", FloorDiv(tx, 128));
    b.Let("v", FloorDiv(tx, 48));
    b.Let("v", tx >> 5);
    b.Let("v", tx < 64);
    b.Let("v", tx >= 128);
    b.Let("v", tx <= 64);
    b.Let("v", x(3));
    b.Let("v", x(tx));
    b.Let("v", x(FloorDiv(tx, 32)) + x(0));
  });
  const std::vector<Uniformity> expected = {kT, kW, kG, kT, kW, kW, kG, kT, kB, kT, kW};
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].first, expected[i]) << i;
}

TEST(Uniformity, OfPrivateVariables) {
  const auto found = Infer([](ProgramBuilder& b, Val tx, Buf) {
    Buf same = b.Mutable("same", DType::kInt32), own = b.Mutable("own", DType::kInt32), late = b.Mutable("late", DType::kInt32);
    b.Store(same, {}, 1);
    b.Store(own, {}, 1);
    b.Store(late, {}, 1);
    b.OpenIf(tx < 3);
    b.Store(own, {}, 2);
    b.Close();
    b.Let("v", same());
    b.Let("v", own());
    b.OpenFor(ForKind::kSerial, "i", 0, 4);
    b.Let("v", late());
    b.Store(late, {}, own());
    b.Close();
  });
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].first, kB);
  EXPECT_EQ(found[1].first, kT);
  EXPECT_EQ(found[2].first, kT);  // by way of the loop
}

TEST(Uniformity, OfControl) {
  const auto found = Infer([](ProgramBuilder& b, Val tx, Buf x) {
    b.OpenIf(x(0) > 0);
    b.Let("v", 1 + tx);
    b.Close();
    b.OpenIf(FloorDiv(tx, 32) == 0);
    b.Let("v", 1 + tx);
    b.Close();
    b.OpenFor(ForKind::kSerial, "i", 0, tx);
    b.Let("v", 1 + tx);
    b.Close();
    b.OpenFor(ForKind::kSerial, "i", 0, 8);
    b.Let("v", 1 + tx);
    b.OpenIf(tx < 5);
    b.Add(Break{});
    b.Close();
    b.Close();
    b.OpenFor(ForKind::kSerial, "i", 0, 8);
    b.Let("v", 1 + tx);
    b.Close();
  });
  const std::vector<Uniformity> expected = {kB, kW, kT, kT, kB};
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].second, expected[i]) << i;
}

}  // namespace
}  // namespace tilert
