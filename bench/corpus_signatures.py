"""What a kernel of a public collection would be launched with: types of its parameters, compile-time values, all guessed from text.

A parameter is a pointer where its name stands in front of what is loaded or stored, here or in a function that is called; its
element type goes by its name, as do the types of numbers. Compile-time values come from the first configuration, heuristics and
defaults, and from how the text uses them: a flag where it is a condition, a string where it is compared to one.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

_INDEX = re.compile(
    r"(?i)(idx|index|indices|ids?$|ids?_|seq_?len|offs|lens?$|length|label|target|table|slots?|loc|perm|count|chunk_ind|start|topk"
    r"|(^|_)pos(itions)?(_ptr)?$|metadata)"
)
_MASK = re.compile(r"(?i)mask")
_FLOAT = re.compile(
    r"(?i)(eps|scale|alpha|beta|gamma|(^|_)lr|^p$|rate|dropout|drop_p|smooth|cap$|capping|temperature|momentum|decay|bias_corr|factor"
    r"|slope|threshold|value$|n_non_ignore_f|min_val|max_val|gate|limit|norm$)"
)
_COUNT = re.compile(
    r"(?i)^(w|n?h|h[cqkv]|g|nc|ns|nt|t_?max|max_n\w*_per_block|.*iters?|num_.*|n_(heads?|stages|warps)|.*_stages|.*groups?.*)$"
)
_SUBTILE = re.compile(r"^(BC|BLOCK_C)$")
# What takes an address first; the second ones hand on the address that they take.
_MEMORY = (
    "load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg", "atomic_or", "atomic_and",
)
_ADDRESSES = ("make_block_ptr", "make_tensor_descriptor", "advance", "multiple_of", "max_contiguous")


@dataclass(frozen=True)
class Guess:
    """What one try takes for all that the text leaves open."""

    element: str
    block: int
    flag: bool


# In the order in which they are tried, until one is compiled.
GUESSES = (
    Guess("fp32", 64, True), Guess("fp16", 64, True), Guess("fp32", 64, False), Guess("fp16", 64, False), Guess("fp32", 32, True),
    Guess("bf16", 16, False), Guess("i32", 64, True),
)


@dataclass
class Plan:
    """One specialisation, in words that both compilers take; `constexprs` writes an element type as {"dtype": name}."""

    signature: dict[str, str] = field(default_factory=dict)
    constexprs: dict[str, Any] = field(default_factory=dict)
    keywords: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class NoSignature(Exception):
    """A kernel that needs what no text tells, such as a function."""


def inner(kernel: Any) -> Any:
    """The jit function below autotune, heuristics and what else wraps it; None where there is none."""
    for _ in range(8):
        if inspect.isfunction(getattr(kernel, "fn", None)) and hasattr(kernel, "params"):
            return kernel
        kernel = getattr(kernel, "fn", None)
    return None


def plan(kernel: Any, guess: Guess) -> Plan:
    """The specialisation of a kernel by one guess; raises NoSignature."""
    function = inner(kernel)
    uses = Uses(function.fn)
    made = Plan()
    given = _configured(kernel, made)
    for parameter in function.params:
        name = parameter.name
        if not parameter.is_constexpr and not (parameter.has_default and parameter.default is None and name not in uses.pointers):
            made.signature[name] = _type(parameter, uses, guess)
        elif name in given:
            made.constexprs[name] = _plain(given[name])
        elif parameter.has_default:
            made.constexprs[name] = _plain(parameter.default)
        else:
            made.constexprs[name] = _value(name, uses, guess)
    made.constexprs.update(_heuristic(kernel, made))
    return made


def _layers(kernel: Any) -> Iterator[Any]:
    function = inner(kernel)
    while kernel is not function:
        yield kernel
        kernel = kernel.fn


def _configured(kernel: Any, made: Plan) -> dict[str, Any]:
    """What the first configuration sets; its launch keywords go into the plan."""
    given: dict[str, Any] = {}
    for layer in _layers(kernel):
        for config in list(getattr(layer, "configs", None) or ())[:1]:
            given.update(config.kwargs)
            made.keywords.update({k: v for k in ("num_warps", "num_stages") if (v := getattr(config, k, None))})
    return given


def _heuristic(kernel: Any, made: Plan) -> dict[str, Any]:
    """What heuristics compute where every array is there and every number is 64, and 4 where its name says that it counts heads,
    groups or the like; nothing where they ask for more."""
    arguments: dict[str, Any] = {
        name: _Array() if kind.startswith("*") else 4 if _COUNT.match(name) else 64 for name, kind in made.signature.items()
    }
    arguments |= made.constexprs
    found: dict[str, Any] = {}
    for layer in reversed(list(_layers(kernel))):
        for name, computed in dict(getattr(layer, "values", None) or {}).items():
            try:
                value = _plain(computed({**arguments, **found}))
            except Exception:
                continue
            if name in made.constexprs:
                found[name] = value
            elif name in ("num_warps", "num_stages"):
                made.keywords[name] = value
    return found


class _Array:
    """An array that is there, and nothing more."""


def _plain(value: Any) -> Any:
    """A compile-time value as JSON has it; raises NoSignature for functions and whatever else has no text."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value).__name__ == "dtype":
        return {"dtype": value.name}
    raise NoSignature(f"a compile-time value of type {type(value).__name__}")


