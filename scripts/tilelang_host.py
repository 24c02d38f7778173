"""What the host program of a TileLang example passes to its kernels, found by reading it.

The host programs need torch and a GPU. HostReader walks over their statements with the values that it can know: numbers,
strings, dtypes, the defaults of functions and of argparse, the shapes of tensors. What it cannot know is UNKNOWN, and both ways of a condition
on it are taken. Each call of a function whose name is in `entries` is noted with its arguments.
"""
import ast
import builtins
import itertools
import math
import operator


class _Unknown:
    def __repr__(self):
        return "UNKNOWN"

    def __bool__(self):
        raise TypeError("unknown")

    def __iter__(self):
        raise TypeError("unknown")


UNKNOWN = _Unknown()
DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
          "float", "half", "double", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4"}


class DType(str):
    """A dtype of T or torch, by its name."""


class Tensor:
    def __init__(self, shape, dtype=None):
        self.shape, self.dtype = shape, dtype


class Module:
    def __init__(self, path):
        self.path = path


class Function:
    def __init__(self, node, closure, name=None):
        self.node, self.closure, self.name = node, closure, name or getattr(node, "name", "lambda")


class Entry:
    def __init__(self, name):
        self.name = name


class Namespace:
    """The arguments of a command line, at their defaults."""


class Return(Exception):
    def __init__(self, value):
        self.value = value


BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
          ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
          ast.BitOr: operator.or_, ast.BitXor: operator.xor}
COMPARE = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
           ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
SAFE = {name: getattr(builtins, name) for name in
        ("int", "float", "str", "bool", "len", "range", "min", "max", "sum", "abs", "list", "tuple", "dict", "zip", "enumerate", "sorted", "set")}
MAKERS = {"randn", "rand", "empty", "zeros", "ones", "full", "randint", "arange", "randperm"}
SAME = {"cuda", "half", "to", "contiguous", "clone", "detach", "requires_grad_", "float", "bfloat16", "normal_", "uniform_", "zero_", "type",
        "fill_", "abs", "random_", "int", "long", "clamp", "div_", "mul_", "exp", "sigmoid", "cpu", "to_sparse", "bool", "softmax"}
MAX_DEPTH, MAX_STEPS = 12, 20000


