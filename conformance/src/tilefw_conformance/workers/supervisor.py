"""Hands cases to worker processes and takes their results; what a worker does wrong becomes the result of the case that it ran."""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType

from tilefw.api.errors import KernelError, PluginError
from tilefw.api.integers import ceil_div
from tilefw.kernels.stages import STAGES
from tilefw_conformance.case import Case
from tilefw_conformance.report import records
from tilefw_conformance.report.records import Record
from tilefw_conformance.reproduction import reproduce
from tilefw_conformance.workers.process import Worker, ending
from tilefw_conformance.workers.protocol import Began, Done, Message, OpenSession, ProtocolError, Ready, Refused, Run

CASES_A_PROCESS = 16  # starting a process takes as long as some ten small cases
ATTEMPTS = 3  # of a case whose worker somebody else ends
_OUTSIDE = frozenset({-1, -2, -9, -15})  # SIGHUP, SIGINT, SIGKILL, SIGTERM: sent by others; a crash has signals of its own
_TICK = 0.05  # seconds between two looks at clocks and memory


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Of one worker: seconds of wall clock to start and for a case, bytes of memory that it may hold."""

    start: float = 60.0
    case: float = 300.0
    memory: int = 4 << 30


@dataclass(slots=True)
class _Task:
    case: Case
    attempts: int = 0


class _Seat:
    """A worker, what it is doing and since when."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.since = worker, worker.began
        self.ready: Ready | None = None
        self.task: _Task | None = None
        self.began: dict[str, float] = {}  # stages of the task, the one that runs now last

    def lost(self, outcome: str) -> list[Record]:
        """The stages of its task as a report has them: those that are done, and the one that it was in when the worker was lost."""
        if not self.began:
            return []
        *steps, (last, since) = self.began.items()
        ends = [start for _, start in (*steps[1:], (last, since))]
        passed = [
            records.stage(name, "pass", end - start) for (name, start), end in zip(steps, ends, strict=True)
            if STAGES.index(name) < STAGES.index(last)
        ]
        return [*passed, records.stage(last, outcome, time.monotonic() - since)]


