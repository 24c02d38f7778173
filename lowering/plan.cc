// The builder's tables, expressions, control flow and dispatch over statements.
#include <algorithm>
#include <utility>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/plan_builder.h"

namespace tilert {

PlanBuilder::PlanBuilder(TileState& state) : s_(state) {}
PlanBuilder::~PlanBuilder() = default;

void PlanBuilder::Emit(kir::StmtOp op) { block_->push_back({std::move(op), loc_}); }

absl::StatusOr<kir::Kernel> PlanBuilder::Run() {
  MapParameters();
  s_.E().AsInt(s_.L().threads, &threads_);
  ForEachStmt(s_.L().body, [&](const Stmt& stmt) { wgmma_ |= IsWgmma(stmt); });
  TILERT_ASSIGN_OR_RETURN(parts_, ProgramRoles(s_));
  rings_ = FindRings(s_);
  HintCaches();
  FormCluster();
  BindShare();
  if (!parts_.spans.empty()) {
    TILERT_RETURN_IF_ERROR(EmitProgramRoles());
  } else if (rings_.groups.empty()) {
    TILERT_RETURN_IF_ERROR(EmitBlock(s_.L().body, k_.body));
  } else {
    TILERT_RETURN_IF_ERROR(EmitRoles());
  }
  FitRaster();
  k_.schedule = s_.report;
  return std::move(k_);
}

// Registers that every thread has of its own.
FragmentLayout PlanBuilder::PrivateLayout(const std::vector<int64_t>& shape) const {
  FragmentLayout layout{{}, s_.warps};
  int64_t stride = Product(shape);
  for (int64_t extent : shape) {
    stride /= std::max<int64_t>(extent, 1);
    layout.dims.push_back({extent, {{std::max<int64_t>(extent, 1), Owner::kReg, std::max<int64_t>(stride, 1)}}});
  }
  return layout;
}

void PlanBuilder::MapParameters() {
  const Launch& launch = s_.L();
  k_.name = launch.name;
  k_.files = s_.program.files;
  k_.scalars = s_.program.scalars;
  for (const Dim& dim : s_.program.dims) k_.dims.push_back(dim.name);
  for (const Var& var : s_.program.vars) k_.vars.push_back({var.name, var.dtype});
  k_.warps = s_.warps;
  k_.index32 = s_.args.index32;
  k_.fast_math = s_.program.fast_math;
  k_.grid = Tr(launch.grid);
  k_.block_vars = launch.block_vars;
  absl::flat_hash_set<BufferId> used, written;
  for (const Stmt& stmt : launch.body) {
    for (BufferId id : BuffersRead(s_.program, stmt)) used.insert(id);
    for (BufferId id : BuffersWritten(stmt)) written.insert(id);
  }
  for (BufferId id = 0; id < s_.program.buffers.size(); ++id) {
    if (s_.scope(id) != Scope::kGlobal || (!used.contains(id) && !written.contains(id))) continue;
    MapGlobal(id);
    k_.buffers.back().written = written.contains(id);
  }
}

void PlanBuilder::MapGlobal(BufferId id) {
  const Buffer& buffer = s_.buffer(id);
  kir::Buffer global;
  global.name = buffer.name;
  global.dtype = buffer.dtype;
  global.space = kir::Space::kGlobal;
  global.program_buffer = id;
  global.shape = Tr(buffer.shape);
  global.strides = buffer.strides.empty() ? ContiguousStrides(global.shape) : Tr(buffer.strides);
  global.alignment = s_.Alignment(id);
  buffers_[id] = static_cast<BufferId>(k_.buffers.size());
  k_.buffers.push_back(std::move(global));
}

std::vector<Expr> PlanBuilder::ContiguousStrides(const std::vector<Expr>& shape) {
  std::vector<Expr> strides(shape.size());
  Expr stride = Int(1);
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride = Fold(k_.exprs, k_.exprs.Binary(ExprOp::kMul, shape[d], stride));
  }
  return strides;
}

BufferId PlanBuilder::NewRegister(std::string name, DType dtype, FragmentLayout layout) {
  kir::Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.space = kir::Space::kRegister;
  buffer.layout = std::move(layout);
  k_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(k_.buffers.size() - 1);
}

BufferId PlanBuilder::NewShared(std::string name, DType dtype, SharedLayout layout, int64_t versions) {
  kir::Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.space = kir::Space::kShared;
  buffer.shared = std::move(layout);
  buffer.versions = versions;
  k_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(k_.buffers.size() - 1);
}

