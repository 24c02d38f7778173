#include "ir/printer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "ir/printer_expr.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

// Arguments of a call: positional ones, then keywords.
class Args {
 public:
  Args& Add(std::string value) {
    parts_.push_back(std::move(value));
    return *this;
  }
  Args& Key(std::string_view key, std::string_view value, bool when = true) {
    if (when) parts_.push_back(Cat(key, "=", value));
    return *this;
  }
  std::string Call(std::string_view function) const { return Cat("T.", function, "(", absl::StrJoin(parts_, ", "), ")"); }

 private:
  std::vector<std::string> parts_;
};

std::string Quoted(std::string_view text) { return QuotedText(text); }
std::string Ints(const std::vector<int32_t>& list) { return Cat("[", absl::StrJoin(list, ", "), "]"); }

std::string_view ReduceText(ReduceOp op) {
  switch (op) {
    case ReduceOp::kInvalid: break;
    case ReduceOp::kSum: return "reduce_sum";
    case ReduceOp::kMax: return "reduce_max";
    case ReduceOp::kMin: return "reduce_min";
    case ReduceOp::kAbsSum: return "reduce_abssum";
    case ReduceOp::kAbsMax: return "reduce_absmax";
    case ReduceOp::kBitAnd: return "reduce_bitand";
    case ReduceOp::kBitOr: return "reduce_bitor";
    case ReduceOp::kBitXor: return "reduce_bitxor";
  }
  return "reduce_invalid";
}

std::string_view LoopText(ForKind kind) {
  switch (kind) {
    case ForKind::kInvalid: break;
    case ForKind::kSerial: return "serial";
    case ForKind::kUnrolled: return "unroll";
    case ForKind::kVectorized: return "vectorized";
    case ForKind::kPipelined: return "Pipelined";
    case ForKind::kPersistent: return "Persistent";
  }
  return "invalid";
}

std::string_view AtomicText(AtomicOp op) {
  return op == AtomicOp::kAdd   ? "atomic_add"
         : op == AtomicOp::kMax ? "atomic_max"
         : op == AtomicOp::kMin ? "atomic_min"
                                : "atomic_invalid";
}

std::string_view OrderText(MemoryOrder order) {
  switch (order) {
    case MemoryOrder::kInvalid: break;
    case MemoryOrder::kRelaxed: return "relaxed";
    case MemoryOrder::kAcquire: return "acquire";
    case MemoryOrder::kRelease: return "release";
    case MemoryOrder::kAcqRel: return "acq_rel";
  }
  return "invalid";
}

std::string_view ScopeText(MemoryScope scope) {
  return scope == MemoryScope::kBlock    ? "block"
         : scope == MemoryScope::kDevice ? "device"
         : scope == MemoryScope::kSystem ? "system"
                                         : "invalid";
}

std::string_view AllocText(Scope scope) {
  switch (scope) {
    case Scope::kShared: return "alloc_shared";
    case Scope::kFragment: return "alloc_fragment";
    case Scope::kLocal: return "alloc_local";
    case Scope::kVar: return "alloc_var";
    case Scope::kBarrier: return "alloc_barrier";
    case Scope::kInvalid:
    case Scope::kGlobal: break;
  }
  return "alloc_invalid";
}

std::string_view AccessText(Access access) {
  return access == Access::kIn ? "in" : access == Access::kOut ? "out" : access == Access::kInOut ? "inout" : "invalid";
}

// One program as text. Also prints single statement heads, with table names, when constructed without scopes.
class Printer {
 public:
  Printer(const Program& p, bool scoped) : p_(p), expr_(p, scoped ? &names_ : nullptr) {}

  std::string Run();
  std::string Head(const StmtOp& op);

 private:
  const std::string& Declare(NameKind kind, uint32_t id, std::string_view wanted) { return names_.Declare(kind, id, wanted); }
  std::string VarName(VarId id) { return expr_.Name(NameKind::kVar, id); }
  void DeclareVar(VarId id) { Declare(NameKind::kVar, id, p_.vars[id].name); }
  void Line(std::string_view text);
  void Body(const Block& block);
  void Statement(const Stmt& stmt);
  void IfChain(const If& s, std::string_view word);
  std::string ParamText(const Param& param);
  void LaunchText(const Launch& launch, size_t position);

