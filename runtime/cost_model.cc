#include "runtime/cost_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/stmt.h"
#include "lowering/kernel_ir.h"

namespace tilert {
namespace {

constexpr int kTypicalSms = 132;
constexpr double kL2BytesPerCycle = 60, kSimtLanes = 128, kMemoryBytesPerCycle = 2500, kSmsForMemory = 0.75;
constexpr double kTileCycles = 2300, kTurnCycles = 1000, kNotHidden = 1.0 / 16;
constexpr double kShareCycles = 7000, kShareBytesPerCycle = 32, kGivenBytesPerCycle = 8;
constexpr double kClusterCycles = 100, kUnevenPenalty = 0.7;
constexpr int64_t kLineBytes = 128;
constexpr double kSingleElement = 0.4;
constexpr double kMmaSyncRate = 1024, kUnevenPanels = 1.1;
constexpr int64_t kWarpgroupThreads = 128, kManyAccumulators = 48;  // as the plan of roles

// Blocks of a grid, in whole clusters.
double Blocks(const std::vector<DimExpr>& grid, const std::vector<int64_t>& cluster, const DimValues& values) {
  double blocks = 1;
  for (size_t d = 0; d < grid.size(); ++d) {
    const int64_t across = d < cluster.size() ? cluster[d] : 1, extent = std::max<int64_t>(grid[d].Eval(values), 0);
    blocks *= static_cast<double>((extent + across - 1) / across * across);
  }
  return blocks;
}

double Product(const std::vector<DimExpr>& factors, const DimValues& values) {
  double product = 1;
  for (const DimExpr& factor : factors) product *= static_cast<double>(std::max<int64_t>(factor.Eval(values), 0));
  return product;
}

}  // namespace

// Walks a program and adds up its statements.
class CostModelBuilder {
 public:
  CostModelBuilder(const Program& program, const Target& target, bool any_arguments)
      : program_(program), target_(target), any_arguments_(any_arguments) {}

  CostModel::LaunchCost Add(const Launch& launch) {
    cost_ = {};
    places_.clear();
    for (size_t i = 0; i < launch.grid.size(); ++i) {
      cost_.grid.push_back(Compile(launch.grid[i]).value_or(DimExpr()));
      if (i < launch.block_vars.size()) SetMiddle(launch.block_vars[i], Int(0), launch.grid[i]);
    }
    SetCluster(launch);
    accumulators_ = 0;
    threads_ = 0;
    program_.exprs.AsInt(launch.threads, &threads_);
    Walk(launch.body, {});
    const bool takes_turns = target_.family == Family::kHopper && cost_.shares == 1 && cost_.given_bytes == 0 &&
                             threads_ == kWarpgroupThreads && accumulators_ >= kManyAccumulators * kWarpgroupThreads;
    cost_.tile_cycles = takes_turns ? kTurnCycles : kTileCycles;
    cost_.last_cycles = kTileCycles - cost_.tile_cycles;
    for (const int64_t across : cost_.cluster) cost_.tile_cycles += across > 1 ? kClusterCycles : 0;
    if (cost_.given_bytes > 0) cost_.given_bytes = 4 * static_cast<double>(accumulators_);
    if (cost_.shares > 1) {
      cost_.tile_cycles += kShareCycles + (cost_.shares - 1) * 4 * static_cast<double>(accumulators_) / kShareBytesPerCycle;
    }
    return std::move(cost_);
  }

  std::vector<DimExpr> Shape(const Buffer& buffer) {
    std::vector<DimExpr> shape;
    for (const Expr extent : buffer.shape) {
      if (std::optional<DimExpr> compiled = Compile(extent)) shape.push_back(*std::move(compiled));
    }
    return shape;
  }

