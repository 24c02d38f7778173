// The generator's state and its parts: launches and blocks (tile_generator.cc), statements on tiles (generator_tiles.cc), gemms
// (generator_gemm.cc), what stands in parallel loops (generator_elements.cc), what single threads do (generator_threads.cc),
// subscripts that lead nowhere (generator_hostile.cc).
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "tests/generator/generator_types.h"
#include "tests/generator/tile_case.h"

namespace tilert::generator {

class Generator : GeneratorState {
 public:
  explicit Generator(uint64_t seed, bool hostile = false) : GeneratorState(seed, hostile) {}
  TileCase Run();

 private:
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
  void Hint();
  bool Fits(const std::vector<int64_t>& shape, DType type, Scope scope);
  int64_t Elements(const std::vector<int64_t>& shape) const;
  double DefaultLimit(DType type) const;

  // Gemms (generator_gemm.cc).
  void GemmLoop(int depth);
  TileRef Operand(const char* stem, DType type, int64_t rows, int64_t columns, Val row_start, Val column_start,
                  const TensorRef& from);

  // Hostile subscripts (generator_hostile.cc): of dimensions of about `extent`.
  void HostileInputs();
  Val HostileNumber();
  Val HostileIndex(int64_t extent, int depth);
  Val HostileUniform(int64_t extent);
  void HostileStatement(int depth);
  void Scatter(const TileRef& tile);
  void HostileAtomics(const TileRef& like);
  void HostileLoop(int depth);
  void Guarded(const TileRef& tile);

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
};

}  // namespace tilert::generator
