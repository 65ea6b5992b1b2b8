"""The kernels of a folder or an installed package: its modules are imported, and what host code launches is told from helpers."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import itertools
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import corpus_lazy
import corpus_stand_ins
from corpus_signatures import inner


@dataclass(frozen=True)
class Found:
    """A kernel by its file and name, or a file that could not be imported, and why."""

    file: str
    name: str
    kernel: Any = None
    failure: str = ""


def folder(path: str) -> Path:
    """A folder, or that of the installed package of this name."""
    if Path(path).exists():
        return Path(path).resolve()
    spec = importlib.util.find_spec(path)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{path} is neither a folder nor an installed package")
    return Path(next(iter(spec.submodule_search_locations)))


def kernels(root: Path, every: int = 1, only: Collection[str] | None = None, done: Collection[str] = ()) -> Iterator[Found]:
    """Every kernel below `root`, file by file, or those among each `every`th jit function, or those of the keys of `only`, without
    those of `done`: files without any are not loaded."""
    numbers = itertools.count()
    files = [root] if root.is_file() else sorted(root.rglob("*.py"))
    texts = {file: file.read_text("utf-8", "replace") for file in files}
    called, launched = _called(texts.values()), set(re.findall(r"\b(\w+)\s*\[", "\n".join(texts.values())))
    for file, text in texts.items():
        if not re.search(r"^@.*\bjit\b", text, re.MULTILINE):
            continue
        shown = str(file.relative_to(root)) if file != root else file.name
        names = [name for name in _defined(text) if next(numbers) % every == 0]
        keys = {name: f"{shown}:{name}" for name in names}
        names = [name for name, key in keys.items() if key not in done and (only is None or key in only)]
        if not names:
            continue
        here, failures = _imported(file, root, names)
        for name, failure in failures.items():
            yield Found(shown, name, failure=failure)
        for name, kernel in here.items():
            decorated = inner(kernel) is not kernel
            if decorated or name in launched or (name not in called and not _returns(text, name)):
                yield Found(shown, name, kernel)


def _called(texts: Any) -> set[str]:
    """Names that jit functions call."""
    found: set[str] = set()
    for text in texts:
        for function in _functions(text):
            found |= {n.func.id for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return found


def _functions(text: str) -> list[ast.FunctionDef]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [n for n in tree.body if isinstance(n, ast.FunctionDef) and any(map(_jit, n.decorator_list))]


def _jit(decorator: ast.expr) -> bool:
    """Whether a decorator is Triton's; `gluon.jit` and those of other compilers are of other languages."""
    words = ast.unparse(decorator)
    return "jit" in words and not re.match(r"(gluon|cute|numba|torch|nb|jax)\b", words)


def _defined(text: str) -> list[str]:
    return [function.name for function in _functions(text)]


def _returns(text: str, name: str) -> bool:
    function = next(f for f in _functions(text) if f.name == name)
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function))


def _imported(file: Path, root: Path, names: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The kernels of a file by these names, and what ended the import of those that have none ("" is the whole file)."""
    base, name = _module_name(file, root)
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    found: dict[str, Any] = {}
    failures: dict[str, str] = {}
    if "." in name:
        corpus_lazy.serve(base / name.partition(".")[0])
        for kernel in names:
            _add(found, failures, kernel, lambda kernel=kernel: getattr(importlib.import_module(name), kernel), root)
        return found, failures
    made: list[ModuleType] = []
    _add({}, failures, "", lambda: _executed(name, file, made), root)
    found = {n: k for n in names if inner(k := vars(made[0]).get(n)) is not None} if made else {}
    return found, {} if found else failures


def _add(found: dict[str, Any], failures: dict[str, str], name: str, load: Callable[[], Any], root: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            kernel = corpus_stand_ins.importing(load, lambda package: _below(root, package))
        except (Exception, SystemExit) as error:
            failures[name] = (f"{type(error).__name__}: {error}".splitlines() or [""])[0][:200]
            return
    if inner(kernel) is not None:
        found[name] = kernel


def _executed(name: str, file: Path, made: list[ModuleType]) -> None:
    """A file that is in no package, whole; its tests may launch: see corpus_compilers.py."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    made[:] = [module]
    spec.loader.exec_module(module)


def _module_name(file: Path, root: Path) -> tuple[Path, str]:
    """Where imports start and the module's name there: below the outermost package, whose folders may lack __init__.py."""
    outermost = file.parent
    for folder in (file.parent, *file.parents):
        if (folder / "__init__.py").exists():
            outermost = folder.parent
        elif not folder.is_relative_to(root):
            break
    parts = [*file.relative_to(outermost).parts[:-1], file.stem]
    return outermost, ".".join(parts).removesuffix(".__init__")


def _below(root: Path, package: str) -> str | None:
    """The one folder below `root` that has the package."""
    found = [folder for folder in root.rglob(package) if (folder / "__init__.py").exists()] if root.is_dir() else []
    return str(found[0].parent) if len(found) == 1 else None
