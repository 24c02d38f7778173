// What the generator knows about the values, tiles and tensors that it makes.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
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

// What is drawn from, and what of the program is there.
struct GeneratorState {
  GeneratorState(uint64_t seed, bool hostile) : rng_(seed), b_("random"), hostile_(hostile) {}

  int Pick(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Pick(100) < percent; }
  template <typename List>
  auto& One(List& list) {
    return list[static_cast<size_t>(Pick(static_cast<int>(list.size())))];
  }
  template <typename T>
  T Of(std::initializer_list<T> list) {
    return list.begin()[Pick(static_cast<int>(list.size()))];
  }
  std::string Name(const char* stem) { return stem + std::to_string(names_++); }
  bool IsHostile(int percent) { return hostile_ && Chance(percent); }

  std::mt19937_64 rng_;
  ProgramBuilder b_;
  const bool hostile_;
  int names_ = 0;
  std::vector<std::pair<Val, int64_t>> dims_;
  std::vector<TensorRef> inputs_;
  std::vector<TensorRef> shared_between_;  // workspaces that an earlier launch filled
  Val alpha_, count_;
  std::vector<TensorRef> hostile_inputs_;
  std::vector<BufferId> hostile_ids_;
  Val far_;                                        // a scalar that is no subscript
  std::vector<std::pair<Val, int64_t>> far_dims_;  // of which no tensor has elements
  // Of the launch.
  int64_t threads_ = 0;
  std::vector<GridAxis> grid_;
  std::vector<int64_t> extents_;   // that tiles of this launch have
  std::vector<Uniform> uniforms_;  // in scope
  std::vector<TileRef> tiles_;     // in scope and wholly written
  std::vector<TileRef> targets_;   // in scope
  std::vector<Buf> vars_;          // int32 alloc_vars in scope
  int64_t runs_ = 1;               // of the statement being made, at most
  int64_t shared_bytes_ = 0, fragment_bytes_ = 0;
  int left_ = 0;  // statements
  bool in_role_ = false;
  // Of the parallel loop.
  std::vector<Point> points_;
  std::vector<std::pair<Val, double>> lets_;  // int32 values
  BufferId stored_ = kNoId;                   // the tile that its points store to
  std::vector<Val> stored_at_;
};

double Range(DType type);  // of integers: the largest absolute value; of floats: up to which all integers are exact

}  // namespace tilert::generator
