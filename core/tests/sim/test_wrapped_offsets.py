"""Offsets that wrap around on the way to an access are found where the access is made, and nowhere else.

Of a line, `!exact` says that its sums and products are meant as exact integers, `!lost` that nothing is known of them, `!wide` that
its first result is the low half of an integer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from running import Outcome, run

from tilefw.sim.algebra.intervals import Interval
from tilefw.sim.checks.wrapped_offsets import CODE
from tilefw.sim.engine.frame import CompactFrame, Frame
from tilefw.sim.program import OffsetPromises
from tilefw.sim.tracking.integers import bounded, merged, of_lanes

FAR = 1 << 30
FIRST_OF_FOUR = "param a0, arg0\nand r0, tid, 3\neq p0, r0, 0\n"  # lanes 0 and 4
LOAD = "index a1, a0, r1 !exact\n@p0 load r2, a1\nend\n"
PRODUCT = f"mul r1, tid, {FAR} !exact\n"  # of lane 4 it is 2**32


def offsets(text: str, *arrays: Any, **options: Any) -> Outcome:
    """A run of a program with promises."""
    lines = [line for line in text.splitlines() if line.split("#")[0].strip()]
    marked = {kind: frozenset(i for i, line in enumerate(lines) if f"!{kind}" in line) for kind in ("exact", "lost", "wide")}
    promises = OffsetPromises(marked["exact"], marked["lost"], dict.fromkeys(marked["wide"], (0,)))
    given = arrays or (np.arange(8, dtype=np.uint32),)
    return run("\n".join(line.partition(" !")[0] for line in lines), *given, promises=promises, **options)


def lanes_found(outcome: Outcome) -> int:
    """In how many lanes an access was at a wrapped offset."""
    assert all(f.code == CODE for f in outcome.report.findings)
    return sum(f.count for f in outcome.report.findings)


def test_a_product_that_wraps_back_into_bounds_is_found_in_its_lane() -> None:
    finding = offsets(FIRST_OF_FOUR + PRODUCT + LOAD).finding("bounds")
    assert (finding.code, finding.count, finding.lane, finding.code_place.line) == (CODE, 1, 4, 6)
    assert "meant at offset 17179869184 of arg0, which has 32 bytes, and made at offset 0" in finding.note


def test_without_a_promise_registers_hold_what_they_hold() -> None:
    plain = (FIRST_OF_FOUR + PRODUCT + LOAD).replace(" !exact", "")
    assert not run(plain, np.arange(8, dtype=np.uint32)).report.findings


def test_without_the_check_nothing_is_found() -> None:
    assert not offsets(FIRST_OF_FOUR + PRODUCT + LOAD, checks=frozenset({"alignment"})).report.findings


@pytest.mark.parametrize("access", ["@p0 store a1, tid", "@p0 atomadd r2, a1, tid", "@p0 load r2, a1", "load_where r2, p0, a1"])
def test_every_kind_of_access_is_looked_at(access: str) -> None:
    assert lanes_found(offsets(FIRST_OF_FOUR + PRODUCT + f"index a1, a0, r1 !exact\n{access}\nend\n")) == 1


WRONG = {
    "a negative factor": f"mul r1, tid, -{FAR} !exact\n",
    "a product that wraps twice": f"mul r1, tid, {FAR} !exact\nmul r1, r1, {FAR} !exact\n",
    "a square beyond 64 bits": f"mul r1, tid, {FAR} !exact\nmul r1, r1, r1 !exact\nmul r1, r1, 16 !exact\n",
    "a sum": f"mul r1, tid, {FAR // 2} !exact\nadd r1, r1, r1 !exact\n",
    "a copy": f"mul r3, tid, {FAR} !exact\nmov r1, r3\n",
    "a copy of a copy, whose source is overwritten": f"mul r3, tid, {FAR} !exact\nmov r4, r3\nmov r3, 0\nmov r1, r4\n",
    "a choice": f"mul r3, tid, {FAR} !exact\nselect r1, p0, r3, -65536 !exact\n",
    "under a guard": f"mov r1, 0\n@p0 mul r1, tid, {FAR} !exact\n",
    "in lanes that took another way": (
        f"lt p1, tid, 4\nmul r1, tid, 1 !exact\n@p1 jump L\nmul r1, tid, {FAR} !exact\nL: mov r5, r1\n"
    ),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_has_wrapped_is_found(text: str) -> None:
    assert lanes_found(offsets(FIRST_OF_FOUR + text + LOAD)) == 1


RIGHT = {
    "what wraps there and back": f"mul r1, tid, {FAR} !exact\nmul r3, tid, {FAR - 1} !exact\nsub r1, r1, r3 !exact\n",
    "a number that is made of one": f"mul r1, tid, {FAR} !exact\nand r1, r1, 7\n",
    "what is lost": f"mul r1, tid, {FAR} !lost\nadd r1, r1, 0 !exact\n",
    "what another instruction has overwritten": f"mul r1, tid, {FAR} !exact\nmov r1, 0\n",
    "lanes that a guard leaves out": f"mul r1, tid, 1 !exact\nlt p1, tid, 0\n@p1 mul r1, tid, {FAR} !exact\n",
    "lanes that took another way": f"lt p1, tid, 8\nmul r1, tid, 1 !exact\n@p1 jump L\nmul r1, tid, {FAR} !exact\nL: mov r5, r1\n",
    "a sum above 2**31": "add r1, tid, 2147483647 !exact\nsub r1, r1, 2147483647 !exact\n",
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_what_is_right_where_it_is_used_is_not(text: str) -> None:
    assert lanes_found(offsets(FIRST_OF_FOUR + text + LOAD)) == 0


def test_lanes_that_access_nothing_may_wrap() -> None:
    assert lanes_found(offsets("param a0, arg0\neq p0, tid, 0\n" + PRODUCT + LOAD)) == 0


@pytest.mark.parametrize("index, found", [(3, 0), (1 << 32, 8), (-(1 << 32), 8), ((1 << 33) + 3, 8)])
def test_half_of_a_wide_index_stands_for_all_of_it(index: int, found: int) -> None:
    words = np.array([index, 0, 0, 0], np.int64).view(np.uint32)
    text = "param a0, arg0\nload4 r4, r5, r6, r7, a0 !wide\nadd r1, r4, 0 !exact\nindex a1, a0, r1 !exact\nload r2, a1\nend\n"
    assert lanes_found(offsets(text, words)) == found


def test_a_loop_carries_what_its_registers_stand_for() -> None:
    text = (
        "param a0, arg0\nmov r1, 0\nmov r3, 0\n"
        f"L: add r1, r1, {FAR} !exact\nadd r3, r3, 1\nlt p1, r3, 4\n@p1 jump L\nindex a1, a0, r1 !exact\nload r2, a1\nend\n"
    )
    assert lanes_found(offsets(text)) == 8
    assert lanes_found(offsets(text.replace(str(FAR), "1"))) == 0


def test_waves_of_several_workgroups_are_told_apart() -> None:
    text = f"param a0, arg0\nmul r1, group, {FAR} !exact\nand r0, group, 3\neq p0, r0, 0\n" + LOAD
    assert lanes_found(offsets(text, grid=6, block=16)) == 16


def test_a_run_with_steps_that_are_watched_finds_the_same() -> None:
    assert lanes_found(offsets(FIRST_OF_FOUR + PRODUCT + LOAD, observers=("test_check_protocol:BigSums",))) == 1


def test_what_is_overwritten_by_something_unknown_is_not_followed_any_more() -> None:
    """Lanes 0 to 2 get a new number, which is followed in lanes 0 and 1 alone: of lane 2 nothing is known then."""
    held, new = np.zeros((1, 1, 4), np.uint32), np.arange(4, dtype=np.uint32).reshape(1, 1, 4)
    written, known = (np.arange(4).reshape(1, 1, 4) < count for count in (3, 2))
    old = of_lanes(held, np.full((1, 1, 4), 1 << 33), 32)
    after = merged(old, bounded(new, Interval(0, 3, 32, False)).only(known), written).of(None)
    assert after.where is not None
    assert after.where.tolist() == [[[True, True, False, True]]]
    assert after.integers()[after.where].tolist() == [0, 1, 1 << 33]


def test_waves_that_run_apart_leave_what_registers_of_others_stand_for() -> None:
    """Of three waves two write numbers of their own, one after the other, as adversarial orders have it; the third goes on."""
    frame = Frame.of_batch(3, 1, 2)
    frame.registers, frame.poison = [np.zeros((3, 1, 2), np.uint32)], [None]
    frame.held[0] = of_lanes(frame.registers[0], np.full((3, 1, 2), 1 << 33), 32)
    for group in range(2):
        apart = CompactFrame(frame, np.arange(3).reshape(3, 1) == group)
        apart.prepare([0])
        apart.registers[0] = np.full((1, 1, 2), 7, np.uint32)
        apart.finish()
    left = frame.followed(0)
    assert left is not None
    left = left.of(None)
    assert left.meant and left.where is not None
    assert np.broadcast_to(left.where, (3, 1, 2))[:, 0, 0].tolist() == [False, False, True]
    assert left.integers()[2, 0, 0] == 1 << 33
