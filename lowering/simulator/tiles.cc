// Which tile is where: the order in which block numbers, or the tiles of a persistent kernel, go over the grid.
#include <algorithm>

#include "lowering/simulator/block_state.h"

namespace tilert::sim {
namespace {

int64_t Across(const Compiled& kernel, size_t d) { return kernel.kernel->cluster.empty() ? 1 : kernel.kernel->cluster[d]; }

// Extents of the grid in clusters.
std::vector<int64_t> ClusterGrid(const Compiled& kernel) {
  std::vector<int64_t> grid = kernel.grid;
  for (size_t d = 0; d < grid.size(); ++d) grid[d] = (grid[d] + Across(kernel, d) - 1) / Across(kernel, d);
  return grid;
}

std::vector<int64_t> ClusterCoords(const Compiled& kernel, int64_t cluster) {
  const std::vector<int64_t> grid = ClusterGrid(kernel);
  std::vector<int64_t> coords;
  int64_t rest = cluster;
  for (int64_t extent : grid) {
    coords.push_back(extent == 0 ? 0 : rest % extent);
    rest /= std::max<int64_t>(extent, 1);
  }
  const int64_t panel = kernel.kernel->raster_panel;
  if (panel <= 0 || coords.size() < 2 || Tiles(kernel) == 0) return coords;
  // Panels of `panel` rows (columns), each walked column by column; every second one backwards.
  const size_t across = kernel.kernel->raster_column ? 1 : 0, along = 1 - across;
  const int64_t width = grid[across], height = grid[along], block = cluster % (width * height);
  const int64_t number = block / (panel * width), first = number * panel, rows = std::min(panel, height - first),
                within = block - first * width;
  coords[along] = first + within % rows;
  coords[across] = number % 2 == 1 ? width - 1 - within / rows : within / rows;
  return coords;
}

}  // namespace

int64_t Tiles(const Compiled& kernel) {
  int64_t tiles = 1;
  for (int64_t extent : kernel.grid) tiles *= extent;
  return tiles;
}

int64_t Clusters(const Compiled& kernel) {
  int64_t clusters = 1;
  for (int64_t extent : ClusterGrid(kernel)) clusters *= extent;
  return clusters;
}

std::vector<int64_t> BlockCoords(const Compiled& kernel, int64_t cluster, int rank, bool* inside) {
  std::vector<int64_t> coords = ClusterCoords(kernel, cluster);
  *inside = true;
  for (size_t d = 0; d < coords.size(); ++d) {
    coords[d] = coords[d] * Across(kernel, d) + rank % Across(kernel, d);
    rank /= static_cast<int>(Across(kernel, d));
    *inside = *inside && coords[d] < kernel.grid[d];
    coords[d] = std::min(coords[d], std::max<int64_t>(kernel.grid[d] - 1, 0));
  }
  return coords;
}

int64_t BlockNumber(const Compiled& kernel, const std::vector<int64_t>& coords) {
  int64_t number = 0;
  for (size_t d = coords.size(); d-- > 0;) number = number * kernel.grid[d] + coords[d];
  return number;
}

}  // namespace tilert::sim
