#include <algorithm>

#include "absl/container/fixed_array.h"
#include "ir/status_util.h"
#include "runtime/c_api.h"

namespace tilert::c_api {
namespace {

absl::StatusOr<std::map<std::string, int64_t>> FromC(const tilert_binding* bindings, size_t count, const char* what) {
  std::map<std::string, int64_t> map;
  if (count != 0 && bindings == nullptr) return InvalidArgument("spec.", what, " is NULL");
  for (size_t i = 0; i < count; ++i) {
    if (bindings[i].name == nullptr) return InvalidArgument("spec.", what, "[", i, "].name is NULL");
    if (!map.emplace(bindings[i].name, bindings[i].value).second)
      return InvalidArgument("spec.", what, " names '", bindings[i].name, "' twice");
  }
  return map;
}

absl::StatusOr<KernelSpec> FromC(const tilert_kernel_spec* from) {
  tilert_kernel_spec c;
  TILERT_RETURN_IF_ERROR(ReadStruct(from, &c, "spec"));
  if (c.entry == nullptr) return InvalidArgument("spec.entry is NULL");
  KernelSpec spec;
  spec.entry = c.entry;
  TILERT_ASSIGN_OR_RETURN(spec.constants, FromC(c.constants, c.constant_count, "constants"));
  TILERT_ASSIGN_OR_RETURN(spec.dims, FromC(c.fixed_dims, c.fixed_dim_count, "fixed_dims"));
  spec.general_only = c.general_only != 0;
  return spec;
}

// A call's arguments apart, on the stack.
struct SplitArgs {
  explicit SplitArgs(const Program& program) : tensors(program.params.size()), scalars(program.scalars.size()) {}

  absl::Status Fill(const Program& program, const tilert_arg* args) {
    for (size_t i = 0; i < program.params.size(); ++i) {
      if (args[i].reserved != 0) {
        return InvalidArgument("argument ", i, ": the reserved field is not 0 (tilert.hpp sets it when the number of strides ",
                               "is not that of the extents)");
      }
      TILERT_RETURN_IF_ERROR(program.params[i].kind == Param::Kind::kTensor ? AddTensor(i, args[i])
                                                                            : AddScalar(i, args[i], program));
    }
    return absl::OkStatus();
  }
  absl::Status AddTensor(size_t i, const tilert_arg& arg) {
    if (arg.kind != TILERT_TENSOR) return InvalidArgument("argument ", i, " must be a tensor");
    if (arg.rank != 0 && arg.shape == nullptr) return InvalidArgument("argument ", i, " has no shape (NULL)");
    // An impossible rank would be read from the host's memory before anything compares it with the program's.
    if (arg.rank > 64) return InvalidArgument("argument ", i, " has ", arg.rank, " dimensions");
    const size_t strides = arg.strides == nullptr ? 0 : arg.rank;
    tensors[tensor_count++] = {arg.data, static_cast<DType>(arg.dtype), {arg.shape, arg.rank}, {arg.strides, strides}};
    return absl::OkStatus();
  }
  absl::Status AddScalar(size_t i, const tilert_arg& arg, const Program& program) {
    const uint32_t index = program.params[i].index;
    const ScalarParam& param = program.scalars[index];
    if (arg.kind != TILERT_INTEGER && arg.kind != TILERT_REAL)
      return InvalidArgument("argument ", i, " ('", param.name, "') must be a scalar");
    DType dtype = arg.dtype == 0 ? param.dtype : static_cast<DType>(arg.dtype);
    const bool is_real = arg.kind == TILERT_REAL;
    if (arg.dtype == 0 && IsFloat(dtype) != is_real) dtype = is_real ? DType::kFloat64 : DType::kInt64;
    // Any C integer may stand for a parameter that holds it.
    if (arg.dtype == 0 && !is_real) dtype = DType::kInt64;
    if (IsFloat(dtype) != is_real) return InvalidArgument("argument ", i, " ('", param.name, "'): kind and dtype disagree");
    ScalarArg scalar = is_real ? ScalarArg::Float(arg.real, dtype) : ScalarArg::Int(arg.integer, dtype);
    if (!is_real && IsFloat(param.dtype)) scalar = ScalarArg::Float(static_cast<double>(arg.integer), DType::kFloat64);
    // BindArgs wants tensors in the order of the parameters and scalars in the order of Program::scalars.
    scalars[index] = Narrow(scalar, param.dtype);
    return absl::OkStatus();
  }
  // In the parameter's own type where that loses nothing that BindArgs would miss: the launch then takes its short way.
  static ScalarArg Narrow(const ScalarArg& arg, DType type) {
    if (arg.dtype == type || IsFloat(arg.dtype) != IsFloat(type)) return arg;
    const Value value = ConvertValue(arg.value, arg.dtype, type);
    const bool same = IsFloat(type) || (value.i == arg.value.i && (value.i >= 0 || KindOf(type) == DTypeKind::kSigned));
    return same ? ScalarArg{type, value} : arg;
  }

