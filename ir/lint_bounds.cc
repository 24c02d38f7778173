// Which elements of tensors the statements reach, as sets that may be too large but not too small.
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "ir/int_set.h"
#include "ir/lint_context.h"

namespace tilert::lint {
namespace {

using Interval = IntSet::Interval;

class BoundsChecker {
 public:
  explicit BoundsChecker(Context& c) : c_(c), vars_(c.p.vars.size(), IntSet::All()) {
    for (const Param& param : c.p.params) {
      if (param.kind == Param::Kind::kTensor && param.access == Access::kOut) outputs_[param.index] = {};
    }
  }

  void Run() {
    for (size_t i = 0; i < c_.p.launches.size(); ++i) {
      auto scope = c_.path.Enter("launches", i);
      auto body = c_.path.Enter("body");
      const Launch& launch = c_.p.launches[i];
      for (size_t d = 0; d < launch.grid.size(); ++d) vars_[launch.block_vars[d]] = Below(launch.grid[d]);
      threads_ = Below(launch.threads);
      Walk(launch.body);
    }
    for (const Param& param : c_.p.params) {
      if (param.kind == Param::Kind::kTensor && param.access == Access::kOut) CheckOutput(param.index);
    }
  }

 private:
  // What is written of an output, along each dimension by itself.
  struct Written {
    std::vector<IntSet> places;
    std::vector<int64_t> tile;  // extents of the first writing statement; 0: not known
    SourceLoc loc;              // of the only statement that writes; else of none
    int statements = 0;
  };

  // --- values of indices
  IntSet Eval(Expr e) const {
    const ExprNode& node = c_.p.exprs[e];
    if (node.op == ExprOp::kIntImm) return IntSet::Of(node.i, node.i + 1);
    if (node.op == ExprOp::kVar) return vars_[static_cast<size_t>(node.i)];
    if (node.op == ExprOp::kCast) {
      const bool is_integer = IsInteger(node.dtype) && DTypeBits(node.dtype) >= 32;
      return is_integer && !IsFloat(c_.p.exprs[node.args[0]].dtype) ? Eval(node.args[0]) : IntSet::All();
    }
    if (node.op == ExprOp::kSelect) return Eval(node.args[1]).With(Eval(node.args[2]));
    if (node.op == ExprOp::kNeg) return Eval(node.args[0]).Times(-1);
    return node.args.size() == 2 && !IsFloat(node.dtype) ? EvalBinary(node) : IntSet::All();
  }

  IntSet EvalBinary(const ExprNode& node) const {
    int64_t number = 0;
    const bool by_number = c_.p.exprs.AsInt(node.args[1], &number);
    const IntSet a = Eval(node.args[0]);
    switch (node.op) {
      case ExprOp::kAdd: return a.Plus(Eval(node.args[1]));
      case ExprOp::kSub: return a.Plus(Eval(node.args[1]).Times(-1));
      case ExprOp::kMul:
        if (by_number) return a.Times(number);
        return c_.p.exprs.AsInt(node.args[0], &number) ? Eval(node.args[1]).Times(number) : Product(a, Eval(node.args[1]));
      case ExprOp::kFloorDiv: return by_number && number >= 1 ? a.DividedBy(number) : IntSet::All();
      case ExprOp::kFloorMod: return by_number && number >= 1 ? a.Modulo(number) : IntSet::All();
      // One of the operands, whichever it is.
      case ExprOp::kMin:
      case ExprOp::kMax: return a.With(Eval(node.args[1]));
      default: return IntSet::All();
    }
  }

  // Of sets that are at least 0; both hulls.
  static IntSet Product(const IntSet& a, const IntSet& b) {
    if (a.empty() || b.empty()) return {};
    if (a.is_all() || b.is_all() || a.least() < 0 || b.least() < 0) return IntSet::All();
    int64_t most = 0;
    if (__builtin_mul_overflow(a.greatest(), b.greatest(), &most)) return IntSet::All();
    return IntSet::Of(a.least() * b.least(), most + 1);
  }

  // 0 … end − 1.
  IntSet Below(Expr end) const {
    const IntSet ends = Eval(end);
    if (ends.is_all()) return IntSet::All();
    return ends.empty() ? ends : IntSet::Of(0, ends.greatest());
  }

  IntSet Iterations(const For& loop) const {
    const IntSet begin = Eval(loop.begin), end = Eval(loop.end);
    int64_t step = 1;
    if (begin.is_all() || end.is_all() || !c_.p.exprs.AsInt(loop.step, &step)) return IntSet::All();
    if (begin.empty() || end.empty()) return {};
    const bool one_begin = begin.least() == begin.greatest();
    return one_begin ? IntSet::Steps(begin.least(), end.greatest(), step) : IntSet::Of(begin.least(), end.greatest());
  }

  // --- statements
  void Walk(const Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      auto scope = c_.path.Enter("", i);
      Visit(block[i]);
      const std::vector<const Block*> children = ChildBlocks(block[i]);
      for (size_t part = 0; part < children.size(); ++part) {
        auto nested = c_.path.EnterPart(block[i], part);
        Walk(*children[part]);
      }
    }
  }

