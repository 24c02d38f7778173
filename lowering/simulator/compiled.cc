#include "lowering/simulator/compiled.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/status_util.h"

namespace tilert::sim {
namespace {

class Compiler {
 public:
  Compiler(const kir::Kernel& kernel, const std::vector<int64_t>& dims, const std::vector<Value>& scalars)
      : kernel_(kernel), exprs_(kernel, dims, scalars), warps_(kernel.warps) {
    result_.kernel = &kernel;
  }

  absl::StatusOr<Compiled> Run() {
    for (const kir::Buffer& buffer : kernel_.buffers) TILERT_RETURN_IF_ERROR(AddBuffer(buffer));
    for (Expr extent : kernel_.grid) {
      TILERT_ASSIGN_OR_RETURN(int64_t blocks, Evaluate(extent));
      result_.grid.push_back(blocks);
    }
    if (kernel_.shared_trips) {
      TILERT_ASSIGN_OR_RETURN(result_.trips, Evaluate(kernel_.shared_trips));
    }
    result_.persistent = kir::IsPersistent(kernel_);
    result_.ring_slots = {0};
    for (const kir::Ring& ring : kernel_.rings) result_.ring_slots.push_back(result_.ring_slots.back() + ring.slots);
    int declared = result_.ring_slots.back();
    for (const kir::Barrier& barrier : kernel_.barriers) declared += barrier.size;
    if (!kernel_.barriers.empty()) result_.ring_slots.push_back(declared);
    TILERT_RETURN_IF_ERROR(CheckRings(result_));
    AddOverlaps();
    exprs_.BindKernelVars();
    TILERT_ASSIGN_OR_RETURN(result_.body, Body(kernel_.body, "body"));
    result_.constants = exprs_.constants();
    result_.frame_rows = exprs_.frame_rows();
    return std::move(result_);
  }

 private:
  // The value of an expression of dims, scalars and immediates.
  absl::StatusOr<int64_t> Evaluate(Expr e);
  absl::Status AddBuffer(const kir::Buffer& buffer);
  absl::Status AddShared(const kir::Buffer& buffer, BufferInfo& info);
  void AddOverlaps();
  std::shared_ptr<const LayoutTables> Tables(const FragmentLayout& layout);

  absl::StatusOr<CBlock> Body(const kir::Block& block, const std::string& path);
  absl::StatusOr<CStmt> Statement(const kir::Stmt& stmt, const std::string& path);
  std::vector<Code> Codes(const std::vector<Expr>& exprs);
  CAccess Access(const kir::TileAccess& access) { return {access.buffer, Codes(access.start), access.follows, access.inside}; }
  // `op` as it stands among points, or wrapped as the only point of a scalar layout.
  template <typename Op>
  decltype(CStmt::op) Point(Op op, int number) {
    if (in_points_) return op;
    CBlock body;
    body.push_back({number, std::move(op)});
    return CPoints{Tables(FragmentLayout{{}, warps_}), {}, std::move(body)};
  }

  absl::StatusOr<decltype(CStmt::op)> Loop(const kir::For& s, const std::string& path);
  absl::StatusOr<decltype(CStmt::op)> Points(const kir::Elementwise& s, const std::string& path);
  absl::StatusOr<decltype(CStmt::op)> Operation(const kir::Stmt& stmt, const std::string& path, int number);
  // Those of the Hopper family.
  absl::StatusOr<decltype(CStmt::op)> AsyncOperation(const kir::Stmt& stmt, const std::string& path);
  absl::StatusOr<decltype(CStmt::op)> Roles(const kir::Roles& roles, const std::string& path);
  absl::StatusOr<decltype(CStmt::op)> SharedLoad(const kir::TmaLoad& load);
  absl::StatusOr<CTmaTile> TmaTile(kir::MapId id, BufferId tile, const std::vector<Expr>& coords, int shares = 1);
  std::vector<CRetired> Retires(const std::vector<kir::Retired>& retires);
  absl::Status CheckPlace(const kir::Stmt& stmt);

