"""Cases on the workers of a Dask scheduler, wherever those are: a task a case, each run by a supervised process beside its worker.

A Dask worker that is lost costs nothing: the scheduler gives its tasks to another one. What a case does to its own process is seen
by the supervisor there, as on one machine; so a result is the same wherever it was computed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from distributed import Client, KilledWorker, WorkerPlugin, as_completed, get_worker

from tilefw import __version__ as core_version
from tilefw.api.errors import KernelError, UsageError
from tilefw_conformance import __version__ as suite_version
from tilefw_conformance.case import Case
from tilefw_conformance.report import records
from tilefw_conformance.report.records import Record
from tilefw_conformance.reproduction import reproduce
from tilefw_conformance.workers.protocol import OpenSession
from tilefw_conformance.workers.supervisor import Supervisor, WorkerLimits

CONNECT_SECONDS = 10.0
VERSIONS = (core_version, suite_version)
_PLUGIN = "tilefw-conformance"


def results(address: str, opening: OpenSession, cases: Sequence[Case], limits: WorkerLimits) -> Iterator[Record]:
    """The result of each case, as they come; of one whose Dask workers are lost again and again, an error that says so.

    Raises UsageError TFW0973 without a scheduler at `address`, KernelError TFW0974 where a machine there has other versions.
    """
    if not re.fullmatch(r"\w+://.+:\d+", address):
        raise UsageError(f"{address!r} is not a scheduler's address, such as tcp://node17:8786", code="TFW0973")
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address}: {error}", code="TFW0973") from None
    with client:
        client.register_plugin(Processes(opening, limits), name=_PLUGIN)
        futures = {client.submit(run, VERSIONS, case, key=f"tilefw {opening.target} {case.id}", pure=False): case for case in cases}
        try:
            for future in as_completed(futures, loop=client.loop):
                yield _taken(future, opening, futures[future])
        finally:
            client.cancel(list(futures), force=True)
            client.unregister_worker_plugin(_PLUGIN)


class Processes(WorkerPlugin):
    """The supervised processes of a Dask worker, one for each of its threads that is busy; they end with it."""

    def __init__(self, opening: OpenSession, limits: WorkerLimits) -> None:
        self.opening, self.limits = opening, limits
        self._idle: deque[Supervisor] = deque()
        self._all: list[Supervisor] = []

    def teardown(self, worker: Any) -> None:
        while self._all:
            self._all.pop().close()

    def run(self, case: Case) -> Record:
        try:
            supervisor = self._idle.pop()
        except IndexError:
            supervisor = Supervisor(self.opening, 1, self.limits)
            self._all.append(supervisor)
            supervisor.ready()
        supervisor.submit([case])
        record = supervisor.next()
        assert record is not None
        self._idle.append(supervisor)
        return record


def run(versions: tuple[str, str], case: Case) -> Record:
    """One task: the case, by a process of the Dask worker that it runs on."""
    worker = get_worker()
    if versions != VERSIONS:
        theirs, ours = " and ".join(VERSIONS), " and ".join(versions)
        raise KernelError(
            f"the Dask worker {worker.address} has tilefw-core and tilefw-conformance {theirs}, the suite is {ours}", code="TFW0974"
        )
    processes = worker.plugins[_PLUGIN]
    assert isinstance(processes, Processes)
    return processes.run(case)


def _taken(future: Any, opening: OpenSession, case: Case) -> Record:
    """The task's record. Raises KernelError where its machine cannot run any case."""
    try:
        return future.result()
    except KernelError:
        raise
    except KilledWorker as error:
        lost = KernelError(f"{case.id}: the Dask workers that it ran on were lost: {error}", code="TFW0974")
        return records.result(
            case, opening.target, "error", error=lost,
            reproduce=reproduce(case, opening.target, opening.execution, opening.keywords),
        )
    except Exception as error:
        raise KernelError(f"{case.id} cannot be run by Dask: {type(error).__name__}: {error}", code="TFW0974") from None
