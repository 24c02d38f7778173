// Statements that move registers between the lanes of a warp: which element is where, checked against what the instructions do.
#include <map>
#include <set>

#include "ir/status_util.h"
#include "lowering/simulator/compiled.h"

namespace tilert::sim {
namespace {

// PTX ISA, "Matrix Fragments for mma.m16n8k16": row and column of register i of a lane, within the atom. B's rows are its n.
struct Atom {
  int regs, rows, columns;
  int (*row)(int lane, int i);
  int (*column)(int lane, int i);
};
constexpr Atom kAccumulator = {4, 16, 8, [](int lane, int i) { return lane / 4 + (i >= 2 ? 8 : 0); },
                               [](int lane, int i) { return lane % 4 * 2 + i % 2; }};
// One 8×8 matrix of stmatrix: of such pairs of registers, wherever they are; and of stmatrix.trans.
constexpr Atom kMatrix = {2, 8, 8, [](int lane, int) { return lane / 4; }, [](int lane, int i) { return lane % 4 * 2 + i; }};
constexpr Atom kTurnedMatrix = {2, 8, 8, [](int lane, int i) { return lane % 4 * 2 + i; }, [](int lane, int) { return lane / 4; }};
// The same for operands of 8 bits (m16n8k32) and of tf32 (m16n8k8).
constexpr Atom kByteA = {16, 16, 32, [](int lane, int i) { return lane / 4 + (i % 8 >= 4 ? 8 : 0); },
                         [](int lane, int i) { return lane % 4 * 4 + i % 4 + (i >= 8 ? 16 : 0); }};
constexpr Atom kByteB = {8, 8, 32, [](int lane, int) { return lane / 4; },
                         [](int lane, int i) { return lane % 4 * 4 + i % 4 + (i >= 4 ? 16 : 0); }};
constexpr Atom kTf32A = {4, 16, 8, [](int lane, int i) { return lane / 4 + (i % 2 != 0 ? 8 : 0); },
                         [](int lane, int i) { return lane % 4 + (i >= 2 ? 4 : 0); }};
constexpr Atom kTf32B = {2, 8, 8, [](int lane, int) { return lane / 4; }, [](int lane, int i) { return lane % 4 + 4 * i; }};
constexpr Atom kOperandA = {8, 16, 16, [](int lane, int i) { return lane / 4 + (i % 4 >= 2 ? 8 : 0); },
                            [](int lane, int i) { return lane % 4 * 2 + i % 2 + (i >= 4 ? 8 : 0); }};
constexpr Atom kOperandB = {4, 8, 16, [](int lane, int) { return lane / 4; },
                            [](int lane, int i) { return lane % 4 * 2 + i % 2 + (i >= 2 ? 8 : 0); }};

const Atom& AtomOfA(int bytes) { return bytes == 1 ? kByteA : bytes == 2 ? kOperandA : kTf32A; }
const Atom& AtomOfB(int bytes) { return bytes == 1 ? kByteB : bytes == 2 ? kOperandB : kTf32B; }

// What mma.sync multiplies and sums up.
bool IsMma(DType a, DType b, DType sum) {
  const auto is_float8 = [](DType type) { return type == DType::kFloat8E4M3 || type == DType::kFloat8E5M2; };
  const auto is_int8 = [](DType type) { return type == DType::kInt8 || type == DType::kUInt8; };
  if (is_float8(a)) return is_float8(b) && sum == DType::kFloat32;
  if (is_int8(a)) return is_int8(b) && sum == DType::kInt32;
  if (a != b || (a != DType::kFloat16 && a != DType::kBFloat16 && a != DType::kFloat32)) return false;
  return sum == DType::kFloat32 || (sum == DType::kFloat16 && a == sum);
}

bool IsTiledBy(const LayoutTables& layout, const Atom& atom) {
  if (layout.rank() != 2 || layout.regs() % atom.regs != 0) return false;
  for (int w = 0; w < layout.warps(); ++w) {
    for (int64_t r = 0; r < layout.regs(); ++r) {
      const int i = static_cast<int>(r % atom.regs);
      const int64_t row = layout.Coord(r - i, 0, w, 0), column = layout.Coord(r - i, 0, w, 1);
      if (!layout.HoldsElement(r) || row % atom.rows != 0 || column % atom.columns != 0) return false;
      for (int l = 0; l < kLanes; ++l) {
        if (layout.Coord(r, l, w, 0) != row + atom.row(l, i) || layout.Coord(r, l, w, 1) != column + atom.column(l, i))
          return false;
      }
    }
  }
  return true;
}

using Index = std::map<int64_t, int64_t>;  // coordinate → position among those that occur

void Number(Index& index) {
  int64_t next = 0;
  for (auto& [coord, position] : index) position = next++;
}

// The registers of a warp that hold operand elements of the rows in `rows`, as cells of a dense matrix.
std::vector<CMma::Element> Operand(const LayoutTables& layout, int warp, const Index& rows, int64_t row_pitch, int64_t k_pitch,
                                   bool* complete) {
  std::vector<CMma::Element> elements;
  std::set<int64_t> cells;
  for (int64_t r = 0; r < layout.regs(); ++r) {
    for (int l = 0; l < kLanes; ++l) {
      const auto row = rows.find(layout.Coord(r, l, warp, 0));
      if (row == rows.end()) continue;
      const int64_t cell = row->second * row_pitch + layout.Coord(r, l, warp, 1) * k_pitch;
      if (!cells.insert(cell).second) continue;
      elements.push_back({static_cast<int32_t>(cell), static_cast<int32_t>(r), l});
    }
  }
  *complete = cells.size() == rows.size() * static_cast<size_t>(layout.padded(1));
  return elements;
}

CMma::PerWarp Accumulators(const LayoutTables& acc, int warp, Index& rows, Index& columns) {
  CMma::PerWarp result;
  auto for_each = [&](auto visit) {
    for (int64_t r = 0; r < acc.regs(); ++r) {
      for (int l = 0; l < kLanes; ++l) {
        if (acc.Valid(r, warp) >> l & 1) visit(acc.Coord(r, l, warp, 0), acc.Coord(r, l, warp, 1), static_cast<int32_t>(r), l);
      }
    }
  };
  for_each([&](int64_t row, int64_t column, int32_t, int) { rows[row], columns[column]; });
  Number(rows);
  Number(columns);
  result.m = static_cast<int64_t>(rows.size());
  result.n = static_cast<int64_t>(columns.size());
  for_each([&](int64_t row, int64_t column, int32_t r, int l) {
    result.acc.push_back({static_cast<int32_t>(rows[row] * result.n + columns[column]), r, l});
  });
  return result;
}

}  // namespace

absl::StatusOr<CMma> CompileMma(const Compiled& kernel, const kir::Mma& mma) {
  const BufferInfo &acc = kernel.buffers[mma.acc], &a = kernel.buffers[mma.a], &b = kernel.buffers[mma.b];
  if (acc.layout == nullptr || a.layout == nullptr || b.layout == nullptr)
    return Internal("operands of Mma must be in registers");
  const DType type = a.source->dtype;
  const DType sum = acc.source->dtype;
  if (!IsMma(type, b.source->dtype, sum)) {
    return Internal("no mma for operands ", DTypeName(type), ", ", DTypeName(b.source->dtype), " and accumulator ",
                    DTypeName(sum));
  }
  if (!IsTiledBy(*acc.layout, kAccumulator)) return Internal(acc.source->name, " is not laid out as an accumulator of mma.m16n8");
  if (!IsTiledBy(*a.layout, AtomOfA(a.bytes))) return Internal(a.source->name, " is not laid out as operand A of mma.m16n8");
  if (!IsTiledBy(*b.layout, AtomOfB(b.bytes))) return Internal(b.source->name, " is not laid out as operand B of mma.m16n8");
  if (a.layout->padded(1) != b.layout->padded(1)) {
    return Internal("K of ", a.source->name, " is ", a.layout->padded(1), " but of ", b.source->name, " ", b.layout->padded(1));
  }
  CMma result{mma.acc, mma.a, mma.b, a.layout->padded(1), {}};
  for (int w = 0; w < acc.layout->warps(); ++w) {
    Index rows, columns;
    CMma::PerWarp warp = Accumulators(*acc.layout, w, rows, columns);
    bool a_complete = true, b_complete = true;
    warp.a = Operand(*a.layout, w, rows, result.k, 1, &a_complete);
    warp.b = Operand(*b.layout, w, columns, 1, warp.n, &b_complete);
    if (!a_complete || !b_complete) {
      return Internal("warp ", w, " does not hold all elements of ", (a_complete ? b : a).source->name, " that its part of ",
                      acc.source->name, " needs");
    }
    result.warps.push_back(std::move(warp));
  }
  return result;
}

namespace {

// Coordinates but for `axis`, as one number.
int64_t KeyOf(const LayoutTables& layout, int64_t reg, int lane, int warp, int axis) {
  int64_t key = 0;
  for (int d = 0; d < layout.rank(); ++d) {
    if (d != axis) key = (key << 20) | layout.Coord(reg, lane, warp, d);
  }
  return key;
}

std::string CheckReduceAxis(const LayoutTables& src, const LayoutTables& dst, int axis, bool keep_warps) {
  for (int w = 0; w < src.warps(); ++w) {
    const int64_t part = src.Coord(0, 0, w, axis);
    if (!keep_warps && part != 0) return "several warps share the reduced dimension, but keep_warps is not set";
    for (int v = 0; keep_warps && v < w; ++v) {
      if ((src.Coord(0, 0, v, axis) == part) != (dst.Coord(0, 0, v, axis) == dst.Coord(0, 0, w, axis))) {
        return "the kept dimension of the result does not tell the warps of the reduced dimension apart";
      }
    }
  }
  for (int64_t r = 0; keep_warps && r < dst.regs(); ++r) {
    for (int l = 0; l < kLanes; ++l) {
      if (dst.HoldsElement(r) && dst.Coord(r, l, 0, axis) != dst.Coord(0, 0, 0, axis)) {
        return "the kept dimension of the result is not spread over warps only";
      }
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<CLaneReduce> CompileLaneReduce(const Compiled& kernel, const kir::LaneReduce& reduce) {
  const BufferInfo &from = kernel.buffers[reduce.src], &to = kernel.buffers[reduce.dst];
  if (from.layout == nullptr || to.layout == nullptr) return Internal("operands of LaneReduce must be in registers");
  const LayoutTables &src = *from.layout, &dst = *to.layout;
  if (reduce.axis < 0 || reduce.axis >= src.rank() || dst.rank() != src.rank() - (reduce.keep_warps ? 0 : 1) ||
      src.warps() != dst.warps()) {
    return Internal("ranks of ", from.source->name, " and ", to.source->name, " do not fit a reduction over dimension ",
                    reduce.axis);
  }
  if (const std::string fault = CheckReduceAxis(src, dst, reduce.axis, reduce.keep_warps); !fault.empty()) return Internal(fault);
  CLaneReduce result{reduce.op, reduce.dst, reduce.src, reduce.accumulate, {}};
  for (int w = 0; w < src.warps(); ++w) {
    CLaneReduce::PerWarp warp;
    std::map<int64_t, int32_t> cells;
    std::vector<std::set<int64_t>> of_lane(kLanes);  // results that the lane takes part in
    for (int64_t r = 0; r < src.regs(); ++r) {
      for (int l = 0; l < kLanes && src.HoldsElement(r); ++l) {
        const int64_t key = KeyOf(src, r, l, w, reduce.axis);
        of_lane[l].insert(key);
        const int32_t cell = cells.try_emplace(key, static_cast<int32_t>(cells.size())).first->second;
        if (src.Valid(r, w) & src.LaneReplicaZero() & uint32_t{1} << l)
          warp.sources.push_back({cell, static_cast<int32_t>(r), l});
      }
    }
    for (int64_t r = 0; r < dst.regs(); ++r) {
      for (int l = 0; l < kLanes; ++l) {
        if ((dst.Valid(r, w) >> l & 1) == 0) continue;
        const int64_t key = KeyOf(dst, r, l, w, reduce.keep_warps ? reduce.axis : -1);
        if (of_lane[l].count(key) == 0) {
          return Internal("lane ", l, " of warp ", w, " is to hold a result in register ", r, " of ", to.source->name,
                          " to which it contributes nothing");
        }
        warp.targets.push_back({cells[key], static_cast<int32_t>(r), l});
      }
    }
    warp.cells = static_cast<int32_t>(cells.size());
    result.warps.push_back(std::move(warp));
  }
  return result;
}

namespace {

std::string CheckSide(const BufferInfo& buffer, const kir::TileAccess& access, int rank) {
  const size_t dims = buffer.shape.size();
  if (access.start.size() != dims || access.follows.size() != dims || access.inside.size() != dims) {
    return Cat("access to ", buffer.source->name, " has not one start, follows and inside a dimension");
  }
  for (int follows : access.follows) {
    if (follows >= rank) return Cat("access to ", buffer.source->name, " follows a dimension that is not there");
  }
  return "";
}

// `width` consecutive registers from a multiple of it hold consecutive elements of the last dimension, or nothing.
bool HoldsVectors(const LayoutTables& layout, int64_t width) {
  if (layout.rank() == 0 || layout.regs() % width != 0) return false;
  const int last = layout.rank() - 1;
  for (int64_t r = 0; r < layout.regs(); ++r) {
    const int64_t first = r - r % width;
    if (layout.HoldsElement(r) != layout.HoldsElement(first)) return false;
    for (int d = 0; layout.HoldsElement(r) && d <= last; ++d) {
      if (layout.Coord(r, 0, 0, d) != layout.Coord(first, 0, 0, d) + (d == last ? r % width : 0)) return false;
    }
  }
  return true;
}

std::string CheckLdmatrix(const BufferInfo& dst, const BufferInfo& src, const kir::Copy& copy, const LayoutTables& layout) {
  if (src.source->space != kir::Space::kShared || dst.layout == nullptr || src.source->dtype != dst.source->dtype ||
      (src.bytes != 2 && !(src.bytes == 1 && copy.method == kir::CopyMethod::kLdmatrix))) {
    return "ldmatrix moves 16-bit elements, or pairs of bytes along rows, from shared memory to registers";
  }
  if (!IsTiledBy(layout, AtomOfA(src.bytes)) && !IsTiledBy(layout, AtomOfB(src.bytes)))
    return "the layout is not an operand of mma.m16n8";
  if (copy.src.follows.back() != (copy.method == kir::CopyMethod::kLdmatrix ? 1 : 0))
    return "rows of the matrices do not lie along the buffer's last dimension";
  return "";
}

std::string CheckStmatrix(const BufferInfo& dst, const BufferInfo& src, const kir::Copy& copy, const LayoutTables& layout) {
  if (dst.source->space != kir::Space::kShared || src.layout == nullptr || dst.bytes != 2)
    return "stmatrix moves registers to 16-bit elements in shared memory";
  if (!IsTiledBy(layout, kMatrix) && !IsTiledBy(layout, kTurnedMatrix)) return "the layout does not consist of 8×8 matrices";
  if (copy.dst.follows.back() != 1) return "rows of the matrices do not lie along the buffer's last dimension";
  return "";
}

std::string CheckMethod(const BufferInfo& dst, const BufferInfo& src, const kir::Copy& copy, const LayoutTables& layout) {
  switch (copy.method) {
    case kir::CopyMethod::kLdmatrix:
    case kir::CopyMethod::kLdmatrixTrans: return CheckLdmatrix(dst, src, copy, layout);
    case kir::CopyMethod::kStmatrix: return CheckStmatrix(dst, src, copy, layout);
    case kir::CopyMethod::kRegister: return dst.layout == nullptr || src.layout == nullptr ? "both sides must be registers" : "";
    case kir::CopyMethod::kCpAsync: {
      const int64_t bytes = copy.width * src.bytes;
      if (src.source->space != kir::Space::kGlobal || dst.source->space != kir::Space::kShared ||
          src.source->dtype != dst.source->dtype) {
        return "cp.async moves elements of one type from global to shared memory";
      }
      if (bytes != 4 && bytes != 8 && bytes != 16) return Cat("cp.async cannot move ", bytes, " bytes");
      break;
    }
    case kir::CopyMethod::kVector: break;
  }
  if (copy.width < 1) return "width must be positive";
  return copy.width > 1 && !HoldsVectors(layout, copy.width)
             ? Cat("the layout does not hold vectors of ", copy.width, " elements")
             : "";
}

}  // namespace

absl::Status CheckCopy(const Compiled& kernel, const kir::Copy& copy, const LayoutTables& layout) {
  const BufferInfo &dst = kernel.buffers[copy.dst.buffer], &src = kernel.buffers[copy.src.buffer];
  for (const std::string& fault :
       {CheckSide(dst, copy.dst, layout.rank()), CheckSide(src, copy.src, layout.rank()), CheckMethod(dst, src, copy, layout)}) {
    if (!fault.empty()) return Internal(fault);
  }
  return absl::OkStatus();
}

}  // namespace tilert::sim
