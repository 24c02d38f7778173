// Blocks of one plane in panels of `panel` rows for reuse in L2: down a column of the panel, then the next column; panels alternate
// in direction, so that the last column of one is the first of the next.
DEV void raster(u32 block, u32 width, u32 height, u32 panel, int& x, int& y) {
  u32 number = 0, rows = height;
  if (height > panel) {
    number = block / (panel * width);
    rows = min(panel, height - number * panel);
  }
  // `panel` is a constant: divisions by what is not would be a large part of the time before the first load.
  const u32 within = block - number * panel * width, column = rows == panel ? within / panel : rows == 1 ? within : within / rows;
  y = (int)(number * panel + within - column * rows);
  x = (int)(number & 1 ? width - 1 - column : column);
}
