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

// One mutant for each statement that synchronises (barriers, waits, commits, fences, all that moves rings and the order
// token) removed; each wait in a loop that lets one more group stay unfinished (outside loops a wait for everything is the
// plain thing to do, where a weaker one would often be enough); each Release of one position later than it says; each
// ExpectTx of 16 bytes more or less; each Advance done twice. Of each kind in the order of the text. What a weakened wait
// retires is no longer declared.
std::vector<Mutant> SynchronisationMutants(const kir::Kernel& kernel);

}  // namespace tilert
