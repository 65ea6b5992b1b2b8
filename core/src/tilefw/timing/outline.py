"""The time of a launch from its outline: what each workgroup moves and computes, step by step, without its machine code.

An outline is for launches that nobody can run here: another compiler's kernel, or one too large for the simulator. A processor
needs what its busiest unit takes for all its workgroups, or what one workgroup's chain of dependences takes for as many as follow
each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tilefw.timing.chip_file import ChipFigures
from tilefw.timing.power import clock_under_power

_ROUNDS = 12  # halvings of the interval of clocks: 1/4096 of it is left
_MATRIX = ("f16", "bf16", "tf32", "f8", "s8", "f64")


@dataclass(frozen=True, slots=True)
class Work:
    """What one workgroup does in one step. `matrix`: multiply-adds by element type, of matrix units ("f16", …) or, as "f32", of the
    vector pipes; `vector`: instructions of single lanes, `special`: special functions of them; `shared`: bytes read of shared
    memory, `staged`: bytes written to it; `read`, `write`: bytes of global memory, written in pieces that fill a part `filled` of
    what the cache takes at once."""

    matrix: Mapping[str, float] = field(default_factory=dict)
    vector: float = 0.0
    special: float = 0.0
    shared: float = 0.0
    staged: float = 0.0
    read: float = 0.0
    write: float = 0.0
    filled: float = 1.0


@dataclass(frozen=True, slots=True)
class Outline:
    """A launch. Each of `workgroups` with `waves` does `first`, `steps` times `step`, `last`; `resident` of them fit a processor.

    `ahead`: steps by which loads are issued early; 0 where each step waits for its own. `through_shared`: loads are written to
    shared memory by lanes between two barriers of a step. `apart`: waves of a workgroup go on alone, and do not meet at barriers
    in each step. `fetched`: waves read the operands of matrix units from shared memory by instructions of their own, one after
    the other with arithmetic. `memory`: bytes of the launch that come from or go to the last level, `middle`: those through the
    level before it where there are three. `cached`: a step's loads are answered by the processors' common cache.
    """

    workgroups: int
    waves: int
    resident: int
    steps: float
    step: Work
    first: Work = Work()
    last: Work = Work()
    ahead: float = 1.0
    through_shared: bool = False
    apart: bool = False
    fetched: bool = False
    memory: float = 0.0
    middle: float = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class OutlinedTime:
    """Seconds with the start of the launch, the clock in MHz that the power limit leaves, and what limits: the name of a unit, or
    "waits"."""

    seconds: float
    clock_mhz: float
    limit: str


def outlined_time(chip: ChipFigures, outline: Outline, launch_us: float | None = None) -> OutlinedTime:
    """The time of a launch on a product; `launch_us` replaces the file's time of a launch. Raises CodeError TFW0665."""
    launch = (chip["launch"] if launch_us is None else launch_us) * 1e-6
    top = chip["clock"]
    seconds, limit = _seconds(chip, outline, top)
    if clock_under_power(chip, _load(chip, outline, seconds, top)) >= top:
        return OutlinedTime(seconds + launch, top, limit)
    # Where units wait for memory they work a greater part of fewer cycles: what is allowed at the top is too high below it.
    low, high = clock_under_power(chip, 1.0), top
    for _ in range(_ROUNDS):
        clock = (low + high) / 2
        seconds, limit = _seconds(chip, outline, clock)
        if clock_under_power(chip, _load(chip, outline, seconds, clock)) >= clock:
            low = clock
        else:
            high = clock
    seconds, limit = _seconds(chip, outline, low)
    return OutlinedTime(seconds + launch, low, limit)


def _load(chip: ChipFigures, outline: Outline, seconds: float, clock: float) -> float:
    """The part of the cycles in which the matrix units work."""
    taken = sum(
        count * outline.workgroups * times / (chip[f"{kind}_rate"] * chip["processors"])
        for work, times in ((outline.step, outline.steps), (outline.first, 1), (outline.last, 1))
        for kind, count in work.matrix.items()
        if kind in _MATRIX
    )
    return min(1.0, taken / (seconds * clock * 1e6))


def _seconds(chip: ChipFigures, outline: Outline, clock: float) -> tuple[float, str]:
    hertz = clock * 1e6
    active = min(int(chip["processors"]), outline.workgroups)
    most = -(-outline.workgroups // int(chip["processors"]))
    resident = max(1, min(outline.resident, most))
    first, step, last = (_units(chip, work, active, hertz) for work in (outline.first, outline.step, outline.last))
    if outline.memory:  # workgroups that began together end together, and all store at that time
        last["memory"] = outline.last.write * active * clock / 1e3 / chip["memory_rate"]
    units = {
        name: first.get(name, 0.0) + outline.steps * step.get(name, 0.0) + last.get(name, 0.0) for name in {*first, *step, *last}
    }
    latency = chip["l2_latency"] if outline.cached else chip["memory_latency"]
    ends = chip["workgroup_cycles"] + latency + _together(first.values()) + _together(last.values())
    busy = most * _together(units.values()) + ends
    turns = -(-most // resident)
    chain = turns * (ends + outline.steps * _chain(chip, outline, latency, resident, max(step["L1"], step["L2"])))
    moving = {
        "memory": outline.memory / (chip["memory_rate"] * 1e9),
        "middle cache": outline.middle / _middle_rate(chip),
    }
    start = (chip["workgroup_cycles"] + latency) / hertz
    parts = {"waits": chain / hertz, max(sorted(units), key=lambda name: units[name]): busy / hertz}
    parts |= {name: seconds + start for name, seconds in moving.items()}
    limit = max(sorted(parts), key=lambda name: parts[name])
    processor = max(busy, chain) / hertz
    return _together([processor, max(moving.values()) + start if any(moving.values()) else 0.0]), limit


def _together(times: Iterable[float]) -> float:
    """The time of units that work side by side, and get in each other's way where several are busy: the fourth root of the sum of
    their fourth powers.

    The model of events (`processor.py`) has matrix units at work 83% of the time in a product of 4096³ on one such, beside an L2
    at 76%, shared memory at 62% and L1 at 41%; so does this."""
    return sum(time**4 for time in times) ** 0.25


def _in_turn(demands: Iterable[float], delay: float, customers: int) -> float:
    """Cycles of a round of each of `customers` waves that go from unit to unit, and wait `delay` beside: mean value analysis of a
    closed network of queues (Reiser and Lavenberg, JACM 27, 1980)."""
    demands = list(demands)
    queues = [0.0] * len(demands)
    total = delay + sum(demands)
    for present in range(1, customers + 1):
        waits = [demand * (1 + queue) for demand, queue in zip(demands, queues, strict=True)]
        total = delay + sum(waits)
        queues = [present * wait / total for wait in waits]
    return total


def _middle_rate(chip: ChipFigures) -> float:
    return (chip["mall_rate"] if "mall_rate" in chip.figures else chip["memory_rate"]) * 1e9


def _units(chip: ChipFigures, work: Work, active: int, hertz: float) -> dict[str, float]:
    """Cycles that each unit of a processor needs for one workgroup's work."""
    moved = work.read + work.write / work.filled
    share = active * hertz / 1e9
    found = {kind: count / chip[f"{kind}_rate"] for kind, count in work.matrix.items()}
    found["issue"] = work.vector / chip["issue_rate"]
    found["special"] = work.special / chip["special_rate"]
    found["shared"] = (work.shared + work.staged) / chip["shared_rate"]
    found["L1"] = moved / chip["l1_rate"]
    found["L2"] = work.read * share / chip["l2_rate"] + work.write / work.filled * share / chip["l2_write_rate"]
    return found


def _chain(chip: ChipFigures, outline: Outline, latency: float, resident: int, moved: float) -> float:
    """Cycles from one step of a workgroup to its next, with `resident` of them on a processor; `moved`: cycles in which its
    bytes come from the caches, when all processors ask."""
    work, schedulers = outline.step, chip["schedulers"]
    own = schedulers / outline.waves
    matrix = sum(count / chip[f"{kind}_rate"] for kind, count in work.matrix.items())
    waits = chip["shared_latency"] + chip["barrier"]
    if work.special:  # matrix units and arithmetic take turns: a wave does one, then the other
        between = 2 * chip["matrix_latency"] + 4 * chip["shared_latency"] + chip["barrier"]
        customers = max(1, round(resident * outline.waves / schedulers)) if outline.apart else resident
        part = own if outline.apart else max(1.0, own)
        pipes = (work.vector / chip["issue_rate"], work.special / chip["special_rate"], work.shared / chip["shared_rate"])
        matrix = _in_turn([demand * part for demand in (matrix, *pipes[: 3 if outline.fetched else 2])], between, customers)
    else:
        matrix = matrix * max(1.0, own) + work.vector / chip["issue_rate"] * own
    shared, staged = work.shared / chip["shared_rate"], work.staged / chip["shared_rate"]
    if not work.read:
        return matrix
    if outline.through_shared:  # waves of one scheduler take turns: while one reads its operands, the others multiply
        turns = max(1.0, outline.waves / schedulers)
        inside = 2 * waits + staged + max(shared / turns + matrix, shared + matrix / turns)
    else:
        inside = waits + chip["matrix_latency"] * bool(work.matrix) + max(matrix, shared + staged)
    if not outline.ahead:  # while one workgroup waits for its loads the others compute and load, where units are free
        return _in_turn((inside, moved), latency, resident) if work.matrix else inside + latency + moved
    return max(inside, (latency + moved) / outline.ahead)


def at_clock(chip: ChipFigures, clock: float) -> ChipFigures:
    """The product at a clock that its source fixed or measured, where no power limit takes part any more."""
    fixed = replace(chip.figure("clock"), value=clock, low=clock, high=clock)
    limit = replace(chip.figure("matrix_clock"), value=clock, low=clock, high=clock)
    return ChipFigures(chip.file, chip.chip, {**chip.figures, "clock": fixed, "matrix_clock": limit})
