#include "lowering/tile_state.h"

#include "ir/status_util.h"
#include "lowering/affine.h"

namespace tilert {

std::vector<int64_t> TileState::Extents(const std::vector<Expr>& shape) const {
  std::vector<int64_t> extents;
  for (Expr e : shape) {
    int64_t value = -1;
    program.exprs.AsInt(e, &value);
    extents.push_back(value);
  }
  return extents;
}

BufferId TileState::NewBuffer(std::string name, DType dtype, Scope scope, const std::vector<int64_t>& shape) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.scope = scope;
  for (int64_t extent : shape) buffer.shape.push_back(Int(extent));
  program.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program.buffers.size() - 1);
}

VarId TileState::NewVar(std::string name) {
  program.vars.push_back({std::move(name), DType::kIndex});
  return static_cast<VarId>(program.vars.size() - 1);
}

Expr TileState::Bind(std::string name, Expr value, const SourceLoc& loc, Block& out) {
  const VarId var = NewVar(std::move(name));
  program.vars[var].dtype = program.exprs[value].dtype;
  out.push_back({Let{var, value}, loc});
  return VarExpr(var);
}

absl::StatusOr<Region> TileState::NewTileLike(const Region& region, std::string_view suffix, Scope scope, const SourceLoc& loc, Block& out,
                                              DType dtype) {
  const std::vector<int64_t> extents = Extents(region.extent);
  const Buffer& like = buffer(region.buffer);
  if (!AllKnown(extents)) return InvalidArgument("the region of '", like.name, "' has an extent that is not fixed", Where(program, loc));
  const BufferId tile = NewBuffer(Cat(like.name, suffix), dtype == DType::kInvalid ? like.dtype : dtype, scope, extents);
  out.push_back({Alloc{tile}, loc});
  return Whole(tile);
}

Region TileState::Whole(BufferId id) {
  Region region{id, {}, buffer(id).shape};
  for (size_t d = 0; d < region.extent.size(); ++d) region.start.push_back(Int(0));
  return region;
}

bool TileState::IsWhole(const Region& region) const {
  for (size_t d = 0; d < region.start.size(); ++d) {
    if (!program.exprs.IsInt(region.start[d], 0) || region.extent[d] != buffer(region.buffer).shape[d]) return false;
  }
  return true;
}

bool TileState::RowMajorWanted(BufferId id) const {
  bool wanted = false;
  ForEachStmt(program.launches[launch].body, [&](const Stmt& stmt) {
    auto* note = std::get_if<Annotate>(&stmt.op);
    wanted |= note && note->buffer == id && note->kind == AnnotationKind::kLayoutRowMajor;
  });
  return wanted;
}

uint32_t TileState::Alignment(BufferId id) const {
  uint32_t global = 0;
  for (BufferId b = 0; b < program.buffers.size(); ++b) {
    if (scope(b) != Scope::kGlobal) continue;
    if (b == id) return global < args.alignment.size() ? args.alignment[global] : DTypeBytes(buffer(id).dtype);
    ++global;
  }
  return 1;
}

int64_t TileState::KnownDivisor(Expr e) const {
  absl::flat_hash_map<VarId, int64_t> known;
  const auto of = [&](Expr at) {
    return KnownPowerOfTwoDivisor(program.exprs, at, args, [&](VarId var) {
      const auto it = known.find(var);
      return it == known.end() ? 1 : it->second;
    });
  };
  // A loop that was cut in parts binds its variable in each of them.
  const auto bind = [&](VarId var, int64_t divisor) {
    if (const auto [it, added] = known.try_emplace(var, divisor); !added) it->second = std::min(it->second, divisor);
  };
  ForEachStmt(program.launches[launch].body, [&](const Stmt& stmt) {
    if (auto* let = std::get_if<Let>(&stmt.op)) bind(let->var, of(let->value));
    if (auto* loop = std::get_if<For>(&stmt.op)) bind(loop->var, std::min(of(loop->begin), of(loop->step)));
  });
  return of(e);
}

bool AllKnown(const std::vector<int64_t>& extents) {
  for (int64_t e : extents) {
    if (e < 0) return false;
  }
  return true;
}

int64_t Product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t e : extents) product *= e;
  return product;
}

absl::Status RewriteBlock(Block& block, const StmtRewrite& rewrite) {
  Block out;
  for (Stmt& stmt : block) {
    if (!std::holds_alternative<Parallel>(stmt.op) && !std::holds_alternative<ThreadRegion>(stmt.op)) {  // their bodies are element code
      for (Block* child : ChildBlocks(stmt)) TILERT_RETURN_IF_ERROR(RewriteBlock(*child, rewrite));
    }
    TILERT_RETURN_IF_ERROR(rewrite(std::move(stmt), out));
  }
  block = std::move(out);
  return absl::OkStatus();
}

std::string Where(const Program& program, const SourceLoc& loc) {
  if (loc.line == 0) return "";
  const std::string file = loc.file < program.files.size() ? program.files[loc.file] + ":" : "line ";
  return Cat(" (", file, loc.line, ")");
}

}  // namespace tilert