  void Visit(const Stmt& stmt) {
    std::visit(Overloaded{
                   [](const auto&) {},
                   [&](const Let& s) { vars_[s.var] = IsFloat(c_.p.vars[s.var].dtype) ? IntSet::All() : Eval(s.value); },
                   [&](const Parallel& s) {
                     for (size_t i = 0; i < s.vars.size(); ++i) vars_[s.vars[i]] = Below(s.extents[i]);
                   },
                   [&](const For& s) { vars_[s.var] = Iterations(s); },
                   [&](const ThreadRegion& s) { vars_[s.thread] = threads_; },
                   [&](const Copy& s) {
                     if (!CheckCopy(stmt, s.src, "reads")) CheckCopy(stmt, s.dst, "writes");
                     Write(stmt, s.dst.buffer, s.dst.start, s.dst.extent);
                   },
                   [&](const AtomicTile& s) {
                     CheckCopy(stmt, s.dst, "adds to");
                     Write(stmt, s.dst.buffer, s.dst.start, s.dst.extent);
                   },
                   [&](const Fill& s) { Write(stmt, s.dst.buffer, s.dst.start, s.dst.extent); },
                   [&](const Store& s) { Write(stmt, s.buffer, s.indices, {}); },
                   [&](const Atomic& s) { Write(stmt, s.buffer, s.indices, {}); },
               },
               stmt.op);
  }

  std::optional<int64_t> Extent(BufferId buffer, size_t d) const {
    int64_t extent = 0;
    return c_.p.exprs.AsInt(c_.p.buffers[buffer].shape[d], &extent) ? std::optional(extent) : std::nullopt;
  }

  // `extent`: none, of single elements.
  void Write(const Stmt& stmt, BufferId buffer, const std::vector<Expr>& start, const std::vector<Expr>& extent) {
    const auto it = outputs_.find(buffer);
    if (it == outputs_.end()) return;
    Written& written = it->second;
    written.places.resize(start.size());
    written.loc = written.statements++ == 0 ? stmt.loc : SourceLoc{};
    written.tile.resize(start.size());
    for (size_t d = 0; d < start.size(); ++d) {
      const IntSet offsets = extent.empty() ? IntSet::Of(0, 1) : Below(extent[d]);
      written.places[d] = written.places[d].With(Eval(start[d]).Plus(offsets));
      if (!offsets.is_all() && !offsets.empty()) written.tile[d] = offsets.greatest() + 1;
    }
  }

  // "C[:, 2048:4096]".
  std::string PartText(BufferId buffer, size_t dim, Interval part) const {
    std::vector<std::string> subscripts(c_.p.buffers[buffer].shape.size(), ":");
    subscripts[dim] = part.end == part.begin + 1 ? Cat(part.begin) : Cat(part.begin, ":", part.end);
    return Cat(c_.p.buffers[buffer].name, "[", absl::StrJoin(subscripts, ", "), "]");
  }

  void CheckOutput(BufferId buffer) {
    const Written& written = outputs_[buffer];
    const Buffer& b = c_.p.buffers[buffer];
    std::vector<std::string> parts;
    std::string hint;
    auto scope = c_.path.Enter("buffers", buffer);
    for (size_t d = 0; d < b.shape.size(); ++d) {
      const std::optional<int64_t> extent = Extent(buffer, d);
      if (!extent || *extent == 0) return;
      if (written.statements == 0) continue;
      const std::vector<Interval> missing = written.places[d].MissingFrom(0, *extent);
      if (missing.empty()) continue;
      parts.push_back(PartText(buffer, d, missing[0]));
      if (missing.size() > 1) parts.back() += Cat(" and ", missing.size() - 1, " more such parts");
      if (written.tile[d] > 1 && hint.empty())
        hint = Cat("let the grid cover the extent: T.ceildiv(", *extent, ", ", written.tile[d], ") blocks");
    }
    if (written.statements == 0)
      return c_.Warn(b.loc, Cat("the output ", c_.Name(buffer), " is never written"), "write it, or leave it out");
    if (parts.empty()) return;
    c_.Warn(written.statements == 1 ? written.loc : b.loc,
            Cat("no block writes ", absl::StrJoin(parts, ", nor "), " of the output ", c_.Name(buffer)),
            hint.empty() ? "let the grid and the loops cover the whole extent" : hint);
  }

  // A copy that is outside its tensor whichever block runs it; true after a warning.
  bool CheckCopy(const Stmt& stmt, const Region& r, std::string_view does) {
    if (c_.p.buffers[r.buffer].scope != Scope::kGlobal) return false;
    for (size_t d = 0; d < r.start.size(); ++d) {
      const IntSet starts = Eval(r.start[d]), extents = Eval(r.extent[d]);
      const std::optional<int64_t> extent = Extent(r.buffer, d);
      if (!extent || *extent == 0 || starts.is_all() || starts.empty() || extents.is_all() || extents.empty()) continue;
      const int64_t end = starts.greatest() + extents.greatest();
      if (starts.least() < *extent && end > 0) continue;
      c_.Warn(stmt.loc,
              Cat("every block ", does, " ", PartText(r.buffer, d, {starts.least(), end}), ", which is outside ",
                  c_.Name(r.buffer), ": dimension ", d, " has ", *extent, *extent == 1 ? " element" : " elements"),
              "check the order of the subscripts; elements outside are read as zero and not written");
      return true;
    }
    return false;
  }

  Context& c_;
  std::vector<IntSet> vars_;
  IntSet threads_;
  absl::flat_hash_map<BufferId, Written> outputs_;
};

}  // namespace

void CheckBounds(Context& c) { BoundsChecker(c).Run(); }

}  // namespace tilert::lint
