// Random programs over all statements and operators: valid ones, for round-trip properties and fuzz corpora.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace tilert {

// Equal seeds give equal programs. FindErrors of the result is empty. `size`: about so many statements.
Program RandomProgram(uint64_t seed, int size = 40);

}  // namespace tilert