class HostReader:
    def __init__(self, tree, entries):
        self.entries = entries
        self.calls = []  # (entry, positional, keywords)
        self.depth = self.steps = 0
        self.globals = {}
        self.arguments = self.command_line(tree)
        self.functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name not in entries]
        self.run(tree.body, self.globals)

    def read_everything(self):
        """Calls every function with its defaults, for the calls of entries inside."""
        for node in self.functions:
            self.steps = 0
            self.call(Function(node, self.globals), [], {})

    @staticmethod
    def command_line(tree):
        found = Namespace()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                given = {k.arg: k.value for k in node.keywords}
                if names and "default" in given:
                    try:
                        setattr(found, names[-1].lstrip("-").replace("-", "_"), ast.literal_eval(given["default"]))
                    except ValueError:
                        pass
                elif names and "action" in given:
                    setattr(found, names[-1].lstrip("-").replace("-", "_"), False)
        return found

    # --- statements
    def run(self, body, env):
        for node in body:
            self.steps += 1
            if self.steps > MAX_STEPS:
                return
            self.statement(node, env)

    def statement(self, node, env):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                path = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
                name = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
                env[name] = Module(path if alias.asname or isinstance(node, ast.ImportFrom) else path.split(".")[0])
        elif isinstance(node, ast.FunctionDef):
            env[node.name] = Entry(node.name) if node.name in self.entries else Function(node, env)
        elif isinstance(node, ast.Assign):
            value = self.eval(node.value, env)
            for target in node.targets:
                self.assign(target, value, env)
        elif isinstance(node, ast.AnnAssign) and node.value:
            self.assign(node.target, self.eval(node.value, env), env)
        elif isinstance(node, ast.AugAssign):
            self.assign(node.target, self.binary(node.op, self.eval(node.target, env), self.eval(node.value, env)), env)
        elif isinstance(node, ast.Expr):
            self.eval(node.value, env)
        elif isinstance(node, ast.Return):
            raise Return(self.eval(node.value, env) if node.value else None)
        elif isinstance(node, ast.If):
            self.branch(node, env)
        elif isinstance(node, ast.For):
            self.loop(node, env)
        elif isinstance(node, (ast.With, ast.Try)):
            self.run(node.body, env)
        elif isinstance(node, ast.While):
            self.run(node.body, env)

    def branch(self, node, env):
        truth = self.truth(self.eval(node.test, env))
        if truth is not False:
            try:
                self.run(node.body, env)
            except Return:
                if truth:
                    raise
        if truth is not True:
            self.run(node.orelse, env)

    def loop(self, node, env):
        items = self.eval(node.iter, env)
        try:
            items = list(itertools.islice(items, 4))
        except TypeError:
            items = [UNKNOWN]
        for item in items or []:
            self.assign(node.target, item, env)
            self.run(node.body, env)

    def assign(self, target, value, env):
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = list(value) if isinstance(value, (tuple, list)) and len(value) == len(target.elts) else [UNKNOWN] * len(target.elts)
            for item, part in zip(target.elts, values):
                self.assign(item, part, env)

    # --- expressions
    def eval(self, node, env):
        try:
            return self.value(node, env)
        except Return:
            raise
        except Exception:  # whatever the host program would do with what it really has
            return UNKNOWN

    @staticmethod
    def truth(value):
        if isinstance(value, (Tensor, Module, Namespace)):
            return None
        try:
            return bool(value)
        except TypeError:
            return None

    def lookup(self, name, env):
        while env is not None:
            if name in env:
                return env[name]
            env = env.get("__outer__")
        return SAFE.get(name, UNKNOWN)

    def value(self, node, env):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return "__main__" if node.id == "__name__" else self.lookup(node.id, env)
        if isinstance(node, (ast.Tuple, ast.List)):
            items = []
            for item in node.elts:
                items += self.eval(item.value, env) if isinstance(item, ast.Starred) else [self.eval(item, env)]
            return tuple(items) if isinstance(node, ast.Tuple) else items
        if isinstance(node, ast.Dict):
            return {self.eval(k, env): self.eval(v, env) for k, v in zip(node.keys, node.values)}
        if isinstance(node, ast.BinOp):
            return self.binary(node.op, self.eval(node.left, env), self.eval(node.right, env))
        if isinstance(node, ast.UnaryOp):
            value = self.eval(node.operand, env)
            return {ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.inv, ast.UAdd: operator.pos}[type(node.op)](value)
        if isinstance(node, ast.BoolOp):
            return self.boolean(node, env)
        if isinstance(node, ast.Compare):
            left, right = self.eval(node.left, env), self.eval(node.comparators[0], env)
            known = len(node.ops) == 1 and left is not UNKNOWN and right is not UNKNOWN and not isinstance(left, (Tensor, Module))
            return COMPARE[type(node.ops[0])](left, right) if known else UNKNOWN
        if isinstance(node, ast.IfExp):
            truth = self.truth(self.eval(node.test, env))
            return UNKNOWN if truth is None else self.eval(node.body if truth else node.orelse, env)
        if isinstance(node, ast.Attribute):
            return self.attribute(self.eval(node.value, env), node.attr)
        if isinstance(node, ast.Subscript):
            value = self.eval(node.value, env)
            if isinstance(node.slice, ast.Slice):
                parts = [self.eval(p, env) if p else None for p in (node.slice.lower, node.slice.upper, node.slice.step)]
                return value[slice(*parts)] if isinstance(value, (list, tuple, str)) else UNKNOWN
            return value[self.eval(node.slice, env)] if isinstance(value, (list, tuple, dict)) else UNKNOWN
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.comprehension(node, env)
        if isinstance(node, ast.Lambda):
            return Function(node, env)
        if isinstance(node, ast.Call):
            return self.invoke(node, env)
        return UNKNOWN

    def binary(self, op, left, right):
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        try:
            return BINARY[type(op)](left, right)
        except Exception:
            return UNKNOWN

    def boolean(self, node, env):
        value = UNKNOWN
        for part in node.values:
            value = self.eval(part, env)
            truth = self.truth(value)
            if truth is None:
                return UNKNOWN
            if truth != isinstance(node.op, ast.And):
                break
        return value

    def comprehension(self, node, env):
        out, inner = [], {"__outer__": env}
        if len(node.generators) != 1:
            return UNKNOWN
        generator = node.generators[0]
        for item in itertools.islice(self.eval(generator.iter, env), 256):
            self.assign(generator.target, item, inner)
            if all(self.truth(self.eval(c, inner)) for c in generator.ifs):
                out.append(self.eval(node.elt, inner))
        return out

    def attribute(self, value, name):
        if isinstance(value, Module):
            if name in DTYPES:
                return DType({"float": "float32", "half": "float16", "double": "float64"}.get(name, name))
            return getattr(math, name) if value.path == "math" else Module(f"{value.path}.{name}")
        if isinstance(value, Tensor):
            return {"shape": value.shape, "dtype": value.dtype or UNKNOWN, "T": Tensor(tuple(reversed(value.shape)), value.dtype)}.get(name, (value, name))
        if isinstance(value, Namespace):
            return getattr(value, name, UNKNOWN)
        if isinstance(value, (str, list, dict, int)) and hasattr(value, name):
            return getattr(value, name)
        return (value, name) if isinstance(value, Entry) else UNKNOWN

    def invoke(self, node, env):
        callee = self.eval(node.func, env)
        args = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                rest = self.eval(arg.value, env)
                args += list(rest) if isinstance(rest, (list, tuple)) else []
            else:
                args.append(self.eval(arg, env))
        keywords = {}
        for keyword in node.keywords:
            value = self.eval(keyword.value, env)
            if keyword.arg:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                keywords.update(value)
        if isinstance(callee, Function):
            return self.call(callee, args, keywords)
        if isinstance(callee, Entry):
            return self.note(callee.name, args, keywords)
        if isinstance(callee, tuple) and len(callee) == 2:
            return self.method(callee[0], callee[1], args, keywords)
        if isinstance(callee, Module):
            return self.module_call(callee.path, args, keywords)
        return callee(*args, **keywords) if callable(callee) and callee is not UNKNOWN else UNKNOWN

    def note(self, name, args, keywords):
        self.calls.append((name, args, keywords))
        return UNKNOWN

    def method(self, value, name, args, keywords):
        if isinstance(value, Entry):
            return self.note(value.name, args, keywords)
        if isinstance(value, Tensor):
            if name in SAME:
                dtypes = [a for a in args if isinstance(a, DType)]
                return Tensor(value.shape, dtypes[0] if dtypes else {"half": DType("float16"), "bfloat16": DType("bfloat16")}.get(name, value.dtype))
            if name == "size":
                return value.shape[args[0]] if args else value.shape
            if name == "dim":
                return len(value.shape)
            if name in ("view", "reshape") and all(isinstance(a, int) and a >= 0 for a in args):
                return Tensor(tuple(args), value.dtype)
        if name in ("parse_args", "parse_known_args"):
            return self.arguments if name == "parse_args" else (self.arguments, [])
        return UNKNOWN

    def module_call(self, path, args, keywords):
        last = path.rsplit(".", 1)[-1]
        if last in ("cdiv", "ceildiv"):
            return -(-args[0] // args[1])
        if last == "next_power_of_2":
            return 1 << max(args[0] - 1, 0).bit_length()
        if path in ("math.ceil", "math.log2", "math.sqrt", "math.floor"):
            return getattr(math, last)(*args)
        if path == "itertools.product":
            return list(itertools.product(*args))
        if last in ("parse_args", "parse_known_args"):
            return self.arguments if last == "parse_args" else (self.arguments, [])
        if path.startswith("argparse."):
            return Module(path)
        if last.endswith("_like") and args and isinstance(args[0], Tensor):
            return Tensor(args[0].shape, keywords.get("dtype", args[0].dtype))
        if path.startswith("torch.") and last in MAKERS:
            if last == "randint":
                args = args[1:] if args and isinstance(args[1], (tuple, list)) else args[2:]
            if last == "full":
                args = args[:1]
            if "size" in keywords:
                args = [keywords["size"]]
            shape = args[0] if args and isinstance(args[0], (tuple, list)) else [a for a in args if not isinstance(a, DType)]
            return Tensor(tuple(shape), keywords.get("dtype"))
        return UNKNOWN

    def call(self, function, args, keywords):
        node = function.node
        if self.depth >= MAX_DEPTH:
            return UNKNOWN
        env = {"__outer__": function.closure}
        names = [a.arg for a in node.args.posonlyargs + node.args.args]
        for name in names + [a.arg for a in node.args.kwonlyargs]:
            env[name] = UNKNOWN
        for name, default in zip(names[len(names) - len(node.args.defaults):], node.args.defaults):
            env[name] = self.eval(default, function.closure)
        for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults):
            if default is not None:
                env[arg.arg] = self.eval(default, function.closure)
        env.update(zip(names, args))
        env.update({k: v for k, v in keywords.items() if k in env})
        self.depth += 1
        try:
            if isinstance(node, ast.Lambda):
                return self.eval(node.body, env)
            self.run(node.body, env)
            return None
        except Return as result:
            return result.value
        finally:
            self.depth -= 1
