"""A module of tile IR as a backend's `emit` gets it: each function on a machine of its own, and the artifact of them all.

A machine that copies blocks may want more memory of its own than it has: what does not fit with copies a turn early is written
with copies that are awaited at once, and then without any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tilefw.api.artifact import Artifact, Entry, Resources
from tilefw.api.backend import CompileOptions
from tilefw.api.errors import CapacityError
from tilefw.hardware.processor_device import TRAPS
from tilefw.hardware.traps import metadata_of
from tilefw.loops.effects import Effects
from tilefw.loops.function import CopyUse, lower_function
from tilefw.loops.machine import LoopMachine
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.tile.dialect.kernel_info import entry_of

M = TypeVar("M", bound=LoopMachine[Any])


@dataclass(frozen=True, slots=True)
class LoweredProgram(Generic[M]):
    """A kernel written on a machine; its entry says how many bytes of the machine's own memory one program takes."""

    entry: Entry
    machine: M


def lower_module(
    module: ModuleOp, make: Callable[[], M], options: CompileOptions, capacity: int | None = None
) -> list[LoweredProgram[M]]:
    """Every function of a module, each on a machine that `make` gives. Raises as `lower_function`."""
    effects = Effects("disjoint" in options.facts)
    return [_lowered(op, make, effects, capacity) for op in module.body.block.ops if isinstance(op, FuncOp)]


def _lowered(function: FuncOp, make: Callable[[], M], effects: Effects, capacity: int | None) -> LoweredProgram[M]:
    facts, entry = AxisInfoAnalysis(function), entry_of(function)
    machine, copies = make(), CopyUse.EARLY
    while True:
        try:
            scratch = lower_function(function, machine, effects, facts, capacity, copies)
            return LoweredProgram(replace(entry, scratch_bytes=scratch), machine)
        except CapacityError:
            if copies is CopyUse.NONE or not machine.copy_dims:
                raise
            machine, copies = make(), CopyUse(copies - 1)


def loop_artifact(target: str, format: str, text: str, programs: Sequence[LoweredProgram[Any]]) -> Artifact:
    """The artifact of lowered programs: entries, the messages of their traps, and the memory that they take."""
    traps = {program.entry.name: program.machine.traps for program in programs}
    return Artifact(
        target, format, text, tuple(program.entry for program in programs), metadata={TRAPS: metadata_of(traps)},
        resources=Resources(scratch_bytes=max((program.entry.scratch_bytes for program in programs), default=0)),
    )
