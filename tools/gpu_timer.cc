#include "tools/gpu_timer.h"

#include <algorithm>

#include "ir/status_util.h"

namespace tilert::tool {
namespace {

constexpr uint64_t kFlushBytes = uint64_t{256} << 20;  // several times any L2

// Reads [first, last) 16 bytes a thread at a time and writes nothing: the store is there so that the loads are kept. PTX, so that
// neither NVRTC nor our lowering is needed.
constexpr char kSweep[] = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry tilert_sweep(.param .u64 first, .param .u64 last, .param .u64 out) {
  .reg .u64 at, end, step, place;
  .reg .u32 thread, block, size, blocks, sum, a, b, c, d;
  .reg .pred p;
  ld.param.u64 at, [first];
  ld.param.u64 end, [last];
  ld.param.u64 place, [out];
  mov.u32 thread, %tid.x;
  mov.u32 block, %ctaid.x;
  mov.u32 size, %ntid.x;
  mov.u32 blocks, %nctaid.x;
  mad.lo.u32 thread, block, size, thread;
  mul.wide.u32 step, thread, 16;
  add.u64 at, at, step;
  mul.lo.u32 size, size, blocks;
  mul.wide.u32 step, size, 16;
  mov.u32 sum, 0;
Next:
  setp.ge.u64 p, at, end;
  @p bra Done;
  ld.global.v4.u32 {a, b, c, d}, [at];
  xor.b32 a, a, b;
  xor.b32 c, c, d;
  xor.b32 a, a, c;
  add.u32 sum, sum, a;
  add.u64 at, at, step;
  bra Next;
Done:
  setp.ne.u32 p, sum, 0x5bd1e995;
  @p bra End;
  st.global.u32 [place], sum;
End:
  ret;
}
)";

}  // namespace

absl::StatusOr<std::unique_ptr<GpuTimer>> GpuTimer::Make(const cuda::Driver& driver) {
  std::unique_ptr<GpuTimer> timer(new GpuTimer(driver));
  for (DeviceMemory* memory : {&timer->written_, &timer->read_}) {
    TILERT_ASSIGN_OR_RETURN(*memory, DeviceMemory::Allocate(driver, kFlushBytes));
  }
  TILERT_RETURN_IF_ERROR(driver.MemsetD8Async(timer->read_.address(), 0, kFlushBytes, nullptr));
  TILERT_RETURN_IF_ERROR(driver.ModuleLoadDataEx(&timer->module_, kSweep, 0u, nullptr, nullptr));
  TILERT_RETURN_IF_ERROR(driver.ModuleGetFunction(&timer->sweep_, timer->module_, "tilert_sweep"));
  TILERT_RETURN_IF_ERROR(driver.EventCreate(&timer->begin_, 0u));
  TILERT_RETURN_IF_ERROR(driver.EventCreate(&timer->end_, 0u));
  return timer;
}

GpuTimer::~GpuTimer() {
  for (cuda::Event event : {begin_, end_}) {
    if (event != nullptr) driver_.EventDestroy(event).IgnoreError();
  }
  if (module_ != nullptr) driver_.ModuleUnload(module_).IgnoreError();
}

absl::Status GpuTimer::Flush() {
  TILERT_RETURN_IF_ERROR(driver_.MemsetD8Async(written_.address(), 0, kFlushBytes, nullptr));
  cuda::DevicePtr first = read_.address(), last = first + kFlushBytes, out = first;
  void* params[] = {&first, &last, &out};
  return driver_.LaunchKernel(sweep_, 1024u, 1u, 1u, 512u, 1u, 1u, 0u, nullptr, params, nullptr);
}

absl::StatusOr<double> GpuTimer::EndMicroseconds() {
  float milliseconds = 0;
  TILERT_RETURN_IF_ERROR(driver_.EventRecord(end_, nullptr));
  TILERT_RETURN_IF_ERROR(driver_.EventSynchronize(end_));
  TILERT_RETURN_IF_ERROR(driver_.EventElapsedTime(&milliseconds, begin_, end_));
  return double{milliseconds} * 1000;
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(at), values.end());
  return values[at];
}

}  // namespace tilert::tool
