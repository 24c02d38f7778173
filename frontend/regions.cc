#include "frontend/regions.h"

#include "absl/strings/str_cat.h"
#include "ir/printer.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

// The extents that are not 1, in order; dimensions of extent 1 are dropped when two operands are compared.
struct Extent {
  Val value;
  std::optional<int64_t> known;
};

std::vector<Extent> Significant(Context& context, const BufferRegion& region) {
  std::vector<Extent> extents;
  for (size_t i = 0; i < region.extent.size(); ++i) {
    const std::optional<int64_t> known = KnownExtent(context, region, i);
    if (!known || *known != 1) extents.push_back({region.extent[i], known});
  }
  return extents;
}

// Aligned at the end: A[b, i, j] over an operand of (64, 32) covers (1, 64, 32).
bool TakeExtents(Context& context, BufferRegion* start, const BufferRegion& other) {
  const size_t rank = start->extent.size(), other_rank = other.extent.size();
  for (size_t i = 0; i < other_rank; ++i) {
    const size_t from_end = other_rank - i;
    if (from_end <= rank) {
      start->extent[rank - from_end] = other.extent[i];
    } else if (KnownExtent(context, other, i) != 1) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<int64_t> KnownExtent(Context& context, const BufferRegion& region, size_t dim) {
  if (!region.extent[dim]) return 1;
  const Val extent = region.extent[dim].In(&context.builder());
  int64_t value = 0;
  if (!context.builder().exprs().AsInt(extent.expr(), &value)) return std::nullopt;
  return value;
}

std::string ShapeText(Context& context, const BufferRegion& region) {
  std::string text = "(";
  for (size_t i = 0; i < region.extent.size(); ++i) {
    if (i > 0) text += ", ";
    text += region.extent[i] ? PrintExpr(context.builder().program(), context.builder().E(region.extent[i])) : "1";
  }
  return text + ")";
}

Val Shifted(Context& context, Val start, Val offset) {
  const Val bound = start.In(&context.builder());
  return context.builder().exprs().IsInt(bound.expr(), 0) ? offset : bound + offset;
}

bool MatchExtents(Context& context, BufferRegion* a, BufferRegion* b, SourceRange range, std::string_view what) {
  const bool a_starts = a->IsElement() && !a->extent.empty(), b_starts = b->IsElement() && !b->extent.empty();
  bool fits = true;
  if (a_starts && !b_starts) fits = TakeExtents(context, a, *b);
  if (b_starts && !a_starts) fits = TakeExtents(context, b, *a);
  const std::vector<Extent> x = Significant(context, *a), y = Significant(context, *b);
  const bool all_known = [&] {
    for (const Extent& extent : x) {
      if (!extent.known) return false;
    }
    for (const Extent& extent : y) {
      if (!extent.known) return false;
    }
    return true;
  }();
  fits = fits && (!all_known || x.size() == y.size());
  for (size_t i = 0; fits && x.size() == y.size() && i < x.size(); ++i)
    fits = !x[i].known || !y[i].known || *x[i].known == *y[i].known;
  if (fits) return true;
  context.Fail(range,
               Cat(what, " between different shapes: ", a->buffer.buffer().name, " gives ", ShapeText(context, *a), ", ",
                   b->buffer.buffer().name, " takes ", ShapeText(context, *b)),
               "write both with slices of the same extents, as in A[i * 64:(i + 1) * 64, :]");
  return false;
}

}  // namespace tilert::frontend