VarId PlanBuilder::NewVar(std::string name) {
  k_.vars.push_back({std::move(name), DType::kIndex});
  return static_cast<VarId>(k_.vars.size() - 1);
}

Expr PlanBuilder::Slot(BufferId program_buffer) {
  const auto it = slots_.find(program_buffer);
  return it == slots_.end() ? Int(0) : it->second;
}

Expr PlanBuilder::Tr(Expr e) {
  const Expr translated = Rewrite(s_.E(), e, k_.exprs, [&](Expr, const ExprNode& node) -> Expr {
    if (node.op == ExprOp::kVar) {
      const auto it = substitutes_.find(static_cast<VarId>(node.i));
      return it == substitutes_.end() ? Expr{} : it->second;
    }
    if (node.op != ExprOp::kLoad) return {};
    const BufferId id = static_cast<BufferId>(node.i);
    const DType dtype = node.dtype;
    const ExprArgs args = node.args;
    std::vector<Expr> indices;
    const auto staged = staged_.find(id);
    if (staged != staged_.end()) {
      indices.push_back(Int(0));
    } else if (s_.scope(id) == Scope::kShared && !s_.slots.contains(id)) {
      indices.push_back(Slot(id));
    }
    for (Expr arg : args) indices.push_back(Tr(arg));
    return k_.exprs.Load(staged != staged_.end() ? staged->second : buffers_[id], dtype, indices);
  });
  return Fold(k_.exprs, translated);
}

std::vector<Expr> PlanBuilder::Tr(const std::vector<Expr>& es) {
  std::vector<Expr> translated;
  for (Expr e : es) translated.push_back(Tr(e));
  return translated;
}

// An expression that every thread evaluates alike: elements of fragments are read through shared memory.
absl::StatusOr<Expr> PlanBuilder::BlockExpr(Expr e) {
  absl::flat_hash_set<BufferId> fragments;
  ForEachNode(s_.E(), e, [&](Expr, const ExprNode& node) {
    if (node.op == ExprOp::kLoad && s_.scope(static_cast<BufferId>(node.i)) == Scope::kFragment) fragments.insert(static_cast<BufferId>(node.i));
  });
  for (BufferId id : fragments) staged_[id] = StageOut(buffers_[id]);
  const Expr translated = Tr(e);
  for (BufferId id : fragments) staged_.erase(id);
  return translated;
}

// `keep_open`: the caller takes care of tensor core work that is unfinished at the end.
absl::Status PlanBuilder::EmitBlock(const Block& block, kir::Block& out, bool keep_open) {
  kir::Block* const outer = block_;
  block_ = &out;
  auto outer_fills = std::exchange(lazy_fills_, {});
  for (size_t i = 0; i < block.size(); ++i) {
    loc_ = block[i].loc;
    Acquire(block, i);
    Prepare(block[i]);
    auto* alloc = std::get_if<Alloc>(&block[i].op);
    TILERT_RETURN_IF_ERROR(alloc ? EmitAlloc(alloc->buffer, OverwrittenFirst(block, i)) : EmitStmt(block[i]));
    Release(block, i);
  }
  FlushAsync();
  FillNow({});
  // Registers that are declared here end here.
  absl::flat_hash_set<BufferId> declared;
  for (const kir::Stmt& stmt : out) {
    if (auto* declare = std::get_if<kir::Declare>(&stmt.op)) declared.insert(declare->buffer);
  }
  const auto ends = [&](const OpenGroup& group) {
    return declared.contains(group.acc) || std::any_of(group.reads.begin(), group.reads.end(), [&](BufferId id) { return declared.contains(id); });
  };
  const auto last = std::find_if(open_.rbegin(), open_.rend(), ends);
  Retire(keep_open ? static_cast<size_t>(open_.rend() - last) : open_.size());
  lazy_fills_ = std::move(outer_fills);
  block_ = outer;
  return absl::OkStatus();
}

// True when the fragment that statement `at` allocates is wholly written by the next statement that touches it.
bool PlanBuilder::OverwrittenFirst(const Block& block, size_t at) const {
  const BufferId id = std::get<Alloc>(block[at].op).buffer;
  for (size_t i = at + 1; i < block.size(); ++i) {
    if (!BuffersTouched(s_.program, block[i]).contains(id)) continue;
    auto* fill = std::get_if<Fill>(&block[i].op);
    return fill != nullptr && s_.IsWhole(fill->dst) && !Loads(s_.program.exprs, fill->value, id);
  }
  return false;
}

