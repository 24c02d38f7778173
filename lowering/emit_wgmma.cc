// wgmma: one asm statement an instruction, in a function or macro for each shape that a kernel uses; operands and loops around them.
//
// Accumulators that nothing but wgmma changes between two of them lie in registers that PTX declares and only wgmma names: acc_r0,
// acc_r1, …. As values of C++ each of them would go through all passes of the compiler in front of ptxas, which is a quarter of the
// time that a large tile takes to compile. The array of the same name, which all other statements use, is taken from them when a
// wgmma is waited for.
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

template <typename Op, typename Visit>
void ForEach(const kir::Block& block, const Visit& visit) {
  for (const kir::Stmt& stmt : block) {
    if (auto* s = std::get_if<Op>(&stmt.op)) visit(*s);
    for (const kir::Block* child : kir::ChildBlocks(stmt)) ForEach<Op>(*child, visit);
  }
}

// A function or macro that a kernel uses.
struct Definition {
  std::string name, text;
};

constexpr int64_t kEach = 16;  // registers a line, or an asm statement

// "%first, %first+1, …"
std::string Operands(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i) text += Cat(i == first ? "%" : ", %", i);
  return text;
}

// The text of the asm statement and its inputs, lines ending in `line`; operand `first` is the first input. `accumulator`: its registers.
std::string Statement(const Instruction& i, int64_t first, const std::string& accumulator, const std::string& outputs, std::string_view line) {
  const int64_t a = i.a_registers ? 4 : 1, keep = first + a + 1;
  const bool is_int = i.acc == DType::kInt32, is_16 = DTypeBytes(i.a) == 2;
  // Neither operand is negated; 16-bit ones may be transposed.
  std::string tail = is_int ? "" : ", 1, 1";
  if (is_16 && !i.a_registers) tail += i.a_mn_major ? ", 1" : ", 0";
  if (is_16) tail += i.b_mn_major ? ", 1" : ", 0";
  std::string inputs;
  if (!i.a_registers) inputs = "\"l\"(a), ";
  for (int r = 0; r < 4 && i.a_registers; ++r)
    inputs += i.a == DType::kFloat32 ? Cat("\"r\"(__float_as_uint((a)[", r, "])), ") : Cat("\"r\"((a)[", r, "]), ");
  return Cat("asm volatile(\"{\\n .reg .pred p;\\n setp.ne.b32 p, %", keep, ", 0;\\n wgmma.mma_async.sync.aligned.", i.Shape(), ".", i.Types(), " {\"",
             line, "               ", accumulator, "}, \"", line, "               \"", i.a_registers ? Cat("{", Operands(first, 4), "}") : Operands(first, 1),
             ", %", first + a, ", p", tail, ";\\n}\"", line, "               :",
             outputs.empty() ? "" : Cat(" ", outputs, line, "               "), ": ", inputs, "\"l\"(b), \"r\"((int)(keep)))");
}

// Between register r − 1 of the accumulator and register r, in lists of them.
std::string_view Comma(int64_t r) { return r == 0 ? "" : r % kEach == 0 ? ",\n                 " : ", "; }

std::string Meaning(const Instruction& i) { return Cat("// d[64, ", i.n, "] = a[64, ", i.k, "] * b[", i.n, ", ", i.k, "] + (keep ? d : 0)"); }

// Of accumulators in arrays.
Definition Function(const Instruction& i) {
  const int64_t d = i.AccRegisters();
  const std::string_view d_type = i.acc == DType::kFloat32 ? "float" : i.acc == DType::kFloat16 ? "u32" : "int";
  const std::string_view a_type = i.a_registers ? i.a == DType::kFloat32 ? "const float* a" : "const u32* a" : "u64 a";
  std::string outputs;
  for (int64_t r = 0; r < d; ++r) outputs += Cat(Comma(r), i.acc == DType::kFloat32 ? "\"+f\"(d[" : "\"+r\"(d[", r, "])");
  return {i.Name(), Cat("#define ", i.Name(), " ", i.Name(), "\n", Meaning(i), "\nDEV void ", i.Name(), "(", d_type, "* d, ", a_type, ", u64 b, bool keep) {\n  ",
                        Statement(i, d, Cat("\"", Operands(0, d)), outputs, "\n"), ";\n}\n")};
}

