#include "lowering/layout.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "ir/int_eval.h"

namespace tilert {
namespace {

// Threads a digit of `owner` can tell apart.
int64_t Total(const FragmentLayout& layout, Owner owner) { return owner == Owner::kLane ? kLanes : layout.warps; }

// Contribution of coordinate `c` of `dim` to the index of `owner`.
int64_t Contribution(const LayoutDim& dim, int64_t c, Owner owner) {
  int64_t index = 0;
  for (const Factor& f : dim.factors) {
    if (f.owner == owner) index += (c % f.size) * f.stride;
    c /= f.size;
  }
  return index;
}

// Coordinates of a dimension at which indices of one owner are looked at: they do not change between two of these, and repeat
// after the last. Layouts of any extent have few.
class Samples {
 public:
  explicit Samples(int64_t extent) : end_(extent) {}
  void Add(const LayoutDim& dim, Owner owner) {
    int64_t weight = 1;
    for (const Factor& f : dim.factors) {
      const int64_t next = MulIndex(weight, f.size);
      if (f.owner == owner && f.size > 1) {
        step_ = std::gcd(step_, weight);
        period_ = MulIndex(period_ / std::gcd(period_, next), next);
      }
      weight = next;
    }
  }
  template <typename F>
  bool All(F holds) const {
    const int64_t end = std::min(end_, period_), step = std::max<int64_t>(step_, 1);
    for (int64_t c = 0; c < end; c += step) {
      if (!holds(c)) return false;
    }
    return true;
  }

