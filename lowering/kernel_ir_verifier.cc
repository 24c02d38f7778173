#include "lowering/kernel_ir_verifier.h"

#include <type_traits>

#include "ir/stmt.h"

namespace tilert::kir {
namespace {

constexpr int64_t kSharedAlignment = 128;

constexpr const char* kOpNames[] = {
    "declare",     "for",          "while",      "if",       "break",           "continue",         "let",
    "elementwise", "store",        "atomic",     "copy",     "cp.async.commit", "cp.async.wait",    "lane_reduce",
    "mma",         "barrier",      "print",      "assert",   "roles",           "for_tiles",        "wgmma",
    "wgmma.fence", "wgmma.commit", "wgmma.wait", "tma.load", "tma.store",       "tma.store.commit", "tma.store.wait",
    "proxy_fence", "acquire",      "expect_tx",  "release",  "advance",         "order.wait",       "order.pass",
    "cluster.sync", "part.store", "part.add", "sums.give", "sums.take", "shuffle", "mbar.arrive", "mbar.wait", "mbar.expect",
    "mbar.complete"};
static_assert(std::size(kOpNames) == std::variant_size_v<StmtOp>);

bool IsCIdentifier(const std::string& text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text) {
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_') return false;
  }
  return true;
}

// What may stand in the body of an Elementwise.
template <typename Op>
constexpr bool kPerPoint =
    std::is_same_v<Op, Store> || std::is_same_v<Op, Let> || std::is_same_v<Op, If> || std::is_same_v<Op, For> ||
    std::is_same_v<Op, While> || std::is_same_v<Op, Break> || std::is_same_v<Op, Continue> || std::is_same_v<Op, Atomic> ||
    std::is_same_v<Op, Print> || std::is_same_v<Op, Assert> || std::is_same_v<Op, Shuffle> || std::is_same_v<Op, MbarArrive> ||
    std::is_same_v<Op, MbarWait> || std::is_same_v<Op, MbarExpect> || std::is_same_v<Op, ProxyFence>;

// What a single thread can run.
template <typename Op>
constexpr bool kPerThread =
    std::is_same_v<Op, Let> || std::is_same_v<Op, If> || std::is_same_v<Op, For> || std::is_same_v<Op, While> ||
    std::is_same_v<Op, Break> || std::is_same_v<Op, Continue> || std::is_same_v<Op, Assert> || std::is_same_v<Op, ForTiles> ||
    std::is_same_v<Op, Acquire> || std::is_same_v<Op, ExpectTx> || std::is_same_v<Op, TmaLoad> || std::is_same_v<Op, Advance>;

}  // namespace

KernelVerifier::KernelVerifier(const Kernel& kernel)
    : kernel_(kernel),
      bound_(kernel.vars.size()),
      declared_(kernel.buffers.size()),
      warps_(kernel.warps),
      releasing_warps_(kernel.rings.size()),
      releases_(kernel.rings.size()) {}

std::string KernelVerifier::Run() {
  Tables();
  if (!failed()) Walk(kernel_.body, "body");
  path_.clear();
  if (!failed()) Releases();
  return error_;
}

std::string KernelVerifier::Name(BufferId id) const {
  return id < kernel_.buffers.size() ? Cat("'", kernel_.buffers[id].name, "'")
                                     : Cat("buffer ", id, " (of ", kernel_.buffers.size(), ")");
}

