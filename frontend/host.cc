// What the host program asks its device and its tuner while it makes a kernel. A source is compiled for devices that are not
// here, so the questions are answered by settings, as for an H200 where there are none; everything else of the host program has
// no value.
#include "absl/strings/str_cat.h"
#include "frontend/evaluator.h"

namespace tilert::frontend {
namespace {

constexpr int64_t kCapability[] = {9, 0};
constexpr int64_t kMultiprocessors = 132;

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Value Evaluator::DeviceCapability(SourceRange range) {
  if (const Setting* setting = FindSetting("compute_capability")) return SettingValue("compute_capability", *setting);
  diagnostics_->Warning(range,
                        "the kernel is made as for compute capability 9.0; for another: --set \"compute_capability=(8, 0)\"");
  return Tuple({Value(kCapability[0]), Value(kCapability[1])});
}

Value Evaluator::Multiprocessors(SourceRange range) {
  if (const Setting* setting = FindSetting("num_sms")) return SettingValue("num_sms", *setting);
  diagnostics_->Warning(range, absl::StrCat("the kernel is made as for ", kMultiprocessors,
                                            " multiprocessors; for another number: --set num_sms=108"));
  return kMultiprocessors;
}

Value Evaluator::CallHost(const Host& host, SourceRange range) {
  const std::string& path = *host.what;
  if (path == "torch.cuda.is_available") return true;
  if (path == "torch.cuda.current_device") return int64_t{0};
  if (path == "torch.cuda.get_device_capability") return DeviceCapability(range);
  if (path == "torch.cuda.get_device_properties") return Host{Intern("torch.device_properties")};
  if (EndsWith(path, ".get_num_sms")) return Multiprocessors(range);
  return host;
}

// torch.cuda.get_device_properties(0).major and the like.
Value Evaluator::HostAttribute(const Host& host, const std::string& name, SourceRange range) {
  if (*host.what == "torch.device_properties") {
    if (name == "multi_processor_count") return Multiprocessors(range);
    if (name == "major" || name == "minor") {
      const Value capability = DeviceCapability(range);
      const auto* pair = capability.Object<SequenceObject>();
      if (pair && pair->items.size() == 2) return pair->items[name == "major" ? 0 : 1];
    }
  }
  return Host{Intern(absl::StrCat(*host.what, ".", name))};
}

}  // namespace tilert::frontend