// Of accumulators in registers of PTX, from register `first` on.
std::string MacroName(const Instruction& i, int64_t first) { return Cat(i.Name(), "_r", first); }

Definition Macro(const Instruction& i, int64_t first) {
  std::string registers;
  for (int64_t r = 0; r < i.AccRegisters(); ++r)
    registers += Cat(r == 0 ? "" : r % kEach == 0 ? ", \" \\\n               " : ", \" ", "#d \"_r", first + r);
  const std::string name = MacroName(i, first);
  return {name, Cat(Meaning(i), "\n#define ", name, "(d, a, b, keep) \\\n  ", Statement(i, 0, registers, "", " \\\n"), "\n")};
}

// The registers of an accumulator, by the names of the macros that declare them, forget what is in them, and take it into the array.
struct Registers {
  DType dtype = DType::kInvalid;
  int64_t count = 0;

  bool is_float() const { return dtype == DType::kFloat32; }
  std::string MacroName(std::string_view action) const { return Cat("wgmma_", action, is_float() ? "_f32x" : "_b32x", count); }
};

Registers RegistersOf(const kir::Kernel& kernel, BufferId id) {
  const kir::Buffer& buffer = kernel.buffers[id];
  return {buffer.dtype, buffer.layout.regs() / PerWord(buffer.dtype)};
}

std::vector<Definition> Macros(const Registers& registers) {
  const std::string_view type = registers.is_float() ? "f32" : "b32";
  std::string forget, take;
  for (int64_t from = 0; from < registers.count; from += kEach) {
    std::string moves, outputs;
    for (int64_t r = from; r < std::min(from + kEach, registers.count); ++r) {
      forget += Cat("mov.", type, " \" #d \"_r", r, ", u; ");
      moves += Cat("mov.", type, " %", r - from, ", \" #d \"_r", r, "; ");
      outputs += Cat(r == from ? "" : ", ", registers.is_float() ? "\"=f\"(d[" : "\"=r\"(d[", r, "])");
    }
    take += Cat(" \\\n  asm volatile(\"", moves, "\" : ", outputs, ");");
  }
  const auto macro = [&registers](std::string_view action, const std::string& body) {
    const std::string name = registers.MacroName(action);
    return Definition{name, Cat("#define ", name, "(d) ", body, "\n")};
  };
  return {macro("registers", Cat("asm volatile(\".reg .", type, " \" #d \"_r<", registers.count, ">;\")")),
          macro("forget", Cat("asm volatile(\"{ .reg .", type, " u; ", forget, "}\")")), macro("take", Cat("do {", take, " \\\n} while (0)"))};
}

// Blocks of 64 rows that a warpgroup multiplies, one instruction each.
int64_t RowBlocks(const kir::Wgmma& s) { return s.m / s.grid.m / kBlockRows; }

std::vector<Definition> Definitions(const kir::Kernel& kernel) {
  std::vector<Definition> found;
  const auto add = [&found](Definition definition) {
    const bool known = std::any_of(found.begin(), found.end(), [&definition](const Definition& f) { return f.name == definition.name; });
    if (!known) found.push_back(std::move(definition));
  };
  const std::vector<bool> in_ptx = PtxAccumulators(kernel);
  ForEach<kir::Wgmma>(kernel.body, [&](const kir::Wgmma& s) {
    const Instruction i = InstructionOf(kernel, s);
    if (!in_ptx[s.acc]) return add(Function(i));
    for (Definition& macro : Macros(RegistersOf(kernel, s.acc))) add(std::move(macro));
    for (int64_t block = 0; block < RowBlocks(s); ++block) add(Macro(i, block * i.AccRegisters()));
  });
  return found;
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
  for (const Definition& definition : Definitions(kernel)) names.push_back(definition.name);
  return names;
}

