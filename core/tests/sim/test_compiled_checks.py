"""Checks in compiled form find and count what NumPy's form does, and leave the same last accesses of every place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import running
import wave_toy

from tilefw.sim.checks.compiled_races import NOT_HERE, CompiledRaces
from tilefw.sim.checks.races import Races
from tilefw.sim.engine.batch import Batch
from tilefw.sim.memory.regions import Region

pytest.importorskip("llvmlite")

KEPT = ("writer", "written", "write_site", "strong", "reader", "read", "read_site", "mixed")
# In an ordinary run; the mark `campaign` has many more.
SEEDS = 24
Left = list[tuple[int, dict[str, bytes]]]


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Iterator[Left]:
    """Of each region that the check has touched, its granule and the last accesses by name."""
    found: Left = []
    end, close = Races.end, Races.close

    def note(regions: Iterable[Region]) -> None:
        for region in regions:
            places: Any = region.races
            of_several = np.where((places.reader & 63) == 63, 0 if places.waves is None else places.waves, 0)
            arrays = {name: getattr(places, name).tobytes() for name in KEPT}
            found.append((places.granule, {**arrays, "waves": of_several.tobytes()}))

    def ended(self: Races, batch: Batch) -> None:
        note(region for region in batch.memory if region in self._touched)
        end(self, batch)

    def closed(self: Races) -> None:
        note(self._touched)
        close(self)

    monkeypatch.setattr(Races, "end", ended)
    monkeypatch.setattr(Races, "close", closed)
    yield found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """For each access that compiled form was asked for, whether it took it."""
    made: list[bool] = []
    read, write = CompiledRaces.read, CompiledRaces.write

    def counted_read(self: CompiledRaces, *given: Any, **options: Any) -> bool:
        made.append(read(self, *given, **options))
        return made[-1]

    def counted_write(self: CompiledRaces, *given: Any, **options: Any) -> int:
        answer = write(self, *given, **options)
        made.append(answer != NOT_HERE)
        return answer

    monkeypatch.setattr(CompiledRaces, "read", counted_read)
    monkeypatch.setattr(CompiledRaces, "write", counted_write)
    yield made


def lane_program(choose: random.Random) -> str:
    """Loads, stores and copies of threads at places of their own, of their neighbours or of all, with barriers here and there; some
    of these programs have races, most have none in most places."""
    lines = [
        "param a0, arg0", "param a1, arg1", "mov r0, tid", "mov r1, wave", "mov r2, group", "mov r9, 0", "mul r3, r2, 32",
        "add r3, r3, r0", "lt p0, r0, 3", "eq p1, r1, 1", "mul r10, r0, 4", "wide a2, r10", "index a4, a1, r3",
    ]
    for _ in range(choose.randint(6, 16)):
        where = choose.choice(("r0", "r0", "r0", "r1", "5", "r11"))
        lines += [f"add r11, r0, {choose.randint(0, 9)}", "and r11, r11, 31", f"mul r12, {where}, 4", "wide a3, r12"]
        guard = choose.choice(("", "", "", "@p0 ", "@!p0 ", "@p1 "))
        value = choose.choice(("r0", "r9", "7"))
        lines += choose.choice((
            [f"{guard}lstore a3, {value}"], [f"{guard}lload r4, a3", "add r9, r9, r4"], ["bar 0"], ["bar 0"],
            ["index a5, a0, r11", f"{guard}load r4, a5", "add r9, r9, r4"], [f"{guard}store a4, {value}"],
            ["index a5, a0, r0", f"{guard}copy a2, a5", "commit", choose.choice(("wait", "wait1"))],
            [f"{guard}store8 a4, r0"] if choose.random() < 0.3 else ["bar 0"],
            ["load r4, a4", "add r9, r9, r4"],
        ))
    return "\n".join([*lines, "wait", "mul r3, r3, 4", "store a4, r9", "end"])


def wave_program(choose: random.Random) -> str:
    """The same of waves, which make some loads once for all lanes, and whose accesses to shared memory are finished by events that
    they wait for, or do not."""
    lines = ["wload2 w4:w5, w0:w1, 0", "wait near 0", "mul v1, v0, 4", "sub v2, 31, v0", "mul v2, v2, 4", "mov v7, 0"]
    lines += ["load v4, w4:w5, v1", "wait far 0"]
    for _ in range(choose.randint(5, 14)):
        at = choose.choice(("v1", "v1", "v2", "0", "4"))
        lines += choose.choice((
            [f"lstore {at}, {choose.choice(('v0', '7'))}"], [f"lload v3, {at}", "wait near 0", "add v7, v7, v3"],
            [f"lload v3, {at}", "wait near 0", "bar", "add v7, v7, v3"], ["wait near 0", "bar"], ["wait near 0", "bar"], ["bar"],
            ["wait near 1"], [f"wload w6, w4:w5, {4 * choose.randint(32, 35)}", "wait near 0"],
        ))
    return "\n".join([*lines, "wait near 0, far 0", "store w4:w5, v1, v7", "end"])


def agree(monkeypatch: pytest.MonkeyPatch, left: Left, launch: Callable[[], Any]) -> int:
    """How many findings both forms have."""
    told, places, counters = [], [], []
    for mode in ("0", "always"):
        monkeypatch.setenv("TILEFW_JIT", mode)
        left.clear()
        report = launch().report
        told.append([str(finding) for finding in report.findings])
        counters.append(report.counters)
        places.append(list(left))
    assert told[0] == told[1]
    assert places[0] == places[1]
    assert counters[0] == counters[1]
    return len(told[0])


def launch_of(seed: int) -> Callable[[], Any]:
    choose = random.Random(seed)
    numbers = np.arange(1, 65, dtype=np.uint32)
    if seed % 3 == 2:
        text = wave_program(choose)
        return lambda: wave_toy.run(text, numbers, block=32, shared=512, seed=0)
    text, order = lane_program(choose), choose.choice((0, 0, seed + 1))
    return lambda: running.run(text, numbers, np.zeros(64, np.uint32), grid=2, block=32, shared=256, seed=order)


def test_random_programs_are_told_the_same_compiled(
    monkeypatch: pytest.MonkeyPatch, left: Left, calls: list[bool]
) -> None:
    found = [agree(monkeypatch, left, launch_of(seed)) for seed in range(SEEDS)]
    assert 0 in found and any(found), "some of these programs are to have findings, and some none"
    assert calls.count(True) > 10 * SEEDS // 3 and False in calls


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(8))
def test_many_random_programs_are_told_the_same_compiled(monkeypatch: pytest.MonkeyPatch, left: Left, part: int) -> None:
    for seed in range(SEEDS + part, 2000, 8):
        agree(monkeypatch, left, launch_of(seed))
