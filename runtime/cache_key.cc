#include "runtime/cache_key.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/launch_record.h"

namespace tilert {
namespace {

// Names of programs are identifiers, so neither ',' nor '=' nor a newline occurs in them.
std::string Pairs(const std::map<std::string, int64_t>& values) { return absl::StrJoin(values, ",", absl::PairFormatter("=")); }

}  // namespace

std::string CacheKeyText(const CacheKeyParts& parts) {
  const Target& target = parts.target;
  return absl::StrCat("program ", Sha256Hex(parts.program_digest),                                             //
                      "\nconstants ", Pairs(parts.constants),                                                  //
                      "\ndims ", Pairs(parts.dims),                                                            //
                      "\nalignment ", absl::StrJoin(parts.arg_class.alignment, ","),                           //
                      "\ndivisors ", absl::StrJoin(parts.arg_class.dim_divisor, ","),                          //
                      "\nindex ", parts.arg_class.index32 ? 32 : 64,                                           //
                      "\narch ", target.arch, " sm ", target.sm, " family ", static_cast<int>(target.family),  //
                      "\nlimits ", target.max_shared_bytes, " ", target.shared_bytes_per_sm, " ", target.registers_per_sm, " ",
                      target.max_threads_per_sm, " ", target.sm_count,  //
                      "\nlowering ", parts.lowering_build_id,           //
                      "\nlaunch ", kLaunchAbi,                          //
                      "\nnvrtc ", parts.nvrtc_version,                  //
                      "\nflags ", absl::StrJoin(parts.flags, " "), "\n");
}

}  // namespace tilert
