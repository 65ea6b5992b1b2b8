"""How a profile is made: cycles of a launch, what limits it, its place under the chip's roofs, stalls by line and instruction."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from tilefw.api.execution_trace import ExecutionTrace
from tilefw.timing.causes import causes
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.launch_profile import LaunchProfile, Limit, Roof, StalledCode
from tilefw.timing.launch_time import PredictedTime, RecordedLaunch, dealt, launch_time, neighbours
from tilefw.timing.periods import LONG
from tilefw.timing.source_lines import line_of


def launch_profile(
    chip: ChipTiming, bounds: tuple[ChipTiming, ChipTiming], launch: RecordedLaunch, *, kernel: str, target: str,
    occupancy: float | None, warm: bool = False, notes: Sequence[str] = (),
) -> LaunchProfile:
    """The profile of a recorded launch. `bounds`: the same chip with every figure at its fast and at its slow end. `warm`: as in
    `launch_time`."""
    known = neighbours(chip, launch)
    time = launch_time(chip, launch, warm, known=known)
    fast, slow = (launch_time(end, launch, warm, known=known, tells=False).seconds for end in bounds)
    outcome, trace = time.outcome, launch.own
    stalls, lines = _stalls(trace, time)
    why = causes(chip, launch, time, known, warm)
    if time.turns:
        notes = [*notes, f"{LONG} of the {time.turns} turns of the waves' loop were timed, which are all the same instructions"]
    return LaunchProfile(
        kernel, target, chip.product, trace.grid, time.cycles, time.seconds, min(fast, time.seconds), max(slow, time.seconds),
        chip.clock_hz, launch.spread, occupancy, limits=_limits(time),
        busy={pipe: _busy(chip, pipe, taken) / outcome.cycles for pipe, taken in outcome.busy.items()},
        roofline=_roofline(chip, time), operations=_operations(time), peak=_peak(chip, trace, time), stalls=stalls, lines=lines,
        notes=tuple(notes), causes=why,
    )


def _busy(chip: ChipTiming, pipe: str, taken: float) -> float:
    """Cycles of one of a processor's units of a kind."""
    return taken / chip.schedulers if chip.pipes.get(pipe) == "scheduler" else taken


def _limits(time: PredictedTime) -> tuple[Limit, ...]:
    found = time.outcome.limits
    total = sum(found.values()) or 1.0
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return tuple(Limit(cause, cycles / total * time.cycles, cycles / total) for cause, cycles in ranked if cycles)


def _of_launch(time: PredictedTime) -> float:
    """How much of the launch is not simulated for each part that is."""
    return time.scale * time.residency.workgroups / dealt(time.residency, len(time.sampled))


def _roofline(chip: ChipTiming, time: PredictedTime) -> tuple[Roof, ...]:
    roofs = []
    for level in chip.levels:
        nbytes = time.outcome.moved.get(level.name, 0.0) * _of_launch(time)
        sharing = {"processor": chip.processors, "die": chip.dies, "chip": 1}[level.shared_by]
        roofs.append(Roof(level.name, nbytes, nbytes / time.seconds, level.bytes_per_cycle * sharing * chip.clock_hz))
    return tuple(roofs)


def _operations(time: PredictedTime) -> float:
    return sum(time.outcome.operations.values()) * _of_launch(time) / time.seconds


def _peak(chip: ChipTiming, trace: ExecutionTrace, time: PredictedTime) -> float | None:
    """What the chip's matrix units could do, by the rate of the products that were executed."""
    best = 0.0
    for number in time.outcome.executed:
        cost = chip.cost(trace.instructions[number])
        if cost.operations and cost.pipe in chip.matrix_pipes:
            best = max(best, cost.operations / cost.cycles * chip.schedulers * chip.processors * chip.clock_hz)
    return best or None


def _stalls(trace: ExecutionTrace, time: PredictedTime) -> tuple[tuple[StalledCode, ...], tuple[StalledCode, ...]]:
    """By instruction in the order of the code, and by source line with the most stalled first."""
    outcome = time.outcome
    found: list[StalledCode] = []
    executed_by_line: Counter[tuple[str, str]] = Counter()
    causes_by_line: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for number, executed in sorted(outcome.executed.items()):
        instruction = trace.instructions[number]
        causes = dict(outcome.stalls.get(number, {}))
        line = line_of(instruction)
        source = "" if instruction.source is None else line[0]
        found.append(StalledCode(str(number), instruction.text, executed, sum(causes.values()), causes, source))
        executed_by_line[line] += executed
        for cause, cycles in causes.items():
            causes_by_line[line][cause] += cycles
    lines = [
        StalledCode(*line, executed, sum(causes_by_line[line].values()), dict(causes_by_line[line]))
        for line, executed in executed_by_line.items()
    ]
    return tuple(found), tuple(sorted(lines, key=lambda line: -line.stalled))
