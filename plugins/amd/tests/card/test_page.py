"""The page about AMD's cards: its commands and its Python run, against the stand-in, and what it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import TARGET

import tilefw
import tilefw.language as tl
from hip_standin import HipStandIn
from oracles.standin.arrays import OnCard, Stream, pretend_torch
from oracles.standin.page import called, commands, is_shown
from tilefw.api.hardware import Card
from tilefw.runtime.executor import executor_for
from tilefw.runtime.plugins.loader import find_target
from tilefw_amd.device.interface import HIP

ROOT = next(parent for parent in Path(__file__).parents if (parent / "docs" / "amd-card.md").is_file())
PAGE = (ROOT / "docs" / "amd-card.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "lines"), commands(PAGE), ids=lambda value: value if isinstance(value, str) else "")
def test_a_command_of_the_page_runs(command: str, lines: list[str], standin: HipStandIn, tmp_path: Path) -> None:
    done = subprocess.run(called(command, ROOT, tmp_path), shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert [line for line in lines if not is_shown(line, done.stdout + done.stderr)] == [], done.stdout


def test_the_script_for_a_card_writes_its_page(standin: HipStandIn, tmp_path: Path) -> None:
    """Without PyTorch each peer is told as absent, and what is ours is measured on the card, checked and written down."""
    command = called("python bench/on_gpu.py --amd --part products --part agreement", ROOT, tmp_path)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# On AMD's card: Stand-in") and f"`{TARGET.name}` on card 0" in page
    assert "2 of 2 launches of library kernels give the same bits" in page
    (row,) = re.findall(r"^\| fp16, 64³ \| (\S+) \| 64x64x32/4 \| (\S+) \|", page, re.MULTILINE)
    assert float(row[0]) > 0 and 0 < float(row[1]) < 1
    if find_spec("torch") is None:
        assert "- hipBLASLt: PyTorch is not installed" in page and "- Triton: PyTorch is not installed" in page


def test_the_script_tells_that_there_is_no_card(machine: Callable[..., HipStandIn], tmp_path: Path) -> None:
    machine([])
    command = called("python bench/on_gpu.py --amd", ROOT, tmp_path)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.startswith("error[TFW0606]") and not (tmp_path / "page.md").exists()


def test_the_python_of_the_page_runs(standin: HipStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    @tilefw.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) + tl.load(y_ptr + offsets, inside), inside)

    first, second = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    x, y = np.arange(5000, dtype=np.float32), np.ones(5000, np.float32)
    names: dict[str, Any] = {"tilefw": tilefw, "add": add, "x": x, "y": y, "out": np.zeros_like(x), "n": 5000}
    exec(first, names)
    assert np.array_equal(names["out"], x + 1)
    card = executor_for(find_target(TARGET.name), "hw").device
    assert isinstance(card, Card)
    stream = card.new_stream()
    pretend_torch(monkeypatch, 0)
    sys.modules["torch"].cuda.Stream = lambda: Stream(stream)  # type: ignore[attr-defined]
    on_card = {name: OnCard(card, names[name]) for name in ("x", "y")} | {"out": OnCard(card, np.zeros_like(x))}
    with tilefw.target(TARGET.name, executor="hw"):
        exec(second, names | on_card | {"grid": (5,), "torch": sys.modules["torch"]})
    assert [args[8] for name, args in standin.calls if name == "hipModuleLaunchKernel"] == [0, stream]
    assert np.array_equal(on_card["out"].get(), x + 1)


def test_the_functions_of_the_page_are_those_that_are_called() -> None:
    named = set(re.findall(r"`(hip[A-Z]\w+)`", PAGE))
    assert len(named) > 15 and named <= set(HIP.functions)


def test_the_codes_of_the_page_are_those_of_the_device() -> None:
    named = set(re.findall(r"`(TFW\d{4})`", PAGE))
    assert named == {"TFW0604", "TFW0605", "TFW0606", "TFW0607", "TFW0348", "TFW0349", "TFW0350", "TFW0704"}


def test_the_page_says_that_no_card_has_run_it() -> None:
    assert "No AMD card has run any of this yet" in PAGE


