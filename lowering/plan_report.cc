// Which way each copy between global memory and the chip goes, and why not by TMA: lines of `tilert emit --report`.
#include "absl/strings/str_join.h"
#include "ir/status_util.h"
#include "lowering/plan_builder.h"

namespace tilert {

// Once, however often the statement is planned.
void PlanBuilder::Report(const std::string& line) {
  if (s_.report.find(line) == std::string::npos) s_.report += line;
}

void PlanBuilder::ReportTma(const Copy& copy, kir::MapId id) {
  const kir::TensorMap& map = k_.tensor_maps[id];
  const auto shared = rings_.shared.find(&copy);
  const std::string parts = shared == rings_.shared.end() ? "" : Cat(", a part by each of ", shared->second.parts, " blocks for all");
  Report(Cat("  ", s_.buffer(copy.src.buffer).name, " → ", s_.buffer(copy.dst.buffer).name, Where(s_.program, loc_),
             ": TMA, boxes of ", absl::StrJoin(map.box, " x "), map.swizzle > 0 ? Cat(", swizzle ", map.swizzle) : ", no swizzle", parts,
             "\n"));
}

// `first`: the first statement of the current block that was made for the copy.
void PlanBuilder::ReportPlainCopy(const Copy& copy, size_t first) {
  const bool loads = s_.scope(copy.src.buffer) == Scope::kGlobal, stores = s_.scope(copy.dst.buffer) == Scope::kGlobal;
  const kir::Copy* move = nullptr;  // the one that touches global memory
  for (size_t i = first; i < block_->size(); ++i) {
    auto* part = std::get_if<kir::Copy>(&(*block_)[i].op);
    if (part == nullptr) continue;
    const auto global = [&](const kir::TileAccess& side) { return k_.buffers[side.buffer].space == kir::Space::kGlobal; };
    if (global(part->src) || global(part->dst)) move = part;
  }
  if (move == nullptr || !(loads || stores)) return;
  std::string why;
  if (s_.target.family == Family::kHopper) {
    if (const auto known = rings_.why_not.find(&copy); loads && known != rings_.why_not.end()) {
      why = known->second;
    } else if (loads) {
      why = "whether or how often it runs depends on what is computed";
    } else {
      CanTmaStore(copy, &why);
    }
  }
  const int64_t bytes = move->width * DTypeBytes(k_.buffers[loads ? move->src.buffer : move->dst.buffer].dtype);
  Report(Cat("  ", s_.buffer(copy.src.buffer).name, " → ", s_.buffer(copy.dst.buffer).name, Where(s_.program, loc_), ": ",
             move->method == kir::CopyMethod::kCpAsync ? "cp.async" : "vectors", " of ", bytes, bytes == 1 ? " byte" : " bytes",
             why.empty() ? "" : Cat("; no TMA: ", why), "\n"));
}

}  // namespace tilert
