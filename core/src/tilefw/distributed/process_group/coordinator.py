"""Where the ranks' requests meet, in rank 0's process: when all ranks wait, their launches run at once, and each has its result.

A rank that leaves, ends, or comes to nothing while others wait ends their waiting, and launches that run. These have a thread of
their own, so that this one sees meanwhile who ends.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NamedTuple

from tilefw.api.errors import InternalError, KernelError, LaunchError
from tilefw.cancellation import ended_by
from tilefw.distributed.findings import JointDeadlock
from tilefw.distributed.node import DeviceNode, JointResult, element_type
from tilefw.distributed.process_group.messages import (
    Farewell,
    RankOutcome,
    RankRequest,
    StillWaiting,
    SymmetricAllocation,
)
from tilefw.distributed.process_group.rendezvous import MeetingPlace, ended, said_ranks
from tilefw.distributed.process_group.shared_heaps import SharedHeaps
from tilefw.distributed.process_group.travelling_launch import Unpacked
from tilefw.runtime.arguments.unwritten import mark_memory
from tilefw.runtime.compilation.compiler import CompiledArtifact

BEAT = 5.0  # seconds between signs of life to who waits
_MARGIN = 0.01  # seconds by which who is late is looked for late


class _Attempt(NamedTuple):
    """Launches that ran at once: the ranks' memory after them, and their result or what ended them all."""

    unpacked: Mapping[int, Unpacked]
    result: JointResult | None
    error: KernelError | None


