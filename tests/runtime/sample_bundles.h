// The fixture's programs as bundles, for tests that see the public headers only.
#pragma once

#include <string>

namespace tilert {

// Entry "scale": X[N], Y[N] out, alpha. Entry "two_step": X[M, N], Y[N] out; a workspace of N floats. With made-up code for
// `arch`.
std::string ScaleBundle(const std::string& arch = "sm_80");
std::string TwoStepBundle(const std::string& arch = "sm_80");

}  // namespace tilert
