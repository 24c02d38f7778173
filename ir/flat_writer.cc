#include "ir/flat_writer.h"

#include <algorithm>
#include <set>
#include <vector>

#include "ir/bundle_check.h"
#include "ir/container.h"
#include "ir/flat_program.h"
#include "ir/flat_reader.h"
#include "ir/limits.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

// For some choice of its constants; where there are several, that is not looked into.
bool MayBeZero(const Program& p, Expr e) {
  if (!e) return false;
  std::set<int64_t> constants;
  ForEachNode(p.exprs, e, [&](Expr, const ExprNode& node) {
    if (node.op == ExprOp::kConstant) constants.insert(node.i);
  });
  if (constants.size() > 1) return true;
  const std::vector<int64_t> none = {0};
  const std::vector<int64_t>& choices =
      constants.empty() ? none : p.constants[static_cast<size_t>(*constants.begin())].candidates;
  return std::any_of(choices.begin(), choices.end(), [&](int64_t choice) {
    ExprArena arena;
    const Expr value = Rewrite(p.exprs, e, arena, [&](Expr, const ExprNode& node) {
      return node.op == ExprOp::kConstant ? arena.Int(choice, node.dtype) : Expr{};
    });
    int64_t known = 0;
    return !arena.AsInt(Fold(arena, value), &known) || known == 0;
  });
}

using flatbuffers::Offset;

// The minor version that brought the statement.
uint16_t SinceMinor(flat::StmtOp op) {
  switch (op) {
    case flat::StmtOp::StagedFor: return 1;
    case flat::StmtOp::SplitFor:
    case flat::StmtOp::SlotCopy:
    case flat::StmtOp::SyncGroup:
    case flat::StmtOp::Shuffle: return 2;
    case flat::StmtOp::FetchAtomic: return 3;
    default: return 0;
  }
}

std::string Padding(uint64_t size, uint64_t align) { return std::string((align - size % align) % align, '\0'); }

// Fields are written whether or not they equal a default, so that the bytes do not depend on defaults. Whatever adds to the
// buffer or the string table is a statement of its own: C++ leaves the order of evaluation of arguments to the compiler.
class BundleWriter {
 public:
  std::string Write(const Bundle& bundle);

 private:
  template <typename Table, typename Entry, typename Make>
  auto Tables(const std::vector<Entry>& entries, Make make) {
    std::vector<Offset<Table>> offsets;
    for (size_t i = 0; i < entries.size(); ++i) offsets.push_back(make(entries[i], i));
    return fbb_.CreateVector(offsets);
  }
  uint32_t Text(std::string_view text) { return strings_.Index(text); }
  auto Values(const std::map<std::string, int64_t>& values);
  auto Guards(const std::vector<DimGuard>& guards);
  auto Digest(const Sha256Digest& digest) { return fbb_.CreateVector(digest.data(), digest.size()); }
  Offset<flat::Program> AddProgram(const Program& p);
  Offset<flat::Launch> AddLaunch(const Launch& launch, size_t i, const FlatProgram& f);
  Offset<flat::Cubin> AddCubin(const PrebuiltCubin& cubin);
  uint32_t AddBlob(std::string_view bytes);

  flatbuffers::FlatBufferBuilder fbb_;
  StringTable strings_;
  std::vector<Offset<flat::Blob>> blobs_;
  std::string blob_bytes_;
  uint16_t minor_ = 0;  // the lowest that the content needs
};

auto BundleWriter::Values(const std::map<std::string, int64_t>& values) {
  std::vector<flat::NamedValue> list;
  for (const auto& [name, value] : values) list.emplace_back(Text(name), 0, value);
  return fbb_.CreateVectorOfStructs(list);
}

auto BundleWriter::Guards(const std::vector<DimGuard>& guards) {
  std::vector<flat::DimGuard> list;
  for (const DimGuard& g : guards) list.emplace_back(g.dim, 0, g.min, g.max, g.divisor);
  return fbb_.CreateVectorOfStructs(list);
}

Offset<flat::Launch> BundleWriter::AddLaunch(const Launch& launch, size_t i, const FlatProgram& f) {
  const flat::Loc loc = f.Loc(launch.loc);
  const uint32_t name = Text(launch.name);
  const auto grid = fbb_.CreateVector(f.grids[i]);
  const auto block_vars = fbb_.CreateVector(launch.block_vars);
  Offset<flatbuffers::Vector<uint32_t>> cluster;
  if (!launch.cluster.empty()) {
    minor_ = std::max<uint16_t>(minor_, 2);
    cluster = fbb_.CreateVector(f.clusters[i]);
  }
  return flat::CreateLaunch(fbb_, name, grid, block_vars, f.threads[i], launch.cooperative, f.stmt_counts[i], loc.file(),
                            loc.line(), loc.column(), cluster);
}

