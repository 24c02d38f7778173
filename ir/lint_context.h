// What the parts of the lint share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/lint.h"
#include "ir/printer.h"
#include "ir/status_util.h"
#include "ir/stmt_path.h"

namespace tilert::lint {

class Context {
 public:
  Context(const Program& program, std::vector<LintWarning>* warnings) : p(program), warnings_(*warnings) {}

  void Warn(SourceLoc loc, std::string message, std::string hint) {
    warnings_.push_back({path.ToString(), PrintLoc(p, loc), std::move(message), std::move(hint)});
  }
  std::string Name(BufferId id) const { return Cat("'", p.buffers[id].name, "'"); }

  const Program& p;
  StmtPath path;

 private:
  std::vector<LintWarning>& warnings_;
};

// Outputs that are not written, copies outside their tensors. REQUIRES: constants and dims of the program are numbers.
void CheckBounds(Context& c);
// What is read before it is written. (lint_unwritten.cc)
void CheckUnwritten(Context& c);
// What is narrowed too early. (lint_narrow.cc)
void CheckNarrowing(Context& c);

}  // namespace tilert::lint