std::vector<bool> WgmmaAccumulators(const kir::Kernel& kernel) {
  std::vector<bool> accumulators(kernel.buffers.size());
  ForEach<kir::Wgmma>(kernel.body, [&](const kir::Wgmma& s) { accumulators[s.acc] = true; });
  return accumulators;
}

std::vector<bool> WgmmaOperands(const kir::Kernel& kernel) {
  std::vector<bool> operands(kernel.buffers.size());
  ForEach<kir::Wgmma>(kernel.body, [&](const kir::Wgmma& s) {
    if (kernel.buffers[s.a.buffer].space == kir::Space::kRegister) operands[s.a.buffer] = true;
  });
  return operands;
}

std::vector<bool> PtxAccumulators(const kir::Kernel& kernel) {
  std::vector<bool> in_ptx = WgmmaAccumulators(kernel);
  ForEach<kir::WgmmaFence>(kernel.body, [&](const kir::WgmmaFence& fence) {
    for (BufferId id : fence.touched) in_ptx[id] = false;
  });
  return in_ptx;
}

std::string WgmmaDefinitions(const kir::Kernel& kernel) {
  std::string text;
  for (const Definition& d : Definitions(kernel)) text += Cat("#ifndef ", d.name, "\n", d.text, "#endif\n");
  return text;
}

void DeclareAccumulators(EmitContext& c) {
  for (BufferId id = 0; id < c.kernel.buffers.size(); ++id) {
    if (c.in_ptx[id]) c.out.Line(Cat(RegistersOf(c.kernel, id).MacroName("registers"), "(", c.buffers[id], ");"));
  }
}

void ForgetAccumulator(EmitContext& c, BufferId id) {
  if (c.in_ptx[id]) c.out.Line(Cat(RegistersOf(c.kernel, id).MacroName("forget"), "(", c.buffers[id], ");"));
}

void Emit(EmitContext& c, const kir::Wgmma& s) {
  const Instruction instruction = InstructionOf(c.kernel, s);
  const int64_t blocks = RowBlocks(s), steps = s.k / instruction.k;
  if (s.zero && c.kernel.exprs.IsInt(s.zero, 1)) ForgetAccumulator(c, s.acc);
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
  CText k{"0"};
  if (steps > 1) {
    k = {c.names.Fresh("k")};
    c.OpenUnrolled(k.text, 0, steps);
  }
  std::string keep = Keeps(c, s, k);
  if (keep.find(',') != std::string::npos) keep = Cat("(", keep, ")");  // an argument of a macro
  for (int64_t block = 0; block < blocks; ++block) {
    const CText i = CNumber(block);
    const CText a_offset = instruction.a_registers ? CSum({CScaled(i, 4 * steps), CScaled(k, 4)})
                                                   : CSum({SharedOperand(c, s.a).Block(i), SharedOperand(c, s.a).Step(k, steps)});
    const int64_t first = block * instruction.AccRegisters();
    const std::string head = c.in_ptx[s.acc] ? Cat(MacroName(instruction, first), "(", c.buffers[s.acc])
                                             : Cat(instruction.Name(), "(", Plus(c.buffers[s.acc], CNumber(first)));
    c.out.Line(Cat(head, ", ", Plus(a_name, a_offset), ", ", Plus(b_name, b.Step(k, steps)), ", ", keep, ");"));
  }
  if (steps > 1) c.Close();
  c.Close();
}

void Emit(EmitContext& c, const kir::WgmmaWait& s) {
  c.out.Line(Cat("wgmma_wait<", s.pending, ">();"));
  for (const kir::Retired& retired : s.retires) {
    const BufferId id = retired.buffer;
    if (c.buffer(id).space != kir::Space::kRegister) continue;
    c.out.Line(Cat(c.in_ptx[id] ? RegistersOf(c.kernel, id).MacroName("take") : "settle", "(", c.buffers[id], ");"));
  }
}

}  // namespace tilert
