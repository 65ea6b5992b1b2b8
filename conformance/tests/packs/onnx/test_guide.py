"""docs/onnx-pack.md shows what is so: its counts, and the kernel that it quotes. Its command runs with those of all pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("tilefw_onnx", reason="the ONNX pack is an extra")

from tilefw_conformance.packs.onnx.subset import nodes
from tilefw_onnx.lowerings.operators import OPERATORS


@pytest.fixture(scope="module")
def text() -> str:
    return (Path(__file__).parents[4] / "docs" / "onnx-pack.md").read_text("utf-8")


def test_the_kernel_shown_is_the_one_that_is_made(text: str) -> None:
    node = nodes()["softmax_axis_1"]
    (shown,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M)
    assert shown == OPERATORS[node.operator](node).source


def test_every_module_of_lowerings_is_told_of(text: str) -> None:
    for lowering in OPERATORS.values():
        assert f"`{lowering.__module__.rpartition('.')[2]}.py`" in text
