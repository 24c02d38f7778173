// The gathering side of a convolution.
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

// T.im2col(data, tile, row_tile, column_tile, kernel, stride, dilation, pad): the tile (rows, columns) of the matrix whose
// product with the flattened filter is the convolution of data (N, H, W, C) with a square filter of `kernel` × `kernel`. Row (n,
// y, x) of the matrix is an output pixel, column (r, s, c) a filter element; pixels outside the image are zero.
Value Im2Col(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const auto image = e.Region(args["img"], args.RangeOf("img"), "the image of T.im2col"),
             tile = e.Region(args["col"], args.RangeOf("col"), "the target of T.im2col");
  if (!image || !tile) return Poison{};
  if (image->extent.size() != 4)
    return e.Fail(args.RangeOf("img"), "the image of T.im2col has the dimensions N, H, W, C", "pass the whole tensor");
  if (tile->extent.size() != 2 || !tile->extent[0] || !tile->extent[1])
    return e.Fail(args.RangeOf("col"), "the target of T.im2col is a matrix", "pass a buffer of shape (rows, columns)");
  Val numbers[6];
  static constexpr const char* kNames[] = {"nhw_step", "c_step", "kernel", "stride", "dilation", "pad"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    numbers[i] = e.Number(args[kNames[i]], args.RangeOf(kNames[i]), Cat(kNames[i], " of T.im2col"));
    if (!numbers[i]) return Poison{};
  }
  const auto& [row_tile, column_tile, kernel, stride, dilation, pad] = numbers;
  ProgramBuilder& builder = e.builder();
  const Val height = image->extent[1].In(&builder), width = image->extent[2].In(&builder),
            channels = image->extent[3].In(&builder);
  const Val reach = dilation.In(&builder) * (kernel - 1) + 1;  // of the filter, in pixels
  const Val out_height = FloorDiv(height + pad * 2 - reach, stride) + 1,
            out_width = FloorDiv(width + pad * 2 - reach, stride) + 1;
  const std::vector<Val> vars = builder.OpenParallel({"i", "j"}, {tile->extent[0], tile->extent[1]});
  const Val row = row_tile.In(&builder) * tile->extent[0] + vars[0],
            column = column_tile.In(&builder) * tile->extent[1] + vars[1];
  const Val y = FloorDiv(row % (out_height * out_width), out_width), x = row % out_width;
  const Val r = FloorDiv(column, kernel * channels), s = FloorDiv(column, channels) % kernel;
  // A column beyond the filter has r = kernel or more; its product meets a zero row of the filter, but reading outside must not
  // depend on that.
  const Val inside = r < kernel;
  const Val n = builder.Select(inside, FloorDiv(row, out_height * out_width), builder.Lit(int64_t{-1}));
  const Val pixel =
      builder.Load(image->buffer, {n, y * stride + r * dilation - pad, x * stride + s * dilation - pad, column % channels});
  builder.Store(tile->buffer, {tile->start[0].In(&builder) + vars[0], tile->start[1].In(&builder) + vars[1]}, pixel);
  builder.Close();
  return NoneValue{};
}

}  // namespace

absl::Span<const Builtin> ConvolutionIntrinsics() {
  static constexpr std::string_view kIm2Col = "img col nhw_step c_step kernel stride dilation pad eviction_policy?";
  static constexpr Builtin kBuiltins[] = {{"T.im2col", kIm2Col, Im2Col}, {"T.c2d_im2col", kIm2Col, Im2Col}};
  return kBuiltins;
}

}  // namespace tilert::frontend
