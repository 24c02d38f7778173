#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/source.h"

namespace tilert::frontend {

enum class TokenKind : uint8_t {
  kEnd,
  kNewline,
  kIndent,
  kDedent,
  kName,  // identifiers and keywords; the parser tells them apart by text
  kNumber,
  kString,  // with its prefix and quotes; f-strings too, whole
  kOp,      // operators and punctuation, the longest that matches
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  SourceRange range;
};

}  // namespace tilert::frontend
