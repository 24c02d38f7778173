#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "frontend/views.h"
#include "ir/program.h"

// From what sources may say to what programs may hold.
namespace tilert::frontend {

// A fragment into which parallel loops accumulate (T.alloc_reducer).
struct Reducer {
  BufferId buffer = kNoId;
  ReduceOp op = ReduceOp::kSum;
};

// Stands where T.sync_grid() does, until the launch is split there.
Annotate GridSyncMarker();
// Makes launches with markers several: InvalidArgument where a marker stands in a block of its launch, or a tile or value is used
// on both sides.
absl::Status SplitAtGridSyncs(Program* program);

// Gives each buffer the number `number` has for it, and takes those that have none (kNoId) out of the tables. REQUIRES: nothing
// uses them.
void Renumber(const std::vector<BufferId>& number, Program* program);

// Makes `program` one without
//  * views: accesses to single elements are redirected; a copy, fill or atomic of tiles becomes a parallel loop over elements;
//    any other statement works on a tile of the view's shape that is copied in and out;
//  * accumulation in parallel loops: what a point adds goes to a tile of its own, which is reduced after the loop;
//  * grid syncs: the launch ends there and another begins;
//  * parallel loops and tile statements in parallel loops: a loop whose body is one more becomes one loop, others run in order.
// Returns the new number of each buffer. InvalidArgument, with the place, for what a view or reducer cannot do.
absl::StatusOr<std::vector<BufferId>> Legalize(const std::vector<View>& views, const std::vector<Reducer>& reducers,
                                               Program* program);

}  // namespace tilert::frontend
