// Programs that together hold every statement and operator: inputs of the printer, bundle and verifier tests.
#pragma once

#include <vector>

#include "ir/program.h"

namespace tilert {

// Element-wise scaling with a tail; one dim, one constant with candidates, one scalar.
Program ScaleProgram();
// A tiled gemm with a pipelined loop, layout hints, dims, constants, strides and an assumption.
Program GemmProgram();
// Two launches with a workspace between them; reductions, a scan, atomics, loops of every kind, every operator.
Program EveryStatementProgram();
// Thread regions, roles, barriers and asynchronous copies.
Program ExpertProgram();

// The samples of format 1.0: what tests/frozen/bundle_v1_0.tilert holds.
std::vector<Program> SamplePrograms();
// What needs format 1.2: loops that blocks may share.
Program SplitProgram();
// What needs format 1.1: a pipelined loop whose num_stages is a knob.
Program StagedProgram();

}  // namespace tilert