Offset<flat::Program> BundleWriter::AddProgram(const Program& p) {
  const FlatProgram f(p, strings_);
  for (const flat::Stmt& stmt : f.stmts) minor_ = std::max(minor_, SinceMinor(stmt.op()));
  for (const Launch& launch : p.launches) {
    ForEachStmt(launch.body, [&](const Stmt& stmt) {
      auto* loop = std::get_if<For>(&stmt.op);
      if (loop != nullptr && MayBeZero(p, loop->split)) minor_ = std::max<uint16_t>(minor_, 3);
    });
  }
  std::vector<uint32_t> file_names;
  for (const std::string& file : p.files) file_names.push_back(Text(file));
  const auto files = fbb_.CreateVector(file_names);
  const auto dims = Tables<flat::Dim>(p.dims, [&](const Dim& d, size_t) { return flat::CreateDim(fbb_, Text(d.name)); });
  const auto constants = Tables<flat::Constant>(p.constants, [&](const Constant& c, size_t) {
    const auto candidates = fbb_.CreateVector(c.candidates);
    return flat::CreateConstant(fbb_, Text(c.name), candidates);
  });
  const auto scalars = Tables<flat::Scalar>(p.scalars, [&](const ScalarParam& s, size_t) {
    return flat::CreateScalar(fbb_, Text(s.name), static_cast<flat::DType>(s.dtype), s.dim);
  });
  const auto buffers = Tables<flat::Buffer>(p.buffers, [&](const Buffer& b, size_t i) {
    const flat::Loc loc = f.Loc(b.loc);
    const auto shape = fbb_.CreateVector(f.shapes[i]);
    const auto strides = fbb_.CreateVector(f.strides[i]);
    return flat::CreateBuffer(fbb_, Text(b.name), static_cast<flat::DType>(b.dtype), static_cast<flat::Scope>(b.scope), shape,
                              strides, b.arrive_count, loc.file(), loc.line(), loc.column());
  });
  const auto vars = Tables<flat::Var>(
      p.vars, [&](const Var& v, size_t) { return flat::CreateVar(fbb_, Text(v.name), static_cast<flat::DType>(v.dtype)); });
  const auto params = Tables<flat::Param>(p.params, [&](const Param& a, size_t) {
    return flat::CreateParam(fbb_, static_cast<flat::ParamKind>(a.kind), a.index, static_cast<flat::Access>(a.access));
  });
  const auto workspaces = Tables<flat::Workspace>(
      p.workspaces, [&](const Workspace& w, size_t) { return flat::CreateWorkspace(fbb_, w.buffer, w.zeroed); });
  const auto launches = Tables<flat::Launch>(p.launches, [&](const Launch& l, size_t i) { return AddLaunch(l, i, f); });
  const auto assumptions = fbb_.CreateVector(f.assumptions);
  const auto exprs = fbb_.CreateVectorOfStructs(f.exprs);
  const auto expr_args = fbb_.CreateVector(f.expr_args);
  const auto stmts = fbb_.CreateVectorOfStructs(f.stmts);
  const auto operands = fbb_.CreateVector(f.operands);
  return flat::CreateProgram(fbb_, Text(p.name), p.fast_math, files, dims, constants, scalars, buffers, vars, params, assumptions,
                             workspaces, launches, exprs, expr_args, stmts, operands);
}

uint32_t BundleWriter::AddBlob(std::string_view bytes) {
  blob_bytes_ += Padding(blob_bytes_.size(), kBlobAlign);
  const auto digest = Digest(Sha256Of(bytes));
  blobs_.push_back(flat::CreateBlob(fbb_, blob_bytes_.size(), bytes.size(), kBlobAlign, digest));
  blob_bytes_ += bytes;
  return static_cast<uint32_t>(blobs_.size()) - 1;
}

