// docs/ir_spec.md sections 2 and 3: types of expressions, and the types that statements expect of them.
#include "ir/verify_context.h"

namespace tilert::verify {
namespace {

bool IsFloat8(DType type) { return IsFloat(type) && DTypeBits(type) == 8; }
bool IsRealFloat(DType type) { return IsFloat(type) && !IsFloat8(type); }
bool IsBool(DType type) { return type == DType::kBool; }

// What an operator takes; each also requires operands of one type, which is the type of the result unless it gives bool.
enum class Domain : uint8_t { kNumber, kRealFloat, kFloat, kInteger, kIntegerOrBool, kBool, kAny };

Domain DomainOf(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kMin:
    case ExprOp::kMax:
    case ExprOp::kNeg:
    case ExprOp::kAbs: return Domain::kNumber;
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
    case ExprOp::kShl:
    case ExprOp::kShr:
    case ExprOp::kBitNot:
    case ExprOp::kPopcount: return Domain::kInteger;
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr:
    case ExprOp::kBitXor: return Domain::kIntegerOrBool;
    case ExprOp::kAnd:
    case ExprOp::kOr:
    case ExprOp::kNot: return Domain::kBool;
    case ExprOp::kIsNan:
    case ExprOp::kIsInf: return Domain::kFloat;
    default: return IsComparison(op) ? Domain::kAny : Domain::kRealFloat;
  }
}

bool InDomain(DType type, Domain domain) {
  switch (domain) {
    case Domain::kNumber: return IsInteger(type) || IsRealFloat(type);
    case Domain::kRealFloat: return IsRealFloat(type);
    case Domain::kFloat: return IsFloat(type);
    case Domain::kInteger: return IsInteger(type);
    case Domain::kIntegerOrBool: return IsInteger(type) || IsBool(type);
    case Domain::kBool: return IsBool(type);
    case Domain::kAny: return true;
  }
  return false;
}

std::string_view DomainText(Domain domain, DType type) {
  if (IsFloat8(type) && (domain == Domain::kNumber || domain == Domain::kRealFloat))
    return "computes in wider floats: cast to float32 or float16 first";
  switch (domain) {
    case Domain::kNumber: return "needs numbers: cast first";
    case Domain::kRealFloat:
    case Domain::kFloat: return "needs floats: cast first";
    case Domain::kInteger: return "needs integers: cast first";
    case Domain::kIntegerOrBool: return "needs integers or bools: cast first";
    case Domain::kBool: return "needs bools: compare first";
    case Domain::kAny: break;
  }
  return "";
}

std::string LeafError(const ExprNode& node, DType expected) {
  return node.dtype == expected ? ""
                                : Cat("a ", ExprOpText(node.op), " of type ", DTypeName(expected), " is used as ",
                                      DTypeName(node.dtype), ": cast it");
}

std::string LoadError(const Program& p, const ExprNode& node) {
  const Buffer& b = p.buffers[node.i];
  if (b.scope == Scope::kBarrier)
    return Cat("'", b.name, "' is a barrier and has no elements to read: wait for it with T.barrier_wait");
  if (node.args.size() != b.shape.size())
    return Cat("'", b.name, "' has ", b.shape.size(), " dimensions and is read with ", node.args.size(),
               " subscripts: give one for each");
  for (Expr arg : node.args) {
    if (p.exprs[arg].dtype != DType::kIndex)
      return Cat("a subscript of '", b.name, "' is ", DTypeName(p.exprs[arg].dtype), ": cast it to index");
  }
  return LeafError(node, b.dtype);
}

std::string OperatorError(const Program& p, const ExprNode& node) {
  const Domain domain = DomainOf(node.op);
  const DType type = p.exprs[node.args[0]].dtype;
  for (Expr arg : node.args) {
    const DType found = p.exprs[arg].dtype;
    if (!InDomain(found, domain)) return Cat("'", ExprOpText(node.op), "' on ", DTypeName(found), " ", DomainText(domain, found));
    if (found != type)
      return Cat("'", ExprOpText(node.op), "' on ", DTypeName(type), " and ", DTypeName(found), ": cast one of them");
  }
  const bool gives_bool =
      IsComparison(node.op) || domain == Domain::kBool || node.op == ExprOp::kIsNan || node.op == ExprOp::kIsInf;
  const DType result = gives_bool ? DType::kBool : type;
  return node.dtype == result ? ""
                              : Cat("'", ExprOpText(node.op), "' on ", DTypeName(type), " gives ", DTypeName(result), ", not ",
                                    DTypeName(node.dtype), ": cast the result");
}

std::string SelectError(const Program& p, const ExprNode& node) {
  const DType cond = p.exprs[node.args[0]].dtype, a = p.exprs[node.args[1]].dtype, b = p.exprs[node.args[2]].dtype;
  if (!IsBool(cond)) return Cat("the condition of if_then_else is ", DTypeName(cond), ": compare first");
  return a == b && a == node.dtype
             ? ""
             : Cat("if_then_else chooses between ", DTypeName(a), " and ", DTypeName(b), ": cast one of them");
}

}  // namespace

