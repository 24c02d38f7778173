#include "ir/status_util.h"
#include "runtime/c_api.h"

namespace tilert::c_api {
namespace {

tilert_status* Open(tilert_bundle** out, const std::function<absl::StatusOr<std::shared_ptr<const OpenedBundle>>()>& open) {
  if (out != nullptr) *out = nullptr;
  return Guard([&]() -> absl::Status {
    if (out == nullptr) return InvalidArgument("the place for the bundle is NULL");
    auto handle = std::make_unique<tilert_bundle>();
    TILERT_ASSIGN_OR_RETURN(handle->bundle, open());
    *out = handle.release();
    return absl::OkStatus();
  });
}

absl::StatusOr<const Program*> EntryOf(const tilert_bundle* bundle, const char* entry) {
  if (bundle == nullptr) return InvalidArgument("bundle is NULL");
  if (entry == nullptr) return InvalidArgument("entry is NULL");
  return bundle->bundle->Entry(entry);
}

}  // namespace

tilert_status* BundleOpenMemory(const void* data, size_t size, int copy, tilert_bundle** out) {
  return Open(out, [&]() -> absl::StatusOr<std::shared_ptr<const OpenedBundle>> {
    if (data == nullptr) return InvalidArgument("data is NULL");
    return OpenedBundle::FromMemory({static_cast<const char*>(data), size}, copy != 0);
  });
}

tilert_status* BundleOpenFile(const char* path, tilert_bundle** out) {
  return Open(out, [&]() -> absl::StatusOr<std::shared_ptr<const OpenedBundle>> {
    if (path == nullptr) return InvalidArgument("path is NULL");
    return OpenedBundle::FromFile(path);
  });
}

void BundleRelease(tilert_bundle* bundle) { delete bundle; }

size_t BundleEntryCount(const tilert_bundle* bundle) { return bundle == nullptr ? 0 : bundle->bundle->bundle().programs.size(); }

const char* BundleEntryName(const tilert_bundle* bundle, size_t index) {
  return index < BundleEntryCount(bundle) ? bundle->bundle->bundle().programs[index].name.c_str() : nullptr;
}

tilert_status* BundleParamCount(const tilert_bundle* bundle, const char* entry, size_t* count) {
  if (count != nullptr) *count = 0;
  return Guard([&]() -> absl::Status {
    if (count == nullptr) return InvalidArgument("the place for the count is NULL");
    TILERT_ASSIGN_OR_RETURN(const Program* const program, EntryOf(bundle, entry));
    *count = program->params.size();
    return absl::OkStatus();
  });
}

tilert_status* BundleGetParam(const tilert_bundle* bundle, const char* entry, size_t index, tilert_param_info* info) {
  return Guard([&]() -> absl::Status {
    TILERT_ASSIGN_OR_RETURN(const Program* const program, EntryOf(bundle, entry));
    if (index >= program->params.size())
      return InvalidArgument("'", program->name, "' has ", program->params.size(), " parameters");
    const Param& param = program->params[index];
    tilert_param_info c = {};
    if (param.kind == Param::Kind::kTensor && param.index < program->buffers.size()) {
      const Buffer& buffer = program->buffers[param.index];
      c = {0,
           buffer.name.c_str(),
           TILERT_TENSOR,
           static_cast<tilert_dtype>(buffer.dtype),
           static_cast<tilert_access>(param.access),
           static_cast<uint32_t>(buffer.shape.size())};
    } else if (param.kind == Param::Kind::kScalar && param.index < program->scalars.size()) {
      const ScalarParam& scalar = program->scalars[param.index];
      c = {0,
           scalar.name.c_str(),
           IsFloat(scalar.dtype) ? TILERT_REAL : TILERT_INTEGER,
           static_cast<tilert_dtype>(scalar.dtype),
           TILERT_IN,
           0};
    } else {
      return InvalidArgument("parameter ", index, " of '", program->name, "' is malformed");
    }
    return WriteStruct(c, info, "info");
  });
}

}  // namespace tilert::c_api
