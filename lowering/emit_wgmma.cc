// wgmma: one asm statement an instruction, in a function for each shape that a kernel uses; operands and loops around them.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/emit_place.h"

namespace tilert {
namespace {

constexpr int64_t kStepBytes = 32;  // of K that an instruction takes
constexpr int64_t kBlockRows = 64;  // of M
constexpr int64_t kUnit = 16;       // bytes that descriptors count in

std::string_view PtxType(DType type) {
  switch (type) {
    case DType::kFloat16: return "f16";
    case DType::kBFloat16: return "bf16";
    case DType::kFloat32: return "tf32";
    case DType::kFloat8E4M3: return "e4m3";
    case DType::kFloat8E5M2: return "e5m2";
    case DType::kInt8: return "s8";
    case DType::kUInt8: return "u8";
    default: return "?";
  }
}

// One instruction: its shape, types and where its operands are.
struct Instruction {
  int64_t n = 0, k = 0;
  DType acc = DType::kInvalid, a = DType::kInvalid, b = DType::kInvalid;
  bool a_registers = false, a_mn_major = false, b_mn_major = false;

  std::string_view AccType() const { return acc == DType::kFloat32 ? "f32" : acc == DType::kFloat16 ? "f16" : "s32"; }
  std::string Shape() const { return Cat("m64n", n, "k", k); }
  std::string Types() const { return Cat(AccType(), ".", PtxType(a), ".", PtxType(b)); }
  // wgmma_m64n256k16_f32_bf16_bf16_kk: the last letters tell A's and B's majors, r for registers.
  std::string Name() const {
    return Cat("wgmma_", Shape(), "_", AccType(), "_", PtxType(a), "_", PtxType(b), "_",
               a_registers  ? "r"
               : a_mn_major ? "m"
                            : "k",
               b_mn_major ? "m" : "k");
  }
  int64_t AccRegisters() const { return acc == DType::kFloat16 ? n / 4 : n / 2; }
};

bool IsMnMajor(const kir::TileAccess& side) { return side.follows.back() == 0; }

Instruction InstructionOf(const kir::Kernel& kernel, const kir::Wgmma& s) {
  const kir::Buffer &a = kernel.buffers[s.a.buffer], &b = kernel.buffers[s.b.buffer];
  Instruction i;
  i.n = s.n / s.grid.n;
  i.k = kStepBytes / DTypeBytes(a.dtype);
  i.acc = kernel.buffers[s.acc].dtype;
  i.a = a.dtype;
  i.b = b.dtype;
  i.a_registers = a.space == kir::Space::kRegister;
  i.a_mn_major = !i.a_registers && IsMnMajor(s.a);
  i.b_mn_major = IsMnMajor(s.b);
  return i;
}

template <typename Visit>
void ForEachWgmma(const kir::Block& block, const Visit& visit) {
  for (const kir::Stmt& stmt : block) {
    if (auto* s = std::get_if<kir::Wgmma>(&stmt.op)) visit(*s);
    for (const kir::Block* child : kir::ChildBlocks(stmt)) ForEachWgmma(*child, visit);
  }
}

std::vector<Instruction> Instructions(const kir::Kernel& kernel) {
  std::vector<Instruction> found;
  ForEachWgmma(kernel.body, [&](const kir::Wgmma& s) {
    const Instruction i = InstructionOf(kernel, s);
    const bool known = std::any_of(found.begin(), found.end(), [&i](const Instruction& f) { return f.Name() == i.Name(); });
    if (!known) found.push_back(i);
  });
  return found;
}

// "%first, %first+1, …"
std::string Operands(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i) text += Cat(i == first ? "%" : ", %", i);
  return text;
}

std::string Definition(const Instruction& i) {
  const int64_t d = i.AccRegisters(), a = i.a_registers ? 4 : 1, keep = d + a + 1;
  const std::string_view d_type = i.acc == DType::kFloat32 ? "float" : i.acc == DType::kFloat16 ? "u32" : "int";
  const std::string_view a_type = i.a_registers ? i.a == DType::kFloat32 ? "const float* a" : "const u32* a" : "u64 a";
  const bool is_int = i.acc == DType::kInt32, is_16 = DTypeBytes(i.a) == 2;
  // Neither operand is negated; 16-bit ones may be transposed.
  std::string tail = is_int ? "" : ", 1, 1";
  if (is_16 && !i.a_registers) tail += i.a_mn_major ? ", 1" : ", 0";
  if (is_16) tail += i.b_mn_major ? ", 1" : ", 0";
  std::string outputs, inputs;
  for (int64_t r = 0; r < d; ++r) {
    outputs += Cat(r == 0        ? ""
                   : r % 16 == 0 ? ",\n                 "
                                 : ", ",
                   i.acc == DType::kFloat32 ? "\"+f\"(d[" : "\"+r\"(d[", r, "])");
  }
  if (!i.a_registers) inputs = "\"l\"(a), ";
  for (int r = 0; r < 4 && i.a_registers; ++r)
    inputs += i.a == DType::kFloat32 ? Cat("\"r\"(__float_as_uint(a[", r, "])), ") : Cat("\"r\"(a[", r, "]), ");
  return Cat("// d[64, ", i.n, "] = a[64, ", i.k, "] * b[", i.n, ", ", i.k, "] + (keep ? d : 0)\n", "DEV void ", i.Name(), "(",
             d_type, "* d, ", a_type, ", u64 b, bool keep) {\n  asm volatile(\"{\\n .reg .pred p;\\n setp.ne.b32 p, %", keep,
             ", 0;\\n wgmma.mma_async.sync.aligned.", i.Shape(), ".", i.Types(), " {\"\n               \"", Operands(0, d),
             "}, \"\n               \"", i.a_registers ? Cat("{", Operands(d, 4), "}") : Operands(d, 1), ", %", d + a, ", p",
             tail, ";\\n}\"\n               : ", outputs, "\n               : ", inputs, "\"l\"(b), \"r\"((int)keep));\n}\n");
}

// An operand in shared memory: where it starts and what a step along K, or 64 rows of M, adds to its descriptor.
class SharedOperand {
 public:
  SharedOperand(EmitContext& c, const kir::TileAccess& side)
      : c_(c), s_(side), buffer_(c.buffer(side.buffer)), layout_(buffer_.shared) {
    const size_t last = s_.start.size() - 1;
    c_.kernel.exprs.AsInt(s_.start[last - 1], &row_);
    c_.kernel.exprs.AsInt(s_.start[last], &column_);
    column_ *= layout_.element_bytes;
  }

