"""Where `tilefw tune` times configurations: in this process, in several beside it, or on the workers of a Dask scheduler."""

from __future__ import annotations

import argparse
import multiprocessing
import re
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pickle import dumps, loads
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tilefw import __version__
from tilefw.api.errors import KernelError, UsageError

if TYPE_CHECKING:
    from tilefw.cli.tuned_task import TunedTask
    from tilefw.kernels.tuning import Configuration, Trial

CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What workers are told of a search: the target, which their own settings do not say, the versions that it is made with, and
    the command line, pickled."""

    target: str
    versions: str
    stated: bytes


class TuningWorkers(AbstractContextManager["TuningWorkers"]):
    """What times configurations, `together` of them at once; this process, one after the other."""

    together = 1

    def __init__(self, task: TunedTask) -> None:
        self._task = task

    def timed(self, configurations: Sequence[Configuration], best: float | None) -> Iterator[Trial]:
        """The trials, as they come."""
        from tilefw.kernels.tuning import timed

        return (timed(self._task.launch, configuration, best) for configuration in configurations)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None


class TuningProcesses(TuningWorkers):
    """Processes of this machine, each with the task made anew from the command line."""

    def __init__(self, asked: AskedFor, count: int) -> None:
        self.together, self._asked = count, asked
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(count, mp_context=context, initializer=_left_alone)

    def timed(self, configurations: Sequence[Configuration], best: float | None) -> Iterator[Trial]:
        try:
            futures = [self._pool.submit(trial, self._asked, configuration, best) for configuration in configurations]
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise KernelError(f"a process that times configurations was lost: {error}", "TFW0974") from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.shutdown(wait=error is None, cancel_futures=True)


class TuningCluster(TuningWorkers):
    """The workers of a Dask scheduler; files of kernels have to be there too, under the same path."""

    def __init__(self, asked: AskedFor, address: str) -> None:
        if not re.fullmatch(r"\w+://.+:\d+", address):
            raise UsageError(f"{address!r} is not a scheduler's address, such as tcp://node17:8786", code="TFW0973")
        try:
            from distributed import Client
        except ImportError as missing:
            raise UsageError(
                f"--scheduler needs Dask distributed: {missing}", code="TFW0973", help="pip install 'tilefw-core[cluster]'"
            ) from None
        try:
            self._client: Any = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"no Dask scheduler answers at {address}: {error}", code="TFW0973") from None
        self._asked = asked
        self.together = max(1, sum(self._client.nthreads().values()))

    def timed(self, configurations: Sequence[Configuration], best: float | None) -> Iterator[Trial]:
        from distributed import as_completed as as_they_come

        futures = [self._client.submit(trial, self._asked, configuration, best, pure=False) for configuration in configurations]
        for future in as_they_come(futures, loop=self._client.loop):
            try:
                yield future.result()
            except KernelError:
                raise
            except Exception as error:
                raise KernelError(f"a configuration cannot be timed by Dask: {type(error).__name__}: {error}", "TFW0974") from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()


def workers_of(args: argparse.Namespace, task: TunedTask, target: str) -> TuningWorkers:
    """Those that the command line asks for. Raises UsageError TFW0973, TFW0911."""
    stated = {name: value for name, value in vars(args).items() if name not in ("jobs", "scheduler")}
    asked = AskedFor(target, versions(target), dumps({**stated, "target": target}))
    if args.scheduler is not None:
        if args.jobs is not None:
            raise UsageError("--scheduler has workers of its own: --jobs does not go with it", code="TFW0911")
        return TuningCluster(asked, args.scheduler)
    return TuningWorkers(task) if args.jobs in (None, 1) else TuningProcesses(asked, args.jobs)


def trial(asked: AskedFor, configuration: Configuration, best: float | None) -> Trial:
    """One configuration, timed in a process that has the command line alone. Raises KernelError TFW0974 for other versions."""
    from tilefw.kernels.tuning import timed

    if (theirs := versions(asked.target)) != asked.versions:
        raise KernelError(f"a worker has {theirs}, the search {asked.versions}", "TFW0974")
    return timed(_task(asked.stated).launch, configuration, best)


@lru_cache(maxsize=4)
def versions(target: str) -> str:
    """What has to be the same wherever configurations for a target are timed: core, its plugin, what assembles its code."""
    from tilefw.runtime.compilation.artifact_cache import tools_of
    from tilefw.runtime.plugins.loader import find_target

    found = find_target(target)
    plugin = () if found.plugin is None else (f"{found.plugin.distribution} {found.plugin.version}",)
    return ", ".join(filter(None, (f"tilefw-core {__version__}", *plugin, tools_of(found, True))))


@lru_cache(maxsize=4)
def _task(stated: bytes) -> TunedTask:
    from tilefw.cli.tuned_task import task_of
    from tilefw.runtime import config

    args = argparse.Namespace(**loads(stated))
    return task_of(args, config.resolve(config.settings(args.target, executor="sim", seed=args.seed)))


def _left_alone() -> None:
    """Ctrl-C ends the search, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
