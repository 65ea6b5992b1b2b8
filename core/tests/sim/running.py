"""Runs a toy program over NumPy arrays and gives back what it left in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from toy import CHIP, assemble

from tilefw.api.device import ALL_CHECKS, LaunchOptions, LaunchReport
from tilefw.sim.engine.load import load_program
from tilefw.sim.engine.run import launch
from tilefw.sim.memory.regions import GlobalMemory
from tilefw.sim.program import OffsetPromises, SimulatedChip


@dataclass
class Outcome:
    report: LaunchReport
    arrays: list[np.ndarray]

    @property
    def checks(self) -> list[str]:
        return sorted({f.check for f in self.report.findings})

    def finding(self, check: str) -> Any:
        found = [f for f in self.report.findings if f.check == check]
        assert len(found) == 1, f"one {check} finding expected: {self.report.findings}"
        return found[0]


def run(
    text: str, *arrays: np.ndarray | int, grid: int = 1, block: int = 8, chip: SimulatedChip = CHIP, shared: int = 0,
    dynamic: int = 0, local: int = 0, pad: int = 0, readonly: bool = False, promises: OffsetPromises | None = None, **options: Any,
) -> Outcome:
    """Arrays become arguments in order; an int is an uninitialised array of so many bytes."""
    memory = GlobalMemory()
    handles = []
    for number, array in enumerate(arrays):
        size = array if isinstance(array, int) else array.nbytes
        handle = memory.allocate(size, label=f"arg{number}", readonly=readonly)
        if not isinstance(array, int):
            memory.region(handle).initialise(0, array.tobytes())
        handles.append(handle)
    program = assemble(text, parameters=len(arrays), shared=shared, dynamic=bool(dynamic), local=local, pad=pad)
    loaded = load_program(replace(program, promises=promises), chip, memory)
    block_bytes = np.array([memory.region(h).base for h in handles], dtype=np.uint64).tobytes()
    options.setdefault("checks", ALL_CHECKS)
    report = launch(loaded, memory, (grid,), (block, 1, 1), block_bytes, LaunchOptions(dynamic_shared=dynamic or None, **options))
    results = []
    for handle, array in zip(handles, arrays, strict=True):
        region = memory.region(handle)
        dtype = np.uint32 if isinstance(array, int) else array.dtype
        results.append(region.data[: region.size].view(dtype).copy())
    return Outcome(report, results)
