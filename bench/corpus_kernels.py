"""The kernels of a folder or an installed package: its modules are imported, and what host code launches is told from helpers."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

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


def kernels(root: Path) -> Iterator[Found]:
    """Every kernel below `root`, file by file."""
    files = [root] if root.is_file() else sorted(root.rglob("*.py"))
    texts = {file: file.read_text("utf-8", "replace") for file in files}
    called, launched = _called(texts.values()), set(re.findall(r"\b(\w+)\s*\[", "\n".join(texts.values())))
    for file, text in texts.items():
        if not re.search(r"^@.*\bjit\b", text, re.MULTILINE):
            continue
        shown = str(file.relative_to(root)) if file != root else file.name
        module, failure = _imported(file)
        names = _defined(text)
        here = {n: k for n in names if inner(k := vars(module).get(n)) is not None} if module else {}
        if failure and not here:
            yield Found(shown, "", failure=failure)
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
    return [n for n in tree.body if isinstance(n, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in n.decorator_list)]


def _defined(text: str) -> list[str]:
    return [function.name for function in _functions(text)]


def _returns(text: str, name: str) -> bool:
    function = next(f for f in _functions(text) if f.name == name)
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function))


def _imported(file: Path) -> tuple[ModuleType | None, str]:
    """The module, or as much of it as was executed, and what ended its import. Its tests may launch: see corpus_compilers.py."""
    base, parts = file.parent, [file.stem]
    while (base / "__init__.py").exists():
        parts.insert(0, base.name)
        base = base.parent
    name = ".".join(parts).removesuffix(".__init__")
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    module: ModuleType | None = None
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            if len(parts) > 1:
                return importlib.import_module(name), ""
            spec = importlib.util.spec_from_file_location(name, file)
            assert spec is not None and spec.loader is not None
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            return module, f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return module, ""