class Coordinator:
    """`connections` to all ranks, rank 0 among them; `node` is that in which launches run. After so many `seconds` in which a rank
    has waited for the others they are taken to never come."""

    def __init__(
        self, node: DeviceNode, memory: SharedHeaps, connections: Mapping[int, Connection], door: MeetingPlace, seconds: float
    ) -> None:
        self._node, self._memory, self._door, self._seconds = node, memory, door, seconds
        self._connections = dict(connections)
        self._ranks = dict(zip(self._connections.values(), self._connections, strict=True))
        self._requests: dict[int, RankRequest] = {}
        self._since = 0.0  # when the first of them came
        self._error: LaunchError | None = None  # why nothing more will come of this group
        self._running = False
        self._simulating: threading.Thread | None = None
        self.records: list[JointResult] = []  # of launches that have ended well, where the node keeps them
        self._finished: list[Callable[[], None]] = []
        self._known: dict[bytes, CompiledArtifact] = {}
        self._ended = threading.Event()  # nobody waits for launches any more
        self._woken, self._wake = Pipe(duplex=False)
        self.thread = threading.Thread(target=self._serve, name="tilefw process group", daemon=True)
        self.thread.start()

    def close_in_child(self) -> None:
        """In a child that rank 0's process forks: no rank would see the end of that while the child holds their connections."""
        for connection in (*self._ranks, self._woken, self._wake):
            connection.close()
        self._door.close()

    def _serve(self) -> None:
        try:
            self._meet_requests()
        except Exception as error:  # nobody else hears of it, and all would wait
            self._send_all(self._connections, RankOutcome(error=InternalError(f"a process group failed: {error!r}"), final=True))
        self._ended.set()
        for connection in list(self._ranks):
            connection.close()
        self._door.close()
        if self._simulating is not None:  # else its last word would go where nobody reads
            self._simulating.join()
        for connection in (self._woken, self._wake):
            connection.close()

    def _meet_requests(self) -> None:
        """Until rank 0 leaves."""
        while 0 in self._connections:
            ready = wait([self._woken, self._door.listening, *self._connections.values()], self._pause())
            for one in ready:
                if isinstance(one, Connection) and one is not self._woken:
                    self._hear(one)
            if self._door.listening in ready:
                self._door.accept(complete=True)
            if self._woken in ready:
                self._woken.recv_bytes()
                self._finished.pop()()
            if not ready:
                self._send_all(self._requests, StillWaiting())
            self._go_on()

    def _pause(self) -> float:
        """Seconds until there is something to do though nobody says anything."""
        if self._running or not self._requests:
            return BEAT
        return min(BEAT, max(0.0, self._since + self._seconds - time.monotonic()) + _MARGIN)

    def _hear(self, connection: Connection) -> None:
        rank = self._ranks[connection]
        try:
            message = connection.recv()
        except (EOFError, OSError):
            message = Farewell("its process is no more")
        if isinstance(message, Farewell):
            self._leave(rank, message.reason)
            return
        if not self._requests:
            self._since = time.monotonic()
        self._requests[rank] = message

    def _leave(self, rank: int, reason: str) -> None:
        """A rank that has gone ends the waiting of all others, and all that they would wait for later."""
        connection = self._connections.pop(rank)
        del self._ranks[connection]
        connection.close()
        self._requests.pop(rank, None)
        self._door.left(rank)
        if self._error is None:
            self._error = ended(rank, reason)
            self._ended.set()
        if rank == 0:  # the others' connections close with this thread
            self._send_all(self._connections, RankOutcome(error=self._error, final=True))

    def _go_on(self) -> None:
        if not self._requests:
            return
        late = not self._running and self._since + self._seconds < time.monotonic()
        if self._error is None and late and len(self._requests) < self._node.num_ranks:
            self._error = self._never_came()
        if self._error is not None:
            self._answer(self._requests, RankOutcome(error=self._error, final=True))
        elif len(self._requests) == self._node.num_ranks and not self._running:
            self._meet()

    def _never_came(self) -> LaunchError:
        absent = [rank for rank in range(self._node.num_ranks) if rank not in self._requests]
        doing = "; ".join(f"rank {rank} {request}" for rank, request in sorted(self._requests.items()))
        return LaunchError(
            f"{said_ranks(absent)} did not come within {self._seconds:g} s to where the others wait", code="TFW0881", note=doing,
            help="every rank makes its launch and comes to every collective; init_process_group(timeout=…) says how long to wait",
        )

    # --- what comes of requests when every rank waits -----------------------------------------------------------------------

    def _meet(self) -> None:
        failures = {rank: request.failure for rank, request in self._requests.items() if request.failure is not None}
        if failures:
            rank, failure = min(failures.items())
            about = LaunchError(
                f"rank {rank}: {failure.message}", code=failure.code, place=failure.place, note=failure.note, help=failure.help
            )
            self._answer(self._requests, RankOutcome(error=about))
        elif any(request.launches for request in self._requests.values()):
            self._running = True
            self._simulating = threading.Thread(
                target=self._launch, args=(dict(self._requests),), name="tilefw joint launch", daemon=True
            )
            self._simulating.start()
        else:
            self._release()

    def _launch(self, requests: Mapping[int, RankRequest]) -> None:
        """In a thread of its own: run all launches, then have the results handed out."""
        outcomes = self._outcomes(requests)

        def finish() -> None:
            self._running = False
            self._since = time.monotonic()
            if self._error is not None:  # the ranks were told meanwhile: what they ask for now is something else
                return
            for rank, outcome in sorted(outcomes.items(), reverse=True):  # rank 0 last, as in `_send_all`
                self._answer([rank], outcome)

        self._finished.append(finish)
        self._wake.send_bytes(b"!")

    def _outcomes(self, requests: Mapping[int, RankRequest]) -> Mapping[int, RankOutcome]:
        """By rank: all are told of an error, with what their kernels printed before; else those whose launches have ended, and who
        waited for no more than that."""
        try:
            with ended_by(self._ended):
                unpacked, result, error = self._executed(requests, _seed(requests))
            return {
                rank: RankOutcome(result, mine.changes(), error=error) for rank, mine in unpacked.items()
                if error is not None or requests[rank].launches or requests[rank].meeting is None
            }
        except (KernelError, InternalError) as error:
            return dict.fromkeys(requests, RankOutcome(error=error))
        except BaseException as error:  # whoever waits must hear of it
            return dict.fromkeys(requests, RankOutcome(error=InternalError(f"launches of a group failed: {error!r}")))

    def _executed(self, requests: Mapping[int, RankRequest], seed: int) -> _Attempt:
        """Run all launches. Where some wait for what a rank may launch next, whose launches have ended: those alone, as they might
        have run before the others began."""
        every = self._execute(requests, seed)
        if isinstance(every.error, JointDeadlock) and every.error.ended:
            alone = self._execute({rank: requests[rank] for rank in sorted(every.error.ended)}, seed)
            return alone if alone.error is None else every  # where they need the others, they had no other way to end
        return every

    def _execute(self, requests: Mapping[int, RankRequest], seed: int) -> _Attempt:
        unpacked = {
            rank: Unpacked(request.launches, request.luggage, self._node, self._memory, self._known)
            for rank, request in sorted(requests.items())
        }
        try:
            result = self._node.execute([one for mine in unpacked.values() for one in mine.launches], seed)
        except KernelError as error:
            return _Attempt(unpacked, None, error)
        if not self._node.trace:
            return _Attempt(unpacked, result, None)
        self.records.append(result)
        without = tuple(replace(report, trace=None) for report in result.reports)
        return _Attempt(unpacked, replace(result, reports=without, launches=()), None)

    def _release(self) -> None:
        """Nobody launches: who waits for launches alone goes on, and all who have come to one meeting have met."""
        meetings = {rank: request.meeting for rank, request in self._requests.items()}
        alone = [rank for rank, meeting in meetings.items() if meeting is None]
        if alone:
            self._answer(alone, RankOutcome())
            return
        first = meetings[0]
        for rank, meeting in sorted(meetings.items()):
            if meeting != first:
                both = isinstance(first, SymmetricAllocation) and isinstance(meeting, SymmetricAllocation)
                error = LaunchError(
                    f"the ranks do not do the same: rank {rank} {meeting}, rank 0 {first}", code="TFW0872" if both else "TFW0882",
                    help="every rank makes the same allocations and collectives in the same order",
                )
                self._answer(self._requests, RankOutcome(error=error))
                return
        if isinstance(first, SymmetricAllocation):
            self._answer(self._requests, self._allocate(first))
            return
        self._answer(self._requests, RankOutcome(brought=tuple(self._requests[rank].brought for rank in sorted(self._requests))))

    def _allocate(self, wanted: SymmetricAllocation) -> RankOutcome:
        """What all ranks have freed is free before."""
        freed = tuple(sorted(set.intersection(*(set(request.freed) for request in self._requests.values()))))
        self._node.heap.free_places(freed)
        try:
            array = self._memory.add(self._node.heap, wanted.shape, element_type(wanted.dtype), wanted.name, clear=True)
        except KernelError as error:
            return RankOutcome(freed=freed, error=error)
        if wanted.unwritten:
            for host in filter(lambda host: host.size, array.arrays):
                mark_memory(host.ctypes.data, host.nbytes)
        return RankOutcome(freed=freed)

    # --- what is said to ranks --------------------------------------------------------------------------------------------

    def _answer(self, ranks: Sequence[int] | Mapping[int, Any], outcome: RankOutcome) -> None:
        """What these ranks have waited for has come."""
        waiting = [rank for rank in ranks if rank in self._requests]
        for rank in waiting:
            del self._requests[rank]
        self._send_all(waiting, outcome)

    def _send_all(self, ranks: Sequence[int] | Mapping[int, Any], message: Any) -> None:
        """Rank 0 last: its process must not end before the others have theirs."""
        for rank in sorted(ranks, reverse=True):
            with contextlib.suppress(OSError):  # one that has ended is heard of as such
                self._connections[rank].send(message)


def _seed(requests: Mapping[int, RankRequest]) -> int:
    """That of the launches. Raises LaunchError TFW0882 where they have several."""
    seeds = {rank: request.seed for rank, request in requests.items() if request.launches}
    if len(set(seeds.values())) > 1:
        said = ", ".join(f"{seed} on rank {rank}" for rank, seed in sorted(seeds.items()))
        raise LaunchError(f"launches at once have one seed: {said}", code="TFW0882")
    return next(iter(seeds.values()))
