// What the parts of the verifier share. One part a file, in the order of docs/ir_spec.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/printer.h"
#include "ir/status_util.h"
#include "ir/stmt_path.h"
#include "ir/verifier.h"

namespace tilert::verify {

// The program under check and where the check is. Its structure holds; constants stand for their first candidate.
class Context {
 public:
  Context(const Program& program, std::vector<VerifyError>& errors) : p(program), errors_(errors) {}

  template <typename... Parts>
  void Error(const Parts&... parts) {
    if (!full()) errors_.push_back({path.ToString(), PrintLoc(p, loc), Shortened(Cat(parts...))});
  }
  // No more errors are taken: whoever walks statements stops, so that hostile programs cannot buy time with messages.
  bool full() const { return errors_.size() >= kMaxVerifyErrors; }
  // "'A_shared'", as in the source.
  std::string Name(BufferId id) const { return Cat("'", p.buffers[id].name, "'"); }
  std::string Text(Expr e) const { return PrintExpr(p, e); }
  DType TypeOf(Expr e) const { return p.exprs[e].dtype; }

  // Calls `visit(stmt)` on every statement with path and loc set.
  template <typename Visit>
  void ForEachStmt(Visit visit) {
    for (size_t i = 0; i < p.launches.size(); ++i) {
      auto launch = path.Enter("launches", i);
      auto body = path.Enter("body");
      Walk(p.launches[i].body, visit);
    }
    loc = {};
  }

  const Program& p;
  StmtPath path;
  SourceLoc loc;

 private:
  static std::string Shortened(std::string message) {
    constexpr size_t kMaxMessage = 600;  // expressions and names may be long
    if (message.size() > kMaxMessage) message.replace(kMaxMessage, std::string::npos, " …");
    return message;
  }
  template <typename Visit>
  void Walk(const Block& block, Visit& visit) {
    for (size_t i = 0; i < block.size() && !full(); ++i) {
      auto scope = path.Enter("", i);
      loc = block[i].loc;
      visit(block[i]);
      const std::vector<const Block*> children = ChildBlocks(block[i]);
      for (size_t part = 0; part < children.size(); ++part) {
        auto nested = path.EnterPart(block[i], part);
        Walk(*children[part], visit);
      }
    }
  }

  std::vector<VerifyError>& errors_;
};

void CheckTables(Context& c);   // section 1: names, dims, constants, parameters, workspaces, launches
void CheckTypes(Context& c);    // sections 2 and 3: the type of every operand
void CheckScopes(Context& c);   // section 5: variables and buffers are used where they exist, and as their access allows
void CheckRegions(Context& c);  // sections 4 and 5: scopes, shapes and element types of each statement's operands
void CheckControl(Context& c);  // sections 6 and 7: which statement may stand where
void CheckLimits(Context& c);   // section 10

// Why the operands of `node` do not suit its operator; empty when they do.
std::string NodeTypeError(const Program& p, const ExprNode& node);

// Calls `visit(region, is_written, is_read)` on each region operand of `stmt`.
void ForEachRegion(const Stmt& stmt, const std::function<void(const Region&, bool, bool)>& visit);

// True when only dims, constants and numbers occur in `e`; `scalars`: scalar parameters too.
bool IsLaunchTime(const Program& p, Expr e, bool scalars = false);

}  // namespace tilert::verify
