// Thread regions and roles: what single threads, and parts of a block, do by themselves.
#include <utility>

#include "tests/generator/generator.h"

namespace tilert::generator {

// Element `e` of the tile, counted along its last dimension first.
std::vector<Val> Generator::Subscripts(const TileRef& tile, Val e) {
  std::vector<Val> at(tile.shape.size());
  for (size_t d = tile.shape.size(); d-- > 0;) {
    at[d] = d == 0 ? e : e % tile.shape[d];
    e = FloorDiv(e, tile.shape[d]);
  }
  return at;
}

// Each thread stores to its share of the elements.
void Generator::ThreadShare(const TileRef& tile, Val tx) {
  const int64_t elements = Elements(tile.shape);
  const ForKind kind = Of({ForKind::kSerial, ForKind::kSerial, ForKind::kUnrolled});
  const Val n = b_.OpenFor(kind, Name("n"), 0, (elements + threads_ - 1) / threads_);
  const Val e = b_.Let(Name("e"), n * threads_ + tx);
  const std::vector<Uniform> outer = uniforms_;
  uniforms_.push_back({n, (elements + threads_ - 1) / threads_});
  b_.OpenIf(Chance(15) ? And(e < elements, PointCondition(1)) : e < elements);
  stored_ = tile.buf.id();
  stored_at_ = Subscripts(tile, e);
  const DType type = Chance(60) ? tile.type : ElementType();
  b_.Store(tile.buf, stored_at_, Clamped(Converted(Element(type, 2), tile.type), tile.room).value);
  stored_ = kNoId;
  b_.Close();
  uniforms_ = outer;
  b_.Close();
}

void Generator::Threads() {
  const std::vector<TileRef> all = tiles_;
  std::vector<TileRef> shared;
  for (const TileRef& tile : all) {
    if (tile.buf.buffer().scope == Scope::kShared && Elements(tile.shape) <= 16 * threads_) shared.push_back(tile);
  }
  if (shared.empty()) return Parallel(AnyTile());
  tiles_ = shared;
  const std::vector<Buf> vars = std::exchange(vars_, {});
  const std::vector<Uniform> outer = uniforms_;
  const Val tx = b_.OpenThreadRegion(Name("tx"));
  points_ = {{tx, threads_}};
  lets_.clear();
  if (Chance(30)) lets_.push_back({b_.Let(Name("y"), Element(DType::kInt32, 1).value), 0});
  if (threads_ % 32 == 0 && Chance(30)) {
    const Val value = b_.Cast(Element(DType::kInt32, 1).value, DType::kInt32);
    const VarId other = b_.NewVar(Name("other"), DType::kInt32);
    b_.Add(Shuffle{other, b_.E(value), b_.Index(tx * Of({1, 3, 0}) + Pick(32))});
    lets_.push_back({b_.VarVal(other), 0});
  }
  // What a phase stores, others have read before or read after it.
  for (int phase = 1 + Pick(2), i = 0; i < phase; ++i) {
    if (i > 0 || !lets_.empty()) b_.Add(SyncThreads{});
    ThreadShare(One(shared), tx);
  }
  b_.Close();
  points_.clear();
  lets_.clear();
  vars_ = vars;
  uniforms_ = outer;
  tiles_ = all;
}

// Two parts of the block, each with tiles of its own: halves, of which one may hand a tile to the other, once or in turns; those
// that do not talk may be of any size. Then perhaps other parts.
void Generator::RolesOf() {
  if (threads_ % 64 != 0 || threads_ > 512) return Threads();
  const bool talk = Chance(60);
  const int64_t whole = threads_, warps = whole / 32;
  const int64_t half = talk || Chance(40) ? whole / 2 : 32 * (1 + Pick(static_cast<int>(warps) - 1));
  const int64_t turns = Pick(4), size = Of<int64_t>({16, 32, 64});
  Buf full, empty, tile;
  if (talk) {
    full = b_.Alloc(Name("full"), DType::kUInt64, Scope::kBarrier, {1}, static_cast<uint32_t>(half));
    empty = b_.Alloc(Name("empty"), DType::kUInt64, Scope::kBarrier, {1}, static_cast<uint32_t>(half));
    tile = b_.Shared(Name("s"), DType::kFloat32, {4, size});
  }
  const auto barrier = [&](BarrierOpKind kind, const Buf& buf, Val parity) {
    b_.Add(BarrierOp{kind, buf.id(), b_.Es({b_.Lit(int64_t{0})}), parity ? b_.Index(parity) : Expr{}});
  };
  b_.OpenRoles();
  in_role_ = true;
  // Each role goes on with every other tile of those that are there: what the block does behind them may need tiles of both.
  const bool inherits = Chance(40);
  const std::vector<TileRef> tiles = std::exchange(tiles_, {}), targets = std::exchange(targets_, {});
  const std::vector<Buf> vars = std::exchange(vars_, {});
  const std::vector<Uniform> uniforms = uniforms_;
  for (int role = 0; role < 2; ++role) {
    threads_ = role == 0 ? half : whole - half;
    b_.OpenRole(role == 0 ? 0 : half, role == 0 ? half : whole);
    tiles_.clear(), targets_.clear(), uniforms_ = uniforms;
    for (size_t i = 0; inherits && i < tiles.size(); ++i) {
      if (static_cast<int>(i % 2) == role) tiles_.push_back(tiles[i]), targets_.push_back(tiles[i]);
    }
    const auto inherited = static_cast<int64_t>(tiles_.size());
    MakeTile();
    Body(0, 1 + Pick(3));
    if (talk) {
      const Val k = b_.OpenFor(ForKind::kSerial, Name("k"), 0, turns);
      if (role == 0) {
        barrier(BarrierOpKind::kWait, empty, (k + 1) % 2);
        const std::vector<Val> i = b_.OpenParallel({Name("i"), Name("i")}, {4, size});
        b_.Store(tile, i, b_.Cast(i[0] * 3 + i[1] + k, DType::kFloat32));
        b_.Close();
        barrier(BarrierOpKind::kArrive, full, {});
      } else {
        barrier(BarrierOpKind::kWait, full, k % 2);
        std::vector<std::pair<Val, int64_t>> shape = {{turns, turns}};
        std::vector<Val> start = {k}, extent = {1};
        for (const GridAxis& g : grid_) shape.push_back({g.extent, g.blocks}), start.push_back(g.var), extent.push_back(1);
        for (int64_t e : {int64_t{4}, size}) shape.push_back({e, e}), start.push_back(0), extent.push_back(e);
        const TensorRef out = NewTensor("O", DType::kFloat32, shape, Access::kOut);
        b_.Copy(tile, out.buf.At(start, extent));
        barrier(BarrierOpKind::kArrive, empty, {});
      }
      b_.Close();
    }
    const std::vector<TileRef> live(tiles_.begin() + inherited, tiles_.end());
    for (const TileRef& mine : live) Dump(mine);
    b_.Close();
  }
  b_.Close();
  in_role_ = false;
  threads_ = whole;
  tiles_ = tiles, targets_ = targets, vars_ = vars, uniforms_ = uniforms;
  if (Chance(35)) RolesOf();
}

}  // namespace tilert::generator
