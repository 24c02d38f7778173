// Copies, reductions and tensor-core statements: ranks, types and layouts that the instructions ask for.
#include <algorithm>

#include "lowering/kernel_ir_verifier.h"
#include "lowering/layout_mma.h"

namespace tilert::kir {
namespace {

bool IsByte(DType type) { return DTypeBytes(type) == 1 && type != DType::kBool; }
bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// The warp grids that `warps` warps can form.
std::vector<WarpGrid> WarpGrids(int warps) {
  std::vector<WarpGrid> grids;
  for (int m = 1; m <= warps; ++m) {
    if (warps % m == 0) grids.push_back({m, warps / m});
  }
  return grids;
}

bool SameFunction(const FragmentLayout& a, const FragmentLayout& b) { return Canonical(a) == Canonical(b); }

// dst of a LaneReduce over `axis`: without it, or with its warp factors only.
FragmentLayout ReducedLayout(const FragmentLayout& src, int axis, bool keep_warps) {
  FragmentLayout kept = src;
  LayoutDim& dim = kept.dims[static_cast<size_t>(axis)];
  std::erase_if(dim.factors, [](const Factor& f) { return f.owner != Owner::kWarp; });
  dim.extent = dim.padded();
  std::vector<int> dims;
  for (int d = 0; d < static_cast<int>(src.dims.size()); ++d) {
    if (d != axis || keep_warps) dims.push_back(d);
  }
  return Project(kept, dims);
}

}  // namespace

const Buffer* KernelVerifier::Register(BufferId id, const char* what) {
  if (!Requires(id < kernel_.buffers.size(), what, " is ", Name(id))) return nullptr;
  if (!Requires(kernel_.buffers[id].space == Space::kRegister, what, " ", Name(id), " is not in registers")) return nullptr;
  return Requires(declared_[id], what, " ", Name(id), " is not declared") ? &kernel_.buffers[id] : nullptr;
}

void KernelVerifier::Check(const Copy& op) {
  Requires(IsWellFormed(op.layout), "layout is ill-formed: ", ToString(op.layout));
  Requires(op.layout.warps == warps_, "layout is for ", op.layout.warps, " warps, not for ", warps_);
  Requires(IsPowerOfTwo(op.width), "width is ", op.width);
  if (!failed()) CheckSide(op, op.src, false);
  if (!failed()) CheckSide(op, op.dst, true);
  if (failed()) return;
  if (op.fill) Value(op.fill);
  const Buffer &src = kernel_.buffers[op.src.buffer], &dst = kernel_.buffers[op.dst.buffer];
  Requires(dst.space != Space::kGlobal || dst.written, "writes ", Name(op.dst.buffer), ", which is not marked as written");
  const bool src_register = src.space == Space::kRegister, dst_register = dst.space == Space::kRegister;
  switch (op.method) {
    case CopyMethod::kVector:
      Requires(!src_register || !dst_register, "a copy between registers is no vector copy");
      CheckVector(op, op.src);
      CheckVector(op, op.dst);
      break;
    case CopyMethod::kCpAsync: CheckAsync(op); break;
    case CopyMethod::kLdmatrix:
    case CopyMethod::kLdmatrixTrans: CheckLdmatrix(op); break;
    case CopyMethod::kStmatrix: CheckStmatrix(op); break;
    case CopyMethod::kRegister:
      Requires(src_register && dst_register, "both sides of a register copy must be in registers");
      break;
  }
}

void KernelVerifier::CheckSide(const Copy& op, const TileAccess& side, bool is_dst) {
  const char* what = is_dst ? "destination" : "source";
  if (!Requires(side.buffer < kernel_.buffers.size(), what, " is ", Name(side.buffer))) return;
  const Buffer& buffer = kernel_.buffers[side.buffer];
  const size_t rank = SubscriptCount(buffer);
  Requires(side.start.size() == rank && side.follows.size() == rank && side.inside.size() == rank, what, " ", Name(side.buffer),
           " has ", rank, " dimensions, its access ", side.start.size(), ", ", side.follows.size(), " and ", side.inside.size());
  if (failed()) return;
  for (Expr e : side.start) Integer(e, "start");
  std::vector<bool> followed(op.layout.dims.size());
  for (size_t d = 0; d < rank; ++d) {
    const int dim = side.follows[d];
    if (!Requires(dim >= -1 && dim < static_cast<int>(followed.size()), what, " follows dimension ", dim, " of ",
                  followed.size()))
      return;
    if (dim < 0) continue;
    Requires(!followed[static_cast<size_t>(dim)], what, " follows dimension ", dim, " twice");
    followed[static_cast<size_t>(dim)] = true;
  }
  for (size_t d = 0; d < followed.size(); ++d) {
    const bool ok = !is_dst || followed[d] || op.layout.dims[d].extent <= 1;
    Requires(ok, "destination does not follow dimension ", d, ": its elements would be written several times");
  }
  Requires(buffer.space != Space::kShared || side.follows[0] == -1, what, " ", Name(side.buffer),
           " varies its version within one copy");
  if (buffer.space == Space::kRegister && Register(side.buffer, what) != nullptr) CheckRegisterSide(op, side, is_dst);
}

// Where the buffer is accessed from its origin, ownership can be compared.
void KernelVerifier::CheckRegisterSide(const Copy& op, const TileAccess& side, bool is_dst) {
  const FragmentLayout& data = kernel_.buffers[side.buffer].layout;
  for (size_t d = 0; d < side.start.size(); ++d) {
    if (!kernel_.exprs.IsInt(side.start[d], 0) || side.follows[d] < 0) return;
  }
  FragmentLayout loop = Project(op.layout, side.follows);
  for (size_t d = 0; d < loop.dims.size(); ++d) loop.dims[d].extent = std::min(loop.dims[d].extent, data.dims[d].extent);
  Requires(is_dst ? CanWrite(data, loop) : CanRead(data, loop), "the copy's threads do not hold the elements of ",
           Name(side.buffer), ": the copy is ", ToString(op.layout), ", the buffer ", ToString(data));
}

void KernelVerifier::CheckVector(const Copy& op, const TileAccess& side) {
  const Buffer& buffer = kernel_.buffers[side.buffer];
  if (buffer.space == Space::kRegister || op.width == 1 || failed()) return;
  const int64_t bytes = op.width * DTypeBytes(buffer.dtype);
  Requires(bytes <= 16, "moves ", bytes, " bytes of ", Name(side.buffer), " at once, 16 are possible");
  Requires(ContiguousRegs(op.layout, op.width) == op.width, "its layout does not give a thread ", op.width,
           " consecutive elements: ", ToString(op.layout));
  Requires(!side.follows.empty() && side.follows.back() == static_cast<int>(op.layout.dims.size()) - 1, "the last dimension of ",
           Name(side.buffer), " does not follow the last one of the copy");
  if (buffer.space == Space::kGlobal) {
    Requires(buffer.alignment % bytes == 0, "moves ", bytes, " bytes of ", Name(side.buffer), " at once, which is aligned to ",
             buffer.alignment);
  } else {
    Requires(buffer.shared.pitch % bytes == 0 && (buffer.shared.panel == buffer.shared.pitch || buffer.shared.panel % bytes == 0),
             "moves ", bytes, " bytes of ", Name(side.buffer), " at once, whose rows are ", buffer.shared.pitch, " bytes apart");
  }
}

void KernelVerifier::CheckAsync(const Copy& op) {
  const Buffer &src = kernel_.buffers[op.src.buffer], &dst = kernel_.buffers[op.dst.buffer];
  Requires(src.space == Space::kGlobal && dst.space == Space::kShared, "cp.async copies from global to shared memory");
  Requires(src.dtype == dst.dtype, "cp.async does not convert ", DTypeName(src.dtype), " to ", DTypeName(dst.dtype));
  const int64_t bytes = op.width * DTypeBytes(src.dtype);
  Requires(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes, not ", bytes);
  if (failed()) return;
  if (op.fill) {
    const ExprNode& fill = kernel_.exprs[op.fill];
    const bool zero = (fill.op == ExprOp::kIntImm && fill.i == 0) || (fill.op == ExprOp::kFloatImm && fill.f == 0);
    Requires(zero, "cp.async fills with zeros only");
  }
  CheckVector(op, op.src);
  CheckVector(op, op.dst);
}

void KernelVerifier::CheckLdmatrix(const Copy& op) {
  const Buffer &src = kernel_.buffers[op.src.buffer], &dst = kernel_.buffers[op.dst.buffer];
  Requires(src.space == Space::kShared && dst.space == Space::kRegister, "ldmatrix copies from shared memory to registers");
  const int bytes = DTypeBytes(src.dtype);
  Requires(src.dtype == dst.dtype && (bytes == 2 || (bytes == 1 && op.method == CopyMethod::kLdmatrix)),
           "ldmatrix moves 16-bit elements of one type, or pairs of bytes along the last dimension");
  if (!Requires(op.layout.dims.size() == 2, "ldmatrix moves tiles of two dimensions, not ", op.layout.dims.size())) return;
  const int last = op.src.follows.back(), expected = op.method == CopyMethod::kLdmatrix ? 1 : 0;
  Requires(last == expected, "the last dimension of ", Name(op.src.buffer), " must follow dimension ", expected,
           " of the copy, not ", last);
  Requires(src.shared.pitch % 16 == 0 && (src.shared.panel == src.shared.pitch || src.shared.panel % 16 == 0), "rows of ",
           Name(op.src.buffer), " are ", src.shared.pitch, " bytes apart, no multiple of 16");
  const int64_t rows = op.layout.dims[0].extent, k = op.layout.dims[1].extent;
  const std::vector<WarpGrid> grids = WarpGrids(warps_);
  const bool known = std::any_of(grids.begin(), grids.end(), [&](WarpGrid grid) {
    return SameFunction(op.layout, MmaOperandALayout(rows, k, grid, bytes)) ||
           SameFunction(op.layout, MmaOperandBLayout(rows, k, grid, bytes));
  });
  Requires(known, "its layout is that of no operand of mma: ", ToString(op.layout));
}

void KernelVerifier::CheckStmatrix(const Copy& op) {
  const Buffer &src = kernel_.buffers[op.src.buffer], &dst = kernel_.buffers[op.dst.buffer];
  Requires(src.space == Space::kRegister && dst.space == Space::kShared, "stmatrix copies from registers to shared memory");
  Requires(DTypeBytes(dst.dtype) == 2 && (src.dtype == dst.dtype || src.dtype == DType::kFloat32),
           "stmatrix stores 16-bit elements, of ", DTypeName(src.dtype), " to ", DTypeName(dst.dtype), " it does not");
  if (!Requires(op.layout.dims.size() == 2, "stmatrix moves tiles of two dimensions, not ", op.layout.dims.size())) return;
  Requires(op.dst.follows.back() == 1, "the last dimension of ", Name(op.dst.buffer), " must follow dimension 1 of the copy");
  Requires(dst.shared.pitch % 16 == 0 && (dst.shared.panel == dst.shared.pitch || dst.shared.panel % 16 == 0), "rows of ",
           Name(op.dst.buffer), " are ", dst.shared.pitch, " bytes apart, no multiple of 16");
  // A lane holds two neighbouring elements of a row of an 8×8 matrix; the rows go along either dimension.
  const auto is_pair = [&](size_t d) {
    const std::vector<Factor>& row = op.layout.dims[d].factors;
    const std::vector<Factor>& column = op.layout.dims[1 - d].factors;
    return row.size() >= 2 && row[0] == Factor{2, Owner::kReg, 1} && row[1] == Factor{4, Owner::kLane, 1} && !column.empty() &&
           column[0] == Factor{8, Owner::kLane, 4};
  };
  Requires(is_pair(0) || is_pair(1), "its layout is not made of 8x8 matrices: ", ToString(op.layout));
  for (const LayoutDim& dim : op.layout.dims) Requires(dim.padded() == dim.extent, "its layout is padded: ", ToString(op.layout));
}

void KernelVerifier::Check(const CpAsyncWait& op) {
  Requires(op.pending >= 0, "waits for ", op.pending, " groups");
  for (const Retired& retired : op.retires) {
    if (!Requires(retired.buffer < kernel_.buffers.size(), "retires ", Name(retired.buffer))) return;
    Requires(kernel_.buffers[retired.buffer].space == Space::kShared, "retires ", Name(retired.buffer),
             ", which is not in shared memory");
    Integer(retired.version, "retired version");
  }
}

void KernelVerifier::Check(const LaneReduce& op) {
  const Buffer *src = Register(op.src, "source"), *dst = Register(op.dst, "destination");
  Requires(op.op != ReduceOp::kInvalid, "no operation");
  if (failed()) return;
  if (!Requires(op.axis >= 0 && op.axis < static_cast<int>(src->layout.dims.size()), "reduces axis ", op.axis, " of ",
                Name(op.src)))
    return;
  const auto& factors = src->layout.dims[static_cast<size_t>(op.axis)].factors;
  const bool several =
      std::any_of(factors.begin(), factors.end(), [](const Factor& f) { return f.owner == Owner::kWarp && f.size > 1; });
  Requires(op.keep_warps || !several, "several warps hold axis ", op.axis, " of ", Name(op.src),
           ", so their partial results must be kept apart");
  const FragmentLayout expected = ReducedLayout(src->layout, op.axis, op.keep_warps);
  Requires(CanWrite(dst->layout, expected), Name(op.dst), " does not hold what the reduction of ", Name(op.src),
           " leaves: it is ", ToString(dst->layout), ", the result ", ToString(expected));
}

void KernelVerifier::Check(const Mma& op) {
  const Buffer *acc = Register(op.acc, "accumulator"), *a = Register(op.a, "operand"), *b = Register(op.b, "operand");
  if (failed()) return;
  const bool same = a->dtype == b->dtype,
             bytes_of_a_kind = IsByte(a->dtype) && IsByte(b->dtype) && IsFloat(a->dtype) == IsFloat(b->dtype);
  Requires((same && (Is16BitFloat(a->dtype) || a->dtype == DType::kFloat32)) || bytes_of_a_kind, "operands are ",
           DTypeName(a->dtype), " and ", DTypeName(b->dtype),
           ", mma takes two of float16, bfloat16 or tf32, of float8 or of 8-bit integers");
  const DType sum = IsFloat(a->dtype) ? DType::kFloat32 : DType::kInt32;
  Requires(acc->dtype == sum || (acc->dtype == DType::kFloat16 && a->dtype == DType::kFloat16), "cannot accumulate ",
           DTypeName(a->dtype), " products in ", DTypeName(acc->dtype));
  for (const Buffer* buffer : {acc, a, b}) {
    Requires(buffer->layout.dims.size() == 2, "'", buffer->name, "' has ", buffer->layout.dims.size(), " dimensions, not two");
  }
  if (failed()) return;
  const int64_t m = acc->layout.dims[0].extent, n = acc->layout.dims[1].extent, k = a->layout.dims[1].extent;
  const std::vector<WarpGrid> grids = WarpGrids(warps_);
  const bool known = std::any_of(grids.begin(), grids.end(), [&](WarpGrid grid) {
    return SameFunction(acc->layout, MmaAccumulatorLayout(m, n, grid)) &&
           SameFunction(a->layout, MmaOperandALayout(m, k, grid, DTypeBytes(a->dtype))) &&
           SameFunction(b->layout, MmaOperandBLayout(n, k, grid, DTypeBytes(b->dtype)));
  });
  Requires(known, "the layouts are not those of mma over any grid of ", warps_, " warps: accumulator ", ToString(acc->layout),
           "; a ", ToString(a->layout), "; b ", ToString(b->layout));
}

}  // namespace tilert::kir
