#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/builtin.h"
#include "frontend/context.h"
#include "frontend/frame.h"
#include "frontend/name_scope.h"
#include "frontend/thread_structure.h"

namespace tilert::frontend {

// Evaluates expressions, calls and, on demand, the names of the module. Nothing at module level is evaluated unless a kernel asks
// for it, so that host code needs no meaning here.
class Evaluator : public Context {
 public:
  Evaluator(const ast::Module& module, Diagnostics* diagnostics, ProgramBuilder* builder, const Settings* settings);
  virtual ~Evaluator();

  // --- for the functions of the language
  Value CallValue(const Value& callee, std::vector<Value> args, SourceRange range);
  // The name that the result of the call will be assigned to, or `otherwise`.
  std::string NameHint(std::string_view otherwise) const;
  bool in_launch() const { return in_launch_; }
  // False, after a report, if the call stands outside T.Kernel.
  bool RequireLaunch(const Args& args);
  bool eager() const { return eager_; }
  void SetFastMath() { fast_math_ = true; }
  LaunchThreads& threads() { return threads_; }
  Val ThreadNumber();
  const std::vector<ThreadUse>& thread_uses() const { return thread_uses_; }

 protected:
  // Runs the body of a function in frame_ and scope_.
  virtual void RunFunctionBody(const FunctionObject& function) = 0;
  // Runs one statement of the module.
  virtual void RunStatement(const ast::Stmt& stmt) = 0;

  // Binds the names of a target.
  virtual void Assign(ast::ExprPtr target, const Value& value, ast::ExprPtr source) = 0;
  // --- evaluate.cc, evaluate_display.cc, evaluate_subscript.cc, call.cc
  Value Eval(ast::ExprPtr expr);
  Value EvalName(const std::string& name, SourceRange range);
  Value EvalFString(const ast::FString& node);
  bool Step(SourceRange range);
  Value Attribute(const Value& object, const std::string& name, SourceRange range, SourceRange name_range);
  Value SubscriptBuffer(const Buf& buffer, const Value& index, SourceRange range);
  Value InvokeFunction(const FunctionObject& function, CallArgs args, SourceRange range);
  Value MakeFunction(const ast::FunctionDef& definition);
  // The value that it has here: what reads memory, which statements may change, is read now, under that name.
  Value Now(const std::string& name, const Value& value, SourceRange range);
  // --- host.cc
  Value CallHost(const Host& host, SourceRange range);
  Value HostAttribute(const Host& host, const std::string& name, SourceRange range);
  Value DeviceCapability(SourceRange range);
  Value Multiprocessors(SourceRange range);
  // --- module.cc
  const Value* FindGlobal(const std::string& name, SourceRange range);
  Value ImportedValue(const ast::Import& node, const std::string& name);
  // Is this an import from a source whose statements are part of the module?
  bool IsSibling(const ast::Import& node) const;
  // `path` as an attribute of a module: T.copy, T.float16, T.GemmWarpPolicy, math.pi.
  Value Member(const std::string& path, SourceRange range);

  const ast::Module& module_;
  NameScope* scope_ = nullptr;  // null at module level
  Frame* frame_ = nullptr;
  std::string name_hint_;
  bool in_launch_ = false;
  bool eager_ = false;  // in a @tilelang.jit function that is itself the kernel
  bool fast_math_ = false;
  bool no_warp_specialization_ = false;
  LaunchThreads threads_;
  std::vector<ThreadUse> thread_uses_;
  bool stopped_ = false;
  int depth_ = 0;

 private:
  Value EvalNode(const ast::Expr& expr);
  Value EvalBoolOp(const ast::BoolOp& node);
  Value EvalCompare(const ast::Compare& node, SourceRange range);
  Value EvalIfExp(const ast::IfExp& node);
  Value EvalSequence(const ast::Sequence& node);
  Value EvalDict(const ast::Dict& node);
  Value EvalComprehension(const ast::Comprehension& node);
  void RunGenerators(const ast::Comprehension& node, size_t index, SequenceObject* out, DictObject* dict);
  Value EvalLambda(const ast::Lambda& node);
  Value EvalSubscript(const ast::Subscript& node, SourceRange range);
  Value SubscriptSequence(const Value& object, const Value& index, SourceRange range);
  Value SubscriptDict(const DictObject& dict, const Value& key, SourceRange range);
  bool AddSlice(const Buf& buffer, size_t dim, const SliceObject& slice, SourceRange range, BufferRegion* region);
  Value EvalCall(const ast::Call& node, SourceRange range);
  bool EvalArguments(const ast::Call& node, CallArgs* args);
  Value Invoke(const Value& callee, CallArgs args, SourceRange range);
  Value InvokeBuiltin(const Builtin& builtin, CallArgs args, SourceRange range);
  bool BindParameters(const FunctionObject& function, CallArgs args, SourceRange range, NameScope* scope);
  Value InvokeDType(DType type, const CallArgs& args, SourceRange range);
  Value InvokeMethod(const Method& method, const CallArgs& args, SourceRange range);
  std::vector<Value> Defaults(const std::vector<ast::Param>& params);
  void Decorate(ast::ExprPtr decorator, FunctionObject* function);
  void IndexModule(const ast::Body& body, const ast::Stmt* owner);
  Value EvalBindings(const std::string& name, const std::vector<const ast::Stmt*>& bindings, SourceRange range);
  void ApplyBinding(const std::string& name, const ast::Stmt& stmt, SourceRange range);
  Value EvalGlobal(const std::string& name, const ast::Stmt& stmt, SourceRange range);
  Value UnpackGlobal(const ast::Assign& node, const std::string& name);
  std::string SimilarName(const std::string& name) const;

  absl::flat_hash_map<std::string, std::vector<const ast::Stmt*>> global_stmts_;
  absl::flat_hash_map<std::string, Value> globals_;
  absl::flat_hash_map<std::string, Value> partial_globals_;  // of the globals being evaluated, after the bindings so far
  std::vector<std::string> evaluating_;  // globals, to find cycles
  std::vector<std::string> star_imports_;
};

}  // namespace tilert::frontend
