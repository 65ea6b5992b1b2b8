"""The time of a launch from its outline: what each workgroup moves and computes, step by step, without its machine code.

An outline is for launches that nobody can run here: another compiler's kernel, or one too large for the simulator. A processor
needs
what its busiest unit takes for all its workgroups, or what one workgroup's chain of dependences takes for as many as follow each
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tilefw.timing.chip_file import ChipFigures
from tilefw.timing.power import clock_under_power

_ROUNDS = 12  # halvings of the interval of clocks: 1/4096 of it is left
_MATRIX = ("f16", "bf16", "tf32", "f8", "s8", "f64")


@dataclass(frozen=True, slots=True)
class Work:
    """What one workgroup does in one step. `matrix`: multiply-adds by element type, of matrix units ("f16", …) or, as "f32", of the
    vector pipes; `vector` and `special`: operations of single lanes; `shared`: bytes read of shared memory, `staged`: bytes
    written to it;
    `read`, `write`: bytes of global memory, written in pieces that fill a part `filled` of what the cache takes at once."""

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
    shared
    memory by lanes between two barriers of a step. `memory`: bytes of the launch that come from or go to the last level, `middle`:
    those through the level before it where there are three. `cached`: a step's loads are answered by the processors' common cache.
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
    memory: float = 0.0
    middle: float = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class OutlinedTime:
    """Seconds with the start of the launch, the clock that the power limit leaves, and what limits: the name of a unit or a
    wait."""

    seconds: float
    clock_mhz: float
    limit: str


def outlined_time(chip: ChipFigures, outline: Outline, launch_us: float | None = None) -> OutlinedTime:
    """The time of a launch on a product; `launch_us` replaces the file's time of a launch. Raises CodeError TFW0665."""
    launch = (chip["launch"] if launch_us is None else launch_us) * 1e-6
    top = chip["clock"]
    seconds, limit = _seconds(chip, outline, top)
    allowed = clock_under_power(chip, _load(chip, outline, seconds, top))
    if allowed >= top:
        return OutlinedTime(seconds + launch, top, limit)
    low, high = min(allowed, top), top
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
    parts = {
        "first": _pipes(chip, outline.first, active, hertz),
        "step": _pipes(chip, outline.step, active, hertz),
        "last": _pipes(chip, outline.last, active, hertz),
    }
    busy, limit = _busiest(parts, outline.steps)
    latency = chip["l2_latency"] if outline.cached else chip["memory_latency"]
    begin = chip["workgroup_cycles"] + latency + max(parts["first"].values(), default=0.0)
    end = max(parts["last"].values(), default=0.0) + (chip["shared_latency"] if outline.last.shared else 0.0)
    step = _chain(chip, outline, latency)
    chain = begin + outline.steps * step + end
    turns = -(-most // resident)
    cycles, what = max((most * busy + begin + end, limit), (turns * chain, "waits"))
    moving, level = max(
        (outline.memory / (chip["memory_rate"] * 1e9), "memory"),
        (outline.middle / _middle_rate(chip), "middle cache"),
    )
    moving += (chip["workgroup_cycles"] + latency) / hertz
    seconds = cycles / hertz
    return (moving, level) if moving > seconds else (seconds, what)


def _middle_rate(chip: ChipFigures) -> float:
    return (chip["mall_rate"] if "mall_rate" in chip.figures else chip["memory_rate"]) * 1e9


def _pipes(chip: ChipFigures, work: Work, active: int, hertz: float) -> dict[str, float]:
    """Cycles that each unit of a processor needs for one workgroup's work."""
    moved = work.read + work.write / work.filled
    share = active * hertz / 1e9
    found = {kind: count / chip[f"{kind}_rate"] for kind, count in work.matrix.items()}
    found["vector"] = work.vector / chip["vector_rate"]
    found["special"] = work.special / chip["special_rate"]
    found["shared"] = (work.shared + work.staged) / chip["shared_rate"]
    found["L1"] = moved / chip["l1_rate"]
    found["L2"] = work.read * share / chip["l2_rate"] + work.write / work.filled * share / chip["l2_write_rate"]
    return found


def _busiest(parts: Mapping[str, Mapping[str, float]], steps: float) -> tuple[float, str]:
    """Cycles of the unit that is busiest over a whole workgroup, and its name."""
    names = {name for part in parts.values() for name in part}
    total = {name: sum(parts[p].get(name, 0.0) * (steps if p == "step" else 1) for p in parts) for name in names}
    name = max(sorted(total), key=lambda unit: total[unit])
    return total[name], name


def _chain(chip: ChipFigures, outline: Outline, latency: float) -> float:
    """Cycles from one step of a workgroup to its next, all else being idle: a wave has one scheduler's part of every unit."""
    work, waves = outline.step, outline.waves
    own = chip["schedulers"] / waves
    matrix = sum(count / chip[f"{kind}_rate"] for kind, count in work.matrix.items()) * (own if work.special else max(1.0, own))
    arithmetic = (work.vector / chip["vector_rate"] + work.special / chip["special_rate"]) * own
    shared, staged = work.shared / chip["shared_rate"], work.staged / chip["shared_rate"]
    moved = work.read / chip["l1_rate"]
    if not work.read:
        return matrix + arithmetic
    waits = chip["shared_latency"] + chip["barrier"]
    if outline.through_shared:  # waves of one scheduler take turns: while one reads its operands, the others multiply
        turns = max(1.0, waves / chip["schedulers"])
        inside = 2 * waits + staged + max(shared / turns + matrix, shared + matrix / turns) + arithmetic
    else:
        inside = waits + chip["matrix_latency"] * bool(work.matrix) + max(matrix, shared + staged) + arithmetic
    if not outline.ahead:
        return inside + latency + moved
    return max(inside, (latency + moved) / outline.ahead)


def at_clock(chip: ChipFigures, clock: float) -> ChipFigures:
    """The product at a clock that its source fixed or measured, where no power limit takes part any more."""
    fixed = replace(chip.figure("clock"), value=clock, low=clock, high=clock)
    limit = replace(chip.figure("matrix_clock"), value=clock, low=clock, high=clock)
    return ChipFigures(chip.file, chip.chip, {**chip.figures, "clock": fixed, "matrix_clock": limit})
