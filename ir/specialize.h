// Program with constants and dims → Program with them replaced by numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "ir/program.h"

namespace tilert {

// `program` with its constants, and the dims named in `dims`, replaced by immediates; expressions folded; `If`s with a known
// condition reduced to the branch taken. A constant that is not named takes its first candidate. The tables keep their order,
// so ids stay valid; a constant's candidates become the chosen value alone, the other dims stay dynamic.
//
// REQUIRES: `program` is verified. So is the result: values other than the defaults that verification looked at are checked here.
// InvalidArgument: an unknown name, a value that is no candidate, a negative dim (the message lists what exists); a program that
// is not valid with these values.
absl::StatusOr<Program> Specialize(const Program& program, const std::map<std::string, int64_t>& constants,
                                   const std::map<std::string, int64_t>& dims = {});

// `program` with a fresh arena that holds only what is used, in order of use.
Program CompactExprs(Program program);

}  // namespace tilert
