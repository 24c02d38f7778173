// Hostile subscripts: negative, huge, wrapping, from data, from dims whose product no integer holds, behind guards that say half
// of what must hold. What is read with them is zero or an element, what is written with them an element or nothing.
#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/generator/generator.h"

namespace tilert::generator {
namespace {

constexpr int64_t kLarge[] = {int64_t{1} << 31,    (int64_t{1} << 32) + 1,
                              -(int64_t{1} << 31), (int64_t{1} << 40) - 8,
                              int64_t{1} << 62,    INT64_MIN,
                              INT64_MAX,           -(int64_t{1} << 61),
                              0x5555555555555556,  65536};

}  // namespace

// Tensors of what breaks subscripts, a scalar and a dim alike, and a tensor of that dim without an element.
void Generator::HostileInputs() {
  for (DType type : {DType::kInt32, DType::kInt64, DType::kUInt64, DType::kUInt32, DType::kFloat32, DType::kInt16}) {
    hostile_inputs_.push_back(NewTensor("H", type, {One(dims_)}, Access::kIn));
    hostile_ids_.push_back(hostile_inputs_.back().buf.id());
  }
  far_ = b_.Scalar("far", DType::kInt64);
  const int64_t size =
      Of<int64_t>({7, 1000, 1 << 20, int64_t{1} << 31, (int64_t{1} << 33) + 1, (int64_t{1} << 40) - 1, int64_t{1} << 48});
  far_dims_.push_back({b_.Dim("P"), size});
  inputs_.push_back(NewTensor("E", DType::kInt32, {far_dims_[0], {0, 0}}, Access::kInOut));
}

// A number from data, of a type whose conversion to an index may lose it.
Val Generator::HostileNumber() {
  const TensorRef& from = One(hostile_inputs_);
  int64_t count = 0;
  const Val at = points_.empty() || Chance(30) ? UniformIndex(&count) : One(points_).var;
  const Val x = b_.Load(from.buf, {at});
  switch (Pick(6)) {
    case 0: return b_.Cast(far_, DType::kIndex);
    case 1:  // of its own type, which wraps
      if (IsFloat(from.type)) return b_.Cast(x, DType::kIndex);
      return b_.Cast(b_.Apply(Of({ExprOp::kAdd, ExprOp::kMul, ExprOp::kSub, ExprOp::kMax, ExprOp::kFloorDiv}),
                              {x, b_.Int(Of({1, 2, 5, 16, 100}), from.type)}),
                     DType::kIndex);
    case 2: return b_.Cast(b_.Cast(x, Of({DType::kInt64, DType::kUInt64, DType::kInt32, DType::kUInt8})), DType::kIndex);
    default: return b_.Cast(x, DType::kIndex);
  }
}

Val Generator::HostileIndex(int64_t extent, int depth) {
  int64_t count = 0;
  const auto near = [&] { return points_.empty() || Chance(20) ? UniformIndex(&count) : One(points_).var; };
  if (depth == 0 || Chance(15)) return Chance(60) ? HostileNumber() : near();
  const Val a = HostileIndex(extent, depth - 1);
  const Val c = Chance(50) ? Val(extent) : Chance(50) ? Val(Pick(9) - 4) : Val(kLarge[Pick(std::size(kLarge))]);
  switch (Pick(16)) {
    case 0: return a + near();
    case 1: return a - c;
    case 2: return a * c;
    case 3: return near() * far_dims_[0].first + a;
    case 4: return FloorDiv(a, c);
    case 5: return a % c;
    case 6: return Max(a, Pick(3)) + Pick(5);
    case 7: return Min(Max(a, -Pick(4)), Val(extent + Pick(3)));
    case 8: return Call(ExprOp::kAbs, a);
    case 9: return -a;
    case 10: return b_.Apply(Of({ExprOp::kShl, ExprOp::kShr}), {a, b_.Lit(int64_t{Pick(70)} - 2)});
    case 11: return b_.Apply(Of({ExprOp::kBitAnd, ExprOp::kBitXor, ExprOp::kBitOr}), {a, b_.Lit(int64_t{7} + Pick(60))});
    case 12: return b_.Select(a < c, a, near());
    case 13: return Val(extent - 1) - a;
    case 14: return FloorDiv(a * far_dims_[0].first, far_dims_[0].first);
    default: return a + c;
  }
}

// One that all points share.
Val Generator::HostileUniform(int64_t extent) {
  const std::vector<Point> points = std::exchange(points_, {});
  const Val index = HostileIndex(extent, Pick(3));
  points_ = points;
  return Chance(40) && points_.empty() ? b_.Let(Name("h"), index) : index;
}

void Generator::HostileStatement(int depth) {
  const TileRef tile = AnyTile();
  switch (Pick(8)) {
    case 0: return CopyIn(tile);
    case 1: return CopyPart(tile);
    case 2: return FillPart();
    case 3: return Scatter(tile);
    case 4: return HostileAtomics(tile);
    case 5: return depth > 0 ? HostileLoop(depth) : Scatter(tile);
    case 6: return Guarded(tile);
    default: return Parallel(tile);
  }
}

// The tile to a place in a block's own part of a tensor, whole or element by element.
void Generator::Scatter(const TileRef& tile) {
  std::vector<std::pair<Val, int64_t>> shape;
  std::vector<Val> start, extent;
  for (const GridAxis& g : grid_) shape.push_back({g.extent, g.blocks}), start.push_back(g.var), extent.push_back(1);
  const size_t lead = shape.size();
  for (int64_t e : tile.shape) {
    const int64_t size = Chance(50) ? e : e + Pick(20);
    shape.push_back({size, size});
    start.push_back(Chance(70) ? HostileUniform(size) : Val(0));
    extent.push_back(e);
  }
  const TensorRef out = NewTensor("O", tile.type, shape, Access::kInOut);
  if (Chance(50)) return b_.Copy(tile.buf, out.buf.At(start, extent));
  OpenPoints(tile.shape);
  std::vector<Val> from, to(start.begin(), start.begin() + static_cast<int64_t>(lead));
  for (size_t d = 0; d < tile.shape.size(); ++d) {
    from.push_back(points_[d].var);
    const Val at = points_[d].var * (Chance(20) ? Of<int64_t>({2, -1, int64_t{1} << 33}) : 1) + start[lead + d];
    to.push_back(Chance(40) ? b_.Let(Name("h"), at) : at);
  }
  const bool half = Chance(40);  // of what must hold
  if (half) b_.OpenIf(Chance(50) ? to.back() < shape.back().second : to.back() >= 0);
  b_.Store(out.buf, to, b_.Load(tile.buf, from));
  if (half) b_.Close();
  points_.clear();
  b_.Close();
}

// Counts by data, in global or shared memory.
void Generator::HostileAtomics(const TileRef& like) {
  const AtomicOp op = Of({AtomicOp::kAdd, AtomicOp::kMax, AtomicOp::kMin});
  const auto counts = [](const TileRef& t) {
    return t.buf.buffer().scope == Scope::kShared && (DTypeBits(t.type) >= 32) && !IsFloat(t.type);
  };
  std::vector<TileRef> shared;
  std::copy_if(tiles_.begin(), tiles_.end(), std::back_inserter(shared), counts);
  TensorRef to;
  if (!shared.empty() && Chance(60)) {
    const TileRef& tile = One(shared);
    to = {tile.buf, tile.shape, tile.type, 0};
  } else {
    const int64_t bins = 1 + Pick(70);
    to = NewTensor("A", Of({DType::kInt32, DType::kUInt32, DType::kInt64, DType::kUInt64}), {{bins, bins}}, Access::kInOut);
  }
  OpenPoints(like.shape);
  std::vector<Val> at;
  for (int64_t e : to.shape) at.push_back(HostileIndex(e, 2));
  b_.Atomic(op, to.buf, at, b_.Cast(One(points_).var, to.type));
  points_.clear();
  b_.Close();
}

// Bounds from data, a few iterations at most; steps that would leave 64 bits after the first.
void Generator::HostileLoop(int depth) {
  if (runs_ > 4) return Scatter(AnyTile());
  const auto bound = [&](int64_t least, int64_t most) { return Max(Min(HostileUniform(8), most), least); };
  const int64_t step = Chance(60) ? 1 : Chance(50) ? 2 : int64_t{1} << 62;
  Val begin = bound(-2, 2), end = bound(-1, 4);
  if (step > 2 && Chance(70)) begin = 0, end = Max(HostileNumber(), INT64_MAX - 1);
  const ForKind kind = Of({ForKind::kSerial, ForKind::kSerial, ForKind::kPipelined});
  const Val k = b_.OpenFor(kind, Name("k"), begin, end, step, kind == ForKind::kPipelined && step <= 2 ? Pick(4) : 0);
  const std::vector<Uniform> outer = uniforms_;
  uniforms_.push_back({k, 5});
  runs_ *= 6;
  Body(depth - 1, 1 + Pick(3));
  runs_ /= 6;
  uniforms_ = outer;
  b_.Close();
}

// Reads behind a guard that proves one side only, or the range of another number.
void Generator::Guarded(const TileRef& tile) {
  OpenPoints(tile.shape);
  std::vector<Val> at;
  for (const Point& p : points_) at.push_back(p.var);
  stored_ = tile.buf.id();
  stored_at_ = at;
  const TensorRef& from = One(inputs_);
  std::vector<Val> places;
  for (int64_t e : from.shape) {
    const Val index = HostileIndex(e, 2);
    places.push_back(Chance(70) ? b_.Let(Name("h"), index) : index);
  }
  const size_t d = static_cast<size_t>(Pick(static_cast<int>(places.size())));
  const Val extent = Chance(60) ? One(dims_).first : Val(from.shape[d]);
  b_.OpenIf(Chance(60) ? places[d] < extent : Chance(50) ? And(places[d] <= extent, places[d] > -2) : places[d] >= 0);
  const Num value{b_.Load(from.buf, places), IsFloat(from.type) ? from.limit : Range(from.type)};
  b_.Store(tile.buf, at, Clamped(Converted(value, tile.type), tile.room).value);
  b_.Close();
  stored_ = kNoId;
  points_.clear();
  b_.Close();
}

}  // namespace tilert::generator
