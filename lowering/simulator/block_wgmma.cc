// wgmma: each warp does its 16 of every 64 rows, but reads what its warpgroup reads.
#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

typedef float Quad __attribute__((vector_size(16), aligned(4), may_alias));  // NOLINT: no attribute of `using`

// c[m][n] += a[row_of[m]][k] · b[k][n]: each sum in ascending k, rounded to float32 after every product. n is a multiple of 8.
void MultiplyInto(const float* a, const std::vector<int32_t>& row_of, int64_t depth, const float* b, int64_t pitch,
                  int64_t columns, float* c) {
  for (int64_t k = 0; k < depth; ++k) {
    const float* b_row = b + k * pitch;
    for (size_t m = 0; m < row_of.size(); ++m) {
      const float factor = a[row_of[m] * depth + k];
      const Quad factors = {factor, factor, factor, factor};
      float* row = c + static_cast<int64_t>(m) * columns;
      for (int64_t n = 0; n < columns; n += 4)
        *reinterpret_cast<Quad*>(row + n) += factors * *reinterpret_cast<const Quad*>(b_row + n);
    }
  }
}

float HalfToFloat(uint16_t code) {
  uint32_t bits = (code & 0x7fffu) << 13;
  float value = std::bit_cast<float>(bits) * 0x1p112f;  // moves the exponent; subnormals come out right
  if ((code & 0x7c00u) == 0x7c00u) value = std::bit_cast<float>(bits | 0x7f800000u);
  return code & 0x8000u ? -value : value;
}

// Elements of an operand type as floats. tf32 is float32 whose low 13 bits are not looked at.
class Decoder {
 public:
  explicit Decoder(DType type) : type_(type), bytes_(DTypeBytes(type)) {
    if (bytes_ != 1) return;
    for (int code = 0; code < 256; ++code) {
      const auto byte = static_cast<uint8_t>(code);
      Value value;
      LoadRow(type, &byte, 1, 1, &value);
      table_[static_cast<size_t>(code)] = IsFloat(type) ? static_cast<float>(value.f) : static_cast<float>(value.i);
    }
  }
  float operator()(const uint8_t* memory) const {
    if (bytes_ == 1) return table_[*memory];
    uint32_t bits = 0;
    std::memcpy(&bits, memory, static_cast<size_t>(bytes_));
    if (type_ == DType::kFloat16) return HalfToFloat(static_cast<uint16_t>(bits));
    return std::bit_cast<float>(bytes_ == 2 ? bits << 16 : bits & 0xffffe000u);
  }

 private:
  DType type_;
  int bytes_;
  std::array<float, 256> table_{};
};

}  // namespace

int AsyncWork::StmtOf(const Warp& warp, uint32_t group) const {
  int stmt = warp.stmt->number;
  for (const PendingWgmma& work : warp.wgmmas) {
    if (work.group == group) stmt = work.stmt->number;
  }
  return stmt;
}

// Accumulators and A may not have been touched since the last fence, nor be in use by other work in flight. An accumulator that is not cleared was named by a
// fence since it was touched.
bool AsyncWork::TouchRegisters(Warp& warp, const CWgmma& gemm, bool zero) {
  const auto check = [&](BufferId buffer, bool accumulates) {
    Registers& registers = warp.registers[buffer];
    const std::string& name = kernel_.buffers[buffer].source->name;
    if (registers.data.empty()) {  // never declared
      block_.Declare(warp, {buffer, false});
      registers.needs_fence = false;
    }
    if (accumulates && !zero && registers.unnamed)
      block_.Fail(warp, 0, Cat("registers of ", name, " were touched and no WgmmaFence since then names them"));
    if (accumulates && zero) registers.unnamed = false;
    const uint32_t other = accumulates ? registers.wgmma_a : registers.wgmma_acc;
    if (registers.needs_fence) block_.Fail(warp, 0, Cat("registers of ", name, " were touched and no WgmmaFence stands between"));
    if (other > warp.wgmma_retired)
      block_.Fail(warp, 0, Cat("registers of ", name, " are still in use by the wgmma at ", block_.PathOf(StmtOf(warp, other))));
    (accumulates ? registers.wgmma_acc : registers.wgmma_a) = warp.wgmma_group;
  };
  check(gemm.acc, true);
  if (gemm.a_in_registers) check(gemm.a.buffer, false);
  return !block_.failed();
}

