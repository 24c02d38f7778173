// tilert layout: which thread and register, or which bank, holds each element.
#include <cstdio>

#include "ir/status_util.h"
#include "lowering/layout_picture.h"
#include "tools/command.h"
#include "tools/file.h"
#include "tools/input.h"
#include "tools/lowering_options.h"

namespace tilert::tool {
namespace {

std::string Title(const kir::Kernel& kernel, const kir::Buffer& buffer) {
  return Cat(buffer.name, ": ", DTypeName(buffer.dtype), " in ",
             buffer.space == kir::Space::kShared ? "shared memory" : "registers", " of ", kernel.name);
}

std::string List(const Lowered& lowered) {
  std::string text;
  for (const kir::Kernel& kernel : lowered.kernel_ir) {
    text += Cat(text.empty() ? "" : "\n", "kernel ", kernel.name, ", ", kernel.warps, " warps\n");
    for (const kir::Buffer& buffer : kernel.buffers) {
      if (buffer.space == kir::Space::kShared) {
        text += Cat("  ", buffer.name, ": ", DTypeName(buffer.dtype), " ", ToString(buffer.shared), ", ", buffer.versions,
                    buffer.versions == 1 ? " version\n" : " versions\n");
      } else if (buffer.space == kir::Space::kRegister) {
        text += Cat("  ", buffer.name, ": ", DTypeName(buffer.dtype), " ", ToString(Canonical(buffer.layout)), "\n");
      }
    }
  }
  return text;
}

absl::Status RunLayout(const Args& args) {
  TILERT_ASSIGN_OR_RETURN(const Target target, ChooseTarget(args));
  PictureOptions options;
  TILERT_ASSIGN_OR_RETURN(options.max_rows, args.Int("--rows", 64, 1, 4096));
  TILERT_ASSIGN_OR_RETURN(options.max_columns, args.Int("--columns", 64, 1, 4096));
  TILERT_ASSIGN_OR_RETURN(const Program program, ChooseSpecialized(args));
  TILERT_ASSIGN_OR_RETURN(const Lowered lowered, Lower(program, ChooseArgClass(program, args), target));
  const std::string output = args.Get("-o", "-");
  if (args.positional().size() == 1) {
    if (args.Has("--svg")) return UsageError("--svg needs a buffer to draw");
    return WriteFile(output, List(lowered));
  }
  const std::string& wanted = args.positional()[1];
  for (const kir::Kernel& kernel : lowered.kernel_ir) {
    for (const kir::Buffer& buffer : kernel.buffers) {
      if (buffer.name != wanted || buffer.space == kir::Space::kGlobal) continue;
      options.title = Title(kernel, buffer);
      const bool shared = buffer.space == kir::Space::kShared;
      if (args.Has("--svg"))
        return WriteFile(output, shared ? LayoutSvg(buffer.shared, options) : LayoutSvg(buffer.layout, options));
      return WriteFile(output, shared ? LayoutText(buffer.shared, options) : LayoutText(buffer.layout, options));
    }
  }
  return absl::NotFoundError(Cat("no tile '", wanted, "' in program '", program.name, "'; there are:\n", List(lowered)));
}

constexpr Option kLayoutOptions[] = {
    kEntryOption,
    kSetOption,
    kVariantOption,
    kDimOption,
    kArchOption,
    kFamilyOption,
    kGeneralOption,
    {"--svg", "", "a picture instead of text"},
    {"--rows", "N", "at most so many rows; default 64"},
    {"--columns", "N", "at most so many columns; default 64"},
    {"-o", "FILE", "write there instead of standard output"},
};

}  // namespace

const Command kLayoutCommand = {
    "layout",
    "BUNDLE|SOURCE [BUFFER]",
    "show which thread and register, or which bank, holds each element of a tile",
    "Without BUFFER, lists the tiles of the lowered program and their layouts.",
    kLayoutOptions,
    "  tilert layout gemm.tilert\n"
    "  tilert layout gemm.tilert acc --arch sm_80 --rows 16\n"
    "  tilert layout gemm.tilert A_shared --svg -o a_shared.svg\n",
    1,
    2,
    RunLayout,
};

}  // namespace tilert::tool
