// Runs RMSNorm from the bundle of standard kernels, on the CPU so that it works everywhere. On a GPU, replace CreateCpu by
// Create (with a CUDA context current), pass device pointers and your stream, and Prepare before the first launch.
//
//   example_rms_norm path/to/std.tilert
#include <cmath>
#include <cstdio>
#include <vector>

#include "tilert/tilert.hpp"

namespace {

int Fail(const char* what, const tilert::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.message());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto runtime = tilert::Runtime::CreateCpu();
  if (!runtime) return Fail("runtime", runtime.status());
  const auto bundle = tilert::Bundle::OpenFile(argc > 1 ? argv[1] : "std.tilert");
  if (!bundle) return Fail("bundle", bundle.status());
  const auto norm = tilert::Kernel::Create(*runtime, *bundle, {"rms_norm_f32"});
  if (!norm) return Fail("kernel", norm.status());
  if (auto status = norm->Prepare(); !status.ok()) return Fail("prepare", status);

  constexpr int64_t kRows = 5, kColumns = 1000;
  std::vector<float> x(kRows * kColumns), weight(kColumns), y(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37f * static_cast<float>(i));
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = 1.0f + 0.001f * static_cast<float>(i);
  if (auto status = norm->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {kRows, kColumns}),
                                           tilert::Tensor(weight.data(), TILERT_FLOAT32, {kColumns}),
                                           tilert::Tensor(y.data(), TILERT_FLOAT32, {kRows, kColumns})});
      !status.ok()) {
    return Fail("launch", status);
  }

  double worst = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (int64_t j = 0; j < kColumns; ++j) squares += double{x[row * kColumns + j]} * x[row * kColumns + j];
    for (int64_t j = 0; j < kColumns; ++j) {
      const double expected = x[row * kColumns + j] / std::sqrt(squares / kColumns + 1e-6) * weight[j];
      worst = std::fmax(worst, std::fabs(expected - y[row * kColumns + j]));
    }
  }
  std::printf("rms_norm of %lld x %lld: largest error %.2g\n", static_cast<long long>(kRows), static_cast<long long>(kColumns),
              worst);
  return worst < 1e-5 ? 0 : 1;
}