// What must have been done before `stmt`: waits for asynchronous work on what it touches, fills put off until now.
void PlanBuilder::Prepare(const Stmt& stmt) {
  FlushAsyncFor(stmt);
  RetireFor(stmt);
  FillBefore(stmt);
}

absl::Status PlanBuilder::EmitStmt(const Stmt& stmt) {
  return std::visit(
      Overloaded{
          [&](const Alloc& op) { return EmitAlloc(op.buffer, false); },
          [&](const Copy& op) { return op.is_async ? EmitAsyncCopy(stmt, op) : EmitCopy(op); },
          [&](const Gemm& op) { return EmitGemm(op); },
          [&](const Fill& op) { FillLazily(buffers_[op.dst.buffer], Tr(op.value)); return absl::OkStatus(); },
          [&](const Reduce& op) { return EmitReduce(op); },
          [&](const Scan&) { return Internal("scan left after desugaring"); },
          [&](const Parallel& op) { return EmitParallel(op); },
          [&](const For& op) { return EmitFor(op); },
          [&](const While& op) { return EmitWhile(op, [&](kir::Block& out) { return EmitBlock(op.body, out); }); },
          [&](const Break&) { Emit(kir::Break{}); return absl::OkStatus(); },
          [&](const Continue&) { Emit(kir::Continue{}); return absl::OkStatus(); },
          [&](const If& op) { return EmitIf(op); },
          [&](const Let& op) -> absl::Status {
            TILERT_ASSIGN_OR_RETURN(const Expr value, BlockExpr(op.value));
            Emit(kir::Let{op.var, value});
            return absl::OkStatus();
          },
          [&](const Store& op) { return EmitVarStore(op); },
          [&](const Atomic&) { return Internal("atomic left after desugaring"); },
          [&](const AtomicTile&) { return Internal("tile atomic left after desugaring"); },
          [&](const Annotate& op) -> absl::Status {
            if (op.kind == AnnotationKind::kSafeValue) return Unsupported(stmt, "annotate_safe_value");
            int64_t panel = 0;
            if (op.kind == AnnotationKind::kUseSwizzle && !op.args.empty() && s_.E().AsInt(op.args[0], &panel)) {
              k_.raster_panel = static_cast<int>(panel);
              k_.raster_column = op.text == "col" || op.text == "column";
            }
            return absl::OkStatus();
          },
          [&](const Print& op) -> absl::Status {
            struct kir::Print print{op.format, {}};
            for (Expr arg : op.args) {
              TILERT_ASSIGN_OR_RETURN(print.args.emplace_back(), BlockExpr(arg));
            }
            Emit(kir::Elementwise{FragmentLayout{{}, s_.warps}, {}, {{std::move(print), loc_}}});
            return absl::OkStatus();
          },
          [&](const Assert& op) -> absl::Status {
            TILERT_ASSIGN_OR_RETURN(const Expr cond, BlockExpr(op.cond));
            Emit(kir::Assert{cond, op.message});
            return absl::OkStatus();
          },
          [&](const ThreadRegion& op) { return EmitThreadRegion(stmt, op); },
          [&](const SyncThreads& op) { return EmitSync(op, threads_); },
          [&](const Shuffle&) { return Unsupported(stmt, "a shuffle"); },
          [&](const Roles&) { return Unsupported(stmt, "a partition of the block into roles"); },
          [&](const BarrierOp& op) { return EmitBarrierOp(op); },
          // Copies are waited for before what they bring is touched.
          [&](const AsyncWait& op) {
            if (op.gemm && open_.size() > op.pending) Retire(open_.size() - op.pending);
            return absl::OkStatus();
          },
      },
      stmt.op);
}

absl::Status PlanBuilder::Unsupported(const Stmt& stmt, std::string_view what) const {
  return absl::UnimplementedError(Cat(what, " is not lowered to GPU code yet", Where(s_.program, stmt.loc),
                                      "; write it with tile statements, or run the program on the CPU (device = cpu)"));
}

