// Which tile is where: the order in which block numbers, or the tiles of a persistent kernel, go over the grid.
#include <algorithm>

#include "lowering/simulator/block_state.h"

namespace tilert::sim {

int64_t Tiles(const Compiled& kernel) {
  int64_t tiles = 1;
  for (int64_t extent : kernel.grid) tiles *= extent;
  return tiles;
}

std::vector<int64_t> TileCoords(const Compiled& kernel, int64_t tile) {
  std::vector<int64_t> coords;
  int64_t rest = tile;
  for (int64_t extent : kernel.grid) {
    coords.push_back(extent == 0 ? 0 : rest % extent);
    rest /= std::max<int64_t>(extent, 1);
  }
  const int64_t panel = kernel.kernel->raster_panel;
  if (panel <= 0 || coords.size() < 2 || Tiles(kernel) == 0) return coords;
  // Panels of `panel` rows (columns), each walked column by column; every second one backwards.
  const size_t across = kernel.kernel->raster_column ? 1 : 0, along = 1 - across;
  const int64_t width = kernel.grid[across], height = kernel.grid[along], block = tile % (width * height);
  const int64_t number = block / (panel * width), first = number * panel, rows = std::min(panel, height - first),
                within = block - first * width;
  coords[along] = first + within % rows;
  coords[across] = number % 2 == 1 ? width - 1 - within / rows : within / rows;
  return coords;
}

}  // namespace tilert::sim
