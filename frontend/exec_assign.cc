#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/interpreter.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

constexpr int kMaxInlined = 24;

// True for arithmetic on integers without loads, unless it is long: that is written out wherever the name is used, which
// leaves subscripts readable to whoever analyses them. `budget` counts nodes.
bool IsInlined(const ExprArena& arena, Expr e, int* budget) {
  const ExprNode& node = arena[e];
  if (node.op == ExprOp::kLoad || --*budget < 0) return false;
  if (node.args.empty()) return true;
  if (IsFloat(node.dtype)) return false;
  for (const Expr arg : node.args) {
    if (!IsInlined(arena, arg, budget)) return false;
  }
  return true;
}

}  // namespace

void Interpreter::Assign(ast::ExprPtr target, const Value& value, ast::ExprPtr source) {
  if (const auto* name = target->As<ast::Name>()) {
    return AssignName(name->id, value, target->range, source != nullptr && source->As<ast::Name>());
  }
  if (const auto* subscript = target->As<ast::Subscript>()) return AssignSubscript(*subscript, value, target->range);
  const auto* sequence = target->As<ast::Sequence>();
  if (sequence == nullptr) {
    Fail(target->range, "only names and elements can be assigned to here", "write name = … or A[i] = …");
    return;
  }
  if (value.poisoned() || value.Is<Host>()) {
    for (const ast::ExprPtr item : sequence->items) Assign(item, value, nullptr);
    return;
  }
  auto items = Items(value, target->range, "what is unpacked");
  if (!items) return;
  if (Stores(target)) {
    for (Value& item : *items) item = Now("value", item, target->range);
  }
  const size_t count = sequence->items.size();
  for (size_t i = 0; i < count; ++i) {
    const auto* starred = sequence->items[i]->As<ast::Starred>();
    if (starred == nullptr) continue;
    if (items->size() + 1 < count) break;
    const auto middle = items->begin() + i;
    const auto tail = items->end() - (count - i - 1);
    for (size_t k = 0; k < i; ++k) Assign(sequence->items[k], (*items)[k], nullptr);
    Assign(starred->value, List(std::vector<Value>(middle, tail)), nullptr);
    for (size_t k = i + 1; k < count; ++k) Assign(sequence->items[k], *(tail + (k - i - 1)), nullptr);
    return;
  }
  if (items->size() != count) {
    Fail(target->range, absl::StrCat(count, " names cannot take ", items->size(), items->size() == 1 ? " value" : " values"));
    return;
  }
  for (size_t i = 0; i < count; ++i) Assign(sequence->items[i], (*items)[i], nullptr);
}

// Does an assignment to it change memory that what is still to be assigned may read?
bool Interpreter::Stores(ast::ExprPtr target) {
  if (!in_launch_) return false;
  if (const auto* name = target->As<ast::Name>()) return MutableVariable(name->id) != nullptr;
  if (const auto* starred = target->As<ast::Starred>()) return Stores(starred->value);
  const auto* sequence = target->As<ast::Sequence>();
  if (sequence == nullptr) return true;
  return std::any_of(sequence->items.begin(), sequence->items.end(), [&](ast::ExprPtr item) { return Stores(item); });
}

// The variable that an assignment to the name writes; null where it binds the name anew, as it does with the parameters of a
// function of the host's: it was given the value.
const Buf* Interpreter::MutableVariable(const std::string& name) {
  const Value* old = scope_->FindHere(name);
  const auto* variable = old ? old->As<Buf>() : nullptr;
  if (variable == nullptr || !IsSymbolic(*old)) return nullptr;
  if (frame_ == nullptr || frame_->traced) return variable;
  const std::vector<ast::Param>& params = *frame_->function->params;
  const auto param = std::find_if(params.begin(), params.end(), [&](const ast::Param& p) { return p.name == name; });
  return param == params.end() || IsReference(*param) ? variable : nullptr;
}