  // The descriptor of the warpgroup's part: `part`, the number of its block of `rows` of M or N.
  std::string Descriptor(const CText& part, int64_t rows) {
    const int64_t panel = layout_.panel, panel_bytes = layout_.rows() * panel;
    std::vector<CText> address = {{"smem_base"}, CNumber(buffer_.offset + row_ * panel)};
    if (k_major()) {
      address.push_back(CScaled(part, rows * panel));
    } else {
      address.push_back(CNumber(column_ / panel * panel_bytes));
      address.push_back(CScaled(part, rows * layout_.element_bytes / panel * panel_bytes));
    }
    // Leading dimensions: more rows.
    int64_t factor = layout_.extents[s_.start.size() - 3];
    for (size_t d = s_.start.size() - 2; d-- > 1;) {
      address.push_back(CScaled(EmitInt(c_, s_.start[d]), factor * panel));
      factor *= layout_.extents[d - 1];
    }
    const std::string leading = k_major() ? "" : Cat(", ", panel_bytes);
    const std::string base = Cat("wgmma_operand<", panel, ">(", CSum(address).text, leading, ")");
    const int64_t version_bytes = layout_.version_bytes();
    const CText version = CScaled(EmitInt(c_, s_.start[0]), version_bytes / kUnit);
    return version.text == "0" ? base : Cat(base, " + ", version.In(CText::kSum));
  }
  CText Step(const CText& k, int64_t steps) const {
    const int64_t panel = layout_.panel;
    if (!k_major()) return CScaled(k, kStepBytes / layout_.element_bytes * panel / kUnit);  // rows of a panel
    const int64_t first = column_ / kStepBytes, per_panel = panel / kStepBytes, next_panel = layout_.rows() * panel / kUnit;
    if (per_panel == 1) return CScaled(CSum({k, CNumber(first)}), next_panel);
    if (first % per_panel + steps <= per_panel)
      return CSum(
          {CScaled(k, kStepBytes / kUnit), CNumber(first / per_panel * next_panel + first % per_panel * (kStepBytes / kUnit))});
    const CText step = CSum({k, CNumber(first)});
    return CSum({CScaled(CDivided(step, per_panel), next_panel), CScaled(CModulo(step, per_panel), kStepBytes / kUnit)});
  }
  CText Block(const CText& i) const {
    const int64_t panel = layout_.panel;
    return k_major() ? CScaled(i, kBlockRows * panel / kUnit)
                     : CScaled(i, kBlockRows * layout_.element_bytes / panel * layout_.rows() * panel / kUnit);
  }

 private:
  bool k_major() const { return !IsMnMajor(s_); }

