"""What is chosen to be spilled: the pressure is kept exactly, comes down to what a file has, and costs no more than one choice at a
time would."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping

import machine_programs as programs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilefw.machine import spill_choice
from tilefw.machine.inst import Function, Inst, Reg
from tilefw.machine.live_ranges import LivePart, LiveRanges
from tilefw.machine.spill_choice import Choice, Chooser
from tilefw.machine.spill_model import MEMORY, SpillModel, SpillSlotClass
from tilefw.machine.spill_pressure import Crowded, Excess, SpillPressure, most_live, pressures
from tilefw.machine.table import EFFECT, JUMP, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function

LENGTH = 1024  # points, in several runs
CHANGES = st.lists(st.tuples(st.integers(0, LENGTH - 1), st.integers(1, 400), st.integers(-2, 3)), max_size=12)


@settings(deadline=None)
@given(st.lists(CHANGES, min_size=1, max_size=4), CHANGES, st.lists(st.integers(0, LENGTH - 1), min_size=2, max_size=20))
def test_excess_follows_the_pressure(
    rounds: list[list[tuple[int, int, int]]], limits: list[tuple[int, int, int]], points: list[int]
) -> None:
    plain = np.zeros(LENGTH, np.int32)
    most = np.full(LENGTH, 2, np.int32)  # not everywhere the same
    for start, length, count in limits:
        most[start : start + length] += count
    pressure = SpillPressure(np.zeros(LENGTH, np.int32), 2)
    excess = Excess(pressure, most)
    for changes in rounds:
        for start, length, count in changes:
            pressure.add([(start, min(start + length, LENGTH))], count)
            plain[start : start + length] += count
        excess.update()
        beyond = plain > most
        assert excess.worst() == (int((plain - most).argmax()) if beyond.any() else None)
        starts, ends = np.sort(np.array([points[:-1], points[1:]], np.int64), axis=0)
        counted = [int(beyond[a:b].sum()) for a, b in zip(starts, ends, strict=True)]
        assert excess.within(starts, ends).tolist() == counted


def crowded(seed: int, registers: int = 24) -> tuple[Function, LiveRanges, dict[str, SpillPressure]]:
    """A long random function, and the pressure of a chip that has few of its registers."""
    function = programs.Drawing(random.Random(seed), registers, length=40).draw()
    table = programs.chip()
    ranges = LiveRanges(function, table)
    usable = {"v": frozenset(range(16)), "s": frozenset(range(12)), "a": frozenset(range(12))}
    return function, ranges, pressures(ranges, ranges.parts, table, usable)


def everywhere(pressure: SpillPressure) -> NDArray[np.int32]:
    """All registers for values, at each point."""
    return np.full(len(pressure.at), pressure.available, np.int32)


def test_room_is_made_only_where_a_register_found_none() -> None:
    _, ranges, now = crowded(3)
    reg = next(reg for reg in ranges.parts if reg.cls == "v")
    most = most_live(ranges, now["v"], now["v"], Crowded(5, frozenset([reg])))
    lives = np.zeros(len(most), np.bool_)
    for part in ranges.parts[reg]:
        for start, end in part.segments:
            lives[start:end] = True
    assert 0 < lives.sum() < len(lives)
    assert most.tolist() == np.where(lives, now["v"].available - 5, now["v"].available).tolist()


def test_a_register_that_leaves_is_spilled_though_all_fit() -> None:
    function = programs.Drawing(random.Random(3), 24, length=40).draw()
    table = programs.chip()
    ranges = LiveRanges(function, table)
    now = pressures(ranges, ranges.parts, table, {file: frozenset(range(500)) for file in "vsa"})
    parts = {reg: its for reg, its in ranges.parts.items() if table.file(reg.cls) == "v"}
    chooser = Chooser(function, ranges, table, programs.SPILLS, now)
    assert chooser.choose("v", everywhere(now["v"]), parts) == []
    reg = next(iter(parts))
    assert [choice.reg for choice in chooser.choose("v", everywhere(now["v"]), parts, [reg])] == [reg]


def chosen(function: Function, ranges: LiveRanges, now: Mapping[str, SpillPressure], file: str) -> list[Choice]:
    parts = {reg: its for reg, its in ranges.parts.items() if programs.chip().file(reg.cls) == file}
    return Chooser(function, ranges, programs.chip(), programs.SPILLS, now).choose(file, everywhere(now[file]), parts)


def kept(choice: Choice) -> set[int]:
    """The points at which a spilled register is in its file all the same."""
    reads = {2 * access.number for access in choice.accesses if access.reads}
    return reads | {2 * access.number + 1 for access in choice.accesses if access.writes}


def counted(parts: Mapping[Reg, list[LivePart]], choices: list[Choice], length: int) -> np.ndarray:
    """The pressure point by point: of registers that stay, and of others where they are kept."""
    at = np.zeros(length, np.int32)
    left = {choice.reg for choice in choices}
    for reg, its in parts.items():
        for part in its if reg not in left else ():
            for start, end in part.segments:
                at[start:end] += part.width
    for choice in choices:
        at[list(kept(choice))] += choice.reg.width
    return at


@pytest.mark.parametrize("file", ["v", "s", "a"])
def test_choices_bring_the_pressure_down_and_it_is_as_counted_anew(file: str) -> None:
    relieved = 0
    for seed in range(30):
        function, ranges, now = crowded(seed)
        limit, before = now[file].available, now[file].at.copy()
        choices = chosen(function, ranges, now, file)
        parts = {reg: its for reg, its in ranges.parts.items() if programs.chip().file(reg.cls) == file}
        fixed = before - counted(parts, [], len(before))  # physical registers that the code names
        assert (now[file].at == fixed + counted(parts, choices, len(before))).all()
        if now[file].at.max() > limit:  # what is live at the worst point is then accessed there, or gone already
            worst = int(now[file].at.argmax())
            inst = list(function.insts())[worst // 2]
            live = {reg for reg, its in parts.items() if any(a <= worst < b for part in its for a, b in part.segments)}
            assert live <= {piece.reg for piece in (*inst.reads(), *inst.writes())} | {choice.reg for choice in choices}
        relieved += int(before.max()) > limit >= int(now[file].at.max())
    assert relieved >= 10


def test_choices_by_shares_cost_no_more_than_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The greedy choice that scores all anew after each register is the measure: over many functions no more registers leave, and
    no more accesses need spill code."""
    totals: list[np.ndarray] = []
    for steps in (spill_choice._SHARES, 1 << 20):
        monkeypatch.setattr(spill_choice, "_SHARES", steps)
        totals.append(np.zeros(2, np.int64))
        for seed in range(60):
            function, ranges, now = crowded(seed, registers=160)
            for choice in chosen(function, ranges, now, "v"):
                totals[-1] += choice.reg.width, len(choice.accesses)
    shares, one_at_a_time = totals
    assert one_at_a_time.min() > 100 and (shares != one_at_a_time).any()
    assert (shares <= 1.02 * one_at_a_time).all(), totals


