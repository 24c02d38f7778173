#include "ir/flat_reader.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "ir/bundle_check.h"
#include "ir/container.h"
#include "ir/flat_decode.h"
#include "ir/limits.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

class BundleReader {
 public:
  BundleReader(const flat::Bundle& flat, uint64_t flat_bytes, std::string_view blob_bytes)
      : flat_(flat), blob_bytes_(blob_bytes), access_(flat, flat_bytes) {}
  absl::StatusOr<Bundle> Run();

 private:
  void ReadFeatures();
  void ReadMetadata();
  absl::Status ReadPrograms();
  void ReadVariants();
  void ReadCubins();
  std::map<std::string, int64_t> Values(const flatbuffers::Vector<const flat::NamedValue*>* list);
  std::vector<DimGuard> Guards(const flatbuffers::Vector<const flat::DimGuard*>* list);
  Sha256Digest Digest(const flatbuffers::Vector<uint8_t>* bytes);
  void ReadBlob(uint32_t index, PrebuiltCubin& cubin);
  std::vector<CubinKernel> Kernels(const flat::Cubin& cubin);

  const flat::Bundle& flat_;
  const std::string_view blob_bytes_;
  FlatAccess access_;
  std::vector<const flat::Blob*> blobs_;
  Bundle bundle_;
};

void BundleReader::ReadFeatures() {
  for (uint32_t index : access_.Scalars(flat_.features())) {
    access_.Fail(absl::UnimplementedError(
        Cat("bundle: needs the feature \"", access_.Text(index), "\", which this library does not know: update it")));
  }
}

void BundleReader::ReadMetadata() {
  for (const flat::Metadata* m : access_.Tables(flat_.metadata())) {
    std::string key = access_.Text(m->key());
    if (!bundle_.metadata.empty() && key <= bundle_.metadata.rbegin()->first) {
      return access_.Fail(InvalidArgument("bundle: metadata keys are not ascending"));
    }
    bundle_.metadata.emplace_hint(bundle_.metadata.end(), std::move(key), access_.Text(m->value()));
  }
}

absl::Status BundleReader::ReadPrograms() {
  const auto programs = access_.Tables(flat_.programs());
  if (programs.size() > kMaxPrograms)
    return InvalidArgument("bundle: ", programs.size(), " programs; at most ", kMaxPrograms, " are allowed");
  for (size_t i = 0; i < programs.size(); ++i) {
    TILERT_ASSIGN_OR_RETURN(Program program, DecodeProgram(*programs[i], access_, Cat("programs[", i, "]")));
    bundle_.programs.push_back(std::move(program));
  }
  return access_.status();
}

std::map<std::string, int64_t> BundleReader::Values(const flatbuffers::Vector<const flat::NamedValue*>* list) {
  std::map<std::string, int64_t> values;
  for (const flat::NamedValue& v : access_.Structs(list)) {
    std::string name = access_.Text(v.name());
    if (!values.empty() && name <= values.rbegin()->first)
      access_.Fail(InvalidArgument("bundle: names of values are not ascending"));
    values[std::move(name)] = v.value();
  }
  return values;
}

std::vector<DimGuard> BundleReader::Guards(const flatbuffers::Vector<const flat::DimGuard*>* list) {
  std::vector<DimGuard> guards;
  for (const flat::DimGuard& g : access_.Structs(list)) guards.push_back({g.dim(), g.min(), g.max(), g.divisor()});
  return guards;
}

void BundleReader::ReadVariants() {
  for (const flat::Variant* v : access_.Tables(flat_.variants())) {
    bundle_.variants.push_back(
        {access_.Text(v->name()), v->program(), Values(v->constants()), access_.Text(v->target()), Guards(v->guards())});
  }
  for (const flat::TuningRecord* t : access_.Tables(flat_.tuning())) {
    bundle_.tuning.push_back({access_.Text(t->sku()), t->variant(), Guards(t->bucket()), t->microseconds()});
  }
}

Sha256Digest BundleReader::Digest(const flatbuffers::Vector<uint8_t>* bytes) {
  Sha256Digest digest{};
  const auto data = access_.Scalars(bytes);
  if (data.size() != digest.size()) {
    access_.Fail(InvalidArgument("bundle: a SHA-256 of ", data.size(), " bytes"));
  } else {
    std::memcpy(digest.data(), data.data(), digest.size());
  }
  return digest;
}