class Supervisor:
    """The worker processes of one target. `ready` starts the first one; `results` starts more, `jobs` at most."""

    def __init__(self, opening: OpenSession, jobs: int = 1, limits: WorkerLimits | None = None) -> None:
        self.opening, self.jobs, self.limits = opening, jobs, limits or WorkerLimits()
        self._selector = selectors.DefaultSelector()
        self._seats: list[_Seat] = []
        self._waiting: deque[_Task] = deque()
        self._finished: deque[Record] = deque()
        self._ready: Ready | None = None
        self._failed_starts = 0

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        """Start the first worker, without waiting for it."""
        if not self._seats:
            self._hire()

    def ready(self) -> Ready:
        """What the first worker says of its target. Raises what a launch on it would; PluginError where it hangs or crashes."""
        self.start()
        while self._ready is None:
            self._step()
        return self._ready

    def submit(self, cases: Iterable[Case]) -> None:
        """Cases to run, in this order."""
        self._waiting += map(_Task, cases)

    def results(self) -> Iterator[Record]:
        """The result of each case that was submitted, as they come; a case whose worker was lost has one that says so."""
        while (record := self.next()) is not None:
            yield record

    def next(self) -> Record | None:
        """The next result; None when there is nothing left to run."""
        while not self._finished:
            if not self._waiting and all(seat.task is None for seat in self._seats):
                return None
            self._step()
        return self._finished.popleft()

    def close(self) -> None:
        """End every worker, whatever it does."""
        for seat in self._seats:
            seat.worker.kill()
        self._seats.clear()
        self._selector.close()

    def _step(self) -> None:
        """Give idle workers something to do, then wait for answers, but never longer than a tick."""
        self._assign()
        for key, _ in self._selector.select(_TICK):
            seat: _Seat = key.data
            if seat in self._seats:
                self._listen(seat)
        for seat in list(self._seats):
            self._watch(seat)
        self._assign()  # workers go on while the caller does something with the results

    def _assign(self) -> None:
        busy = sum(seat.task is not None or seat.ready is None for seat in self._seats)
        wanted = min(self.jobs, busy + ceil_div(len(self._waiting), CASES_A_PROCESS))
        while len(self._seats) < wanted:
            self._hire()
        for seat in self._seats:
            if seat.task is None and seat.ready is not None and self._waiting:
                seat.task = self._waiting.popleft()
                seat.task.attempts += 1
                seat.since = time.monotonic()
                seat.began = {}
                seat.worker.send(Run(seat.task.case))

    def _hire(self) -> None:
        seat = _Seat(Worker(self.opening))
        self._seats.append(seat)
        for end in (seat.worker.answers, seat.worker.output):
            self._selector.register(end, selectors.EVENT_READ, seat)

    def _listen(self, seat: _Seat) -> None:
        try:
            for message in seat.worker.read():
                self._hear(seat, message)
        except ProtocolError as error:
            self._dismiss(seat, "TFW0968", f"its worker answered what cannot be read: {error}")
            return
        seat.worker.drain()

    def _hear(self, seat: _Seat, message: Message) -> None:
        match message:
            case Ready() if seat.ready is None:
                seat.ready = self._ready = message
                self._failed_starts = 0
            case Refused(error=error) if seat.ready is None:
                raise error
            case Began(stage=stage) if seat.task is not None and message.case == seat.task.case.id and stage in STAGES:
                seat.began.pop(stage, None)  # one that goes on after another is the last again
                seat.began[stage] = time.monotonic()
            case Done() if seat.task is not None and message.case == seat.task.case.id:
                self._finished.append({**message.record, "attempts": seat.task.attempts})
                seat.task = None
            case _:
                raise ProtocolError(f"a {type(message).__name__} that was not requested")

    def _watch(self, seat: _Seat) -> None:
        """End the worker if its time is up or it holds too much, and see whether it ended by itself."""
        held = seat.worker.resident()
        limit = self.limits.case if seat.ready is not None else self.limits.start
        if (status := seat.worker.ended) is not None:
            self._ended(seat, status)
        elif held is not None and held > self.limits.memory:
            said = f"it holds {_mebibytes(held)} of memory, and may hold {_mebibytes(self.limits.memory)}"
            self._dismiss(seat, "TFW0967", said)
        elif (seat.task is not None or seat.ready is None) and time.monotonic() - seat.since > limit:
            seat.worker.interrogate()
            self._dismiss(seat, "TFW0965", f"it is not done after {limit:g} s", "timeout")

    def _ended(self, seat: _Seat, status: int) -> None:
        if seat in self._seats:
            self._listen(seat)  # it may have answered before
        if seat not in self._seats:
            return
        task = seat.task
        if task is not None and status in _OUTSIDE and task.attempts < ATTEMPTS:
            seat.task = None
            self._waiting.appendleft(task)
        self._dismiss(seat, "TFW0957", f"its worker {ending(status)}")

    def _dismiss(self, seat: _Seat, code: str, why: str, outcome: str = "error") -> None:
        """End a worker; the case that it ran gets `outcome`, for the reason `why`."""
        for end in (seat.worker.answers, seat.worker.output):
            self._selector.unregister(end)
        self._seats.remove(seat)
        seat.worker.kill()
        words = seat.worker.words()
        if seat.ready is None:
            self._fail_to_start(why, words)
        elif seat.task is not None:
            seconds, case = time.monotonic() - seat.since, seat.task.case
            error = KernelError(f"{case.id}: {why}", code=code, note=_quoted(words))
            self._finished.append(records.result(
                case, seat.ready.target["name"], outcome, stages=seat.lost(outcome), error=error, attempts=seat.task.attempts,
                seconds=seconds, reproduce=reproduce(case, self.opening.target, self.opening.execution, self.opening.keywords),
            ))

    def _fail_to_start(self, why: str, words: str) -> None:
        """The first worker's failure is the target's; a later one may have been killed, and is tried again."""
        self._failed_starts += 1
        if self._ready is None or self._failed_starts >= ATTEMPTS:
            raise PluginError(f"target '{self.opening.target}' cannot be used: {why}", code="TFW0969", note=_quoted(words))


def _mebibytes(size: int) -> str:
    return f"{-(-size >> 20)} MiB"


def _quoted(words: str) -> str | None:
    return f"it printed\n{words}" if words else None
