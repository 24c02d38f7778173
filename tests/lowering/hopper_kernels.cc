#include "hopper_kernels.h"

#include "kernel_maker.h"

namespace tilert {
namespace {

constexpr int64_t kAtom = 1024;  // alignment of swizzled tiles
constexpr int64_t kChunk = 64;   // columns of C staged at once

// What both kernels need besides KernelMaker.
class HopperMaker : public KernelMaker {
 public:
  explicit HopperMaker(int warps) : KernelMaker(warps) { k.index32 = true; }

  BufferId Tile(const char* name, DType type, const std::vector<int64_t>& extents, int64_t versions) {
    kir::Buffer buffer{.name = name, .dtype = type, .space = kir::Space::kShared};
    buffer.shared = SwizzledShared(extents, DTypeBytes(type));
    buffer.versions = versions;
    buffer.offset = (k.shared_bytes + kAtom - 1) / kAtom * kAtom;
    k.shared_bytes = buffer.offset + versions * buffer.shared.bytes();
    k.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(k.buffers.size() - 1);
  }
  kir::RingId Ring(const char* name, int slots, int consumers, const std::vector<BufferId>& buffers) {
    kir::Ring ring{.name = name, .slots = slots, .consumers = consumers, .buffers = buffers};
    ring.slot = Var((std::string(name) + "_slot").c_str());
    ring.offset = k.shared_bytes = (k.shared_bytes + 7) / 8 * 8;
    k.shared_bytes += 16 * slots;
    k.rings.push_back(std::move(ring));
    return static_cast<kir::RingId>(k.rings.size() - 1);
  }
  // A map whose boxes are panels of `tile`.
  kir::MapId Map(BufferId tensor, BufferId tile) {
    const SharedLayout& shared = k.buffers[tile].shared;
    kir::TensorMap map{tensor, shared.extents, static_cast<int>(shared.swizzled ? shared.panel : 0)};
    map.box.back() = shared.panel / shared.element_bytes;
    k.tensor_maps.push_back(std::move(map));
    return static_cast<kir::MapId>(k.tensor_maps.size() - 1);
  }
  int64_t TileBytes(BufferId tile) const { return k.buffers[tile].shared.bytes(); }
  Expr Slot(kir::RingId ring) { return V(k.rings[ring].slot); }
  Expr Mul(Expr a, int64_t b) { return Op(ExprOp::kMul, a, Int(b)); }
  Expr CeilDiv(Expr a, int64_t b) { return Op(ExprOp::kFloorDiv, Sum(a, Int(b - 1)), Int(b)); }
  Expr Positive(Expr a) { return Op(ExprOp::kGt, a, Int(0)); }

  kir::TileAccess Access(BufferId buffer, const std::vector<Expr>& start, const std::vector<int>& follows) {
    return {buffer, start, follows, std::vector<bool>(start.size(), true)};
  }
  // An operand of wgmma: rows follow M (N) and columns K, or the other way round.
  kir::TileAccess Operand(BufferId tile, Expr version, bool mn_major = false) {
    return mn_major ? Access(tile, {version, Int(0), Int(0)}, {-1, 1, 0}) : Access(tile, {version, Int(0), Int(0)}, {-1, 0, 1});
  }
  VarId Let(const char* name, Expr value) {
    const VarId var = Var(name);
    Add(kir::Let{var, value});
    return var;
  }
  // A loop over the steps of K.
  template <typename F>
  void Loop(VarId var, Expr end, F body) {
    With(kir::For{var, Int(0), end, Int(1), kir::Unroll::kNo, {}}, body);
  }
};

class GemmMaker : HopperMaker {
 public:
  explicit GemmMaker(const HopperGemm& gemm)
      : HopperMaker(4 * gemm.warpgroups + ProducerWarps(gemm)),
        g_(gemm),
        role_warps_(gemm.ping_pong ? 4 : 4 * gemm.warpgroups),
        grid_(gemm.ping_pong ? WarpGrid{}
              : gemm.split_n ? WarpGrid{1, gemm.warpgroups}
                             : WarpGrid{gemm.warpgroups, 1}) {}