def test_the_model_is_asked_of_an_access_once() -> None:
    """Plugins encode an instruction to answer, however often a register is looked at."""
    function, ranges, now = crowded(3)
    asked: list[tuple[int, Reg]] = []

    def accepts(inst: Inst, reg: Reg, cls: str) -> bool:
        asked.append((id(inst), reg))
        return programs.SPILLS.accepts(inst, reg, cls)

    parts = {reg: its for reg, its in ranges.parts.items() if reg.cls == "v"}
    model = dataclasses.replace(programs.SPILLS, accepts=accepts)
    choices = Chooser(function, ranges, programs.chip(), model, now).choose("v", everywhere(now["v"]), parts)
    assert len(choices) > 3 and len(asked) > 10
    assert len(asked) == len(set(asked))


def test_an_access_costs_what_it_names_of_a_register() -> None:
    """Of two tuples of four that wait equally long the one that is read in parts is no dearer than the one that is read whole."""
    text = """func @f target "toy"
  regs v x4 a4: 0-1
entry:
  %0 = ld 0
  %1 = ld 0
  st %1
  st %0[0:1]
  st %0[1:1]
  st %0[2:1]
  st %0[3:1]
  ret
"""
    load = InstructionTraits(memory="global")
    table = from_dict("toy", {"ld": load, "st": EFFECT, "ret": JUMP}, [RegisterClass("v", 32, 8)])
    function = parse_function(text)
    ranges = LiveRanges(function, table)
    slot = SpillSlotClass(MEMORY, 1, 9, lambda v, a, i: [], lambda v, a, i: [])
    model = SpillModel({"v": (slot,)}, lambda *_: False, lambda inst: None)
    now = pressures(ranges, ranges.parts, table, {"v": frozenset(range(8))})
    chooser = Chooser(function, ranges, table, model, now)
    costs = {}
    for reg, its in ranges.parts.items():
        candidate = spill_choice._Candidate(reg, [segment for part in its for segment in part.segments])
        chooser._find_accesses({reg: candidate})
        candidate.accesses = chooser._accesses(candidate)
        option = chooser._next_option(candidate)
        assert option is not None
        costs[reg.id] = (option.always + int(option.gaps[2].sum())) * option.price
    assert costs == {0: 9 * 8, 1: 9 * 8}  # four are stored and four loaded
