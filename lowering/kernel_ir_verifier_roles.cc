// Roles, the rings between them, and bulk tensor copies.
#include <algorithm>

#include "ir/limits.h"
#include "lowering/kernel_ir_verifier.h"

namespace tilert::kir {
namespace {

constexpr int kRegistersPerSm = 65536;
constexpr int64_t kMaxBox = 256;  // elements along a dim of a tensor map

bool IsSwizzle(int bytes) { return bytes == 0 || bytes == 32 || bytes == 64 || bytes == 128; }

// Extents with those that are 1 left out.
std::vector<int64_t> Proper(const std::vector<int64_t>& extents, size_t count) {
  std::vector<int64_t> proper;
  std::copy_if(extents.begin(), extents.begin() + static_cast<ptrdiff_t>(count), std::back_inserter(proper),
               [](int64_t e) { return e != 1; });
  return proper;
}

}  // namespace

void KernelVerifier::Tables(const Ring& ring) {
  Requires(ring.slots >= 1 && ring.consumers >= 1, "ring '", ring.name, "' has ", ring.slots, " slots and ", ring.consumers,
           " consumers");
  Requires(ring.slot < kernel_.vars.size(), "ring '", ring.name, "' has no slot variable");
  for (BufferId id : ring.buffers) {
    if (!Requires(id < kernel_.buffers.size() && kernel_.buffers[id].space == Space::kShared, "ring '", ring.name, "' is of ",
                  Name(id), ", which is not in shared memory"))
      return;
    Requires(kernel_.buffers[id].versions == ring.slots, Name(id), " has ", kernel_.buffers[id].versions, " versions, ring '",
             ring.name, "' ", ring.slots, " slots");
    int rings = 0;
    for (const Ring& other : kernel_.rings) rings += std::count(other.buffers.begin(), other.buffers.end(), id);
    Requires(rings == 1, Name(id), " is in ", rings, " rings");
  }
  if (ring.offset < 0) return;  // not placed yet
  const int64_t end = ring.offset + 16 * ring.slots;
  Requires(ring.offset % 8 == 0 && end <= kernel_.shared_bytes, "barriers of ring '", ring.name, "' are at bytes ", ring.offset,
           " to ", end, " of ", kernel_.shared_bytes);
  for (const Buffer& buffer : kernel_.buffers) {
    if (buffer.space != Space::kShared || buffer.offset < 0) continue;
    const int64_t size = buffer.shared.version_bytes() * buffer.versions;
    Requires(end <= buffer.offset || buffer.offset + size <= ring.offset, "barriers of ring '", ring.name, "' lie in '",
             buffer.name, "'");
  }
}

void KernelVerifier::Tables(const TensorMap& map) {
  if (!Requires(map.buffer < kernel_.buffers.size() && kernel_.buffers[map.buffer].space == Space::kGlobal, "a tensor map is of ",
                Name(map.buffer), ", which is no tensor"))
    return;
  const Buffer& buffer = kernel_.buffers[map.buffer];
  const size_t rank = buffer.shape.size();
  if (!Requires(rank >= 1 && rank <= 5 && map.box.size() == rank, "the tensor map of ", Name(map.buffer), " has ", map.box.size(),
                " extents, the tensor ", rank, "; 1 to 5 are possible"))
    return;
  Requires(kernel_.exprs.IsInt(buffer.strides.back(), 1), "the tensor map of ", Name(map.buffer),
           " needs elements of a row side by side");
  Requires(buffer.alignment % 16 == 0, "the tensor map of ", Name(map.buffer), " needs an alignment of 16 bytes, it has ",
           buffer.alignment);
  for (int64_t extent : map.box)
    Requires(extent >= 1 && extent <= kMaxBox, "the tensor map of ", Name(map.buffer), " has a box extent of ", extent);
  const int64_t row = map.box.back() * DTypeBytes(buffer.dtype);
  Requires(row % 16 == 0, "boxes of ", Name(map.buffer), " have rows of ", row, " bytes, no multiple of 16");
  Requires(IsSwizzle(map.swizzle) && (map.swizzle == 0 || row <= map.swizzle), "boxes of ", Name(map.buffer), " with rows of ",
           row, " bytes cannot be swizzled by ", map.swizzle);
}

void KernelVerifier::CheckPlacement(const Buffer& tile) {
  if (!tile.shared.swizzled || tile.offset < 0) return;
  // The pattern repeats every eight rows and is one of absolute addresses.
  const int64_t period = 8 * tile.shared.panel, version = tile.shared.version_bytes();
  Requires(tile.offset % period == 0 && (tile.versions == 1 || version % period == 0), "'", tile.name, "' is at offset ",
           tile.offset, " with versions ", version, " bytes apart: its swizzle needs multiples of ", period);
}

void KernelVerifier::Check(const Roles& op, const std::string& path) {
  if (!Requires(IsTopLevel() && role_ == nullptr, "roles within other statements")) return;
  const auto is_roles = [](const Stmt& stmt) { return std::holds_alternative<Roles>(stmt.op); };
  Requires(std::count_if(kernel_.body.begin(), kernel_.body.end(), is_roles) == 1, "a kernel divides its warps into roles once");
  for (const Stmt& stmt : kernel_.body) {
    if (is_roles(stmt)) break;
    const Declare* declare = std::get_if<Declare>(&stmt.op);
    const bool shared_value =
        std::holds_alternative<Let>(stmt.op) || (declare != nullptr && kernel_.buffers[declare->buffer].layout.dims.empty());
    Requires(shared_value, "only values that all roles share may come before them");
  }
  int warps = 0, barriers = 0;
  for (const Role& role : op.roles) {
    Requires(role.warps >= 1 && role.instances >= 1, "role '", role.name, "' has ", role.warps, " warps, ", role.instances,
             " instances");
    warps += role.warps * role.instances;
    barriers += role.instances * 2;
  }
  Requires(warps == kernel_.warps, "the roles have ", warps, " warps, the kernel ", kernel_.warps);
  Requires(barriers <= kNamedBarriers, op.roles.size(), " roles need more barriers than there are");
  CheckRegisterBudget(op);
  int first = 0;
  for (size_t r = 0; r < op.roles.size() && !failed(); ++r) {
    CheckRole(op.roles[r], first, Cat(path, ".", op.roles[r].name.empty() ? std::to_string(r) : op.roles[r].name));
    first += op.roles[r].warps * op.roles[r].instances;
  }
}

void KernelVerifier::CheckRegisterBudget(const Roles& op) {
  int first = 0, registers = 0, limited = 0;
  for (const Role& role : op.roles) {
    const int warps = role.warps * role.instances;
    if (role.max_registers != 0) {
      ++limited;
      Requires(role.max_registers % 8 == 0 && role.max_registers >= 24 && role.max_registers <= 240, "role '", role.name,
               "' asks for ", role.max_registers, " registers: multiples of 8 from 24 to 240 are possible");
      Requires(first % kWarpgroupWarps == 0 && warps % kWarpgroupWarps == 0, "role '", role.name, "' changes registers of ",
               warps, " warps from warp ", first, " on, which are no whole warpgroups");
    }
    registers += role.max_registers * warps * kLanes;
    first += warps;
  }
  Requires(limited == 0 || limited == static_cast<int>(op.roles.size()), "some roles change their registers and some do not");
  Requires(registers * kernel_.min_blocks_per_sm <= kRegistersPerSm, "the roles ask for ", registers, " registers, ",
           kernel_.min_blocks_per_sm, " times on an SM with ", kRegistersPerSm);
}

void KernelVerifier::CheckRole(const Role& role, int first_warp, const std::string& path) {
  Requires(!role.stores_by_warpgroup || (role.instances == 1 && role.warps % kWarpgroupWarps == 0), "role '", role.name,
           "' cannot store by warpgroup");
  Requires(!role.one_thread || role.instances == 1, "role '", role.name, "' of one thread has several instances");
  const std::vector<bool> bound = bound_;
  for (const Ring& ring : kernel_.rings) Bind(ring.slot);
  if (role.instance != kNoId) Bind(role.instance);
  role_ = &role;
  warps_ = role.warps;
  first_warp_ = first_warp;
  releases_.assign(kernel_.rings.size(), false);
  Nested(role.body, path);
  for (size_t r = 0; r < releases_.size(); ++r) releasing_warps_[r] += releases_[r] ? role.warps : 0;
  role_ = nullptr;
  warps_ = kernel_.warps;
  first_warp_ = 0;
  bound_ = bound;
}

void KernelVerifier::Check(const ForTiles& op, const std::string& path) {
  Requires(nesting_ == (role_ != nullptr ? 1 : 0), "walks over the tiles inside another statement");
  const std::vector<bool> bound = bound_;
  for (VarId var : kernel_.block_vars) Bind(var);
  if (!kernel_.cluster.empty()) Bind(kernel_.has_block);
  if (kernel_.shared_trips) {
    Integer(kernel_.shared_trips, "count of shared iterations");
    Requires(role_ == nullptr || role_->instances == 1, "several instances of a role cannot share a tile");
    Requires(kernel_.share_begin != kNoId && kernel_.share_end != kNoId, "shared iterations without variables for them");
    if (failed()) return;
    Bind(kernel_.share_begin), Bind(kernel_.share_end);
  }
  Nested(op.body, path + ".body");
  bound_ = bound;
}

// ---- rings

const Ring* KernelVerifier::RingOf(RingId id) {
  if (!Requires(id < kernel_.rings.size(), "uses ring ", id, " of ", kernel_.rings.size())) return nullptr;
  return Requires(role_ != nullptr, "ring '", kernel_.rings[id].name, "' is walked outside a role") ? &kernel_.rings[id]
                                                                                                    : nullptr;
}

void KernelVerifier::Check(const Acquire& op) { RingOf(op.ring); }

void KernelVerifier::Check(const ExpectTx& op) {
  if (RingOf(op.ring) == nullptr) return;
  Requires(op.bytes > 0 && op.bytes % 16 == 0 && op.bytes <= kMaxPhaseCount, "expects ", op.bytes, " bytes");
}

void KernelVerifier::Check(const Release& op) {
  const Ring* ring = RingOf(op.ring);
  if (ring == nullptr) return;
  Requires(op.behind >= 0 && op.behind < ring->slots, "releases the slot ", op.behind, " behind in a ring of ", ring->slots);
  releases_[op.ring] = true;
}

void KernelVerifier::Check(const Advance& op) {
  if (RingOf(op.ring) != nullptr) Integer(op.count, "count");
}

void KernelVerifier::Releases() {
  for (RingId r = 0; r < kernel_.rings.size(); ++r) {
    const Ring& ring = kernel_.rings[r];
    const int releasing = releasing_warps_[r] * static_cast<int>(PeersOf(kernel_, ring, 0).size());
    Requires(releasing == 0 || releasing == ring.consumers, "ring '", ring.name, "' counts ", ring.consumers, " consumers, ",
             releasing, " warps release its slots");
  }
}

void KernelVerifier::Check(const OrderWait&) {
  Requires(role_ != nullptr && role_->instances == 2, "needs a role of two instances");
}
void KernelVerifier::Check(const OrderPass&) { Check(OrderWait{}); }

// ---- clusters

void KernelVerifier::ClusterTables() {
  if (kernel_.cluster.empty()) return;
  Requires(kernel_.cluster.size() == kernel_.grid.size() + 1, "the cluster has ", kernel_.cluster.size(),
           " extents for a grid of ", kernel_.grid.size(), "; one for each and one more are needed");
  for (int extent : kernel_.cluster) Requires(extent >= 1, "the cluster has an extent of ", extent);
  if (failed()) return;
  Requires(ClusterSize(kernel_) <= kMaxClusterBlocks, "a cluster of ", ClusterSize(kernel_), " blocks; at most ", kMaxClusterBlocks,
           " are possible");
  Requires(kernel_.cluster_rank != kNoId && kernel_.has_block != kNoId, "a cluster without variables for rank and block");
  if (!failed()) Bind(kernel_.cluster_rank);
}

void KernelVerifier::Check(const ClusterSync&) {
  Requires(!kernel_.cluster.empty(), "there are no clusters");
  Requires(role_ == nullptr || role_->instances == 1, "a role of several instances cannot wait for other blocks");
}

void KernelVerifier::CheckPart(BufferId part, BufferId registers) {
  const Buffer* const held = Register(registers, "the sum");
  if (held == nullptr || !Requires(part < kernel_.buffers.size() && kernel_.buffers[part].space == Space::kShared, Name(part),
                                   " is not in shared memory"))
    return;
  const Buffer& place = kernel_.buffers[part];
  Requires(DTypeBytes(held->dtype) == 4 && place.dtype == held->dtype, "a part of ", DTypeName(place.dtype), " for sums of ",
           DTypeName(held->dtype), "; both must be of the same 4-byte type");
  Requires(!held->layout.dims.empty() && place.shared.extents == PartExtents(held->layout.regs(), warps_), Name(part),
           " has no place for each thread's registers of ", Name(registers));
  Requires(place.shared.pitch == 16 && !place.shared.swizzled && place.versions == 1, Name(part),
           " is not made of chunks of 16 bytes");
}

void KernelVerifier::Check(const PartAdd& op) {
  CheckPart(op.part, op.acc);
  Integer(op.peer, "rank");
  Requires(!kernel_.cluster.empty(), "there are no clusters");
}

void KernelVerifier::CheckGiven(const std::vector<BufferId>& sums) {
  Requires(static_cast<bool>(kernel_.shared_trips), "no iterations are shared");
  Requires(!sums.empty(), "there are no sums");
  Requires(warps_ * kFlagEachBytes <= kFlagBytes, "has flags for ", kFlagBytes / kFlagEachBytes, " warps, not for ", warps_);
  for (BufferId id : sums) {
    const Buffer* const held = Register(id, "the sum");
    if (held != nullptr) Requires(DTypeBytes(held->dtype) == 4, "the sum has elements of type ", DTypeName(held->dtype), ", not of 4 bytes");
  }
}

// ---- bulk tensor copies

// The box as it is for the whole tile, when each of `shares` warpgroups moves its rows.
static std::vector<int64_t> Together(std::vector<int64_t> box, int shares) {
  for (size_t d = 0; d + 1 < box.size(); ++d) {
    if (box[d] == 1) continue;
    box[d] *= shares;
    break;
  }
  return box;
}

// A box has all rows of a panel: parts of the tile are panels.
static bool ByPanel(const TensorMap& map, const SharedLayout& tile) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < map.box.size(); ++d) rows *= map.box[d];
  return rows == tile.rows();
}

