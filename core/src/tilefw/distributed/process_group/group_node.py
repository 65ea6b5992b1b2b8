"""`tilefw.init_process_group(target)`: this process as one rank of a simulated node, whose other ranks are processes too.

    node = tilefw.init_process_group(target)        # in each process that torchrun or multiprocessing has started
    x = node.zeros((1024,), "float32")              # on every rank; x[node.rank] is this one's
    node.launch(kernel, (4,), x)                    # at once with the other ranks' launches
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import socket
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np

from tilefw.api.errors import KernelError, LaunchError, UnsupportedError, UsageError
from tilefw.distributed.node import DeviceNode, JointResult, RankedLaunch, element_type
from tilefw.distributed.process_group.coordinator import BEAT, Coordinator
from tilefw.distributed.process_group.environment import Membership, membership
from tilefw.distributed.process_group.messages import (
    Farewell,
    NodeSettings,
    ObjectExchange,
    RankOutcome,
    RankRequest,
    StillWaiting,
    SymmetricAllocation,
)
from tilefw.distributed.process_group.rendezvous import MeetingPlace, ended, join
from tilefw.distributed.process_group.shared_heaps import SharedHeaps
from tilefw.distributed.process_group.travelling_launch import Packed
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.distributed.symmetric_heap import DEFAULT_BYTES, SymmetricArray
from tilefw.runtime import config
from tilefw.runtime.arguments.rank_context import in_context
from tilefw.runtime.debugged import DEBUGGER
from tilefw.runtime.launch import LaunchResult
from tilefw.runtime.prints import printing

DEFAULT_SECONDS = 300.0
_SECONDS_TO_END = 5.0
_BARRIER = ObjectExchange("a barrier")


class ProcessGroupNode(DeviceNode):
    """A node of which this process is `rank`. What it shares with `DeviceNode` means the same, but that each process says its own
    part alone: a launch is this rank's, and allocations, `barrier` and collectives return when all ranks have come to them.

    Arrays are in memory that all processes have: `x[rank]` is every rank's, without a copy; `barrier` first, where another rank's
    process writes it. As a context it leaves the group at its end, and tells the other ranks what was raised."""

    def __init__(self, member: Membership, target: str | None, seconds: float, **sizes: Any) -> None:
        super().__init__(target, member.num_ranks, **sizes)
        self._freed: set[int] = set()  # offsets of arrays that this rank has freed, and maybe not all others
        self.rank, self._seconds = member.rank, seconds
        settings = NodeSettings(
            version("tilefw-core"), member.num_ranks, self.target, self.heap.nbytes, self.resident, self.heap.domain, self.trace
        )
        self._process = os.getpid()
        self._connection = self._first(member, settings, sizes) if not member.rank else self._other(member, settings)
        serving = None if self._coordinator is None else self._coordinator.thread
        self._leave = weakref.finalize(self, _leave, self._connection, self._process, serving)
        os.register_at_fork(after_in_child=_closing(weakref.ref(self)))

    def _first(self, member: Membership, settings: NodeSettings, sizes: Mapping[str, Any]) -> Connection:
        door = MeetingPlace(member, settings)
        self.memory = SharedHeaps(member.num_ranks, self.heap.nbytes)
        try:
            others = door.gather(self._seconds, self.memory.descriptor)
        except BaseException:
            door.close()
            raise
        finally:
            self.memory.close()
        mine, own = socket.socketpair()
        connections = {0: Connection(own.detach()), **others}
        simulated = DeviceNode(self.target, member.num_ranks, **sizes)
        self._coordinator = Coordinator(simulated, self.memory, connections, door, self._seconds)
        return Connection(mine.detach())

    def _other(self, member: Membership, settings: NodeSettings) -> Connection:
        connection, descriptor = join(member, settings, self._seconds)
        self.memory = SharedHeaps(member.num_ranks, self.heap.nbytes, descriptor)
        os.close(descriptor)
        self.memory.close()
        return connection

    # --- memory --------------------------------------------------------------------------------------------------------------

    def full(self, shape: Any, value: Any, dtype: Any = "float32", *, name: str | None = None) -> SymmetricArray:
        """A symmetric array with one value everywhere."""
        made = self._allocate(*self._room(shape, dtype), name)
        made[self.rank][...] = value
        self.barrier()
        return made

    def zeros(self, shape: Any, dtype: Any = "float32", *, name: str | None = None) -> SymmetricArray:
        """A symmetric array of zeros."""
        return self._allocate(*self._room(shape, dtype), name)

    def empty(self, shape: Any, dtype: Any = "float32", *, name: str | None = None) -> SymmetricArray:
        """A symmetric array that nobody has written: who reads it before something is written there is told so."""
        return self._allocate(*self._room(shape, dtype), name, unwritten=True)

    def array(self, values: Any, dtype: Any = None, *, name: str | None = None) -> SymmetricArray:
        """A symmetric array; each rank has a copy of what its process gives: of a list, the element of its number."""
        if isinstance(values, list):
            if len(values) != self.num_ranks:
                raise LaunchError(
                    f"{len(values)} arrays for {self.num_ranks} ranks", code="TFW0872", help="give one for each rank, or one array"
                )
            values = values[self.rank]
        own = np.array(values, dtype if dtype is None else self._room((), dtype)[1], order="C")
        made = self._allocate(own.shape, own.dtype, name)
        made[self.rank][...] = own
        self.barrier()
        return made

    def _room(self, shape: Any, dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Rank 0 says whether there is room: it knows what all ranks have freed."""
        return tuple(shape) if isinstance(shape, Iterable) else (shape,), element_type(dtype)

    def _arrays(self) -> list[SymmetricArray]:
        return [array for array in self.heap.arrays if array.offset not in self._freed]

    def _allocate(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], name: str | None, *, unwritten: bool = False
    ) -> SymmetricArray:
        wanted = SymmetricAllocation(shape, dtype.name, name, unwritten)
        outcome = self._come_of(RankRequest(meeting=wanted, freed=tuple(sorted(self._freed))))
        self.heap.free_places(outcome.freed)
        self._freed.difference_update(outcome.freed)
        self._check(outcome)
        return self.memory.add(self.heap, shape, dtype, name)

    def free(self, array: SymmetricArray) -> None:
        """Give the place of an array back: another one may have it once every rank has freed it, so that what it holds stays until
        then. Raises LaunchError TFW0872."""
        if array not in self._arrays():
            raise LaunchError(f"{array.name or 'an array'} is no array of this node, or was freed before", code="TFW0872")
        self._freed.add(array.offset)

    def copy(self, source: np.ndarray, destination: np.ndarray) -> None:
        """Ranks in processes have no stream in common. Raises UnsupportedError TFW0883."""
        raise UnsupportedError(
            "a copy engine's copies are not there for ranks in processes", code="TFW0883",
            help="write to `x[rank]`, which all processes have in common, and meet by `barrier()`",
        )

    # --- waiting for each other ------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until every rank has come here: what their processes and launches have written is seen then."""
        self._wait_for(RankRequest(meeting=_BARRIER))

    def all_gather_object(self, value: Any) -> list[Any]:
        """By rank, what each rank gives: anything that can be pickled. Raises LaunchError TFW0882 on every rank for what cannot."""
        with self._telling():
            outcome = self._wait_for(RankRequest(meeting=ObjectExchange("all_gather_object"), brought=_pickled(value)))
        return [pickle.loads(one) for one in outcome.brought]

    def all_reduce(self, array: SymmetricArray, op: str = "sum") -> list[np.ndarray]:
        """By rank, what `all_reduce` leaves; the array stays as it is, here and below. All ranks wait for each other."""
        with self._all_here():
            return super().all_reduce(array, op)

    def all_gather(self, array: SymmetricArray) -> list[np.ndarray]:
        """By rank, the arrays of all ranks along the first axis."""
        with self._all_here():
            return super().all_gather(array)

    def reduce_scatter(self, array: SymmetricArray, op: str = "sum") -> list[np.ndarray]:
        """By rank, its part of what `all_reduce` leaves."""
        with self._all_here():
            return super().reduce_scatter(array, op)

    def all_to_all(self, array: SymmetricArray) -> list[np.ndarray]:
        """By rank, what all ranks' arrays have for it."""
        with self._all_here():
            return super().all_to_all(array)

    def broadcast(self, array: SymmetricArray, root: int = 0) -> list[np.ndarray]:
        """By rank, the array of the rank `root`."""
        with self._all_here():
            return super().broadcast(array, root)

    @contextlib.contextmanager
    def _all_here(self) -> Iterator[None]:
        self.barrier()
        yield
        self.barrier()

    # --- launches --------------------------------------------------------------------------------------------------------------

    def run(self, launches: Sequence[RankedLaunch], *, seed: int = 0) -> JointResult:
        """Those of the launches (rank, kernel, grid, arguments[, keywords]) that are of this rank, at once with the other ranks';
        returns when they have ended. Where none is, waits until the others' have. Raises as `DeviceNode.run`, on every rank what
        happens on one; LaunchError TFW0881 where a rank has ended or never comes."""
        for launch in launches:
            if isinstance(launch, Sequence) and launch and launch[0] not in self.ranks:
                self._check_rank(launch[0])
        own = [launch for launch in launches if not isinstance(launch, Sequence) or not launch or launch[0] == self.rank]
        if launches and not own:
            return self.execute([], seed)
        with self._telling():
            return super().run(own, seed=seed)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """A launch that cannot be made fails on every rank: the others wait for it."""
        try:
            yield
        except KernelError as error:
            if self._heard is not error:
                with contextlib.suppress(KernelError):
                    self._wait_for(RankRequest(failure=error))
            raise

    @contextlib.contextmanager
    def as_device(self) -> Iterator[None]:
        """In the block `kernel[grid](…)` is this rank's launch, which returns when it has run with the other ranks' launches."""
        token = DEBUGGER.set(self._launched)
        try:
            yield
        finally:
            DEBUGGER.reset(token)

    def _launched(self, function: Any, values: Sequence[Any], extents: Any, options: Mapping[str, Any]) -> LaunchResult | None:
        context = self.context_of(self.rank)
        with self._telling():
            with in_context(context), config.target(self.target, executor="sim"):
                made = self.made(function, values, extents, options)
            if made is None:
                return None
            ready = RankLaunch(self.rank, made, context, cooperative=bool(options.get("launch_cooperative_grid")))
            result = self.execute([ready], made.resolved.seed)
        self.results.append(result)
        report = next(report for rank, report in zip(result.ranks, result.reports, strict=True) if rank == self.rank)
        return LaunchResult(
            made.name, self.target, "sim", made.compiled.artifact, made.grid, report.findings, report.counters,
            made.compiled.times, made.compiled.found, checks=result.checks, made=made,
        )

    def execute(self, ready: Sequence[RankLaunch], seed: int) -> JointResult:
        """Have launches of this rank run, with those of all others. Raises as `run`."""
        packed = Packed(ready, self.memory)
        with contextlib.ExitStack() as stack:
            for one in ready:
                stack.enter_context(printing(one.made.compiled.artifact, one.made.entry, one.made.args))
            outcome = self._come_of(RankRequest(packed.launches, packed.luggage, seed))
            packed.unpack(outcome.luggage)
            self._check(outcome)
        return outcome.result or JointResult((), (), (), frozenset())

    @property
    def records(self) -> Sequence[JointResult]:
        """Those of all ranks' launches, in rank 0's process, which simulates. Raises UsageError TFW0668 elsewhere."""
        if self._coordinator is None:
            raise UsageError(
                "the records of a group's launches are in rank 0's process", code="TFW0668",
                help="ask for times where node.rank is 0",
            )
        return self._coordinator.records

    # --- what is said to rank 0 ------------------------------------------------------------------------------------------------

    _heard: BaseException | None = None  # the error that all ranks were told last
    _coordinator: Coordinator | None = None  # in rank 0's process

    def _wait_for(self, request: RankRequest) -> RankOutcome:
        """What comes of a request. Raises the error that has come of it."""
        outcome = self._come_of(request)
        self._check(outcome)
        return outcome

    def _check(self, outcome: RankOutcome) -> None:
        if outcome.error is not None:
            raise self._told(outcome.error)

    def _come_of(self, request: RankRequest) -> RankOutcome:
        """What comes of a request, be it an error. Raises LaunchError TFW0881 where nothing can."""
        if os.getpid() != self._process or self._connection.closed:
            raise LaunchError("this process has left the group, or is a child of a rank's", code="TFW0881")
        outcome: Any = StillWaiting()
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # what was said before may still be read
                self._connection.send(request)
            while isinstance(outcome, StillWaiting):
                if not self._connection.poll(self._seconds + 2 * BEAT):
                    raise self._told(ended(0, f"it has said nothing in {self._seconds + 2 * BEAT:g} s"))
                outcome = self._connection.recv()
        except (EOFError, OSError):
            raise self._told(ended(0, "its process, which simulates all ranks, is no more")) from None
        return outcome

    def _told(self, error: Any) -> Any:
        self._heard = error
        return error

    def close(self) -> None:
        """Leave the group: ranks that wait for this one are told."""
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and error is not self._heard and not self._connection.closed:
            with contextlib.suppress(OSError):
                self._connection.send(Farewell(f"it raised {_said(error, trace)}"))
        self.close()


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:  # as Python's own classes say it
        raise LaunchError(f"a {type(value).__name__} cannot be given to other processes: {error}", code="TFW0882") from None