def _type(parameter: Any, uses: Uses, guess: Guess) -> str:
    name = parameter.name
    annotated = str(getattr(parameter, "annotation", "") or "")
    if annotated in ("i32", "i64", "fp32", "i1", "u32", "u64", "u8"):
        return annotated
    if name in uses.pointers or annotated.startswith("*") or re.search(r"(?i)(_ptrs?|pointer)$", name):
        if _INDEX.search(name):
            return "*i64"
        return "*i1" if _MASK.search(name) else f"*{guess.element}"
    return "fp32" if _FLOAT.search(name) and "stride" not in name else "i32"


def _value(name: str, uses: Uses, guess: Guess) -> Any:
    if name in uses.called:
        raise NoSignature("a function as compile-time value")
    if name in uses.strings:
        return uses.strings[name][0 if guess.flag else -1]
    if name in uses.dtypes or "dtype" in name.lower():
        return {"dtype": "fp32"}
    if name in uses.flags:
        return guess.flag
    if _SUBTILE.match(name) or name in uses.squared:
        return 16
    if _COUNT.match(name) or name in uses.unrolled:
        return 4
    return 0.5 if _FLOAT.search(name) else guess.block


def _less_a_constant(node: ast.expr) -> ast.expr:
    """What a constant is added to or taken from."""
    return node.left if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) else node


class Uses:
    """How one function's text uses its parameters."""

    def __init__(self, function: Any, depth: int = 0) -> None:
        self.tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(self.tree, ast.FunctionDef)
        self.names = [a.arg for a in self.tree.args.args]
        self.strings: dict[str, list[str]] = {}
        self.pointers: set[str] = set()
        self.flags: set[str] = set()
        self.dtypes: set[str] = set()
        self.called: set[str] = set()
        self.squared: set[str] = set()  # widths of tiles that have the square of it: 64 would be no kernel's
        self.unrolled: set[str] = set()  # how many times a loop is unrolled
        self._globals: Mapping[str, Any] = getattr(function, "__globals__", {})
        self._depth = depth
        self._assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self._assigned.setdefault(target.id, []).append(node.value)
        for node in ast.walk(self.tree):
            self._visit(node)
        self.pointers &= set(self.names)

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            self._condition(node.test)
        elif isinstance(node, ast.Compare):
            self._compare(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Name):
            if isinstance(node.right, ast.Name) and node.left.id == node.right.id:
                self.squared.add(node.left.id)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self._condition(value)
        elif isinstance(node, ast.Attribute) and node.attr == "element_ty":
            inside = node.value
            if isinstance(inside, ast.Attribute) and isinstance(inside.value, ast.Name):
                self.pointers |= self._bases(inside.value)

    def _condition(self, test: ast.expr) -> None:
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        if isinstance(test, ast.Name):
            self.flags.add(test.id)

    def _compare(self, node: ast.Compare) -> None:
        if isinstance(node.left, ast.Name):
            for other in node.comparators:
                if isinstance(other, ast.Constant) and isinstance(other.value, str):
                    self.strings.setdefault(node.left.id, []).append(other.value)

    def _call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in _MEMORY + _ADDRESSES and isinstance(node.func, ast.Attribute):
            named = [k.value for k in node.keywords if k.arg in ("pointer", "base")]
            address = next(iter([*node.args[:1], *named]), None)
            if address is not None:
                self.pointers |= self._bases(address)
        if isinstance(node.func, ast.Name) and name in self.names:
            self.called.add(name)
        if name == "static_range":
            self.unrolled |= {end.id for end in map(_less_a_constant, node.args) if isinstance(end, ast.Name)}
        if name in ("device_assert", "static_assert") and len(node.args) > 1 and isinstance(node.args[1], ast.Name):
            self.strings.setdefault(node.args[1].id, []).append("wrong")
        types = [k.value for k in node.keywords if k.arg in ("dtype", "out_dtype")] + (node.args[:1] if name == "to" else [])
        self.dtypes |= {t.id for t in types if isinstance(t, ast.Name) and t.id in self.names}
        self._callee(node, name)

    def _callee(self, node: ast.Call, name: str) -> None:
        """What a called jit function does to its own parameters, it does to the arguments."""
        function = inner(self._globals.get(name)) if isinstance(node.func, ast.Name) else None
        if function is None or self._depth > 3:
            return
        try:
            uses = Uses(function.fn, self._depth + 1)
        except (OSError, SyntaxError):
            return
        passed = [*zip(uses.names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords if k.arg)]
        for theirs, ours in passed:
            if theirs in uses.pointers:
                self.pointers |= self._bases(ours)
            if isinstance(ours, ast.Name):
                self._inherit(uses, theirs, ours.id)

    def _inherit(self, uses: Uses, theirs: str, ours: str) -> None:
        if theirs in uses.strings:
            self.strings.setdefault(ours, []).extend(uses.strings[theirs])
        for kind in ("flags", "dtypes", "called", "squared", "unrolled"):
            if theirs in getattr(uses, kind) and ours in self.names:
                getattr(self, kind).add(ours)

    def _bases(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> set[str]:
        """The parameters that an address may be based on: the leftmost name of a sum, through variables."""
        if isinstance(node, ast.Name):
            if node.id in seen:
                return set()
            if node.id in self.names:
                return {node.id}
            return set().union(*(self._bases(value, seen | {node.id}) for value in self._assigned.get(node.id, ())))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return self._bases(node.left, seen) or self._bases(node.right, seen)
        if isinstance(node, ast.IfExp):
            return self._bases(node.body, seen) | self._bases(node.orelse, seen)
        if isinstance(node, ast.Subscript):
            return self._bases(node.value, seen)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _ADDRESSES and node.args:
                return self._bases(node.args[0], seen)
            if node.func.attr == "to":
                return self._bases(node.func.value, seen)
        return set()
