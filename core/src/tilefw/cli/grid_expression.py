"""A grid that a command line states as arithmetic of a launch's values: `cdiv(n, BLOCK), 4`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tilefw.api.errors import UsageError

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max}


def grid_text(text: str | None, names: Mapping[str, Any]) -> str | None:
    """The grid as numbers with commas. Raises UsageError TFW0911 for what is no arithmetic of whole numbers."""
    if text is None:
        return None
    try:
        parsed = ast.parse(text, mode="eval").body
        parts = parsed.elts if isinstance(parsed, ast.Tuple) else [parsed]
        return ",".join(str(_value(part, names)) for part in parts)
    except (SyntaxError, KeyError, TypeError, ZeroDivisionError, RecursionError) as error:
        raise UsageError(
            f"--grid {text!r} is no arithmetic of the launch's values: {error}", code="TFW0911",
            help=f"+ - * // %, cdiv, min and max of whole numbers and of {', '.join(names)}",
        ) from None


def _value(node: ast.AST, names: Mapping[str, Any]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if type(names[node.id]) is not int:
            raise TypeError(f"{node.id} is no whole number")
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords:
        return _FUNCTIONS[node.func.id](*(_value(part, names) for part in node.args))
    raise TypeError(ast.unparse(node))
