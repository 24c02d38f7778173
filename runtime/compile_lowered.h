// How the two classes of a program are compiled: the one place for hosts that compile at load and for `tilert build`.
#pragma once

#include "absl/status/statusor.h"
#include "ir/program.h"
#include "lowering/lowered.h"
#include "runtime/nvrtc_compile.h"

namespace tilert {

// The options for code of `arg_class`, and what cache keys say of them: the same for whoever compiles it. The general class has
// the longer code and the rarer calls: it is compiled quickly where NVRTC can, so that it does not hold up a cold load.
// `program`: specialised.
CompileOptions OptionsFor(const Program& program, const ArgClass& arg_class, const Target& target, int nvrtc_version);

// Code with wgmma or with roles is never compiled quickly, whatever the options say: wgmma would be serialised and setmaxnreg
// ignored.
bool NeedsFullCompile(const Lowered& lowered);

// Compiles what Lower made of `program`. Internal when the source does not compile: it is ours, and never the user's mistake.
absl::StatusOr<CompiledCode> CompileLowered(const Nvrtc& nvrtc, const Program& program, const Lowered& lowered,
                                            CompileOptions options);

}  // namespace tilert