const TensorMap* KernelVerifier::MapOf(MapId id, BufferId tile_id, const std::vector<Expr>& coords, int shares) {
  if (!Requires(id < kernel_.tensor_maps.size(), "uses tensor map ", id, " of ", kernel_.tensor_maps.size())) return nullptr;
  const TensorMap& map = kernel_.tensor_maps[id];
  if (!Requires(tile_id < kernel_.buffers.size() && kernel_.buffers[tile_id].space == Space::kShared, Name(tile_id),
                " is not in shared memory"))
    return nullptr;
  const Buffer &tile = kernel_.buffers[tile_id], &tensor = kernel_.buffers[map.buffer];
  const SharedLayout& shared = tile.shared;
  Requires(tile.dtype == tensor.dtype, "moves ", DTypeName(tensor.dtype), " to or from ", DTypeName(tile.dtype));
  Requires(coords.size() == map.box.size(), "has ", coords.size(), " coordinates for ", map.box.size(), " dimensions");
  for (Expr e : coords) Integer(e, "coordinate");
  const int64_t row = shared.extents.empty() ? shared.element_bytes : shared.extents.back() * shared.element_bytes;
  const bool whole = shared.pitch == shared.panel && row % shared.panel == 0 &&
                     map.box.back() * shared.element_bytes == shared.panel &&
                     map.swizzle == (shared.swizzled ? shared.panel : 0) && !shared.folded && !shared.extents.empty() &&
                     Proper(Together(map.box, shares), map.box.size() - 1) == Proper(shared.extents, shared.extents.size() - 1);
  Requires(whole, Name(tile_id), " (", ToString(shared), ") is not made of boxes of the tensor map of ", Name(map.buffer));
  CheckPlacement(tile);
  return &map;
}