  std::string HeadOf(const Alloc& s);
  std::string HeadOf(const Copy& s);
  std::string HeadOf(const Gemm& s);
  std::string HeadOf(const Fill& s);
  std::string HeadOf(const Reduce& s);
  std::string HeadOf(const Scan& s);
  std::string HeadOf(const Parallel& s);
  std::string HeadOf(const For& s);
  std::string HeadOf(const While& s) { return "while " + expr_.Value(s.cond); }
  std::string HeadOf(const Break&) { return "break"; }
  std::string HeadOf(const Continue&) { return "continue"; }
  std::string HeadOf(const If& s) { return "if " + expr_.Value(s.cond); }
  std::string HeadOf(const Let& s) { return Cat(VarName(s.var), " = T.let(", expr_.Value(s.value), ")"); }
  std::string HeadOf(const Store& s);
  std::string HeadOf(const Atomic& s);
  std::string HeadOf(const AtomicTile& s);
  std::string HeadOf(const Annotate& s);
  std::string HeadOf(const Print& s);
  std::string HeadOf(const Assert& s) { return Args().Add(expr_.Value(s.cond)).Add(Quoted(s.message)).Call("device_assert"); }
  std::string HeadOf(const ThreadRegion& s) { return Cat("with T.thread_region() as ", VarName(s.thread)); }
  std::string HeadOf(const SyncThreads& s) {
    return s.count == 0 ? "T.sync_threads()" : Args().Add(Cat(s.barrier)).Add(Cat(s.count)).Call("sync_threads");
  }
  std::string HeadOf(const Shuffle& s) {
    return Cat(VarName(s.var), " = ", Args().Add(expr_.Value(s.value)).Add(expr_.Index(s.lane)).Call("shuffle"));
  }
  std::string HeadOf(const Roles&) { return "with T.roles()"; }
  std::string HeadOf(const BarrierOp& s);
  std::string HeadOf(const AsyncWait& s) { return Args().Add(Cat(s.pending)).Call(s.gemm ? "wait_wgmma" : "async_wait"); }

  const Program& p_;
  NameScopes names_;
  ExprPrinter expr_;
  std::string out_;
  int depth_ = 0;
};

void Printer::Line(std::string_view text) {
  out_.append(static_cast<size_t>(depth_) * 4, ' ');
  out_.append(text);
  out_ += '\n';
}

// --- Statement heads --------------------------------------------------------------------------------------------------------

std::string Printer::HeadOf(const Alloc& s) {
  const Buffer& b = p_.buffers[s.buffer];
  Args args;
  if (b.scope == Scope::kBarrier) {
    args.Add(Cat(b.arrive_count)).Key("shape", expr_.Tuple(b.shape));
  } else {
    if (b.scope != Scope::kVar) args.Add(expr_.Tuple(b.shape));
    args.Add(Quoted(DTypeName(b.dtype)));
  }
  return Cat(expr_.Name(NameKind::kBuffer, s.buffer), " = ", args.Call(AllocText(b.scope)));
}

std::string Printer::HeadOf(const Copy& s) {
  Args args;
  args.Add(expr_.Region(s.src)).Add(expr_.Region(s.dst));
  if (s.fill) args.Key("fill", expr_.Value(s.fill, p_.buffers[s.src.buffer].dtype));
  args.Key("coalesced_width", Cat(s.coalesced_width), s.coalesced_width != 0).Key("disable_tma", "True", s.disable_tma);
  if (s.barrier != kNoId) {
    args.Key("barrier", s.barrier_indices.empty() ? expr_.Name(NameKind::kBuffer, s.barrier)
                                                  : expr_.Element(s.barrier, s.barrier_indices));
  }
  return args.Call(s.is_async ? "async_copy" : "copy");
}

std::string Printer::HeadOf(const Gemm& s) {
  Args args;
  args.Add(expr_.Region(s.a)).Add(expr_.Region(s.b)).Add(expr_.Region(s.c));
  args.Key("transpose_A", "True", s.transpose_a)
      .Key("transpose_B", "True", s.transpose_b)
      .Key("clear_accum", "True", s.clear_accum);
  args.Key("policy", "T.GemmWarpPolicy.FullRow", s.policy == GemmPolicy::kFullRow);
  args.Key("policy", "T.GemmWarpPolicy.FullCol", s.policy == GemmPolicy::kFullCol);
  return args.Call(s.is_async ? "wgmma_gemm" : "gemm");
}

std::string Printer::HeadOf(const Fill& s) {
  const DType type = p_.buffers[s.dst.buffer].dtype;
  const ExprNode& value = p_.exprs[s.value];
  const bool is_zero = value.dtype == type && value.args.empty() && value.i == 0 && value.f == 0 && !std::signbit(value.f) &&
                       (value.op == ExprOp::kIntImm || value.op == ExprOp::kFloatImm);
  if (is_zero) return Args().Add(expr_.Region(s.dst)).Call("clear");
  return Args().Add(expr_.Region(s.dst)).Add(expr_.Value(s.value, type)).Call("fill");
}

