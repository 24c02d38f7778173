// The registers of a layout as nested, fully unrolled loops.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/status_util.h"
#include "lowering/emit_place.h"

namespace tilert {
namespace {

constexpr std::string_view kLoopNames[] = {"r", "s", "t", "u"};

// (index / stride) % size of a lane or warp number.
CText ThreadDigit(Owner owner, int64_t stride, int64_t size, int warps) {
  const bool is_lane = owner == Owner::kLane;
  const CText digit = CDivided({is_lane ? "lane" : "warp"}, stride);
  return stride * size >= (is_lane ? kLanes : warps) ? digit : CModulo(digit, size);
}

// Factors of a dimension with those of the vector taken off.
std::vector<Factor> LoopFactors(const LayoutDim& dim, int64_t vector) {
  std::vector<Factor> factors;
  for (const Factor& f : dim.factors) {
    if (f.size > 1) factors.push_back(f);
  }
  if (vector > 1) {
    factors[0].size /= vector;
    factors[0].stride *= vector;
  }
  return factors;
}

struct LoopAt {
  size_t dim;
  int64_t weight;
  Factor factor;
};

}  // namespace

bool HasVector(const FragmentLayout& layout, int64_t vector) {
  if (vector == 1) return true;
  if (layout.dims.empty()) return false;
  for (const Factor& f : layout.dims.back().factors) {
    if (f.size > 1) return f.owner == Owner::kReg && f.stride == 1 && f.size % vector == 0;
  }
  return false;
}

std::string ReplicaZero(const FragmentLayout& layout) {
  std::vector<std::string> conditions;
  int64_t lanes = 0;
  for (const Factor& f : layout.Replicas()) {
    if (f.owner == Owner::kLane) {
      lanes += (f.size - 1) * f.stride;
    } else if (f.size > 1) {
      conditions.push_back(Cat(ThreadDigit(f.owner, f.stride, f.size, layout.warps).In(CText::kRelation), " == 0"));
    }
  }
  if (lanes == kLanes - 1) {
    conditions.insert(conditions.begin(), "lane == 0");
  } else if (lanes != 0) {
    conditions.insert(conditions.begin(), Cat("(lane & ", lanes, ") == 0"));
  }
  return absl::StrJoin(conditions, " && ");
}

Nest OpenNest(EmitContext& c, const FragmentLayout& layout, const std::vector<std::string>& dim_names, int64_t vector) {
  c.Open("{");
  Nest nest;
  nest.vector = vector;
  nest.replica_zero = ReplicaZero(layout);
  nest.coordinates.resize(layout.dims.size());
  std::vector<LoopAt> loops;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    Coordinate& coordinate = nest.coordinates[d];
    const LayoutDim& dim = layout.dims[d];
    int64_t weight = d + 1 == layout.dims.size() ? vector : 1;
    std::vector<CText> thread;
    for (const Factor& f : LoopFactors(dim, weight)) {
      if (f.owner == Owner::kReg) {
        if (f.size > 1) loops.push_back({d, weight, f});
      } else {
        const CText digit = ThreadDigit(f.owner, f.stride, f.size, layout.warps);
        coordinate.terms.push_back({digit, weight, f.size - 1, 1, true, false});
        thread.push_back(CScaled(digit, weight));
      }
      weight *= f.size;
    }
    coordinate.range = {0, std::max<int64_t>(dim.extent - 1, 0), 1};
    if (d + 1 == layout.dims.size()) coordinate.range.align = vector & -vector;
    nest.thread_parts.push_back("");
    if (!thread.empty()) {
      nest.thread_parts[d] = c.names.Fresh(Cat(dim_names[d], "0"));
      c.out.Optional(nest.thread_parts[d], Cat("const int ", nest.thread_parts[d], " = ", CSum(thread).text, ";"));
    }
    nest.names.push_back(dim_names[d]);
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [](const LoopAt& a, const LoopAt& b) { return a.factor.stride > b.factor.stride; });
  for (size_t i = 0; i < loops.size(); ++i) {
    const std::string var = c.names.Fresh(kLoopNames[std::min(i, std::size(kLoopNames) - 1)]);
    nest.loops.push_back({var, loops[i].factor.size, loops[i].weight, loops[i].dim});
    nest.coordinates[loops[i].dim].terms.push_back({CText{var}, loops[i].weight, loops[i].factor.size - 1, 1, false, true});
  }
  return nest;
}

void SplitLoop(EmitContext& c, Nest& nest, size_t i, int64_t inner_size) {
  const Nest::Loop outer = nest.loops[i];
  const Nest::Loop inner = {c.names.Fresh(outer.var), inner_size, outer.weight, outer.dim};
  nest.loops[i].size /= inner_size;
  nest.loops[i].weight *= inner_size;
  nest.loops.insert(nest.loops.begin() + static_cast<ptrdiff_t>(i) + 1, inner);
  std::vector<Term>& terms = nest.coordinates[outer.dim].terms;
  for (size_t t = 0; t < terms.size(); ++t) {
    if (terms[t].text.text != outer.var) continue;
    Term low = terms[t];
    low.text = {inner.var};
    low.hi = inner_size - 1;
    terms[t].scale *= inner_size;
    terms[t].hi = nest.loops[i].size - 1;
    terms.push_back(low);
    break;
  }
}

void KeepLoop(Nest& nest, size_t i, const std::vector<std::string>& rotations) {
  Nest::Loop& loop = nest.loops[i];
  loop.unrolled = false;
  loop.advance = Cat("++", loop.var, rotations.empty() ? "" : ", ", absl::StrJoin(rotations, ", "));
  for (Term& t : nest.coordinates[loop.dim].terms) {
    if (t.text.text == loop.var) t.kept = true, t.fixed = false;
  }
}

void OpenLoops(EmitContext& c, const Nest& nest, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    const Nest::Loop& loop = nest.loops[i];
    if (loop.unrolled) {
      c.OpenUnrolled(loop.var, 0, loop.size);
      continue;
    }
    c.out.Line("#pragma unroll 1");
    c.Open(Cat("for (int ", loop.var, " = 0; ", loop.var, " < ", loop.size, "; ", loop.advance, ") {"));
  }
}

void CloseLoops(EmitContext& c, size_t count) {
  for (size_t i = 0; i < count; ++i) c.Close();
}

void DeclareCoordinates(EmitContext& c, Nest& nest, const FragmentLayout& layout) {
  nest.masks.clear();
  for (size_t d = 0; d < nest.coordinates.size(); ++d) {
    Coordinate& coordinate = nest.coordinates[d];
    std::vector<CText> sum;
    if (!nest.thread_parts[d].empty()) sum.push_back({nest.thread_parts[d]});
    for (const Term& t : coordinate.terms) {
      if (!t.thread) sum.push_back(CScaled(t.text, t.scale));
    }
    if (sum.size() > 1 || (sum.size() == 1 && nest.thread_parts[d].empty() && sum[0].precedence != CText::kPrimary)) {
      const std::string name = c.names.Fresh(nest.names[d]);
      c.out.Optional(name, Cat("const int ", name, " = ", CSum(sum).text, ";"));
      coordinate.whole = {name};
    } else {
      coordinate.whole = CSum(sum);
    }
    const LayoutDim& dim = layout.dims[d];
    if (dim.padded() > dim.extent) nest.masks.push_back(Cat(coordinate.whole.In(CText::kRelation), " < ", dim.extent));
  }
}

}  // namespace tilert
