"""What a stranger's package is: it sees `tilefw.api` alone, its hooks are light, it is small, its claims are what is served."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tilefw_acme
from tilefw.api import CompileOptions
from tilefw_acme.backend import AcmeBackend
from tilefw_acme.target import X1

SOURCES = sorted(Path(tilefw_acme.__file__).parent.glob("*.py"))


def imported(source: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return names


def allowed(name: str) -> bool:
    """The standard library, the package itself, and `tilefw.api`."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top == "tilefw_acme" or name == "tilefw.api" or name.startswith("tilefw.api.")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_only_the_api_is_imported(source: Path) -> None:
    assert [name for name in imported(source) if not allowed(name)] == []


def test_the_whole_package_is_small() -> None:
    assert sum(source.read_text(encoding="utf-8").count("\n") for source in SOURCES) < 1000


def test_the_hooks_load_no_heavy_module() -> None:
    code = "import sys, tilefw_acme.plugin as p; p.tilefw_targets(); print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"numpy", "xdsl", "yaml"} & {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("key, served", [
    ("divs.i64", True), ("erf.f32", True), ("addf.bf16", True), ("castf.f32.f8E4M3FN", True), ("select.f64", True),
    ("addf.f64", False), ("s2f.i32.f64", False),
])
def test_what_is_not_claimed_is_not_served(key: str, served: bool) -> None:
    chip = AcmeBackend(X1).chip(CompileOptions())
    assert (chip.rule(key) is not None) == served