void KernelVerifier::Tables() {
  Requires(IsCIdentifier(kernel_.name), "kernel name '", kernel_.name, "' is no C identifier");
  Requires(kernel_.warps >= 1 && kernel_.warps <= 32, "kernel has ", kernel_.warps, " warps, 1 to 32 are possible");
  Requires(!kernel_.grid.empty() && kernel_.grid.size() <= 3, "grid has ", kernel_.grid.size(), " extents, 1 to 3 are possible");
  Requires(kernel_.block_vars.size() == kernel_.grid.size(), "grid has ", kernel_.grid.size(), " extents but ",
           kernel_.block_vars.size(), " block variables");
  for (Expr e : kernel_.grid) Integer(e, "grid extent");
  for (const Buffer& buffer : kernel_.buffers) {
    Requires(buffer.dtype != DType::kInvalid, "buffer '", buffer.name, "' has no type");
    if (buffer.space == Space::kShared) {
      SharedBuffer(buffer);
    } else if (buffer.space == Space::kRegister) {
      Requires(IsWellFormed(buffer.layout), "layout of '", buffer.name, "' is ill-formed: ", ToString(buffer.layout));
    } else if (Requires(buffer.space == Space::kGlobal, "buffer '", buffer.name, "' has no space")) {
      Requires(buffer.strides.size() == buffer.shape.size(), "'", buffer.name, "' has ", buffer.shape.size(), " extents but ",
               buffer.strides.size(), " strides");
      for (Expr e : buffer.shape) Integer(e, "extent of a tensor");
      for (Expr e : buffer.strides) Integer(e, "stride of a tensor");
      for (Expr e : {buffer.evict_first, buffer.evict_last}) {
        if (e) Value(e);
      }
    }
  }
  for (const Ring& ring : kernel_.rings) Tables(ring);
  for (const TensorMap& map : kernel_.tensor_maps) Tables(map);
  for (const Barrier& barrier : kernel_.barriers) Tables(barrier);
  ClusterTables();
  if (IsPersistent(kernel_)) return;
  for (VarId var : kernel_.block_vars) Bind(var);
  if (!kernel_.cluster.empty()) Bind(kernel_.has_block);
}

void KernelVerifier::SharedBuffer(const Buffer& buffer) {
  const SharedLayout& layout = buffer.shared;
  const bool panels = layout.panel >= 1 && layout.pitch >= layout.panel;
  if (!Requires(panels, "'", buffer.name, "' has panels of ", layout.panel, " bytes at a pitch of ", layout.pitch)) return;
  Requires(layout.element_bytes == DTypeBytes(buffer.dtype), "'", buffer.name, "' has elements of ", DTypeBytes(buffer.dtype),
           " bytes, its layout ", layout.element_bytes);
  Requires(
      !layout.swizzled || (layout.panel == layout.pitch && (layout.panel == 32 || layout.panel == 64 || layout.panel == 128)),
      "'", buffer.name, "' is swizzled with panels of ", layout.panel, " bytes");
  Requires(!layout.folded || (layout.swizzled && layout.panel == 128), "'", buffer.name, "' is folded without panels of 128 bytes");
  Requires(buffer.versions >= 1, "'", buffer.name, "' has ", buffer.versions, " versions");
  if (buffer.offset < 0) return;  // not placed yet
  const int64_t size = layout.version_bytes() * buffer.versions;
  Requires(buffer.offset % kSharedAlignment == 0, "'", buffer.name, "' is at offset ", buffer.offset, ", no multiple of ",
           kSharedAlignment);
  Requires(buffer.offset + size <= kernel_.shared_bytes, "'", buffer.name, "' ends at byte ", buffer.offset + size, " of ",
           kernel_.shared_bytes, " bytes of shared memory");
}

void KernelVerifier::Walk(const Block& block, const std::string& path) {
  for (size_t i = 0; i < block.size() && !failed(); ++i) Statement(block[i], Cat(path, "[", i, "]"));
}

void KernelVerifier::Nested(const Block& body, const std::string& path) {
  const std::vector<bool> bound = bound_, declared = declared_;
  ++nesting_;
  Walk(body, path);
  --nesting_;
  bound_ = bound;
  declared_ = declared;
}

void KernelVerifier::Statement(const Stmt& stmt, const std::string& path) {
  path_ = Cat(path, " (", kOpNames[stmt.op.index()], stmt.loc.line > 0 ? Cat(", line ", stmt.loc.line) : "", ")");
  std::visit(
      [&](const auto& op) {
        using Op = std::remove_cvref_t<decltype(op)>;
        if (points_ != nullptr && !kPerPoint<Op>) return Fail("a statement for the whole block inside an elementwise loop");
        if (role_ != nullptr && role_->one_thread && !kPerThread<Op>)
          return Fail("a statement for several threads in a role of one thread");
        if constexpr (requires { this->Check(op, path); }) {
          Check(op, path);
        } else if constexpr (std::is_same_v<Op, While>) {
          Cond(op.cond);
          ++loops_;
          Nested(op.body, path + ".body");
          --loops_;
        } else if constexpr (std::is_same_v<Op, If>) {
          Cond(op.cond);
          Nested(op.then_body, path + ".then");
          Nested(op.else_body, path + ".else");
        } else if constexpr (std::is_same_v<Op, Break> || std::is_same_v<Op, Continue>) {
          Requires(loops_ > 0, "outside a loop");
        } else if constexpr (std::is_same_v<Op, Let>) {
          Value(op.value);
          Bind(op.var);
          if (failed()) return;
          const Var& var = kernel_.vars[op.var];
          Requires(kernel_.exprs[op.value].dtype == var.dtype, "'", var.name, "' has another type than its value");
        } else if constexpr (std::is_same_v<Op, Print>) {
          for (Expr e : op.args) Value(e);
        } else if constexpr (std::is_same_v<Op, Assert>) {
          Cond(op.cond);
        } else if constexpr (!std::is_same_v<Op, CpAsyncCommit> &&
                             !std::is_same_v<Op, StoreCommit> && !std::is_same_v<Op, ProxyFence>) {
          Check(op);
        }
      },
      stmt.op);
}

