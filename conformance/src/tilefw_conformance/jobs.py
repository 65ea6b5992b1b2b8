"""Cases one after another, or in several processes at once: what comes back of each is its line of the report, in their order."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tilefw.api.errors import KernelError
from tilefw.runtime.loader import Target, find
from tilefw_conformance.case import Case
from tilefw_conformance.expectations import Expectation
from tilefw_conformance.report import records
from tilefw_conformance.runner import run

T = TypeVar("T")
R = TypeVar("R")

CASES_A_PROCESS = 16  # starting a process takes as long as some ten small cases
CASES_AT_ONCE = 4  # handed to a process together; more would let one process end long after the others


@dataclass(frozen=True, slots=True)
class Line:
    """A case's record in the report, whether it leaves the suite green, and its message for a person where it does not."""

    record: dict[str, Any]
    good: bool
    message: str


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def lines(
    cases: Sequence[Case], target: Target, expectations: Sequence[Expectation], execution: Mapping[str, Any], jobs: int
) -> Iterator[Line]:
    """Each case's line as soon as it and those before it are done; `jobs` processes at most, and fewer for few cases."""
    one = partial(_line, target.name, tuple(expectations), dict(execution))
    return each(one, cases, min(jobs, len(cases) // CASES_A_PROCESS))


def each(one: Callable[[T], R], items: Sequence[T], processes: int) -> Iterator[R]:
    """`one` of each item, in their order; in this very process unless there are several. Raises KernelError TFW0957 if one dies."""
    if processes <= 1:
        yield from map(one, items)
        return
    # Started afresh, not forked: a copy of this process would have its locks, but not the threads that release them.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(one, items, chunksize=CASES_AT_ONCE)
        except BrokenProcessPool as error:
            raise KernelError(
                "a process of the suite died before its cases were done", code="TFW0957", note=str(error),
                help="out of memory? --jobs 1 runs every case in one process",
            ) from error


def _line(target: str, expectations: Sequence[Expectation], execution: Mapping[str, Any], case: Case) -> Line:
    start = time.perf_counter()
    result = run(case, find(target), expectations, **execution)
    record = records.result(
        case, target, result.outcome, verdict=result.verdict, missing=result.missing, reason=result.reason, error=result.error,
        seconds=time.perf_counter() - start, reproduce=result.reproduce,
    )
    return Line(record, result.good, "" if result.good else result.message())
