"""A launch from beginning to end: batches of workgroups in flight, and the report."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilefw.api.device import LaunchOptions, LaunchReport
from tilefw.api.errors import LaunchError
from tilefw.sim.checks import barriers
from tilefw.sim.engine.execution import IDLE_POLLS, Execution
from tilefw.sim.engine.joint_agents import JointAgents
from tilefw.sim.engine.launch import RunningLaunch, make_launch
from tilefw.sim.engine.load import LoadedProgram
from tilefw.sim.floats import Array
from tilefw.sim.memory.regions import GlobalMemory
from tilefw.sim.memory.spaces import copies
from tilefw.sim.report import LaunchStopped

# Threads of a batch: enough to spread the cost of a step, few enough that registers stay in the cache. The workloads of
# bench/simulating.py (Triton's code, default checks, one thread of a server's CPU), best of three, in ms:
#   threads             2048   4096   8192  16384  32768
#   vector add, 1 M      108     53     40     44     42
#   softmax 1024²        267    174    104     97     95
#   matmul 512³          573    435    376    394    548
BATCH_THREADS = 8192
BATCH_WORKGROUPS = 64
# Blocks after which a batch that has not ended lets another one in: it may be waiting for it.
QUANTUM = 20_000
# Turns in which each batch of a sample of the grid has polled in vain, 8192 polls, after which the sample is given up: some
# seconds, where the budget would take hours.
VAIN_TURNS = 8192 // IDLE_POLLS
# Shared and local memory of one batch.
BATCH_BYTES = 1 << 29
RESIDENT_BYTES = 1 << 32
ORDER_CHUNK = 1 << 20


def launch(
    loaded: LoadedProgram, memory: GlobalMemory, grid: Sequence[int], block: tuple[int, int, int], arguments: bytes,
    options: LaunchOptions,
) -> LaunchReport:
    """Run a grid of workgroups to its end. `grid` counts workgroups along one to three axes, `block` threads along x, y and z.

    `arguments` is the argument block (`pack`), `memory` what its pointers lead to. Raises LaunchError for a grid, a block or an
    argument block that the program or the chip does not take; faults of the program itself are findings of the report.
    """
    return run(made_ready(loaded, memory, grid, block, arguments, options))


def made_ready(
    loaded: LoadedProgram, memory: GlobalMemory, grid: Sequence[int], block: tuple[int, int, int], arguments: bytes,
    options: LaunchOptions, joint: JointAgents | None = None,
) -> RunningLaunch:
    """What `launch` runs. Raises LaunchError as it does."""
    axes = [int(n) for n in grid] + [1] * (3 - len(grid))
    if len(axes) != 3:
        raise LaunchError(f"a grid of {len(grid)} axes", code="TFW0343", help="give one to three")
    return make_launch(loaded, memory, (axes[0], axes[1], axes[2]), block, arguments, options, joint)


def pack(values: Mapping[int, bytes], size: int) -> bytes:
    """An argument block of `size` bytes: each of `values` at its offset in bytes, zeros elsewhere."""
    block = bytearray(size)
    for offset, data in values.items():
        block[offset : offset + len(data)] = data
    return bytes(block)


@dataclass(slots=True)
class Turn:
    """What a launch that is run by turns did in one of them. `vain`: all that it did was poll memory that nobody changed, or wait
    for room on the device; `running` of its batches have not ended, the one whose turn it was as the last, and `begun` says whether
    all workgroups of the grid are among those or have ended."""

    vain: bool
    running: Sequence[Execution]
    begun: bool


class Room:
    """How much of one device is free for workgroups, those of several launches at once: each takes its part of what holds as many
    as fit of its launch alone."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = Fraction(0)

    def fitting(self, most: int) -> int:
        """How many workgroups still fit, of a launch of which `most` fit alone."""
        return int((1 - self._taken) * most)

    def take(self, workgroups: int, most: int) -> None:
        """So many more are in flight, or fewer."""
        self._taken += Fraction(workgroups, most)


def run(launch: RunningLaunch) -> LaunchReport:
    """Execute every workgroup."""
    with kept_regions(launch.state.memory.allocations), np.errstate(all="ignore"):
        turns = run_by_turns(launch, QUANTUM)
        while True:
            try:
                next(turns)
            except StopIteration as ended:
                return ended.value


def run_by_turns(launch: RunningLaunch, quantum: int, room: Room | None = None) -> Generator[Turn, int, LaunchReport]:
    """Execute every workgroup; gives way after about `quantum` blocks of code, or as many as it is sent, and where all that a batch
    does is wait. Whoever runs it has made the memory's regions ready (`kept_regions`). `room` is that of its device."""
    began = time.perf_counter()
    state = launch.state
    placed = _write_argument_block(launch)
    allocations, diagnostics = state.memory.allocations, state.diagnostics
    try:
        yield from _run_batches(launch, quantum, room or Room())
        for observe in diagnostics.observers.finish:
            observe()
    except LaunchStopped:
        pass
    finally:
        if placed:
            allocations.free(placed)
        for observe in diagnostics.observers.close:
            observe()
        launch.lanes.close()
    state.schedule.count_units()
    seconds = time.perf_counter() - began
    return LaunchReport(diagnostics.reporter.findings, diagnostics.counters.totals(), seconds, trace=diagnostics.trace)