 private:
  using Times = std::vector<Expr>;
  struct Extents {
    std::vector<int64_t> sizes;  // 1 where it is not a number
    Times dynamic;               // those
    int64_t product() const {
      int64_t result = 1;
      for (const int64_t size : sizes) result *= size;
      return result;
    }
    // Counted from the last.
    int64_t back(size_t i) const { return i < sizes.size() ? sizes[sizes.size() - 1 - i] : 1; }
  };

  Expr Int(int64_t value) { return program_.exprs.Int(value); }
  Expr Make(ExprOp op, Expr a, Expr b) { return Fold(program_.exprs, program_.exprs.Binary(op, a, b)); }

  // `e` over dims alone, variables being replaced by what is known of them; none if that does not do.
  Expr OverDims(Expr e) {
    ExprArena& arena = program_.exprs;
    if (arena[e].op == ExprOp::kIntImm || arena[e].op == ExprOp::kDim) return e;
    if (const auto it = over_dims_.find(e.id); it != over_dims_.end()) return it->second;
    const Expr result = Fold(arena, Rewrite(arena, e, arena, [&](Expr, const ExprNode& node) -> Expr {
                               if (node.op == ExprOp::kVar) {
                                 const auto it = known_.find(static_cast<VarId>(node.i));
                                 return it == known_.end() ? Expr{} : it->second;
                               }
                               if (node.op != ExprOp::kScalar) return {};
                               const uint32_t dim = program_.scalars[static_cast<size_t>(node.i)].dim;
                               return dim == kNoId ? Expr{} : arena.Leaf(ExprOp::kDim, dim, DType::kIndex);
                             }));
    bool is_known = true;
    ForEachNode(arena, result, [&](Expr, const ExprNode& node) {
      is_known &= node.op != ExprOp::kVar && node.op != ExprOp::kScalar && node.op != ExprOp::kLoad && !IsFloat(node.dtype);
    });
    return over_dims_[e.id] = is_known ? result : Expr{};
  }
  void SetKnown(VarId var, Expr value) {
    known_[var] = value;
    over_dims_.clear();
  }
  std::optional<DimExpr> Compile(Expr e) {
    const Expr known = OverDims(e);
    if (!known) return std::nullopt;
    absl::StatusOr<DimExpr> compiled = DimExpr::Compile(program_, known);
    if (!compiled.ok()) return std::nullopt;
    return *std::move(compiled);
  }
  // A variable of a range counts as its middle.
  void SetMiddle(VarId var, Expr begin, Expr end) {
    const Expr from = OverDims(begin), to = OverDims(end);
    if (from && to) SetKnown(var, Make(ExprOp::kFloorDiv, Make(ExprOp::kAdd, from, to), Int(2)));
  }

  Extents ExtentsOf(const std::vector<Expr>& exprs) {
    Extents extents;
    for (const Expr e : exprs) {
      int64_t size = 1;
      const Expr known = OverDims(e);
      if (known && !program_.exprs.AsInt(known, &size)) extents.dynamic.push_back(known);
      extents.sizes.push_back(size);
    }
    return extents;
  }

  // The entry for what happens `times` and, besides, as often as `more` says.
  CostModel::Work& At(Times times, const Times& more = {}) {
    times.insert(times.end(), more.begin(), more.end());
    const auto [it, is_new] = places_.emplace(times, cost_.work.size());
    if (!is_new) return cost_.work[it->second];
    CostModel::Work work;
    for (const Expr e : times) {
      if (std::optional<DimExpr> compiled = Compile(e)) work.times.push_back(*std::move(compiled));
    }
    return cost_.work.emplace_back(std::move(work));
  }

