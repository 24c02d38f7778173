#include "ir/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILERT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define TILERT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TILERT_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TILERT_TSAN 1
#endif
#ifdef TILERT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TILERT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace tilert {
namespace {

// Statements nest 64 deep, and the executor takes a few frames for each; pages that are not touched cost nothing.
constexpr size_t kStackBytes = size_t{2} << 20;
constexpr size_t kGuardBytes = 4096;

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  ucontext_t own, resumer;
  void* stack = MAP_FAILED;
  bool done = false;
#ifdef TILERT_ASAN
  void* own_fake = nullptr;
  void* resumer_fake = nullptr;
  const void* resumer_stack = nullptr;
  size_t resumer_size = 0;
#endif
#ifdef TILERT_TSAN
  void* own_tsan = nullptr;
  void* resumer_tsan = nullptr;
#endif

  static void Main(unsigned low, unsigned high) {
    auto* state = reinterpret_cast<State*>(uintptr_t{low} | uintptr_t{high} << 32);
    state->Entered();
    state->body();
    state->done = true;
    state->Leave(/*for_good=*/true);
  }
  // The sanitizers are told of every change of stacks.
  void Entered() {
#ifdef TILERT_ASAN
    __sanitizer_finish_switch_fiber(own_fake, &resumer_stack, &resumer_size);
#endif
  }
  void Leave([[maybe_unused]] bool for_good) {
#ifdef TILERT_ASAN
    __sanitizer_start_switch_fiber(for_good ? nullptr : &own_fake, resumer_stack, resumer_size);
#endif
#ifdef TILERT_TSAN
    __tsan_switch_to_fiber(resumer_tsan, 0);
#endif
    swapcontext(&own, &resumer);
    Entered();
  }
};

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->body = std::move(body);
  state_->stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!ok()) return;
  mprotect(state_->stack, kGuardBytes, PROT_NONE);
  getcontext(&state_->own);
  state_->own.uc_stack.ss_sp = state_->stack;
  state_->own.uc_stack.ss_size = kStackBytes;
  state_->own.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(state_.get());
  makecontext(&state_->own, reinterpret_cast<void (*)()>(&State::Main), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(address >> 32));
#ifdef TILERT_TSAN
  state_->own_tsan = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef TILERT_TSAN
  if (state_->own_tsan != nullptr) __tsan_destroy_fiber(state_->own_tsan);
#endif
  if (ok()) munmap(state_->stack, kStackBytes);
}

bool Fiber::ok() const { return state_->stack != MAP_FAILED; }
bool Fiber::done() const { return state_->done; }

void Fiber::Resume() {
  State& s = *state_;
#ifdef TILERT_ASAN
  __sanitizer_start_switch_fiber(&s.resumer_fake, s.stack, kStackBytes);
#endif
#ifdef TILERT_TSAN
  s.resumer_tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(s.own_tsan, 0);
#endif
  swapcontext(&s.resumer, &s.own);
#ifdef TILERT_ASAN
  __sanitizer_finish_switch_fiber(s.resumer_fake, nullptr, nullptr);
#endif
}

void Fiber::Yield() { state_->Leave(/*for_good=*/false); }

}  // namespace tilert
