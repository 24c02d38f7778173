// The arguments of one call of a program, from files, random numbers and options.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/bind_args.h"
#include "ir/program.h"
#include "tools/array.h"
#include "tools/command.h"

namespace tilert::tool {

// Options of every command that calls programs.
inline constexpr Option kInOption = {"--in", "NAME=FILE", "an input: x.npy, or file.safetensors:tensor", true};
inline constexpr Option kScalarOption = {"--scalar", "NAME=VALUE", "a scalar parameter", true};
inline constexpr Option kRandomOption = {"--random", "", "inputs that are not given are random (normal; integers 0 to 15)"};
inline constexpr Option kSeedOption = {"--seed", "N", "of the random numbers; default 1"};

struct CallArguments {
  std::vector<std::string> names;  // of the tensor parameters, in order
  std::vector<Access> access;
  std::vector<Array> arrays;       // their memory; outputs are poisoned, so that what is not written shows
  std::vector<ScalarArg> scalars;  // one an entry of Program::scalars

  // Arguments that point into the arrays: of these, or of another set of the same shapes.
  std::vector<TensorArg> Tensors() { return Tensors(arrays); }
  static std::vector<TensorArg> Tensors(std::vector<Array>& arrays);
};

// Reads --in, --scalar, --dim, --extent and --seed. Dims are bound by --dim and --extent, by scalars and by the shapes of inputs;
// then outputs are made, and inputs that are not given if they may be `random`. Numbers of a file become the parameter's type
// where files of the kind cannot hold it (.npy: bfloat16 and float8 from wider floats). UsageError: a name that the program does
// not have, an input that is missing. InvalidArgument: files that do not fit.
absl::StatusOr<CallArguments> ReadArguments(const Program& program, const Args& args, bool random);

// `spec`: "x.npy" or "file.safetensors:tensor".
absl::StatusOr<Array> LoadArray(const std::string& spec);

// May arrays be written to these places? A safetensors file is replaced as a whole: not one that holds other tensors.
absl::Status CheckPlaces(const std::vector<std::string>& specs);

// Writes arrays to such places; several tensors of one safetensors file in one go. Each file appears whole or not at all.
absl::Status StoreArrays(const std::map<std::string, const Array*>& by_spec);

}  // namespace tilert::tool
