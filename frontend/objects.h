#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "frontend/ast.h"
#include "frontend/value.h"
#include "frontend/views.h"

namespace tilert::frontend {

// T.Tensor(...) and T.scalar(...) as annotations, and T.empty(...).
struct TensorSpec {
  enum class Kind : uint8_t { kTensor, kEmpty, kScalar };
  Kind kind = Kind::kTensor;
  DType dtype = DType::kInvalid;
  std::vector<Val> shape, strides;
  Access access = Access::kInvalid;  // kInvalid: whatever the body does with it
  Val dim;                           // that a scalar binds
  Packing packing = Packing::kNone;  // then dtype is that of the elements as they are seen, and shape counts them
};

class NameScope;

struct FunctionObject {
  std::string name;
  const std::vector<ast::Param>* params = nullptr;
  const ast::FunctionDef* definition = nullptr;  // null for a lambda
  ast::ExprPtr lambda_body = nullptr;
  NameScope* closure = nullptr;  // null: the module
  std::vector<Value> defaults;   // one a parameter; Unset for none
  std::vector<Value> partial;    // functools.partial
  std::vector<std::pair<std::string, Value>> partial_keywords;
  bool is_macro = false;
  bool is_prim_func = false;
  bool is_jit = false;
  bool fast_math = false;
  bool no_warp_specialization = false;
  ast::ExprPtr configs = nullptr;  // of @autotune
  Value config_list;               // of AutoTuner.from_kernel
};

// A loop of the program: T.serial(...), T.Parallel(...), and so on; range(...) too.
struct LoopObject {
  enum class Kind : uint8_t { kRange, kFor, kParallel, kGrid, kDomain };
  Kind kind = Kind::kRange;
  ForKind for_kind = ForKind::kSerial;
  Value begin, end, step;
  std::vector<Val> extents;  // kParallel, kGrid, kDomain: points begin, begin + step, … of the box
  Value num_stages = int64_t{0};
  std::optional<Value> split;
  uint32_t coalesced_width = 0;
  std::vector<int32_t> order, stage;
};

// T.Layout(shape, function): where each element lies.
struct LayoutObject {
  Value function;
};

// What `with` opens.
struct ContextObject {
  enum class Kind : uint8_t { kKernel, kThreadRegion, kRoles, kRole, kIf, kNothing };
  Kind kind = Kind::kKernel;
  std::vector<Val> grid;
  Val threads;
  std::string name;
  bool cooperative = false;
  std::vector<Val> cluster;
  Val thread_begin, thread_end;
  std::vector<Val> thread_extents;  // of kKernel, x first
  Val condition;                    // of kIf
};

}  // namespace tilert::frontend