 private:
  int64_t end_, step_ = 0, period_ = 1;
};

std::vector<Factor> OwnedBy(const FragmentLayout& layout, Owner owner) {
  std::vector<Factor> owned;
  for (const LayoutDim& dim : layout.dims) {
    for (const Factor& f : dim.factors) {
      if (f.owner == owner && f.size > 1) owned.push_back(f);
    }
  }
  std::sort(owned.begin(), owned.end(), [](const Factor& a, const Factor& b) { return a.stride < b.stride; });
  return owned;
}

void AppendReplicas(const FragmentLayout& layout, Owner owner, std::vector<Factor>* replicas) {
  int64_t reached = 1;
  for (const Factor& f : OwnedBy(layout, owner)) {
    if (f.stride > reached) replicas->push_back({f.stride / reached, owner, reached});
    reached = f.stride * f.size;
  }
  if (Total(layout, owner) > reached) replicas->push_back({Total(layout, owner) / reached, owner, reached});
}

// Every index of `owner` that a valid element, in any replica, can have, leaving out what dimension `skip` contributes.
std::vector<int64_t> Reachable(const FragmentLayout& layout, Owner owner, size_t skip) {
  std::vector<int64_t> sums = {0};
  const auto add = [&sums](std::vector<int64_t> terms) {
    std::vector<int64_t> next;
    for (int64_t a : sums) {
      for (int64_t b : terms) next.push_back(a + b);
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    sums = std::move(next);
  };
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    if (d == skip) continue;
    std::vector<int64_t> terms;
    Samples samples(layout.dims[d].extent);
    samples.Add(layout.dims[d], owner);
    samples.All([&](int64_t c) { return terms.push_back(Contribution(layout.dims[d], c, owner)), true; });
    std::sort(terms.begin(), terms.end());
    terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
    add(std::move(terms));
  }
  for (const Factor& f : layout.Replicas()) {
    if (f.owner != owner) continue;
    std::vector<int64_t> terms;
    for (int64_t digit = 0; digit < f.size; ++digit) terms.push_back(digit * f.stride);
    add(std::move(terms));
  }
  return sums;
}

int64_t ReplicaCount(const FragmentLayout& layout) {
  int64_t count = 1;
  for (const Factor& f : layout.Replicas()) count *= f.size;
  return count;
}

// Whether the digits of `owner` that dimension `d` of `data` fixes are right in every thread that runs a point of `loop`.
bool DigitsAgree(const FragmentLayout& data, const FragmentLayout& loop, size_t d, Owner owner) {
  const auto& factors = data.dims[d].factors;
  if (std::none_of(factors.begin(), factors.end(), [&](const Factor& f) { return f.owner == owner && f.size > 1; })) return true;
  const std::vector<int64_t> others = Reachable(loop, owner, d);
  Samples samples(loop.dims[d].extent);
  samples.Add(loop.dims[d], owner);
  samples.Add(data.dims[d], owner);
  return samples.All([&](int64_t c) {
    const int64_t own = Contribution(loop.dims[d], c, owner);
    int64_t weight = 1;
    for (const Factor& f : factors) {
      if (f.owner == owner) {
        const int64_t digit = (c / weight) % f.size;
        for (int64_t other : others) {
          if ((own + other) / f.stride % f.size != digit) return false;
        }
      }
      weight *= f.size;
    }
    return true;
  });
}

}  // namespace

int64_t LayoutDim::padded() const {
  int64_t product = 1;
  for (const Factor& f : factors) product *= f.size;
  return product;
}

int64_t FragmentLayout::regs() const {
  int64_t last = 0;
  for (const LayoutDim& dim : dims) {
    for (const Factor& f : dim.factors) {
      if (f.owner == Owner::kReg) last += (f.size - 1) * f.stride;
    }
  }
  return last + 1;
}

Place FragmentLayout::Locate(const std::vector<int64_t>& coords) const {
  Place place;
  for (size_t d = 0; d < dims.size(); ++d) {
    place.reg += Contribution(dims[d], coords[d], Owner::kReg);
    place.lane += static_cast<int>(Contribution(dims[d], coords[d], Owner::kLane));
    place.warp += static_cast<int>(Contribution(dims[d], coords[d], Owner::kWarp));
  }
  return place;
}

std::vector<int64_t> FragmentLayout::Coords(const Place& place) const {
  std::vector<int64_t> coords(dims.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t weight = 1;
    for (const Factor& f : dims[d].factors) {
      const int64_t index = f.owner == Owner::kReg ? place.reg : f.owner == Owner::kLane ? place.lane : place.warp;
      if (f.size > 1) coords[d] += index / f.stride % f.size * weight;
      weight *= f.size;
    }
  }
  return coords;
}

std::vector<Factor> FragmentLayout::Replicas() const {
  std::vector<Factor> replicas;
  AppendReplicas(*this, Owner::kLane, &replicas);
  AppendReplicas(*this, Owner::kWarp, &replicas);
  return replicas;
}

std::vector<int64_t> ExtentsOf(const FragmentLayout& layout) {
  std::vector<int64_t> extents;
  for (const LayoutDim& dim : layout.dims) extents.push_back(dim.extent);
  return extents;
}

bool IsPadded(const FragmentLayout& layout) {
  return std::any_of(layout.dims.begin(), layout.dims.end(), [](const LayoutDim& d) { return d.padded() != d.extent; });
}

FragmentLayout WithoutReplicas(FragmentLayout layout) {
  const std::vector<Factor> replicas = layout.Replicas();
  layout.dims[0].factors.insert(layout.dims[0].factors.end(), replicas.begin(), replicas.end());
  return layout;
}

bool FragmentLayout::IsReplicaZero(int lane, int warp) const {
  for (const Factor& f : Replicas()) {
    if ((f.owner == Owner::kLane ? lane : warp) / f.stride % f.size != 0) return false;
  }
  return true;
}

bool IsWellFormed(const FragmentLayout& layout) {
  if (layout.warps < 1) return false;
  for (const LayoutDim& dim : layout.dims) {
    for (const Factor& f : dim.factors) {
      if (f.size < 1 || (f.size > 1 && f.stride < 1)) return false;
    }
    if (dim.extent < 0 || dim.extent > dim.padded()) return false;
  }
  for (Owner owner : {Owner::kReg, Owner::kLane, Owner::kWarp}) {
    int64_t reached = 1;
    for (const Factor& f : OwnedBy(layout, owner)) {
      if (f.stride % reached != 0) return false;
      reached = f.stride * f.size;
    }
    if (owner != Owner::kReg && Total(layout, owner) % reached != 0) return false;
  }
  return true;
}

FragmentLayout Canonical(const FragmentLayout& layout) {
  FragmentLayout result = layout;
  for (LayoutDim& dim : result.dims) {
    std::vector<Factor> merged;
    for (const Factor& f : dim.factors) {
      if (f.size == 1) continue;
      if (!merged.empty() && merged.back().owner == f.owner && f.stride == merged.back().size * merged.back().stride) {
        merged.back().size *= f.size;
      } else {
        merged.push_back(f);
      }
    }
    dim.factors = std::move(merged);
  }
  return result;
}

FragmentLayout Project(const FragmentLayout& layout, const std::vector<int>& keep) {
  bool all = keep.size() == layout.dims.size();
  for (size_t d = 0; d < keep.size(); ++d) all = all && keep[d] == static_cast<int>(d);
  if (all) return layout;  // the order of registers may be an instruction's
  FragmentLayout result;
  result.warps = layout.warps;
  for (int d : keep) result.dims.push_back(layout.dims[d]);
  int64_t stride = 1;
  for (size_t d = result.dims.size(); d-- > 0;) {
    for (Factor& f : result.dims[d].factors) {
      if (f.owner != Owner::kReg) continue;
      f.stride = stride;
      stride *= f.size;
    }
  }
  return result;
}

FragmentLayout Dense(FragmentLayout layout) {
  std::vector<Factor*> registers;
  for (LayoutDim& dim : layout.dims) {
    for (Factor& factor : dim.factors) {
      if (factor.owner == Owner::kReg) registers.push_back(&factor);
    }
  }
  std::stable_sort(registers.begin(), registers.end(), [](const Factor* a, const Factor* b) { return a->stride < b->stride; });
  int64_t stride = 1;
  for (Factor* factor : registers) {
    factor->stride = stride;
    stride *= factor->size;
  }
  return layout;
}

bool CanRead(const FragmentLayout& data, const FragmentLayout& loop) {
  if (data.dims.size() != loop.dims.size() || data.warps != loop.warps) return false;
  for (const LayoutDim& dim : loop.dims) {
    if (dim.extent == 0) return true;  // no point, nothing to hold
  }
  for (size_t d = 0; d < data.dims.size(); ++d) {
    if (loop.dims[d].extent > data.dims[d].padded()) return false;
    if (!DigitsAgree(data, loop, d, Owner::kLane) || !DigitsAgree(data, loop, d, Owner::kWarp)) return false;
  }
  return true;
}

bool CanWrite(const FragmentLayout& data, const FragmentLayout& loop) {
  // The threads that run a point are among those that hold it, so equal counts make equal sets.
  return CanRead(data, loop) && ReplicaCount(data) == ReplicaCount(loop);
}

int64_t ContiguousRegs(const FragmentLayout& layout, int64_t limit) {
  const FragmentLayout canonical = Canonical(layout);
  if (canonical.dims.empty() || canonical.dims.back().factors.empty()) return 1;
  const Factor& first = canonical.dims.back().factors.front();
  if (first.owner != Owner::kReg || first.stride != 1) return 1;
  int64_t width = 1;
  while (width * 2 <= limit && first.size % (width * 2) == 0) width *= 2;
  return width;
}

std::string ToString(const FragmentLayout& layout) {
  static constexpr const char* kNames[] = {"reg", "lane", "warp"};
  std::string text;
  for (const LayoutDim& dim : layout.dims) {
    if (!text.empty()) text += " x ";
    text += std::to_string(dim.extent);
    if (dim.padded() != dim.extent) text += " of " + std::to_string(dim.padded());
    text += " (";
    for (size_t i = 0; i < dim.factors.size(); ++i) {
      const Factor& f = dim.factors[i];
      if (i > 0) text += ", ";
      text += kNames[static_cast<int>(f.owner)];
      text += " " + std::to_string(f.size) + "@" + std::to_string(f.stride);
    }
    text += ")";
  }
  if (text.empty()) text = "scalar";
  return text + ", " + std::to_string(layout.warps) + (layout.warps == 1 ? " warp" : " warps");
}

}  // namespace tilert
