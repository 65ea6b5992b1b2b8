"""The kernel author's guide: its Python blocks run, one after the other as a reader would, and its tables name real things."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import pytest

import tilefw.language as tl
from tilefw.api import CompileOptions
from tilefw.language.extra import libdevice
from tilefw.runtime.plugins import loader

PAGE = Path("docs", "kernel-authors-guide.md")
GUIDE = next((parent / PAGE for parent in Path(__file__).parents if (parent / PAGE).is_file()), None)


@pytest.fixture(scope="module")
def text() -> str:
    assert GUIDE is not None, "docs/kernel-authors-guide.md is missing"
    return GUIDE.read_text()


def test_the_python_blocks_run(text: str) -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M)
    assert len(blocks) >= 8
    for index, block in enumerate(blocks):
        file = f"<guide block {index}>"
        linecache.cache[file] = (len(block), None, block.splitlines(True), file)
        exec(compile(block, file, "exec"), names)


def test_the_names_of_the_tables_are_there(text: str) -> None:
    table = text.partition("## The functions of the language")[2].partition("\n### ")[0]
    for row in re.findall(r"^\| .* \| (.*) \|$", table, flags=re.M):
        for words in re.findall(r"`([^`]+)`", row):
            for word in words.split():
                if re.fullmatch(r"[a-z]\w*", word) and word not in ("other", "volatile", "names"):
                    assert hasattr(tl, word), word


def test_the_functions_of_libdevice_are_there(text: str) -> None:
    table = text.partition("### libdevice")[2].partition("\n## ")[0]
    families = {"sub", "mul", "div", "fma", "rcp", "sqrt"}  # of which the directions of rounding make names
    words = {word for row in re.findall(r"^\| (`.*) \| .* \|$", table, flags=re.M) for part in re.findall(r"`([^`]+)`", row)
             for word in part.split()}
    assert {f"{family}_rn" for family in families} <= set(dir(libdevice))
    assert len(words) > 80 and words - families <= set(dir(libdevice))


def test_the_table_of_targets_has_their_numbers(text: str) -> None:
    table = text.partition("## What differs between targets")[2].partition("\n## ")[0]
    names, *rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines() if row.startswith("|")]
    said = {row[0]: row[1:] for row in rows}
    for column, name in enumerate(names[1:]):
        info = loader.find_target(name.strip("`")).info
        limits, stages = info.limits, info.default_options.get("num_stages", CompileOptions().num_stages)
        numbers = {
            "threads of a program at most": limits["threads_per_workgroup"],
            "`num_warps` at most": limits["threads_per_workgroup"] // limits["lanes"],
            "shared memory of a program, KiB": limits["shared_bytes"] >> 10,
            "registers of a lane": limits["registers_per_thread"],
            "default of `num_stages`": stages,
        }
        assert said["lanes of a warp"][column].split(",")[0] == str(limits["lanes"])
        assert {row: said[row][column] for row in numbers} == {row: str(number) for row, number in numbers.items()}


def test_the_error_shown_is_the_one_that_users_get(text: str) -> None:
    goldens = Path(__file__).parents[1] / "frontend" / "goldens" / "errors.txt"
    shown = re.findall(r"^```text\n(error.*?)^```$", text, flags=re.S | re.M)
    assert shown
    for error in shown:
        assert error.strip() in goldens.read_text()
