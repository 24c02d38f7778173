// Parallel loops: guards, arithmetic over mixed types, loads at permuted, shifted and computed subscripts.
#include <algorithm>
#include <cmath>

#include "tests/generator/generator.h"

namespace tilert::generator {

void Generator::OpenPoints(const std::vector<int64_t>& shape) {
  std::vector<std::string> names;
  for (size_t d = 0; d < shape.size(); ++d) names.push_back(Name("i"));
  const uint32_t width = Chance(10) ? Of<uint32_t>({1, 2, 4, 8}) : 0;
  const std::vector<Val> vars = b_.OpenParallel(names, std::vector<Val>(shape.begin(), shape.end()), width);
  points_.clear();
  lets_.clear();
  for (size_t d = 0; d < shape.size(); ++d) points_.push_back({vars[d], shape[d]});
}

// A loop that stores to the tile: over its elements in their order or another, over fewer or more than it has.
void Generator::Parallel(const TileRef& tile) {
  std::vector<size_t> order;
  for (size_t d = 0; d < tile.shape.size(); ++d) order.push_back(d);
  if (Chance(25)) std::shuffle(order.begin(), order.end(), rng_);
  std::vector<int64_t> extents;
  for (size_t d : order) {
    int64_t e = tile.shape[d];
    if (Chance(8)) e = 1 + Pick(static_cast<int>(e));
    if (Chance(4)) e += 1 + Pick(3);
    extents.push_back(e);
  }
  OpenPoints(extents);
  std::vector<Val> at(tile.shape.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t e = tile.shape[order[i]];
    at[order[i]] = Chance(8) && extents[i] == e ? Val(e - 1) - points_[i].var : points_[i].var;
    if (IsHostile(15)) at[order[i]] = at[order[i]] + HostileUniform(e);
  }
  stored_ = tile.buf.id();
  stored_at_ = at;
  const int statements = 1 + Pick(3);
  for (int i = 0; i < statements; ++i) ElementStatement(tile, at, 2);
  b_.Close();
  stored_ = kNoId;
  points_.clear();
  lets_.clear();
}

void Generator::ElementStatement(const TileRef& tile, const std::vector<Val>& at, int depth) {
  const int choice = Pick(10);
  if (choice == 0) {
    const Num x = Element(DType::kInt32, 2);
    lets_.push_back({b_.Let(Name("y"), x.value), x.bound});
    return;
  }
  if (choice < 3 && depth > 0) {
    const auto lets = lets_;
    b_.OpenIf(PointCondition(1));
    ElementStatement(tile, at, depth - 1);
    lets_ = lets;
    if (Chance(40)) {
      b_.Else();
      ElementStatement(tile, at, depth - 1);
      lets_ = lets;
    }
    return b_.Close();
  }
  if (choice == 3 && depth > 0) return ElementLoop(tile, at);
  const DType type = Chance(60) ? tile.type : ElementType();
  const Num value = Converted(Element(type, 3), tile.type);
  b_.Store(tile.buf, at, Clamped(value, tile.room).value);
}

// A serial loop of each point that adds up in a variable or a local buffer of its own.
void Generator::ElementLoop(const TileRef& tile, const std::vector<Val>& at) {
  const bool local = Chance(40);
  const Buf own = local ? b_.Alloc(Name("own"), DType::kInt32, Scope::kLocal, {4}) : b_.Mutable(Name("sum"), DType::kInt32);
  if (local) {
    b_.Fill(own, 1);
  } else {
    b_.Store(own, {}, 0);
  }
  const ForKind kind = Of({ForKind::kSerial, ForKind::kUnrolled, ForKind::kVectorized});
  const int64_t trips = Pick(5);
  const Val n = b_.OpenFor(kind, Name("n"), 0, trips);
  const std::vector<Uniform> outer = uniforms_;
  uniforms_.push_back({n, std::max<int64_t>(trips, 1)});
  const auto lets = lets_;
  const Val term = Element(DType::kInt32, 2).value;
  if (local) {
    const Val at = IsHostile(40) ? HostileIndex(4, 1) : n;
    b_.Store(own, {at}, own(at) + term);
  } else {
    b_.Store(own, {}, own() + term);
  }
  if (kind == ForKind::kSerial && Chance(20)) {
    b_.OpenIf(PointCondition(0));
    b_.Add(Break{});
    b_.Close();
  }
  lets_ = lets;
  uniforms_ = outer;
  b_.Close();
  const Num sum{local ? own(1) + own(2) : own(), Range(DType::kInt32)};
  b_.Store(tile.buf, at, Clamped(Converted(sum, tile.type), tile.room).value);
}

Num Generator::Clamped(Num x, double limit) {
  const DType type = x.value.dtype();
  if (!IsFloat(type) || x.bound <= limit) return x;
  return {Max(Min(x.value, b_.Float(limit, type)), b_.Float(-limit, type)), limit};
}

Num Generator::Converted(Num x, DType type) {
  const DType from = x.value.dtype();
  if (from == type) return x;
  const Val value = b_.Cast(x.value, type);
  if (!IsFloat(type)) return {value, Range(type)};
  return {value, std::min(x.bound, type == DType::kFloat8E4M3 ? 448.0 : type == DType::kFloat8E5M2 ? 57344.0 : 1e30) * 1.25};
}

Val Generator::PointIndex(int64_t extent) {
  if (IsHostile(35)) return HostileIndex(extent, 2);
  int64_t count = 0;
  std::vector<Val> same;
  for (const Point& p : points_) {
    if (p.extent == extent) same.push_back(p.var);
  }
  if (!same.empty() && Chance(70)) {
    const Val i = One(same);
    const int choice = Pick(12);
    return choice == 0   ? Val(extent - 1) - i
           : choice == 1 ? i + 1
           : choice == 2 ? (i * 3 + 1) % extent
           : choice == 3 ? i - Pick(3)
                         : i;
  }
  if (points_.empty()) return Pick(static_cast<int>(extent));
  const Val i = One(points_).var;
  switch (Pick(7)) {
    case 0: return i % extent;
    case 1: return FloorDiv(i, 2);
    case 2: return UniformIndex(&count);
    case 3: return Pick(static_cast<int>(extent));
    case 4: return i + UniformIndex(&count);
    case 5: return i * 2;
    default: return i;
  }
}

Num Generator::ReadTile(const TileRef& tile) {
  if (tile.buf.id() == stored_) return {b_.Load(tile.buf, stored_at_), tile.limit};  // elsewhere other points write
  std::vector<Val> at;
  for (int64_t e : tile.shape) at.push_back(PointIndex(e));
  return {b_.Load(tile.buf, at), IsFloat(tile.type) ? tile.limit : Range(tile.type)};
}

Num Generator::ReadTensor(const TensorRef& tensor) {
  std::vector<Val> at;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t count = 0;
    if (IsHostile(35)) {
      at.push_back(HostileIndex(tensor.shape[d], 2));
      continue;
    }
    Val i = points_.empty() ? Val(Pick(5)) : One(points_).var;
    if (d < points_.size() && Chance(60)) i = points_[d].var;
    if (Chance(60)) i = UniformIndex(&count) * One(extents_) + i;
    if (Chance(6)) i = b_.Cast(b_.Load(inputs_[3].buf, {i, UniformIndex(&count)}), DType::kIndex) + Pick(4);  // a gather
    at.push_back(i);
  }
  return {b_.Load(tensor.buf, at), IsFloat(tensor.type) ? tensor.limit : Range(tensor.type)};
}

