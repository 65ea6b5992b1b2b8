"""Why a launch is slow: the cycles that it would save without each of its inefficiencies, by timing it again without that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from tilefw.timing import without
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.launch_time import Neighbours, PredictedTime, RecordedLaunch, dealt, launch_time, prepared
from tilefw.timing.without import Subject, Without

LEAST = 0.02
"""The part of a launch that a cause is worth a word from."""


@dataclass(frozen=True, slots=True)
class Cause:
    """`cycles` that the launch would be faster by without it, `share` of the launch; `change`: what to do about it. Causes overlap:
    what two of them would save together is less than their sum, or more."""

    cause: str
    cycles: float
    share: float
    change: str


@dataclass(frozen=True, slots=True)
class _Inefficiency:
    change: str
    without: Callable[[Subject], Without | None]


KINDS: dict[str, _Inefficiency] = {
    "bank conflicts": _Inefficiency("lanes of a wave should want different banks of shared memory", without.conflicts),
    "uncoalesced access": _Inefficiency("neighbouring lanes should access neighbouring addresses", without.scattered),
    "spills": _Inefficiency("smaller tiles, more warps or fewer stages need fewer registers", without.spills),
    "low occupancy": _Inefficiency("fewer registers or less shared memory leave room for more workgroups", without.empty_places),
    "missing pipelining": _Inefficiency("load what later turns of the loop need early: more num_stages", without.waited_loads),
    "serialised atomics": _Inefficiency("sum within a program first, or spread the addresses", without.same_addresses),
    "cache thrash": _Inefficiency("use data again sooner, before the cache has lost it", without.lost_lines),
    "type conversions": _Inefficiency("convert once, outside of the loop, or compute in the type of the data", without.conversions),
    "exchanges between lanes": _Inefficiency("fewer views, transpositions and gathers in the loop", without.exchanges),
    "divergent branch": _Inefficiency("lanes of a wave should go the same way", without.divergence),
    "idle lanes": _Inefficiency("a smaller tile or fewer warps: lanes have nothing to do", without.idle_lanes),
    "small tile": _Inefficiency("a longer and wider tile reads less for each product", without.small_tiles),
    "barriers": _Inefficiency("fewer barriers, or workgroups of fewer waves", without.barriers),
    "slow operations": _Inefficiency("fewer divisions, roots and exponentials: multiply by what was divided once", without.special),
}
TAIL = "tail"
FEW = "few workgroups"
_TAIL_CHANGE = "a number of workgroups that processors share evenly, or smaller ones"
_FEW_CHANGE = "more and smaller workgroups, so that every processor has work"


def causes(
    chip: ChipTiming, launch: RecordedLaunch, time: PredictedTime, known: Neighbours, warm: bool = False
) -> tuple[Cause, ...]:
    """The causes worth a word, the greatest first; `known` are the launch's neighbours."""
    subject = Subject(
        chip, launch.own.instructions, launch.own.lanes, prepared(chip, launch), chip.resident_waves // max(1, launch.own.waves),
        launch.spread.most, launch.spilled,
    )
    again = partial(launch_time, launch=launch, warm=warm, known=known, tells=False)
    found = {name: time.cycles - _cycles(kind, subject, again, time) for name, kind in KINDS.items()}
    said = {name: kind.change for name, kind in KINDS.items()} | {TAIL: _TAIL_CHANGE, FEW: _FEW_CHANGE}
    spread = launch.spread
    found[TAIL] = _last_workgroup(subject, launch, again, time) * (spread.most - spread.workgroups / spread.active)
    found[FEW] = time.cycles * (1 - spread.active / chip.processors)
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return tuple(
        Cause(name, saved, saved / time.cycles, said[name]) for name, saved in ranked if saved >= LEAST * time.cycles
    )


def _last_workgroup(subject: Subject, launch: RecordedLaunch, again: Callable[..., PredictedTime], time: PredictedTime) -> float:
    """Cycles that one workgroup more costs the processors that have it."""
    spread = launch.spread
    if spread.most == 1 or not spread.workgroups % spread.active:
        return 0.0
    mine = dealt(spread, len(time.sampled))
    if mine < spread.most:  # the slowest is another one
        return 0.0
    if mine > len(time.sampled):
        return time.each
    last = time.sampled[-1]
    fewer = Without(subject.chip, [stream for stream in subject.waves if stream.workgroup != last])
    alone = replace(launch, spread=replace(spread, most=spread.most - 1))
    return time.cycles - again(subject.chip, launch=alone, without=fewer).cycles


def _cycles(kind: _Inefficiency, subject: Subject, again: Callable[..., PredictedTime], time: PredictedTime) -> float:
    changed = kind.without(subject)
    return time.cycles if changed is None else again(changed.chip, without=changed).cycles
