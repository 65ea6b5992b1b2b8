"""Tables and names at module level that change after the import: what makes two chips in one process share what they should not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tree import tree

_CHANGES = {
    "append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "remove", "discard", "clear", "sort", "reverse",
}
_MAKERS = {"dict", "list", "set", "defaultdict", "deque", "Counter", "OrderedDict", "WeakKeyDictionary", "WeakValueDictionary"}


def changed(path: Path) -> Iterator[tuple[str, int]]:
    """Each name at the module's top level that is changed inside a function, with the line: a container that a function fills,
    empties or assigns items of, and a name that a function declares `global`."""
    module = tree(path)
    containers = {name for statement in module.body for name in _containers(statement)}
    imported = {alias.asname or alias.name for node in module.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            local = _locals(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Global):
                    yield from ((name, node.lineno) for name in node.names)
                for base, table in _tables(node):
                    if base in imported and base not in local:
                        yield f"{base}.{table}", getattr(node, "lineno", function.lineno)
                for name in _targets(node):
                    if name in containers and name not in local:
                        yield name, getattr(node, "lineno", function.lineno)


def _containers(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of the module gives a mutable container."""
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None and _mutable(statement.value):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", getattr(value.func, "attr", "")) in _MAKERS
    return isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp)


def _locals(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Parameters, and names that the function itself assigns."""
    parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    return parameters | {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _tables(node: ast.AST) -> Iterator[tuple[str, str]]:
    """`module.TABLE[…] = …` and `module.TABLE.append(…)`, of tables as constants are spelled: (module, TABLE)."""
    changed = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        changed = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        changed = node.func.value
    if isinstance(changed, ast.Attribute) and isinstance(changed.value, ast.Name) and changed.attr.isupper():
        yield changed.value.id, changed.attr


def _targets(node: ast.AST) -> Iterator[str]:
    """The names whose contents a node changes: `name[…] = …`, `del name[…]`, `name.append(…)`, `name |= …`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del) and isinstance(node.value, ast.Name):
        yield node.value.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        yield from [node.func.value.id] if isinstance(node.func.value, ast.Name) else []
