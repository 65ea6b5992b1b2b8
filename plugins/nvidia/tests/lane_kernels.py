"""Lane IR kernels to PTX and onto the simulator: each writes what it computes to its last argument, a thread a row."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from chips_here import OLDEST
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilefw.api import Artifact, BufferView, CompileOptions, LaunchOptions
from tilefw.api.device import ALL_CHECKS, Finding
from tilefw.api.machine import Function, FunctionOp
from tilefw.api.simt import selection_passes
from tilefw.simt.lane import Lane
from tilefw.simt.shared_memory.barriers import InsertBarriers
from tilefw.simt.shared_memory.placement import PlaceShared
from tilefw.tile.text.module import parse
from tilefw_nvidia.backend import NvidiaBackend
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips.targets import target
from tilefw_nvidia.select.lanes import PtxChip, description

SIZES = {"i8": 1, "f16": 2, "i16": 2, "f32": 4, "i32": 4, "f64": 8, "i64": 8}


@dataclass(frozen=True)
class Global:
    """The text of a thread's own accesses to argument `name`: n elements from its row on."""

    name: str
    argument: int
    n: int
    element: str

    @property
    def address(self) -> str:
        size = self.n * SIZES[self.element]
        return (
            f"  %{self.name}p = lane.ptr_to_int %{self.name} : !tile.ptr<{self.element}> to i64\n"
            f"  %{self.name}b = lane.splat %{self.name}p : i64 to vector<1xi64>\n"
            f"  %{self.name}s = lane.constant {size} : vector<1xi64>\n"
            f"  %{self.name}o = lane.muli %wide, %{self.name}s : vector<1xi64>\n"
            f"  %{self.name}a = lane.addi %{self.name}b, %{self.name}o : vector<1xi64>\n"
        )

    @property
    def places(self) -> str:
        size = SIZES[self.element]
        slots, immediates = ", ".join(["0"] * self.n), ", ".join(str(i * size) for i in range(self.n))
        where = f"slots = array<i64: {slots}>, immediates = array<i64: {immediates}>"
        return f"width = 1 : i64, {where}, buffer = {self.argument} : i64"

    @property
    def load(self) -> str:
        kind = f"vector<{self.n}x{self.element}>"
        parts = f'{{parts = "address", {self.places}}}'
        return f"{self.address}  %{self.name}v = lane.load %{self.name}a {parts} : (vector<1xi64>) -> {kind}\n"

    def store(self, value: str) -> str:
        kind = f"vector<{self.n}x{self.element}>"
        parts = f'{{parts = "address,value", {self.places}}}'
        return f"{self.address}  lane.store %{self.name}a, {value} {parts} : (vector<1xi64>, {kind}) -> ()\n"


def kernel(body: str, *arguments: Global, warps: int = 1) -> str:
    """A function `k` around a body, in which %t is the thread's index and %wide the same as i64."""
    named = ", ".join(f'%{a.name}: !tile.ptr<{a.element}> {{tile.name = "{a.name}"}}' for a in arguments)
    return (
        f"func.func @k({named}) attributes {{lane.waves = {warps} : i64}} {{\n  %t = lane.thread_id : () -> vector<1xi32>\n"
        f"  %wide = lane.exts %t : vector<1xi32> to vector<1xi64>\n{body}  func.return\n}}\n"
    )


def lowered(text: str, chip: Chip = OLDEST) -> ModuleOp:
    module = parse(text, dialects=[Lane])
    for step in (PlaceShared(description(chip).shared_bytes), InsertBarriers()):
        step.apply(Context(), module)
    return module


def select(module: ModuleOp, chip: Chip) -> list[Function]:
    """Selection of a module of lane IR, in place; the machine functions that it has then."""
    for each in selection_passes(PtxChip(chip, True), chip.target):
        each.apply(Context(), module)
    return [op.function for op in module.body.block.ops if isinstance(op, FunctionOp)]


def compiled(text: str, chip: Chip = OLDEST) -> Artifact:
    """Lane IR, through placement, barriers and selection, as PTX."""
    module = lowered(text, chip)
    select(module, chip)
    return NvidiaBackend(target(chip)).emit(module, CompileOptions())


def launched(artifact: Artifact, *arrays: np.ndarray, seed: int = 0, chip: Chip = OLDEST) -> tuple[np.ndarray, tuple[Finding, ...]]:
    """The last array after a run of one workgroup with every check on, and the findings."""
    device = NvidiaBackend(target(chip)).simulator()
    handles = []
    for array in arrays:
        handles.append(device.allocate(array.nbytes))
        device.write(handles[-1], np.ascontiguousarray(array).view(np.uint8).data)
    options = LaunchOptions(checks=ALL_CHECKS, seed=seed)
    report = device.launch(device.load(artifact), "k", (1, 1, 1), [BufferView(h) for h in handles], options)
    return np.frombuffer(device.read(handles[-1], arrays[-1].nbytes), arrays[-1].dtype).reshape(arrays[-1].shape), report.findings


def result(text: str, *arrays: np.ndarray, chip: Chip = OLDEST) -> np.ndarray:
    """The last array after a run without findings."""
    found, findings = launched(compiled(text, chip), *arrays, chip=chip)
    assert findings == (), findings
    return found


def instructions(artifact: Artifact) -> list[str]:
    """The opcodes in order."""
    return re.findall(r"^\t(?:@!?%p\d+ )?([a-z][\w.:]+)", artifact.text, re.MULTILINE)
