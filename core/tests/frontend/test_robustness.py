"""Wrong kernels of every kind: mutated golden kernels compile or get an error with a place, and never anything else."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tilefw.language as tl
from tilefw.api.errors import KernelError
from tilefw.frontend import build_module

EXTRA = [
    "None", "...", "b'x'", "1j", "-1", "2**63", "2**64", "1e400", "float('nan')", "()", "(n,)", "tl", "tl.float32",
    "tl.dot", "x_ptr", "''", "'rtz'", "tl.constexpr", "math", "int", "lambda: 0", "[n for n in (1, 2)]", "{}", "slice(1)",
    "n.shape", "x_ptr.dtype", "tl.range(3)", "print", "kernel", "tl.static_range(2)", "True", "tl.int1",
    "tl.PropagateNan.ALL", "range(3)", "isinstance", "getattr(n, 'x')", "object", "f'{n}'", "f'{n:x}'", "n[...]", "n[1:2]",
    "n[None]", "not n", "-x_ptr", "~1.5", "min()", "max(n)", "len(n)", "float('x')", "tl.full((), n, n)",
    "tl.zeros(4, tl.int32)", "tl.arange(0, 4)", "tl.PropagateNan(n, 2)", "1 // 0",
]
OPERATORS = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitOr, ast.MatMult, ast.FloorDiv]


class Mutate(ast.NodeTransformer):
    """Replaces expressions by others from the pool, and operators by others."""

    def __init__(self, rng: random.Random, pool: list[str]) -> None:
        self.rng, self.pool = rng, pool

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.JoinedStr | ast.Slice) else super().visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.BinOp) and self.rng.random() < 0.1:
            node.op = self.rng.choice(OPERATORS)()
        loaded = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        return ast.parse(self.rng.choice(self.pool), mode="eval").body if loaded and self.rng.random() < 0.04 else node


def mutated(rng: random.Random, cases: list[Any], pool: list[str], case: Any) -> str:
    """A module like the case's, with mutated functions, now and then shuffled or with a statement of another case."""
    tree = ast.parse(case.source)
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            function.body = [Mutate(rng, pool).visit(statement) for statement in function.body]
            if rng.random() < 0.2:
                rng.shuffle(function.body)
            if rng.random() < 0.2:
                function.body.append(ast.parse(rng.choice(cases).source).body[-1].body[-1])  # type: ignore[attr-defined]
    return ast.unparse(ast.fix_missing_locations(tree))


def parses(text: str) -> bool:
    """Whether this is an expression of its own, as a slice or a starred value is not."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_mutated_kernels_compile_or_get_an_error_of_ours(seed: int, goldens: Any, load: Callable[..., dict[str, Any]]) -> None:
    rng = random.Random(seed)
    cases = goldens.read("ir.txt") + goldens.read("errors.txt")
    nodes = [node for case in cases for node in ast.walk(ast.parse(case.source)) if isinstance(node, ast.expr)]
    loaded = [node for node in nodes if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)]
    pool = EXTRA + [text for node in loaded if parses(text := ast.unparse(node))]
    built = refused = 0
    while built + refused < 250:
        case = rng.choice(cases)
        text = mutated(rng, cases, pool, case)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                kernel = load(text)["kernel"]
            except SyntaxError:
                continue
            try:
                module = build_module(kernel, case.signature, case.constexprs)
            except KernelError as error:
                refused += 1
                assert error.place is not None or error.code in ("TFW0119", "TFW0120"), text
                assert str(error).startswith(f"error[{error.code}]: "), text
                continue
            built += 1
            module.verify()
    assert built > 10 and refused > 100


FUNCTIONS = {name: getattr(tl, name) for name in tl.__all__ if hasattr(getattr(tl, name), "__tilefw_builtin__")}
VALUES = [
    "x", "y", "m", "m.to(tl.int32)", "m > 0", "m.T", "m.to(tl.float16)", "m.to(tl.uint8)", "m.to(tl.float8e5)", "m[None, :, :]",
    "x_ptr + m.to(tl.int32)", "n", "x_ptr", "1", "2.5", "True", "None", "(x, y)", "(m, m)", "()", "n > 1", "'tf32'", "tl.float32",
]
# What parameters of these names usually get, right and wrong.
USUAL = {
    **dict.fromkeys(("axis", "dim", "dims"), ("0", "1", "-1", "None", "2", "-3", "n", "1.0", "(1, 0)", "'0'")),
    **dict.fromkeys(("keep_dims", "return_indices", "tie_break_left", "can_reorder"), ("True", "False", "n > 1", "None", "1")),
    **dict.fromkeys(("dtype", "out_dtype"), ("tl.float32", "tl.float16", "tl.bfloat16", "tl.int64", "None", "n", "tl.int1")),
    "shape": ("(2, 8)", "16", "(16, 16)", "(256,)", "(3, 4)", "n", "(n,)", "(4, -1)", "()", "x.shape"),
    "acc": ("None", "m", "tl.zeros((16, 16), tl.float16)", "0", "tl.zeros((4, 4), tl.float32)"),
    "input_precision": ("'tf32'", "'ieee'", "'x'", "None", "n"),
    "combine_fn": ("add", "pair", "text", "tiles", "tl.maximum", "3", "len", "kernel"),
}
HELPERS = """
@tilefw.jit
def add(a, b):
    return a + b

@tilefw.jit
def pair(a, b, c, d):
    return (a, b) if a > c else (c, d)

@tilefw.jit
def text(a, b):
    return "x"

@tilefw.jit
def tiles(a, b):
    return a + tl.arange(0, 4)

@tilefw.jit
def kernel(x_ptr, n):
    x = tl.arange(0, 16)
    y = x.to(tl.float32)
    m = tl.zeros((16, 16), tl.float32)
"""
USES = ["z = {}", "tl.store(x_ptr, {})", "a, c = {}", "z = {} + x", "z = tl.sum({})", "if {}:\n        x += 1"]


def odd_call(rng: random.Random, name: str) -> str:
    given = []
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        value = rng.choice(USUAL.get(parameter.name, VALUES) if rng.random() < 0.95 else VALUES)
        if parameter.default is parameter.empty:
            given.append(value)
        elif rng.random() < 0.4:
            given.append(f"{parameter.name}={value}")
    return f"tl.{name}({', '.join(given)})"


@pytest.mark.parametrize("seed", range(2))
def test_odd_arguments_of_every_function_compile_or_get_an_error_of_ours(seed: int, load: Callable[..., dict[str, Any]]) -> None:
    rng, built, refused = random.Random(seed), 0, 0
    for name in sorted(FUNCTIONS) * 3:
        text = HELPERS + "    " + rng.choice(USES).format(odd_call(rng, name)) + "\n"
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                module = build_module(load(text)["kernel"], {"x_ptr": "*fp32", "n": "i32"}, {})
            except KernelError as error:
                refused += 1
                assert error.place is not None and str(error).startswith(f"error[{error.code}]: "), text
                continue
        built += 1
        module.verify()
    assert built > 10 and refused > 100
