// A bundle that uses every table of the format: the sample programs, metadata, variants, tuning records, a made-up cubin.
#pragma once

#include "ir/bundle.h"

namespace tilert {

Bundle SampleBundle();

}  // namespace tilert
