// Gemms: operands of every type and order, in shared memory or fragments, summed over a loop.
#include <algorithm>
#include <iterator>

#include "tests/generator/generator.h"

namespace tilert::generator {
namespace {

struct Types {
  DType a, b, c;
};
constexpr Types kTypes[] = {
    {DType::kFloat16, DType::kFloat16, DType::kFloat32},
    {DType::kBFloat16, DType::kBFloat16, DType::kFloat32},
    {DType::kFloat16, DType::kFloat16, DType::kFloat32},
    {DType::kBFloat16, DType::kBFloat16, DType::kFloat32},
    {DType::kFloat16, DType::kFloat16, DType::kFloat16},
    {DType::kBFloat16, DType::kBFloat16, DType::kBFloat16},
    {DType::kFloat32, DType::kFloat32, DType::kFloat32},
    {DType::kInt8, DType::kInt8, DType::kInt32},
    {DType::kUInt8, DType::kInt8, DType::kInt32},
    {DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat32},
    {DType::kFloat8E5M2, DType::kFloat8E4M3, DType::kFloat32},
    {DType::kFloat64, DType::kFloat64, DType::kFloat64},
    {DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat16},
};

// Up to which sums into the type are exact in any order (docs/ir_spec.md section 8).
double ExactSum(const Types& t) {
  if (!IsFloat(t.c)) return Range(t.c);
  if (DTypeBits(t.a) == 8) return std::min(Range(t.c), 0x1p12);
  return Range(t.c) / 2;
}

}  // namespace

// An operand of the gemm in its own tile, filled from the tensor at these places: at once, or by way of another tile.
TileRef Generator::Operand(const char* stem, DType type, int64_t rows, int64_t columns, Val row_start, Val column_start,
                           const TensorRef& from) {
  const Tile source = from.buf.At({row_start, column_start}, {rows, columns});
  const Scope scope = Chance(75) ? Scope::kShared : Scope::kFragment;
  TileRef tile;
  tile.shape = {rows, columns};
  tile.type = type;
  tile.limit = tile.room = 2;
  tile.buf = b_.Alloc(Name(stem), type, scope, {rows, columns});
  if (from.type == type && Chance(75)) {
    b_.Copy(source, tile.buf);
    return tile;
  }
  const Buf via = b_.Alloc(Name("via"), from.type, Chance(60) ? Scope::kFragment : Scope::kShared, {rows, columns});
  b_.Copy(source, via);
  if (Chance(40)) {
    b_.Copy(via, tile.buf);
    return tile;
  }
  const std::vector<Val> i = b_.OpenParallel({Name("i"), Name("i")}, {rows, columns});
  Val value = b_.Cast(b_.Load(via, i), type);
  if (Chance(30)) value = b_.Select(i[0] <= i[1] + Pick(20), value, b_.Cast(b_.Lit(int64_t{0}), type));
  b_.Store(tile.buf, i, value);
  b_.Close();
  return tile;
}

void Generator::GemmLoop(int depth) {
  const Types t = kTypes[Pick(static_cast<int>(std::size(kTypes)))];
  const auto side = [&] { return Of<int64_t>({16, 16, 32, 32, 48, 64, 64, 64, 80, 96, 112, 128, 128, 160, 192, 8, 24, 17, 1}); };
  int64_t m = side(), n = side(), k = Of<int64_t>({16, 16, 32, 32, 64, 8, 48, 24, 80, 20, 128});
  while (m * n > 16384 || m * n / std::min<int64_t>(threads_, 256) > 96)
    (m > n ? m : n) = std::max<int64_t>((m > n ? m : n) / 2, 1);
  while (m * n * k > (1 << 19)) k = std::max<int64_t>(k / 2, 1);
  const int64_t stages = Pick(5);
  const bool loop = Chance(80);
  int64_t trips = loop ? Pick(static_cast<int>(2 * stages + 2)) : 1;
  if (trips * m * n * k > (1 << 20)) trips = 1;
  const double term = IsFloat(t.a) ? 4 : 0;
  if (runs_ > 8 || term * static_cast<double>(k * std::max<int64_t>(trips, 1) * runs_) > ExactSum(t) / 2)
    return Parallel(AnyTile());
  const bool transpose_a = Chance(35), transpose_b = Chance(50);
  const int64_t total =
      Chance(70) ? k * std::max<int64_t>(trips, 1) : std::max<int64_t>(k * trips - Pick(static_cast<int>(k)), 1);
  const int64_t m_total = Chance(60) ? m : m + Pick(20) - 10, n_total = Chance(60) ? n : n + Pick(20) - 10;
  const auto tensor = [&](DType type, int64_t rows, int64_t columns) {
    const DType from = Chance(80) || !IsFloat(type) ? type : Of({DType::kFloat32, DType::kFloat16, DType::kFloat8E5M2});
    rows = std::max<int64_t>(rows, 1), columns = std::max<int64_t>(columns, 1);
    return NewTensor("G", from, {{rows, rows}, {columns, columns}}, Access::kIn);
  };
  const TensorRef a_from = transpose_a ? tensor(t.a, total, m_total) : tensor(t.a, m_total, total);
  const TensorRef b_from = transpose_b ? tensor(t.b, n_total, total) : tensor(t.b, total, n_total);
  TileRef acc;
  acc.buf = b_.Fragment(Name("acc"), t.c, {m, n});
  acc.shape = {m, n};
  acc.type = t.c;
  acc.limit = IsFloat(t.c) ? ExactSum(t) * 0.75 : Range(t.c);
  acc.room = IsFloat(t.c) ? ExactSum(t) / 4 : Range(t.c);
  const bool apart = loop && Chance(15);  // each trip multiplies into a tile of its own, and adds it
  const bool clear = apart || (!loop && Chance(50));
  if (apart || !clear) b_.Fill(acc.buf, Pick(3));
  Val ko = b_.Lit(int64_t{0});
  const std::vector<Uniform> outer = uniforms_;
  const std::vector<TileRef> tiles = tiles_, targets = targets_;
  const int64_t outer_runs = runs_;
  if (loop) {
    const bool pipelined = Chance(85);
    ko = b_.OpenFor(pipelined ? ForKind::kPipelined : ForKind::kSerial, Name("ko"), 0, trips, 1, pipelined ? stages : 0, {}, {},
                    pipelined && Chance(12) ? Val(2) : Val());
    uniforms_.push_back({ko, std::max<int64_t>(trips, 1)});
    runs_ *= std::max<int64_t>(trips, 1);
  }
  const Buf product = apart ? b_.Fragment(Name("product"), t.c, {m, n}) : acc.buf;
  const Val row = Chance(30) ? grid_[0].var : Val(0);
  const TileRef a = transpose_a ? Operand("a", t.a, k, m, ko * k, row, a_from) : Operand("a", t.a, m, k, row, ko * k, a_from);
  const TileRef b = transpose_b ? Operand("b", t.b, n, k, 0, ko * k, b_from) : Operand("b", t.b, k, n, ko * k, 0, b_from);
  const GemmPolicy policy = Of({GemmPolicy::kSquare, GemmPolicy::kSquare, GemmPolicy::kFullRow, GemmPolicy::kFullCol});
  b_.Gemm(a.buf, b.buf, product, transpose_a, transpose_b, clear, policy);
  if (apart) {
    const std::vector<Val> i = b_.OpenParallel({Name("i"), Name("i")}, {m, n});
    b_.Store(acc.buf, i, b_.Load(acc.buf, i) + b_.Load(product, i));
    b_.Close();
  }
  if (loop) {
    if (Chance(35)) {
      tiles_.push_back(a), tiles_.push_back(b);
      if (depth > 0) Body(depth - 1, 1 + Pick(2));
    }
    runs_ = outer_runs;
    uniforms_ = outer;
    b_.Close();
  }
  tiles_ = tiles;
  targets_ = targets;
  tiles_.push_back(acc);
  targets_.push_back(acc);
}

}  // namespace tilert::generator