// Rows first … first + count of the operand, all of K.
void AsyncWork::TouchOperand(Warp& warp, const CAccess& access, const std::vector<int64_t>& start, int64_t first, int64_t count,
                             int64_t depth) {
  const BufferInfo& info = kernel_.buffers[access.buffer];
  const size_t last = start.size() - 1;
  int64_t flat = 0, row_stride = 0, k_stride = 0, outer_row = 0;
  for (size_t d = 0; d < start.size(); ++d) {
    const int follows = access.follows[d];
    const int64_t begin = start[d] + (follows == 0 ? first : 0), extent = follows == 0 ? count : follows == 1 ? depth : 1;
    if (begin < 0 || begin + extent > info.shape[d]) {
      return block_.Fail(warp, 0,
                         Cat("reads ", info.source->name, " from ", begin, " to ", begin + extent, " of its extent ",
                             info.shape[d], " in dimension ", d, d == 0 ? ": no such version" : ""));
    }
    if (d == 0) continue;
    flat += begin * info.strides[d - 1];
    if (d != last) outer_row = outer_row * info.shape[d] + begin;
    if (follows == 0) row_stride = info.strides[d - 1];
    if (follows == 1) k_stride = info.strides[d - 1];
  }
  if (outer_row % 8 != 0 || start[last] * info.bytes % SharedShadow::kSectorBytes != 0)
    return block_.Fail(warp, 0, Cat("an operand of wgmma begins within an atom of 8 rows of 16 bytes of ", info.source->name));
  const int64_t step = SharedShadow::kSectorBytes / info.bytes, base = info.source->offset + start[0] * info.version_bytes;
  const bool k_major = access.follows[last] == 1;
  const Observer now = AsyncObserver(warp, kNoLane, block_.components_.Wgmma(warp.component), warp.wgmma_group);
  for (int64_t r = 0; r < count; r += k_major ? 1 : step) {
    for (int64_t k = 0; k < depth; k += k_major ? step : 1) {
      const auto sector = static_cast<size_t>((base + info.offsets[static_cast<size_t>(flat + r * row_stride + k * k_stride)]) /
                                              SharedShadow::kSectorBytes);
      Agent other;
      const char* fault = block_.shared_shadow_.TouchAsync(sector, false, now, &other);
      const std::string where = fault != nullptr || !block_.shared_shadow_.SectorDefined(sector)
                                    ? Cat("version ", start[0], " of ", info.source->name, ", row ", first + r, ", k ", k, ": ")
                                    : "";
      if (fault != nullptr) return block_.Fail(warp, 0, Cat(where, fault, " ", block_.Describe(other)));
      if (!where.empty()) return block_.Fail(warp, 0, Cat(where, "was never written"));
    }
  }
  block_.run_.report->shared_accesses += count * depth;
}

void AsyncWork::Issue(Warp& warp, const CStmt& stmt, const CWgmma& gemm) {
  PendingWgmma work;
  work.stmt = &stmt;
  work.group = warp.wgmma_group;
  work.zero = gemm.has_zero && block_.Uniform(warp, gemm.zero).i != 0;
  for (const Code& code : gemm.a.start) work.a.push_back(block_.Uniform(warp, code).i);
  for (const Code& code : gemm.b.start) work.b.push_back(block_.Uniform(warp, code).i);
  if (block_.failed() || !TouchRegisters(warp, gemm, work.zero)) return;
  const CWgmma::PerWarp& part = gemm.warps[static_cast<size_t>(warp.index)];
  if (!gemm.a_in_registers) TouchOperand(warp, gemm.a, work.a, part.row0, part.rows, gemm.k);
  if (!block_.failed()) TouchOperand(warp, gemm.b, work.b, part.column0, part.columns, gemm.k);
  if (gemm.a_in_registers && std::any_of(work.a.begin(), work.a.end(), [](int64_t s) { return s != 0; }))
    block_.Fail(warp, 0, "A in registers is taken as a whole");
  ++block_.run_.report->wgmmas;
  warp.wgmmas.push_back(std::move(work));
}

void AsyncWork::Run(Warp& warp, const CWgmmaWait& wait) {
  const uint32_t committed = warp.wgmma_group - 1;
  const uint32_t done = committed > static_cast<uint32_t>(wait.pending) ? committed - static_cast<uint32_t>(wait.pending) : 0;
  while (!warp.wgmmas.empty() && warp.wgmmas.front().group <= done) {
    if (!warp.wgmmas.front().done) Multiply(warp, warp.wgmmas.front());
    warp.wgmmas.pop_front();
  }
  warp.wgmma_retired = std::max(warp.wgmma_retired, done);
  warp.clock.seen[static_cast<size_t>(block_.components_.Wgmma(warp.component))] = warp.wgmma_retired;
  for (const CRetired& retired : wait.retires) {
    const int64_t version = retired.has_version ? block_.Uniform(warp, retired.version).i : 0;
    for (const PendingWgmma& work : warp.wgmmas) {
      const auto& gemm = std::get<CWgmma>(work.stmt->op);
      const auto reads = [&](const CAccess& access, const std::vector<int64_t>& start) {
        return access.buffer == retired.buffer && (kernel_.buffers[access.buffer].layout != nullptr || start[0] == version);
      };
      if (gemm.acc != retired.buffer && !reads(gemm.a, work.a) && !reads(gemm.b, work.b)) continue;
      return block_.Fail(warp, 0,
                         Cat("declares ", kernel_.buffers[retired.buffer].source->name, " retired, but the wgmma at ",
                             block_.PathOf(work.stmt->number), " may still use it"));
    }
  }
}