void KernelVerifier::Bind(VarId var) {
  if (!Requires(var < kernel_.vars.size(), "binds variable ", var, " of ", kernel_.vars.size())) return;
  Requires(!bound_[var], "binds '", kernel_.vars[var].name, "', which is bound already");
  bound_[var] = true;
}

void KernelVerifier::Check(const Declare& op) {
  if (!Requires(op.buffer < kernel_.buffers.size(), "declares ", Name(op.buffer))) return;
  Requires(kernel_.buffers[op.buffer].space == Space::kRegister, "declares ", Name(op.buffer), ", which is not in registers");
  Requires(!declared_[op.buffer], "declares ", Name(op.buffer), " twice");
  declared_[op.buffer] = true;
  const FragmentLayout& layout = kernel_.buffers[op.buffer].layout;
  Requires(layout.dims.empty() || layout.warps == warps_, "layout of ", Name(op.buffer), " is for ", layout.warps,
           " warps, not for ", warps_);
}

void KernelVerifier::Check(const For& op, const std::string& path) {
  Integer(op.begin, "first value");
  Integer(op.end, "end");
  Integer(op.step, "step");
  int64_t step = 1;
  if (!failed() && kernel_.exprs.AsInt(op.step, &step)) Requires(step > 0, "step is ", step);
  const std::vector<bool> bound = bound_;
  Bind(op.var);
  ++loops_;
  Nested(op.body, path + ".body");
  --loops_;
  bound_ = bound;
}

void KernelVerifier::Check(const Elementwise& op, const std::string& path) {
  Requires(IsWellFormed(op.layout), "layout is ill-formed: ", ToString(op.layout));
  Requires(op.layout.warps == warps_, "layout is for ", op.layout.warps, " warps, not for ", warps_);
  Requires(op.vars.size() == op.layout.dims.size(), "binds ", op.vars.size(), " variables to a layout of rank ",
           op.layout.dims.size());
  const std::vector<bool> bound = bound_;
  for (VarId var : op.vars) Bind(var);
  const int loops = loops_;
  points_ = &op;
  loops_ = 0;  // points cannot leave the loop around them
  Nested(op.body, path + ".body");
  points_ = nullptr;
  loops_ = loops;
  bound_ = bound;
}

void KernelVerifier::CheckWrite(BufferId buffer, const std::vector<Expr>& indices) {
  Access(buffer, indices, true);
  if (failed()) return;
  const Buffer& target = kernel_.buffers[buffer];
  Requires(target.space != Space::kGlobal || target.written, "writes ", Name(buffer), ", which is not marked as written");
  Requires(points_ != nullptr || (target.space == Space::kRegister && indices.empty()), "writes an element of ", Name(buffer),
           " outside an elementwise loop: only mutable scalars can be written by the whole block");
}

void KernelVerifier::Check(const Store& op) {
  Value(op.value);
  CheckWrite(op.buffer, op.indices);
}

void KernelVerifier::Check(const Atomic& op) {
  Value(op.value);
  Requires(op.op != AtomicOp::kInvalid, "no operation");
  CheckWrite(op.buffer, op.indices);
  if (!failed())
    Requires(kernel_.buffers[op.buffer].space != Space::kRegister, "is on ", Name(op.buffer), ", which is in registers");
  if (failed() || op.prev == kNoId) return;
  Requires(points_ != nullptr && points_->layout.Replicas().empty(), "gives a value before, but several threads run it for one point");
  Bind(op.prev);
  if (!failed())
    Requires(kernel_.vars[op.prev].dtype == kernel_.buffers[op.buffer].dtype, "'", kernel_.vars[op.prev].name,
             "' has another type than ", Name(op.buffer));
}

std::string VerifyKernel(const Kernel& kernel) { return KernelVerifier(kernel).Run(); }

}  // namespace tilert::kir
