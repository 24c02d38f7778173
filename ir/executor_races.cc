#include "ir/executor_races.h"

#include <algorithm>

namespace tilert::exec {

bool RaceTable::Touch(BufferId buffer, int64_t offset, int64_t agent, TouchKind kind, bool changes) {
  Cell& cell = cells_[{buffer, offset}];
  const auto is_other = [agent](int64_t who) { return who != kNobody && who != agent; };
  const auto other = [&](int64_t who) { return is_other(who) && !Knows(agent, who); };
  const auto mark = [&](int64_t& who) { who = is_other(who) ? kSeveral : agent; };
  bool conflict = false;
  switch (kind) {
    case TouchKind::kRead:
      conflict = other(cell.writer) || other(cell.adder);
      mark(cell.reader);
      break;
    case TouchKind::kWrite:
      conflict = (other(cell.writer) && changes) || other(cell.reader) || other(cell.adder);
      mark(cell.writer);
      break;
    case TouchKind::kAtomic:
      conflict = other(cell.writer) || other(cell.reader);
      mark(cell.adder);
      break;
  }
  return conflict;
}

void RaceTable::Forget(const std::vector<int64_t>& agents) {
  const absl::flat_hash_set<int64_t> ordered(agents.begin(), agents.end());
  for (auto& [place, cell] : cells_) {
    for (int64_t* who : {&cell.writer, &cell.reader, &cell.adder}) {
      if (*who == kSeveral || ordered.contains(*who)) *who = kNobody;
    }
  }
}

// What several did may be by those it knows.
bool RaceTable::Knows(int64_t agent, int64_t who) const {
  const auto it = known_.find(agent);
  return it != known_.end() && (who == kSeveral || it->second.contains(who));
}

std::vector<int64_t> RaceTable::WithKnown(int64_t agent) const {
  std::vector<int64_t> agents = {agent};
  if (const auto it = known_.find(agent); it != known_.end()) agents.insert(agents.end(), it->second.begin(), it->second.end());
  return agents;
}

void Join(Clock* clock, const Clock& other) {
  if (clock->size() < other.size()) clock->resize(other.size());
  for (size_t part = 0; part < other.size(); ++part) (*clock)[part] = std::max((*clock)[part], other[part]);
}

bool PartRaces::Touch(BufferId buffer, int64_t offset, size_t part, const Clock& now, TouchKind kind, bool changes) {
  Cell& cell = cells_[{buffer, offset}];
  const auto unordered = [&](const Clock& when) {
    for (size_t other = 0; other < when.size(); ++other) {
      if (other != part && when[other] > (other < now.size() ? now[other] : 0)) return true;
    }
    return false;
  };
  const auto mark = [&](Clock* when) {
    if (when->size() <= part) when->resize(part + 1);
    (*when)[part] = now[part];
  };
  switch (kind) {
    case TouchKind::kRead: mark(&cell.read); return unordered(cell.written) || unordered(cell.added);
    case TouchKind::kWrite:
      mark(&cell.written);
      return (changes && unordered(cell.written)) || unordered(cell.read) || unordered(cell.added);
    case TouchKind::kAtomic: mark(&cell.added); return unordered(cell.written) || unordered(cell.read);
  }
  return false;
}

}  // namespace tilert::exec
