// docs/ir_spec.md section 10: what bounds the memory of a block and the time to compile a program.
#include <algorithm>

#include "ir/limits.h"
#include "ir/verify_context.h"

namespace tilert::verify {
namespace {

uint64_t Saturated(uint64_t a, uint64_t b) {
  return a != 0 && b > (kMaxUnrolled + 1) / a ? kMaxUnrolled + 1 : std::min(a * b, kMaxUnrolled + 1);
}

// Statements after unrolling, saturated just beyond the limit.
uint64_t Unrolled(const Program& p, const Block& block) {
  uint64_t count = 0;
  for (const Stmt& stmt : block) {
    uint64_t nested = 1;
    for (const Block* child : ChildBlocks(stmt)) nested += Unrolled(p, *child);
    int64_t begin = 0, end = 0, step = 0;
    const auto* loop = std::get_if<For>(&stmt.op);
    const bool unrolls = loop != nullptr && (loop->kind == ForKind::kUnrolled || loop->kind == ForKind::kVectorized) &&
                         p.exprs.AsInt(loop->begin, &begin) && p.exprs.AsInt(loop->end, &end) &&
                         p.exprs.AsInt(loop->step, &step) && step > 0 && end > begin;
    if (unrolls)
      nested =
          Saturated(nested, (static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) - 1) / static_cast<uint64_t>(step) + 1);
    count = std::min(count + nested, kMaxUnrolled + 1);
  }
  return count;
}

void CheckBuffer(Context& c, const Buffer& b) {
  int64_t elements = 1;
  const int64_t limit = b.scope == Scope::kGlobal ? INT64_MAX / 8 : kMaxBlockElements;
  for (Expr e : b.shape) {
    int64_t extent = 0;
    if (!c.p.exprs.AsInt(e, &extent) || extent <= 0) continue;  // a dim: checked when it has a value
    if (extent > limit / elements) return c.Error("'", b.name, "' has more than ", limit, " elements: make it smaller");
    elements *= extent;
  }
}

}  // namespace

void CheckLimits(Context& c) {
  for (size_t i = 0; i < c.p.buffers.size(); ++i) {
    auto scope = c.path.Enter("buffers", i);
    c.loc = c.p.buffers[i].loc;
    CheckBuffer(c, c.p.buffers[i]);
  }
  for (size_t i = 0; i < c.p.launches.size(); ++i) {
    auto scope = c.path.Enter("launches", i);
    c.loc = c.p.launches[i].loc;
    if (Unrolled(c.p, c.p.launches[i].body) > kMaxUnrolled) {
      c.Error("unrolling makes more than ", kMaxUnrolled, " statements of it: use T.serial for the outer loops");
    }
  }
  c.loc = {};
}

}  // namespace tilert::verify