def _said(error: BaseException, trace: TracebackType | None) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace is not None else ""
    text = error.message if isinstance(error, KernelError) else str(error)
    return f"{type(error).__name__}: {text}{where}"


def _leave(connection: Connection, process: int, serving: threading.Thread | None) -> None:
    if os.getpid() == process and not connection.closed:
        with contextlib.suppress(OSError):
            raised = getattr(sys, "last_value", None)  # where the whole program ends by it
            connection.send(Farewell(f"it raised {_said(raised, raised.__traceback__)}" if raised else "it has left the group"))
        connection.close()
        if serving is not None:  # until it has ended, the place is not free for the program's next group
            serving.join(_SECONDS_TO_END)


def _closing(node: weakref.ref[ProcessGroupNode]) -> Any:
    """In a child that a rank's process forks: connections are the parent's, whose end must not go unseen for the child's sake."""

    def close() -> None:
        mine = node()
        if mine is None or mine._connection.closed:
            return
        mine._connection.close()
        if mine._coordinator is not None:
            mine._coordinator.close_in_child()

    return close


def init_process_group(
    target: str | None = None, *, rank: int | None = None, world_size: int | None = None, init_method: str | None = None,
    timeout: float = DEFAULT_SECONDS, heap_bytes: int = DEFAULT_BYTES, resident: int | None = None, domain_size: int | None = None,
    trace: bool = False,
) -> ProcessGroupNode:
    """This process as a rank of a simulated node of `world_size` processes, each of which calls this.

    Where nobody says so, RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT of the environment say which rank it is and where the ranks
    meet, as torchrun sets them, or PyTorch's own process group where the process has one. No rank waits for another one longer than
    `timeout` seconds, but while launches run. The rest is as of `tilefw.node`. Raises UsageError and LaunchError TFW0880, and
    LaunchError TFW0881 where another rank ends meanwhile."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise UsageError(f"timeout is a positive number of seconds, not {timeout!r}", code="TFW0902")
    member = membership(rank, world_size, init_method)
    return ProcessGroupNode(
        member, target, float(timeout), heap_bytes=heap_bytes, resident=resident, domain_size=domain_size, trace=trace
    )