  void AddElements(const Region& region, const Times& times) {
    const Extents extents = ExtentsOf(region.extent);
    At(times, extents.dynamic).elements += static_cast<double>(extents.product());
  }
  void AddCopy(const Copy& copy, const Times& times) {
    const Buffer& src = program_.buffers[copy.src.buffer];
    if (src.scope != Scope::kGlobal) return AddElements(copy.src, times);
    const Extents extents = ExtentsOf(copy.src.extent);
    Times more = extents.dynamic;
    double bytes = static_cast<double>(extents.product()) * DTypeBytes(src.dtype);
    if (const Expr uneven = UnevenPitch(src); uneven && target_.family == Family::kHopper) {
      // 1, and more where the remainder is not 0; in hundredths.
      const auto penalty = static_cast<int64_t>(100 * kUnevenPenalty / SharersOf(copy));
      more.push_back(Make(ExprOp::kAdd, Int(100), Make(ExprOp::kMul, Make(ExprOp::kMin, uneven, Int(1)), Int(penalty))));
      bytes /= 100;
    }
    At(times, more).bytes += bytes;
    const double single = static_cast<double>(extents.product()) * kSingleElement * kSimtLanes;
    if (any_arguments_) At(times, extents.dynamic).elements += single;
  }
  // The bytes by which a row of a tensor is longer than whole lines, if it has rows.
  Expr UnevenPitch(const Buffer& tensor) {
    const size_t rank = tensor.shape.size();
    if (rank < 2) return {};
    const Expr pitch = OverDims(tensor.strides.empty() ? tensor.shape.back() : tensor.strides[rank - 2]);
    if (!pitch) return {};
    const Expr rest = Make(ExprOp::kFloorMod, Make(ExprOp::kMul, pitch, Int(DTypeBytes(tensor.dtype))), Int(kLineBytes));
    return program_.exprs.IsInt(rest, 0) ? Expr{} : rest;
  }
  void SetCluster(const Launch& launch) {
    varies_.clear();
    for (size_t d = 0; d < launch.block_vars.size(); ++d) varies_[launch.block_vars[d]] = uint32_t{1} << d;
    if (target_.family != Family::kHopper || launch.cooperative) return;
    for (const Expr e : launch.cluster) {
      cost_.cluster.push_back(1);
      program_.exprs.AsInt(e, &cost_.cluster.back());
    }
  }
  // The dims of the grid that `e` depends on, one bit each.
  uint32_t GridDimsOf(Expr e) const {
    uint32_t dims = 0;
    ForEachNode(program_.exprs, e, [&](Expr, const ExprNode& node) {
      const auto var = node.op == ExprOp::kVar ? varies_.find(static_cast<VarId>(node.i)) : varies_.end();
      if (var != varies_.end()) dims |= var->second;
    });
    return dims;
  }
  // Blocks of a cluster that copy the same and so can share it.
  double SharersOf(const Copy& copy) const {
    uint32_t dims = 0;
    for (const Expr e : copy.src.start) dims |= GridDimsOf(e);
    double sharers = 1;
    for (size_t d = 0; d < cost_.cluster.size(); ++d)
      sharers *= (dims >> d & 1) != 0 ? 1.0 : static_cast<double>(cost_.cluster[d]);
    return sharers;
  }
  void AddGemm(const Gemm& gemm, const Times& times);
  double WgmmaCycles(const Gemm& gemm, int64_t m, int64_t n, int64_t k) const;
  void AddLoop(const For& loop, Times times);
  void Walk(const Block& block, const Times& times);
  void Visit(const Stmt& stmt, const Times& times);

  Program program_;
  const Target& target_;
  const bool any_arguments_;
  CostModel::LaunchCost cost_;
  std::map<VarId, Expr> known_;
  absl::flat_hash_map<uint32_t, Expr> over_dims_;  // what OverDims has found with these
  std::map<VarId, uint32_t> varies_;               // dims of the grid that a variable depends on, one bit each
  struct ById {
    bool operator()(const Times& a, const Times& b) const {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](Expr x, Expr y) { return x.id < y.id; });
    }
  };
  std::map<Times, size_t, ById> places_;    // index into cost_.work
  int64_t threads_ = 0, accumulators_ = 0;  // accumulators: 32-bit words of all fragments
};

