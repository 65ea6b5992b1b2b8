"""Kernels from text, and golden files: text in, IR or rendered error out, `TILEFW_UPDATE_GOLDEN=1` writes them anew."""

from __future__ import annotations

import ast
import itertools
import linecache
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilefw.api.errors import KernelError
from tilefw.frontend import build_module

PRELUDE = "import math\nimport tilefw\nimport tilefw.language as tl\nfrom tilefw.runtime.jit import constexpr_function\n"
_files = itertools.count()


Load = Callable[..., dict[str, Any]]


def _load(text: str, file: str | None = None) -> dict[str, Any]:
    file = file or f"<kernel {next(_files)}>"
    text = PRELUDE + text
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "kernels"}
    exec(compile(text, file, "exec"), names)
    return names


def _module_of(text: str, signature: Mapping[str, str], constexprs: Mapping[str, Any] | None = None) -> Any:
    module = build_module(_load(text)["kernel"], dict(signature), dict(constexprs or {}))
    module.verify()
    return module


@pytest.fixture(scope="session")
def load() -> Load:
    """`load(text)`: the names that a module of this text defines; its source is in linecache only, as in notebooks."""
    return _load


@pytest.fixture(scope="session")
def module_of() -> Callable[..., Any]:
    """`module_of(text, signature, constexprs)`: the verified tile IR of the `kernel` in this text."""
    return _module_of


@pytest.fixture(scope="session")
def body_of() -> Callable[..., list[str]]:
    """As `module_of`, but the ops of the kernel as printed, without module, function and return."""
    return lambda text, signature, constexprs=None: [
        line[4:] for line in str(_module_of(text, signature, constexprs)).splitlines()[2:-3]
    ]


@pytest.fixture(scope="session")
def refused() -> Callable[..., KernelError]:
    """As `module_of`, but the error that the kernel gets."""

    def attempt(text: str, signature: Mapping[str, str], constexprs: Mapping[str, Any] | None = None) -> KernelError:
        with pytest.raises(KernelError) as caught:
            _module_of(text, signature, constexprs)
        return caught.value

    return attempt


@dataclass(frozen=True)
class Golden:
    """One case of a golden file: a module's text with a `kernel`, its signature and constexprs, and what is expected."""

    name: str
    signature: dict[str, str]
    constexprs: dict[str, Any]
    source: str
    expected: str

    @property
    def head(self) -> str:
        words = [*(f"{name}={kind}" for name, kind in self.signature.items()), *(f"{n}:={v!r}" for n, v in self.constexprs.items())]
        return " ".join(["===", self.name, "|", *words])

    def kernel(self) -> Any:
        return _load(self.source, "kernel.py")["kernel"]


class Goldens:
    """The golden files of this folder."""

    folder = Path(__file__).parent / "goldens"
    updating = bool(os.environ.get("TILEFW_UPDATE_GOLDEN"))

    def read(self, file: str) -> list[Golden]:
        cases: list[Golden] = []
        for chunk in re.split(r"^(?==== )", (self.folder / file).read_text(), flags=re.M)[1:]:
            head, _, rest = chunk.partition("\n")
            name, _, words = head.removeprefix("=== ").partition(" |")
            entries = [word.partition("=") for word in words.split()]
            source, _, expected = rest.partition("---\n")
            cases.append(Golden(
                name.strip(),
                {entry: kind for entry, _, kind in entries if not entry.endswith(":")},
                {entry[:-1]: ast.literal_eval(value) for entry, _, value in entries if entry.endswith(":")},
                source,
                expected.rstrip("\n"),
            ))
        return cases

    def check(self, file: str, made: Callable[[Golden], str]) -> list[tuple[Golden, str]]:
        """Every case with what it gives now; the file is written anew when updating."""
        results = [(case, made(case)) for case in self.read(file)]
        if self.updating:
            (self.folder / file).write_text("\n".join(f"{case.head}\n{case.source}---\n{result}\n" for case, result in results))
        return results


@pytest.fixture(scope="session")
def goldens() -> Goldens:
    return Goldens()
