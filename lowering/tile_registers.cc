// How many registers of a thread the fragments take that hold values at the same time. Somewhat too many is slow: what does not fit lies in local memory.
// Far too many is refused here, since the compiler of the emitted code would not end.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/printer.h"
#include "ir/status_util.h"
#include "lowering/fragment_uses.h"
#include "lowering/tile_access.h"
#include "lowering/tile_roles.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

constexpr int64_t kRegisterBytes = 4, kHas = 255;
// NVRTC 13 takes 2 to 10 s for a kernel with 512 registers of fragments, and from 15 s to more than 100 s with 1,024, whether it multiplies or only copies. What
// takes less than that many is left to the deadline of compiles: 836 were 1 s where values die early.
constexpr int64_t kMostRegisters = 960;

using Set = absl::flat_hash_set<BufferId>;

class Pressure {
 public:
  explicit Pressure(const TileState& state) : s_(state) {}

  // `touched`: the fragments of one part of the block's threads.
  void Run(const Block& body, Set touched) {
    touched_ = std::move(touched);
    Before(body, {});
  }
  int64_t peak() const { return peak_; }
  const SourceLoc& where() const { return where_; }
  // Of the fragments, the largest first.
  std::vector<std::pair<int64_t, BufferId>> Largest() const {
    std::vector<std::pair<int64_t, BufferId>> sizes;
    for (BufferId id : held_) sizes.push_back({-Registers(id), id});
    std::sort(sizes.begin(), sizes.end());
    for (auto& [registers, id] : sizes) registers = -registers;
    return sizes;
  }

 private:
  // Arrays that each thread has for itself are memory of the thread, whatever their size.
  int64_t Registers(BufferId id) const {
    const FragmentLayout& layout = s_.fragments.at(id);
    const bool spread = std::any_of(layout.dims.begin(), layout.dims.end(), [](const LayoutDim& dim) {
      return std::any_of(dim.factors.begin(), dim.factors.end(), [](const Factor& f) { return f.owner != Owner::kReg && f.size > 1; });
    });
    return spread ? (layout.regs() * DTypeBytes(s_.buffer(id).dtype) + kRegisterBytes - 1) / kRegisterBytes : 0;
  }

  Set Mine(const Set& buffers) const {
    Set mine;
    for (BufferId id : buffers) {
      if (touched_.contains(id)) mine.insert(id);
    }
    return mine;
  }

  // Fragments that the statement gives all their elements.
  Set Overwritten(const Stmt& stmt) const {
    Set all;
    const auto whole = [&](const Region& dst) {
      if (s_.IsWhole(dst)) all.insert(dst.buffer);
    };
    if (auto* fill = std::get_if<Fill>(&stmt.op)) whole(fill->dst);
    if (auto* copy = std::get_if<Copy>(&stmt.op)) whole(copy->dst);
    if (auto* reduce = std::get_if<Reduce>(&stmt.op); reduce != nullptr && reduce->clear) whole(reduce->dst);
    if (auto* gemm = std::get_if<Gemm>(&stmt.op); gemm != nullptr && gemm->clear_accum) whole(gemm->c);
    auto* loop = std::get_if<Parallel>(&stmt.op);
    if (loop == nullptr || !AllKnown(s_.Extents(loop->extents))) return all;
    for (const FragmentUse& use : FragmentUses(s_, *loop)) {
      const bool stored = std::any_of(loop->body.begin(), loop->body.end(), [&](const Stmt& s) { return WritesDirectly(s, use.buffer); });
      int64_t points = 1;
      for (int dim : FollowedDims(use)) points *= s_.Extents(loop->extents)[static_cast<size_t>(dim)];
      if (use.plain && use.write && stored && points == Product(s_.Shape(use.buffer))) all.insert(use.buffer);
    }
    return all;
  }

  // What is alive before, from what is alive after.
  Set Before(const Block& block, Set live) {
    for (size_t i = block.size(); i-- > 0;) live = Before(block[i], std::move(live));
    return live;
  }

  Set Before(const Stmt& stmt, Set live) {
    if (std::holds_alternative<ThreadRegion>(stmt.op)) return live;
    const bool loop = std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op);
    if (loop || std::holds_alternative<If>(stmt.op) || std::holds_alternative<Roles>(stmt.op)) {
      for (int pass = 0; pass < (loop ? 2 : 1); ++pass) {
        const Set after = live;
        for (const Block* child : ChildBlocks(stmt)) live.merge(Before(*child, after));
      }
      return live;
    }
    const Set read = Mine(BuffersRead(s_.program, stmt)), written = Mine(BuffersWritten(stmt));
    Set here = live;
    here.insert(read.begin(), read.end());
    here.insert(written.begin(), written.end());
    Note(std::move(here), stmt.loc);
    for (BufferId id : Overwritten(stmt)) live.erase(id);
    live.insert(read.begin(), read.end());
    return live;
  }

  void Note(Set here, const SourceLoc& loc) {
    int64_t registers = 0;
    for (BufferId id : here) registers += Registers(id);
    if (registers <= peak_) return;
    peak_ = registers;
    held_ = std::move(here);
    where_ = loc;
  }

  const TileState& s_;
  Set touched_, held_;
  int64_t peak_ = 0;
  SourceLoc where_;
};

Set FragmentsOf(const TileState& s, const Stmt& stmt) {
  Set touched;
  for (BufferId id : BuffersTouched(s.program, stmt)) {
    if (s.fragments.contains(id)) touched.insert(id);
  }
  return touched;
}

}  // namespace

absl::Status CheckRegisters(TileState& state) {
  const Block& body = state.L().body;
  Pressure pressure(state);
  TILERT_ASSIGN_OR_RETURN(const RoleParts parts, ProgramRoles(state));
  if (parts.spans.empty()) {
    Set touched;
    for (const Stmt& stmt : body) touched.merge(FragmentsOf(state, stmt));
    pressure.Run(body, std::move(touched));
  }
  for (size_t i = 0; i < parts.spans.size(); ++i) {
    Set touched;
    ForEachRoleStmt(state, body, parts, i, [&](const Stmt& stmt) {
      if (ChildBlocks(stmt).empty() || std::holds_alternative<Parallel>(stmt.op)) touched.merge(FragmentsOf(state, stmt));
    });
    pressure.Run(body, std::move(touched));
  }
  if (pressure.peak() <= kMostRegisters) return absl::OkStatus();
  std::vector<std::string> names;
  for (const auto& [registers, id] : pressure.Largest()) names.push_back(Cat(state.buffer(id).name, " ", registers));
  if (names.size() > 6) names.resize(6);
  return absl::ResourceExhaustedError(Cat("'", state.program.name, "' holds ", pressure.peak(), " registers of fragments in each thread",
                                          Where(state.program, pressure.where()), ", of the ", kHas, " that a thread has: ", absl::StrJoin(names, ", "),
                                          "; use more threads or smaller tiles, or T.alloc_shared for what is needed now and then (up to ", kMostRegisters,
                                          " are compiled, those without a place in local memory)"));
}

}  // namespace tilert