std::string NodeTypeError(const Program& p, const ExprNode& node) {
  switch (node.op) {
    case ExprOp::kIntImm:
    case ExprOp::kFloatImm: return "";
    case ExprOp::kDim:
    case ExprOp::kConstant: return LeafError(node, DType::kIndex);
    case ExprOp::kScalar: return LeafError(node, p.scalars[node.i].dtype);
    case ExprOp::kVar: return LeafError(node, p.vars[node.i].dtype);
    case ExprOp::kLoad: return LoadError(p, node);
    case ExprOp::kCast: return "";
    case ExprOp::kReinterpret: {
      const DType from = p.exprs[node.args[0]].dtype;
      return DTypeBits(from) == DTypeBits(node.dtype)
                 ? ""
                 : Cat("reinterpret from ", DTypeName(from), " to ", DTypeName(node.dtype),
                       ", which has another width: cast, or reinterpret as a type of ", DTypeBits(from), " bits");
    }
    case ExprOp::kSelect: return SelectError(p, node);
    default: return OperatorError(p, node);
  }
}

namespace {

class TypeChecker {
 public:
  explicit TypeChecker(Context& c) : c_(c) {
    for (const ExprNode& node : c.p.exprs.nodes()) node_errors_.push_back(NodeTypeError(c.p, node));
  }
  void Run();

 private:
  // Reports the first wrong node of `e`; true when there is none.
  bool Well(Expr e);
  void Expect(Expr e, DType type, std::string_view what) {
    if (!Well(e) || c_.TypeOf(e) == type) return;
    c_.Error(what, " is ", DTypeName(c_.TypeOf(e)), ", not ", DTypeName(type),
             type == DType::kBool ? ": compare first" : ": cast it");
  }
  void ExpectAll(const std::vector<Expr>& list, std::string_view what) {
    for (Expr e : list) Expect(e, DType::kIndex, what);
  }
  void Box(const Region& r) {
    ExpectAll(r.start, "the start of a region");
    ExpectAll(r.extent, "the extent of a region");
  }
  void Var(VarId id, DType type, std::string_view what) {
    if (c_.p.vars[id].dtype != type)
      c_.Error(what, " '", c_.p.vars[id].name, "' is ", DTypeName(c_.p.vars[id].dtype), ", not ", DTypeName(type));
  }
  void Check(const Stmt& stmt);