std::string Printer::HeadOf(const Reduce& s) {
  Args args;
  args.Add(expr_.Region(s.src)).Add(expr_.Region(s.dst)).Key("dim", Cat(s.axis));
  return args.Key("clear", "False", !s.clear).Key("nan_propagate", "False", !s.nan_propagate).Call(ReduceText(s.op));
}

std::string Printer::HeadOf(const Scan& s) {
  Args args;
  args.Add(expr_.Region(s.src)).Add(expr_.Region(s.dst)).Key("dim", Cat(s.axis));
  return args.Key("reverse", "True", s.reverse).Call("cumsum");
}

std::string Printer::HeadOf(const Parallel& s) {
  std::vector<std::string> vars;
  Args args;
  for (VarId var : s.vars) vars.push_back(VarName(var));
  for (Expr extent : s.extents) args.Add(expr_.Index(extent));
  args.Key("coalesced_width", Cat(s.coalesced_width), s.coalesced_width != 0);
  return Cat("for ", absl::StrJoin(vars, ", "), " in ", args.Call("Parallel"));
}

std::string Printer::HeadOf(const For& s) {
  Args args;
  const bool is_pipelined = s.kind == ForKind::kPipelined, unit_step = p_.exprs.IsInt(s.step, 1);
  if (!p_.exprs.IsInt(s.begin, 0) || (!unit_step && !is_pipelined)) args.Add(expr_.Index(s.begin));
  args.Add(expr_.Index(s.end));
  if (is_pipelined) {
    if (!unit_step) args.Key("step", expr_.Index(s.step));
    args.Key("num_stages", expr_.Index(s.num_stages), !p_.exprs.IsInt(s.num_stages, 0));
    if (s.split) args.Key("split", expr_.Index(s.split));
    args.Key("order", Ints(s.order), !s.order.empty()).Key("stage", Ints(s.stage), !s.stage.empty());
  } else if (!unit_step) {
    args.Add(expr_.Index(s.step));
  }
  return Cat("for ", VarName(s.var), " in ", args.Call(LoopText(s.kind)));
}

std::string Printer::HeadOf(const Store& s) {
  return Cat(expr_.Element(s.buffer, s.indices), " = ", expr_.Value(s.value, p_.buffers[s.buffer].dtype));
}

std::string Printer::HeadOf(const Atomic& s) {
  Args args;
  args.Add(expr_.Element(s.buffer, s.indices)).Add(expr_.Value(s.value, p_.buffers[s.buffer].dtype));
  args.Key("memory_order", Quoted(OrderText(s.order)), s.order != MemoryOrder::kRelaxed);
  args.Key("scope", Quoted(ScopeText(s.scope)), s.scope != MemoryScope::kDevice);
  return args.Key("return_prev", "True", s.prev != kNoId).Call(AtomicText(s.op));
}

std::string Printer::HeadOf(const AtomicTile& s) {
  Args args;
  args.Add(expr_.Region(s.dst)).Add(expr_.Region(s.src));
  return args.Key("memory_order", Quoted(OrderText(s.order)), s.order != MemoryOrder::kRelaxed).Call(AtomicText(s.op));
}

std::string Printer::HeadOf(const Annotate& s) {
  const std::string name = s.buffer == kNoId ? "" : expr_.Name(NameKind::kBuffer, s.buffer);
  Args args;
  switch (s.kind) {
    case AnnotationKind::kInvalid: break;
    case AnnotationKind::kUseSwizzle:
      for (Expr e : s.args) args.Add(expr_.Index(e));
      return args.Key("order", Quoted(s.text), s.text != "row").Call("use_swizzle");
    case AnnotationKind::kLayoutSwizzled: return Cat("T.annotate_layout({", name, ": T.make_swizzled_layout(", name, ")})");
    case AnnotationKind::kLayoutRowMajor: return Cat("T.annotate_layout({", name, ": T.make_row_major_layout(", name, ")})");
    case AnnotationKind::kNoWarpSpecialization: return "T.disable_warp_specialized()";
    case AnnotationKind::kSafeValue:
      return Cat("T.annotate_safe_value({", name, ": ",
                 s.args.empty() ? "None" : expr_.Value(s.args[0], p_.buffers[s.buffer].dtype), "})");
  }
  return "T.annotate_invalid()";
}

