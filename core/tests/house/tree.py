"""The source tree as the house rules see it: files, imports, strings; found from this checkout, not from what is installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
CORE = ROOT / "core" / "src" / "tilefw"
VENDORS = sorted(path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml"))
PLUGINS = {vendor: ROOT / "plugins" / vendor / "src" / f"tilefw_{vendor}" for vendor in VENDORS}
CONFORMANCE = ROOT / "conformance" / "src" / "tilefw_conformance"
FRONTENDS = sorted(ROOT.glob("frontends/*/src/*"))
PACKAGES = [CORE, *PLUGINS.values(), *FRONTENDS, CONFORMANCE]


def sources(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path, *, at_import: bool = False) -> Iterator[str]:
    """The modules that a file imports; with `at_import` only those that its import itself loads."""
    for node in _walk(tree(path), at_import):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _walk(node: ast.AST, at_import: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if at_import and (isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _type_checking(child)):
            continue
        yield child
        yield from _walk(child, at_import)


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def docstrings(module: ast.Module) -> set[int]:
    """The identities of the constants that are docstrings."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:  # attribute docstrings too
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    found.add(id(statement.value))
    return found
