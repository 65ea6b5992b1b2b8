"""Compiled launches to be run again and again: the program as read from its file, the host's storages, both simulators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from launches import bound, memory
from numpy.typing import NDArray

from tilefw.api import BufferPlacement, LaunchArguments
from tilefw.api.ir import ModuleOp, context, refuse_unserved
from tilefw.kernels.reference import typed
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.testing.programs import numbered
from tilefw.testing.random_program import fresh
from tilefw.tile.text.module import parse
from tilefw_spatial import container
from tilefw_spatial.check import Judged, judge
from tilefw_spatial.checked import arguments
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import SpatialProgram
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.target import SDM1
from tilefw_spatial.tick import TickArray
from tilefw_spatial.tick import simulate as simulate_slowly

MACHINE: Machine = load("sdm-1")
# What a product of 320 columns costs the slow simulator beside other instructions.
_PRODUCT = 60

Memory = list[NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run gave: cycles, codes of findings, the host's storages afterwards."""

    cycles: int
    findings: tuple[str, ...]
    memory: Memory

    def same(self, other: Ran) -> bool:
        """Whether nothing tells the two apart."""
        return (self.cycles, self.findings) == (other.cycles, other.findings) and all(
            np.array_equal(x, y) for x, y in zip(self.memory, other.memory, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Launched:
    """A program with the arrays of one launch; `predicted` is the schedule's own count, made before the program."""

    name: str
    program: SpatialProgram
    memory: Memory
    buffers: Mapping[str, BufferPlacement]
    predicted: int

    def fast(self) -> Ran:
        """On the fast simulator."""
        memory = [storage.copy() for storage in self.memory]
        places = [self._place(p.name) for p in arguments(self.program)]
        hosts = [None if b is None else HostBuffer("", memory[b.storage], b.offset) for b in places]
        done = simulate(self.program, MACHINE, hosts)
        return Ran(done.cycles, tuple(sorted(f.code for f in done.findings.all)), memory)

    def slow(self) -> Ran:
        """On the slow one."""
        memory = [storage.copy() for storage in self.memory]
        places = [self._place(p.name) for p in arguments(self.program)]
        hosts = [None if b is None else TickArray("", memory[b.storage], b.offset) for b in places]
        done = simulate_slowly(self.program, MACHINE, hosts)
        return Ran(done.cycles, tuple(sorted(f.code for f in done.findings)), memory)

    def _place(self, parameter: str) -> BufferPlacement | None:
        return self.buffers.get(parameter)

    def judged(self) -> Judged:
        """What the checker says."""
        return judge(self.program, MACHINE)

    def work(self) -> int:
        """About how much the slow simulator has to do."""
        return sum(b.count * (_PRODUCT if OPS[b.inst.op][0].name == "MAC" else 1) for b in self.judged().bursts)

    def moved(self, program: SpatialProgram) -> Launched:
        """The same launch of another program."""
        return replace(self, program=program)


def kernel(name: str, parameters: Mapping[str, Any], chips: int = 1, split: str = "n", seed: int = 0) -> Launched:
    """A launch of a library kernel. Raises UnsupportedError, CapacityError."""
    found = bound(name, parameters, seed)
    said = "".join(f" {key}={value}" for key, value in parameters.items()) + (f" chips={chips} split={split}" if chips > 1 else "")
    return _launched(name + said, found.instance.source.build(), found.launch, found.passed, chips, split)


def random(seed: int, index: int, tiles: bool) -> Launched:
    """Core's random tile program. Raises UnsupportedError, CapacityError."""
    program = numbered(seed, index, tiles=tiles)
    values = {name: typed(value) for name, value in fresh(program).items()}
    launch = launch_of(SDM1, values, program.grid)
    assert launch is not None
    return _launched(f"random {seed}:{index}{'' if tiles else ' elementwise'}", parse(program.text), launch, values)


def _launched(
    name: str, module: ModuleOp, launch: LaunchArguments, values: Mapping[str, Any], chips: int = 1, split: str = "n"
) -> Launched:
    """Compiled as the backend does it, and read back from its file: what is judged are words."""
    for step in default_passes(launch):
        step.apply(context(), module)
    refuse_unserved(module, SDM1.name, SDM1.capabilities, launch)
    made = compile_kernel(module, launch, MACHINE, chips, split)
    program = container.read(container.write(made.program), name)
    before = [storage.copy() for storage in memory(values)]
    return Launched(name, program, before, launch.buffers, max(s.cycles for s in made.schedules))
