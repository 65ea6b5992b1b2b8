"""Waves wait for phases of barriers that count until all has come that is for them, however often the simulator tried."""

import pytest
from toy_timing import COSTS, chip, code, trace

from tilefw.api.errors import UnsupportedError
from tilefw.timing import launch_time as launch_time_module
from tilefw.timing.chip_timing import InstructionCost
from tilefw.timing.launch_time import RecordedLaunch, launch_time, residency
from tilefw.timing.memory_levels import MemoryLevels
from tilefw.timing.periods import LONG, SHORT, periods
from tilefw.timing.phases import phases_of, settled
from tilefw.timing.processor import ProcessorModel
from tilefw.timing.sharing import Sharing
from tilefw.timing.streams import BarrierUse, WaveAccess, WaveStream
from tilefw.timing.without import Subject, idle_lanes

LINES = code("begin", "bulk", "try", "again", "add 1 1", "arrive", "dot 1 1", "copy", "behind")
BEGIN, BULK, TRY, AGAIN, ADD, ARRIVE, DOT, COPY, BEHIND = range(9)
ROLES = ["arrive", "bulk", "await", "", "", "arrive", "", "copy", "arrive_behind"]
PHASED = COSTS | {
    "begin": InstructionCost("memory", 1, 1, role="arrive"), "bulk": InstructionCost("memory", 1, 50, role="bulk"),
    "try": InstructionCost("memory", 1, 1, role="await"), "again": InstructionCost("alu", 0, 1),
    "arrive": InstructionCost("memory", 1, 40, role="arrive"), "behind": InstructionCost("memory", 1, 1, role="arrive_behind"),
}
RING, FULL, EMPTY = 3, 0, 64


def at(stream: WaveStream, number: int, address: int, ended: int, chunks: range | None = None) -> None:
    """The wave executes an instruction that uses a barrier, and reads memory."""
    place = len(stream.instructions)
    stream.barriers[place] = [BarrierUse(stream.workgroup, address, ended)]
    if chunks is not None:
        stream.accesses[place] = [WaveAccess("read", tuple(chunks), 0, 128)]
    stream.instructions.append(number)


def stream(wave: int, phases: int, tries: int = 1, elected: bool = True) -> WaveStream:
    """A wave that begins each phase, copies if it is the elected one, tries its wait so often and adds."""
    made = WaveStream(0, wave)
    for phase in range(phases):
        if elected:
            at(made, BEGIN, FULL, phase)
            at(made, BULK, FULL, phase, range(4 * phase, 4 * phase + 4))
        else:
            made.instructions += [BEGIN, BULK]
        for _ in range(tries - 1):
            at(made, TRY, FULL, phase)
            made.instructions.append(AGAIN)
        at(made, TRY, FULL, phase + 1)
        made.instructions.append(ADD)
    return made


def handed_over(turns: int, dots: int = 1, arrivals: bool = True) -> list[WaveStream]:
    """A wave fills the slots of a ring, and another one multiplies what is in them."""
    fills, multiplies = WaveStream(0, 0), WaveStream(0, 1)
    for turn in range(turns):
        slot, lap = 8 * (turn % RING), turn // RING
        at(fills, TRY, EMPTY + slot, lap)
        at(fills, BEGIN, FULL + slot, lap)
        at(fills, BULK, FULL + slot, lap, range(4 * turn, 4 * turn + 4))
        at(multiplies, TRY, FULL + slot, lap + 1)
        multiplies.instructions += [DOT] * dots
        if arrivals:
            at(multiplies, ARRIVE, EMPTY + slot, lap)
    return [fills, multiplies]


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
    assert once.barriers == often.barriers


def test_as_many_copies_are_on_their_way_as_a_ring_has_slots() -> None:
    """A slot is filled again 32 cycles of a product and 40 of the arrival behind the wait for it."""
    assert cycles(handed_over(30)) == pytest.approx(30 * (350 + 32 + 40) / RING, rel=0.1)
    assert cycles(handed_over(30, dots=20)) == pytest.approx(30 * 20 * 32, rel=0.1), "products hide the copies"
    assert cycles(handed_over(30, arrivals=False)) < 0.6 * cycles(handed_over(30)), "who waits for nobody copies all at once"


def test_an_arrival_behind_copies_comes_when_they_have() -> None:
    copies, waits = WaveStream(0, 0), WaveStream(0, 1)
    copies.accesses[0] = [WaveAccess("read", (0, 1, 2, 3), 0, 128)]
    copies.instructions.append(COPY)
    at(copies, BEHIND, FULL, 0)
    at(waits, TRY, FULL, 1)
    waits.instructions.append(DOT)
    assert cycles([copies, waits]) == pytest.approx(300 + 32, abs=16)


def test_arrivals_of_other_workgroups_have_come() -> None:
    own, other = handed_over(30)
    for uses in other.barriers.values():
        uses[:] = [use._replace(owner=7) if use.address >= EMPTY else use for use in uses]
    assert cycles([own, other]) == pytest.approx(cycles(handed_over(30, arrivals=False)), rel=0.1)


def test_turns_that_are_left_out_keep_waits_and_arrivals_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made = chip(cost=lambda instruction: PHASED[instruction.mnemonic])
    empty = trace(LINES, waves=2)
    launch = RecordedLaunch(empty, empty, residency(made, 1, 2, None), 0)
    waves = [*handed_over(200), WaveStream(0, 2, [ADD, ADD])]
    cut = periods(waves)
    assert cut is not None and (cut.turns - cut.few) % RING == 0 == (cut.turns - cut.many) % RING
    assert SHORT <= cut.few < SHORT + RING and LONG <= cut.many < LONG + RING
    for streams in (cut.short, cut.long):
        phases = phases_of(streams, ROLES)
        assert phases is not None and set(phases.left.values()) <= {1, 2}
        laps = {use.ended for one in streams for used in one.barriers.values() for use in used}
        assert laps == set(range(len(phases.left) // (2 * RING) + 2)), "no lap is missing"
    monkeypatch.setattr(launch_time_module, "prepared", lambda chip, launch: waves)
    short = launch_time(made, launch)
    monkeypatch.setattr(launch_time_module, "periods", lambda waves: None)
    assert short.cycles == pytest.approx(launch_time(made, launch).cycles, rel=0.02)


def test_records_without_barriers_and_waits_for_nobody_are_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        phases_of([WaveStream(0, 0, [TRY, ADD])], ROLES)
    assert caught.value.code == "TFW0666"
    assert phases_of([WaveStream(0, 0, [ADD, ADD])], ROLES) is None


def test_waves_that_wait_for_one_another_in_a_circle_are_refused() -> None:
    circle = [WaveStream(0, 0), WaveStream(0, 1)]
    for wave, (waits, arrives) in zip(circle, ((FULL, EMPTY), (EMPTY, FULL)), strict=True):
        at(wave, TRY, waits, 1)
        at(wave, ARRIVE, arrives, 0)
    with pytest.raises(UnsupportedError, match="never come"):
        cycles(circle)


def test_a_wave_is_not_idle_whose_copies_others_wait_for() -> None:
    copying, storing = stream(0, 3), stream(1, 3, elected=False)
    storing.accesses[len(storing.instructions) - 1] = [WaveAccess("write", tuple(range(64)), 0, 2000, size=128)]
    made = chip(cost=lambda instruction: PHASED[instruction.mnemonic])
    spared = idle_lanes(Subject(made, LINES, 32, [copying, storing], room=1, most=1))
    assert spared is None or {kept.wave for kept in spared.waves} == {0, 1}