Val Generator::PointCondition(int depth) {
  int64_t count = 0;
  if (depth > 0 && Chance(25)) {
    const Val a = PointCondition(0), b = PointCondition(0);
    return Chance(40) ? And(a, b) : Chance(50) ? Or(a, b) : Not(a);
  }
  const Point& p = One(points_);
  switch (Pick(7)) {
    case 0: return p.var < Pick(static_cast<int>(p.extent) + 1);
    case 1: return UniformIndex(&count) * One(extents_) + p.var < One(dims_).first;
    case 2: return p.var % Of({2, 3, 4, 8}) == 0;
    case 3: return points_[0].var <= points_.back().var;
    case 4: return p.var >= UniformIndex(&count);
    case 5: {
      const DType type = ElementType();
      const Num a = Element(type, 1), b = Element(type, 1);
      return b_.Apply(Of({ExprOp::kLt, ExprOp::kLe, ExprOp::kEq, ExprOp::kNe, ExprOp::kGt, ExprOp::kGe}), {a.value, b.value});
    }
    default: return Converted(Leaf(DType::kInt32), DType::kInt32).value > 0;
  }
}

Num Generator::Leaf(DType type) {
  Num x;
  int64_t count = 0;
  switch (Pick(10)) {
    case 0:
      x = IsFloat(type) ? Num{b_.Float(Pick(9) - 4, type), 4}
                        : Num{b_.Int(Pick(type == DType::kBool ? 2 : 9), type), Range(type)};
      break;
    case 1: x = {points_.empty() ? b_.Lit(int64_t{2}) : One(points_).var, 8192}; break;
    case 2: x = {UniformIndex(&count), 8192}; break;
    case 3:
      if (!lets_.empty()) {
        x = {One(lets_).first, Range(DType::kInt32)};
      } else if (!vars_.empty()) {
        x = {vars_[0](), Range(DType::kInt32)};
      } else {
        x = {alpha_, 2};
      }
      break;
    case 4:
    case 5: x = ReadTensor(One(inputs_)); break;
    default:
      if (tiles_.empty()) return Num{b_.Cast(count_, type), 3};
      x = ReadTile(One(tiles_));
  }
  return Converted(x, type);
}

