#include "runtime/compile_lowered.h"

#include <algorithm>

namespace tilert {
namespace {

bool NeedsFullCompile(const kir::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const kir::Stmt& stmt) {
    if (std::holds_alternative<kir::Wgmma>(stmt.op) || std::holds_alternative<kir::Roles>(stmt.op)) return true;
    const std::vector<const kir::Block*> children = kir::ChildBlocks(stmt);
    return std::any_of(children.begin(), children.end(), [](const kir::Block* child) { return NeedsFullCompile(*child); });
  });
}

}  // namespace

bool NeedsFullCompile(const Lowered& lowered) {
  return std::any_of(lowered.kernel_ir.begin(), lowered.kernel_ir.end(),
                     [](const kir::Kernel& kernel) { return NeedsFullCompile(kernel.body); });
}

CompileOptions OptionsFor(const Program& program, const ArgClass& arg_class, const Target& target, int nvrtc_version) {
  constexpr int kFirstWithQuick = 13000;
  CompileOptions options;
  options.arch = target.arch;
  options.quick = arg_class == GeneralArgClass(program) && nvrtc_version >= kFirstWithQuick;
  return options;
}

absl::StatusOr<CompiledCode> CompileLowered(const Nvrtc& nvrtc, const Program& program, const Lowered& lowered,
                                            CompileOptions options) {
  // What was lowered follows from the rest of a cache key, so that a key that names the options asked for is still complete.
  options.quick = options.quick && !NeedsFullCompile(lowered);
  absl::StatusOr<CompiledCode> code = Compile(nvrtc, program.name + ".cu", lowered.source, options);
  if (absl::IsInvalidArgument(code.status())) return absl::InternalError(code.status().message());
  return code;
}

}  // namespace tilert
