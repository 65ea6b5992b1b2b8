"""What a plugin says of its chip's time: a processor's pipes and schedulers, levels of memory, the cost of each instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tilefw.api.execution_trace import CHUNK
from tilefw.timing.chip_file import ChipFigures

Role = Literal["", "load", "store", "copy", "commit", "wait", "arrive", "arrive_behind", "bulk", "await"]
Purpose = Literal["", "conversion", "spill", "special"]
KINDS = ("integer", "float", "division", "special", "conversion", "shuffle", "shared", "memory", "matrix")
"""Of `ChipTiming.typical`: integer and float arithmetic of 32 bits, an integer's division, a special function, a conversion, an
exchange between lanes, an access to shared memory, one to global memory, a matrix product, of which the latency counts."""


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """One instruction of one wave, in cycles of the processor's clock.

    `pipe` (a name of `ChipTiming.pipes`) takes nothing else for `cycles`; `latency` after its issue a dependent instruction may
    issue. Accesses to memory wait longer, by the level that answers. `slots`: machine instructions that this one stands for, each
    of which takes a scheduler's turn. `role` is what it means to asynchronous copies: a `copy` joins the wave's open group, a
    `commit` closes it, a `wait` lets `pending` groups go on. An `arrive` counts at a barrier that counts once
    its latency is over, an `arrive_behind` also behind the copies of the open group, a `bulk` is an engine's copy that completes at
    such a barrier, an `await` waits for a phase of one (phases.py). `operations` are the arithmetic operations of all its
    lanes together. `purpose`: it converts a value's type or keeps a register's value elsewhere for a while, or is one of the slow
    operations: divisions, roots, exponentials.
    """

    pipe: str
    cycles: float
    latency: float
    slots: float = 1
    role: Role = ""
    pending: int = 0
    operations: int = 0
    purpose: Purpose = ""


@dataclass(frozen=True, slots=True)
class MemoryLevel:
    """One level of the memory hierarchy, seen from a processor.

    `shared_by`: whose it is. `nbytes`: what it holds, 0 where everything fits. `latency` cycles from an access's issue to its
    result. `bytes_per_cycle`: what the level moves for all who share it together. `line`: bytes that come at once to a processor's
    own cache, which is the first level.
    """

    name: str
    shared_by: Literal["processor", "die", "chip"]
    nbytes: int
    latency: float
    bytes_per_cycle: float
    line: int = CHUNK


@dataclass(frozen=True, eq=False)
class ChipTiming:
    """A chip as the model of time sees it.

    A processor has `schedulers`, among which waves are dealt out in turn; each issues one instruction of one wave in a cycle, a
    wave one in `issue_interval`. `pipes`: by name, whether each scheduler has one or the processor one for all. `shared_pass`
    cycles: one passage through shared memory, on the pipe `shared_pipe`. `levels` go from the processor outward; the last holds
    everything. `resident_waves` are the most that a processor holds at once. `launch_seconds`: from the host's call to the first
    workgroup; `workgroup_cycles`: from the end of a workgroup to the first instruction of the next one in its place.
    `matrix_pipes` are those of matrix units. `atomic_cycles`: from one atomic access to an address to the next; `shared_row`:
    bytes that a passage through shared memory can move. `spills_later`: what waves execute has no spills yet, which an assembler
    adds. `system`: that of linked devices which the chip is usually in, as `PLUGIN:NAME`. `typical`: what an instruction of each of
    `KINDS` costs, for estimates before there is machine code; without it there are none.
    """

    figures: ChipFigures
    product: str
    clock_hz: float
    processors: int
    dies: int
    schedulers: int
    issue_interval: float
    pipes: Mapping[str, Literal["scheduler", "processor"]]
    shared_pipe: str
    shared_pass: float
    barrier: float
    levels: tuple[MemoryLevel, ...]
    cost: Callable[[Any], InstructionCost]
    resident_waves: int
    launch_seconds: float
    workgroup_cycles: float
    matrix_pipes: frozenset[str] = frozenset()
    atomic_cycles: float = 0.0
    shared_row: int = 128
    spills_later: bool = False
    system: str = ""
    typical: Mapping[str, InstructionCost] = field(default_factory=dict)
