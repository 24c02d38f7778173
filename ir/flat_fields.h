// The operand words of each statement in a bundle, in their frozen order: the one description that both directions use.
//
// An Archive has, for T a statement's field (const when writing): Buffer, OptBuffer, Var, Vars, E (an expression), OptE, Es, Rgn,
// U32, Bool, Ints, Text, Enum(field, last value), Stages (an expression that For stores as its value, StagedFor and SplitFor as
// an id), Split (an expression of SplitFor; others have none), Slot (expressions of SlotCopy; a Copy has none), Group (two
// numbers of SyncGroup; a SyncThreads has none), Prev (a variable of FetchAtomic; an Atomic has none). Words: an id is one word,
// none is 0xffffffff; a list is its count, then its entries; a region is its buffer, its rank, the starts, the extents; text is
// an index into the string table; an enum is its value in schemas/bundle.fbs.
#pragma once

#include <type_traits>

#include "ir/stmt.h"

namespace tilert {

template <typename Archive, typename S>
void FlatFields(Archive& ar, S& s) {
  using T = std::remove_const_t<S>;
  if constexpr (std::is_same_v<T, Alloc>) {
    ar.Buffer(s.buffer);
  } else if constexpr (std::is_same_v<T, Copy>) {
    ar.Rgn(s.src), ar.Rgn(s.dst), ar.OptE(s.fill), ar.U32(s.coalesced_width);
    ar.Bool(s.disable_tma), ar.Bool(s.is_async), ar.OptBuffer(s.barrier), ar.Slot(s.barrier_indices);
  } else if constexpr (std::is_same_v<T, Gemm>) {
    ar.Rgn(s.a), ar.Rgn(s.b), ar.Rgn(s.c), ar.Bool(s.transpose_a), ar.Bool(s.transpose_b), ar.Bool(s.clear_accum);
    ar.Enum(s.policy, GemmPolicy::kFullCol), ar.Bool(s.is_async);
  } else if constexpr (std::is_same_v<T, Fill>) {
    ar.Rgn(s.dst), ar.E(s.value);
  } else if constexpr (std::is_same_v<T, Reduce>) {
    ar.Enum(s.op, ReduceOp::kBitXor), ar.Rgn(s.src), ar.Rgn(s.dst), ar.U32(s.axis), ar.Bool(s.clear), ar.Bool(s.nan_propagate);
  } else if constexpr (std::is_same_v<T, Scan>) {
    ar.Rgn(s.src), ar.Rgn(s.dst), ar.U32(s.axis), ar.Bool(s.reverse);
  } else if constexpr (std::is_same_v<T, Parallel>) {
    ar.Vars(s.vars), ar.Es(s.extents), ar.U32(s.coalesced_width);
  } else if constexpr (std::is_same_v<T, For>) {
    ar.Enum(s.kind, ForKind::kPersistent), ar.Var(s.var), ar.E(s.begin), ar.E(s.end), ar.E(s.step),
        ar.Stages(s.num_stages, s.split);
    ar.Ints(s.order), ar.Ints(s.stage), ar.Split(s.split);
  } else if constexpr (std::is_same_v<T, While> || std::is_same_v<T, If>) {
    ar.E(s.cond);
  } else if constexpr (std::is_same_v<T, Let>) {
    ar.Var(s.var), ar.E(s.value);
  } else if constexpr (std::is_same_v<T, Store>) {
    ar.Buffer(s.buffer), ar.Es(s.indices), ar.E(s.value);
  } else if constexpr (std::is_same_v<T, Atomic>) {
    ar.Enum(s.op, AtomicOp::kMin), ar.Buffer(s.buffer), ar.Es(s.indices), ar.E(s.value);
    ar.Enum(s.order, MemoryOrder::kAcqRel), ar.Enum(s.scope, MemoryScope::kSystem), ar.Prev(s.prev);
  } else if constexpr (std::is_same_v<T, AtomicTile>) {
    ar.Enum(s.op, AtomicOp::kMin), ar.Rgn(s.src), ar.Rgn(s.dst), ar.Enum(s.order, MemoryOrder::kAcqRel);
  } else if constexpr (std::is_same_v<T, Annotate>) {
    ar.Enum(s.kind, AnnotationKind::kSafeValue), ar.OptBuffer(s.buffer), ar.Es(s.args), ar.Text(s.text);
  } else if constexpr (std::is_same_v<T, Print>) {
    ar.Text(s.format), ar.Es(s.args);
  } else if constexpr (std::is_same_v<T, Assert>) {
    ar.E(s.cond), ar.Text(s.message);
  } else if constexpr (std::is_same_v<T, SyncThreads>) {
    ar.Group(s.barrier, s.count);
  } else if constexpr (std::is_same_v<T, Shuffle>) {
    ar.Var(s.var), ar.E(s.value), ar.E(s.lane);
  } else if constexpr (std::is_same_v<T, ThreadRegion>) {
    ar.Var(s.thread);
  } else if constexpr (std::is_same_v<T, Role>) {
    ar.E(s.thread_begin), ar.E(s.thread_end);
  } else if constexpr (std::is_same_v<T, BarrierOp>) {
    ar.Enum(s.kind, BarrierOpKind::kExpectTx), ar.Buffer(s.barrier), ar.Es(s.indices), ar.OptE(s.operand);
  } else if constexpr (std::is_same_v<T, AsyncWait>) {
    ar.Bool(s.gemm), ar.U32(s.pending);
  } else {
    static_assert(std::is_same_v<T, Break> || std::is_same_v<T, Continue> || std::is_same_v<T, Roles>);
  }
}

}  // namespace tilert
