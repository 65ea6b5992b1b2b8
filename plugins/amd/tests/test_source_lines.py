"""A report names the line of the source: the author's where `.loc` says it, else the assembly text's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from served import assemble, read

from tilefw_amd.code_object import line_table

EXAMPLE = next(p / "examples/machine-code/scale.s" for p in Path(__file__).parents if (p / "examples/machine-code").is_dir())


@pytest.fixture
def text() -> str:
    return EXAMPLE.read_text()


def _place_of(text: str, mnemonic: str, **options: bool) -> tuple[str, int, int] | None:
    """(File, line, column) of the only instruction of that mnemonic."""
    found = read(assemble(text, "scale.s", **options), "scale.s")
    plain = read(assemble("".join(line for line in text.splitlines(True) if ".loc" not in line), "scale.s"), "a")
    at = plain.kernels[0].address + 8 * ["s_load_dwordx4", "v_lshl_add_u32"].index(mnemonic)
    place = line_table.read(found.elf).place(at + found.kernels[0].address - plain.kernels[0].address)
    return None if place is None else (place.file, place.line, place.column)


def test_lines_of_the_text_itself_are_known(text: str) -> None:
    line = next(i for i, said in enumerate(text.splitlines(), 1) if "v_lshl_add_u32" in said)
    assert _place_of(text, "v_lshl_add_u32", own_lines=True) == ("scale.s", line, 0)
    assert _place_of(text, "v_lshl_add_u32") is None


def test_lines_that_are_said_come_first(text: str) -> None:
    said = text.replace("scale:\n", 'scale:\n\t.file 1 "/kernels" "author.py"\n\t.loc 1 70 9\n').replace(
        "\tv_lshl_add_u32", "\t.loc 1 71 3 is_stmt 0\n\tv_lshl_add_u32"
    )
    for own in (False, True):
        assert _place_of(said, "s_load_dwordx4", own_lines=own) == ("/kernels/author.py", 70, 9)
        assert _place_of(said, "v_lshl_add_u32", own_lines=own) == ("/kernels/author.py", 71, 3)
