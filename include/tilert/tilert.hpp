// tilert for C++17, header only, over the C ABI of tilert.h; no other dependency. Errors are values: nothing here throws.
//
//   auto runtime = tilert::Runtime::Create();                     // in the current CUDA context
//   auto bundle = tilert::Bundle::OpenFile("model.tilert");
//   auto gemm = tilert::Kernel::Create(*runtime, *bundle, {"gemm_nt", {{"dtype_bits", 16}}});
//   if (auto status = gemm->Prepare(); !status.ok()) return Fail(status.message());
//   gemm->Launch(stream, {tilert::Tensor(a, TILERT_BFLOAT16, {m, k}), tilert::Tensor(b, TILERT_BFLOAT16, {n, k}),
//                         tilert::Tensor(c, TILERT_BFLOAT16, {m, n})});
//
// Handles are movable and own their object; an object may be released before what was made from it. Thread safety: tilert.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilert/tilert.h"

namespace tilert {
inline namespace v1 {  // keeps these names apart from any other code that a program links

// The table this header was written for. A library older than the header cannot be linked to it: its soname differs.
inline const tilert_api& Api() { return *tilert_get_api(TILERT_API_VERSION); }

class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(tilert_status* status) : status_(status) {}
  bool ok() const { return status_ == nullptr; }
  tilert_code code() const { return Api().status_code(status_.get()); }
  const char* message() const { return Api().status_message(status_.get()); }

 private:
  struct Release {
    void operator()(tilert_status* status) const { Api().status_release(status); }
  };
  std::unique_ptr<tilert_status, Release> status_;
};

// A value or the error that took its place. REQUIRES: ok() before * and ->.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const { return status_.ok(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_{};
  Status status_;
};

// One argument of a launch. Shapes are copied: temporaries are fine. At most 8 dimensions.
class Arg {
 public:
  tilert_arg c() const {
    tilert_arg arg = arg_;
    arg.shape = shape_;
    arg.strides = has_strides_ ? strides_ : nullptr;
    return arg;
  }

 protected:
  static constexpr size_t kMaxRank = 8;
  tilert_arg arg_ = {};
  int64_t shape_[kMaxRank] = {}, strides_[kMaxRank] = {};
  bool has_strides_ = false;
};

class Tensor : public Arg {
 public:
  // `strides` in elements; none: contiguous. The launch refuses a rank above 8, and strides of another number than extents.
  Tensor(void* data, tilert_dtype dtype, std::initializer_list<int64_t> shape, std::initializer_list<int64_t> strides = {})
      : Tensor(data, dtype, shape.begin(), shape.size(), strides.size() == shape.size() ? strides.begin() : nullptr) {
    arg_.reserved = strides.size() != 0 && strides.size() != shape.size();
  }
  Tensor(const void* data, tilert_dtype dtype, std::initializer_list<int64_t> shape, std::initializer_list<int64_t> strides = {})
      : Tensor(const_cast<void*>(data), dtype, shape, strides) {}
  Tensor(void* data, tilert_dtype dtype, const int64_t* shape, size_t rank, const int64_t* strides = nullptr) {
    arg_.kind = TILERT_TENSOR;
    arg_.data = data;
    arg_.dtype = dtype;
    arg_.rank = static_cast<uint32_t>(rank);
    const size_t copied = rank < kMaxRank ? rank : kMaxRank;
    std::copy(shape, shape + copied, shape_);
    if (strides != nullptr && rank != 0) {
      std::copy(strides, strides + copied, strides_);
      has_strides_ = true;
    }
  }
};

class Integer : public Arg {
 public:
  explicit Integer(int64_t value) {
    arg_.kind = TILERT_INTEGER;
    arg_.integer = value;
  }
};

class Real : public Arg {
 public:
  explicit Real(double value) {
    arg_.kind = TILERT_REAL;
    arg_.real = value;
  }
};

// Owns a C object of type T.
template <typename T, void (*tilert_api::*kRelease)(T*)>
class Handle {
 public:
  T* get() const { return object_.get(); }

 protected:
  Handle() = default;
  explicit Handle(T* object) : object_(object) {}

 private:
  struct Release {
    void operator()(T* object) const { (Api().*kRelease)(object); }
  };
  std::unique_ptr<T, Release> object_;
};

class Runtime : public Handle<tilert_runtime, &tilert_api::runtime_release> {
 public:
  Runtime() = default;
  static tilert_runtime_options DefaultOptions() {
    tilert_runtime_options options = {};
    options.struct_size = sizeof options;
    return options;
  }
  static Result<Runtime> Create(const tilert_runtime_options& options = DefaultOptions()) {
    tilert_runtime* runtime = nullptr;
    if (Status status(Api().runtime_create(&options, &runtime)); !status.ok()) return status;
    return Runtime(runtime);
  }
  // Runs programs on the CPU by the reference executor: exact and slow.
  static Result<Runtime> CreateCpu() {
    tilert_runtime_options options = DefaultOptions();
    options.device = TILERT_DEVICE_CPU;
    return Create(options);
  }
  tilert_runtime_info info() const {
    tilert_runtime_info info = {};
    info.struct_size = sizeof info;
    (void)Status(Api().runtime_get_info(get(), &info));
    return info;
  }

 private:
  explicit Runtime(tilert_runtime* runtime) : Handle(runtime) {}
};

class Bundle : public Handle<tilert_bundle, &tilert_api::bundle_release> {
 public:
  Bundle() = default;
  static Result<Bundle> OpenFile(const std::string& path) {
    tilert_bundle* bundle = nullptr;
    if (Status status(Api().bundle_open_file(path.c_str(), &bundle)); !status.ok()) return status;
    return Bundle(bundle);
  }
  // With copy = false, `data` must outlive the bundle and its kernels.
  static Result<Bundle> OpenMemory(const void* data, size_t size, bool copy = true) {
    tilert_bundle* bundle = nullptr;
    if (Status status(Api().bundle_open_memory(data, size, copy ? 1 : 0, &bundle)); !status.ok()) return status;
    return Bundle(bundle);
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < Api().bundle_entry_count(get()); ++i) names.emplace_back(Api().bundle_entry_name(get(), i));
    return names;
  }

 private:
  explicit Bundle(tilert_bundle* bundle) : Handle(bundle) {}
};

struct KernelSpec {
  std::string entry;
  std::vector<std::pair<std::string, int64_t>> constants = {};
  std::vector<std::pair<std::string, int64_t>> fixed_dims = {};
  bool general_only = false;
};

class Kernel : public Handle<tilert_kernel, &tilert_api::kernel_release> {
 public:
  Kernel() = default;
  static Result<Kernel> Create(const Runtime& runtime, const Bundle& bundle, const KernelSpec& spec) {
    std::vector<tilert_binding> constants, dims;
    for (const auto& [name, value] : spec.constants) constants.push_back({name.c_str(), value});
    for (const auto& [name, value] : spec.fixed_dims) dims.push_back({name.c_str(), value});
    tilert_kernel_spec c = {};
    c.struct_size = sizeof c;
    c.entry = spec.entry.c_str();
    c.constants = constants.data(), c.constant_count = constants.size();
    c.fixed_dims = dims.data(), c.fixed_dim_count = dims.size();
    c.general_only = spec.general_only ? 1 : 0;
    tilert_kernel* kernel = nullptr;
    if (Status status(Api().kernel_create(runtime.get(), bundle.get(), &c, &kernel)); !status.ok()) return status;
    return Kernel(kernel);
  }
  Status Prepare(tilert_prepare_mode mode = TILERT_PREPARE_BLOCKING) const { return Status(Api().kernel_prepare(get(), mode)); }
  tilert_readiness Query() const {
    tilert_readiness readiness = TILERT_UNSUPPORTED;
    (void)Status(Api().kernel_query(get(), &readiness, nullptr, 0));
    return readiness;
  }
  Result<uint64_t> WorkspaceSize(std::initializer_list<Arg> args) const {
    uint64_t bytes = 0;
    Status status =
        WithArgs(args, [&](const tilert_arg* c) { return Api().kernel_workspace_size(get(), c, args.size(), &bytes); });
    if (!status.ok()) return status;
    return bytes;
  }
  // `stream`: a CUstream or cudaStream_t.
  Status Launch(void* stream, std::initializer_list<Arg> args, void* workspace = nullptr, uint64_t workspace_bytes = 0) const {
    return WithArgs(args, [&](const tilert_arg* c) {
      const tilert_launch launch = {sizeof(tilert_launch), stream, c, args.size(), workspace, workspace_bytes};
      return Api().kernel_launch(get(), &launch);
    });
  }

 private:
  explicit Kernel(tilert_kernel* kernel) : Handle(kernel) {}

  // Up to 24 arguments without an allocation.
  template <typename Call>
  static Status WithArgs(std::initializer_list<Arg> args, Call&& call) {
    tilert_arg few[24];
    std::vector<tilert_arg> many(args.size() > 24 ? args.size() : 0);
    tilert_arg* const c = many.empty() ? few : many.data();
    std::transform(args.begin(), args.end(), c, [](const Arg& arg) { return arg.c(); });
    return Status(call(c));
  }
};

}  // namespace v1
}  // namespace tilert
