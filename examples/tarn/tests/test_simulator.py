"""What code must not do is a finding at its line, and what no code can be is refused at its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilefw

HEAD = ".kernel k 4096\n.param x pointer fp32 0 8 -\n.param y pointer fp32 8 8 -\nr1:i64 = param 0:i64\nr2:i64 = param 1:i64\n"
IN = "dma.in.1 1:i64, 4:i64, r1, 0:i64, 64:i64, 4:i64, 4:i64\n"
MMA = "mma.f32.f32.16x16x16 0:i64, 1024:i64, 2048:i64, 64:i64, 64:i64, 64:i64\n"

FAULTS = {
    "uninitialised scratch": ("r3:f32x64 = load.local 0:i64, 0:i64, 1:i64, 4:i64\n", "that nothing has written", 0),
    "beyond what the kernel claims": ("store.local 4096:i64, 0:i64, 1:i64, 4:i64, 1:i64\n", "4096 bytes of the program's own", 0),
    "DMA out of range": ("dma.in.1 1:i64, 4:i64, r1, 0:i64, 65:i64, 4:i64, 4:i64\n", "in no buffer", 0),
    "DMA beyond it": ("dma.in.1 1:i64, 4:i64, r1, 3900:i64, 64:i64, 4:i64, 4:i64\n", "4096 bytes of the", 0),
    "DMA of no data": ("dma.out.1 1:i64, 4:i64, r2, 0:i64, 64:i64, 4:i64, 4:i64\n", "nothing has written", 0),
    "a tag that is none": ("dma.in.1 9:i64, 4:i64, r1, 0:i64, 64:i64, 4:i64, 4:i64\n", "8 tags", 0),
    "use before the wait": (IN + "r3:f32x64 = load.local 0:i64, 0:i64, 1:i64, 4:i64\n", "has not been awaited", 1),
    "another tag's wait": (IN + "wait 2:i64\nr3:f32x64 = load.local 0:i64, 0:i64, 1:i64, 4:i64\n", "has not been awaited", 2),
    "a copy over a copy": (IN + IN, "has not been awaited", 1),
    "a source that changes": (IN + "store.global r1, 0:i64, 1:i64, 4:i64, 7:f32\nwait 1:i64\n", "while it was in flight", 2),
    "memory that a copy will write": (
        IN + "wait 1:i64\ndma.out.1 1:i64, 4:i64, r2, 0:i64, 64:i64, 4:i64, 4:i64\n"
        "r3:f32x64 = load.global r2, 0:i64, 1:i64, 4:i64\n",
        "to these bytes of memory", 3,
    ),
    "an end before the wait": (IN, "have not been awaited", 0),
    "a variable that is not set": ("r3:i32 = var\nr4:i32 = copy r3\n", "nothing is set", 1),
    "a product of what nobody wrote": (MMA, "nothing has written", 0),
    "no end": ("forever\nend\n", "budget", 1),
}
REFUSED = {
    "no such shape": ("mma.f32.f32.8x8x8 0:i64, 0:i64, 0:i64, 64:i64, 64:i64, 64:i64\n", "no 'mma.f32.f32.8x8x8"),
    "no such row": ("r3:f32 = exp 1:f32\n", "no 'exp.f32'"),
    "two types": ("r3:i64 = addi 1:i32, 1:i64\n", "operands are of i32 and i64"),
    "lanes that do not fit": ("r3:i64x64 = number\nr4:i64x32 = addi r3, 1:i64\n", "one lane, or as many"),
    "an unknown register": ("if 1:i1\nr3:i32 = addi 1:i32, 1:i32\nend\nr4:i32 = copy r3\n", "r3 is not known here"),
    "a block without an end": ("if 1:i1\n", "has no end"),
    "too many lanes": ("r3:i32x128 = repeat 1:i32\n", "128 lanes"),
}


def launched(body: str, folder: Path) -> np.ndarray:
    path = folder / "k.tarn"
    path.write_text(f"{HEAD}{body}.end\n", encoding="utf-8")
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    tilefw.load(path, target="tarn-n1")["k"].launch((1,), [x, y], checks="all", budget=10_000)
    return y


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_at_its_line(name: str, tmp_path: Path) -> None:
    body, message, behind = FAULTS[name]
    with pytest.raises(tilefw.KernelError, match=message) as told:
        launched(body, tmp_path)
    assert told.value.place is not None and told.value.place.line == 6 + behind


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_code_is_refused_at_its_line(name: str, tmp_path: Path) -> None:
    body, message = REFUSED[name]
    with pytest.raises(tilefw.KernelError, match=message) as told:
        launched(body, tmp_path)
    assert told.value.place is not None and told.value.place.line == 5 + body.count("\n") + (name == "a block without an end")


def test_a_copy_that_is_awaited_arrives(tmp_path: Path) -> None:
    body = IN + "wait 1:i64\ndma.out.1 0:i64, 4:i64, r2, 0:i64, 64:i64, 4:i64, 4:i64\nwait 0:i64\n"
    np.testing.assert_array_equal(launched(body, tmp_path), np.arange(64))


def test_a_saved_text_runs_without_the_compiler(tmp_path: Path) -> None:
    body = IN + "wait 1:i64\ndma.out.1 0:i64, 4:i64, r2, 0:i64, 64:i64, 4:i64, 4:i64\nwait 0:i64\n"
    launched(body, tmp_path)
    code = f"""
import sys
for name in ("xdsl", "tilefw.frontend", "tilefw.loops"):
    sys.modules[name] = None
import numpy as np, tilefw
x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
tilefw.load({str(tmp_path / "k.tarn")!r}, target="tarn-n1")["k"].launch((1,), [x, y])
print(int(y.sum()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "64", done.stderr