double CostModelBuilder::WgmmaCycles(const Gemm& gemm, int64_t m, int64_t n, int64_t k) const {
  // The lowering turns a product with few rows around: Cᵀ = Bᵀ · Aᵀ.
  const bool is_turned = m % 64 != 0;
  const int64_t rows = is_turned ? n : m, columns = is_turned ? m : n;
  const Buffer& left = program_.buffers[is_turned ? gemm.b.buffer : gemm.a.buffer];
  const bool along_columns = is_turned ? gemm.transpose_a : !gemm.transpose_b;  // the right operand's storage
  const double left_cycles = left.scope == Scope::kFragment ? 0 : 16;
  const auto width = static_cast<double>(columns);
  const double steps = std::ceil(static_cast<double>(rows) / 64) * static_cast<double>(k * DTypeBytes(left.dtype)) / 32;
  return steps * std::max(width / 2, left_cycles + width / 4) * (along_columns && columns % 64 != 0 ? kUnevenPanels : 1);
}

void CostModelBuilder::AddGemm(const Gemm& gemm, const Times& times) {
  const Extents c = ExtentsOf(gemm.c.extent), a = ExtentsOf(gemm.a.extent);
  const int64_t m = c.back(1), n = c.back(0), k = a.back(gemm.transpose_a ? 1 : 0);
  const DType type = program_.buffers[gemm.a.buffer].dtype;
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  double cycles = products * DTypeBytes(type) / 2 / kMmaSyncRate;
  if (type == DType::kFloat64) cycles = products / kSimtLanes;
  if (type != DType::kFloat64 && target_.family == Family::kHopper && (m % 64 == 0 || n % 64 == 0))
    cycles = WgmmaCycles(gemm, m, n, k);
  At(times, c.dynamic).tensor_cycles += cycles;
}

void CostModelBuilder::AddLoop(const For& loop, Times times) {
  const Expr begin = OverDims(loop.begin), end = OverDims(loop.end), step = OverDims(loop.step);
  if (begin && end && step) {
    const Expr span = Make(ExprOp::kSub, Make(ExprOp::kAdd, Make(ExprOp::kSub, end, begin), step), Int(1));
    const Expr trips = Make(ExprOp::kFloorDiv, span, step);
    int64_t shares = 1;
    if (loop.split && times.empty() && cost_.shares == 1 && target_.family == Family::kHopper)
      program_.exprs.AsInt(loop.split, &shares);
    if (shares == 0) cost_.given_bytes = 1, shares = 1;  // how many bytes is known later
    cost_.shares *= static_cast<double>(shares);
    times.push_back(Make(ExprOp::kFloorDiv, Make(ExprOp::kAdd, trips, Int(shares - 1)), Int(shares)));
  }
  SetMiddle(loop.var, loop.begin, loop.end);
  for (const Expr e : {loop.begin, loop.end, loop.step}) varies_[loop.var] |= GridDimsOf(e);
  Walk(loop.body, times);
}

void CostModelBuilder::Walk(const Block& block, const Times& times) {
  for (const Stmt& stmt : block) Visit(stmt, times);
}

