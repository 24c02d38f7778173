// The verifier and printer of KernelIr on roles, rings, TMA and wgmma: kernels that are right, and ways to damage them.
#include <functional>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hopper_kernels.h"
#include "kernel_maker.h"
#include "tests/golden.h"

namespace tilert {
namespace {

using testing::HasSubstr;

kir::Roles& RolesOf(kir::Kernel& kernel) { return std::get<kir::Roles>(kernel.body.back().op); }
// The first statement of a kind, at any depth.
template <typename Op>
Op* FindIn(kir::Block& block) {
  for (kir::Stmt& stmt : block) {
    if (Op* op = std::get_if<Op>(&stmt.op)) return op;
    for (kir::Block* child : kir::ChildBlocks(stmt)) {
      if (Op* op = FindIn<Op>(*child)) return op;
    }
  }
  return nullptr;
}
template <typename Op>
Op& The(kir::Kernel& kernel) {
  return *FindIn<Op>(kernel.body);
}

// The second Wgmma of the attention's loop, which reads registers.
kir::Wgmma& RegisterWgmma(kir::Kernel& kernel) {
  kir::Wgmma* last = nullptr;
  for (kir::Stmt& stmt : MainLoop(ConsumerBody(kernel))) {
    if (auto* op = std::get_if<kir::Wgmma>(&stmt.op)) last = op;
  }
  return *last;
}

kir::Kernel Gemm() { return HopperGemmKernel({}); }

TEST(HopperVerify, HandBuiltKernelsAreAccepted) {
  EXPECT_EQ(kir::VerifyKernel(Gemm()), "");
  EXPECT_EQ(kir::VerifyKernel(HopperGemmKernel({.b_mn_major = true})), "");
  EXPECT_EQ(kir::VerifyKernel(HopperGemmKernel({.bm = 64, .bn = 128, .warpgroups = 1})), "");
  EXPECT_EQ(kir::VerifyKernel(HopperGemmKernel({.bn = 192, .ping_pong = true, .b_mn_major = true})), "");
  EXPECT_EQ(kir::VerifyKernel(HopperGemmKernel({.dtype = DType::kFloat16, .c_dtype = DType::kFloat32, .staged = false})), "");
  EXPECT_EQ(kir::VerifyKernel(HopperGemmKernel({.dtype = DType::kFloat8E4M3, .bk = 128})), "");
  EXPECT_EQ(kir::VerifyKernel(HopperGemmKernel(
                {.dtype = DType::kInt8, .c_dtype = DType::kInt32, .acc_dtype = DType::kInt32, .bk = 128, .staged = false})),
            "");
  EXPECT_EQ(kir::VerifyKernel(HopperAttentionKernel()), "");
}

TEST(HopperVerify, Prints) {
  ExpectGolden("kernel_ir_hopper_gemm.txt", kir::ToText(Gemm()));
  ExpectGolden("kernel_ir_hopper_ping_pong.txt",
               kir::ToText(HopperGemmKernel({.bn = 192, .ping_pong = true, .b_mn_major = true})));
  ExpectGolden("kernel_ir_hopper_attention.txt", kir::ToText(HopperAttentionKernel()));
}

struct Damage {
  const char* message;
  std::function<void(kir::Kernel&)> apply;
};

void ExpectFound(absl::Span<const Damage> damages) {
  for (const Damage& damage : damages) {
    kir::Kernel kernel = Gemm();
    damage.apply(kernel);
    EXPECT_THAT(kir::VerifyKernel(kernel), HasSubstr(damage.message));
  }
}

TEST(HopperVerify, FaultsOfRolesAndRingsAreFound) {
  using K = kir::Kernel;
  const Damage damages[] = {
      {"the roles have 8 warps, the kernel 12", [](K& k) { RolesOf(k).roles.pop_back(); }},
      {"asks for 236 registers", [](K& k) { RolesOf(k).roles[0].max_registers = 236; }},
      {"registers, 2 times on an SM", [](K& k) { k.min_blocks_per_sm = 2; }},
      {"some roles change their registers", [](K& k) { RolesOf(k).roles[1].max_registers = 0; }},
      {"uses 'instance' where it is not bound",
       [](K& k) {
         k = HopperGemmKernel({.bn = 192, .ping_pong = true});
         RolesOf(k).roles[0].instance = kNoId;
       }},
      {"needs a role of two instances",
       [](K& k) {
         ConsumerBody(k).push_back({kir::OrderWait{}, {}});
       }},
      {"divides its warps into roles once", [](K& k) { k.body.push_back(k.body.back()); }},
      {"roles within other statements", [](K& k) { ConsumerBody(k) = {k.body.back()}; }},
      {"only values that all roles share",
       [](K& k) {
         k.body.insert(k.body.begin(), {kir::BarSync{}, {}});
       }},
      {"for several threads in a role of one thread",
       [](K& k) {
         ProducerBody(k).push_back({kir::BarSync{}, {}});
       }},
      {"walks over the tiles inside another",
       [](K& k) {
         MainLoop(ProducerBody(k)).push_back({kir::ForTiles{}, {}});
       }},
      {"uses 'by' where it is not bound", [](K& k) { ProducerBody(k) = kir::Block(MainLoop(ProducerBody(k))); }},
      {"uses ring 7 of 1", [](K& k) { The<kir::Acquire>(k).ring = 7; }},
      {"is walked outside a role",
       [](K& k) {
         k.body.push_back({kir::Advance{0, k.exprs.Int(1)}, {}});
       }},
      {"slot 4 behind in a ring of 4", [](K& k) { The<kir::Release>(k).behind = 4; }},
      {"expects 0 bytes", [](K& k) { The<kir::ExpectTx>(k).bytes = 0; }},
      {"counts 4 consumers, 8 warps release", [](K& k) { k.rings[0].consumers = 4; }},
      {"barriers of ring 'ab' lie in 'A_tile'", [](K& k) { k.rings[0].offset = 1024; }},
      {"has 3 versions, ring 'ab' 4 slots",
       [](K& k) {
         for (auto& b : k.buffers) b.versions = b.versions == 4 ? 3 : b.versions;
       }},
      {"is in 2 rings", [](K& k) { k.rings.push_back(k.rings[0]); }},
  };
  ExpectFound(damages);
}

TEST(HopperVerify, FaultsOfCopiesAndGemmsAreFound) {
  using K = kir::Kernel;
  const Damage damages[] = {
      {"uses tensor map 9 of 3", [](K& k) { The<kir::TmaLoad>(k).map = 9; }},
      {"needs an alignment of 16 bytes", [](K& k) { k.buffers[0].alignment = 8; }},
      {"has a box extent of 512", [](K& k) { k.tensor_maps[0].box[0] = 512; }},
      {"cannot be swizzled by 64", [](K& k) { k.tensor_maps[0].swizzle = 64; }},
      {"is not made of boxes", [](K& k) { k.tensor_maps[0].box[0] = 64; }},
      {"is not in ring 'ab'",
       [](K& k) {
         auto& load = The<kir::TmaLoad>(k);
         load.map = 2;
         load.dst = The<kir::TmaStore>(k).src;
       }},
      {"its swizzle needs multiples of 1024",
       [](K& k) {
         k.buffers[3].offset += 512;
         k.buffers[4].offset += 4096;
         k.rings[0].offset += 4096;
         k.shared_bytes += 8192;
       }},
      {"has 1 coordinates for 2", [](K& k) { The<kir::TmaLoad>(k).coords.pop_back(); }},
      {"which is not marked as written", [](K& k) { k.buffers[2].written = false; }},
      {"cannot multiply 128x256x40", [](K& k) { The<kir::Wgmma>(k).k = 40; }},
      {"cannot multiply 128x260x64", [](K& k) { The<kir::Wgmma>(k).n = 260; }},
      {"a grid of 1x1 warpgroups for 8 warps", [](K& k) { The<kir::Wgmma>(k).grid = {}; }},
      {"the product",
       [](K& k) {
         The<kir::Wgmma>(k).grid = {1, 2};
       }},
      {"reaches outside 'A_tile'", [](K& k) { The<kir::Wgmma>(k).a.start[2] = k.exprs.Int(32); }},
      {"which is not in shared memory",
       [](K& k) {
         The<kir::StoreWait>(k).retires = {{0, {}}};
       }},
      {"is not in swizzled shared memory",
       [](K& k) {
         k.tensor_maps[0].swizzle = 0;
         k.buffers[3].shared.swizzled = false;
       }},
      {"must have K as its last dimension",
       [](K& k) {
         k = HopperGemmKernel({.dtype = DType::kFloat8E4M3, .bk = 128});
         The<kir::Wgmma>(k).b.follows = {-1, 1, 0};
       }},
      {"cannot accumulate products",
       [](K& k) {
         k.buffers[4].dtype = DType::kFloat16;
         The<kir::Wgmma>(k).b.buffer = 4;
         k.buffers[1].dtype = DType::kFloat16;
       }},
      {"takes a part of 'P'",
       [](K& k) {
         k = HopperAttentionKernel();
         RegisterWgmma(k).a.start[1] = k.exprs.Int(16);
       }},
      {"must follow dimension 1 of the copy",
       [](K& k) {
         The<kir::Copy>(k).dst.follows = {-1, 1, 0};
       }},
  };
  ExpectFound(damages);
}

}  // namespace
}  // namespace tilert
