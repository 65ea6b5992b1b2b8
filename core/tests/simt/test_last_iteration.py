"""The last iteration stands behind a pipelined loop wherever it alone has no loads to issue, and means the same there."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelined import _PREAMBLE, COPYING, FEW, PLAIN, STORING, Loop, execute, pipeline
from test_pipeline import ALIGNED, KERNEL

from tilefw.tile.text.module import parse

LEAST, MOST = -(1 << 31), (1 << 31) - 1


def counting(lower: int, upper: int, step: int) -> Loop:
    """A loop that adds 16 times its index and 1, from one block of ones, to every element of its sum."""
    loop = Loop(random.Random(0), scalars={"lower": lower, "upper": upper, "step": step})
    loop.arrays = {"x": np.ones(256, np.float16), "out": np.zeros(256, np.float32)}
    loop.before += _PREAMBLE
    loop.carried.append(("acc", "%zero", "%sum", "tensor<16x16xf32>"))
    block = "tile.load_block %x at (%c0, %c0 : i32, i32) strides (%c16, %c1 : i32, i32) : !tile.ptr<f16>, tensor<16x16xf16>"
    loop.body += [
        f"%v = {block}",
        "%product = tile.dot %v, %v, %acc : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>",
        "%number = tile.s2f %i : i32 to f32",
        "%numbers = tile.splat %number : f32 to tensor<16x16xf32>",
        "%sum = tile.addf %product, %numbers : tensor<16x16xf32>",
    ]
    return loop


def total(loop: Loop) -> float:
    """The sum that the pipelined loop makes."""
    module = pipeline(loop.text().replace("STAGES", "2"), 1, STORING)
    report, found = execute(loop, module, 1)
    assert not report.findings
    return float(found["out"].x.reshape(-1)[0])


@settings(max_examples=40, deadline=None)
@given(st.integers(-5, 5), st.integers(-5, 20), st.integers(1, 7))
def test_every_iteration_is_made_once_and_knows_its_index(lower: int, upper: int, step: int) -> None:
    assert total(counting(lower, upper, step)) == sum(16 + i for i in range(lower, upper, step))


@pytest.mark.parametrize(
    ("lower", "upper", "step"),
    [
        (LEAST, LEAST + 9, 4), (LEAST, LEAST + 1, 1 << 20), (0, LEAST, 1), (5, LEAST + 3, 1 << 30), (MOST - 9, MOST, 4),
        (-1, MOST, 1 << 30),
    ],
)
def test_no_bound_wraps_around(lower: int, upper: int, step: int) -> None:
    expected = np.float32(0)
    for i in range(lower, upper, step):
        expected = np.float32(np.float32(expected + 16) + np.float32(i))
    assert total(counting(lower, upper, step)) == expected


def shape(machine=STORING, stages: int = 2, upper: str = "%n") -> tuple[int, int, int]:
    """Of a pipelined kernel: what is chosen in its loop (bounds, where an iteration may not come), the dots and branches behind."""
    text = KERNEL.format(hint=ALIGNED, other="0.0", words="", inside="", attribute="").replace("%c0 to %n", f"%c0 to {upper}")
    lines = str(pipeline(text, stages, machine)).splitlines()
    first, end = (next(i for i, line in enumerate(lines) if word in line) for word in ("scf.for", "scf.yield"))
    loop, behind = "\n".join(lines[first:end]), "\n".join(lines[end:])
    return len(re.findall(r"tile\.select", loop)), behind.count("tile.dot"), behind.count("scf.if")


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ((0, 1, 1), {}),
        ((0, 1, 1), {"stages": 4}),
        ((0, 1, 0), {"upper": "%c16"}),  # there surely is an iteration
        ((0, 0, 0), {"stages": 1}),
        ((1, 0, 0), {"machine": COPYING}),  # copies are issued several iterations early; what is chosen is a slot
        ((1, 0, 0), {"machine": PLAIN}),  # nothing is stored: loads only wait in registers
        ((1, 0, 0), {"machine": FEW}),
    ],
)
def test_it_stands_behind_loops_that_store_what_they_load(expected: tuple[int, int, int], given: dict) -> None:
    assert shape(**given) == expected


def test_the_pipelined_loop_is_the_one_that_was_counted() -> None:
    loop = counting(0, 3, 1)
    _, found = execute(loop, parse(loop.text().replace("STAGES", "2")), 1)
    assert found["out"].x.reshape(-1)[0] == total(loop) == 3 * 16 + 3