void CostModelBuilder::Visit(const Stmt& stmt, const Times& times) {
  std::visit(Overloaded{
                 [&](const Alloc& alloc) {
                   const Buffer& buffer = program_.buffers[alloc.buffer];
                   if (buffer.scope == Scope::kFragment)
                     accumulators_ += ExtentsOf(buffer.shape).product() * DTypeBytes(buffer.dtype) / 4;
                 },
                 [&](const Copy& copy) { AddCopy(copy, times); },
                 [&](const Gemm& gemm) { AddGemm(gemm, times); },
                 [&](const Fill& fill) { AddElements(fill.dst, times); },
                 [&](const Reduce& reduce) { AddElements(reduce.src, times); },
                 [&](const Scan& scan) { AddElements(scan.src, times); },
                 [&](const AtomicTile& atomic) { AddElements(atomic.src, times); },
                 [&](const Parallel& loop) {
                   const Extents extents = ExtentsOf(loop.extents);
                   At(times, extents.dynamic).elements +=
                       static_cast<double>(extents.product()) * static_cast<double>(loop.body.size());
                 },
                 [&](const For& loop) { AddLoop(loop, times); },
                 [&](const Let& let) {
                   if (const Expr value = OverDims(let.value)) SetKnown(let.var, value);
                   varies_[let.var] = GridDimsOf(let.value);
                 },
                 [&](const ThreadRegion& region) {
                   At(times).elements += static_cast<double>(threads_ * static_cast<int64_t>(region.body.size()));
                   Walk(region.body, times);
                 },
                 [&](const auto&) {
                   for (const Block* child : ChildBlocks(stmt)) Walk(*child, times);
                 },
             },
             stmt.op);
}

CostModel::CostModel(const Program& program, const Target& target, bool any_arguments)
    : sms_(target.sm_count > 0 ? target.sm_count : kTypicalSms) {
  CostModelBuilder builder(program, target, any_arguments);
  for (const Launch& launch : program.launches) launches_.push_back(builder.Add(launch));
  for (const Param& param : program.params) {
    if (param.kind != Param::Kind::kTensor) continue;
    const Buffer& buffer = program.buffers[param.index];
    tensors_.push_back({builder.Shape(buffer), static_cast<double>(DTypeBytes(buffer.dtype))});
  }
}

// Of a launch whose blocks share the iterations of the last tiles. `block`: what a whole tile takes.
double CostModel::SharedCycles(const LaunchCost& launch, double blocks, double block) const {
  double size = 1;
  for (const int64_t across : launch.cluster) size *= static_cast<double>(across);
  const double tiles = blocks / size, workers = std::max(1.0, std::min(std::floor(sms_ / size), tiles * kir::kMostShares));
  const double waves = std::floor(tiles / workers), left = tiles - waves * workers;
  if (left == 0) return waves * block;
  const auto sharers = static_cast<double>(kir::Sharers(static_cast<int64_t>(left), static_cast<int64_t>(workers)));
  const double helpers = std::max(0.0, std::ceil(sharers / left) - 2);
  return waves * block + (block - launch.tile_cycles) * left / sharers + 2 * launch.tile_cycles +
         launch.given_bytes * (1 / kGivenBytesPerCycle + helpers / kShareBytesPerCycle);
}

double CostModel::Cycles(absl::Span<const int64_t> dims) const {
  const DimValues values{dims, {}};
  double on_chip = 0, most_blocks = 1;
  for (const LaunchCost& launch : launches_) {
    const double blocks = Blocks(launch.grid, launch.cluster, values) * launch.shares;
    double tensor = 0, bytes = 0, elements = 0;
    for (const Work& work : launch.work) {
      const double times = Product(work.times, values);
      tensor += times * work.tensor_cycles, bytes += times * work.bytes, elements += times * work.elements;
    }
    const double block = std::max({tensor, bytes / kL2BytesPerCycle, elements / kSimtLanes}) + launch.tile_cycles;
    on_chip +=
        launch.given_bytes > 0 ? SharedCycles(launch, blocks, block) : std::ceil(blocks / sms_) * block + launch.last_cycles;
    most_blocks = std::max(most_blocks, launch.given_bytes > 0 ? blocks * kir::kMostShares : blocks);
  }
  double memory = 0;
  for (const TensorBytes& tensor : tensors_) memory += Product(tensor.shape, values) * tensor.element_bytes;
  memory *= std::max(1.0, kSmsForMemory * sms_ / std::min(most_blocks, sms_)) / kMemoryBytesPerCycle;
  return std::max(on_chip, memory) + kNotHidden * std::min(on_chip, memory) +
         kLaunchCycles * static_cast<double>(launches_.size());
}

}  // namespace tilert
