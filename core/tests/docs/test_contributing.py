"""The table of CONTRIBUTING.md: every kind of change has a row, and every path in it exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("## Where to add what")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| to add")
]
CHANGES = (
    "a matrix instruction", "instruction", "tile op", "a pass", "a simulator check", "a chip generation", "a diagnostic code",
    "a library kernel", "a conformance case", "a target option", "a CLI verb",
)
PATH = re.compile(r"`((?:core|plugins|frontends|conformance|docs|examples|bench)/[\w./-]+)`")


@pytest.mark.parametrize("change", CHANGES)
def test_a_kind_of_change_has_a_row(change: str) -> None:
    assert [row for row in ROWS if change in row[0]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_files_that_exist(row: list[str]) -> None:
    assert len(row) == 3
    for cell in row[1:]:
        paths = PATH.findall(cell)
        assert paths, cell
        assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [word for word in re.findall(r"`([^`]*/[^`]*)`", " ".join(row[1:])) if not PATH.fullmatch(f"`{word}`")] in (
        [], ["python core/tests/api/surface.py --write --unreleased"],
    ), "a path that the test does not see"


def test_every_path_of_the_page_exists() -> None:
    paths = PATH.findall(PAGE)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []
