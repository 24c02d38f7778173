// Speed of the standard kernels on the GPU, beside what users pick instead. Prints one JSON object a line and writes them to
// --out.
//
//   kernels_bench [--family ampere] [--only gemm] [--repeats 20] [--out results.jsonl]
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "bench/cublas.h"
#include "bench/gpu_timer.h"
#include "ir/status_util.h"
#include "tests/gpu/std_bundle.h"

namespace tilert::bench {
namespace {

using Clock = std::chrono::steady_clock;
double Milliseconds(Clock::time_point since) { return std::chrono::duration<double, std::milli>(Clock::now() - since).count(); }

struct Settings {
  std::string family = "auto", only, out;
  int repeats = 20;
};

// One prepared kernel with its device arguments.
struct Call {
  std::shared_ptr<Kernel> kernel;
  std::vector<tool::DeviceMemory> memory;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<TensorArg> tensors;
  LaunchRequest request;
  absl::Status Run() { return kernel->Launch(request); }
};

class Bench {
 public:
  explicit Bench(Settings settings) : settings_(std::move(settings)) {}

  absl::Status Run() {
    RuntimeOptions options;
    options.family = settings_.family;
    TILERT_ASSIGN_OR_RETURN(device_, tool::Device::Open(options));
    TILERT_ASSIGN_OR_RETURN(timer_, GpuTimer::Make(driver()));
    TILERT_ASSIGN_OR_RETURN(std_, gpu::OpenStd());
    if (auto blas = Cublas::Load(); blas.ok()) {
      cublas_ = *std::move(blas);
    } else {
      std::fprintf(stderr, "%s\n", blas.status().ToString().c_str());
    }
    if (!settings_.out.empty()) out_ = std::fopen(settings_.out.c_str(), "w");
    TILERT_RETURN_IF_ERROR(Meta());
    if (Wanted("gemm")) TILERT_RETURN_IF_ERROR(Gemms());
    if (Wanted("attention")) TILERT_RETURN_IF_ERROR(Attentions());
    if (Wanted("rows")) TILERT_RETURN_IF_ERROR(Rows());
    if (Wanted("load")) TILERT_RETURN_IF_ERROR(Loads());
    if (Wanted("launch")) TILERT_RETURN_IF_ERROR(LaunchCost());
    if (out_ != nullptr) std::fclose(out_);
    return absl::OkStatus();
  }

 private:
  const cuda::Driver& driver() const { return device_->driver(); }
  bool Wanted(const std::string& part) const { return settings_.only.empty() || settings_.only.find(part) != std::string::npos; }

  void Emit(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    if (out_ != nullptr) std::fprintf(out_, "%s\n", line.c_str());
  }

  absl::Status Meta() {
    const auto& nvrtc = device_->runtime()->nvrtc();
    Emit(Cat("{\"meta\": {\"gpu\": \"", device_->runtime()->device().name, "\", \"driver\": \"", driver().version(),
             "\", \"nvrtc\": \"", nvrtc.ok() ? std::to_string((*nvrtc)->version()) : "none", "\", \"cublas\": \"",
             cublas_ ? cublas_->version() : "none", "\"}}"));
    return absl::OkStatus();
  }

  absl::StatusOr<Call> MakeCall(const std::string& entry, const std::map<std::string, int64_t>& dims) {
    Call call;
    TILERT_ASSIGN_OR_RETURN(const Program program, gpu::FindProgram(*std_, entry));
    TILERT_ASSIGN_OR_RETURN(call.kernel, Kernel::Create(device_->runtime(), program, {}));
    TILERT_RETURN_IF_ERROR(call.kernel->Prepare());
    for (const Param& param : program.params) {
      const Buffer& buffer = program.buffers[param.index];
      std::vector<int64_t> shape;
      int64_t elements = 1;
      for (Expr e : buffer.shape) {
        const ExprNode& node = program.exprs[e];
        shape.push_back(node.op == ExprOp::kDim ? dims.at(program.dims[node.i].name) : node.i);
        elements *= shape.back();
      }
      TILERT_ASSIGN_OR_RETURN(tool::DeviceMemory memory,
                              RandomOnDevice(driver(), buffer.dtype, elements, call.shapes.size() + 1));
      call.memory.push_back(std::move(memory));
      call.shapes.push_back(std::move(shape));
    }
    size_t i = 0;
    for (const Param& param : program.params) {
      call.tensors.push_back({call.memory[i].data(), program.buffers[param.index].dtype, call.shapes[i], {}});
      ++i;
    }
    call.request.tensors = call.tensors;
    return call;
  }

