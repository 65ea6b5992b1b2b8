"""The page about NVIDIA's cards: its commands and its Python run, against the stand-in, and what it names is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from cuda_standin import CudaStandIn
from oracles.standin.page import called, commands, is_shown
from tilefw_nvidia.device.interface import CUDA

ROOT = next(parent for parent in Path(__file__).parents if (parent / "docs" / "nvidia-card.md").is_file())
PAGE = (ROOT / "docs" / "nvidia-card.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "lines"), commands(PAGE), ids=lambda value: value if isinstance(value, str) else "")
def test_a_command_of_the_page_runs(command: str, lines: list[str], standin: CudaStandIn, tmp_path: Path) -> None:
    done = subprocess.run(called(command, ROOT, tmp_path), shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert [line for line in lines if not is_shown(line, done.stdout + done.stderr)] == [], done.stdout


def test_the_python_of_the_page_runs(standin: CudaStandIn) -> None:
    @tilefw.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) + tl.load(y_ptr + offsets, inside), inside)

    (python,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    x, y = np.arange(5000, dtype=np.float32), np.ones(5000, np.float32)
    names: dict[str, Any] = {"tilefw": tilefw, "add": add, "x": x, "y": y, "out": np.zeros_like(x), "n": 5000}
    exec(python, names)
    assert np.array_equal(names["out"], x + 1)


def test_the_functions_of_the_page_are_those_that_are_called() -> None:
    named = set(re.findall(r"`(cu[A-Z]\w+)`", PAGE))
    assert len(named) > 15 and named <= set(CUDA.functions)


def test_the_codes_of_the_page_are_those_of_the_device() -> None:
    named = set(re.findall(r"`(TFW\d{4})`", PAGE))
    assert named == {"TFW0604", "TFW0605", "TFW0606", "TFW0607", "TFW0348", "TFW0349", "TFW0350", "TFW0704"}