Offset<flat::Cubin> BundleWriter::AddCubin(const PrebuiltCubin& c) {
  const uint32_t blob = AddBlob(c.code);
  const auto kernels = Tables<flat::Kernel>(c.kernels, [&](const CubinKernel& k, size_t) {
    std::vector<flat::KernelArg> args;
    for (const CubinKernel::Arg& a : k.args) {
      if (a.kind == CubinKernel::Arg::Kind::kGiven) minor_ = std::max<uint16_t>(minor_, 3);
      args.emplace_back(static_cast<flat::ArgKind>(a.kind), a.index, a.bytes);
    }
    const auto args_vector = fbb_.CreateVectorOfStructs(args);
    Offset<flatbuffers::Vector<Offset<flat::TensorMap>>> maps;
    if (!k.maps.empty())
      maps = Tables<flat::TensorMap>(k.maps, [&](const CubinKernel::Map& m, size_t) {
        const auto box = fbb_.CreateVector(m.box);
        return flat::CreateTensorMap(fbb_, m.buffer, static_cast<flat::DType>(m.dtype), box, static_cast<uint32_t>(m.swizzle));
      });
    Offset<flatbuffers::Vector<uint32_t>> cluster;
    if (!k.cluster.empty()) {
      minor_ = std::max<uint16_t>(minor_, 2);
      cluster = fbb_.CreateVector(k.cluster);
    }
    const uint32_t symbol = Text(k.symbol);
    const bool needs_1 = k.persistent || k.blocks_per_sm != 1 || !k.maps.empty();
    if (needs_1) minor_ = std::max<uint16_t>(minor_, 1);
    flat::KernelBuilder kernel(fbb_);
    kernel.add_shared_bytes(k.shared_bytes);
    if (!k.cluster.empty()) kernel.add_cluster(cluster);
    if (needs_1) kernel.add_maps(maps), kernel.add_blocks_per_sm(k.blocks_per_sm);
    kernel.add_threads(k.threads);
    kernel.add_args(args_vector);
    kernel.add_symbol(symbol);
    if (needs_1) kernel.add_persistent(k.persistent);
    kernel.add_cooperative(k.cooperative);
    return kernel.Finish();
  });
  const auto digest = Digest(c.program_digest);
  const auto constants = Values(c.constants);
  const auto dims = Values(c.dims);
  const auto alignment = fbb_.CreateVector(c.alignment);
  const auto dim_divisor = fbb_.CreateVector(c.dim_divisor);
  return flat::CreateCubin(fbb_, digest, constants, dims, alignment, dim_divisor, c.index32, Text(c.target), c.launch_abi,
                           kernels, blob);
}

std::string BundleWriter::Write(const Bundle& bundle) {
  fbb_.ForceDefaults(true);
  std::vector<Offset<flat::Metadata>> metadata;
  for (const auto& [key, value] : bundle.metadata) {
    const uint32_t key_index = Text(key);
    metadata.push_back(flat::CreateMetadata(fbb_, key_index, Text(value)));
  }
  const auto programs = Tables<flat::Program>(bundle.programs, [&](const Program& p, size_t) { return AddProgram(p); });
  const auto variants = Tables<flat::Variant>(bundle.variants, [&](const Variant& v, size_t) {
    const uint32_t name = Text(v.name);
    const auto constants = Values(v.constants);
    const auto guards = Guards(v.guards);
    return flat::CreateVariant(fbb_, name, v.program, constants, Text(v.target), guards);
  });
  const auto tuning = Tables<flat::TuningRecord>(bundle.tuning, [&](const TuningRecord& t, size_t) {
    const auto bucket = Guards(t.bucket);
    return flat::CreateTuningRecord(fbb_, Text(t.sku), t.variant, bucket, t.microseconds);
  });
  const auto cubins = Tables<flat::Cubin>(bundle.cubins, [&](const PrebuiltCubin& c, size_t) { return AddCubin(c); });
  const auto metadata_vector = fbb_.CreateVector(metadata);
  const auto blobs = fbb_.CreateVector(blobs_);
  const auto features = fbb_.CreateVector(std::vector<uint32_t>());
  const auto strings = fbb_.CreateVectorOfStrings(strings_.strings());
  const auto root = flat::CreateBundle(fbb_, strings, features, metadata_vector, programs, variants, tuning, cubins, blobs);
  flat::FinishBundleBuffer(fbb_, root);

  std::string body(reinterpret_cast<const char*>(fbb_.GetBufferPointer()), fbb_.GetSize());
  BundleHeader header;
  header.minor = minor_;
  header.fb_size = body.size();
  header.content_hash = ContentHash(body);
  if (!blob_bytes_.empty()) body += Padding(kHeaderBytes + body.size(), kBlobAlign);
  header.blob_offset = kHeaderBytes + body.size();
  header.file_size = header.blob_offset + blob_bytes_.size();
  return EncodeHeader(header) + body + blob_bytes_;
}

}  // namespace

absl::StatusOr<std::string> WriteBundle(const Bundle& bundle) {
  TILERT_RETURN_IF_ERROR(CheckBundle(bundle));
  std::string bytes = BundleWriter().Write(bundle);
  TILERT_RETURN_IF_ERROR(ReadBundle(bytes).status());  // its limits on counts and sizes
  return bytes;
}

}  // namespace tilert
