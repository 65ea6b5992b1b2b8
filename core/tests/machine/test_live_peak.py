"""The most registers that a function holds at once: over all its classes, each counted as what it takes."""

from __future__ import annotations

import random
from collections.abc import Mapping

import machine_programs as programs
import pytest

from tilefw.machine.live_peak import live_peak
from tilefw.machine.live_ranges import LiveRanges
from tilefw.machine.table import EFFECT, JUMP, PURE, RegisterClass, from_dict
from tilefw.machine.text import parse_function

TABLE = from_dict(
    "toy", {"set": PURE, "add": PURE, "br": EFFECT, "ret": JUMP}, [RegisterClass("r", 32), RegisterClass("d", 64)]
)
TEXT = """func @f target "toy"
  regs r: 0-2
  regs d: 3
entry:
  %0 = set 1
  %3 = set 1
  %1 = add %0, %3
loop:
  %2 = set 1
  %1 = add %1, %2
  br %1 {targets=loop}
end:
  %0 = add %1, 1
  ret
"""


@pytest.mark.parametrize(
    ("sizes", "peak"),
    [({"r": 1, "d": 2}, (3, 0)), ({"r": 1}, (2, 1)), ({"r": 2, "d": 1}, (4, 2)), ({"d": 1}, (1, 0)), ({}, (0, 0))],
    ids=["both", "one class", "the loop is the most", "the other class", "nothing counts"],
)
def test_what_is_live_at_once_is_counted_at_its_most(sizes: Mapping[str, int], peak: tuple[int, int]) -> None:
    assert live_peak(parse_function(TEXT), TABLE, sizes) == peak


@pytest.mark.parametrize("seed", range(40))
def test_the_peak_is_that_of_the_live_ranges(seed: int) -> None:
    """Of programs with branches, loops, tuples, predicates and results that are written early."""
    function, table, sizes = programs.draw(random.Random(seed)), programs.chip(), {"v": 1, "s": 3, "m": 2}
    ranges = LiveRanges(function, table)
    live = [0] * (2 * ranges.starts[-1])
    for reg, parts in ranges.parts.items():
        for part in parts:
            for point in (point for start, end in part.segments for point in range(start, min(end, len(live)))):
                live[point] += sizes.get(reg.cls, 0) * part.width
    blocks = [live[2 * start : 2 * end] for start, end in zip(ranges.starts, ranges.starts[1:], strict=False) if start < end]
    assert live_peak(function, table, sizes) == max((max(block), min(block)) for block in blocks)