  kir::Kernel Make() {
    k.name = "hopper_gemm";
    k.block_vars.push_back(Var("by"));
    const Expr m = Dim("M"), n = Dim("N"), depth = Dim("K");
    k.grid = {CeilDiv(n, g_.bn), CeilDiv(m, g_.bm)};
    k.raster_panel = 16;
    trips_ = V(Let("trips", CeilDiv(depth, g_.bk)));
    const BufferId a = g_.a_mn_major ? Global("A", g_.dtype, {depth, m}) : Global("A", g_.dtype, {m, depth});
    const BufferId b = g_.b_mn_major ? Global("B", g_.dtype, {depth, n}) : Global("B", g_.dtype, {n, depth});
    c_ = Global("C", g_.c_dtype, g_.transposed ? std::vector{n, m} : std::vector{m, n}, true);
    a_tile_ = Tile("A_tile", g_.dtype, g_.a_mn_major ? std::vector{g_.bk, g_.bm} : std::vector{g_.bm, g_.bk}, g_.stages);
    b_tile_ = Tile("B_tile", g_.dtype, g_.b_mn_major ? std::vector{g_.bk, g_.bn} : std::vector{g_.bn, g_.bk}, g_.stages);
    instances_ = g_.ping_pong ? g_.warpgroups : 1;
    // Ping-pong's instances run concurrently: each stages in versions of its own.
    if (g_.staged) c_tile_ = Tile("C_tile", g_.c_dtype, {g_.transposed ? g_.bn : g_.bm, kChunk}, 2 * instances_);
    if (g_.add) c_tile_ = Tile("C_tile", g_.c_dtype, {g_.bm, kChunk / 2}, 2);
    ring_ = Ring("ab", g_.stages, role_warps_, {a_tile_, b_tile_});
    a_map_ = Map(a, a_tile_);
    b_map_ = Map(b, b_tile_);
    if (g_.staged || g_.add) c_map_ = Map(c_, c_tile_);
    acc_ = Register("acc", g_.acc_dtype, Accumulators(g_.bn));

    kir::Role consumer{.name = "consumer", .warps = role_warps_, .instances = instances_};
    kir::Role producer{.name = "producer", .warps = ProducerWarps(g_), .one_thread = true};
    if (ProducerWarps(g_) == 4) consumer.max_registers = 232, producer.max_registers = 40;
    if (g_.ping_pong) consumer.instance = instance_ = Var("instance");
    consumer.body = BlockOf([&] { Consumer(); });
    producer.body = BlockOf([&] { Producer(); });
    Add(kir::Roles{{std::move(consumer), std::move(producer)}});
    return std::move(k);
  }

 private:
  // With two consumer warpgroups registers are moved from a whole producer warpgroup to them.
  static int ProducerWarps(const HopperGemm& gemm) { return gemm.warpgroups == 2 ? 4 : 1; }
  FragmentLayout Accumulators(int64_t columns) const {
    FragmentLayout layout = WgmmaAccumulatorLayout(g_.bm, columns, grid_);
    if (g_.transposed) std::swap(layout.dims[0], layout.dims[1]);
    return layout;
  }
  Expr Row() { return Mul(V(k.block_vars[1]), g_.bm); }
  Expr Column() { return Mul(bx(), g_.bn); }

