// Planted faults: a kernel with one piece of its synchronisation taken away.
#pragma once

#include <string>
#include <vector>

#include "lowering/kernel_ir.h"

namespace tilert {

struct Mutant {
  std::string what;  // e.g. "without BarSync 2"
  kir::Kernel kernel;
};

// One mutant for each BarSync removed, each CpAsyncWait removed, and each CpAsyncWait in a loop that lets one more group stay
// unfinished (outside loops a wait for everything is the plain thing to do, where a weaker one would often be enough). In the
// order of the text. What a weakened wait retires is no longer declared.
std::vector<Mutant> SynchronisationMutants(const kir::Kernel& kernel);

}  // namespace tilert
