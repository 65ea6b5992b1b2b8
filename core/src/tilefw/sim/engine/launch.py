"""A launch from beginning to end: layout, batches of workgroups, budget, and the report."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.api.device import LaunchOptions, LaunchReport
from tilefw.api.errors import LaunchError
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks import unreachable
from tilefw.sim.checks.races import Races
from tilefw.sim.counters import Counters
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.frame import all_ones, zeros
from tilefw.sim.floats import Array
from tilefw.sim.matrix.unit import MatrixUnit
from tilefw.sim.memory.regions import GlobalMemory, Region
from tilefw.sim.program import Chip, Program
from tilefw.sim.report import Fault, Reporter
from tilefw.sim.steps.prepare import Prepared, prepare

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
# Shared and local memory of one batch.
BATCH_BYTES = 1 << 29
RESIDENT_BYTES = 1 << 32
ORDER_CHUNK = 1 << 20


@dataclass(slots=True)
class LoadedProgram:
    """A program with its variables laid out. `shared` and `local` are bytes of the static variables."""

    program: Program
    chip: Chip
    prepared: Prepared
    shared: int
    shared_alignment: int
    local: int
    constants: Region


def load_program(
    program: Program, chip: Chip, memory: GlobalMemory, placed: dict[str, int] | None = None
) -> LoadedProgram:
    """Place the variables and prepare the steps. Raises CodeError, LaunchError (memory).

    `placed` keeps the addresses of global variables that entries of one module share; new ones are added to it.
    """
    placed = {} if placed is None else placed
    symbols: dict[str, int] = {} if program.arguments_in_memory else {p.name: p.offset for p in program.parameters}
    ends = {"shared": 0, "local": 0, "const": 0}
    dynamic = []
    initial: list[tuple[int, bytes]] = []
    for variable in program.variables:
        if variable.space == "global" and variable.name in placed:
            symbols[variable.name] = placed[variable.name]
            continue
        if variable.space == "global":
            handle = memory.allocate(variable.size, label=variable.name, readonly=variable.readonly)
            region = memory.region(handle)
            region.initialise(0, variable.data if variable.data is not None else bytes(variable.size))
            for offset, target in variable.pointers:
                region.initialise(offset, ((region.base + target) % 2**64).to_bytes(8, "little"))
            symbols[variable.name] = placed[variable.name] = region.base
            continue
        if variable.space == "shared" and not variable.size:
            dynamic.append(variable)
            continue
        start = ends[variable.space]
        start += -start % max(1, variable.alignment)
        symbols[variable.name] = start
        ends[variable.space] = start + variable.size
        if variable.space == "const" and variable.data is not None:
            initial.append((start, variable.data))
    # Dynamic shared memory begins behind the static variables, at the widest alignment that any access can need.
    alignment = max([16, *(v.alignment for v in dynamic)])
    shared = ends["shared"] + (-ends["shared"] % alignment if dynamic else 0)
    for variable in dynamic:
        symbols[variable.name] = shared
    constants = Region(0, ends["const"], label="constant memory")
    constants.poison = None
    for start, data in initial:
        constants.initialise(start, data)
    return LoadedProgram(program, chip, prepare(program, symbols), shared, alignment, ends["local"], constants)


class Launch:
    """One launch in progress: everything that lanes, batches and checks look up."""

    def __init__(
        self, loaded: LoadedProgram, memory: GlobalMemory, grid: tuple[int, int, int], block: tuple[int, int, int],
        arguments: bytes, options: LaunchOptions,
    ) -> None:
        self.chip, self.prepared, self.memory = loaded.chip, loaded.prepared, memory
        self.grid, self.block, self.options = grid, block, options
        self.threads = block[0] * block[1] * block[2]
        self.waves = -(-self.threads // self.chip.wave_size)
        self.dynamic_shared = options.dynamic_shared or 0
        self.shared_bytes = loaded.shared + self.dynamic_shared
        self.local_bytes = loaded.local
        _check_launch(self, loaded.program)
        self.checks = options.checks
        self.track_poison = "initialisation" in self.checks
        self.watch_pending = "pending" in self.checks
        self.watch_banks = "bank_conflicts" in self.checks
        self.random = np.random.default_rng(options.seed) if options.seed else None
        self.counters = Counters()
        self.reporter = Reporter()
        self.races = Races(self.prepared.program.instructions) if "races" in self.checks else None
        self.matrix_unit = MatrixUnit(options.numerics == "hw")
        self.arguments, self.argument_base = arguments, 0
        self.parameters = Region(0, len(arguments), label="the parameters")
        self.parameters.initialise(0, arguments)
        self.parameters.poison = None
        self.constants = loaded.constants
        self.lanes = NumpyLanes(self)
        self._block_counts = [0] * len(self.prepared.blocks)
        self.first_values, self.first_poison = self._first_registers()

    def _first_registers(self) -> tuple[list[Array], list[Array | None]]:
        """What every slot holds at the start, before `Program.initial`, and its undefined bits. Batches share the arrays."""
        constants, declared = self.prepared.constants, len(self.prepared.program.registers)
        widths = set(self.prepared.slot_bits)
        empty = {bits: zeros(bits) for bits in widths}
        undefined = {bits: all_ones(empty[bits]) if self.track_poison else None for bits in widths}
        values = [constants.get(slot, empty[bits]) for slot, bits in enumerate(self.prepared.slot_bits)]
        return values, [undefined[bits] if slot < declared else None for slot, bits in enumerate(self.prepared.slot_bits)]

    def coordinates(self, linear: int) -> tuple[int, int, int]:
        x, y, _ = self.grid
        return linear % x, linear // x % y, linear // (x * y)

    def count(self, block: int, instructions: int) -> None:
        """Instructions executed by all threads of a strand; raises Fault when the budget is spent."""
        self._block_counts[block] += instructions
        self.counters.executed += instructions
        if self.counters.executed > self.options.budget:
            last = self.prepared.blocks[block].instructions[-1]
            self.reporter.add(
                "budget", "TFW0810", f"the kernel executed more than {self.options.budget} instructions (over all threads)", last,
                note="it does not end, or needs a larger budget",
            )
            raise Fault

    def run(self) -> LaunchReport:
        """Execute every workgroup."""
        began = time.perf_counter()
        placed = self._place_arguments()
        for region in self.memory:
            region.settle()
        try:
            with np.errstate(all="ignore"):
                self._run_batches()
            if self.races is not None and "leftovers" in self.checks:
                unreachable.report(self)
        except Fault:
            pass
        finally:
            for region in self.memory:
                region.flags = None
            if placed:
                self.memory.free(placed)
            if self.races is not None:
                self.races.close()
            self.lanes.close()
        self._count_units()
        seconds = time.perf_counter() - began
        return LaunchReport(self.reporter.findings, self.counters.totals(), seconds)

    def _place_arguments(self) -> int:
        """Put the argument block where the program wants it; gives the handle of its allocation, or 0. Raises LaunchError."""
        if not self.prepared.program.arguments_in_memory:
            return 0
        handle = self.memory.allocate(len(self.arguments), label="the arguments", readonly=True)
        self.memory.region(handle).initialise(0, self.arguments)
        self.argument_base = self.memory.region(handle).base
        return handle

    def _batch_size(self) -> tuple[int, int]:
        """(Workgroups of a batch, workgroups in flight at most): few enough for the cache and for the host's memory."""
        threads = self.waves * self.chip.wave_size
        each = max(1, min(BATCH_WORKGROUPS, BATCH_THREADS // threads))
        per_group = 2 * (self.shared_bytes + self.local_bytes * threads)
        if self.races is not None:
            per_group *= 8
        each = max(1, min(each, BATCH_BYTES // max(1, per_group)))
        return each, max(each, min(self.chip.resident_workgroups, RESIDENT_BYTES // max(1, per_group)))

    def _batches(self, each: int) -> Iterator[np.ndarray[Any, Any]]:
        """The grid in pieces, in order or permuted by the seed; never all of a huge grid at once."""
        total = self.grid[0] * self.grid[1] * self.grid[2]
        for first in range(0, total, ORDER_CHUNK):
            chunk = np.arange(first, min(total, first + ORDER_CHUNK))
            order = chunk if self.random is None else self.random.permutation(chunk)
            for start in range(0, len(order), each):
                yield order[start : start + each]

    def _run_batches(self) -> None:
        each, most = self._batch_size()
        waiting = self._batches(each)
        following = next(waiting, None)
        running: deque[Batch] = deque()
        resident = 0
        while following is not None or running:
            if following is not None and (not running or resident + len(following) <= most):
                batch = Batch(self, following)
                resident += len(batch.linear)
                following = next(waiting, None)
            else:
                batch = running.popleft()
            if batch.run(QUANTUM):
                resident -= len(batch.linear)
                batch.close()
            else:
                running.append(batch)

    def _count_units(self) -> None:
        for block, count in zip(self.prepared.blocks, self._block_counts, strict=True):
            for unit, amount in block.units.items():
                if count:
                    self.counters.add(f"instructions.{unit}", count // block.size * amount)


def _check_launch(launch: Launch, program: Program) -> None:
    chip = launch.chip
    if any(n < 1 for n in launch.block) or launch.threads > chip.max_threads:
        raise LaunchError(
            f"a workgroup of {launch.block} threads", code="TFW0342", note=f"{chip.name} takes 1 to {chip.max_threads} threads"
        )
    if any(n < 1 or n > limit for n, limit in zip(launch.grid, chip.max_grid, strict=True)):
        raise LaunchError(f"a grid of {launch.grid} workgroups", code="TFW0343", note=f"{chip.name} takes 1 to {chip.max_grid}")
    required = program.required_workgroup
    if required is not None and required != launch.block:
        raise LaunchError(f"{program.name} needs workgroups of {required}, not {launch.block} threads", code="TFW0342")
    if program.max_workgroup is not None and launch.threads > program.max_workgroup:
        raise LaunchError(
            f"{program.name} takes at most {program.max_workgroup} threads a workgroup, not {launch.threads}", code="TFW0342"
        )
    if launch.dynamic_shared < 0 or launch.shared_bytes > chip.shared_bytes:
        raise LaunchError(
            f"{launch.shared_bytes} bytes of shared memory a workgroup", code="TFW0344", note=f"{chip.name} has {chip.shared_bytes}"
        )
    if launch.local_bytes > chip.local_bytes:
        raise LaunchError(
            f"{launch.local_bytes} bytes of local memory a thread", code="TFW0344", note=f"{chip.name} has {chip.local_bytes}"
        )


def launch(
    loaded: LoadedProgram, memory: GlobalMemory, grid: Sequence[int], block: tuple[int, int, int], arguments: bytes,
    options: LaunchOptions,
) -> LaunchReport:
    """Run `grid` workgroups (1 to 3 axes) of `block` threads with a packed argument block; raises LaunchError."""
    axes = [int(n) for n in grid] + [1] * (3 - len(grid))
    if len(axes) != 3:
        raise LaunchError(f"a grid of {len(grid)} axes", code="TFW0343", help="give one to three")
    return Launch(loaded, memory, (axes[0], axes[1], axes[2]), block, arguments, options).run()


def pack(values: Mapping[int, bytes], size: int) -> bytes:
    """An argument block of `size` bytes with `values` at their offsets."""
    block = bytearray(size)
    for offset, data in values.items():
        block[offset : offset + len(data)] = data
    return bytes(block)
