"""Which Python a kernel may not use, in the words of Python's own documentation, and what to write instead."""

from __future__ import annotations

import ast

from tilefw.api.errors import UnsupportedError

_REFUSED: dict[type[ast.AST], tuple[str, str | None]] = {
    ast.AsyncFor: ("`async for`", None),
    ast.AsyncFunctionDef: ("`async def`", None),
    ast.AsyncWith: ("`async with`", None),
    ast.Attribute: ("assignment to an attribute", "bind a new name instead"),
    ast.Await: ("`await`", None),
    ast.Break: ("`break`", "use `while` with a condition that includes when to stop"),
    ast.ClassDef: ("a class definition", None),
    ast.Continue: ("`continue`", "put the rest of the body under an `if`"),
    ast.Delete: ("`del`", None),
    ast.Dict: ("a dict", "use a tuple"),
    ast.DictComp: ("a dict comprehension", None),
    ast.FunctionDef: ("a function definition inside a kernel", "move it out and decorate it with @tilefw.jit"),
    ast.GeneratorExp: ("a generator expression", "use a list comprehension over a tuple"),
    ast.Global: ("`global`", "pass the value as a parameter"),
    ast.Import: ("`import` inside a kernel", "import at the top of the module"),
    ast.ImportFrom: ("`import` inside a kernel", "import at the top of the module"),
    ast.Lambda: ("`lambda`", "write a function and decorate it with @tilefw.jit"),
    ast.Match: ("`match`", "use `if` and `elif`"),
    ast.Nonlocal: ("`nonlocal`", None),
    ast.Raise: ("`raise`", "use tl.static_assert for compile-time conditions"),
    ast.Set: ("a set", "use a tuple"),
    ast.SetComp: ("a set comprehension", None),
    ast.Starred: ("a starred target", "unpack into as many names as there are values"),
    ast.Subscript: ("assignment to elements of a tile", "use tl.where, or store through a pointer"),
    ast.Try: ("`try`", None),
    ast.TryStar: ("`try`", None),
    ast.With: ("`with`", None),
    ast.Yield: ("`yield`", None),
    ast.YieldFrom: ("`yield from`", None),
}


def unsupported(node: ast.AST, what: str | None = None) -> UnsupportedError:
    """The error for a construct that kernels do not have."""
    words, help = _REFUSED.get(type(node), (what or f"this use of Python ({type(node).__name__})", None))
    return UnsupportedError(f"kernels cannot use {what or words}", "TFW0102", help=help)
