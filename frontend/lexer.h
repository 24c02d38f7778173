#pragma once

#include <vector>

#include "frontend/diagnostics.h"
#include "frontend/token.h"

namespace tilert::frontend {

// Splits a source into tokens by the lexical rules of Python 3: logical lines, indentation, brackets that join lines,
// string prefixes, nested f-strings. Always ends in kEnd with every indentation closed. Errors go to `diagnostics`; the
// tokens that could be read are returned all the same. Time is linear in the text, stack depth is bounded.
std::vector<Token> Tokenize(Diagnostics* diagnostics);

// Tokens of one expression inside `range`, as in the braces of an f-string: line breaks do not count.
std::vector<Token> TokenizeExpression(SourceRange range, Diagnostics* diagnostics);

// Where a replacement field of an f-string ends: `{expression[=][!conversion][:format]}`.
struct FStringField {
  SourceRange expression;
  bool debug = false;   // `{x=}`: the text of the expression is part of the result
  char conversion = 0;  // r, s, a or none
  SourceRange format;   // empty if there is none
  uint32_t end = 0;     // one past the closing brace
};

// Reads the field whose `{` is at `open`; `limit` is the end of the string's contents. Returns false if it is not closed.
bool ScanFStringField(const SourceFile& source, uint32_t open, uint32_t limit, FStringField* field);

}  // namespace tilert::frontend