  // One result line: `flop` and `bytes` of one run; the peer's time, if there is one.
  void Result(const std::string& bench, const std::string& dtype, const std::string& shape, const std::string& layout, double us,
              double flop, double bytes, const std::string& peer, double peer_us) {
    char numbers[256];
    std::snprintf(numbers, sizeof numbers, "\"us\": %.2f, \"tflops\": %.1f, \"gbs\": %.1f", us, flop / us * 1e-6,
                  bytes / us * 1e-3);
    std::string line = Cat("{\"bench\": \"", bench, "\", \"dtype\": \"", dtype, "\", \"shape\": \"", shape, "\", \"layout\": \"",
                           layout, "\", \"family\": \"", settings_.family, "\", ", std::string(numbers));
    if (peer_us > 0) {
      std::snprintf(numbers, sizeof numbers, "\"peer_us\": %.2f, \"ratio\": %.3f", peer_us, peer_us / us);
      line += Cat(", \"peer\": \"", peer, "\", ", std::string(numbers));
    }
    Emit(line + "}");
  }

  absl::Status Gemms() {
    const int64_t shapes[][3] = {{4096, 4096, 4096},  {8192, 8192, 8192}, {2048, 2048, 2048},
                                 {4096, 14336, 4096}, {128, 14336, 4096}, {4095, 4097, 4099}};
    for (const char* type : {"bf16", "f16"}) {
      for (const char* order : {"nt", "nn"}) {
        for (const auto& [m, n, k] : shapes) {
          if (std::strcmp(type, "f16") == 0 && m != 4096) continue;
          TILERT_RETURN_IF_ERROR(OneGemm(type, order, m, n, k));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status OneGemm(const std::string& type, const std::string& order, int64_t m, int64_t n, int64_t k) {
    TILERT_ASSIGN_OR_RETURN(Call call, MakeCall("gemm_" + order + "_" + type, {{"M", m}, {"N", n}, {"K", k}}));
    const DType dtype = type == "bf16" ? DType::kBFloat16 : DType::kFloat16;
    std::vector<Candidate> candidates = {{"tilert", [&] { return call.Run(); }}};
    tool::DeviceMemory peer_c;
    if (cublas_) {
      TILERT_ASSIGN_OR_RETURN(peer_c, tool::DeviceMemory::Allocate(driver(), static_cast<uint64_t>(m * n * 2)));
      candidates.push_back({"cublas", [&] {
        return cublas_->Gemm(dtype, order == "nt", m, n, k, call.memory[0].address(), call.memory[1].address(), peer_c.address());
      }});
    }
    TILERT_ASSIGN_OR_RETURN(const std::vector<double> us, timer_->Medians(candidates, settings_.repeats));
    const double flop = 2.0 * double(m) * double(n) * double(k),
                 bytes = 2.0 * (double(m) * double(k) + double(k) * double(n) + double(m) * double(n));
    Result("gemm", type, Cat(m, "x", n, "x", k), order, us[0], flop, bytes, "cublasGemmEx", us.size() > 1 ? us[1] : 0);
    return absl::OkStatus();
  }

  absl::Status Attentions() {
    for (const char* mask : {"", "causal_"}) {
      for (int64_t d : {128, 64}) {
        const int64_t batch = 4, heads = 16, seq = 4096;
        TILERT_ASSIGN_OR_RETURN(
            Call call, MakeCall(Cat("attention_", mask, "d", d, "_bf16"),
                                {{"batch", batch}, {"seq_q", seq}, {"seq_kv", seq}, {"heads", heads}, {"heads_kv", heads}}));
        TILERT_ASSIGN_OR_RETURN(const std::vector<double> us,
                                timer_->Medians({{"tilert", [&] { return call.Run(); }}}, settings_.repeats));
        const double share = *mask == '\0' ? 1 : 0.5;
        Result(*mask == '\0' ? "attention" : "attention_causal", "bf16", Cat(batch, "x", heads, "x", seq, "x", d), "bshd", us[0],
               4.0 * double(batch * heads) * double(seq) * double(seq) * double(d) * share,
               2.0 * 4 * double(batch * heads * seq * d), "", 0);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Rows() {
    const int64_t m = 16384, n = 8192;
    for (const char* bench : {"rms_norm", "layer_norm", "softmax", "transpose", "add"}) {
      const bool flat = std::strcmp(bench, "add") == 0;
      const std::map<std::string, int64_t> dims =
          flat ? std::map<std::string, int64_t>{{"N", m * n}} : std::map<std::string, int64_t>{{"M", m}, {"N", n}};
      TILERT_ASSIGN_OR_RETURN(Call call, MakeCall(Cat(bench, "_bf16"), dims));
      const uint64_t bytes = static_cast<uint64_t>(m * n * 2);
      const auto copy = [&] {
        return driver().MemcpyDtoDAsync(call.memory.back().address(), call.memory.front().address(), bytes, nullptr);
      };
      TILERT_ASSIGN_OR_RETURN(const std::vector<double> us,
                              timer_->Medians({{"tilert", [&] { return call.Run(); }}, {"copy", copy}}, settings_.repeats));
      const double moved = flat ? 3.0 * double(bytes) : 2.0 * double(bytes);
      // The copy moves two arrays, the addition three: compare bandwidths.
      Result(bench, "bf16", flat ? Cat(m * n) : Cat(m, "x", n), "row", us[0], 0, moved, "cuMemcpyDtoD",
             us[1] * moved / (2.0 * double(bytes)));
    }
    return absl::OkStatus();
  }

  // From a program to a kernel that can be launched, without and with an entry in the cache.
  absl::Status Loads() {
    for (const char* entry : {"add_bf16", "gemm_nt_bf16", "attention_d128_bf16"}) {
      std::vector<double> cold, warm;
      for (int i = 0; i < 5; ++i) {
        const std::string folder = (std::filesystem::temp_directory_path() / Cat("tilert-bench-cache-", i)).string();
        std::filesystem::remove_all(folder);
        for (std::vector<double>* times : {&cold, &warm}) {
          RuntimeOptions options;
          options.family = settings_.family;
          options.cache_directory = folder;
          TILERT_ASSIGN_OR_RETURN(const auto device, tool::Device::Open(options));
          TILERT_ASSIGN_OR_RETURN(Program program, gpu::FindProgram(*std_, entry));
          // A name of its own, or NVRTC would answer from a disk cache that it keeps itself.
          program.name += Cat("_", run_, "_", i);
          const auto start = Clock::now();
          TILERT_ASSIGN_OR_RETURN(const auto kernel, Kernel::Create(device->runtime(), program, {}));
          TILERT_RETURN_IF_ERROR(kernel->Prepare());
          times->push_back(Milliseconds(start));
        }
        std::filesystem::remove_all(folder);
      }
      Result("cold_load", "bf16", entry, "", Median(cold) * 1000, 0, 0, "", 0);
      Result("warm_load", "bf16", entry, "", Median(warm) * 1000, 0, 0, "", 0);
    }
    return absl::OkStatus();
  }

  // Host time of a launch against the bare driver call with the same parameters.
  absl::Status LaunchCost() {
    TILERT_ASSIGN_OR_RETURN(Call call, MakeCall("add_bf16", {{"N", 1}}));
    const int count = 2000;
    std::vector<double> ours;
    for (int round = 0; round < 15; ++round) {
      TILERT_RETURN_IF_ERROR(driver().CtxSynchronize());
      const auto start = Clock::now();
      for (int i = 0; i < count / 10; ++i) TILERT_RETURN_IF_ERROR(call.Run());
      ours.push_back(Milliseconds(start) * 1000 / (count / 10));
    }
    TILERT_ASSIGN_OR_RETURN(const double raw, RawLaunch(count / 10));
    Result("launch", "bf16", "3 tensors", "", Median(ours), 0, 0, "cuLaunchKernel", raw);
    return absl::OkStatus();
  }

  absl::StatusOr<double> RawLaunch(int count) {
    TILERT_ASSIGN_OR_RETURN(const auto raw, RawKernel());
    cuda::DevicePtr pointers[3] = {};
    int n = 0;
    void* params[] = {&pointers[0], &pointers[1], &pointers[2], &n};
    std::vector<double> times;
    for (int round = 0; round < 15; ++round) {
      TILERT_RETURN_IF_ERROR(driver().CtxSynchronize());
      const auto start = Clock::now();
      for (int i = 0; i < count; ++i)
        TILERT_RETURN_IF_ERROR(driver().LaunchKernel(raw, 1u, 1u, 1u, 256u, 1u, 1u, 0u, nullptr, params, nullptr));
      times.push_back(Milliseconds(start) * 1000 / count);
    }
    return Median(std::move(times));
  }

  absl::StatusOr<cuda::Function> RawKernel() {
    // PTX, so that the bare launch needs neither our lowering nor our loader.
    static const char kPtx[] =
        ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, "
        ".param .u32 n) { ret; }\n";
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
    TILERT_RETURN_IF_ERROR(driver().ModuleLoadDataEx(&module, kPtx, 0u, nullptr, nullptr));
    TILERT_RETURN_IF_ERROR(driver().ModuleGetFunction(&function, module, "empty"));
    return function;
  }

  Settings settings_;
  const int64_t run_ = Clock::now().time_since_epoch().count() & 0xffffff;
  std::unique_ptr<tool::Device> device_;
  std::unique_ptr<GpuTimer> timer_;
  std::unique_ptr<tool::BundleFile> std_;
  std::unique_ptr<Cublas> cublas_;
  std::FILE* out_ = nullptr;
};

}  // namespace
}  // namespace tilert::bench

int main(int argc, char** argv) {
  tilert::bench::Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--family") settings.family = value;
    if (flag == "--only") settings.only = value;
    if (flag == "--out") settings.out = value;
    if (flag == "--repeats") settings.repeats = std::max(1, std::atoi(value.c_str()));
  }
  const absl::Status status = tilert::bench::Bench(settings).Run();
  if (!status.ok()) std::fprintf(stderr, "kernels_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