// `copies`: the value comes from another name, so that a mutable variable gives its present value.
void Interpreter::AssignName(const std::string& name, const Value& value, SourceRange range, bool copies) {
  const Buf* variable = MutableVariable(name);
  const bool is_new_variable = value.Is<Buf>() && !copies;
  if (variable && in_launch_ && IsNumber(value) && !is_new_variable) {
    if (const Val number = Number(value, range, absl::StrCat("the value of '", name, "'")))
      builder_->Store(*variable, {}, number);
    return;
  }
  const bool reads_variable = copies && in_launch_ && value.Is<Buf>() && IsSymbolic(value);
  scope_->Set(name, Bind(name, reads_variable ? Wrap(Number(value, range, name)) : value, range));
}

// What a name stands for in a kernel: elements are read now; what is computed is computed once.
Value Interpreter::Bind(const std::string& name, const Value& value, SourceRange range) {
  if (const auto* spec = value.Object<const TensorSpec>(); spec && spec->kind == TensorSpec::Kind::kEmpty) {
    if (eager_) return DeclareTensor(name, *spec, range, tensor_positions_.size() + tensor_params_.size() + 1000);
    return Fail(range, "T.empty makes an output only in a @tilelang.jit function that is itself the kernel",
                "make it a parameter of the @T.prim_func");
  }
  if (!in_launch_ || frame_ == nullptr || !frame_->traced || value.Is<Buf>() || !IsSymbolic(value)) return value;
  const Val number = Number(value, range, name);
  if (!number) return Poison{};
  int budget = kMaxInlined;
  return IsInlined(builder_->exprs(), number.expr(), &budget) ? number : builder_->Let(name, number);
}

void Interpreter::AssignSubscript(const ast::Subscript& target, const Value& value, SourceRange range) {
  const Value object = Eval(target.value);
  const Value index = Eval(target.index);
  if (object.poisoned() || index.poisoned() || value.poisoned()) return;
  if (const auto* buffer = object.As<Buf>()) {
    const Value part = SubscriptBuffer(*buffer, index, range);
    if (part.Is<Buf>()) {  // a variable
      if (const Val number = Number(value, range, "the assigned value")) builder_->Store(*buffer, {}, number);
    } else if (const auto* region = part.Object<const BufferRegion>()) {
      StoreRegion(*region, value, range);
    }
    return;
  }
  if (auto* dict = object.Object<DictObject>()) {
    for (auto& [k, v] : dict->items) {
      if (Equal(k, index)) {
        v = value;
        return;
      }
    }
    dict->items.emplace_back(index, value);
    return;
  }
  auto* sequence = object.Object<SequenceObject>();
  if (sequence == nullptr || sequence->kind != SequenceKind::kList) {
    Wrong(object, target.value->range, "what is assigned to", "a buffer, a list or a dict");
    return;
  }
  const std::optional<int64_t> i = Int(index, target.index->range, "the subscript");
  if (!i) return;
  const auto size = static_cast<int64_t>(sequence->items.size());
  if (*i < -size || *i >= size) {
    Fail(range, absl::StrCat("subscript ", *i, " is outside a list of ", size));
    return;
  }
  sequence->items[*i < 0 ? *i + size : *i] = value;
}

// Items of lists and dicts; of a name nothing depends on whether it is still there.
void Interpreter::Delete(ast::ExprPtr target) {
  if (const auto* sequence = target->As<ast::Sequence>()) {
    for (const ast::ExprPtr item : sequence->items) Delete(item);
    return;
  }
  if (target->As<ast::Name>()) return;
  const auto* subscript = target->As<ast::Subscript>();
  const Value object = subscript ? Eval(subscript->value) : Value(NoneValue{});
  const Value index = subscript ? Eval(subscript->index) : Value(NoneValue{});
  if (object.poisoned() || index.poisoned() || object.Is<Host>()) return;
  if (auto* dict = object.Object<DictObject>()) {
    const auto is_it = [&](const auto& item) { return Equal(item.first, index); };
    const auto found = std::find_if(dict->items.begin(), dict->items.end(), is_it);
    if (found != dict->items.end()) return void(dict->items.erase(found));
  }
  auto* list = object.Object<SequenceObject>();
  const auto* at = index.As<int64_t>();
  if (list != nullptr && list->kind == SequenceKind::kList && at != nullptr) {
    const auto size = static_cast<int64_t>(list->items.size());
    const int64_t i = *at < 0 ? *at + size : *at;
    if (i >= 0 && i < size) return void(list->items.erase(list->items.begin() + i));
  }
  Fail(target->range, "only items that a list or dict has can be deleted", "make a list of what stays");
}