void KernelVerifier::Check(const TmaLoad& op) {
  if (op.barrier != kNoId) {
    BarrierAt(op.barrier, op.index);
    if (op.version) Integer(op.version, "version");
    Requires(op.multicast == 0, "a load that completes on a declared barrier is for its own block");
    MapOf(op.map, op.dst, op.coords);
    return;
  }
  const Ring* ring = RingOf(op.ring);
  if (ring == nullptr) return;
  const int parts = ClusterExtent(kernel_, op.multicast);
  if (op.multicast != 0) {
    const ClusterAxes all = kernel_.cluster.empty() ? 0 : SplitAxis(kernel_) * 2 - 1;
    Requires((op.multicast & ~all) == 0 && parts > 1, "is shared along axes that the cluster does not have");
    Requires(std::count(ring->multicasts.begin(), ring->multicasts.end(), op.multicast) == 1, "is shared by blocks that ring '",
             ring->name, "' does not know");
    if (failed() || !Requires(op.map < kernel_.tensor_maps.size() && op.dst < kernel_.buffers.size(), "has no map or tile"))
      return;
  }
  const bool by_panel = parts > 1 && ByPanel(kernel_.tensor_maps[op.map], kernel_.buffers[op.dst].shared);
  if (MapOf(op.map, op.dst, op.coords, by_panel ? 1 : parts) == nullptr) return;
  const SharedLayout& tile = kernel_.buffers[op.dst].shared;
  const int64_t panels = tile.extents.back() * tile.element_bytes / tile.panel;
  if (parts > 1) {
    Requires(by_panel ? panels % parts == 0 : tile.rows() / parts * tile.pitch % (tile.swizzled ? 8 * tile.panel : 128) == 0,
             Name(op.dst), " cannot be loaded in ", parts, " parts");
  }
  Requires(std::count(ring->buffers.begin(), ring->buffers.end(), op.dst) == 1, Name(op.dst), " is not in ring '", ring->name,
           "'");
}

void KernelVerifier::Check(const TmaStore& op) {
  const bool by_warpgroup = role_ != nullptr && role_->stores_by_warpgroup;
  const TensorMap* map = MapOf(op.map, op.src, op.coords, by_warpgroup ? role_->warps / kWarpgroupWarps : 1);
  if (map == nullptr) return;
  Integer(op.version, "version");
  Requires(kernel_.buffers[map->buffer].written, "writes ", Name(map->buffer), ", which is not marked as written");
  const DType type = kernel_.buffers[map->buffer].dtype;
  const bool adds = type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16 || type == DType::kInt32 ||
                    type == DType::kUInt32;
  Requires(op.op == StoreOp::kStore || adds, "cannot add ", DTypeName(type), " in memory");
}

void KernelVerifier::Check(const StoreWait& op) {
  Requires(op.pending >= 0, "waits for ", op.pending, " groups");
  for (const Retired& retired : op.retires) {
    if (!Requires(retired.buffer < kernel_.buffers.size() && kernel_.buffers[retired.buffer].space == Space::kShared, "retires ",
                  Name(retired.buffer), ", which is not in shared memory"))
      return;
    Integer(retired.version, "retired version");
  }
}

}  // namespace tilert::kir
