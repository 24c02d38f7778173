#include "lowering/kernel_ir_printer.h"

#include <type_traits>

#include "ir/status_util.h"
#include "ir/stmt.h"

namespace tilert::kir {
namespace {

constexpr const char* kMethods[] = {"vector", "cp.async", "ldmatrix", "ldmatrix.trans", "stmatrix", "register"};
constexpr const char* kReduceOps[] = {"invalid", "sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor"};
constexpr const char* kAtomicOps[] = {"invalid", "add", "max", "min"};

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel), names_(kernel) {}

  std::string Run() {
    Header();
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) Line(Table(static_cast<BufferId>(i)));
    for (const TensorMap& map : kernel_.tensor_maps) Line(Table(map));
    for (const Ring& ring : kernel_.rings) Line(Table(ring));
    for (const Barrier& b : kernel_.barriers) Line(Cat("barriers ", b.name, ": ", b.size, ", ", b.arrivals, " arrivals", b.offset >= 0 ? Cat(", at ", b.offset) : ""));
    Nested(kernel_.body);
    return std::move(text_);
  }

 private:
  void Line(const std::string& line) { text_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + line + "\n"; }
  std::string E(Expr e) const { return names_.Text(e); }
  std::string List(const std::vector<Expr>& exprs) const {
    std::string text;
    for (Expr e : exprs) text += (text.empty() ? "" : ", ") + E(e);
    return "(" + text + ")";
  }
  std::string Element(BufferId buffer, const std::vector<Expr>& indices) const {
    std::vector<std::string> texts;
    for (Expr e : indices) texts.push_back(E(e));
    return names_.Element(buffer, texts);
  }

  void Header() {
    std::string blocks;
    for (VarId var : kernel_.block_vars) blocks += (blocks.empty() ? "" : ", ") + names_.var(var);
    Line(Cat("kernel ", kernel_.name, " for ", blocks, " in ", List(kernel_.grid), ": ", kernel_.warps,
             kernel_.warps == 1 ? " warp, " : " warps, ", kernel_.shared_bytes, " bytes shared",
             kernel_.min_blocks_per_sm > 1 ? Cat(", ", kernel_.min_blocks_per_sm, " blocks per SM") : "",
             kernel_.index32 ? ", 32-bit indices" : "", kernel_.fast_math ? ", fast math" : ""));
    if (!kernel_.cluster.empty()) {
      std::string extents;
      for (int extent : kernel_.cluster) extents += (extents.empty() ? "" : " x ") + std::to_string(extent);
      Line(Cat("clusters of ", extents, " blocks, rank ", names_.var(kernel_.cluster_rank),
               kernel_.cluster_barrier >= 0 ? Cat(", barrier at ", kernel_.cluster_barrier) : ""));
    }
    if (kernel_.raster_panel > 0)
      Line(Cat("raster panels of ", kernel_.raster_panel, kernel_.raster_column ? " columns" : " rows"));
  }

  std::string Table(BufferId id) const {
    const Buffer& buffer = kernel_.buffers[id];
    const std::string head = Cat(names_.buffer(id), ": ", DTypeName(buffer.dtype), " ");
    switch (buffer.space) {
      case Space::kGlobal:
        return Cat("global ", head, List(buffer.shape), " strides ", List(buffer.strides), " align ", buffer.alignment,
                   buffer.written ? " written" : "", buffer.evict_first ? Cat(", evicted first if ", E(buffer.evict_first)) : "",
                   buffer.evict_last ? Cat(", evicted last if ", E(buffer.evict_last)) : "");
      case Space::kShared:
        return Cat(ToString(buffer.shared).replace(0, 6, "shared " + head.substr(0, head.size() - 1)), ", ", buffer.versions,
                   buffer.versions == 1 ? " version" : " versions",
                   buffer.offset >= 0 ? Cat(" at ", buffer.offset) : ", not placed");
      case Space::kRegister: return Cat("register ", head, ToString(buffer.layout));
      case Space::kInvalid: break;
    }
    return Cat("invalid ", head);
  }

  std::string Table(const TensorMap& map) const {
    std::string box;
    for (int64_t extent : map.box) box += (box.empty() ? "" : " x ") + std::to_string(extent);
    return Cat("tensor map ", BufferName(map.buffer), ", boxes of ", box, map.swizzle > 0 ? Cat(", swizzle ", map.swizzle) : "");
  }
  std::string Table(const Ring& ring) const {
    std::string tiles;
    for (BufferId id : ring.buffers) tiles += (tiles.empty() ? "" : ", ") + BufferName(id);
    return Cat("ring ", ring.name, ": ", ring.slots, ring.slots == 1 ? " slot of " : " slots of ", tiles, ", released by ",
               ring.consumers, ring.consumers == 1 ? " warp" : " warps",
               ring.slot < kernel_.vars.size() ? ", slot " + names_.var(ring.slot) : "",
               ring.offset >= 0 ? Cat(", barriers at ", ring.offset) : ", not placed", Axes(ring.multicasts, "shared"));
  }
  // Axes of the cluster along which CTAs share something.
  static std::string Axes(const std::vector<ClusterAxes>& sets, const char* what) {
    std::string text;
    for (ClusterAxes axes : sets) {
      std::string set;
      for (int d = 0; axes >> d != 0; ++d) {
        if (axes >> d & 1) set += (set.empty() ? "" : "+") + std::to_string(d);
      }
      text += Cat(text.empty() ? Cat(", ", what, " along axes ") : ", ", set);
    }
    return text;
  }
  // Names of what may be missing: the verifier prints kernels that are wrong.
  std::string BufferName(BufferId id) const { return id < kernel_.buffers.size() ? names_.buffer(id) : Cat("buffer ", id); }
  std::string RingName(RingId id) const { return id < kernel_.rings.size() ? kernel_.rings[id].name : Cat("ring ", id); }

  void Nested(const Block& block) {
    ++indent_;
    for (const Stmt& stmt : block) std::visit([this](const auto& op) { Print(op); }, stmt.op);
    --indent_;
  }

  void Print(const Declare& op) { Line(Cat("declare ", names_.buffer(op.buffer), op.zero ? " = 0" : "")); }
  void Print(const For& op) {
    Line(Cat("for ", names_.var(op.var), " in range(", E(op.begin), ", ", E(op.end), ", ", E(op.step), ")",
             op.unroll == Unroll::kFull ? " unrolled" : "", ":"));
    Nested(op.body);
  }
  void Print(const While& op) {
    Line(Cat("while ", E(op.cond), ":"));
    Nested(op.body);
  }
  void Print(const If& op) {
    Line(Cat("if ", E(op.cond), op.by_warp ? " (by warp):" : ":"));
    Nested(op.then_body);
    if (op.else_body.empty()) return;
    Line("else:");
    Nested(op.else_body);
  }
  void Print(const Break&) { Line("break"); }
  void Print(const Continue&) { Line("continue"); }
  void Print(const Let& op) { Line(Cat(names_.var(op.var), " = ", E(op.value))); }
  void Print(const Elementwise& op) {
    std::string vars;
    for (VarId var : op.vars) vars += (vars.empty() ? "" : ", ") + names_.var(var);
    Line(Cat("elementwise ", vars, " over ", ToString(op.layout), ":"));
    Nested(op.body);
  }
  void Print(const Store& op) { Line(Cat(Element(op.buffer, op.indices), " = ", E(op.value))); }
  void Print(const Atomic& op) {
    const std::string prev = op.prev == kNoId ? "" : Cat(names_.var(op.prev), " = ");
    Line(Cat(prev, "atomic_", kAtomicOps[static_cast<int>(op.op)], " ", Element(op.buffer, op.indices), ", ", E(op.value)));
  }

  // A subscript with "?" must be checked against the extent. `points`: names of the iteration dims.
  std::string Side(const TileAccess& side, const std::vector<std::string>& points) const {
    std::vector<std::string> texts;
    for (size_t d = 0; d < side.start.size(); ++d) {
      const std::string point = side.follows[d] < 0 ? "" : points[static_cast<size_t>(side.follows[d])];
      const bool zero = kernel_.exprs.IsInt(side.start[d], 0);
      std::string text = point.empty() ? E(side.start[d]) : zero ? point : Cat(E(side.start[d]), " + ", point);
      texts.push_back(text + (side.inside[d] ? "" : "?"));
    }
    return names_.Element(side.buffer, texts);
  }
  std::string Side(const TileAccess& side) const {
    std::vector<std::string> points;
    for (int follows : side.follows) {
      while (static_cast<int>(points.size()) <= follows) points.push_back(Cat("p", points.size()));
    }
    return Side(side, points);
  }
  void Print(const Copy& op) {
    Line(Cat("copy.", kMethods[static_cast<int>(op.method)], op.width > 1 ? Cat(" x", op.width) : "", " ", Side(op.dst), " = ",
             Side(op.src), op.fill ? Cat(" else ", E(op.fill)) : "", " over ", ToString(op.layout)));
  }
  void Print(const CpAsyncCommit&) { Line("cp.async.commit"); }
  std::string Retires(const std::vector<Retired>& retires) const {
    std::string text;
    for (const Retired& r : retires) {
      text +=
          (text.empty() ? " retires " : ", ") + (r.version ? names_.Element(r.buffer, {E(r.version)}) : names_.buffer(r.buffer));
    }
    return text;
  }
  void Print(const CpAsyncWait& op) { Line(Cat("cp.async.wait ", op.pending, Retires(op.retires))); }
  void Print(const LaneReduce& op) {
    Line(Cat("lane_reduce.", kReduceOps[static_cast<int>(op.op)], " ", names_.buffer(op.dst), op.accumulate ? " with " : " = ",
             names_.buffer(op.src), " over axis ", op.axis, op.keep_warps ? ", a part each warp" : ""));
  }
  void Print(const Mma& op) { Line(Cat("mma ", names_.buffer(op.acc), " += ", names_.buffer(op.a), " * ", names_.buffer(op.b))); }
  void Print(const BarSync& op) {
    Line(op.number > 0 ? Cat("barrier ", op.number, " of ", op.warps, " warps") : op.by_warpgroup ? "barrier of each warpgroup" : "barrier");
  }
  void Print(const Shuffle& op) { Line(Cat(names_.var(op.var), " = ", E(op.value), " of lane ", E(op.lane))); }
  std::string BarrierName(BarrierId id, Expr index) const {
    return Cat(id < kernel_.barriers.size() ? kernel_.barriers[id].name : Cat("barrier ", id), "[", E(index), "]");
  }
  void Print(const MbarArrive& op) { Line(Cat("arrive ", BarrierName(op.barrier, op.index))); }
  void Print(const MbarWait& op) { Line(Cat("wait ", BarrierName(op.barrier, op.index), " parity ", E(op.parity))); }
  void Print(const MbarExpect& op) { Line(Cat("expect ", BarrierName(op.barrier, op.index), ", ", E(op.bytes), " bytes")); }
  void Print(const MbarComplete& op) { Line(Cat("complete ", BarrierName(op.barrier, op.index), ", ", op.bytes, " bytes")); }

  // ---- roles, rings, TMA, wgmma
  void Print(const Roles& op) {
    int warp = 0;
    for (const Role& role : op.roles) {
      const int count = role.warps * role.instances;
      const std::string warps = count == 1 ? Cat("warp ", warp) : Cat("warps ", warp, " to ", warp + count - 1);
      const std::string instance = role.instance < kernel_.vars.size() ? Cat(" (", names_.var(role.instance), ")") : "";
      Line(Cat("role ", role.name, " on ", warps, role.instances > 1 ? Cat(", ", role.instances, " instances", instance) : "",
               role.one_thread ? ", one thread" : "", role.max_registers > 0 ? Cat(", ", role.max_registers, " registers") : "",
               ":"));
      Nested(role.body);
      warp += count;
    }
  }
  std::string Names(const std::vector<BufferId>& buffers) const {
    std::string text;
    for (BufferId id : buffers) text += Cat(text.empty() ? "" : ", ", BufferName(id));
    return text;
  }
  void Print(const SumsGive& op) { Line(Cat("sums.give ", Names(op.sums))); }
  void Print(const SumsTake& op) { Line(Cat("sums.take ", Names(op.sums))); }
  void Print(const ForTiles& op) {
    const std::string shares = kernel_.shared_trips ? Cat(", iterations ", names_.var(kernel_.share_begin), " to ", names_.var(kernel_.share_end), " of ",
                                                          E(kernel_.shared_trips)) : "";
    Line(Cat("for tiles", shares, ":"));
    Nested(op.body);
  }
  void Print(const Wgmma& op) {
    const bool cleared = kernel_.exprs.IsInt(op.zero, 1), added = !op.zero || kernel_.exprs.IsInt(op.zero, 0);
    Line(Cat("wgmma ", op.m, "x", op.n, "x", op.k,
             op.grid == WarpGrid{} ? "" : Cat(" on ", op.grid.m, "x", op.grid.n, " warpgroups"), ": ", BufferName(op.acc),
             op.transposed ? " transposed" : "", cleared ? " = " : " += ", Side(op.a, {"m", "k"}), " * ", Side(op.b, {"n", "k"}),
             cleared || added ? "" : Cat(", cleared if ", E(op.zero))));
  }
  void Print(const WgmmaFence&) { Line("wgmma.fence"); }
  void Print(const WgmmaCommit&) { Line("wgmma.commit"); }
  void Print(const WgmmaWait& op) { Line(Cat("wgmma.wait ", op.pending, Retires(op.retires))); }
  std::string BoxOf(MapId map, const std::vector<Expr>& coords) const {
    return (map < kernel_.tensor_maps.size() ? BufferName(kernel_.tensor_maps[map].buffer) : Cat("map ", map)) + List(coords);
  }
  void Print(const TmaLoad& op) {
    const std::string to = op.barrier == kNoId ? " of " + RingName(op.ring) : Cat(op.version ? Cat("[", E(op.version), "]") : "", " at ", BarrierName(op.barrier, op.index));
    Line(Cat("tma.load ", BufferName(op.dst), to, " = ", BoxOf(op.map, op.coords),
             op.multicast != 0 ? Axes({op.multicast}, "multicast") : ""));
  }
  void Print(const TmaStore& op) {
    Line(Cat("tma.store ", BoxOf(op.map, op.coords), op.op == StoreOp::kAdd ? " += " : " = ", BufferName(op.src), "[",
             E(op.version), "]"));
  }
  void Print(const StoreCommit&) { Line("tma.store.commit"); }
  void Print(const StoreWait& op) { Line(Cat("tma.store.wait ", op.pending, op.read ? " read" : "", Retires(op.retires))); }
  void Print(const ProxyFence&) { Line("proxy_fence"); }
  void Print(const Acquire& op) { Line(Cat("acquire ", RingName(op.ring), op.fill ? " to fill" : "")); }
  void Print(const ExpectTx& op) { Line(Cat("expect_tx ", RingName(op.ring), ", ", op.bytes, " bytes")); }
  void Print(const Release& op) {
    Line(Cat("release ", RingName(op.ring), op.behind > 0 ? Cat(", ", op.behind, " behind") : ""));
  }
  void Print(const Advance& op) { Line(Cat("advance ", RingName(op.ring), " by ", E(op.count))); }
  void Print(const OrderWait&) { Line("order.wait"); }
  void Print(const OrderPass&) { Line("order.pass"); }
  void Print(const ClusterSync&) { Line("cluster.sync"); }
  void Print(const PartStore& op) { Line(Cat("part.store ", BufferName(op.part), " = ", BufferName(op.src))); }
  void Print(const PartAdd& op) { Line(Cat("part.add ", BufferName(op.acc), " += ", BufferName(op.part), " of block ", E(op.peer))); }

  void Print(const kir::Print& op) { Line(Cat("print ", op.format, " ", List(op.args))); }
  void Print(const Assert& op) { Line(Cat("assert ", E(op.cond), ", \"", op.message, "\"")); }

  const Kernel& kernel_;
  KernelNames names_;
  std::string text_;
  int indent_ = 0;
};

}  // namespace

std::string ToText(const Kernel& kernel) { return Printer(kernel).Run(); }

}  // namespace tilert::kir
