// Roles: partitions of the block with bodies, barriers and ring positions of their own; and the loop of a persistent kernel over
// its tiles.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/status_util.h"
#include "lowering/emit_place.h"

namespace tilert {
namespace {

constexpr int kNamedBarriers = 16;  // of the hardware; roles take them from below, numbered ones from above
constexpr int kMaxRegisters = 248;  // of a thread, in steps of eight

// What ptxas gives each thread of a kernel that moves registers between its warps.
int RegistersAtStart(const EmitContext& c) {
  const int threads = c.kernel.warps * kLanes * c.kernel.min_blocks_per_sm;
  return std::min(c.target.registers_per_sm / threads / 8 * 8, kMaxRegisters);
}

void EmitRegisters(EmitContext& c, const kir::Role& role) {
  const int start = RegistersAtStart(c);
  if (role.max_registers == 0 || role.max_registers == start) return;
  c.out.Line(Cat(role.max_registers > start ? "take" : "give", "_registers<", role.max_registers, ">();"));
}

bool HasOrder(const kir::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const kir::Stmt& stmt) {
    const std::vector<const kir::Block*> children = kir::ChildBlocks(stmt);
    return std::holds_alternative<kir::OrderWait>(stmt.op) ||
           std::any_of(children.begin(), children.end(), [](const kir::Block* child) { return HasOrder(*child); });
  });
}

bool SyncsWarpgroups(const kir::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const kir::Stmt& stmt) {
    const std::vector<const kir::Block*> children = kir::ChildBlocks(stmt);
    auto* sync = std::get_if<kir::BarSync>(&stmt.op);
    return (sync != nullptr && sync->by_warpgroup) ||
           std::any_of(children.begin(), children.end(), [](const kir::Block* child) { return SyncsWarpgroups(*child); });
  });
}

// The body of a role, in the branch that its warps take.
void EmitRole(EmitContext& c, const kir::Role& role, int first_warp, int* barriers) {
  const CText block_warp{"block_warp"};
  const CText number = first_warp == 0 ? block_warp : CBinary(block_warp, "-", CText::kSum, CNumber(first_warp));
  c.out.Line(Cat("// ", CommentText(role.name)));
  EmitRegisters(c, role);
  c.role = {};
  c.role.role = &role;
  c.role.barrier = *barriers + 1;
  c.role.order = c.role.barrier + role.instances;
  *barriers += role.instances * (role.instances > 1 ? 2 : 1);
  c.role.by_warpgroup = *barriers + 1;
  if (SyncsWarpgroups(role.body)) *barriers += role.warps / kWarpgroupWarps;
  if (role.instances > 1) {
    VarId var = role.instance;
    c.role.instance = c.names.Fresh(var == kNoId ? "instance" : c.kernel.vars[var].name);
    c.out.Line(Cat("const int ", c.role.instance, " = ", CDivided(number, role.warps).text, ";"));
    if (var != kNoId) {
      c.vars[var].name = c.role.instance;
      c.ranges.Bind(var, {0, role.instances - 1, 1});
    }
    c.out.Optional("warp", Cat("const int warp = ", CModulo(number, role.warps).text, ";"));
  } else if (!role.one_thread) {
    c.out.Optional("warp", Cat("const int warp = ", number.text, ";"));
  }
  if (role.one_thread) {
    c.role.writer.clear();
    c.Open(Cat("if (block_warp == ", first_warp, " && elect_one()) {"));
  } else {
    c.role.writer = "leader";
    const char* first = role.stores_by_warpgroup ? "(warp & 3) == 0 && lane == 0"
                        : role.warps > 1         ? "warp == 0 && lane == 0"
                                                 : "lane == 0";
    c.out.Optional("leader", Cat("const bool leader = ", first, ";"));
  }
  EmitRingPositions(c);
  c.out.Optional("sync_phase", "u32 sync_phase = 0;");
  // The first instance has the order token: the other one gives it.
  if (HasOrder(role.body))
    c.out.Line(Cat("if (", c.role.instance, " == 1) barrier_arrive<", 2 * role.warps * kLanes, ">(", c.role.order, ");"));
  EmitBlock(c, role.body);
  if (role.one_thread) c.Close();
  c.role = {};
}

// The named barrier `first` of instance 0, the ones after it of the others.
std::string OfInstance(const EmitContext& c, int first, bool other = false) {
  if (c.role.role->instances == 1) return std::to_string(first);
  return other ? Cat(first + 1, " - ", c.role.instance) : Cat(first, " + ", c.role.instance);
}

}  // namespace

