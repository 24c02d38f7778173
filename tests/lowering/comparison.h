// Programs in the simulator against the same programs on the executor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lowering/lowered.h"
#include "tests/ir/exec_util.h"

namespace tilert {

// How far an output may be off: relative·|ref| + of_magnitude·m + absolute, where m is the executor's result on the absolute
// values of the inputs. All zero: equal values.
struct Bound {
  double relative = 0, of_magnitude = 0, absolute = 0;
};

// Arguments of a program; its outputs are the last tensors.
struct Args {
  std::vector<Array> arrays;
  std::vector<ScalarArg> scalars;
  size_t outputs = 1;
  // Where given, one a tensor: it is a part of its array, {} for all of it. Rows lie as far apart as the array's.
  std::vector<std::vector<int64_t>> parts = {};
  std::vector<std::vector<int64_t>> strides = {};  // made by tensors()
  std::vector<TensorArg> tensors();
  Array& out() { return arrays.back(); }
};
// Inputs random in [−scale, scale], the outputs poisoned.
Args MakeArgs(const std::vector<std::pair<DType, std::vector<int64_t>>>& tensors, double scale = 1,
              std::vector<ScalarArg> scalars = {}, size_t outputs = 1);

// `program` is lowered to source for both families and classes of arguments.
void ExpectLowers(const Program& program);

// One program, lowered for both families and the general and the fast class of arguments.
class Comparison {
 public:
  explicit Comparison(Program program) : Comparison(program, program) {}
  // `reference`: a program that the executor runs instead, with a wider output.
  Comparison(Program program, Program reference);

  // The simulator, under several interleavings and for each class that the arguments fit, gives what the executor gives.
  void ExpectAgrees(const Args& args, const Bound& bound, const std::string& what);
  // Each barrier and wait removed in turn is found with at least one of `shapes`.
  // `only`: of those whose name holds this. Barriers that the program declares order threads of one role too, which
  // place-barriers does not know.
  void ExpectAllSynchronisationNeeded(const std::vector<Args>& shapes, const std::string& only = "");
  // How many runs were compared: a test that compared none shows nothing.
  int compared() const { return compared_; }

 private:
  struct Planned {
    std::string what;  // architecture and class
    ArgClass arg_class;
    std::vector<kir::Kernel> kernels;
    std::string arch;
  };
  Program program_, reference_;
  std::vector<Planned> planned_;
  uint64_t seed_ = 0;
  int compared_ = 0;
};

// Types and shapes of a program's tensors, its output last.
using Tensors = std::vector<std::pair<DType, std::vector<int64_t>>>;
// Program `entry` of a source of the project lowers, and agrees within `bound` for each list of tensors.
void ExpectProgramAgrees(const std::string& file, const std::string& entry, const std::vector<Tensors>& calls,
                         const Bound& bound);

}  // namespace tilert