absl::Status PlanBuilder::EmitAlloc(BufferId id, bool overwritten) {
  const Buffer& buffer = s_.buffer(id);
  if (buffer.scope == Scope::kShared) {
    const auto versions = versions_.find(id);
    if (rings_.ring_of_buffer.contains(id)) return absl::OkStatus();  // made with its ring
    buffers_[id] = NewShared(buffer.name, buffer.dtype, s_.shared[id], s_.slots.contains(id) ? s_.slots.at(id) : versions == versions_.end() ? 1 : versions->second);
    return absl::OkStatus();
  }
  if (buffer.scope == Scope::kBarrier) return EmitBarrier(id);
  FragmentLayout layout{{}, s_.warps};
  if (buffer.scope == Scope::kLocal) layout = PrivateLayout(s_.Shape(id));
  if (buffer.scope == Scope::kFragment) layout = s_.fragments[id];
  buffers_[id] = NewRegister(buffer.name, buffer.dtype, std::move(layout));
  // A read of what was never written gives zero (docs/ir_spec.md); the compiler drops the zeros that nobody reads.
  Emit(kir::Declare{buffers_[id], !overwritten});
  return absl::OkStatus();
}

void PlanBuilder::EmitFill(BufferId fragment, Expr value) {
  const FragmentLayout layout = k_.buffers[fragment].layout;
  kir::Elementwise loop{layout, {}, {}};
  std::vector<Expr> at;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    loop.vars.push_back(NewVar(Cat("i", d)));
    at.push_back(VarExpr(loop.vars.back()));
  }
  loop.body.push_back({kir::Store{fragment, at, value}, loc_});
  Emit(std::move(loop));
}

absl::Status PlanBuilder::EmitVarStore(const Store& store) {
  TILERT_ASSIGN_OR_RETURN(const Expr value, BlockExpr(store.value));
  Emit(kir::Store{buffers_[store.buffer], {}, value});
  return absl::OkStatus();
}

absl::Status PlanBuilder::EmitFor(const For& loop) {
  if (loop.kind == ForKind::kPipelined && NumStages(s_.E(), loop) > 0 && s_.E().IsInt(loop.step, 1)) {
    std::vector<Producer> producers = FindProducers(loop);
    if (!producers.empty()) return EmitPipelined(loop, std::move(producers));
  }
  FlushAsync();
  kir::For out{loop.var, {}, {}, {}, loop.kind == ForKind::kUnrolled ? kir::Unroll::kFull : kir::Unroll::kNo, {}};
  TILERT_ASSIGN_OR_RETURN(out.begin, BlockExpr(loop.begin));
  TILERT_ASSIGN_OR_RETURN(out.end, BlockExpr(loop.end));
  TILERT_ASSIGN_OR_RETURN(out.step, BlockExpr(loop.step));
  return EmitLoopBody(loop, out);
}

absl::Status PlanBuilder::EmitIf(const If& branch) {
  FlushAsync();
  if (s_.split && branch.cond == s_.split->goes_on) return s_.split->ways == 0 ? EmitLastShare(branch) : EmitFirstShare(branch);
  kir::If out;
  TILERT_ASSIGN_OR_RETURN(out.cond, BlockExpr(branch.cond));
  TILERT_RETURN_IF_ERROR(EmitBlock(branch.then_body, out.then_body));
  TILERT_RETURN_IF_ERROR(EmitBlock(branch.else_body, out.else_body));
  Emit(std::move(out));
  return absl::OkStatus();
}

absl::Status PlanBuilder::EmitWhile(const While& loop, const std::function<absl::Status(kir::Block&)>& emit_body) {
  FlushAsync();
  kir::While out;
  ++loops_;
  if (!LoadsFrom(s_.program, loop.cond, Scope::kFragment)) {
    out.cond = Tr(loop.cond);
    TILERT_RETURN_IF_ERROR(emit_body(out.body));
  } else {  // the condition needs statements of its own: while true: if not cond: break
    out.cond = k_.exprs.Int(1, DType::kBool);
    kir::Block* const outer = block_;
    block_ = &out.body;
    TILERT_ASSIGN_OR_RETURN(const Expr cond, BlockExpr(loop.cond));
    Emit(kir::If{k_.exprs.Unary(ExprOp::kNot, cond), {{kir::Break{}, loc_}}, {}});
    kir::Block rest;
    TILERT_RETURN_IF_ERROR(emit_body(rest));
    for (kir::Stmt& stmt : rest) out.body.push_back(std::move(stmt));
    block_ = outer;
  }
  --loops_;
  Emit(std::move(out));
  return absl::OkStatus();
}

}  // namespace tilert