void Emit(EmitContext& c, const kir::Roles& roles) {
  int end = 0, barriers = 0;
  for (size_t r = 0; r < roles.roles.size(); ++r) {
    const kir::Role& role = roles.roles[r];
    const int first = end;
    end += role.warps * role.instances;
    const bool last = r + 1 == roles.roles.size();
    const std::string condition = last ? "{" : Cat("if (block_warp < ", end, ") {");
    if (r == 0) {
      c.Open(condition);
    } else {
      c.Close(Cat("} else ", condition));
      c.Open("");
    }
    EmitRole(c, role, first, &barriers);
  }
  c.Close();
  // What follows is for all.
  if (std::get_if<kir::Roles>(&c.kernel.body.back().op) != &roles) c.out.Line("__syncthreads();");
}

void Emit(EmitContext& c, const kir::ForTiles& loop) {
  const std::vector<std::string> extents = ClusterGrid(c);
  c.Open("{");
  const std::string tiles = c.names.Fresh("tiles");
  c.out.Line(Cat("const u32 ", tiles, " = ", absl::StrJoin(extents, " * "), ";"));
  const int instances = c.role.role == nullptr ? 1 : c.role.role->instances;
  const std::string number = ClusterNumber(c, "blockIdx.x"), count = ClusterNumber(c, "gridDim.x");
  const std::string first = instances == 1 ? number : Cat(number, " + ", c.role.instance, " * ", count);
  if (c.kernel.shared_trips) {
    EmitBlockVars(c, OpenShares(c, number, count, tiles));
  } else {
    const std::string tile = c.names.Fresh("tile");
    c.out.Line("#pragma unroll 1");
    c.Open(Cat("for (u32 ", tile, " = ", first, "; ", tile, " < ", tiles, "; ", tile,
               " += ", instances == 1 ? "" : Cat(instances, " * "), count, ") {"));
    EmitBlockVars(c, tile);
  }
  EmitBlock(c, loop.body);
  c.Close();
  c.Close();
}

void Emit(EmitContext& c, const kir::BarSync& s) {
  if (s.number > 0) return c.out.Line(Cat("barrier_sync<", s.warps * kLanes, ">(", kNamedBarriers - s.number, ");"));
  if (c.role.role == nullptr) return c.out.Line("__syncthreads();");
  if (s.by_warpgroup)
    return c.out.Line(Cat("barrier_sync<", kWarpgroupWarps * kLanes, ">(", c.role.by_warpgroup, " + (warp >> 2));"));
  const int warps = c.role.role->warps;
  c.out.Line(warps == 1 ? "__syncwarp();" : Cat("barrier_sync<", warps * kLanes, ">(", OfInstance(c, c.role.barrier), ");"));
}

// Within a role through a mbarrier of each block: the hardware's barrier is one of all threads.
void Emit(EmitContext& c, const kir::ClusterSync&) {
  if (c.role.role == nullptr) return c.out.Line("cluster_sync();");
  Emit(c, kir::BarSync{});
  const int sharers = kir::ClusterExtent(c.kernel, kir::SplitAxis(c.kernel)), blocks = kir::ClusterSize(c.kernel) / sharers;
  const CText rank{c.vars[c.kernel.cluster_rank].name};
  const std::string first = blocks == 1 ? "" : Cat(CModulo(rank, blocks).In(CText::kSum), " + ");
  c.out.Line(Cat("if (", c.role.role->warps > 1 ? "warp == 0 && " : "", "lane < ", sharers,
                 ") mbarrier_release_peer(peer_address(cluster_barrier, ", first, CScaled({"lane"}, blocks).text, "));"));
  c.out.Line("mbarrier_acquire(cluster_barrier, sync_phase);");
  c.out.Line("sync_phase ^= 1;");
}

// Address of this thread's place in a part, in this block.
std::string PlaceInPart(const EmitContext& c, BufferId part) {
  return CSum({{"smem_base"}, CScaled({"(warp * 32 + lane)"}, 16), CNumber(c.buffer(part).offset)}).text;
}

void Emit(EmitContext& c, const kir::PartStore& s) {
  c.out.Line(Cat("part_store<", c.buffer(s.part).shared.extents[1], ">(", PlaceInPart(c, s.part), ", ", c.buffers[s.src], ");"));
}

void Emit(EmitContext& c, const kir::PartAdd& s) {
  c.out.Line(Cat("part_add<", c.buffer(s.part).shared.extents[1], ">(", c.buffers[s.acc], ", peer_address(",
                 PlaceInPart(c, s.part), ", ", EmitInt(c, s.peer).text, "));"));
}

void Emit(EmitContext& c, const kir::OrderWait&) {
  c.out.Line(Cat("barrier_sync<", 2 * c.role.role->warps * kLanes, ">(", OfInstance(c, c.role.order), ");"));
}

void Emit(EmitContext& c, const kir::OrderPass&) {
  c.out.Line(Cat("barrier_arrive<", 2 * c.role.role->warps * kLanes, ">(", OfInstance(c, c.role.order, true), ");"));
}

}  // namespace tilert
