#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/evaluator.h"

namespace tilert::frontend {

// Executes statements: outer functions as Python would, the bodies of kernels into the statements of a program.
//
// Inside a launch (T.Kernel) loops and conditions that are decided only at run time become statements; those that are known are
// decided here. Errors are collected: an erroneous value is poison, and execution goes on with the next statement.
class Interpreter : public Evaluator {
 public:
  Interpreter(const ast::Module& module, Diagnostics* diagnostics, ProgramBuilder* builder, const Settings* settings);

  // Evaluates the function `entry` of the module with the settings as its arguments and traces the kernel that it is or returns.
  // False after an error.
  bool CompileEntry(const std::string& entry);

  // A tensor parameter; `position` is its place in the calling order.
  struct TensorParam {
    BufferId buffer;
    bool infer_access;  // from what the statements do with it
    size_t position;
    SourceRange range;
  };
  const std::vector<TensorParam>& tensor_params() const { return tensor_params_; }
  bool fast_math() const { return fast_math_; }

 private:
  enum class Flow : uint8_t { kNormal, kBreak, kContinue, kReturn, kStop };

  void RunFunctionBody(const FunctionObject& function) override { ExecBody(function.definition->body); }
  void RunStatement(const ast::Stmt& stmt) override { Exec(stmt); }

  // --- exec.cc
  Flow ExecBody(const ast::Body& body);
  Flow Exec(const ast::Stmt& stmt);
  Value EvalPairwise(const ast::Sequence& targets, const ast::Sequence& values);
  Flow ExecExpression(const ast::ExprStmt& node);
  Flow ExecReturn(const ast::Return& node, SourceRange range);
  Flow ExecRaise(const ast::Raise& node, SourceRange range);
  Flow ExecAssert(const ast::Assert& node, SourceRange range);
  Flow ExecBreak(bool is_break, SourceRange range);
  Flow ExecImport(const ast::Import& node);
  Flow ExecScope(const ast::ScopeDecl& node, SourceRange range);
  // --- exec_assign.cc
  void Assign(ast::ExprPtr target, const Value& value, ast::ExprPtr source) override;
  bool Stores(ast::ExprPtr target);
  const Buf* MutableVariable(const std::string& name);
  void AssignName(const std::string& name, const Value& value, SourceRange range, bool copies);
  void AssignSubscript(const ast::Subscript& target, const Value& value, SourceRange range);
  void StoreRegion(const BufferRegion& region, const Value& value, SourceRange range);
  void Delete(ast::ExprPtr target);
  void AssignAugmented(const ast::AugAssign& node, SourceRange range);
  void AssignAnnotated(const ast::AnnAssign& node, SourceRange range);
  Value Bind(const std::string& name, const Value& value, SourceRange range);
  // --- exec_block.cc
  Flow ExecIf(const ast::If& node, SourceRange range);
  Flow ExecFor(const ast::For& node, SourceRange range);
  Flow ExecStaticFor(const ast::For& node, const std::vector<Value>& items);
  Flow ExecRuntimeFor(const ast::For& node, const LoopObject& loop, SourceRange range);
  Flow ExecWhile(const ast::While& node, SourceRange range);
  Flow ExecStaticWhile(const ast::While& node);
  Flow ExecIfScope(const ast::With& node, const ast::Call& scope, SourceRange range);
  Flow ExecWith(const ast::With& node, size_t item, SourceRange range);
  bool OpenContext(const ContextObject& context, ast::ExprPtr target, SourceRange range);
  std::vector<Value> OpenLoop(const LoopObject& loop, const std::vector<std::string>& names, int* opened);
  std::vector<Value> OpenDomain(const LoopObject& loop);
  // Runs the body of a block of the program.
  Flow RunBlock(const ast::Body& body, bool is_loop);
  void MarkCarried(const ast::Body& body);
  void Forget(const std::vector<std::string>& names, SourceRange range, const char* what);
  void SetLocation(SourceRange range);
  // --- entry.cc
  void DeclareModuleSymbols();
  Value Argument(const FunctionObject& function, size_t index, const Value& config);
  Value FirstConfig(const FunctionObject& function);
  Value EvalFirstConfig(const FunctionObject& function);
  Value DeclareParam(const std::string& name, const Value& annotation, SourceRange range, size_t position);
  Value DeclareTensor(const std::string& name, const TensorSpec& spec, SourceRange range, size_t position);
  bool TracePrimFunc(const FunctionObject& function);
  bool CompileFunction(const FunctionObject& function);
  bool TraceResult(const FunctionObject& function, const Value& result, SourceRange range = {});

  // The file of a place in the source, in the program's table.
  uint32_t FileAt(uint32_t offset);

  std::vector<std::optional<uint32_t>> file_of_part_;
  std::vector<TensorParam> tensor_params_;
  absl::flat_hash_map<std::string, size_t> tensor_positions_;  // parameters of the eager function that wait for a description
};

}  // namespace tilert::frontend
