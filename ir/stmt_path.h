// Where in a program a walk is: "launches[0].body[3].then[1]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "ir/status_util.h"

namespace tilert {

class StmtPath {
 public:
  // Leaves what was entered when it goes out of scope.
  class Scope {
   public:
    explicit Scope(StmtPath* path) : path_(path) {}
    Scope(const Scope&) = delete;
    ~Scope() { path_->steps_.pop_back(); }

   private:
    StmtPath* path_;
  };

  [[nodiscard]] Scope Enter(std::string_view name) { return Push({name, kNoIndex}); }
  [[nodiscard]] Scope Enter(std::string_view name, size_t index) { return Push({name, index}); }
  // The `part`th nested block of `stmt`, as ChildBlocks counts: body, then, else, roles[part].body.
  [[nodiscard]] Scope EnterPart(const Stmt& stmt, size_t part) {
    if (std::holds_alternative<If>(stmt.op)) return Enter(part == 0 ? "then" : "else");
    if (std::holds_alternative<Roles>(stmt.op)) return Push({"roles", part});
    return Enter("body");
  }

  std::string ToString() const {
    std::string text;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (!step.name.empty()) text += Cat(text.empty() ? "" : ".", step.name);
      if (step.name.empty() && i > 0 && !steps_[i - 1].name.empty() && steps_[i - 1].index != kNoIndex)
        text += ".body";  // roles[1].body
      if (step.index != kNoIndex) text += Cat("[", step.index, "]");
    }
    return text;
  }

 private:
  static constexpr size_t kNoIndex = ~size_t{0};
  struct Step {
    std::string_view name;  // empty: an index into the block entered last
    size_t index;
  };
  Scope Push(Step step) {
    steps_.push_back(step);
    return Scope(this);
  }
  std::vector<Step> steps_;
};

}  // namespace tilert
