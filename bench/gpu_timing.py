"""Times on a card: all candidates in turn, round by round, each after the caches were emptied; medians of the card's clock.

Taken one after the other they would not be comparable: the card's clock rises for a while after it was idle, and falls when it is
hot.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import gpu_peers as peers
from gpu_arrays import Flush, OnCard
from gpu_peers import Absent
from library import Work

from tilefw.api import KernelError
from tilefw.kernels.spec import Launch

WARM_SECONDS = 0.3
BETWEEN = "|"  # in a candidate's name: whose it is, and which tiling or kernel
Timed = Callable[[], float]
"""Launches once and gives the seconds by the card's clock."""


def medians(candidates: Mapping[str, Timed], flush: Flush, rounds: int, notes: dict[str, str]) -> dict[str, float]:
    """The median seconds of each candidate by its name. One that fails is left out, and `notes` tells why."""
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    running = {name: timed for name, timed in candidates.items() if _try(name, timed, notes) is not None}
    end = time.perf_counter() + WARM_SECONDS
    while running and time.perf_counter() < end:
        for timed in running.values():
            timed()
    for _ in range(rounds):
        for name, timed in running.items():
            flush()
            taken[name].append(timed())
    return {name: statistics.median(taken[name]) for name in running}


def _try(name: str, timed: Timed, notes: dict[str, str]) -> float | None:
    try:
        return timed()
    except Absent as error:
        notes[name.partition(BETWEEN)[0]] = str(error)
    except KernelError as error:
        notes[name.replace(BETWEEN, ", ")] = error.message
    except Exception as error:  # another project's code: what it says is told
        notes[name.replace(BETWEEN, ", ")] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


def ours(work: Work, launch: Launch, on_card: OnCard, target: str) -> Timed:
    """A launch of ours with its arrays on the card."""
    keywords = {**launch.constexprs, **launch.keywords, "target": target, "executor": "hw"}
    return lambda: work.spec.kernel[launch.grid](**on_card.arguments, **keywords).times["execute"]


def theirs(make: Callable[[], peers.Call]) -> Timed:
    """A peer's call between two events of PyTorch; it is made at the first time, since a peer may not be there."""
    made: list[peers.Call] = []

    def timed() -> float:
        torch: Any = peers.pytorch()
        if not made:
            made.append(make())
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        made[0]()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1000

    return timed


def triton(work: Work, launch: Launch, chip: str | None) -> Timed:
    """Triton's launch of the same source, tile and options, for the card or for an earlier `chip`."""
    return theirs(lambda: peers.triton(work.spec, launch, peers.tensors(launch), chip))
