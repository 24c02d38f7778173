#include "frontend/frontend.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/access.h"
#include "frontend/interpreter.h"
#include "frontend/legalize.h"
#include "frontend/parser.h"
#include "frontend/quote.h"
#include "frontend/row_reductions.h"
#include "frontend/siblings.h"

namespace tilert::frontend {
namespace {

// Offsets are 32 bits; a source this long is a mistake.
constexpr size_t kMaxSource = 16u << 20;

// The last part of `T.prim_func`, `tilelang.jit(...)`, `jit`; "" if it is another package's.
std::string DecoratorName(ast::ExprPtr decorator) {
  if (const auto* call = decorator->As<ast::Call>()) decorator = call->callee;
  const auto* attribute = decorator->As<ast::Attribute>();
  ast::ExprPtr root = decorator;
  while (const auto* outer = root->As<ast::Attribute>()) root = outer->value;
  const auto* name = root->As<ast::Name>();
  if (name == nullptr || name->id == "triton") return "";
  return attribute ? attribute->name : name->id;
}

bool HasDecorator(const ast::FunctionDef& function, std::string_view wanted) {
  return std::any_of(function.decorators.begin(), function.decorators.end(),
                     [&](ast::ExprPtr d) { return DecoratorName(d) == wanted; });
}

bool HoldsPrimFunc(const ast::Body& body) {
  for (const ast::Stmt* stmt : body) {
    if (const auto* function = stmt->As<ast::FunctionDef>()) {
      if (HasDecorator(*function, "prim_func") || HoldsPrimFunc(function->body)) return true;
    } else if (const auto* choice = stmt->As<ast::If>()) {
      if (HoldsPrimFunc(choice->then) || HoldsPrimFunc(choice->otherwise)) return true;
    }
  }
  return false;
}

bool IsEntry(const ast::FunctionDef& function) {
  if (HasDecorator(function, "macro")) return false;
  return HasDecorator(function, "prim_func") || HasDecorator(function, "jit") || HasDecorator(function, "lazy_jit") ||
         HoldsPrimFunc(function.body);
}

bool IsTensorAnnotation(ast::ExprPtr annotation) {
  if (annotation == nullptr) return false;
  if (const auto* call = annotation->As<ast::Call>()) annotation = call->callee;
  if (const auto* subscript = annotation->As<ast::Subscript>()) annotation = subscript->value;
  const auto* attribute = annotation->As<ast::Attribute>();
  const auto* module = attribute ? attribute->value->As<ast::Name>() : nullptr;
  return module && module->id == "T";
}

// The eager style describes its parameters in the body: `A: T.Tensor(...)`.
bool IsDescribedIn(const ast::Body& body, const std::string& name) {
  return std::any_of(body.begin(), body.end(), [&](const ast::Stmt* stmt) {
    const auto* annotated = stmt->As<ast::AnnAssign>();
    const auto* target = annotated ? annotated->target->As<ast::Name>() : nullptr;
    return target && target->id == name && IsTensorAnnotation(annotated->annotation);
  });
}

absl::Status CheckSize(const std::string& text, const std::string& file_name) {
  if (text.size() <= kMaxSource) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file_name, ": a source of ", text.size(), " bytes is too long; the limit is ", kMaxSource));
}

// Writes what sources may say and programs may not in terms of what programs have.
absl::Status Finish(const Interpreter& interpreter, Program* program) {
  LowerReductionExpressions(interpreter.views(), interpreter.thread_uses(), program);
  const absl::StatusOr<std::vector<BufferId>> numbers = Legalize(interpreter.views(), interpreter.reducers(), program);
  if (!numbers.ok()) return numbers.status();
  if (absl::Status status = StructureThreads(interpreter.thread_uses(), program); !status.ok()) return status;
  std::vector<Interpreter::TensorParam> tensors = interpreter.tensor_params();
  for (Interpreter::TensorParam& tensor : tensors) tensor.buffer = (*numbers)[tensor.buffer];
  FinishParams(tensors, program);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Entry>> ListEntries(const std::string& text, const std::string& file_name) {
  if (absl::Status status = CheckSize(text, file_name); !status.ok()) return status;
  const SourceFile source(file_name, text);
  Diagnostics diagnostics(&source);
  const std::unique_ptr<ast::Module> module = ParseModule(&diagnostics);
  if (!diagnostics.ok()) return diagnostics.ToStatus();
  std::vector<Entry> entries;
  for (const ast::Stmt* stmt : module->body) {
    const auto* function = stmt->As<ast::FunctionDef>();
    if (function == nullptr || !IsEntry(*function)) continue;
    Entry entry;
    entry.name = function->name;
    entry.line = source.PositionOf(function->name_range.begin).line;
    for (const ast::Param& param : function->params) {
      EntryParam info{param.name, "", IsTensorAnnotation(param.annotation) || IsDescribedIn(function->body, param.name)};
      if (param.default_value) info.default_text = std::string(source.Text(param.default_value->range));
      entry.params.push_back(std::move(info));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<Program> Compile(const std::string& text, const std::string& file_name, const std::string& entry,
                                const Settings& settings, std::string* warnings, const ModuleReader& read_module) {
  if (absl::Status status = CheckSize(text, file_name); !status.ok()) return status;
  const SourceFile source(WithSiblings(text, file_name, read_module));
  Diagnostics diagnostics(&source);
  const std::unique_ptr<ast::Module> module = ParseModule(&diagnostics);
  if (!diagnostics.ok()) return diagnostics.ToStatus();
  KeepImported(source, module.get());
  ProgramBuilder builder(entry);
  Interpreter interpreter(*module, &diagnostics, &builder, &settings);
  if (!interpreter.CompileEntry(entry) || !diagnostics.ok()) return diagnostics.ToStatus();
  if (interpreter.fast_math()) builder.SetFastMath(true);
  absl::StatusOr<Program> program = builder.Build();
  if (!program.ok()) return program;
  if (absl::Status status = Finish(interpreter, &*program); !status.ok())
    return absl::InvalidArgumentError(WithSourceLines(source, *module, std::string(status.message())));
  if (warnings != nullptr) *warnings = diagnostics.Render();
  return program;
}

std::string Quote(const std::string& text, const std::string& file_name, const std::string& message,
                  const ModuleReader& read_module) {
  const SourceFile source(WithSiblings(text, file_name, read_module));
  Diagnostics diagnostics(&source);
  return WithSourceLines(source, *ParseModule(&diagnostics), message);
}

}  // namespace tilert::frontend
