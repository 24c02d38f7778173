// Statements on whole tiles and parts of them.
#include <algorithm>
#include <cmath>

#include "tests/generator/generator.h"

namespace tilert::generator {

constexpr int64_t kMaxTile = 4096;          // elements
constexpr int64_t kMaxShared = 150 << 10;   // bytes of a block's tiles
constexpr int64_t kMaxFragmentBytes = 256;  // of a thread

int64_t Generator::Elements(const std::vector<int64_t>& shape) const {
  int64_t n = 1;
  for (int64_t e : shape) n *= e;
  return n;
}

double Generator::DefaultLimit(DType type) const {
  if (!IsFloat(type)) return Range(type);
  return std::min(Range(type) / 2, 4096.0);
}

std::vector<int64_t> Generator::TileShape() {
  std::vector<int64_t> shape;
  const int rank = Of({1, 2, 2, 2, 2, 3});
  for (int d = 0; d < rank; ++d) {
    int64_t e = One(extents_);
    while (Elements(shape) * e > kMaxTile) e = (e + 1) / 2;
    shape.push_back(e);
  }
  return shape;
}

bool Generator::Fits(const std::vector<int64_t>& shape, DType type, Scope scope) {
  const int64_t bytes = Elements(shape) * DTypeBytes(type);
  if (scope == Scope::kShared) return shared_bytes_ + bytes <= kMaxShared;
  return fragment_bytes_ + bytes / std::min<int64_t>(threads_, 128) <= kMaxFragmentBytes;
}

TileRef Generator::NewTile(DType type, std::vector<int64_t> shape, Scope scope, double limit) {
  const int64_t bytes = Elements(shape) * DTypeBytes(type);
  if (scope == Scope::kShared) shared_bytes_ += bytes;
  if (scope == Scope::kFragment) fragment_bytes_ += bytes / std::min<int64_t>(threads_, 128);
  TileRef tile;
  tile.buf = b_.Alloc(Name(scope == Scope::kShared ? "s" : "f"), type, scope, std::vector<Val>(shape.begin(), shape.end()));
  tile.shape = std::move(shape);
  tile.type = type;
  tile.limit = tile.room = limit;
  targets_.push_back(tile);
  return tile;
}

TileRef Generator::AnyTile() { return One(tiles_); }

void Generator::MakeTile() {
  const DType type = ElementType();
  std::vector<int64_t> shape = TileShape();
  if (!tiles_.empty() && Chance(50)) shape = AnyTile().shape;
  Scope scope = Chance(50) ? Scope::kShared : Scope::kFragment;
  if (!Fits(shape, type, scope)) scope = scope == Scope::kShared ? Scope::kFragment : Scope::kShared;
  if (!Fits(shape, type, scope) && !tiles_.empty()) return Parallel(AnyTile());
  const TileRef tile = NewTile(type, std::move(shape), scope, DefaultLimit(type));
  Initialise(tile);
  tiles_.push_back(tile);
}

void Generator::Initialise(const TileRef& tile) {
  const int choice = Pick(10);
  if (choice < 5) return CopyIn(tile);
  if (choice < 7 || tiles_.empty()) return b_.Fill(tile.buf, tile.type == DType::kBool ? Val(1) : Val(Pick(3)));
  b_.Fill(tile.buf, 0);
  Parallel(tile);
}

// A part of a tensor for all of the tile: dims of the tile go to dims of the tensor, in order.
void Generator::CopyIn(const TileRef& tile) {
  std::vector<const TensorRef*> fitting;
  for (const std::vector<TensorRef>* list : {&inputs_, &shared_between_}) {
    for (const TensorRef& tensor : *list) {
      const double bound = IsFloat(tensor.type) ? tensor.limit : list == &inputs_ ? 9 : Range(tensor.type);
      if (tensor.shape.size() >= tile.shape.size() && (!IsFloat(tile.type) || tile.room >= bound)) fitting.push_back(&tensor);
    }
  }
  if (fitting.empty()) return b_.Fill(tile.buf, 1);
  const TensorRef& from = *One(fitting);
  std::vector<Val> start, extent;
  size_t next = 0;
  const size_t spare = from.shape.size() - tile.shape.size();
  size_t skipped = 0;
  for (size_t d = 0; d < from.shape.size(); ++d) {
    int64_t count = 0;
    const Val u = UniformIndex(&count);
    if (skipped < spare && (next == tile.shape.size() || Chance(50))) {
      ++skipped;
      start.push_back(Chance(50) ? u : Val(Pick(3)));
      extent.push_back(1);
      continue;
    }
    const int64_t e = tile.shape[next++];
    if (IsHostile(50)) {
      start.push_back(HostileUniform(from.shape[d]));
      extent.push_back(e);
      continue;
    }
    switch (Pick(6)) {
      case 0: start.push_back(0); break;
      case 1: start.push_back(u); break;
      case 2: start.push_back(Pick(9) - 4); break;
      case 3: start.push_back(u * e - Pick(2)); break;
      default: start.push_back(u * e); break;
    }
    extent.push_back(e);
  }
  Copy copy{b_.R(from.buf.At(start, extent)), b_.R(tile.buf)};
  if (Chance(10) && IsFloat(from.type)) copy.fill = b_.E(b_.Float(1, from.type));
  copy.disable_tma = Chance(10);
  if (Chance(10)) copy.coalesced_width = Of<uint32_t>({1, 2, 4, 8});
  b_.Add(std::move(copy));
}

// A box of a tile: starts and extents that agree with those of another.
void Generator::CopyPart(const TileRef& tile) {
  std::vector<TileRef> sources;
  for (const TileRef& other : tiles_) {
    if (other.shape.size() == tile.shape.size() && other.buf.id() != tile.buf.id() && other.limit <= tile.room)
      sources.push_back(other);
  }
  if (sources.empty()) return CopyIn(tile);
  const TileRef& from = One(sources);
  std::vector<Val> start_from, start_to, extent;
  for (size_t d = 0; d < tile.shape.size(); ++d) {
    const int64_t room = std::min(tile.shape[d], from.shape[d]);
    int64_t count = 0;
    const Val u = UniformIndex(&count);
    Val e = Chance(40) ? room : 1 + Pick(static_cast<int>(room));
    if (Chance(10)) e = hostile_ ? Max(Min(u, room - 1), 0) + 1 : Min(u + 1, room);
    if (e.is_weak() && Chance(5)) e = room + 2;  // outside of both
    const auto place = [&](int64_t size) {
      if (IsHostile(40)) return HostileUniform(size);
      return Chance(60) ? Val(0) : Chance(50) ? Val(Pick(static_cast<int>(size))) : Chance(70) ? u : u - 1;
    };
    start_from.push_back(place(from.shape[d]));
    start_to.push_back(place(tile.shape[d]));
    extent.push_back(e);
  }
  b_.Copy(from.buf.At(start_from, extent), tile.buf.At(start_to, extent));
}

void Generator::CopyTiles() {
  const TileRef from = AnyTile();
  std::vector<TileRef> to;
  for (const TileRef& tile : targets_) {
    if (tile.shape == from.shape && tile.buf.id() != from.buf.id() && tile.room >= from.limit) to.push_back(tile);
  }
  if (to.empty() || Chance(30)) {
    const DType type = Chance(60) ? from.type : ElementType();
    const Scope scope = Chance(50) ? Scope::kShared : Scope::kFragment;
    if (!Fits(from.shape, type, scope) || (IsFloat(type) && Range(type) < from.limit)) return CopyPart(from);
    const TileRef tile = NewTile(type, from.shape, scope, std::max(from.limit, DefaultLimit(type)));
    b_.Copy(from.buf, tile.buf);
    tiles_.push_back(tile);
    return;
  }
  b_.Copy(from.buf, One(to).buf);
}

void Generator::FillPart() {
  const TileRef tile = AnyTile();
  const Val value = tile.type == DType::kBool ? Val(0) : Val(Pick(3));
  if (Chance(30)) return b_.Fill(tile.buf, value);
  std::vector<Val> start, extent;
  for (int64_t e : tile.shape) {
    int64_t count = 0;
    start.push_back(IsHostile(50) ? HostileUniform(e) : Chance(50) ? Val(Pick(static_cast<int>(e))) : UniformIndex(&count));
    const bool varies = Chance(30);
    const Val u = varies ? UniformIndex(&count) : Val();
    extent.push_back(varies ? (hostile_ ? Max(Min(u, e), 0) : u) + 1 : Val(1 + Pick(static_cast<int>(e))));
  }
  b_.Fill(tile.buf.At(start, extent), value);
}

void Generator::ReduceTile() {
  const TileRef from = AnyTile();
  const auto axis = static_cast<uint32_t>(Pick(static_cast<int>(from.shape.size())));
  std::vector<int64_t> shape = from.shape;
  if (shape.size() == 1 || Chance(30)) {
    shape[axis] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  if (from.type == DType::kBool) return Parallel(from);
  const bool is_float = IsFloat(from.type);
  ReduceOp op = Of({ReduceOp::kSum, ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAbsSum, ReduceOp::kAbsMax});
  if (!is_float && Chance(30)) op = Of({ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor});
  const bool sums = op == ReduceOp::kSum || op == ReduceOp::kAbsSum;
  const bool bits = op >= ReduceOp::kBitAnd;
  DType type = from.type;
  if (is_float && Chance(60)) type = DType::kFloat32;
  if (!is_float && !bits && Chance(50)) type = DType::kInt32;
  const double n = static_cast<double>(from.shape[axis]);
  const double adds = sums && is_float ? n * from.limit * static_cast<double>(runs_) : from.limit;
  const bool clear = Chance(70);
  if (sums && is_float && n * from.limit > 0x1p23) return Parallel(from);
  for (const TileRef& to : tiles_) {  // into one that is there
    if (to.shape != shape || IsFloat(to.type) != is_float || to.type == DType::kBool || (bits && to.type != from.type) ||
        Chance(50))
      continue;
    if (is_float && to.room < (sums ? n * from.limit : from.limit)) continue;
    if (is_float && sums && !clear) continue;
    return b_.Add(Reduce{op, b_.R(from.buf), b_.R(to.buf), axis, clear, Chance(80)});
  }
  const Scope scope = Chance(75) ? Scope::kFragment : Scope::kShared;
  if (!Fits(shape, type, scope) || (is_float && adds > Range(type) / 2)) return Parallel(from);
  TileRef to = NewTile(type, shape, scope, is_float ? adds + DefaultLimit(type) : Range(type));
  if (is_float) to.room = targets_.back().room = sums && clear ? to.limit : DefaultLimit(type);
  if (!clear) b_.Fill(to.buf, Pick(3));
  b_.Add(Reduce{op, b_.R(from.buf), b_.R(to.buf), axis, clear, Chance(80)});
  tiles_.push_back(to);
}

void Generator::ScanTile() {
  const TileRef from = AnyTile();
  if (from.type == DType::kBool) return Parallel(from);
  const auto axis = static_cast<uint32_t>(Pick(static_cast<int>(from.shape.size())));
  const DType type = IsFloat(from.type) ? DType::kFloat32 : Chance(50) ? from.type : DType::kInt32;
  const double limit = IsFloat(type) ? static_cast<double>(from.shape[axis]) * from.limit : Range(type);
  if (IsFloat(type) && limit > 0x1p23) return Parallel(from);
  const Scope scope = Chance(50) ? Scope::kFragment : Scope::kShared;
  if (type == from.type && !IsFloat(type) && Chance(30)) return b_.Scan(from.buf, from.buf, axis, Chance(50));
  if (!Fits(from.shape, type, scope)) return Parallel(from);
  const TileRef to = NewTile(type, from.shape, scope, limit);
  b_.Scan(from.buf, to.buf, axis, Chance(50));
  tiles_.push_back(to);
}

// The tile's values to an output of its own: a slice a block, or ragged along the dims that the grid cuts.
void Generator::Dump(const TileRef& tile) {
  std::vector<std::pair<Val, int64_t>> lead, inner;
  std::vector<Val> lead_at, inner_at;
  std::vector<bool> taken(tile.shape.size());
  std::vector<size_t> axis_of(tile.shape.size(), grid_.size());
  size_t from = 0;
  for (size_t g = 0; g < grid_.size(); ++g) {
    bool placed = false;
    for (size_t d = from; d < tile.shape.size() && grid_[g].dim && !placed; ++d) {
      if (tile.shape[d] != grid_[g].tile || Chance(20)) continue;
      axis_of[d] = g;
      from = d + 1;
      placed = true;
    }
    if (placed) continue;
    lead.push_back({grid_[g].extent, grid_[g].blocks});
    lead_at.push_back(grid_[g].var);
  }
  for (size_t d = 0; d < tile.shape.size(); ++d) {
    const bool cut = axis_of[d] < grid_.size();
    const int64_t e = tile.shape[d];
    inner.push_back(cut ? std::pair<Val, int64_t>{grid_[axis_of[d]].dim, grid_[axis_of[d]].size} : std::pair<Val, int64_t>{e, e});
    inner_at.push_back(cut ? grid_[axis_of[d]].var * e : Val(0));
  }
  std::vector<std::pair<Val, int64_t>> shape = lead;
  shape.insert(shape.end(), inner.begin(), inner.end());
  const DType type = Chance(75) ? tile.type : ElementType();
  const TensorRef out = NewTensor("O", type, shape, Access::kOut);
  std::vector<Val> start = lead_at, extent(lead_at.size(), 1);
  for (size_t d = 0; d < tile.shape.size(); ++d) {
    start.push_back(inner_at[d]);
    extent.push_back(tile.shape[d]);
  }
  if (Chance(70)) {
    Copy copy{b_.R(tile.buf), b_.R(out.buf.At(start, extent))};
    copy.disable_tma = Chance(15);
    if (Chance(10)) copy.coalesced_width = Of<uint32_t>({1, 2, 4});
    return b_.Add(std::move(copy));
  }
  std::vector<std::string> names;
  for (size_t d = 0; d < tile.shape.size(); ++d) names.push_back(Name("i"));
  const std::vector<Val> i = b_.OpenParallel(names, std::vector<Val>(tile.shape.begin(), tile.shape.end()));
  std::vector<Val> to = lead_at;
  for (size_t d = 0; d < i.size(); ++d) to.push_back(inner_at[d] + i[d]);
  b_.Store(out.buf, to, b_.Cast(b_.Load(tile.buf, i), type));
  b_.Close();
}

// A block writes its part of a workspace and reads it back; later launches read anyone's.
void Generator::ThroughWorkspace() {
  const TileRef tile = AnyTile();
  std::vector<Val> shape, start, extent;
  std::vector<int64_t> sizes;
  for (const GridAxis& g : grid_) {
    shape.push_back(g.extent);
    sizes.push_back(g.blocks);
    start.push_back(g.var);
    extent.push_back(1);
  }
  for (int64_t e : tile.shape) {
    shape.push_back(e);
    sizes.push_back(e);
    start.push_back(0);
    extent.push_back(e);
  }
  TensorRef space;
  space.buf = b_.Workspace(Name("W"), tile.type, shape, true);
  space.shape = sizes;
  space.type = tile.type;
  b_.Copy(tile.buf, space.buf.At(start, extent));
  space.limit = tile.limit;
  shared_between_.push_back(space);
  const Scope scope = Chance(50) ? Scope::kFragment : Scope::kShared;
  if (!Chance(60) || !Fits(tile.shape, tile.type, scope)) return;
  const TileRef back = NewTile(tile.type, tile.shape, scope, tile.limit);
  if (Chance(50)) {
    b_.Copy(space.buf.At(start, extent), back.buf);
  } else {  // mirrored, so that other threads read it than wrote it
    std::vector<std::string> names;
    for (size_t d = 0; d < tile.shape.size(); ++d) names.push_back(Name("i"));
    const std::vector<Val> i = b_.OpenParallel(names, std::vector<Val>(tile.shape.begin(), tile.shape.end()));
    std::vector<Val> at;
    for (const GridAxis& g : grid_) at.push_back(g.var);
    for (size_t d = 0; d < i.size(); ++d) at.push_back(Val(tile.shape[d] - 1) - i[d]);
    b_.Store(back.buf, i, b_.Load(space.buf, at));
    b_.Close();
  }
  tiles_.push_back(back);
}

// Sums of integers in memory that all blocks share: the order does not show.
void Generator::AddAtomics() {
  const TileRef tile = AnyTile();
  const DType type = Of({DType::kInt32, DType::kUInt32, DType::kInt64});
  const AtomicOp op = Of({AtomicOp::kAdd, AtomicOp::kAdd, AtomicOp::kMax, AtomicOp::kMin});
  if (Chance(40)) {
    std::vector<std::pair<Val, int64_t>> shape;
    for (int64_t e : tile.shape) shape.push_back({e, e});
    return b_.AtomicTile(op, tile.buf, NewTensor("H", type, shape, Access::kInOut).buf);
  }
  const int64_t bins = 1 + Pick(70);
  const Buf out = NewTensor("H", type, {{bins, bins}}, Access::kInOut).buf;
  OpenPoints(tile.shape);
  const Val bin = b_.Cast(Element(DType::kInt32, 1).value, DType::kIndex) % bins;
  b_.Atomic(op, out, {bin}, Element(type, 1).value);
  points_.clear();
  b_.Close();
}

void Generator::Hint() {
  switch (Pick(5)) {
    case 4: {
      if (in_role_) return;
      const TensorRef& tensor = One(inputs_);
      return b_.Add(Annotate{AnnotationKind::kSafeValue, tensor.buf.id(), {b_.E(b_.Lit(int64_t{1}).As(&b_, tensor.type))}, ""});
    }
    case 0:
      return b_.Add(
          Annotate{AnnotationKind::kUseSwizzle, kNoId, {b_.E(b_.Lit(int64_t{1} + Pick(9)))}, Chance(50) ? "row" : "col"});
    case 1: {
      const TileRef tile = AnyTile();
      if (tile.buf.buffer().scope != Scope::kShared) return;
      return b_.Add(
          Annotate{Chance(50) ? AnnotationKind::kLayoutSwizzled : AnnotationKind::kLayoutRowMajor, tile.buf.id(), {}, ""});
    }
    case 2: return b_.Add(Assert{b_.E(count_ == 3), "count is three"});
    default: return b_.Add(Annotate{AnnotationKind::kNoWarpSpecialization});
  }
}

}  // namespace tilert::generator
