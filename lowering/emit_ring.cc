// Rings of mbarriers and bulk tensor copies.
#include "absl/strings/str_join.h"
#include "ir/status_util.h"
#include "lowering/emit_place.h"

namespace tilert {
namespace {

// Address of a barrier of slot `slot` (a C expression).
std::string BarrierAt(const std::string& first, const std::string& slot) {
  return Cat(first, " + ", slot, " * ", kir::kBarrierBytes);
}

// Address of byte `offset` of a version of a shared tile; texts that are "0" are left out.
std::string TileAddress(const kir::Buffer& tile, const CText& version, const CText& offset) {
  const int64_t version_bytes = tile.shared.version_bytes();
  return CSum({{"smem_base"}, CNumber(tile.offset), CScaled(version, version_bytes), offset}).text;
}

// The part of a tile that a warpgroup, or a block of a cluster, moves: panels, or rows along a tensor dim. One part: all of it.
struct Share {
  int64_t parts = 1;
  std::string index;  // which of them
  bool by_panel = false;
  int64_t rows = 0;
  size_t dim = 0;
};

Share RowsOf(const EmitContext& c, kir::MapId map) {
  Share share;
  const std::vector<int64_t>& box = c.kernel.tensor_maps[map].box;
  while (share.dim + 1 < box.size() && box[share.dim] == 1) ++share.dim;
  share.rows = box[share.dim];
  return share;
}

// Of a store, one part a warpgroup.
Share ShareOf(const EmitContext& c, const kir::TmaStore& s) {
  if (c.role.role == nullptr || !c.role.role->stores_by_warpgroup || c.role.role->warps <= kWarpgroupWarps) return {};
  Share share = RowsOf(c, s.map);
  share.parts = c.role.role->warps / kWarpgroupWarps;
  share.index = "(warp >> 2)";
  return share;
}

// Of a load, one part for each block that gets it.
Share ShareOf(const EmitContext& c, const kir::TmaLoad& s) {
  if (s.multicast == 0) return {};
  Share share = RowsOf(c, s.map);
  int64_t rows = 1;
  const std::vector<int64_t>& box = c.kernel.tensor_maps[s.map].box;
  for (size_t d = 0; d + 1 < box.size(); ++d) rows *= box[d];
  share.parts = kir::ClusterExtent(c.kernel, s.multicast);
  share.index = ClusterIndex(c, s.multicast);
  share.by_panel = rows == c.buffer(s.dst).shared.rows();
  return share;
}

// Where a box begins. What does not fit the instruction's 32 bits lies far outside the tensor, whose dims are below 2^30: the
// nearest that does, and leaves room for the box, is as far.
CText BoxCoordinate(EmitContext& c, Expr e) {
  const CText text = EmitExpr(c, e);
  return IsWide(c, e) ? CText{Cat("box_start(", text.text, ")")} : text;
}

// Issues one copy a panel of the tile: `call(address, coordinates)` gives the statement.
template <typename Call>
void ForPanels(EmitContext& c, const kir::Buffer& tile, const CText& version, const std::vector<Expr>& coords, const Share& share,
               Call call) {
  const SharedLayout& shared = tile.shared;
  const bool by_rows = share.parts > 1 && !share.by_panel;
  int64_t panels = shared.extents.back() * shared.element_bytes / shared.panel, width = shared.panel / shared.element_bytes;
  if (share.by_panel) panels /= share.parts;
  CText panel{"0"};
  if (panels > 1) {
    panel = {c.names.Fresh("p")};
    c.OpenUnrolled(panel.text, 0, panels);
  }
  if (share.by_panel) panel = CSum({panel, CScaled({share.index}, panels)});
  std::vector<std::string> at;  // the innermost first
  for (size_t d = coords.size(); d-- > 0;) {
    const CText coordinate = BoxCoordinate(c, coords[d]);
    CText sum = coordinate;
    if (d + 1 == coords.size()) sum = CSum({coordinate, CScaled(panel, width)});
    if (by_rows && d == share.dim) sum = CSum({coordinate, CScaled({share.index}, share.rows)});
    at.push_back(sum.text);
  }
  CText offset = CScaled(panel, shared.rows() * shared.pitch);
  if (by_rows) offset = CSum({offset, CScaled({share.index}, shared.rows() / share.parts * shared.pitch)});
  c.out.Line(call(TileAddress(tile, version, offset), absl::StrJoin(at, ", ")));
  if (panels > 1) c.Close();
}

// Condition of the lanes whose numbers are ranks of blocks that a slot of the ring is released to.
std::string EmitPeers(EmitContext& c, const kir::Ring& ring) {
  const int size = kir::ClusterSize(c.kernel);
  if (static_cast<int>(PeersOf(c.kernel, ring, 0).size()) == size) return Cat("lane < ", size);
  CText mask;
  for (kir::ClusterAxes axes : ring.multicasts)
    mask = mask.text.empty() ? ClusterMask(c, axes) : CBinary(mask, "|", CText::kBitOr, ClusterMask(c, axes));
  const std::string name = c.names.Fresh(Cat(ring.name, "_peers"));
  c.out.Line(Cat("const u32 ", name, " = ", mask.text, ";"));
  return Cat(name, " >> lane & 1");
}

}  // namespace

bool IsOneThreads(const kir::StmtOp& op) {
  return std::holds_alternative<kir::ExpectTx>(op) || std::holds_alternative<kir::MbarExpect>(op) || std::holds_alternative<kir::MbarComplete>(op) ||
         std::holds_alternative<kir::TmaLoad>(op) || std::holds_alternative<kir::TmaStore>(op) ||
         std::holds_alternative<kir::StoreCommit>(op) || std::holds_alternative<kir::StoreWait>(op);
}

void EmitRingSetup(EmitContext& c) {
  c.policies.assign(c.kernel.buffers.size(), "");
  if (c.kernel.rings.empty() && c.maps.empty() && c.kernel.cluster_barrier < 0 && c.kernel.barriers.empty()) return;
  for (const kir::Barrier& barrier : c.kernel.barriers) {
    c.barriers.push_back(c.names.Fresh(barrier.name));
    c.out.Line(Cat("const u32 ", c.barriers.back(), " = smem_base + ", barrier.offset, ";"));
  }
  for (const kir::Ring& ring : c.kernel.rings) {
    RingText text;
    text.full = c.names.Fresh(Cat(ring.name, "_full"));
    text.empty = c.names.Fresh(Cat(ring.name, "_empty"));
    c.out.Line(Cat("const u32 ", text.full, " = smem_base + ", ring.offset, ", ", text.empty, " = ", text.full, " + ",
                   ring.slots * kir::kBarrierBytes, ";"));
    if (!ring.multicasts.empty()) text.peers = EmitPeers(c, ring);
    c.rings.push_back(text);
  }
  const bool syncs_in_roles = c.kernel.cluster_barrier >= 0;
  if (syncs_in_roles) c.out.Line(Cat("const u32 cluster_barrier = smem_base + ", c.kernel.cluster_barrier, ";"));
  c.Open("if (threadIdx.x == 0) {");
  for (const std::string& map : c.maps) c.out.Line(Cat("prefetch(", map, ");"));
  for (size_t r = 0; r < c.rings.size(); ++r) {
    const kir::Ring& ring = c.kernel.rings[r];
    const std::string i = c.names.Fresh("i");
    c.OpenUnrolled(i, 0, ring.slots);
    c.out.Line(Cat("mbarrier_init(", BarrierAt(c.rings[r].full, i), ", 1);"));
    c.out.Line(Cat("mbarrier_init(", BarrierAt(c.rings[r].empty, i), ", ", ring.consumers, ");"));
    c.Close();
  }
  if (syncs_in_roles)
    c.out.Line(Cat("mbarrier_init(cluster_barrier, ", kir::ClusterExtent(c.kernel, kir::SplitAxis(c.kernel)), ");"));
  for (size_t b = 0; b < c.barriers.size(); ++b) {
    const std::string i = c.names.Fresh("i");
    c.OpenUnrolled(i, 0, c.kernel.barriers[b].size);
    c.out.Line(Cat(c.kernel.barriers[b].by_hand ? "counted" : "declared", "_init(", BarrierAt(c.barriers[b], i), ", ", c.kernel.barriers[b].arrivals, ");"));
    c.Close();
  }
  const bool has_barriers = !c.rings.empty() || syncs_in_roles || !c.barriers.empty();
  const bool by_tma = !c.rings.empty() || syncs_in_roles || !c.maps.empty();
  if (has_barriers && by_tma) c.out.Line("mbarrier_init_fence();");
  c.Close();
  EmitPolicies(c);
  if (has_barriers) c.out.Line(c.kernel.cluster.empty() ? "__syncthreads();" : "cluster_start();");
}

void EmitRingPositions(EmitContext& c) {
  for (size_t r = 0; r < c.rings.size(); ++r) {
    const kir::Ring& ring = c.kernel.rings[r];
    c.rings[r].slot = c.names.Fresh(Cat(ring.name, "_slot"));
    c.rings[r].phase = c.names.Fresh(Cat(ring.name, "_phase"));
    c.out.Optional(c.rings[r].slot, Cat("int ", c.rings[r].slot, " = 0;"));
    c.out.Optional(c.rings[r].phase, Cat("u32 ", c.rings[r].phase, " = 0;"));
    VarText& var = c.vars[ring.slot];
    var.name = c.rings[r].slot;
    var.wide = var.fixed = var.thread = var.has_coordinate = false;
    c.ranges.Bind(ring.slot, {0, ring.slots - 1, 1});
  }
}

void Emit(EmitContext& c, const kir::Acquire& s) {
  const RingText& ring = c.rings[s.ring];
  // The filling side is a round ahead: on fresh barriers its waits for the round before pass.
  c.out.Line(
      Cat("mbarrier_wait(", BarrierAt(s.fill ? ring.empty : ring.full, ring.slot), ", ", ring.phase, s.fill ? " ^ 1);" : ");"));
}

void Emit(EmitContext& c, const kir::ExpectTx& s) {
  c.out.Line(Cat("mbarrier_expect(", BarrierAt(c.rings[s.ring].full, c.rings[s.ring].slot), ", ", s.bytes, ");"));
}

void Emit(EmitContext& c, const kir::Release& s) {
  const RingText& ring = c.rings[s.ring];
  const std::string slot =
      s.behind == 0 ? ring.slot : Cat("behind<", c.kernel.rings[s.ring].slots, ">(", ring.slot, ", ", s.behind, ")");
  c.out.Line("__syncwarp();");
  if (ring.peers.empty()) return c.out.Line(Cat("if (lane == 0) mbarrier_arrive(", BarrierAt(ring.empty, slot), ");"));
  // A lane for each block that fills a part of the slot.
  c.out.Line(Cat("if (", ring.peers, ") mbarrier_arrive_peer(peer_address(", BarrierAt(ring.empty, slot), ", lane));"));
}

void Emit(EmitContext& c, const kir::Advance& s) {
  const RingText& ring = c.rings[s.ring];
  const int slots = c.kernel.rings[s.ring].slots;
  int64_t count = 0;
  if (!c.kernel.exprs.AsInt(s.count, &count)) {
    c.out.Line(Cat("advance<", slots, ">(", ring.slot, ", ", ring.phase, ", ", EmitInt(c, s.count).text, ");"));
  } else if (slots == 1) {
    if (count % 2 == 1) c.out.Line(Cat(ring.phase, " ^= 1;"));
  } else if (count == 1) {
    c.out.Line(Cat("if (++", ring.slot, " == ", slots, ") { ", ring.slot, " = 0; ", ring.phase, " ^= 1; }"));
  } else if (count > 0) {
    c.out.Line(Cat("advance<", slots, ">(", ring.slot, ", ", ring.phase, ", ", count, ");"));
  }
}

void Emit(EmitContext& c, const kir::TmaLoad& s) {
  const std::string& policy = c.policies[c.kernel.tensor_maps[s.map].buffer];
  const std::string function = policy.empty() ? "tma_load(" : "tma_load_hinted(", hint = policy.empty() ? "" : Cat(policy, ", ");
  if (s.barrier != kNoId) {
    const CText version = s.version ? EmitInt(c, s.version) : CText{"0"};
    const std::string index = EmitInt(c, s.index).In(CText::kUnary);
    const std::string barrier =
        c.kernel.barriers[s.barrier].size == 1 ? c.barriers[s.barrier] : BarrierAt(c.barriers[s.barrier], index);
    return ForPanels(c, c.buffer(s.dst), version, s.coords, {}, [&](const std::string& address, const std::string& at) {
      return Cat(function, address, ", ", c.maps[s.map], ", ", barrier, ", ", hint, at, ");");
    });
  }
  const RingText& ring = c.rings[s.ring];
  const Share share = ShareOf(c, s);
  ForPanels(c, c.buffer(s.dst), {ring.slot}, s.coords, share, [&](const std::string& address, const std::string& at) {
    if (share.parts > 1) {
      return Cat("tma_multicast(", address, ", ", c.maps[s.map], ", ", BarrierAt(ring.full, ring.slot), ", ",
                 ClusterMask(c, s.multicast).text, ", ", policy.empty() ? "kEvictNormal" : policy, ", ", at, ");");
    }
    return Cat(function, address, ", ", c.maps[s.map], ", ", BarrierAt(ring.full, ring.slot), ", ", hint, at, ");");
  });
}

void Emit(EmitContext& c, const kir::TmaStore& s) {
  ForPanels(c, c.buffer(s.src), EmitInt(c, s.version), s.coords, ShareOf(c, s),
            [&](const std::string& address, const std::string& at) {
              return Cat(s.op == kir::StoreOp::kAdd ? "tma_add(" : "tma_store(", c.maps[s.map], ", ", address, ", ", at, ");");
            });
}

void Emit(EmitContext& c, const kir::StoreWait& s) {
  c.out.Line(Cat(s.read ? "tma_wait_read<" : "tma_wait<", s.pending, ">();"));
}

}  // namespace tilert
