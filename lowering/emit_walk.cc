#include "lowering/emit_walk.h"

#include <algorithm>

#include "ir/status_util.h"

namespace tilert {

Nest WithoutLoops(Nest nest) {
  for (size_t d = 0; d < nest.coordinates.size(); ++d) {
    Coordinate& coordinate = nest.coordinates[d];
    std::erase_if(coordinate.terms, [](const Term& t) { return !t.thread; });
    coordinate.whole = {nest.thread_parts[d].empty() ? "0" : nest.thread_parts[d]};
  }
  return nest;
}

std::optional<Walk> Walk::Start(EmitContext& c, const kir::TileAccess& access, const Nest& nest,
                                const std::vector<Coordinate>& first) {
  const kir::Buffer& buffer = c.buffer(access.buffer);
  if (!c.kernel.index32 || buffer.space != kir::Space::kGlobal || nest.loops.empty()) return std::nullopt;
  std::vector<bool> checked;
  for (size_t i = 0; i < first.size(); ++i) {
    const Expr alone = access.follows[i] < 0 ? access.start[i] : Expr{};
    checked.push_back(!access.inside[i] && !InsideDim(c, buffer, i, first[i], alone).text.empty());
    const bool walked = std::any_of(nest.loops.begin(), nest.loops.end(), [&](const Nest::Loop& loop) {
      return access.follows[i] >= 0 && loop.dim == static_cast<size_t>(access.follows[i]);
    });
    // What is left of a dimension that is walked along is a number of 32 bits; another is compared as it is.
    if (checked[i] && (first[i].range.lo < 0 || (walked && !first[i].range.FitsInt()))) return std::nullopt;
  }
  Walk walk;
  walk.name_ = c.buffers[access.buffer];
  walk.from_ = c.names.Fresh(Cat(walk.name_, "_from"));
  c.out.Line(Cat("const u32 ", walk.from_, " = here((u32)(", GlobalOffset(c, buffer, first).text, "));"));
  walk.left_.resize(first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<CText> sum;
    for (const Nest::Loop& loop : nest.loops) {
      if (access.follows[i] >= 0 && loop.dim == static_cast<size_t>(access.follows[i]))
        sum.push_back(CScaled({loop.var}, loop.weight));
    }
    walk.added_.push_back(CSum(sum));
    walk.strides_.push_back(EmitExpr(c, buffer.strides[i]));
    if (!checked[i]) continue;
    const CText extent = EmitExpr(c, buffer.shape[i]);
    if (sum.empty()) {
      walk.inside_ = And(walk.inside_, CBinary(first[i].whole, "<", CText::kRelation, extent));
      continue;
    }
    walk.left_[i] = c.names.Fresh(Cat(walk.name_, "_left"));
    c.out.Line(
        Cat("const int ", walk.left_[i], " = (int)here((u32)(", CBinary(extent, "-", CText::kSum, first[i].whole).text, "));"));
  }
  return walk;
}

std::string Walk::Pointer() const {
  std::vector<CText> offset = {{from_}};
  for (size_t i = 0; i < added_.size(); ++i) {
    if (added_[i].text == "0") continue;
    const CText unsigned_added{Cat("(u32)", added_[i].In(CText::kUnary)), CText::kUnary};
    offset.push_back(strides_[i].text == "1" ? unsigned_added : CBinary(unsigned_added, "*", CText::kProduct, strides_[i]));
  }
  return Cat(name_, " + ", CSum(offset).In(CText::kUnary));
}

CText Walk::Inside() const {
  CText all = inside_;
  for (size_t i = 0; i < left_.size(); ++i) {
    if (!left_[i].empty()) all = And(all, CBinary(added_[i], "<", CText::kRelation, {left_[i]}));
  }
  return all;
}

}  // namespace tilert
