"""`tilefw.node(target, ranks)`: a simulated node of equal devices, with symmetric memory and launches on all ranks at once.

    node = tilefw.node(target, 8)
    x = node.zeros((1024,), "float32")
    node.launch(kernel, (4,), x, node.heap_bases, node.rank_numbers)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.api.device import Finding, LaunchReport
from tilefw.api.errors import KernelError, LaunchError, UnsupportedError, UsageError
from tilefw.distributed import collectives, engine_copies
from tilefw.distributed.joint_execution import joint_device, run
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.distributed.symmetric_heap import DEFAULT_BYTES, MOST_RANKS, SymmetricArray, SymmetricHeap
from tilefw.node_context import IN_FRONT
from tilefw.runtime import config
from tilefw.runtime.arguments import unwritten
from tilefw.runtime.arguments.arrays import HostArray, host_array
from tilefw.runtime.arguments.rank_context import in_context
from tilefw.runtime.debugged import DEBUGGER
from tilefw.runtime.executor import executor_for
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.plugins.loader import registry

RankedLaunch = tuple[Any, ...]
"""(rank, kernel, grid, arguments), with a mapping of keywords as a fifth where there are any."""


@dataclass(frozen=True, slots=True)
class JointResult:
    """What launches at once did: their ranks, kernels and reports, in the order in which they were given, and the checks that the
    device made of them. `launches` of a node that keeps records, which the reports then have (`LaunchReport.trace`)."""

    ranks: tuple[int, ...]
    kernels: tuple[str, ...]
    reports: tuple[LaunchReport, ...]
    checks: frozenset[str]
    launches: tuple[RankLaunch, ...] = ()

    @property
    def diagnostics(self) -> tuple[Finding, ...]:
        """The warnings of all launches."""
        return tuple(finding for report in self.reports for finding in report.findings)

    @property
    def counters(self) -> Mapping[str, int]:
        """Added up over all launches."""
        total: dict[str, int] = {}
        for report in self.reports:
            for name, value in report.counters.items():
                total[name] = total.get(name, 0) + value
        return total


class DeviceNode:
    """`ranks` devices of one target. Each has a symmetric heap of `heap_bytes`; all heaps are in one address space. A device holds
    `resident` programs of a launch at once, by default as many as the target's model of time says. Ranks reach those of their
    domain, `domain_size` ranks from a multiple of it on: all by default. `results` are those of all launches that have ended
    well. `trace`: launches record what they execute, so that `tilefw.distributed.node_time` tells their time."""

    def __init__(
        self, target: str | None, ranks: int, *, heap_bytes: int = DEFAULT_BYTES, resident: int | None = None,
        domain_size: int | None = None, trace: bool = False,
    ) -> None:
        if isinstance(ranks, bool) or not isinstance(ranks, int) or not 1 <= ranks <= MOST_RANKS:
            raise UsageError(f"a node has from 1 to {MOST_RANKS} ranks, not {ranks!r}", code="TFW0902")
        found = registry().find(config.resolve(config.settings(target=target, executor="sim")).target)
        self.target = found.name
        self.num_ranks = ranks
        self.results: list[JointResult] = []
        self.copies: list[engine_copies.RankCopy] = []
        self.resident = None if resident is None else config.positive(resident, "resident")
        domain = ranks if domain_size is None else config.positive(domain_size, "domain_size")
        self.heap = SymmetricHeap(ranks, config.positive(heap_bytes, "heap_bytes"), domain, reuses=not trace)
        self._contexts = [host_array(self.heap.context_words(rank)[IN_FRONT:]) for rank in self.ranks]
        self.trace = trace
        executor = executor_for(found, "default")
        joint_device(executor, self.target, self.heap)
        if trace and not getattr(executor.device, "traces", False):
            raise UnsupportedError(
                f"the {executor.device.executor} executor of {self.target} records no execution", code="TFW0666"
            )

    @property
    def records(self) -> Sequence[JointResult]:
        """Of a node with `trace=True`: the results with their launches and what these have executed."""
        return self.results

    @property
    def ranks(self) -> range:
        """The numbers of the ranks."""
        return range(self.num_ranks)

    @property
    def rank_numbers(self) -> list[int]:
        """As an argument: to each rank its own number."""
        return list(self.ranks)

    @property
    def heap_bases(self) -> np.ndarray:
        """The addresses of the heaps by rank, int64: a pointer into a heap means the same array on another rank when the bases are
        exchanged. Raises LaunchError TFW0876 where ranks do not reach all others, and so know different ones."""
        if self.heap.domain < self.num_ranks:
            raise LaunchError(
                f"the ranks of this node reach {self.heap.domain} ranks each, and have no heap bases in common", code="TFW0876",
                help="give each rank its own: [node.context(rank)[2:] for rank in node.ranks]",
            )
        return np.array(self.heap.bases, np.int64)

    def context(self, rank: int) -> np.ndarray:
        """What a rank's kernels know of the node: [rank, number of ranks, heap bases by rank], int64."""
        return self.heap.context_words(rank)[IN_FRONT:].copy()

    # --- memory --------------------------------------------------------------------------------------------------------

    def full(self, shape: Any, value: Any, dtype: Any = "float32", *, name: str | None = None) -> SymmetricArray:
        """A symmetric array with one value everywhere."""
        extents, kind = self._room(shape, dtype)
        return self.heap.add(name, [np.full(extents, value, kind) for _ in self.ranks])

    def zeros(self, shape: Any, dtype: Any = "float32", *, name: str | None = None) -> SymmetricArray:
        """A symmetric array of zeros."""
        return self.full(shape, 0, dtype, name=name)

    def empty(self, shape: Any, dtype: Any = "float32", *, name: str | None = None) -> SymmetricArray:
        """A symmetric array that nobody has written: who reads it before something is written there is told so."""
        extents, kind = self._room(shape, dtype)
        return self.heap.add(name, [unwritten.empty(extents, kind) for _ in self.ranks])

    def array(self, values: Any, dtype: Any = None, *, name: str | None = None) -> SymmetricArray:
        """A symmetric array of copies: a list has one array for each rank, anything else is the same for all."""
        each = values if isinstance(values, list) else [values] * self.num_ranks
        if len(each) != self.num_ranks:
            raise LaunchError(
                f"{len(each)} arrays for {self.num_ranks} ranks", code="TFW0872", help="give one for each rank, or one array"
            )
        kind = None if dtype is None else element_type(dtype)
        return self.heap.add(name, [np.array(value, kind, order="C") for value in each])

    def free(self, array: SymmetricArray) -> None:
        """Give the place of an array back to the heaps; what it holds stays with the caller. A node with `trace=True` gives no
        place out twice, as records of launches tell words by their addresses. Raises LaunchError TFW0872."""
        self.heap.free(array)

    def copy(self, source: np.ndarray[Any, Any], destination: np.ndarray[Any, Any]) -> None:
        """Have a copy engine copy a part of a rank's array, `x[rank]` or a slice of it, to another rank's: behind all launches so
        far and before all to come. Raises LaunchError TFW0883, TFW0876."""
        self.copies.append(engine_copies.copy(self.heap, source, destination, len(self.results)))

    @contextmanager
    def temporary(self) -> Iterator[list[SymmetricArray]]:
        """Arrays that are made meanwhile are freed at the end, but those that were put into the list."""
        before, kept = set(map(id, self.heap.arrays)), list[SymmetricArray]()
        try:
            yield kept
        finally:
            for array in self._arrays():
                if id(array) not in before and array not in kept:
                    self.free(array)

    def _arrays(self) -> list[SymmetricArray]:
        """Those that nobody has freed."""
        return [*self.heap.arrays]

    # --- collectives of the host, for comparison -------------------------------------------------------------------------

    def all_reduce(self, array: SymmetricArray, op: str = "sum") -> list[np.ndarray]:
        """By rank, what `all_reduce` leaves; the array stays as it is, here and below."""
        return collectives.all_reduce(array.arrays, op)

    def all_gather(self, array: SymmetricArray) -> list[np.ndarray]:
        """By rank, the arrays of all ranks along the first axis."""
        return collectives.all_gather(array.arrays)

    def reduce_scatter(self, array: SymmetricArray, op: str = "sum") -> list[np.ndarray]:
        """By rank, its part of what `all_reduce` leaves."""
        return collectives.reduce_scatter(array.arrays, op)

    def all_to_all(self, array: SymmetricArray) -> list[np.ndarray]:
        """By rank, what all ranks' arrays have for it."""
        return collectives.all_to_all(array.arrays)

    def broadcast(self, array: SymmetricArray, root: int = 0) -> list[np.ndarray]:
        """By rank, the array of the rank `root`."""
        self._check_rank(root)
        return collectives.broadcast(array.arrays, root)

    # --- launches ------------------------------------------------------------------------------------------------------

    def launch(self, kernel: Any, grid: Any, *args: Any, seed: int = 0, **keywords: Any) -> JointResult:
        """`kernel[grid](*args, **keywords)` on every rank at once. Of a SymmetricArray each rank is given its own; of a list of as
        many values as there are ranks, its value. Raises as `run`."""
        each = [
            (
                rank, kernel, self._of_rank(grid, rank), [self._of_rank(value, rank) for value in args],
                {name: self._of_rank(value, rank) for name, value in keywords.items()},
            )
            for rank in self.ranks
        ]
        return self.run(each, seed=seed)

    def run(self, launches: Sequence[RankedLaunch], *, seed: int = 0) -> JointResult:
        """Launches (rank, kernel, grid, arguments[, keywords]) at once, several on one rank too; `seed` draws the order of steps.

        Raises CheckError for what a check finds on a rank, which ends the others, and for a deadlock (TFW0870); LaunchError and
        CompileError as a launch does; UnsupportedError TFW0873, UsageError."""
        seed = config.settings(seed=seed).seed or 0
        if not launches:
            raise LaunchError("no launches", code="TFW0874", help="give at least one")
        for launch in launches:
            if not isinstance(launch, Sequence) or len(launch) not in (4, 5):
                raise LaunchError(
                    f"{launch!r} is no launch of a rank", code="TFW0874",
                    help="give (rank, kernel, grid, arguments), and as a fifth the keywords",
                )
        self.results.append(self.execute([self._ready(*launch) for launch in launches], seed))
        return self.results[-1]

    def context_of(self, rank: int) -> HostArray:
        """A rank's node context as its launches are given it."""
        return self._contexts[rank]

    def made(self, function: Any, values: Sequence[Any], extents: Any, options: Mapping[str, Any]) -> Launchable | None:
        """The launch of a jit function, compiled for the target; this and `execute` are for who watches stages to override."""
        return function.launcher.ready(values, extents, options)

    def execute(self, ready: Sequence[RankLaunch], seed: int) -> JointResult:
        """Run launches that are ready, at once. Raises as `run`."""
        running = [one for one in ready if all(one.made.grid)]
        reports, checks = (
            run(running, self.heap, seed, self.resident, self.trace) if running else ((), frozenset[str]())
        )
        done = iter(reports)
        return JointResult(
            tuple(one.rank for one in ready), tuple(one.made.name for one in ready),
            tuple(next(done) if all(one.made.grid) else LaunchReport() for one in ready), checks,
            tuple(ready) if self.trace else (),
        )

    def _ready(
        self, rank: int, kernel: Any, grid: Any, args: Sequence[Any], keywords: Mapping[str, Any] | None = None
    ) -> RankLaunch:
        self._check_rank(rank)
        given = [self._of_rank(value, rank) for value in args]
        named = {name: self._of_rank(value, rank) for name, value in (keywords or {}).items()}
        taken: list[tuple[Any, Launchable | None]] = []

        def take(function: Any, values: Sequence[Any], extents: Any, options: Mapping[str, Any]) -> None:
            taken.append((function, self.made(function, values, extents, options)))

        token = DEBUGGER.set(take)
        try:
            # Not as keywords: a kernel may have a parameter of that name.
            with in_context(self._contexts[rank]), config.target(self.target, executor="sim"):
                kernel[grid](*given, **named)
        except KernelError as error:
            error.note = "\n".join(filter(None, (error.note, f"in the launch of rank {rank}")))
            raise
        finally:
            DEBUGGER.reset(token)
        function, made = taken[0] if taken else (kernel, None)
        if made is None or len(taken) != 1:
            raise LaunchError(f"{kernel!r} launches {len(taken)} kernels; a rank's launch is of one", code="TFW0874")
        cooperative = bool(named.get("launch_cooperative_grid"))
        place = function.source.place(function.source.tree) if cooperative else None
        return RankLaunch(rank, made, self._contexts[rank], place, cooperative)

    def _check_rank(self, rank: int) -> None:
        if rank not in self.ranks:
            raise LaunchError(f"rank {rank!r} is none of the {self.num_ranks} of this node", code="TFW0874")

    def _room(self, shape: Any, dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape and type of an array for which there is room."""
        extents, kind = tuple(shape) if isinstance(shape, Iterable) else (shape,), element_type(dtype)
        self.heap.check_room(extents, kind)
        return extents, kind

    def _of_rank(self, value: Any, rank: int) -> Any:
        """What a rank is given of an argument."""
        if isinstance(value, SymmetricArray):
            if len(value) != self.num_ranks or value not in self._arrays():
                raise LaunchError(
                    f"{value.name or 'an argument'} is a symmetric array of another node, or was freed", code="TFW0874"
                )
            return value[rank]
        if isinstance(value, list) and len(value) == self.num_ranks:
            return self._of_rank(value[rank], rank)
        return value


def node(
    target: str, ranks: int, *, heap_bytes: int = DEFAULT_BYTES, resident: int | None = None, domain_size: int | None = None,
    trace: bool = False,
) -> DeviceNode:
    """A simulated node of `ranks` devices of a target. Raises UnsupportedError TFW0873 for a target whose simulator cannot run
    several launches at once, TFW0666 for a `trace` of one that records nothing."""
    return DeviceNode(target, ranks, heap_bytes=heap_bytes, resident=resident, domain_size=domain_size, trace=trace)


def element_type(dtype: Any) -> np.dtype[Any]:
    """NumPy's type of that name, or as it is. Raises LaunchError TFW0872 where there is none."""
    if isinstance(dtype, str):
        import ml_dtypes  # noqa: F401 - so that NumPy knows the names of narrow floats

    try:
        return np.dtype(dtype)
    except TypeError:
        raise LaunchError(f"there is no element type {dtype!r}", code="TFW0872", help="NumPy's names, or bfloat16, …") from None
