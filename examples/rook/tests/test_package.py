"""What a stranger's package is: it sees `tilefw.api` alone, its hooks are light, it is small, its claims are what is served."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tilefw_rook
from tilefw.api import CompileOptions
from tilefw.api.capabilities import PROFILES, profiles
from tilefw_rook.backend import RookBackend
from tilefw_rook.target import R1

SOURCES = sorted(Path(tilefw_rook.__file__).parent.glob("*.py"))


def imported(source: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(source.read_text(encoding="utf-8"))))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return plain + [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_only_the_api_is_imported(source: Path) -> None:
    names = imported(source)
    top = {name.partition(".")[0] for name in names} - {"tilefw_rook", "tilefw"}
    assert top <= set(sys.stdlib_module_names)
    assert all(f"{name}.".startswith("tilefw.api.") for name in names if name.partition(".")[0] == "tilefw")


def test_the_package_has_at_most_900_lines() -> None:
    assert 0 < sum(source.read_text(encoding="utf-8").count("\n") for source in SOURCES) <= 900


def test_the_hooks_load_no_heavy_module() -> None:
    code = "import sys, tilefw_rook.plugin as p; p.tilefw_targets(); print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"numpy", "xdsl", "yaml"} & {name.partition(".")[0] for name in done.stdout.split()}


def test_all_profiles_are_claimed_but_the_one_of_binary64() -> None:
    assert PROFILES.keys() - set(profiles(R1.capabilities)) == {"tile-fp64"}


@pytest.mark.parametrize("key, served", [
    ("divs.i64", True), ("erf.f32", True), ("addf.bf16", True), ("castf.f32.f8E4M3FN", True), ("select.f64", True),
    ("addf.f64", False), ("s2f.i32.f64", False),
])
def test_what_is_not_claimed_is_not_served(key: str, served: bool) -> None:
    chip = RookBackend(R1).chip(CompileOptions())
    assert (chip.rule(key) is not None) == served