  absl::FixedArray<TensorArg, 24> tensors;
  absl::FixedArray<ScalarArg, 24> scalars;
  size_t tensor_count = 0;
};

absl::Status CheckCount(const Kernel& kernel, const tilert_arg* args, size_t count) {
  const size_t expected = kernel.program().params.size();
  if (count != expected) return InvalidArgument("'", kernel.program().name, "' takes ", expected, " arguments, got ", count);
  if (count != 0 && args == nullptr) return InvalidArgument("args is NULL");
  return absl::OkStatus();
}

}  // namespace

tilert_status* KernelCreate(tilert_runtime* runtime, tilert_bundle* bundle, const tilert_kernel_spec* c_spec,
                            tilert_kernel** out) {
  if (out != nullptr) *out = nullptr;
  return Guard([&]() -> absl::Status {
    if (out == nullptr || runtime == nullptr || bundle == nullptr)
      return InvalidArgument("runtime, bundle or the place for the kernel is NULL");
    TILERT_ASSIGN_OR_RETURN(const KernelSpec spec, FromC(c_spec));
    auto handle = std::make_unique<tilert_kernel>();
    TILERT_ASSIGN_OR_RETURN(handle->kernel, Kernel::Create(runtime->runtime, bundle->bundle, spec));
    *out = handle.release();
    return absl::OkStatus();
  });
}

void KernelRelease(tilert_kernel* kernel) { delete kernel; }

tilert_status* KernelQuery(tilert_kernel* kernel, tilert_readiness* readiness, char* reason, size_t reason_size) {
  if (readiness != nullptr) *readiness = TILERT_UNSUPPORTED;
  if (reason != nullptr && reason_size != 0) *reason = '\0';
  return Guard([&]() -> absl::Status {
    if (kernel == nullptr || readiness == nullptr) return InvalidArgument("kernel or the place for the readiness is NULL");
    const QueryResult result = kernel->kernel->Query();
    *readiness = static_cast<tilert_readiness>(result.readiness);
    if (reason != nullptr && reason_size != 0) {
      const size_t size = std::min(reason_size - 1, result.reason.size());
      std::memcpy(reason, result.reason.data(), size);
      reason[size] = '\0';
    }
    return absl::OkStatus();
  });
}

tilert_status* KernelPrepare(tilert_kernel* kernel, tilert_prepare_mode mode) {
  return Guard([&]() -> absl::Status {
    if (kernel == nullptr) return InvalidArgument("kernel is NULL");
    switch (mode) {
      case TILERT_PREPARE_BLOCKING:
        return kernel->kernel->Prepare(PrepareMode::kBlocking);
      case TILERT_PREPARE_ASYNC:
        return kernel->kernel->PrepareAsync();
      case TILERT_PREPARE_CACHED_ONLY:
        return kernel->kernel->Prepare(PrepareMode::kCachedOnly);
    }
    return InvalidArgument("mode is no tilert_prepare_mode");
  });
}

tilert_status* KernelWorkspaceSize(tilert_kernel* kernel, const tilert_arg* args, size_t arg_count, uint64_t* bytes) {
  if (bytes != nullptr) *bytes = 0;
  return Guard([&]() -> absl::Status {
    if (kernel == nullptr || bytes == nullptr) return InvalidArgument("kernel or the place for the size is NULL");
    TILERT_RETURN_IF_ERROR(CheckCount(*kernel->kernel, args, arg_count));
    SplitArgs split(kernel->kernel->program());
    TILERT_RETURN_IF_ERROR(split.Fill(kernel->kernel->program(), args));
    TILERT_ASSIGN_OR_RETURN(*bytes, kernel->kernel->WorkspaceBytes({split.tensors.data(), split.tensor_count}, split.scalars));
    return absl::OkStatus();
  });
}

tilert_status* KernelLaunch(tilert_kernel* kernel, const tilert_launch* c_launch) {
  return Guard([&]() -> absl::Status {
    if (kernel == nullptr) return InvalidArgument("kernel is NULL");
    tilert_launch launch;
    TILERT_RETURN_IF_ERROR(ReadStruct(c_launch, &launch, "launch"));
    TILERT_RETURN_IF_ERROR(CheckCount(*kernel->kernel, launch.args, launch.arg_count));
    SplitArgs split(kernel->kernel->program());
    TILERT_RETURN_IF_ERROR(split.Fill(kernel->kernel->program(), launch.args));
    LaunchRequest request;
    request.stream = static_cast<cuda::Stream>(launch.stream);
    request.tensors = {split.tensors.data(), split.tensor_count};
    request.scalars = split.scalars;
    request.workspace = launch.workspace;
    request.workspace_bytes = launch.workspace_bytes;
    return kernel->kernel->Launch(request);
  });
}

}  // namespace tilert::c_api
