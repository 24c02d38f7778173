// TileLang's sources say `tx = T.get_thread_binding()` or `T.ws(1)` anywhere in a launch. A program knows three kinds of region:
// tile statements, thread regions and roles. From the one to the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "frontend/program_edit.h"
#include "ir/program.h"

namespace tilert::frontend {

// A launch whose source speaks of single threads: `thread` stands for the number of the thread, in its block, and is bound
// nowhere yet.
struct ThreadUse {
  size_t launch = 0;
  VarId thread = kNoId;
};

// Makes of each such launch one in which
//  * a launch of statements that threads can run by themselves is one thread region;
//  * else `if` over ranges of threads that holds tile statements is a partition into roles, and what lies between such becomes
//    thread regions; roles that follow each other, or fill a loop, run on beside each other (TileLang does not let them meet);
//  * fragments, and variables, that only one role touches are that role's;
//  * T.sync_threads stands wherever threads touch shared memory that others have touched (TileLang puts it there by itself).
// InvalidArgument, with the place, for tile statements under a condition on which only some threads agree.
absl::Status StructureThreads(const std::vector<ThreadUse>& uses, Program* program);

// --- parts of it

// Threads [begin, end) of a block.
struct ThreadRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const ThreadRange&) const = default;
};

ThreadRange ThreadsOf(const Program& p, const Role& role);
// The threads for which `cond` holds, when it says no more of `tx` than that, as one range of `within`.
std::optional<ThreadRange> ThreadsWhere(const Program& p, Expr cond, VarId tx, ThreadRange within);
void SortByThreads(const Program& p, Roles* roles);

// `block`, statements for all threads of `range`, as what one of them does (`tx`: an expression, its number). Allocations of
// memory of the block are moved to `outside`. REQUIRES: CanBeThreaded of each statement. (thread_code.cc)
Block ThreadCode(Program& p, Block block, Expr tx, ThreadRange range, Block* outside);
bool CanBeThreaded(const Program& p, const Stmt& stmt);
// True for what the threads of `range` divide among themselves; each does for itself what is about private memory.
bool IsDivided(const Program& p, const Stmt& stmt);
// Puts T.sync_threads into thread regions of `range`, a role's if `group` is its number from 1 on. (thread_code.cc)
void InsertSyncs(Program& p, Stmt& region, ThreadRange range, uint32_t group);

// Joins partitions that nothing separates, and takes loops and conditions around them into the roles. (thread_roles.cc)
void JoinRoles(Program& p, Block& block);
// Moves allocations into the only role that touches them. (thread_roles.cc)
void SinkIntoRoles(Program& p, Block& block);

}  // namespace tilert::frontend
