#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/objects.h"

namespace tilert::frontend {

enum class LoopMode : uint8_t { kStatic, kRuntime };
// A parameter of a macro that stands for the argument itself, not for its value.
inline bool IsReference(const ast::Param& param) {
  const auto* attribute = param.annotation ? param.annotation->As<ast::Attribute>() : nullptr;
  return attribute && (attribute->name == "Ref" || attribute->name == "Var");
}
// One call of a function.
struct Frame {
  const FunctionObject* function = nullptr;
  bool traced = false;  // a kernel or macro: `for … in range` is a loop of the program
  Value result;
  int blocks = 0;  // run-time blocks open in this call
  struct Loop {
    LoopMode mode;
    int blocks;
  };
  std::vector<Loop> loops;
};
// What T.rng_init made, of uint64: the key, the subsequence, the number that comes next, and whether a normal number is held (1:
// of float32, 2: of float64), which were made in pairs.
struct RandomNumbers {
  Buf seed, sequence, next, holds;
  std::optional<Buf> held32, held64;
};
// What the open launch says of single threads.
struct LaunchThreads {
  std::vector<Val> extents;  // of the block, x first
  Value reducer;             // of T.comm_reducer, until the next one
  VarId number = kNoId;      // of a thread in its block, once somebody asks
  std::optional<RandomNumbers> random = {};
};
// The arguments of a call as the source gives them.
struct CallArgs {
  std::vector<Value> positional;
  std::vector<SourceRange> ranges;
  struct Named {
    std::string name;
    Value value;
    SourceRange range;
  };
  std::vector<Named> named;
  bool poisoned = false;
};

}  // namespace tilert::frontend