void BundleReader::ReadBlob(uint32_t index, PrebuiltCubin& cubin) {
  if (index >= blobs_.size())
    return access_.Fail(InvalidArgument("bundle: blob ", index, " does not exist; there are ", blobs_.size()));
  const flat::Blob& blob = *blobs_[index];
  if (blob.align() != kBlobAlign || blob.offset() % kBlobAlign != 0) {
    return access_.Fail(InvalidArgument("blobs[", index, "]: offset ", blob.offset(), " is not aligned to ", kBlobAlign));
  }
  if (blob.offset() > blob_bytes_.size() || blob.size() > blob_bytes_.size() - blob.offset()) {
    return access_.Fail(InvalidArgument("blobs[", index, "]: ", blob.size(), " bytes at ", blob.offset(), " go beyond the file"));
  }
  cubin.code = blob_bytes_.substr(blob.offset(), blob.size());
  cubin.code_sha256 = Digest(blob.sha256());
}

std::vector<CubinKernel> BundleReader::Kernels(const flat::Cubin& cubin) {
  std::vector<CubinKernel> kernels;
  for (const flat::Kernel* k : access_.Tables(cubin.kernels())) {
    CubinKernel kernel{access_.Text(k->symbol()), {}, k->threads(), k->shared_bytes(), k->cooperative(), false, 1, {}};
    for (const flat::KernelArg& a : access_.Structs(k->args())) {
      kernel.args.push_back({static_cast<CubinKernel::Arg::Kind>(a.kind()), a.index(), a.bytes()});
    }
    kernel.persistent = k->persistent();
    kernel.blocks_per_sm = k->blocks_per_sm();
    for (const flat::TensorMap* m : access_.Tables(k->maps())) {
      const auto box = access_.Scalars(m->box());
      kernel.maps.push_back(
          {m->buffer(), static_cast<DType>(m->dtype()), {box.begin(), box.end()}, static_cast<int>(m->swizzle())});
    }
    const auto cluster = access_.Scalars(k->cluster());
    kernel.cluster.assign(cluster.begin(), cluster.end());
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

void BundleReader::ReadCubins() {
  blobs_ = access_.Tables(flat_.blobs());
  for (const flat::Cubin* c : access_.Tables(flat_.cubins())) {
    PrebuiltCubin cubin;
    cubin.program_digest = Digest(c->program_digest());
    cubin.constants = Values(c->constants());
    cubin.dims = Values(c->dims());
    const auto alignment = access_.Scalars(c->alignment()), dim_divisor = access_.Scalars(c->dim_divisor());
    cubin.alignment.assign(alignment.begin(), alignment.end());
    cubin.dim_divisor.assign(dim_divisor.begin(), dim_divisor.end());
    cubin.index32 = c->index32();
    cubin.target = access_.Text(c->target());
    cubin.launch_abi = c->launch_abi();
    cubin.kernels = Kernels(*c);
    ReadBlob(c->blob(), cubin);
    bundle_.cubins.push_back(std::move(cubin));
  }
}

absl::StatusOr<Bundle> BundleReader::Run() {
  ReadFeatures();
  ReadMetadata();
  TILERT_RETURN_IF_ERROR(ReadPrograms());
  ReadVariants();
  ReadCubins();
  TILERT_RETURN_IF_ERROR(access_.status());
  TILERT_RETURN_IF_ERROR(CheckBundle(bundle_));
  return std::move(bundle_);
}

}  // namespace

absl::StatusOr<Bundle> ReadBundle(std::string_view bytes, const ReadOptions& options) {
  TILERT_ASSIGN_OR_RETURN(const BundleHeader header, DecodeHeader(bytes));
  std::string_view body = bytes.substr(header.fb_offset, header.fb_size);
  if (options.check_hash && ContentHash(body) != header.content_hash) {
    return InvalidArgument("bundle: corrupt: its content does not match the hash in its header");
  }
  // FlatBuffers takes the alignment of what it is given for granted.
  std::vector<uint64_t> aligned;
  if (reinterpret_cast<uintptr_t>(body.data()) % alignof(uint64_t) != 0) {
    aligned.resize(body.size() / sizeof(uint64_t) + 1);
    std::memcpy(aligned.data(), body.data(), body.size());
    body = std::string_view(reinterpret_cast<const char*>(aligned.data()), body.size());
  }
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(body.data()), body.size(), kMaxFlatDepth, kMaxFlatTables);
  if (!flat::VerifyBundleBuffer(verifier)) {
    return InvalidArgument("bundle: its FlatBuffer is malformed (offsets, sizes, nesting, or an identifier other than TLRT)");
  }
  return BundleReader(*flat::GetBundle(body.data()), body.size(), bytes.substr(header.blob_offset)).Run();
}

}  // namespace tilert