std::string Printer::HeadOf(const Print& s) {
  Args args;
  args.Add(Quoted(s.format));
  for (Expr e : s.args) args.Add(expr_.Value(e));
  return args.Call("print");
}

std::string Printer::HeadOf(const BarrierOp& s) {
  Args args;
  args.Add(expr_.Element(s.barrier, s.indices));
  if (s.operand) args.Add(expr_.Index(s.operand));
  switch (s.kind) {
    case BarrierOpKind::kInvalid: break;
    case BarrierOpKind::kArrive: return args.Call("barrier_arrive");
    case BarrierOpKind::kWait: return args.Call("barrier_wait");
    case BarrierOpKind::kExpectTx: return args.Call("mbarrier_expect_tx");
  }
  return args.Call("barrier_invalid");
}

std::string Printer::Head(const StmtOp& op) {
  return std::visit([this](const auto& s) { return HeadOf(s); }, op);
}

// --- Blocks -----------------------------------------------------------------------------------------------------------------

void Printer::Body(const Block& block) {
  names_.Push();
  ++depth_;
  if (block.empty()) Line("pass");
  for (const Stmt& stmt : block) Statement(stmt);
  --depth_;
  names_.Pop();
}

void Printer::IfChain(const If& s, std::string_view word) {
  Line(Cat(word, " ", expr_.Value(s.cond), ":"));
  Body(s.then_body);
  if (s.else_body.empty()) return;
  const auto* next = s.else_body.size() == 1 ? std::get_if<If>(&s.else_body[0].op) : nullptr;
  if (next != nullptr) return IfChain(*next, "elif");
  Line("else:");
  Body(s.else_body);
}

// Names that a statement declares for its own body live in a scope of their own; those of Alloc and Let in the enclosing one.
void Printer::Statement(const Stmt& stmt) {
  const auto with_body = [&](const auto& s, auto declare) {
    names_.Push();
    declare();
    Line(HeadOf(s) + ":");
    Body(s.body);
    names_.Pop();
  };
  std::visit(Overloaded{
                 [&](const If& s) { IfChain(s, "if"); },
                 [&](const Parallel& s) {
                   with_body(s, [&] {
                     for (VarId var : s.vars) DeclareVar(var);
                   });
                 },
                 [&](const For& s) { with_body(s, [&] { DeclareVar(s.var); }); },
                 [&](const While& s) { with_body(s, [] {}); },
                 [&](const ThreadRegion& s) { with_body(s, [&] { DeclareVar(s.thread); }); },
                 [&](const Roles& s) {
                   Line(HeadOf(s) + ":");
                   ++depth_;
                   if (s.roles.empty()) Line("pass");
                   for (const Role& role : s.roles) {
                     Line(Cat("with T.role(", expr_.Index(role.thread_begin), ", ", expr_.Index(role.thread_end), "):"));
                     Body(role.body);
                   }
                   --depth_;
                 },
                 [&](const Alloc& s) {
                   Declare(NameKind::kBuffer, s.buffer, p_.buffers[s.buffer].name);
                   Line(HeadOf(s));
                 },
                 [&](const Let& s) {
                   const std::string value = expr_.Value(s.value);
                   DeclareVar(s.var);
                   Line(Cat(VarName(s.var), " = T.let(", value, ")"));
                 },
                 [&](const Shuffle& s) {
                   const std::string call = Args().Add(expr_.Value(s.value)).Add(expr_.Index(s.lane)).Call("shuffle");
                   DeclareVar(s.var);
                   Line(Cat(VarName(s.var), " = ", call));
                 },
                 [&](const Atomic& s) {
                   const std::string call = HeadOf(s);
                   if (s.prev != kNoId) DeclareVar(s.prev);
                   Line(s.prev != kNoId ? Cat(VarName(s.prev), " = ", call) : call);
                 },
                 [&](const auto& s) { Line(HeadOf(s)); },
             },
             stmt.op);
}

std::string Printer::ParamText(const Param& param) {
  if (param.kind == Param::Kind::kScalar) {
    const ScalarParam& s = p_.scalars[param.index];
    const std::string name = expr_.Name(NameKind::kScalar, param.index);
    if (s.dim == kNoId) return Cat(name, ": T.", DTypeName(s.dtype));
    return Cat(name, ": ", Args().Add(Quoted(DTypeName(s.dtype))).Key("dim", expr_.Name(NameKind::kDim, s.dim)).Call("scalar"));
  }
  const Buffer& b = p_.buffers[param.index];
  Args args;
  args.Add(expr_.Tuple(b.shape));
  if (!b.strides.empty()) args.Add(expr_.Tuple(b.strides));
  args.Add(Quoted(DTypeName(b.dtype))).Key("access", Quoted(AccessText(param.access)));
  return Cat(expr_.Name(NameKind::kBuffer, param.index), ": ", args.Call(b.strides.empty() ? "Tensor" : "StridedTensor"));
}