  void Consumer() {
    if (g_.ping_pong) Add(kir::Advance{ring_, Op(ExprOp::kMul, V(instance_), trips_)});
    With(kir::ForTiles{}, [&] {
      Add(kir::Declare{acc_});
      const VarId t = Var("t");
      if (g_.ping_pong) Add(kir::OrderWait{});
      Loop(t, trips_, [&] {
        Add(kir::Acquire{ring_});
        Add(kir::WgmmaFence{});
        kir::Wgmma gemm{
            acc_, Operand(a_tile_, Slot(ring_), g_.a_mn_major), Operand(b_tile_, Slot(ring_), g_.b_mn_major), g_.bm, g_.bn, g_.bk,
            grid_};
        gemm.zero = Op(ExprOp::kEq, V(t), Int(0));
        gemm.transposed = g_.transposed;
        Add(std::move(gemm));
        Add(kir::WgmmaCommit{});
        Add(kir::WgmmaWait{1, {}});
        With(kir::If{Positive(V(t)), {}, {}}, [&] { Add(kir::Release{ring_, 1}); });
        Add(kir::Advance{ring_, Int(1)});
      });
      if (g_.ping_pong) Add(kir::OrderPass{});
      Add(kir::WgmmaWait{0, {{acc_, {}}}});
      kir::If any{Positive(trips_), BlockOf([&] { Add(kir::Release{ring_, 1}); }), BlockOf([&] { Clear(); })};
      Add(std::move(any));
      if (g_.ping_pong) Add(kir::Advance{ring_, trips_});
      g_.staged ? StagedStores() : g_.add ? AddingStores() : DirectStores();
    });
    if (g_.staged || g_.add) Add(kir::StoreWait{0, true, {}});
  }
  // The product over no K at all.
  void Clear() {
    const VarId i = Var("i"), j = Var("j");
    Points(k.buffers[acc_].layout, {i, j}, [&] { Store(acc_, {V(i), V(j)}, k.exprs.Float(0, g_.acc_dtype)); });
  }
  void StagedStores() {
    for (int64_t c = 0; c < (g_.transposed ? g_.bm : g_.bn) / kChunk; ++c) {
      Expr version = Int(c % 2);
      if (g_.ping_pong) version = Sum(Mul(V(instance_), 2), version);
      Add(kir::StoreWait{1, true, {}});
      Add(kir::BarSync{});
      kir::Copy copy{kir::CopyMethod::kStmatrix};
      copy.dst = Access(c_tile_, {version, Int(0), Int(0)}, {-1, 0, 1});
      copy.src = Access(acc_, {Int(0), Int(c * kChunk)}, {0, 1});
      copy.layout = Accumulators(g_.transposed ? g_.bn : kChunk);
      copy.width = 2;
      Add(std::move(copy));
      Add(kir::ProxyFence{});
      Add(kir::BarSync{});
      const Expr row = g_.transposed ? Column() : Row(), column = g_.transposed ? Row() : Column();
      Add(kir::TmaStore{c_map_, c_tile_, version, {row, Sum(column, Int(c * kChunk))}});
      Add(kir::StoreCommit{});
    }
  }
  void AddingStores() {
    constexpr int64_t kColumns = kChunk / 2;
    for (int64_t c = 0; c < g_.bn / kColumns; ++c) {
      Add(kir::StoreWait{1, true, {}});
      Add(kir::BarSync{});
      const VarId i = Var("i"), j = Var("j");
      Points(Accumulators(kColumns), {i, j}, [&] {
        Store(c_tile_, {Int(c % 2), V(i), V(j)}, Load(acc_, {V(i), Sum(Int(c * kColumns), V(j))}));
      });
      Add(kir::ProxyFence{});
      Add(kir::BarSync{});
      Add(kir::TmaStore{c_map_, c_tile_, Int(c % 2), {Row(), Sum(Column(), Int(c * kColumns))}, kir::StoreOp::kAdd});
      Add(kir::StoreCommit{});
    }
  }
  void DirectStores() {
    const VarId i = Var("i"), j = Var("j");
    Points(k.buffers[acc_].layout, {i, j}, [&] {
      const Expr value = Load(acc_, {V(i), V(j)});
      Store(c_, {Sum(Row(), V(i)), Sum(Column(), V(j))}, g_.acc_dtype == g_.c_dtype ? value : k.exprs.Cast(value, g_.c_dtype));
    });
  }
  void Producer() {
    With(kir::ForTiles{}, [&] {
      const VarId t = Var("t");
      Loop(t, trips_, [&] {
        Add(kir::Acquire{ring_, true});
        Add(kir::ExpectTx{ring_, TileBytes(a_tile_) + TileBytes(b_tile_)});
        const Expr depth = Mul(V(t), g_.bk);
        Add(kir::TmaLoad{a_map_, a_tile_, ring_, g_.a_mn_major ? std::vector{depth, Row()} : std::vector{Row(), depth}});
        Add(kir::TmaLoad{b_map_, b_tile_, ring_, g_.b_mn_major ? std::vector{depth, Column()} : std::vector{Column(), depth}});
        Add(kir::Advance{ring_, Int(1)});
      });
    });
  }

  const HopperGemm g_;
  const int role_warps_;
  const WarpGrid grid_;
  int instances_ = 1;
  VarId instance_ = kNoId;
  Expr trips_;
  BufferId c_ = kNoId, a_tile_ = kNoId, b_tile_ = kNoId, c_tile_ = kNoId, acc_ = kNoId;
  kir::RingId ring_ = 0;
  kir::MapId a_map_ = 0, b_map_ = 0, c_map_ = 0;
};

class AttentionMaker : HopperMaker {
 public:
  AttentionMaker() : HopperMaker(5) {}

  kir::Kernel Make(int stages) {
    k.name = "hopper_attention";
    const Expr m = Dim("M"), n = Dim("N");
    k.grid = {CeilDiv(m, kBlock)};
    const BufferId q = Global("Q", DType::kBFloat16, {m, Int(kBlock)}), keys = Global("K", DType::kBFloat16, {n, Int(kBlock)}),
                   values = Global("V", DType::kBFloat16, {n, Int(kBlock)});
    o_ = Global("O", DType::kFloat32, {m, Int(kBlock)}, true);
    q_tile_ = Tile("Q_tile", DType::kBFloat16, {kBlock, kBlock}, 1);
    k_tile_ = Tile("K_tile", DType::kBFloat16, {kBlock, kBlock}, stages);
    v_tile_ = Tile("V_tile", DType::kBFloat16, {kBlock, kBlock}, stages);
    q_ring_ = Ring("q", 1, 4, {q_tile_});
    k_ring_ = Ring("k", stages, 4, {k_tile_});
    v_ring_ = Ring("v", stages, 4, {v_tile_});
    const kir::MapId q_map = Map(q, q_tile_), k_map = Map(keys, k_tile_), v_map = Map(values, v_tile_);
    trips_ = V(Let("trips", Op(ExprOp::kFloorDiv, n, Int(kBlock))));

    kir::Role consumer{.name = "consumer", .warps = 4}, producer{.name = "producer", .warps = 1, .one_thread = true};
    consumer.body = BlockOf([&] { Consumer(); });
    producer.body = BlockOf([&] {
      With(kir::ForTiles{}, [&] {
        Fill(q_ring_, q_map, q_tile_, Mul(bx(), kBlock));
        const VarId t = Var("t");
        Loop(t, trips_, [&] {
          Fill(k_ring_, k_map, k_tile_, Mul(V(t), kBlock));
          Fill(v_ring_, v_map, v_tile_, Mul(V(t), kBlock));
        });
      });
    });
    Add(kir::Roles{{std::move(consumer), std::move(producer)}});
    return std::move(k);
  }