const std::vector<float>& AsyncWork::Pack(const CWgmma& gemm, const CAccess& access, const std::vector<int64_t>& start,
                                          bool is_b) {
  const BufferInfo& info = kernel_.buffers[access.buffer];
  const uint64_t stamp = written_[access.buffer] + landed_[access.buffer][static_cast<size_t>(start[0])];
  std::vector<Packed>& known = packed_[static_cast<size_t>(gemm.number)][is_b ? 1 : 0];
  auto found = std::find_if(known.begin(), known.end(), [&](const Packed& packed) { return packed.start == start; });
  if (found == known.end()) found = known.insert(known.end(), Packed{start, ~stamp, {}});
  if (found->stamp == stamp) return found->values;
  found->stamp = stamp;
  const int64_t rows = is_b ? gemm.n : gemm.m;
  found->values.resize(static_cast<size_t>(rows * gemm.k));
  int64_t flat = 0, row_stride = 0, k_stride = 0;
  for (size_t d = 1; d < start.size(); ++d) {
    flat += start[d] * info.strides[d - 1];
    if (access.follows[d] == 0) row_stride = info.strides[d - 1];
    if (access.follows[d] == 1) k_stride = info.strides[d - 1];
  }
  const Decoder decode(info.source->dtype);
  const uint8_t* base = block_.shared_.data() + info.source->offset + start[0] * info.version_bytes;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < gemm.k; ++k) {
      const float value = decode(base + info.offsets[static_cast<size_t>(flat + r * row_stride + k * k_stride)]);
      found->values[static_cast<size_t>(is_b ? k * rows + r : r * gemm.k + k)] = value;
    }
  }
  return found->values;
}

std::vector<float> AsyncWork::GatherRegisters(Warp& warp, BufferId buffer, const std::vector<CElement>& elements, size_t cells,
                                              int stmt, bool is_operand) {
  const BufferInfo& info = kernel_.buffers[buffer];
  const Registers& registers = warp.registers[buffer];
  const auto bytes = static_cast<size_t>(info.bytes);
  const bool is_float = info.source->dtype == DType::kFloat32 && !is_operand;
  const Decoder decode(info.source->dtype);
  std::vector<float> dense(cells);
  for (const CElement& e : elements) {
    if ((registers.defined[static_cast<size_t>(e.reg)] >> e.lane & 1) == 0) {
      FailAt(stmt, Cat(block_.NameOf(warp), " lane ", e.lane, ": uses register ", e.reg, " of ", info.source->name,
                       ", which was never written"));
      break;
    }
    const uint8_t* from = &registers.data[(static_cast<size_t>(e.reg) * kLanes + static_cast<size_t>(e.lane)) * bytes];
    float& to = dense[static_cast<size_t>(e.cell)];
    if (is_float) {
      std::memcpy(&to, from, 4);
    } else {
      to = decode(from);
    }
  }
  return dense;
}

void AsyncWork::Multiply(Warp& warp, const PendingWgmma& work) {
  const auto& gemm = std::get<CWgmma>(work.stmt->op);
  const CWgmma::PerWarp& part = gemm.warps[static_cast<size_t>(warp.index)];
  const BufferInfo& acc = kernel_.buffers[gemm.acc];
  const size_t cells = part.row_of.size() * static_cast<size_t>(part.columns);
  const DType type = acc.source->dtype;
  std::vector<float> c(cells);
  if (!work.zero) c = GatherRegisters(warp, gemm.acc, part.acc, cells, work.stmt->number, false);
  if (type == DType::kInt32) std::fill(c.begin(), c.end(), 0.0f);  // added below
  std::vector<int32_t> rows = part.row_of;
  std::vector<float> own;
  if (gemm.a_in_registers) {
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
    own = GatherRegisters(warp, gemm.a.buffer, part.a, rows.size() * static_cast<size_t>(gemm.k), work.stmt->number, true);
  }
  if (block_.failed()) return;
  const std::vector<float>& a = gemm.a_in_registers ? own : Pack(gemm, gemm.a, work.a, false);
  const std::vector<float>& b = Pack(gemm, gemm.b, work.b, true);
  MultiplyInto(a.data(), rows, gemm.k, b.data() + part.column0, gemm.n, part.columns, c.data());
  Registers& registers = warp.registers[gemm.acc];
  const auto bytes = static_cast<size_t>(acc.bytes);
  for (const CElement& e : part.acc) {
    const float sum = c[static_cast<size_t>(e.cell)];
    uint8_t* to = &registers.data[(static_cast<size_t>(e.reg) * kLanes + static_cast<size_t>(e.lane)) * bytes];
    if (type == DType::kFloat32) {
      std::memcpy(to, &sum, 4);
      continue;
    }
    uint64_t raw = 0;
    if (type == DType::kInt32) {  // the products of one statement are exact in float32
      if (!work.zero) std::memcpy(&raw, to, 4);
      raw += static_cast<uint64_t>(static_cast<int64_t>(sum));
    } else {
      raw = EncodeFloat(type, static_cast<double>(sum));
    }
    std::memcpy(to, &raw, bytes);
  }
  std::fill(registers.defined.begin(), registers.defined.end(), 0xffffffffu);
}

}  // namespace tilert::sim
