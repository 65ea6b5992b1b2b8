"""docs/onnx-pack.md shows what is so: its command's output, its counts, and the kernel that it quotes."""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the ONNX pack is an extra")

from tilefw.cli.main import main
from tilefw_conformance.packs.onnx.operators import OPERATORS
from tilefw_conformance.packs.onnx.subset import nodes


@pytest.fixture(scope="module")
def text() -> str:
    return (Path(__file__).parents[4] / "docs" / "onnx-pack.md").read_text("utf-8")


def test_commands_print_what_is_shown(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```console\n\$ tilefw (.*?)\n(.*?)^```$", text, flags=re.S | re.M)
    assert blocks
    for command, shown in blocks:
        assert main(shlex.split(command)) == 0
        printed = capsys.readouterr().out.splitlines()
        for line in shown.splitlines():
            assert any(fnmatchcase(found, line.replace("[", "[[]").replace("…", "*")) for found in printed), (line, printed)


def test_the_kernel_shown_is_the_one_that_is_made(text: str) -> None:
    node = nodes()["softmax_axis_1"]
    (shown,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M)
    assert shown == OPERATORS[node.operator](node).source


def test_every_module_of_lowerings_is_told_of(text: str) -> None:
    for lowering in OPERATORS.values():
        assert f"`{lowering.__module__.rpartition('.')[2]}.py`" in text