void Printer::LaunchText(const Launch& launch, size_t position) {
  names_.Push();
  Args args;
  for (Expr e : launch.grid) args.Add(expr_.Index(e));
  args.Key("threads", expr_.Index(launch.threads));
  args.Key("name", Quoted(launch.name), launch.name != Cat("k", position)).Key("cooperative", "True", launch.cooperative);
  const auto is_one = [&](Expr e) { return p_.exprs.IsInt(e, 1); };
  if (!std::all_of(launch.cluster.begin(), launch.cluster.end(), is_one)) args.Key("cluster_dims", expr_.Tuple(launch.cluster));
  std::vector<std::string> vars;
  for (VarId var : launch.block_vars) {
    DeclareVar(var);
    vars.push_back(VarName(var));
  }
  const std::string bound = absl::StrJoin(vars, ", ");
  Line(Cat("with ", args.Call("Kernel"), " as ", vars.size() == 1 ? bound : Cat("(", bound, ")"), ":"));
  Body(launch.body);
  names_.Pop();
}

std::string Printer::Run() {
  for (const Param& param : p_.params) {
    if (param.kind == Param::Kind::kScalar) Declare(NameKind::kScalar, param.index, p_.scalars[param.index].name);
    if (param.kind == Param::Kind::kTensor) Declare(NameKind::kBuffer, param.index, p_.buffers[param.index].name);
  }
  out_ = "import tilelang.language as T\n\n";
  for (size_t i = 0; i < p_.dims.size(); ++i) {
    Line(Cat(Declare(NameKind::kDim, i, p_.dims[i].name), " = ", Args().Add(Quoted(p_.dims[i].name)).Call("dynamic")));
  }
  for (size_t i = 0; i < p_.constants.size(); ++i) {
    const Constant& c = p_.constants[i];
    const std::string candidates = Cat("[", absl::StrJoin(c.candidates, ", "), "]");
    Line(Cat(Declare(NameKind::kConstant, i, c.name), " = ", Args().Add(Quoted(c.name)).Add(candidates).Call("constant")));
  }
  if (!p_.dims.empty() || !p_.constants.empty()) out_ += '\n';
  std::vector<std::string> params;
  for (const Param& param : p_.params) params.push_back(ParamText(param));
  out_ += "\n@T.prim_func\n";
  const std::string def = Cat("def ", Sanitize(p_.name), "("), joined = absl::StrJoin(params, ", ");
  const bool is_long = def.size() + joined.size() > 100;
  Line(is_long ? Cat(def, "\n    ", absl::StrJoin(params, ",\n    "), ",\n):") : Cat(def, joined, "):"));
  ++depth_;
  if (p_.fast_math) Line("T.fast_math()");
  for (Expr e : p_.assumptions) Line(Args().Add(expr_.Value(e)).Call("assume"));
  for (const Workspace& w : p_.workspaces) {
    const Buffer& b = p_.buffers[w.buffer];
    const std::string name = Declare(NameKind::kBuffer, w.buffer, b.name);
    Args args;
    args.Add(expr_.Tuple(b.shape))
        .Add(Quoted(DTypeName(b.dtype)))
        .Key("zeroed", "True", w.zeroed)
        .Key("name", Quoted(b.name), name != b.name);
    Line(Cat(name, " = ", args.Call("workspace")));
  }
  for (size_t i = 0; i < p_.launches.size(); ++i) LaunchText(p_.launches[i], i);
  if (p_.launches.empty()) Line("pass");
  return std::move(out_);
}

}  // namespace

std::string PrintProgram(const Program& program) { return Printer(program, true).Run(); }

std::string PrintExpr(const Program& program, Expr e) { return ExprPrinter(program, nullptr).Index(e); }

std::string PrintStmtHead(const Program& program, const Stmt& stmt) { return Printer(program, false).Head(stmt.op); }

std::string PrintLoc(const Program& program, const SourceLoc& loc) {
  if (loc.line == 0 || loc.file >= program.files.size()) return "";
  return Cat(program.files[loc.file], ":", loc.line, ":", loc.column);
}

}  // namespace tilert