  EmitContext& c_;
  const kir::TileAccess& s_;
  const kir::Buffer& buffer_;
  const SharedLayout& layout_;
  int64_t row_ = 0, column_ = 0;  // where it starts; column in bytes
};

// Whether instruction `k` adds to the accumulator.
std::string Keeps(EmitContext& c, const kir::Wgmma& s, const CText& k) {
  if (!s.zero || c.kernel.exprs.IsInt(s.zero, 0)) return "true";
  const std::string later = k.text == "0" ? "" : Cat(k.text, " > 0");
  if (c.kernel.exprs.IsInt(s.zero, 1)) return later.empty() ? "false" : later;
  const CText zero = EmitExpr(c, s.zero);
  std::string first = Cat("!", zero.In(CText::kUnary));
  if (c.node(s.zero).op == ExprOp::kEq) {
    const CText a = EmitExpr(c, c.node(s.zero).args[0]), b = EmitExpr(c, c.node(s.zero).args[1]);
    first = CBinary(a, "!=", CText::kEquality, b).text;
  }
  return later.empty() ? first : Cat(later, " || ", first);
}

std::string Plus(const std::string& a, const CText& b) { return b.text == "0" ? a : Cat(a, " + ", b.In(CText::kSum)); }

}  // namespace

std::vector<std::string> WgmmaNames(const kir::Kernel& kernel) {
  std::vector<std::string> names;
  for (const Instruction& i : Instructions(kernel)) names.push_back(i.Name());
  return names;
}

std::vector<bool> WgmmaAccumulators(const kir::Kernel& kernel) {
  std::vector<bool> accumulators(kernel.buffers.size());
  ForEachWgmma(kernel.body, [&](const kir::Wgmma& s) { accumulators[s.acc] = true; });
  return accumulators;
}

std::vector<bool> WgmmaOperands(const kir::Kernel& kernel) {
  std::vector<bool> operands(kernel.buffers.size());
  ForEachWgmma(kernel.body, [&](const kir::Wgmma& s) {
    if (kernel.buffers[s.a.buffer].space == kir::Space::kRegister) operands[s.a.buffer] = true;
  });
  return operands;
}

std::string WgmmaFunctions(const kir::Kernel& kernel) {
  std::string text;
  for (const Instruction& i : Instructions(kernel))
    text += Cat("#ifndef ", i.Name(), "\n#define ", i.Name(), " ", i.Name(), "\n", Definition(i), "#endif\n");
  return text;
}

void Emit(EmitContext& c, const kir::Wgmma& s) {
  const Instruction instruction = InstructionOf(c.kernel, s);
  const int64_t blocks = s.m / s.grid.m / kBlockRows, steps = s.k / instruction.k;
  c.Open("{");
  // A grid of warpgroups, M fastest.
  const CText warpgroup = CDivided({"warp"}, 4);
  const CText part_m = s.grid.n == 1 ? warpgroup : CModulo(warpgroup, s.grid.m), part_n = CDivided(warpgroup, s.grid.m);
  SharedOperand b(c, s.b);
  std::string a_name = c.buffers[s.a.buffer];
  if (!instruction.a_registers) {
    a_name = c.names.Fresh("a");
    c.out.Line(Cat("const u64 ", a_name, " = ",
                   SharedOperand(c, s.a).Descriptor(s.grid.m == 1 ? CNumber(0) : part_m, s.m / s.grid.m), ";"));
  }
  const std::string b_name = c.names.Fresh("b");
  c.out.Line(Cat("const u64 ", b_name, " = ", b.Descriptor(s.grid.n == 1 ? CNumber(0) : part_n, instruction.n), ";"));
  CText k{"0"}, i{"0"};
  if (steps > 1) {
    k = {c.names.Fresh("k")};
    c.OpenUnrolled(k.text, 0, steps);
  }
  if (blocks > 1) {
    i = {c.names.Fresh("i")};
    c.OpenUnrolled(i.text, 0, blocks);
  }
  const CText a_offset = instruction.a_registers ? CSum({CScaled(i, 4 * steps), CScaled(k, 4)})
                                                 : CSum({SharedOperand(c, s.a).Block(i), SharedOperand(c, s.a).Step(k, steps)});
  c.out.Line(Cat(instruction.Name(), "(", Plus(c.buffers[s.acc], CScaled(i, instruction.AccRegisters())), ", ",
                 Plus(a_name, a_offset), ", ", Plus(b_name, b.Step(k, steps)), ", ", Keeps(c, s, k), ");"));
  if (blocks > 1) c.Close();
  if (steps > 1) c.Close();
  c.Close();
}

void Emit(EmitContext& c, const kir::WgmmaWait& s) {
  c.out.Line(Cat("wgmma_wait<", s.pending, ">();"));
  for (const kir::Retired& retired : s.retires) {
    if (c.buffer(retired.buffer).space == kir::Space::kRegister) c.out.Line(Cat("settle(", c.buffers[retired.buffer], ");"));
  }
}

}  // namespace tilert