 private:
  static constexpr int64_t kBlock = 64;

  void Fill(kir::RingId ring, kir::MapId map, BufferId tile, Expr row) {
    Add(kir::Acquire{ring, true});
    Add(kir::ExpectTx{ring, TileBytes(tile)});
    Add(kir::TmaLoad{map, tile, ring, {row, Int(0)}});
    Add(kir::Advance{ring, Int(1)});
  }
  void Free(kir::RingId ring) {
    Add(kir::Release{ring, 0});
    Add(kir::Advance{ring, Int(1)});
  }
  void Consumer() {
    const FragmentLayout acc = WgmmaAccumulatorLayout(kBlock, kBlock, {});
    const BufferId s = Register("S", DType::kFloat32, acc), o = Register("O_acc", DType::kFloat32, acc),
                   p = Register("P", DType::kBFloat16, WgmmaOperandALayout(kBlock, kBlock, {}));
    const VarId t = Var("t"), i = Var("i"), j = Var("j"), row = Var("row"), column = Var("column");
    const Expr no = k.exprs.Int(0, DType::kBool), yes = k.exprs.Int(1, DType::kBool);
    With(kir::ForTiles{}, [&] {
      Add(kir::Declare{o, true});
      Add(kir::Acquire{q_ring_});
      Loop(t, trips_, [&] {
        Add(kir::Declare{s});
        Add(kir::Acquire{k_ring_});
        Add(kir::WgmmaFence{});
        Add(kir::Wgmma{s, Operand(q_tile_, Int(0)), Operand(k_tile_, Slot(k_ring_)), kBlock, kBlock, kBlock, {}, yes});
        Add(kir::WgmmaCommit{});
        Add(kir::WgmmaWait{0, {{s, {}}}});
        Free(k_ring_);
        Points(acc, {i, j}, [&] { Store(s, {V(i), V(j)}, k.exprs.Unary(ExprOp::kExp2, Load(s, {V(i), V(j)}))); });
        Add(kir::Declare{p});
        Add(WholeCopy(kir::CopyMethod::kRegister, p, s, k.buffers[p].layout));
        Add(kir::Acquire{v_ring_});
        Add(kir::WgmmaFence{{o, p}});
        Add(kir::Wgmma{
            o, Access(p, {Int(0), Int(0)}, {0, 1}), Operand(v_tile_, Slot(v_ring_), true), kBlock, kBlock, kBlock, {}, no});
        Add(kir::WgmmaCommit{});
        Add(kir::WgmmaWait{0, {{o, {}}, {p, {}}}});
        Free(v_ring_);
      });
      Free(q_ring_);
      Points(acc, {row, column}, [&] { Store(o_, {Sum(Mul(bx(), kBlock), V(row)), V(column)}, Load(o, {V(row), V(column)})); });
    });
  }

  Expr trips_;
  BufferId o_ = kNoId, q_tile_ = kNoId, k_tile_ = kNoId, v_tile_ = kNoId;
  kir::RingId q_ring_ = 0, k_ring_ = 0, v_ring_ = 0;
};

kir::Roles& RolesOf(kir::Kernel& kernel) { return std::get<kir::Roles>(kernel.body.back().op); }

}  // namespace

kir::Kernel HopperGemmKernel(const HopperGemm& gemm) { return GemmMaker(gemm).Make(); }
kir::Kernel HopperAttentionKernel(int stages) { return AttentionMaker().Make(stages); }

kir::Block& ConsumerBody(kir::Kernel& kernel) { return RolesOf(kernel).roles[0].body; }
kir::Block& ProducerBody(kir::Kernel& kernel) { return RolesOf(kernel).roles[1].body; }
kir::Block& MainLoop(kir::Block& role_body) {
  for (kir::Stmt& stmt : role_body) {
    if (!std::holds_alternative<kir::ForTiles>(stmt.op)) continue;
    for (kir::Stmt& inner : *kir::ChildBlocks(stmt)[0]) {
      if (std::holds_alternative<kir::For>(inner.op)) return *kir::ChildBlocks(inner)[0];
    }
  }
  return role_body;
}

}  // namespace tilert
