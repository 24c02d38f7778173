// One way to compile a program.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "lowering/lowered.h"
#include "runtime/launch_values.h"
#include "runtime/ready_code.h"
#include "runtime/schedules.h"

namespace tilert {

struct KernelVariant {
  const Schedule* schedule;
  ArgPlan plan;  // asks for the same arguments as that of the other variants
  ArgClass arg_class;
  ClassGuard guard;  // of arg_class
  std::string key;
  std::atomic<const ReadyCode*> ready{nullptr};
  std::atomic<bool> is_refused{false};  // cannot be compiled or loaded; the general variant takes its launches
  std::unique_ptr<ReadyCode> storage;   // guarded by the kernel's prepare_mutex_ until `ready` points to it
  bool is_settled() const { return ready.load() != nullptr || is_refused.load(); }
};

}  // namespace tilert
