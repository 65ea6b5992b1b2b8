"""Waves wait for phases of copies in order, however often the simulator tried; what is not such a phase is refused."""

import pytest
from toy_timing import COSTS, chip, code, trace

from tilefw.api.errors import UnsupportedError
from tilefw.timing.chip_timing import InstructionCost
from tilefw.timing.memory_levels import MemoryLevels
from tilefw.timing.phases import phases_of, settled
from tilefw.timing.processor import ProcessorModel
from tilefw.timing.sharing import Sharing
from tilefw.timing.streams import WaveAccess, WaveStream
from tilefw.timing.without import Subject, idle_lanes

LINES = code("begin", "bulk", "try", "again", "add 1 1")
ROLES = ["phase", "bulk", "await", "", ""]
PHASED = COSTS | {
    "begin": InstructionCost("memory", 1, 1, role="phase"), "bulk": InstructionCost("memory", 1, 50, role="bulk"),
    "try": InstructionCost("memory", 1, 1, role="await"), "again": InstructionCost("alu", 0, 1),
}


def stream(wave: int, phases: int, tries: int = 1, elected: bool = True) -> WaveStream:
    """A wave that begins each phase, copies if it is the elected one, tries its wait so often and adds."""
    made = WaveStream(0, wave)
    for phase in range(phases):
        if elected:
            made.accesses[len(made.instructions)] = [WaveAccess("atomic", (), 0, 8)]
            made.accesses[len(made.instructions) + 1] = [WaveAccess("read", tuple(range(4 * phase, 4 * phase + 4)), 0, 128)]
        made.instructions += [0, 1] + [2, 3] * (tries - 1) + [2, 4]
    return made


def cycles(waves: list[WaveStream]) -> float:
    made = chip(cost=lambda instruction: PHASED[instruction.mnemonic])
    memory = MemoryLevels(made, Sharing(made, trace(LINES)), 1)
    return ProcessorModel(made, LINES, memory, 1).run(waves).cycles


def test_a_wait_lasts_until_the_copy_has_come() -> None:
    both = [stream(0, 3), stream(1, 3, elected=False)]
    assert cycles(both) == pytest.approx(3 * 360, rel=0.1), "300 cycles of memory and 50 of the engine, three times"


def test_tries_that_fail_are_one_wait() -> None:
    once, often = (settled([stream(0, 3, tries)], ROLES)[0] for tries in (1, 7))
    assert once.instructions == often.instructions and once.accesses.keys() == often.accesses.keys()


def test_waits_for_what_no_engine_copies_are_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        phases_of([stream(0, 3, elected=False)], ROLES)
    assert caught.value.code == "TFW0666"
    assert phases_of([WaveStream(0, 0, [4, 4])], ROLES) is None


def test_a_wave_is_not_idle_whose_copies_others_wait_for() -> None:
    copying, storing = stream(0, 3), stream(1, 3, elected=False)
    storing.accesses[len(storing.instructions) - 1] = [WaveAccess("write", tuple(range(64)), 0, 2000, size=128)]
    made = chip(cost=lambda instruction: PHASED[instruction.mnemonic])
    spared = idle_lanes(Subject(made, LINES, 32, [copying, storing], room=1, most=1))
    assert spared is None or {kept.wave for kept in spared.waves} == {0, 1}
