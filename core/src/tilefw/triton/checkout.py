"""Kernels of other libraries' checkouts: of each file its jit functions, imports and constants; nothing else of it is run.

Libraries for many devices are plain Triton on the device, and need cards, drivers and their own extensions on the host. So of a
file the functions under `@triton.jit`, aggregates and constants are taken, each from its own line. An import leads to another file
of the checkout, taken the same way, to Triton's names as tilefw has them, to a module that stands in for one, or to an Absent name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tilefw.api.errors import CodeError, KernelError
from tilefw.triton.absent import Absent, StandInModule
from tilefw.triton.importing import private_modules

Rewriting = Callable[[ast.FunctionDef], ast.FunctionDef | None]
"""What a function is to be compiled as, where that is not its own text."""

_DEVICE = ("jit", "constexpr_function", "aggregate", "_aggregate")  # decorators of what is taken
_CONSTANT = (
    ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context,
)


class Checkout:
    """Packages of a checkout by name and folder, and the modules that stand in for others."""

    def __init__(
        self, packages: Mapping[str, Path], stand_ins: Mapping[str, ModuleType] | None = None, rewriting: Rewriting | None = None,
        names: Mapping[str, Any] | None = None, undecorated: Container[str] = (),
    ) -> None:
        """`names` are in every file's module, for what the rewriting needs. Decorators of the names `undecorated` are not made."""
        self._undecorated = undecorated
        self._packages = dict(packages)
        self._known: dict[str, ModuleType] = {**private_modules(), **(stand_ins or {})}
        self._files: dict[Path, ModuleType] = {}
        self._rewriting = rewriting
        self._names = dict(names or {})

    def kernels(self, path: Path) -> ModuleType:
        """A file's jit functions, in a module of their own. Raises CodeError TFW0780 for a file that cannot be read or has none."""
        found = self._loaded(path, path.stem if path.name != "__init__.py" else path.parent.name)
        if not any(isinstance(node, ast.FunctionDef) and _is_taken(node) for node in _parsed(path).body):
            raise CodeError(f"{path} has no function under @triton.jit", "TFW0780")
        return found

    def module(self, name: str) -> ModuleType | Absent:
        """What `import name` gives."""
        if name in self._known:
            return self._known[name]
        root, _, rest = name.partition(".")
        if root not in self._packages:
            return Absent(name)
        place = self._packages[root].joinpath(*rest.split(".") if rest else ())
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return self._loaded(path, name)
        if place.is_dir():
            return self._known.setdefault(name, StandInModule(name, {}))
        return Absent(name, "the checkout has no such module")

    def _loaded(self, path: Path, name: str) -> ModuleType:
        if path in self._files:
            return self._files[path]
        tree = _parsed(path)
        made = ModuleType(f"checkout_{abs(hash(path))}_{name}")
        vars(made).update(self._names, __file__=str(path))
        self._files[path] = made
        sys.modules[made.__name__] = made  # where Python looks for the text of what was defined there
        for node in tree.body:
            self._take(node, made, path, name)
        return made

    def _take(self, node: ast.stmt, into: ModuleType, path: Path, name: str) -> None:
        names = vars(into)
        if isinstance(node, ast.Import):
            self._import(node, names)
        elif isinstance(node, ast.ImportFrom):
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            self._import_from(node, names, package)
        elif isinstance(node, ast.Try):
            for inner in node.body:
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    self._take(inner, into, path, name)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            if _is_taken(node):
                self._define(node, names, path)
            else:
                names.setdefault(node.name, Absent(f"{name}.{node.name}", "it is code of the host"))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_constant(node.value):
            self._define(node, names, path)

    def _import(self, node: ast.Import, names: dict[str, Any]) -> None:
        for alias in node.names:
            found = self.module(alias.name)
            if alias.asname:
                names[alias.asname] = found
            else:
                names[alias.name.partition(".")[0]] = self.module(alias.name.partition(".")[0])

    def _import_from(self, node: ast.ImportFrom, names: dict[str, Any], package: str) -> None:
        if node.module == "__future__":
            return
        home = node.module or ""
        if node.level:
            parts = package.split(".")
            home = ".".join([*parts[: len(parts) - node.level + 1], *([home] if home else [])])
        found = self.module(home)
        for alias in node.names:
            if alias.name == "*":
                names.update({key: value for key, value in vars(found).items() if not key.startswith("_")})
                continue
            value = vars(found).get(alias.name) if isinstance(found, ModuleType) else None
            if value is None or isinstance(value, Absent):
                below = self.module(f"{home}.{alias.name}")
                value = below if isinstance(below, ModuleType) else getattr(found, alias.name, None) or below
            names[alias.asname or alias.name] = value

    def _define(self, node: ast.stmt, names: dict[str, Any], path: Path) -> None:
        """Run one statement. What cannot be made is Absent, with the cause."""
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [one for one in node.decorator_list if _word(one) not in self._undecorated]
        try:
            exec(compile(ast.Module([node], []), str(path), "exec"), names)
            self._rewrite(node, names)
        except (KernelError, ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError) as error:
            for name in _made(node):
                names[name] = Absent(f"{path.stem}.{name}", f"{path.name}:{node.lineno} cannot be taken: {error}")

    def _rewrite(self, node: ast.stmt, names: dict[str, Any]) -> None:
        if self._rewriting is not None and isinstance(node, ast.FunctionDef):
            other = self._rewriting(node)
            if other is not None:
                _kernel(names[node.name])._unsafe_update_src("\n" * (node.lineno - 1) + ast.unparse(other))


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise CodeError(f"{path} cannot be read as Python: {error}", "TFW0780") from None


def _is_taken(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(_word(one) in _DEVICE and "gluon" not in ast.unparse(one).partition("(")[0] for one in node.decorator_list)


def _word(decorator: ast.expr) -> str:
    """The last word of its name."""
    return ast.unparse(decorator).partition("(")[0].rpartition(".")[2]


def _is_constant(value: ast.expr) -> bool:
    """An expression of literals and names, in `tl.constexpr(…)` or not: to evaluate it runs nobody's code."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] == "constexpr" and all(map(_is_constant, value.args))
    return all(isinstance(part, _CONSTANT) for part in ast.walk(value))


def _made(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _kernel(found: Any) -> Any:
    """The jit function below an autotuner's or heuristics' wrapping."""
    while not getattr(found, "__tilefw_jit__", False):
        found = found.fn
    return found
