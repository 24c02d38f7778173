#include "bench/bench_context.h"

#include <algorithm>

#include "ir/status_util.h"

namespace tilert::bench {
namespace {

template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

}  // namespace

BenchContext::~BenchContext() {
  if (out_ != nullptr) std::fclose(out_);
}

absl::Status BenchContext::Init() {
  RuntimeOptions options;
  options.family = settings_.family;
  options.hooks.log = [](LogLevel, const char*, int, const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
  };
  TILERT_ASSIGN_OR_RETURN(device_, tool::Device::Open(options));
  TILERT_ASSIGN_OR_RETURN(timer_, tool::GpuTimer::Make(driver()));
  TILERT_ASSIGN_OR_RETURN(const std::string path, gpu::StdPath());
  TILERT_ASSIGN_OR_RETURN(bundle_, OpenedBundle::FromFile(path));
  if (!settings_.out.empty()) out_ = std::fopen(settings_.out.c_str(), "w");
  return absl::OkStatus();
}

std::string BenchContext::family() const { return device_->runtime()->target().family == Family::kHopper ? "hopper" : "ampere"; }

bool BenchContext::WantsPart(const std::string& part) const {
  return settings_.only.empty() || settings_.only.find(part) != std::string::npos;
}

bool BenchContext::Wants(const Row& row) const {
  const auto& filter = settings_.filter;
  return filter.empty() || std::any_of(filter.begin(), filter.end(), [name = row.Name()](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

absl::StatusOr<Call> BenchContext::MakeCall(const std::string& entry, const std::map<std::string, int64_t>& dims) {
  Call call;
  TILERT_ASSIGN_OR_RETURN(const Program* const program, bundle_->Entry(entry));
  KernelSpec spec;
  spec.entry = entry;
  std::string key = entry;
  for (const std::string& name : settings_.fixed) {
    if (const auto it = dims.find(name); it != dims.end()) spec.dims.insert(*it), key += Cat(" ", name, "=", it->second);
  }
  for (const Variant& variant : bundle_->bundle().variants) {
    const bool is_wanted = variant.name == settings_.variant && bundle_->bundle().programs[variant.program].name == entry;
    if (is_wanted) spec.constants = variant.constants;
  }
  std::shared_ptr<Kernel>& kernel = kernels_[key];
  if (kernel == nullptr) {
    TILERT_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> made, Kernel::Create(device_->runtime(), bundle_, spec));
    TILERT_RETURN_IF_ERROR(made->Prepare());
    kernel = std::move(made);
  }
  call.kernel = kernel;
  for (const Param& param : program->params) {
    if (param.kind == Param::Kind::kScalar) {  // a scale
      const DType type = program->scalars[param.index].dtype;
      call.scalars.push_back(IsFloat(type) ? ScalarArg::Float(1, type) : ScalarArg::Int(1, type));
      continue;
    }
    const Buffer& buffer = program->buffers[param.index];
    std::vector<int64_t> shape;
    int64_t elements = 1;
    for (Expr e : buffer.shape) {
      const ExprNode& node = program->exprs[e];
      shape.push_back(node.op == ExprOp::kDim ? dims.at(program->dims[node.i].name) : node.i);
      elements *= shape.back();
    }
    TILERT_ASSIGN_OR_RETURN(tool::DeviceMemory memory, RandomOnDevice(driver(), buffer.dtype, elements, call.shapes.size() + 1));
    call.memory.push_back(std::move(memory));
    call.shapes.push_back(std::move(shape));
    call.tensors.push_back({call.memory.back().data(), buffer.dtype, {}, {}});
  }
  for (size_t i = 0; i < call.tensors.size(); ++i) call.tensors[i].shape = call.shapes[i];
  TILERT_ASSIGN_OR_RETURN(const uint64_t bytes, kernel->WorkspaceBytes(call.tensors, call.scalars));
  TILERT_ASSIGN_OR_RETURN(call.workspace, tool::DeviceMemory::Allocate(driver(), bytes));
  call.request.tensors = call.tensors;
  call.request.scalars = call.scalars;
  call.request.workspace = call.workspace.data();
  call.request.workspace_bytes = bytes;
  TILERT_ASSIGN_OR_RETURN(const KernelChoice choice, kernel->Choice(call.tensors, call.scalars));
  call.schedule = choice.is_general ? "general" : choice.schedule.empty() ? "default" : choice.schedule;
  if (choice.is_restrided) call.schedule += ", restrided";
  return call;
}

void BenchContext::Emit(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  if (out_ != nullptr) std::fprintf(out_, "%s\n", line.c_str()), std::fflush(out_);
}

void BenchContext::Emit(const Row& row) {
  std::string line =
      Cat("{\"bench\": \"", row.bench, "\", \"dtype\": \"", row.dtype, "\", \"shape\": \"", row.shape, "\", \"layout\": \"",
          row.layout, "\", \"family\": \"", family(), "\", \"schedule\": \"", row.schedule, "\", ",
          Format("\"us\": %.2f, \"tflops\": %.1f, \"gbs\": %.1f", row.us, row.flop / row.us * 1e-6, row.bytes / row.us * 1e-3));
  for (size_t i = 0; i < row.peers.size(); ++i) {
    const Row::Peer& peer = row.peers[i];
    const char* prefix = i == 0 ? "" : "best_";  // the second peer: the best that there is beside the first
    line += Cat(", \"", prefix, "peer\": \"", peer.name, "\", ",
                Format("\"%speer_us\": %.2f, \"%sratio\": %.3f, \"%sratio_quartiles\": [%.3f, %.3f]", prefix, peer.us, prefix,
                       peer.ratio.median, prefix, peer.ratio.low, peer.ratio.high));
  }
  Emit(line + "}");
}

void BenchContext::Failed(const Row& row, const absl::Status& status) {
  ++failures_;
  std::fprintf(stderr, "%s: %s\n", row.Name().c_str(), status.ToString().c_str());
}

}  // namespace tilert::bench
