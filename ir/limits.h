// Bounds on what a bundle or program may hold: they keep reading, verifying and compiling within time and memory that a host can
// grant to untrusted input. docs/ir_spec.md section "Limits".
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilert {

// Bundles.
inline constexpr uint64_t kMaxFlatBytes = uint64_t{64} << 20;    // the FlatBuffer part
inline constexpr uint64_t kMaxBundleBytes = uint64_t{1} << 40;
inline constexpr size_t kMaxPrograms = 1024;
inline constexpr size_t kMaxStrings = 65536;
inline constexpr size_t kMaxStringBytes = 65536;                 // one string
inline constexpr size_t kMaxTextBytes = size_t{16} << 20;        // all strings as often as they are used
inline constexpr uint32_t kMaxFlatDepth = 16;                    // tables within tables
inline constexpr uint32_t kMaxFlatTables = 65536;

// One program.
inline constexpr size_t kMaxTableEntries = 16384;   // of buffers, vars, …
inline constexpr size_t kMaxStatements = 65536;
inline constexpr size_t kMaxStatementDepth = 64;
inline constexpr size_t kMaxOperands = 1 << 20;     // words of all statements together
inline constexpr size_t kMaxExprs = 1 << 18;
inline constexpr size_t kMaxExprDepth = 256;
inline constexpr uint64_t kMaxExprTree = 4096;       // nodes of one expression, shared ones counted as often as they are used
inline constexpr uint64_t kMaxProgramTree = 1 << 20;  // of all expressions together
inline constexpr size_t kMaxRank = 8;
inline constexpr int64_t kMaxDim = int64_t{1} << 48;  // of a dim at launch
inline constexpr size_t kMaxCandidates = 256;
inline constexpr uint64_t kMaxUnrolled = 65536;      // statements after unrolling: the bound on compile time
inline constexpr int64_t kMaxClusterBlocks = 8;      // of a thread block cluster: what every GPU that has them takes
inline constexpr int64_t kMaxPhaseCount = (1 << 20) - 1;  // arrivals, or bytes, of a phase of a barrier (PTX ISA, "mbarrier")
inline constexpr int64_t kMaxBlockElements = int64_t{1} << 26;  // of one buffer in shared memory, fragments or locals

}  // namespace tilert