  const kir::Kernel& kernel_;
  ExprCompiler exprs_;
  Compiled result_;
  std::vector<std::pair<FragmentLayout, std::shared_ptr<const LayoutTables>>> tables_;
  bool in_points_ = false, points_wait_ = false;
  int warps_;                // of the role (instance) that the statement is in
  bool one_thread_ = false;
  int store_shares_ = 1;     // warpgroups of the role that store a part of a tile each
};

absl::StatusOr<int64_t> Compiler::Evaluate(Expr e) {
  const Code code = exprs_.Compile(e);
  if (code.per_lane()) return Internal("an extent or stride of kernel ", kernel_.name, " loads from memory");
  std::vector<Value> frame(exprs_.frame_rows());
  auto at = [&](Slot slot) { return slot >= 0 ? &frame[slot] : const_cast<Value*>(exprs_.constants()[~slot].data()); };
  for (const Instr& instr : code.instrs) {
    if (instr.kind == Instr::Kind::kOp) EvalOp(instr, at(instr.a), at(instr.b), at(instr.c), at(instr.dst), 1);
  }
  return at(code.result)->i;
}

std::shared_ptr<const LayoutTables> Compiler::Tables(const FragmentLayout& layout) {
  for (const auto& [known, tables] : tables_) {
    if (known == layout) return tables;
  }
  tables_.emplace_back(layout, std::make_shared<LayoutTables>(layout));
  return tables_.back().second;
}

absl::Status Compiler::AddShared(const kir::Buffer& buffer, BufferInfo& info) {
  const SharedLayout& layout = buffer.shared;
  info.version_bytes = layout.version_bytes();
  if (buffer.offset < 0 || buffer.offset % 128 != 0 ||
      buffer.offset + buffer.versions * info.version_bytes > kernel_.shared_bytes) {
    return Internal("shared buffer ", buffer.name, ": ", buffer.versions, " versions of ", info.version_bytes,
                    " bytes at offset ", buffer.offset, " do not fit the block's ", kernel_.shared_bytes,
                    " bytes of shared memory, or the offset is no multiple of 128");
  }
  info.shape = {buffer.versions};
  info.shape.insert(info.shape.end(), layout.extents.begin(), layout.extents.end());
  int64_t elements = 1;
  for (int64_t extent : layout.extents) elements *= extent;
  info.strides.assign(layout.extents.size(), 1);
  for (size_t d = layout.extents.size(); d-- > 1;) info.strides[d - 1] = info.strides[d] * layout.extents[d];
  std::vector<int64_t> coords(layout.extents.size());
  for (int64_t e = 0; e < elements; ++e) {
    for (size_t d = 0; d < coords.size(); ++d) coords[d] = e / info.strides[d] % layout.extents[d];
    const int64_t offset = layout.ByteOffset(coords);
    if (offset < 0 || offset + info.bytes > layout.bytes()) {
      return Internal("layout of shared buffer ", buffer.name, " puts an element at byte ", offset, " of ", layout.bytes());
    }
    info.offsets.push_back(static_cast<int32_t>(offset));
  }
  result_.shared_cell_bytes = std::gcd(result_.shared_cell_bytes, info.bytes);
  return absl::OkStatus();
}

absl::Status Compiler::AddBuffer(const kir::Buffer& buffer) {
  BufferInfo info;
  info.source = &buffer;
  info.bytes = DTypeBytes(buffer.dtype);
  if (buffer.space == kir::Space::kGlobal) {
    for (Expr extent : buffer.shape) {
      TILERT_ASSIGN_OR_RETURN(int64_t value, Evaluate(extent));
      info.shape.push_back(value);
    }
    info.strides.assign(info.shape.size(), 1);
    for (size_t d = info.shape.size(); d-- > 1;) info.strides[d - 1] = info.strides[d] * info.shape[d];
    for (size_t d = 0; d < buffer.strides.size(); ++d) {
      TILERT_ASSIGN_OR_RETURN(info.strides[d], Evaluate(buffer.strides[d]));
    }
  } else if (buffer.space == kir::Space::kShared) {
    TILERT_RETURN_IF_ERROR(AddShared(buffer, info));
  } else {
    info.layout = Tables(buffer.layout);
    for (int d = 0; d < info.layout->rank(); ++d) info.shape.push_back(info.layout->extent(d));
  }
  result_.buffers.push_back(std::move(info));
  return absl::OkStatus();
}

void Compiler::AddOverlaps() {
  result_.overlaps.resize(result_.buffers.size());
  const auto end = [](const BufferInfo& info) { return info.source->offset + info.source->versions * info.version_bytes; };
  for (size_t a = 0; a < result_.buffers.size(); ++a) {
    for (size_t b = 0; b < result_.buffers.size(); ++b) {
      const BufferInfo &one = result_.buffers[a], &other = result_.buffers[b];
      if (one.source->space != kir::Space::kShared || other.source->space != kir::Space::kShared) continue;
      if (one.source->offset < end(other) && other.source->offset < end(one))
        result_.overlaps[a].push_back(static_cast<BufferId>(b));
    }
  }
}

std::vector<Code> Compiler::Codes(const std::vector<Expr>& exprs) {
  std::vector<Code> codes;
  for (Expr e : exprs) codes.push_back(exprs_.Compile(e));
  return codes;
}

absl::StatusOr<CBlock> Compiler::Body(const kir::Block& block, const std::string& path) {
  CBlock result;
  for (size_t i = 0; i < block.size(); ++i) {
    TILERT_ASSIGN_OR_RETURN(CStmt stmt, Statement(block[i], Cat(path, "[", i, "]")));
    result.push_back(std::move(stmt));
  }
  return result;
}

std::string_view StatementName(const kir::StmtOp& op) {
  static constexpr std::string_view kNames[] = {"Declare",     "For",         "While", "If",      "Break", "Continue",
                                                "Let",         "Elementwise", "Store", "Atomic",  "Copy",  "CpAsyncCommit",
                                                "CpAsyncWait", "LaneReduce",  "Mma",   "BarSync", "Print", "Assert",
                                                "Roles",       "ForTiles",    "Wgmma", "WgmmaFence", "WgmmaCommit", "WgmmaWait",
                                                "TmaLoad",     "TmaStore",    "StoreCommit", "StoreWait", "ProxyFence", "Acquire",
                                                "ExpectTx",    "Release",     "Advance", "OrderWait", "OrderPass",
                                                "ClusterSync", "PartStore", "PartAdd", "SumsGive", "SumsTake", "Shuffle", "MbarArrive", "MbarWait", "MbarExpect", "MbarComplete"};
  static_assert(std::size(kNames) == std::variant_size_v<kir::StmtOp>);
  return kNames[op.index()];
}

// What an asynchronous statement works on, for paths.
std::string Operand(const kir::Kernel& kernel, const kir::Stmt& stmt) {
  const auto tile = [&](BufferId to, BufferId from) { return Cat(kernel.buffers[from].name, " to ", kernel.buffers[to].name); };
  if (const auto* load = std::get_if<kir::TmaLoad>(&stmt.op)) return tile(load->dst, kernel.tensor_maps[load->map].buffer);
  if (const auto* store = std::get_if<kir::TmaStore>(&stmt.op)) return tile(kernel.tensor_maps[store->map].buffer, store->src);
  if (const auto* gemm = std::get_if<kir::Wgmma>(&stmt.op)) return kernel.buffers[gemm->acc].name;
  return std::visit(
      [&](const auto& op) -> std::string {
        if constexpr (requires { op.ring; }) return kernel.rings[op.ring].name;
        return "";
      },
      stmt.op);
}

absl::StatusOr<CStmt> Compiler::Statement(const kir::Stmt& stmt, const std::string& path) {
  CStmt result;
  result.number = static_cast<int>(result_.paths.size());
  std::string named = Cat(path, ".", StatementName(stmt.op));
  if (const auto* loop = std::get_if<kir::For>(&stmt.op)) named += Cat("(", kernel_.vars[loop->var].name, ")");
  if (const auto* copy = std::get_if<kir::Copy>(&stmt.op)) {
    named += Cat("(", kernel_.buffers[copy->src.buffer].name, " to ", kernel_.buffers[copy->dst.buffer].name, ")");
  }
  if (const std::string what = Operand(kernel_, stmt); !what.empty()) named += Cat("(", what, ")");
  result_.locs.push_back(stmt.loc);
  result_.paths.push_back(stmt.loc.line != 0 ? Cat(named, " (line ", stmt.loc.line, ")") : named);
  const absl::Status place = CheckPlace(stmt);
  absl::StatusOr<decltype(CStmt::op)> op = place.ok() ? Operation(stmt, named, result.number) : place;
  if (!op.ok()) {
    const bool located = op.status().message().find(ToAbsl("body[")) != absl::string_view::npos;
    return located ? op.status() : Internal("kernel ", kernel_.name, ", ", named, ": ", ToStd(op.status().message()));
  }
  result.op = *std::move(op);
  return result;
}

absl::StatusOr<decltype(CStmt::op)> Compiler::Loop(const kir::For& s, const std::string& path) {
  CFor loop{s.var, exprs_.Compile(s.begin), exprs_.Compile(s.end), {}, {}};
  if (s.step) loop.step = exprs_.Compile(s.step);
  if (!s.step) loop.step.result = exprs_.Constant(Value{.i = 1});
  Ranges& ranges = exprs_.ranges();
  const Range begin = ranges.Of(s.begin), end = ranges.Of(s.end), step = s.step ? ranges.Of(s.step) : ConstantRange(1);
  if (step.lo > 0) ranges.Bind(s.var, LoopRange(begin, end, step), s.end);
  TILERT_ASSIGN_OR_RETURN(loop.body, Body(s.body, Cat(path, ".body")));
  return loop;
}

absl::StatusOr<decltype(CStmt::op)> Compiler::Points(const kir::Elementwise& s, const std::string& path) {
  CPoints points{Tables(s.layout), s.vars, {}};
  if (in_points_) return Internal("Elementwise inside Elementwise");
  if (s.vars.size() != s.layout.dims.size()) return Internal("one variable a dimension of the layout is needed");
  in_points_ = true;
  points_wait_ = false;
  for (size_t d = 0; d < s.vars.size(); ++d)
    exprs_.ranges().Bind(s.vars[d], {0, std::max<int64_t>(s.layout.dims[d].extent - 1, 0), 1});
  absl::StatusOr<CBlock> body = Body(s.body, Cat(path, ".body"));
  in_points_ = false;
  if (!body.ok()) return body.status();
  points.body = *std::move(body);
  points.waits = points_wait_;
  return points;
}

absl::StatusOr<decltype(CStmt::op)> Compiler::Operation(const kir::Stmt& stmt, const std::string& path, int number) {
  using Result = absl::StatusOr<decltype(CStmt::op)>;
  const Overloaded visitor{
      [&](const kir::Declare& s) -> Result {
        return CDeclare{s.buffer, s.zero};
      },
      [&](const kir::For& s) -> Result { return Loop(s, path); },
      [&](const kir::While& s) -> Result {
        CWhile loop{exprs_.Compile(s.cond), {}};
        TILERT_ASSIGN_OR_RETURN(loop.body, Body(s.body, Cat(path, ".body")));
        return loop;
      },
      [&](const kir::If& s) -> Result {
        CIf branch{exprs_.Compile(s.cond), {}, {}};
        {
          const Ranges::Assume known(exprs_.ranges(), s.cond);
          TILERT_ASSIGN_OR_RETURN(branch.then_body, Body(s.then_body, Cat(path, ".then")));
        }
        TILERT_ASSIGN_OR_RETURN(branch.else_body, Body(s.else_body, Cat(path, ".else")));
        return branch;
      },
      [&](const kir::Break&) -> Result { return CBreak{}; },
      [&](const kir::Continue&) -> Result { return CContinue{}; },
      [&](const kir::Let& s) -> Result {
        CLet let{s.var, exprs_.CompileAs(s.value, kernel_.vars[s.var].dtype)};
        if (!IsFloat(kernel_.vars[s.var].dtype)) exprs_.ranges().Bind(s.var, exprs_.ranges().Of(s.value));
        return let;
      },
      [&](const kir::Elementwise& s) -> Result { return Points(s, path); },
      [&](const kir::Store& s) -> Result {
        const DType type = kernel_.buffers[s.buffer].dtype;
        return Point(CStore{s.buffer, Codes(s.indices), exprs_.Inside(s.buffer, s.indices), exprs_.CompileAs(s.value, type)},
                     number);
      },
      [&](const kir::Atomic& s) -> Result {
        const DType type = kernel_.buffers[s.buffer].dtype;
        if ((IsFloat(type) && s.op == AtomicOp::kAdd) || s.prev != kNoId) result_.order_matters = true;
        return Point(CAtomic{s.op, s.buffer, Codes(s.indices), exprs_.Inside(s.buffer, s.indices), exprs_.CompileAs(s.value, type), s.prev},
                     number);
      },
      [&](const kir::Copy& s) -> Result {
        CCopy copy{s.method, Access(s.dst), Access(s.src), Tables(s.layout), s.width, {}, static_cast<bool>(s.fill)};
        if (s.fill) copy.fill = exprs_.CompileAs(s.fill, kernel_.buffers[s.src.buffer].dtype);
        // ldmatrix and stmatrix cannot check bounds: what is not inside is a fault, proven or not.
        const bool is_matrix = s.method == kir::CopyMethod::kLdmatrix || s.method == kir::CopyMethod::kLdmatrixTrans;
        if (is_matrix) copy.src.inside.assign(copy.src.inside.size(), true);
        if (s.method == kir::CopyMethod::kStmatrix) copy.dst.inside.assign(copy.dst.inside.size(), true);
        TILERT_RETURN_IF_ERROR(CheckCopy(result_, s, *copy.layout));
        return copy;
      },
      [&](const kir::CpAsyncCommit&) -> Result { return CCommit{}; },
      [&](const kir::CpAsyncWait& s) -> Result {
        return CWait{s.pending, Retires(s.retires)};
      },
      [&](const kir::LaneReduce& s) -> Result { return CompileLaneReduce(result_, s); },
      [&](const kir::Mma& s) -> Result { return CompileMma(result_, s); },
      [&](const kir::BarSync& s) -> Result {
        return CBarSync{s.by_warpgroup, s.number, s.warps};
      },
      [&](const kir::Shuffle& s) -> Result {
        if (!in_points_) return Internal("a shuffle outside Elementwise");
        return CShuffle{s.var, exprs_.CompileAs(s.value, kernel_.vars[s.var].dtype), exprs_.Compile(s.lane)};
      },
      [&](const kir::Print& s) -> Result { return Point(CPrint{Codes(s.args)}, number); },
      [&](const kir::Assert& s) -> Result {
        return Point(CAssert{exprs_.Compile(s.cond), s.message}, number);
      },
      [&](const auto&) -> Result { return AsyncOperation(stmt, path); },
  };
  return std::visit(visitor, stmt.op);
}

std::vector<CRetired> Compiler::Retires(const std::vector<kir::Retired>& retires) {
  std::vector<CRetired> result;
  for (const kir::Retired& retired : retires) {
    result.push_back({retired.buffer, {}, static_cast<bool>(retired.version)});
    if (retired.version) result.back().version = exprs_.Compile(retired.version);
  }
  return result;
}

// `shares`: so many warpgroups move a part of the tile each, by boxes with a part of its rows.
absl::StatusOr<CTmaTile> Compiler::TmaTile(kir::MapId id, BufferId tile, const std::vector<Expr>& coords, int shares) {
  if (id >= kernel_.tensor_maps.size()) return Internal("no such tensor map");
  kir::TensorMap map = kernel_.tensor_maps[id];
  size_t dim = 0;
  while (dim + 1 < map.box.size() && map.box[dim] == 1) ++dim;
  if (shares > 1 && dim + 1 < map.box.size()) map.box[dim] *= shares;
  TILERT_RETURN_IF_ERROR(CheckTmaTile(result_, map, tile, coords.size()));
  return CTmaTile{map.buffer, tile, map.box, Codes(coords), shares};
}

// Blocks of a cluster load panels, or else rows, of the tile for each other.
absl::StatusOr<decltype(CStmt::op)> Compiler::SharedLoad(const kir::TmaLoad& load) {
  const int parts = kir::ClusterExtent(kernel_, load.multicast);
  if (load.map >= kernel_.tensor_maps.size()) return Internal("no such tensor map");
  const std::vector<int64_t>& box = kernel_.tensor_maps[load.map].box;
  const SharedLayout& layout = kernel_.buffers[load.dst].shared;
  const int64_t rows = std::accumulate(box.begin(), box.end() - 1, int64_t{1}, std::multiplies<>());
  const bool by_panel = parts > 1 && rows == layout.rows();
  TILERT_ASSIGN_OR_RETURN(CTmaTile tile, TmaTile(load.map, load.dst, load.coords, by_panel ? 1 : parts));
  tile.shares = parts;
  tile.by_panel = by_panel;
  const int64_t panels = layout.extents.back() * layout.element_bytes / layout.panel;
  const int64_t pattern = layout.swizzled ? 8 * layout.panel : 128;
  if (parts > 1 && (by_panel ? panels % parts != 0 : rows * layout.pitch % pattern != 0))
    return Internal(kernel_.buffers[load.dst].name, " does not fall into ", parts, " parts for the blocks of a cluster");
  return CTmaLoad{std::move(tile), load.ring, load.multicast};
}

// What a statement asks of the threads that run it.
absl::Status Compiler::CheckPlace(const kir::Stmt& stmt) {
  const FragmentLayout* layout = nullptr;
  if (const auto* points = std::get_if<kir::Elementwise>(&stmt.op)) layout = &points->layout;
  if (const auto* copy = std::get_if<kir::Copy>(&stmt.op)) layout = &copy->layout;
  if (layout != nullptr && layout->warps != warps_)
    return Internal("is laid out over ", layout->warps, " warps where ", warps_, " run it");
  const auto* gemm = std::get_if<kir::Wgmma>(&stmt.op);
  if (gemm != nullptr && 4 * gemm->grid.m * gemm->grid.n != warps_)
    return Internal("is for ", 4 * gemm->grid.m * gemm->grid.n, " warps where ", warps_, " run it");
  const bool needs_warps = layout != nullptr || gemm != nullptr || std::holds_alternative<kir::BarSync>(stmt.op) ||
                           std::holds_alternative<kir::Mma>(stmt.op) || std::holds_alternative<kir::LaneReduce>(stmt.op);
  if (one_thread_ && needs_warps) return Internal("needs whole warps and stands in a role of one thread");
  return absl::OkStatus();
}

absl::StatusOr<decltype(CStmt::op)> Compiler::Roles(const kir::Roles& roles, const std::string& path) {
  TILERT_RETURN_IF_ERROR(CheckRoles(kernel_, roles));
  CRoles result;
  int first_warp = 0;
  for (const kir::Role& role : roles.roles) {
    warps_ = role.warps;
    if (role.instance != kNoId) exprs_.ranges().Bind(role.instance, {0, std::max(role.instances - 1, 0), 1});
    one_thread_ = role.one_thread;
    store_shares_ = role.stores_by_warpgroup ? std::max(1, role.warps / 4) : 1;
    absl::StatusOr<CBlock> body = Body(role.body, Cat(path, ".", role.name));
    warps_ = kernel_.warps;
    one_thread_ = false;
    store_shares_ = 1;
    if (!body.ok()) return body.status();
    result.roles.push_back({&role, first_warp, *std::move(body)});
    first_warp += role.warps * role.instances;
  }
  return result;
}

absl::StatusOr<decltype(CStmt::op)> Compiler::AsyncOperation(const kir::Stmt& stmt, const std::string& path) {
  using Result = absl::StatusOr<decltype(CStmt::op)>;
  const bool waits = std::holds_alternative<kir::MbarWait>(stmt.op);
  const bool by_thread = waits || std::holds_alternative<kir::MbarArrive>(stmt.op) || std::holds_alternative<kir::MbarExpect>(stmt.op) ||
                         std::holds_alternative<kir::ProxyFence>(stmt.op);
  points_wait_ |= in_points_ && waits;
  if (in_points_ && !by_thread) return Internal("this statement may not stand inside Elementwise");
  const Overloaded visitor{
      [&](const kir::Roles& s) -> Result { return Roles(s, path); },
      [&](const kir::ForTiles& s) -> Result {
        CForTiles tiles;
        TILERT_ASSIGN_OR_RETURN(tiles.body, Body(s.body, Cat(path, ".body")));
        return tiles;
      },
      [&](const kir::Wgmma& s) -> Result {
        TILERT_ASSIGN_OR_RETURN(CWgmma gemm, CompileWgmma(result_, s));
        gemm.a = Access(s.a), gemm.b = Access(s.b);
        gemm.has_zero = static_cast<bool>(s.zero);
        if (s.zero) gemm.zero = exprs_.Compile(s.zero);
        gemm.number = result_.wgmmas++;
        return gemm;
      },
      [&](const kir::WgmmaFence& s) -> Result { return CWgmmaFence{s.touched}; },
      [&](const kir::WgmmaCommit&) -> Result { return CWgmmaCommit{}; },
      [&](const kir::WgmmaWait& s) -> Result {
        return CWgmmaWait{s.pending, Retires(s.retires)};
      },
      [&](const kir::TmaLoad& s) -> Result {
        if (s.barrier != kNoId) {
          TILERT_ASSIGN_OR_RETURN(CTmaTile tile, TmaTile(s.map, s.dst, s.coords));
          CTmaLoad load{std::move(tile), 0, 0, s.barrier, exprs_.Compile(s.index), {}, static_cast<bool>(s.version)};
          if (s.version) load.version = exprs_.Compile(s.version);
          return load;
        }
        const std::vector<BufferId>& filled = kernel_.rings[s.ring].buffers;
        if (std::find(filled.begin(), filled.end(), s.dst) == filled.end())
          return Internal(kernel_.buffers[s.dst].name, " is not in ring ", kernel_.rings[s.ring].name);
        return SharedLoad(s);
      },
      [&](const kir::TmaStore& s) -> Result {
        TILERT_ASSIGN_OR_RETURN(CTmaTile tile, TmaTile(s.map, s.src, s.coords, store_shares_));
        const bool add = s.op == kir::StoreOp::kAdd;
        result_.order_matters = result_.order_matters || (add && IsFloat(kernel_.buffers[s.src].dtype));
        CTmaStore store{std::move(tile), {}, static_cast<bool>(s.version), add};
        if (s.version) store.version = exprs_.Compile(s.version);
        return store;
      },
      [&](const kir::StoreCommit&) -> Result { return CStoreCommit{}; },
      [&](const kir::StoreWait& s) -> Result {
        return CStoreWait{s.pending, s.read, Retires(s.retires)};
      },
      [&](const kir::ProxyFence&) -> Result { return CProxyFence{}; },
      [&](const kir::Acquire& s) -> Result { return CAcquire{s.ring, s.fill}; },
      [&](const kir::ExpectTx& s) -> Result { return CExpectTx{s.ring, s.bytes}; },
      [&](const kir::Release& s) -> Result { return CRelease{s.ring, s.behind}; },
      [&](const kir::Advance& s) -> Result { return CAdvance{s.ring, exprs_.Compile(s.count)}; },
      [&](const kir::OrderWait&) -> Result { return COrderWait{}; },
      [&](const kir::OrderPass&) -> Result { return COrderPass{}; },
      [&](const kir::ClusterSync&) -> Result { return CClusterSync{}; },
      [&](const kir::PartStore& s) -> Result { return CPartStore{s.part, s.src}; },
      [&](const kir::PartAdd& s) -> Result { return CPartAdd{s.acc, s.part, exprs_.Compile(s.peer)}; },
      [&](const kir::SumsGive& s) -> Result { return CSumsGive{s.sums}; },
      [&](const kir::SumsTake& s) -> Result { return CSumsTake{s.sums}; },
      [&](const kir::MbarArrive& s) -> Result { return CMbarArrive{s.barrier, exprs_.Compile(s.index)}; },
      [&](const kir::MbarWait& s) -> Result { return CMbarWait{s.barrier, exprs_.Compile(s.index), exprs_.Compile(s.parity)}; },
      [&](const kir::MbarExpect& s) -> Result { return CMbarExpect{s.barrier, exprs_.Compile(s.index), exprs_.Compile(s.bytes)}; },
      [&](const kir::MbarComplete& s) -> Result { return CMbarComplete{s.barrier, exprs_.Compile(s.index), s.bytes}; },
      [&](const auto&) -> Result { return Internal("not simulated"); },
  };
  return std::visit(visitor, stmt.op);
}

}  // namespace

absl::Status WithPlace(absl::Status failure, const std::string& place) {
  if (!place.empty()) failure.SetPayload(kPlacePayload, absl::Cord(ToAbsl(place)));
  return failure;
}

std::string PlaceOf(const Compiled& kernel, int stmt) {
  const SourceLoc& loc = kernel.locs[static_cast<size_t>(stmt)];
  if (loc.line == 0 || loc.file >= kernel.kernel->files.size()) return "";
  return Cat(kernel.kernel->files[loc.file], ":", loc.line, ":", loc.column);
}

absl::StatusOr<Compiled> CompileKernel(const kir::Kernel& kernel, const std::vector<int64_t>& dims,
                                       const std::vector<Value>& scalars) {
  return Compiler(kernel, dims, scalars).Run();
}

}  // namespace tilert::sim