  Context& c_;
  std::vector<std::string> node_errors_;
};

bool TypeChecker::Well(Expr e) {
  bool well = true;
  ForEachNode(c_.p.exprs, e, [&](Expr id, const ExprNode&) {
    if (well && !node_errors_[id.id].empty()) {
      c_.Error(node_errors_[id.id], " (in ", c_.Text(id), ")");
      well = false;
    }
  });
  return well;
}

void TypeChecker::Check(const Stmt& stmt) {
  std::visit(Overloaded{
                 [](const auto&) {},
                 [&](const Copy& s) {
                   if (s.fill) Well(s.fill);
                   ExpectAll(s.barrier_indices, "a subscript");
                 },
                 [&](const Fill& s) { Well(s.value); },
                 [&](const Parallel& s) {
                   ExpectAll(s.extents, "the extent of a parallel loop");
                   for (VarId var : s.vars) Var(var, DType::kIndex, "loop variable");
                 },
                 [&](const For& s) {
                   ExpectAll({s.begin, s.end, s.step}, "a bound of a loop");
                   Expect(s.num_stages, DType::kIndex, "num_stages");
                   if (s.split) Expect(s.split, DType::kIndex, "split");
                   Var(s.var, DType::kIndex, "loop variable");
                 },
                 [&](const While& s) { Expect(s.cond, DType::kBool, "the condition"); },
                 [&](const If& s) { Expect(s.cond, DType::kBool, "the condition"); },
                 [&](const Let& s) {
                   if (Well(s.value)) Var(s.var, c_.TypeOf(s.value), "variable");
                 },
                 [&](const Shuffle& s) {
                   if (Well(s.value)) Var(s.var, c_.TypeOf(s.value), "variable");
                   Expect(s.lane, DType::kIndex, "the lane of a shuffle");
                 },
                 [&](const Store& s) {
                   ExpectAll(s.indices, "a subscript");
                   Well(s.value);
                 },
                 [&](const Atomic& s) {
                   ExpectAll(s.indices, "a subscript");
                   Well(s.value);
                   if (s.prev != kNoId) Var(s.prev, c_.p.buffers[s.buffer].dtype, "variable");
                 },
                 [&](const Annotate& s) {
                   for (Expr e : s.args) Well(e);
                 },
                 [&](const Print& s) {
                   for (Expr e : s.args) Well(e);
                 },
                 [&](const Assert& s) { Expect(s.cond, DType::kBool, "the condition"); },
                 [&](const ThreadRegion& s) { Var(s.thread, DType::kIndex, "thread variable"); },
                 [&](const Roles& s) {
                   for (const Role& role : s.roles) ExpectAll({role.thread_begin, role.thread_end}, "a bound of a role");
                 },
                 [&](const BarrierOp& s) {
                   ExpectAll(s.indices, "a subscript");
                   if (s.operand) Expect(s.operand, DType::kIndex, "the operand");
                 },
             },
             stmt.op);
  ForEachRegion(stmt, [&](const Region& r, bool, bool) { Box(r); });
}

void TypeChecker::Run() {
  for (size_t i = 0; i < c_.p.buffers.size(); ++i) {
    auto scope = c_.path.Enter("buffers", i);
    c_.loc = c_.p.buffers[i].loc;
    ExpectAll(c_.p.buffers[i].shape, "an extent");
    ExpectAll(c_.p.buffers[i].strides, "a stride");
  }
  c_.loc = {};
  for (size_t i = 0; i < c_.p.assumptions.size(); ++i) {
    auto scope = c_.path.Enter("assumptions", i);
    Expect(c_.p.assumptions[i], DType::kBool, "an assumption");
  }
  for (size_t i = 0; i < c_.p.launches.size(); ++i) {
    const Launch& launch = c_.p.launches[i];
    auto scope = c_.path.Enter("launches", i);
    c_.loc = launch.loc;
    ExpectAll(launch.grid, "a grid extent");
    ExpectAll(launch.cluster, "a cluster extent");
    Expect(launch.threads, DType::kIndex, "the number of threads");
    for (VarId var : launch.block_vars) Var(var, DType::kIndex, "block variable");
  }
  c_.ForEachStmt([&](const Stmt& stmt) { Check(stmt); });
}

}  // namespace

void CheckTypes(Context& c) { TypeChecker(c).Run(); }

}  // namespace tilert::verify
