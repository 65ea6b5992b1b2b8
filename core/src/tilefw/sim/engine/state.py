"""One launch in progress as its batches, lanes and checks look it up: geometry, memory, schedule and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilefw.api.device import LaunchOptions
from tilefw.api.execution_trace import ExecutionTrace
from tilefw.api.integers import ceil_div
from tilefw.sim.counters import Counters
from tilefw.sim.engine.joint_agents import JointAgents
from tilefw.sim.engine.observers import Observers
from tilefw.sim.memory.regions import GlobalMemory, Region
from tilefw.sim.memory.reservations import Reservations
from tilefw.sim.memory.views.words import RememberedWords
from tilefw.sim.program import Instruction, Program, SimulatedChip
from tilefw.sim.report import LaunchStopped, Reporter


@dataclass(frozen=True, slots=True)
class Geometry:
    """`grid` workgroups of `block` threads: `threads` of a workgroup in `waves` waves of `wave_size` lanes; a cluster is
    a box of `cluster` workgroups."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    wave_size: int
    cluster: tuple[int, int, int] = (1, 1, 1)

    @property
    def cluster_workgroups(self) -> int:
        """Workgroups of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def waves(self) -> int:
        return ceil_div(self.threads, self.wave_size)

    @property
    def workgroups(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def coordinates(self, workgroup: int) -> tuple[int, int, int]:
        """Of workgroup number `workgroup` in the grid."""
        x, y, _ = self.grid
        return workgroup % x, workgroup // x % y, workgroup // (x * y)


@dataclass(slots=True)
class LaunchMemory:
    """What all workgroups share, and how much each has of its own, in bytes; `spaces` are those of the chip's own (`Chip.spaces`).

    `argument_base` is the global address of the argument block, 0 where the program has none in memory. `reservations` are made by
    the first load-reserved that executes. `remembered` is what words held before and what agents know, for checks that ask; the
    launch's waves are its agents from `first_agent` on.
    """

    allocations: GlobalMemory
    parameters: Region
    constants: Region
    shared_bytes: int
    dynamic_shared: int
    local_bytes: int
    spaces: Mapping[str, int] = field(default_factory=dict)
    argument_base: int = 0
    reservations: Reservations | None = None
    remembered: RememberedWords | None = None
    first_agent: int = 0


@dataclass(slots=True)
class Diagnostics:
    """What a launch reports: findings, counters and what a recorder wrote down, and the checks that observe it."""

    counters: Counters = field(default_factory=Counters)
    reporter: Reporter = field(default_factory=Reporter)
    observers: Observers = field(default_factory=Observers)
    trace: ExecutionTrace | None = None


class CountedBlock(Protocol):
    """A block of the program: the number of its first instruction, its instructions, how many, and how many for each unit."""

    start: int
    instructions: list[Instruction]
    size: int

    @property
    def units(self) -> Mapping[str, int]: ...


class ExecutionOrder:
    """The order of execution and its budget. `random` permutes what has no order of its own; None: the plain order."""

    __slots__ = ("_blocks", "_budget", "_counters", "_counts", "_reporter", "random")

    def __init__(self, blocks: Sequence[CountedBlock], options: LaunchOptions, diagnostics: Diagnostics) -> None:
        self.random = np.random.default_rng(options.seed) if options.seed else None
        self._budget = options.budget
        self._blocks = blocks
        self._counters, self._reporter = diagnostics.counters, diagnostics.reporter
        self._counts = [0] * len(blocks)

    def count(self, block: int, instructions: int) -> None:
        """Instructions that all threads of a path have executed; raises Fault when the budget is spent."""
        self._counts[block] += instructions
        self._counters.executed += instructions
        if self._counters.executed > self._budget:
            self._reporter.add(
                "budget", "TFW0810", f"the kernel executed more than {self._budget} instructions (over all threads)",
                self._blocks[block].instructions[-1], note="it does not end, or needs a larger budget",
            )
            raise LaunchStopped

    def count_units(self) -> None:
        """Add up the executed instructions by unit."""
        for block, count in zip(self._blocks, self._counts, strict=True):
            for unit, amount in block.units.items():
                if count:
                    self._counters.add(f"instructions.{unit}", count // block.size * amount)


@dataclass(slots=True)
class LaunchState:
    """What every part of a running launch may look up. `joint`: the launches that run at once with it, None where it runs alone."""

    chip: SimulatedChip
    program: Program
    options: LaunchOptions
    geometry: Geometry
    memory: LaunchMemory
    schedule: ExecutionOrder
    diagnostics: Diagnostics
    joint: JointAgents | None = None

    def shares_with_others(self, region: Region) -> bool:
        """Whether launches that run at once reach a region: its races are for the check of races between ranks."""
        return self.joint is not None and bool(region.base)
