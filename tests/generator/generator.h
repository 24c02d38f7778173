// The generator's state and its parts: launches and blocks (tile_generator.cc), statements on tiles (generator_tiles.cc), gemms
// (generator_gemm.cc), what stands in parallel loops (generator_elements.cc), what single threads do (generator_threads.cc).
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "tests/generator/generator_types.h"
#include "tests/generator/tile_case.h"

namespace tilert::generator {

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed), b_("random") {}
  TileCase Run();

 private:
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
  DType ElementType();

  // Launches (tile_generator.cc).
  void Dims();
  TensorRef NewTensor(const char* stem, DType type, const std::vector<std::pair<Val, int64_t>>& shape, Access access);
  void LaunchOne();
  void OpenGrid();
  void Body(int depth, int statements);
  void Statement(int depth);
  void Loop(int depth);
  void Branch(int depth);
  void WhileLoop(int depth);
  Val UniformCondition();
  Val UniformIndex(int64_t* count);

  // Tiles (generator_tiles.cc).
  std::vector<int64_t> TileShape();
  TileRef NewTile(DType type, std::vector<int64_t> shape, Scope scope, double limit);
  TileRef AnyTile();
  void MakeTile();
  void Initialise(const TileRef& tile);
  void CopyIn(const TileRef& tile);
  void CopyPart(const TileRef& tile);
  void CopyTiles();
  void FillPart();
  void ReduceTile();
  void ScanTile();
  void Dump(const TileRef& tile);
  void ThroughWorkspace();
  void AddAtomics();
  void Hint(int depth);
  bool Fits(const std::vector<int64_t>& shape, DType type, Scope scope);
  int64_t Elements(const std::vector<int64_t>& shape) const;
  double DefaultLimit(DType type) const;

  // Gemms (generator_gemm.cc).
  void GemmLoop(int depth);
  TileRef Operand(const char* stem, DType type, int64_t rows, int64_t columns, Val row_start, Val column_start,
                  const TensorRef& from);

  // Thread regions and roles (generator_threads.cc).
  std::vector<Val> Subscripts(const TileRef& tile, Val e);
  void ThreadShare(const TileRef& tile, Val tx);
  void Threads();
  void RolesOf();

  // Parallel loops (generator_elements.cc).
  void Parallel(const TileRef& tile);
  void OpenPoints(const std::vector<int64_t>& shape);
  void ElementStatement(const TileRef& tile, const std::vector<Val>& at, int depth);
  void ElementLoop(const TileRef& tile, const std::vector<Val>& at);
  Num Element(DType type, int depth);
  Num Leaf(DType type);
  Num IntegerOp(DType type, int depth);
  Num FloatOp(DType type, int depth);
  Num RoundedFunction(DType type, int depth);
  Num Clamped(Num x, double limit);
  Num Converted(Num x, DType type);
  Val PointIndex(int64_t extent);
  Val PointCondition(int depth);
  Num ReadTile(const TileRef& tile);
  Num ReadTensor(const TensorRef& tensor);

  std::mt19937_64 rng_;
  ProgramBuilder b_;
  int names_ = 0;
  std::vector<std::pair<Val, int64_t>> dims_;
  std::vector<TensorRef> inputs_;
  std::vector<TensorRef> shared_between_;  // workspaces that an earlier launch filled
  Val alpha_, count_;
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
  // Of the parallel loop.
  std::vector<Point> points_;
  std::vector<std::pair<Val, double>> lets_;  // int32 values
  BufferId stored_ = kNoId;                   // the tile that its points store to
  std::vector<Val> stored_at_;
};

}  // namespace tilert::generator
