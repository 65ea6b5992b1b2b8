"""The package's docstring names all of it, and what judges programs knows nothing of what makes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilefw_spatial

ROOT = Path(tilefw_spatial.__file__).parent
STAGES = {"lower", "elements", "arrange", "chain", "partition", "schedule", "emit", "pipeline", "graph", "stream_program"}
JUDGES = {"simulate", "tick", "check"}


def _imported(part: str) -> Iterator[str]:
    """The parts of the package that the files of a folder import."""
    for path in (ROOT / part).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module == "tilefw_spatial":
                names = [f"tilefw_spatial.{alias.name}" for alias in node.names]
            yield from (name.split(".")[1] for name in names if name.startswith("tilefw_spatial."))


def test_every_part_is_named_where_the_package_is_told() -> None:
    parts = {path.stem for path in ROOT.glob("*.py")} | {path.parent.name for path in ROOT.glob("*/__init__.py")}
    words = set(re.findall(r"\w+", tilefw_spatial.__doc__ or ""))
    assert not parts - {"__init__"} - words


@pytest.mark.parametrize("judge", sorted(JUDGES))
def test_a_judge_knows_neither_the_compiler_nor_another_judge(judge: str) -> None:
    found = set(_imported(judge))
    assert "program" in found, "imports are looked at"
    assert not found & (STAGES | (JUDGES - {judge}))


def test_the_figures_of_the_docs_are_those_of_the_benchmarks() -> None:
    top = Path(__file__).parents[3]
    docs, sweep, network = ((top / page).read_text(encoding="utf-8") for page in (
        "docs/spatial.md", "bench/spatial-matmul.md", "bench/spatial-resnet50.md",
    ))
    table = [line for line in docs.splitlines() if re.match(r"\| \d{4} \|", line)]
    assert len(table) > 5 and not {*table} - {*sweep.splitlines()}
    least, cycles = re.search(r"least utilisation: \*\*(\S+)%\*\*", sweep), re.search(r"\*\*(\S+) cycles\*\*", network)
    assert least and f"at least {least[1]} %" in docs
    assert cycles and f"{cycles[1]} cycles" in docs