@contextmanager
def kept_regions(allocations: GlobalMemory) -> Iterator[None]:
    """Regions are as a launch begins with them, and afterwards as before.

    A signal's handler may launch within a launch of its thread. That one goes on with its own arrays, which it may be writing just
    now, of the copies that are in flight and of who has accessed what."""
    outer = [(region, region.flags, region.races) for region in allocations]
    for region, flags, _ in outer:
        region.flags, region.races = None if flags is None else flags.copy(), None
        region.settle()
    try:
        yield
    finally:
        for region, flags, races in outer:
            region.flags, region.races = flags, races


def _write_argument_block(launch: RunningLaunch) -> int:
    """Put the argument block where the program wants it; gives the handle of its allocation, or 0. Raises LaunchError."""
    if not launch.state.program.arguments_in_memory:
        return 0
    memory = launch.state.memory
    handle = memory.allocations.allocate(len(launch.arguments), label="the arguments", readonly=True)
    region = memory.allocations.region(handle)
    region.initialise(0, launch.arguments)
    memory.argument_base = region.base
    return handle


def _batch_size(launch: RunningLaunch) -> tuple[int, int]:
    """(Workgroups of a batch, workgroups in flight at most): few enough for the cache and for the host's memory."""
    state = launch.state
    threads = state.geometry.waves * state.geometry.wave_size
    each = max(1, min(BATCH_WORKGROUPS, BATCH_THREADS // threads))
    shape = 1, state.geometry.waves, state.geometry.wave_size
    own = sum(state.memory.spaces[space.name] * copies(space.owner, shape) for space in state.chip.spaces)
    per_group = 2 * (state.memory.shared_bytes + state.memory.local_bytes * threads + own)
    per_group *= 1 + state.diagnostics.observers.bytes_per_byte
    each = max(1, min(each, BATCH_BYTES // max(1, per_group)))
    resident = state.options.resident
    most = min(state.chip.resident_workgroups if resident is None else resident, RESIDENT_BYTES // max(1, per_group))
    return each, max(each if resident is None else 1, state.geometry.cluster_workgroups, most)


def _batches(launch: RunningLaunch, each: int) -> Iterator[Array]:
    """The grid, or what of it is asked for, in pieces, in order or permuted by the seed; never all of a huge grid at once."""
    geometry, chosen = launch.state.geometry, launch.state.options.programs
    if geometry.cluster_workgroups > 1:
        yield from _clusters(launch, each // geometry.cluster_workgroups or 1)
        return
    total, random = geometry.workgroups, launch.state.schedule.random
    for first in range(0, total if chosen is None else len(chosen), ORDER_CHUNK):
        last = first + ORDER_CHUNK
        chunk = np.arange(first, min(total, last)) if chosen is None else np.array(chosen[first:last], np.int64)
        order = chunk if random is None else random.permutation(chunk)
        for start in range(0, len(order), each):
            yield order[start : start + each]


def _clusters(launch: RunningLaunch, each: int) -> Iterator[Array]:
    """So many clusters of the grid at a time, the workgroups of each side by side, the first axis fastest."""
    geometry, random, chosen = launch.state.geometry, launch.state.schedule.random, launch.state.options.programs
    numbers = np.arange(geometry.workgroups).reshape(geometry.grid[::-1])
    (x, y, z), (a, b, c) = geometry.grid, geometry.cluster
    clusters = numbers.reshape(z // c, c, y // b, b, x // a, a).transpose(0, 2, 4, 1, 3, 5).reshape(-1, a * b * c)
    if chosen is not None:
        clusters = clusters[np.isin(clusters, chosen).any(axis=1)]
    order = clusters if random is None else random.permutation(clusters)
    for start in range(0, len(order), each):
        yield order[start : start + each].reshape(-1)


def _run_batches(launch: RunningLaunch, quantum: int, room: Room) -> Generator[Turn, int, None]:
    each, most = _batch_size(launch)
    waiting = _batches(launch, each)
    following = next(waiting, None)
    geometry, chosen = launch.state.geometry, launch.state.options.programs
    sample = chosen is not None and len(set(chosen)) < geometry.workgroups
    running: deque[Execution] = deque()
    vain = 0
    while following is not None or running:
        fitting = 0 if following is None else room.fitting(most) // geometry.cluster_workgroups * geometry.cluster_workgroups
        if following is not None and fitting:
            execution = Execution(launch, following[:fitting])
            room.take(len(execution.batch.workgroups), most)
            following = following[fitting:] if len(following) > fitting else next(waiting, None)
        elif running:
            execution = running.popleft()
        else:
            quantum = (yield Turn(True, running, False)) or quantum
            continue
        in_vain = False
        if execution.run(quantum):
            room.take(-len(execution.batch.workgroups), most)
            execution.batch.close()
            vain = 0
        else:
            running.append(execution)
            in_vain = execution.polled_in_vain
            vain = vain + 1 if in_vain else 0
        if sample and following is None and running and vain > VAIN_TURNS * len(running):
            barriers.report_absent(execution.batch, execution.polls)
            raise LaunchStopped
        quantum = (yield Turn(in_vain, running, following is None)) or quantum