Num Generator::IntegerOp(DType type, int depth) {
  const Val a = Element(type, depth - 1).value;
  const double range = Range(type);
  if (type == DType::kBool) return {b_.Cast(Chance(50) ? Not(a) : PointCondition(1), type), 1};
  if (Chance(20)) return {b_.Cast(Call(Of({ExprOp::kNeg, ExprOp::kAbs, ExprOp::kBitNot, ExprOp::kPopcount}), a), type), range};
  const ExprOp op = Of({ExprOp::kAdd, ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kMin, ExprOp::kMax, ExprOp::kFloorDiv,
                        ExprOp::kFloorMod, ExprOp::kBitAnd, ExprOp::kBitOr, ExprOp::kBitXor, ExprOp::kShl, ExprOp::kShr});
  if (op == ExprOp::kShl || op == ExprOp::kShr) return {b_.Apply(op, {a, b_.Int(Pick(6), type)}), range};
  const Val b = Chance(30) ? b_.Int(1 + Pick(7), type) : Element(type, depth - 1).value;
  return {b_.Cast(b_.Apply(op, {a, b}), type), range};
}

// A function of real numbers, rounded where no error within its bound can show: never near a half.
Num Generator::RoundedFunction(DType type, int depth) {
  const Num x = Clamped(Element(type, depth - 1), 4);
  const auto wide = [&](Val v) { return b_.Cast(v, DType::kFloat32); };
  const Val v = wide(x.value), a = Call(ExprOp::kAbs, v) + b_.Float(1, DType::kFloat32);
  const auto rounded = [&](Val y, double bound) {
    return Num{b_.Cast(Call(ExprOp::kRound, y * b_.Float(2.9375, DType::kFloat32)), type), bound};
  };
  switch (Pick(8)) {
    case 0: return rounded(Call(ExprOp::kExp, v), 170);
    case 1: return rounded(Call(ExprOp::kTanh, v), 4);
    case 2: return rounded(Call(ExprOp::kSigmoid, v), 4);
    case 3: return rounded(Call(ExprOp::kSqrt, a), 8);
    case 4: return rounded(Call(ExprOp::kLog, a), 8);
    case 5: return rounded(Call(ExprOp::kSin, v), 4);
    case 6: return rounded(b_.Apply(ExprOp::kDiv, {v, a}), 4);
    default: return rounded(Call(ExprOp::kErf, v), 4);
  }
}

Num Generator::FloatOp(DType type, int depth) {
  const bool narrow = DTypeBits(type) == 8;  // computed in float32
  const DType op_type = narrow ? DType::kFloat32 : type;
  const auto operand = [&] { return Converted(Element(type, depth - 1), op_type); };
  const auto result = [&](Val v, double bound) { return Converted(Num{v, bound}, type); };
  Num a = operand();
  if (Chance(10) && !narrow && type != DType::kFloat64) return RoundedFunction(type, depth);
  if (Chance(15)) return result(Call(Chance(50) ? ExprOp::kNeg : ExprOp::kAbs, a.value), a.bound);
  if (Chance(15)) {
    a = Clamped(a, Range(op_type) / 4);
    const Val half = a.value * b_.Float(0.5, op_type);
    return result(Call(Of({ExprOp::kFloor, ExprOp::kCeil, ExprOp::kRound, ExprOp::kTrunc}), half), a.bound);
  }
  Num b = operand();
  switch (Pick(6)) {
    case 0: {
      const double limit = std::exp2(std::floor(std::log2(Range(op_type)) / 2) - 1);
      a = Clamped(a, limit);
      b = Clamped(b, limit);
      return result(a.value * b.value, a.bound * b.bound);
    }
    case 1: return result(Min(a.value, b.value), std::max(a.bound, b.bound));
    case 2: return result(Max(a.value, b.value), std::max(a.bound, b.bound));
    case 3: {
      const double limit = std::exp2(std::floor(std::log2(Range(op_type)) / 2) - 1);
      a = Clamped(a, limit);
      b = Clamped(b, limit);
      const Num c = Clamped(operand(), limit);
      return result(a.value * b.value + c.value, a.bound * b.bound + c.bound);  // may be contracted
    }
    case 4: return result(a.value - b.value, a.bound + b.bound);
    default: return result(a.value + b.value, a.bound + b.bound);
  }
}

Num Generator::Element(DType type, int depth) {
  if (depth == 0 || Chance(25)) return Leaf(type);
  if (Chance(15)) return Converted(Element(ElementType(), depth - 1), type);
  if (Chance(12) && !points_.empty()) {
    const Val cond = PointCondition(1);
    const Num a = Element(type, depth - 1), b = Element(type, depth - 1);
    return {b_.Cast(b_.Select(cond, a.value, b.value), type), std::max(a.bound, b.bound)};
  }
  return IsFloat(type) ? FloatOp(type, depth) : IntegerOp(type, depth);
}

}  // namespace tilert::generator
