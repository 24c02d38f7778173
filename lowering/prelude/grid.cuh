// Blocks of one plane in panels of `panel` rows for reuse in L2: down a column of the panel, then the next column; panels alternate
// in direction, so that the last column of one is the first of the next.
DEV void raster(u32 block, u32 width, u32 height, u32 panel, int& x, int& y) {
  const u32 number = block / (panel * width), first = number * panel;
  const u32 rows = min(panel, height - first), within = block - number * panel * width;
  const u32 column = within / rows;
  y = (int)(first + within % rows);
  x = (int)(number & 1 ? width - 1 - column : column);
}
