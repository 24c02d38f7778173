// Tensors whose rows are no multiple of 16 bytes apart, or start between such multiples, take neither TMA nor wide loads. Inputs
// that many blocks read are better copied to rows that do, first of all: the copies here, and the program that reads them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/program.h"
#include "ir/verifier.h"
#include "lowering/lowered.h"

namespace tilert {

// Alignment of pitches and pointers that every fast way of reading needs; rows that are copied are as far apart as suits the L2
// cache best (pitches of 8208 bytes made a GEMM a third slower than ones of 8192; H200).
inline constexpr int64_t kFastPitchBytes = 16, kCopiedPitchBytes = 128;

// Tensor parameters of rank 2 or more, contiguous or with rows of neighbours that are as far apart as only the caller says, that the
// program only reads, of which some launch reads the same elements in several blocks: a subscript does not depend on each of the
// block's numbers. `program`: specialised.
std::vector<BufferId> SharedInputs(const Program& program);

// False when rows of all tensors are a multiple of kFastPitchBytes apart whatever the dims. `program`: specialised.
bool MayHaveSlowRows(const Program& program);

// `program`, its contiguous tensors among `inputs` having the strides of one whose rows start every PaddedPitch elements. Those with
// declared strides keep them: launches say where rows begin.
Program WithPaddedRows(const Program& program, absl::Span<const BufferId> inputs);

// What WithPaddedRows' program can be compiled for: `inputs` as FastArgClass, all other tensors as GeneralArgClass.
ArgClass PaddedArgClass(const Program& program, absl::Span<const BufferId> inputs);

// Elements from row to row of rows of `columns` elements: as they are when that is a multiple of kFastPitchBytes, else up to the
// next multiple of kCopiedPitchBytes.
Expr PaddedPitch(ExprArena& exprs, Expr columns, DType dtype);

// The program "restride_float16_2d" or the like: Y[...] = X[...], both of `rank` ≥ 2 dimensions, Y with rows that start every
// PaddedPitch elements, X contiguous or, with `strided`, its rows anywhere.
absl::StatusOr<VerifiedProgram> RestrideProgram(DType dtype, size_t rank, bool strided = false);

}  // namespace tilert
