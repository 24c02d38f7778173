// What the generator knows about the values, tiles and tensors that it makes.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/builder.h"

namespace tilert::generator {

// A value and how large its absolute value may be; of integer types the range of the type.
struct Num {
  Val value;
  double bound = 0;
};

// An index value that all points share: a block or loop variable.
struct Uniform {
  Val value;
  int64_t count = 1;  // it is below this
};

struct TileRef {
  Buf buf;
  std::vector<int64_t> shape;
  DType type = DType::kInvalid;
  double limit = 0;  // of absolute values in it, if float
  double room = 0;   // of values that statements may store; gemms and sums add to it what limit has more
};

struct TensorRef {
  Buf buf;
  std::vector<int64_t> shape;  // with the case's dims
  DType type = DType::kInvalid;
  double limit = 2;  // of absolute values, if float
};

// One axis of the grid: its blocks, and the dim that they cut into tiles of `tile`, if any.
struct GridAxis {
  Val extent, var;
  int64_t blocks = 1, tile = 0, size = 0;
  Val dim;
};

struct Point {
  Val var;
  int64_t extent = 0;
};

double Range(DType type);  // of integers: the largest absolute value; of floats: up to which all integers are exact

}  // namespace tilert::generator
