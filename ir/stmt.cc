#include "ir/stmt.h"

#include <algorithm>

namespace tilert {

bool operator==(const Block& a, const Block& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace tilert