void Interpreter::StoreRegion(const BufferRegion& region, const Value& value, SourceRange range) {
  const std::string& name = region.buffer.buffer().name;
  if (!in_launch_) {
    Fail(range, absl::StrCat("'", name, "' can be written only inside a launch"), "put it under `with T.Kernel(...) as bx:`");
    return;
  }
  if (region.IsElement() || IsNumber(value)) {
    const Val number = Number(value, range, absl::StrCat("what is stored in '", name, "'"));
    if (!number) return;
    if (region.IsElement()) {
      builder_->Store(region.buffer, region.start, number);
    } else {
      builder_->Fill(ToTile(region), number);
    }
    return;
  }
  const auto source = Region(value, range, absl::StrCat("what is stored in a part of '", name, "'"));
  if (source) builder_->Copy(ToTile(*source), ToTile(region));
}

void Interpreter::AssignAugmented(const ast::AugAssign& node, SourceRange range) {
  if (const auto* name = node.target->As<ast::Name>()) {
    const Value old = EvalName(name->id, node.target->range);
    const Value value = Eval(node.value);
    if (auto* list = old.Object<SequenceObject>(), *more = value.Object<SequenceObject>();
        list && more && list->kind == SequenceKind::kList && node.op == ast::BinaryOp::kAdd) {
      const std::vector<Value> added = more->items;
      Spend(added.size());
      list->items.insert(list->items.end(), added.begin(), added.end());
      return;
    }
    if (old.Is<Buf>() && !IsSymbolic(old)) {
      Fail(range, absl::StrCat("the whole buffer '", name->id, "' cannot be changed at once"),
           "write a loop: for i in T.Parallel(n): A[i] += …");
      return;
    }
    return AssignName(name->id, BinaryOperator(node.op, old, value, range), range, false);
  }
  const auto* subscript = node.target->As<ast::Subscript>();
  if (subscript == nullptr) {
    Fail(node.target->range, "only names and elements can be assigned to here");
    return;
  }
  const Value object = Eval(subscript->value);
  const auto* buffer = object.As<Buf>();
  if (buffer == nullptr) return Assign(node.target, BinaryOperator(node.op, Eval(node.target), Eval(node.value), range), nullptr);
  const Value index = Eval(subscript->index);
  if (index.poisoned()) return;
  const Value element = SubscriptBuffer(*buffer, index, node.target->range);
  const Value value = BinaryOperator(node.op, element, Eval(node.value), range);
  if (value.poisoned()) return;
  if (const auto* region = element.Object<const BufferRegion>()) return StoreRegion(*region, value, range);
  if (const Val number = Number(value, range, "the assigned value")) builder_->Store(*buffer, {}, number);
}

// `A: T.Tensor(shape, dtype)` describes a parameter of the eager function; elsewhere an annotation changes nothing.
void Interpreter::AssignAnnotated(const ast::AnnAssign& node, SourceRange range) {
  const auto* name = node.target->As<ast::Name>();
  if (node.value != nullptr) {
    if (name) name_hint_ = name->id;
    const Value value = Eval(node.value);
    name_hint_.clear();
    return Assign(node.target, value, node.value);
  }
  if (name == nullptr) return;
  const Value annotation = Eval(node.annotation);
  const auto waiting = tensor_positions_.find(name->id);
  if (waiting == tensor_positions_.end()) {
    if (annotation.Object<const TensorSpec>()) {
      Fail(range, absl::StrCat("'", name->id, "' is no parameter of this function"),
           "add it to the parameters, or make it with T.empty");
    }
    return;
  }
  scope_->Set(name->id, DeclareParam(name->id, annotation, node.annotation->range, waiting->second));
}

}  // namespace tilert::frontend
