// Cooperative threads of control on one system thread: the concurrent roles of a block run in turns.
#pragma once

#include <functional>
#include <memory>

namespace tilert {

// One function with a stack of its own. Resume runs it until it calls Yield or returns. Not thread-safe: a fiber stays on the
// system thread that first resumed it. Destroying one that has not returned leaves the objects on its stack undestroyed: let it
// end.
class Fiber {
 public:
  // REQUIRES: `body` does not throw.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;

  // False when the system has no memory for its stack: it cannot be resumed.
  bool ok() const;
  bool done() const;
  // REQUIRES: ok(), !done(), and no fiber of this system thread is running, other than the caller, if that is one.
  void Resume();
  // Back to whoever resumed this fiber. REQUIRES: called on it.
  void Yield();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilert
