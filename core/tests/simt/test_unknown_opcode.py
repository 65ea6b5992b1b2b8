"""An opcode that the chip's table does not have is the plugin's mistake, and the error shows the plugin's line."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_uniform_code as toy

from tilefw.api.errors import Place, PluginError
from tilefw.machine.inst import Function
from tilefw.simt.chip import template
from tilefw.simt.select.code import Code, Element


def misspelled(code: Code, x: Element, y: Element) -> Element:
    return code.inst("v_ad", "w32", x, y)  # the line


HERE = Path(__file__)
LINE = next(n for n, text in enumerate(HERE.read_text(encoding="utf-8").splitlines(), 1) if text.endswith("# the line"))


class Chip(toy.Chip):
    rules = toy.Chip.rules | {"subi.i32": misspelled, "muli.i32": template("v_ml", "w32")}


def error_of(key: str) -> PluginError:
    code = Code(Function("f", "toy"), Chip())
    code.place = Place("kernel.py", 7)
    x, y = code.new_register("w32"), code.new_register("w32")
    with pytest.raises(PluginError) as caught:
        code(key, x, y)
    assert caught.value.code == "TFW0512" and "kernel.py:7" in (caught.value.note or "") and not list(code.function.insts())
    return caught.value


def test_the_line_that_made_the_instruction_is_shown() -> None:
    error = error_of("subi.i32")
    assert "'v_ad'" in error.message and error.place is not None
    assert (Path(error.place.file), error.place.line) == (HERE, LINE)


def test_of_a_template_the_class_that_has_it_is_shown() -> None:
    error = error_of("muli.i32")
    assert "'v_ml'" in error.message and error.place is not None and Path(error.place.file) == HERE
    assert HERE.read_text(encoding="utf-8").splitlines()[error.place.line - 1].startswith("class Chip")
