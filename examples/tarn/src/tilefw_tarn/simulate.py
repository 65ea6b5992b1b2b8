"""The strict simulator of the Tarn N1: the matrix unit; the kit knows copies in flight, scratch and all the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilefw.api import Artifact, Entry
from tilefw.api.sim import (
    COPY_ACTIONS,
    WORDS,
    CopyingProgram,
    ProgramCall,
    ProgramDevice,
    SimulatedEntry,
    TextInstruction,
    codes,
    elements,
    parse_programs,
    simulated_entry,
)
from tilefw_tarn.isa import LOCAL_BYTES, MATRIX, ROWS, TABLE, TAGS

Array = np.ndarray[Any, Any]


class TarnSimulator(ProgramDevice):
    """Runs the text of artifacts."""

    format = "tarn"

    def decode(self, artifact: Artifact, name: str) -> Mapping[str, SimulatedEntry]:
        kernels = parse_programs(artifact.text, name, TABLE)
        return {kernel.entry.name: simulated_entry(kernel, ROWS, _ACTIONS, _TarnProgram) for kernel in kernels}


class _TarnProgram(CopyingProgram):
    def __init__(self, call: ProgramCall, entry: Entry, registers: list[Array | None]) -> None:
        super().__init__(call, entry, registers, LOCAL_BYTES, TAGS)


def _multiply(program: _TarnProgram, made: TextInstruction, sources: list[int]) -> None:
    _, type_, sums, _ = made.opcode.split(".")
    rows, columns, depth = MATRIX
    starts, steps = ([program.get(source) for source in sources[part : part + 3]] for part in (0, 3))

    def tile(which: int, height: int, width: int, element: str) -> Array:
        size = np.uint64(WORDS[element]().itemsize)
        down, across = np.arange(height, dtype=np.uint64)[:, None], np.arange(width, dtype=np.uint64)
        return (starts[which] + down * steps[which] + across * size).ravel()

    total = tile(0, rows, columns, sums)
    left, right = (
        _wide(elements(program.read_local(places, WORDS[type_]().itemsize), type_), type_)
        for places in (tile(1, rows, depth, type_), tile(2, depth, columns, type_))
    )
    before = elements(program.read_local(total, 4), sums).astype(np.float64)
    made_now = left.reshape(rows, depth) @ right.reshape(depth, columns)
    program.write_local(total, codes((before + made_now.ravel()).astype(np.float32)))


def _wide(x: Array, type_: str) -> Array:
    if type_ == "bf16":
        return (x.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return (x.view(np.float16) if type_ == "f16" else x).astype(np.float64)


_ACTIONS = {**COPY_ACTIONS, "mma": _multiply}
