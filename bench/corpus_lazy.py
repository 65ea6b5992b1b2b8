"""A package of a collection, loaded name by name: a module executes a statement once a name that it binds is asked for.

Large packages import servers, models and vendors' extensions that no kernel needs. Here a kernel's module gives what the kernel
uses: its own statements and, of the package's other modules, those that bind what these name.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


class LazyNames(dict[str, Any]):
    """The globals of such a module: a function of it that is called asks for its names here."""

    def __init__(self, statements: LazyStatements) -> None:
        super().__init__()
        self._statements = statements

    def __missing__(self, name: str) -> Any:
        if self._statements.bind(name):
            return self[name]
        raise KeyError(name)


class LazyModule(ModuleType):
    """What `sys.modules` has of it: attributes are bound as they are asked for."""

    def __getattr__(self, name: str) -> Any:
        statements = LAZY.statements.get(self.__name__)
        if statements is not None and statements.bind(name):
            return statements.names[name]
        with contextlib.suppress(ModuleNotFoundError):
            if not name.startswith("__"):
                return importlib.import_module(f"{self.__name__}.{name}")
        if statements is not None and not name.startswith("__") and statements.bind("__getattr__"):
            return statements.names["__getattr__"](name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class LazyStatements:
    """The statements of a file by the names that they bind."""

    def __init__(self, file: Path, module: ModuleType) -> None:
        self.file = file
        self.names = LazyNames(self)
        self.names.update(vars(module), __builtins__=__builtins__, __file__=str(file))
        self._module = module
        self._binding: dict[str, list[ast.stmt]] = {}
        self._begun: set[int] = set()
        self._stars: list[ast.ImportFrom] = []
        self._registering: dict[str, list[ast.stmt]] = {}
        text = file.read_text("utf-8", "replace") if file.exists() else ""
        for statement in ast.parse(text).body:
            for name in _bound(statement):
                self._binding.setdefault(name, []).append(statement)
            for name in _registers(statement):
                self._registering.setdefault(name, []).append(statement)
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                self._stars.append(statement)

    def bind(self, name: str) -> bool:
        """Execute what binds `name`, in the file's order; whether it has a value now."""
        for statement in self._binding.get(name, ()):
            self._execute(statement)
        if name not in self.names and not name.startswith("__"):
            self._from_stars(name)
        if name in self.names:
            for statement in self._registering.pop(name, ()):
                self._execute(statement)
        return name in self.names

    def _from_stars(self, name: str) -> None:
        for star in self._stars:
            package = self.names.get("__package__") or ""
            source = importlib.import_module("." * star.level + (star.module or ""), package if star.level else None)
            if hasattr(source, name):
                self.names[name] = getattr(source, name)
                return

    def _execute(self, statement: ast.stmt) -> None:
        if id(statement) in self._begun:
            return
        self._begun.add(id(statement))
        try:
            for name in _unasked(statement):
                if name not in self.names:
                    self.bind(name)
            code = compile(ast.Module([statement], []), str(self.file), "exec", dont_inherit=True, flags=self._future())
            exec(code, self.names)
        except BaseException:
            self._begun.discard(id(statement))  # once what is missing has a stand-in, it is executed again
            raise
        for name in _bound(statement):
            if name in self.names:
                vars(self._module)[name] = self.names[name]

    def _future(self) -> int:
        import __future__

        return __future__.annotations.compiler_flag if "annotations" in self._binding else 0


class LazyPackages(MetaPathFinder, Loader):
    """Finds the modules below the folders that it was given, in front of all other finders."""

    def __init__(self) -> None:
        self.roots: dict[str, Path] = {}
        self.statements: dict[str, LazyStatements] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        top, *below = name.split(".")
        if top not in self.roots:
            return None
        at = self.roots[top].joinpath(*below)
        if not at.is_dir() and not at.with_suffix(".py").exists():
            return None
        return ModuleSpec(name, self, origin=str(_file(at)), is_package=at.is_dir())

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return LazyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None and module.__spec__.origin is not None
        file = Path(module.__spec__.origin)
        module.__file__ = str(file)
        if module.__spec__.submodule_search_locations is not None:
            module.__path__ = [str(file.parent)]
        self.statements[module.__name__] = LazyStatements(file, module)


LAZY = LazyPackages()


def serve(folder: Path) -> None:
    """Load the package of this folder by names from here on."""
    if LAZY not in sys.meta_path:
        sys.meta_path.insert(0, LAZY)
    LAZY.roots.setdefault(folder.name, folder)
    importlib.metadata.version = _version


def _version(package: str) -> str:
    """vLLM takes Triton for absent where its own version is not known, and a folder has no metadata beside it."""
    try:
        return importlib.metadata.distribution(package).version
    except importlib.metadata.PackageNotFoundError:
        if package in LAZY.roots:
            return "0"
        raise


def _file(at: Path) -> Path:
    return at / "__init__.py" if at.is_dir() else at.with_suffix(".py")


def _bound(statement: ast.AST) -> Iterator[str]:
    """The names of the module that a statement binds, in whichever of its branches."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield statement.name
        return
    if isinstance(statement, ast.Import):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in statement.names)
    elif isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
        yield statement.id
    elif isinstance(statement, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
        return
    for child in ast.iter_child_nodes(statement):
        yield from _bound(child)


def _registers(statement: ast.stmt) -> Iterator[str]:
    """Names in whose value a definition enters itself: `@Policies.register(...)`."""
    for decorator in getattr(statement, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.attr.startswith("register"):
            yield called.value.id


def _unasked(node: ast.AST) -> Iterator[str]:
    """Names that are looked up in the module without __missing__: by a compiler of functions, or in the body of a class."""
    for child in ast.walk(node):
        if isinstance(child, ast.ClassDef):
            yield from _read(child)
        elif isinstance(child, ast.FunctionDef) and _compiled(child):
            yield from _names(ast.walk(child))


def _read(node: ast.AST) -> Iterator[str]:
    """Names that the body of a class reads while it is made; the bodies of functions in it read theirs when they are called."""
    later: list[ast.AST] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not _compiled(node):
        later += [node.body] if isinstance(node, ast.Lambda) else node.body
    for child in ast.iter_child_nodes(node):
        if child not in later:
            yield from _names([child])
            yield from _read(child)


def _compiled(node: ast.AST) -> bool:
    return any(re.search("jit|constexpr", ast.unparse(decorator)) for decorator in getattr(node, "decorator_list", ()))


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
