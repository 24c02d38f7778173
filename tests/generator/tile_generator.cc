#include "tests/generator/tile_generator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/generator/generator.h"

namespace tilert {
namespace generator {

double Range(DType type) {
  switch (type) {
    case DType::kFloat8E4M3: return 16;
    case DType::kFloat8E5M2: return 8;
    case DType::kBFloat16: return 0x1p8;
    case DType::kFloat16: return 0x1p11;
    case DType::kFloat32: return 0x1p24;
    case DType::kFloat64: return 0x1p53;
    case DType::kBool: return 1;
    default: return KindOf(type) == DTypeKind::kUnsigned ? std::exp2(DTypeBits(type)) : std::exp2(DTypeBits(type) - 1);
  }
}

DType Generator::ElementType() {
  return Of({DType::kFloat32,  DType::kFloat32,  DType::kFloat32,    DType::kFloat16,    DType::kFloat16,
             DType::kBFloat16, DType::kBFloat16, DType::kInt32,      DType::kInt32,      DType::kInt8,
             DType::kUInt8,    DType::kInt16,    DType::kUInt16,     DType::kInt64,      DType::kUInt32,
             DType::kUInt64,   DType::kFloat64,  DType::kFloat8E4M3, DType::kFloat8E5M2, DType::kBool});
}

void Generator::Dims() {
  static constexpr const char* kNames[] = {"M", "N", "K"};
  for (const char* name : kNames) {
    const int64_t size = Chance(40) ? 16 * (1 + Pick(8)) : Chance(5) ? 0 : Chance(10) ? 1 : 1 + Pick(150);
    dims_.push_back({b_.Dim(name), size});
  }
  // Each is bound by a tensor of its own, whatever else is made of it.
  for (const auto& dim : dims_) inputs_.push_back(NewTensor("V", ElementType(), {dim}, Access::kIn));
  alpha_ = b_.Scalar("alpha", DType::kFloat32);
  count_ = b_.Scalar("count", DType::kInt32);
  inputs_.push_back(NewTensor("I", DType::kInt32, {dims_[0], dims_[1]}, Access::kIn));
  for (int i = 1 + Pick(3); i > 0; --i) {
    std::vector<std::pair<Val, int64_t>> shape;
    for (int rank = 1 + Pick(3); rank > 0; --rank)
      shape.push_back(Chance(80) || rank < 3 ? One(dims_) : std::pair<Val, int64_t>{2, 2});
    inputs_.push_back(NewTensor("X", ElementType(), shape, Access::kIn));
  }
  if (hostile_) HostileInputs();
}

TensorRef Generator::NewTensor(const char* stem, DType type, const std::vector<std::pair<Val, int64_t>>& shape, Access access) {
  std::vector<Val> extents, strides;
  TensorRef tensor;
  for (const auto& [extent, size] : shape) {
    extents.push_back(extent.In(&b_));
    tensor.shape.push_back(size);
  }
  tensor.type = type;
  if (access == Access::kIn && shape.size() == 2 && Chance(15)) {
    if (Chance(30)) {
      strides = {1, extents[0]};  // column-major
    } else {
      strides = {extents[1] * 2 + 16, Chance(70) ? 1 : 2};
    }
  }
  tensor.buf = b_.Tensor(Name(stem), type, extents, access, strides);
  return tensor;
}

void Generator::OpenGrid() {
  grid_.clear();
  std::vector<Val> extents;
  int64_t blocks = 1;
  for (int rank = 1 + Pick(3), axis = 0; axis < rank; ++axis) {
    GridAxis g;
    if (Chance(70)) {
      const auto& [dim, size] = One(dims_);
      g.tile = One(extents_);
      g.dim = dim;
      g.size = size;
      g.blocks = (size + g.tile - 1) / g.tile;
      g.extent = CeilDiv(dim, g.tile);
    }
    if (!g.dim || blocks * g.blocks > 8) {
      g = GridAxis();
      g.blocks = 1 + Pick(2);
      g.extent = g.blocks;
    }
    blocks *= std::max<int64_t>(g.blocks, 1);
    extents.push_back(g.extent);
    grid_.push_back(g);
  }
  const std::vector<Val> vars = b_.OpenLaunch(Name("k"), extents, threads_);
  if (Chance(8)) {
    std::vector<Val> cluster;
    for (size_t i = 0; i < grid_.size(); ++i) cluster.push_back(1 + Pick(2));
    b_.SetCluster(cluster);
  }
  for (size_t i = 0; i < grid_.size(); ++i) {
    grid_[i].var = vars[i];
    uniforms_.push_back({vars[i], std::max<int64_t>(grid_[i].blocks, 1)});
  }
}

void Generator::LaunchOne() {
  threads_ = Of<int64_t>({128, 128, 128, 256, 256, 64, 32, 96, 160, 384, 512, 1, 7, 16, 33, 1000});
  extents_.clear();
  if (hostile_) threads_ = Of<int64_t>({32, 64, 128, 128, 128, 160, 256, 7, 33});
  for (int i = 0; i < 3; ++i)
    extents_.push_back(Of<int64_t>({1, 2, 3, 5, 8, 16, 16, 17, 24, 32, 32, 33, 48, 64, 64, 80, 96, 100, 128, 160, 192}));
  uniforms_.clear(), tiles_.clear(), targets_.clear(), vars_.clear();
  shared_bytes_ = fragment_bytes_ = 0;
  runs_ = 1;
  if (hostile_) {
    for (int64_t& e : extents_) e = std::min<int64_t>(e, 40);
  }
  left_ = hostile_ ? 3 + Pick(6) : 6 + Pick(14);
  OpenGrid();
  if (Chance(30)) {
    vars_.push_back(b_.Mutable(Name("v"), DType::kInt32));
    b_.Store(vars_[0], {}, b_.Cast(uniforms_[0].value, DType::kInt32));
  }
  MakeTile();
  while (left_ > 0) Body(2, 3 + Pick(6));
  const std::vector<TileRef> live = tiles_;
  for (const TileRef& tile : live) {
    if (Chance(80)) Dump(tile);
  }
  b_.Close();
}

void Generator::Body(int depth, int statements) {
  const std::vector<TileRef> targets = targets_;
  std::vector<TileRef> tiles = tiles_;
  const std::vector<Uniform> uniforms = uniforms_;
  for (int i = 0; i < statements && left_ > 0; ++i) Statement(depth);
  if (depth == 2) return;  // the launch's own: what it makes stays
  targets_ = targets;
  tiles_ = tiles;
  uniforms_ = uniforms;
}

void Generator::Statement(int depth) {
  --left_;
  if (tiles_.empty()) return MakeTile();
  if (IsHostile(65)) return HostileStatement(depth);
  const int choice = Pick(100);
  if (choice < 12) return MakeTile();
  if (choice < 20) return CopyPart(AnyTile());
  if (choice < 28) return CopyTiles();
  if (choice < 46) return Parallel(AnyTile());
  if (choice < 54) return ReduceTile();
  if (choice < 57) return ScanTile();
  if (choice < 61) return FillPart();
  if (choice < 66) return ThroughWorkspace();
  if (choice < 69) return AddAtomics();
  if (choice < 71) return Dump(AnyTile());
  if (choice < 73) return Hint();
  if (choice < 75 && !vars_.empty()) return b_.Store(vars_[0], {}, vars_[0]() * 3 + b_.Cast(One(uniforms_).value, DType::kInt32));
  if (depth == 0) return Parallel(AnyTile());
  if (choice < 80) return Branch(depth);
  if (choice < 82) return WhileLoop(depth);
  if (choice < 91) return Loop(depth);
  if (choice < 93) return Threads();
  if (choice < 94 && depth == 2) return RolesOf();
  return GemmLoop(depth);
}

// A number that all points know, below `count`.
Val Generator::UniformIndex(int64_t* count) {
  const Uniform& u = One(uniforms_);
  *count = u.count;
  return u.value;
}

Val Generator::UniformCondition() {
  int64_t count = 0;
  const Val u = UniformIndex(&count);
  switch (Pick(8)) {
    case 0: return u < Pick(static_cast<int>(count) + 1);
    case 1: return u % 2 == 0;
    case 2: return count_ > Pick(6);
    case 3: return One(inputs_).buf.id() == kNoId ? u == 0 : b_.Cast(b_.Load(inputs_[0].buf, {u}), DType::kInt32) > 0;
    case 4: return u + 1 < One(dims_).first;
    case 5: return !vars_.empty() ? vars_[0]() < Pick(10) : u == 0;
    case 6: {  // an element of a tile
      const TileRef& tile = One(tiles_);
      std::vector<Val> at;
      for (int64_t e : tile.shape) at.push_back(Pick(static_cast<int>(e)));
      return b_.Cast(b_.Load(tile.buf, at), DType::kInt32) >= 0;
    }
    default: return And(u >= Pick(2), alpha_ > 1.0);
  }
}

void Generator::Branch(int depth) {
  b_.OpenIf(UniformCondition());
  Body(depth - 1, 1 + Pick(3));
  if (Chance(40)) {
    b_.Else();
    Body(depth - 1, 1 + Pick(2));
  }
  b_.Close();
}

void Generator::WhileLoop(int depth) {
  const Buf turn = b_.Mutable(Name("turn"), DType::kInt32);
  b_.Store(turn, {}, 0);
  const int64_t trips = Pick(4);
  b_.OpenWhile(turn() < b_.Int(trips, DType::kInt32));
  b_.Store(turn, {}, turn() + 1);
  runs_ *= std::max<int64_t>(trips, 1);
  Body(depth - 1, 1 + Pick(2));
  runs_ /= std::max<int64_t>(trips, 1);
  if (Chance(30)) {
    b_.OpenIf(UniformCondition());
    b_.Add(Break{});
    b_.Close();
  }
  b_.Close();
}

void Generator::Loop(int depth) {
  const ForKind kind = Of({ForKind::kSerial, ForKind::kSerial, ForKind::kSerial, ForKind::kUnrolled, ForKind::kPersistent,
                           ForKind::kPipelined, ForKind::kPipelined, ForKind::kPipelined, ForKind::kPipelined});
  const int64_t stages = kind == ForKind::kPipelined ? Pick(5) : 0;
  int64_t trips = kind == ForKind::kPipelined && Chance(60) ? Pick(static_cast<int>(2 * stages + 2)) : Pick(5);
  Val begin = 0, end = trips, step = 1;
  if (Chance(40)) {
    const auto& [dim, size] = One(dims_);
    const int64_t tile = One(extents_);
    if ((size + tile - 1) / tile <= 9) {
      trips = (size + tile - 1) / tile;
      end = CeilDiv(dim, tile);
    }
  } else if (Chance(30)) {
    begin = One(uniforms_).value;  // fewer trips in later blocks
  } else if (Chance(20)) {
    begin = 1;
    end = 1 + 2 * trips;
    step = 2;
  }
  if (runs_ * trips > 40) return;
  const Val split = kind == ForKind::kPipelined && Chance(8) ? Val(2) : Val();
  const Val k = b_.OpenFor(kind, Name("k"), begin, end, step, stages, {}, {}, split);
  const std::vector<Uniform> outer = uniforms_;
  uniforms_.push_back({k, 2 * trips + 1});
  runs_ *= std::max<int64_t>(trips, 1);
  Body(depth - 1, 1 + Pick(5));
  runs_ /= std::max<int64_t>(trips, 1);
  if (kind == ForKind::kSerial && Chance(15)) {
    b_.OpenIf(UniformCondition());
    Chance(50) ? b_.Add(Break{}) : b_.Add(Continue{});
    b_.Close();
  }
  uniforms_ = outer;
  b_.Close();
}

TileCase Generator::Run() {
  TileCase result;
  b_.SetFastMath(Chance(20));
  Dims();
  for (int launches = Chance(70) ? 1 : 2; launches > 0; --launches) LaunchOne();
  absl::StatusOr<Program> program = b_.Build();
  if (!program.ok()) {
    std::fprintf(stderr, "the generator made a mistake: %s\n", program.status().ToString().c_str());
    std::abort();
  }
  result.program = *std::move(program);
  for (const auto& [dim, size] : dims_) result.dims.push_back(size);
  for (const auto& [dim, size] : far_dims_) result.dims.push_back(size);
  result.hostile = hostile_ids_;
  return result;
}

}  // namespace generator

TileCase RandomTileCase(uint64_t seed) {
  TileCase result = generator::Generator(seed).Run();
  result.data_seed = seed;
  return result;
}

TileCase RandomHostileCase(uint64_t seed) {
  TileCase result = generator::Generator(seed, true).Run();
  result.data_seed = seed;
  return result;
}

}  // namespace tilert
