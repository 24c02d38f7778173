// An outside build step in C++20: a source becomes a program, is run by the executor, and goes into a bundle that the library
// opens.
#include <cstdio>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/executor.h"
#include "ir/flat_writer.h"
#include "ir/verifier.h"
#include "tilert/tilert.h"

namespace {

constexpr char kSource[] = R"(
import tilelang.language as T

@T.prim_func
def double(A: T.Tensor((T.dynamic("N"),), "float32"), B: T.Tensor((T.dynamic("N"),), "float32")):
    with T.Kernel(T.ceildiv(T.dynamic("N"), 64), threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i] * 2.0
)";

int Fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "consumer_frontend.cc: %s: %s\n", what, why.c_str());
  return 1;
}

}  // namespace

int main() {
  absl::StatusOr<tilert::Program> program = tilert::frontend::Compile(kSource, "double.py", "double", {});
  if (!program.ok()) return Fail("Compile", std::string(program.status().message()));
  if (const auto verified = tilert::Verify(*program); !verified.ok())
    return Fail("Verify", std::string(verified.status().message()));

  std::vector<float> a = {1, 2, 3}, b(3);
  std::vector<tilert::TensorArg> tensors(2);
  const int64_t shape[] = {3};
  for (auto& tensor : tensors) tensor.dtype = tilert::DType::kFloat32, tensor.shape = shape;
  tensors[0].data = a.data(), tensors[1].data = b.data();
  const absl::Status ran = tilert::Execute(*program, tensors, {});
  if (!ran.ok() || b != std::vector<float>{2, 4, 6}) return Fail("Execute", std::string(ran.message()));

  tilert::Bundle bundle;
  bundle.programs = {*std::move(program)};
  const absl::StatusOr<std::string> bytes = tilert::WriteBundle(bundle);
  if (!bytes.ok()) return Fail("WriteBundle", std::string(bytes.status().message()));
  const tilert_api* api = tilert_get_api(TILERT_API_VERSION);
  tilert_bundle* opened = nullptr;
  tilert_status* status = api->bundle_open_memory(bytes->data(), bytes->size(), 1, &opened);
  if (status != nullptr) return Fail("bundle_open_memory", api->status_message(status));
  std::printf("consumer_frontend.cc: %s in a bundle of %zu bytes\n", api->bundle_entry_name(opened, 0), bytes->size());
  api->bundle_release(opened);
  return 0;
}
