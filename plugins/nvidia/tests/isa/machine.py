"""One instruction sequence run on arrays by the simulator, a thread an element: how meanings are compared with NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from chips_here import CHIPS, EVERYTHING

from tilefw.api import Artifact, BufferView, Entry, LaunchOptions, Parameter
from tilefw.api.integers import ceil_div
from tilefw_nvidia.chips import Architecture, Chip
from tilefw_nvidia.simulate.device import Simulator

THREADS = 128
_LETTERS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}
_REGISTER = re.compile(r"%(p|h|r|d|f|q)(\d+)\b")
_TYPES = {"p": "pred", "h": "b16", "r": "b32", "d": "b64", "f": "f32", "q": "f64"}


def _held(width: int) -> str:
    """The register letter for elements of so many bytes."""
    return {1: "h", 2: "h", 4: "r", 8: "d"}[width]


def source(code: str, inputs: Sequence[np.dtype], outputs: Sequence[np.dtype], target: str = "sm_80", count: int = THREADS) -> str:
    """A kernel that loads input i into register `Xi`, runs the code, and stores `X(10+j)` as output j (X: h, r, d by width)."""
    parameters = ", ".join(f".param .u64 .ptr .global a{i}" for i in range(len(inputs) + len(outputs)))
    registers = " ".join(f".reg .{name} %{letter}<40>;" for letter, name in _TYPES.items())
    lines = ["mov.u32 %r39, %tid.x;", "mov.u32 %r38, %ctaid.x;", "mov.u32 %r37, %ntid.x;", "mad.lo.u32 %r39, %r38, %r37, %r39;"]
    lines += [f"setp.ge.u32 %p39, %r39, {count};", "@%p39 ret;"]
    for index, kind in enumerate([*inputs, *outputs]):
        lines += [
            f"ld.param.u64 %d{20 + index}, [a{index}];",
            f"mad.wide.u32 %d{20 + index}, %r39, {kind.itemsize}, %d{20 + index};",
        ]
        if index < len(inputs):
            lines.append(f"ld.global.{_LETTERS[kind.itemsize]} %{_held(kind.itemsize)}{index}, [%d{20 + index}];")
    lines.append(code)
    for index, kind in enumerate(outputs):
        place = 20 + len(inputs) + index
        lines.append(f"st.global.{_LETTERS[kind.itemsize]} [%d{place}], %{_held(kind.itemsize)}{10 + index};")
    body = "\n".join(lines)
    return f".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k({parameters})\n{{\n{registers}\n{body}\nret;\n}}\n"


def _simulator(text: str) -> Simulator:
    """Of the oldest chip that runs the text's target; of one made up that has every row where none here does."""
    target = Architecture.parse(re.search(r"\.target (\w+)", text)[1])
    return Simulator(next((chip for chip in CHIPS if target.runs_on(chip.architecture)), EVERYTHING))


def launch(
    text: str, arguments: Sequence[Any], grid: int, block: int, chip: Chip | None = None, **options: Any
) -> tuple[list[bytes], tuple[Any, ...]]:
    """Run entry k on copies of the arrays; gives the buffers after it, and the findings."""
    parameters = tuple(Parameter(f"a{i}", "pointer", "uint8", 8 * i, 8, 8) for i in range(len(arguments)))
    device = _simulator(text) if chip is None else Simulator(chip)
    handles = []
    for array in arguments:
        handles.append(device.allocate(array.nbytes))
        device.write(handles[-1], np.ascontiguousarray(array).view(np.uint8).data)
    artifact = Artifact("nvidia-sm80", "ptx", text, (Entry("k", parameters, (block, 1, 1)),))
    report = device.launch(
        device.load(artifact), "k", (grid, 1, 1), [BufferView(h) for h in handles], LaunchOptions(block=(block, 1, 1), **options)
    )
    return [device.read(h, a.nbytes) for h, a in zip(handles, arguments, strict=True)], report.findings


def run(code: str, inputs: Sequence[np.ndarray], outputs: Sequence[Any], target: str = "sm_80") -> list[np.ndarray]:
    """The outputs of the code (see `source`) on the elements of the inputs; the simulator must have nothing to report."""
    count = inputs[0].size
    arrays = [np.ascontiguousarray(a).ravel() for a in inputs] + [np.zeros(count, kind) for kind in outputs]
    text = source(code, [a.dtype for a in inputs], [np.dtype(k) for k in outputs], target, count)
    buffers, findings = launch(text, arrays, ceil_div(count, THREADS), THREADS)
    assert findings == (), findings
    return [np.frombuffer(b, a.dtype) for b, a in zip(buffers, arrays, strict=True)][len(inputs) :]
