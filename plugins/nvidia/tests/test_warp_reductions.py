"""A reduction of integers over a whole warp is one instruction, of the same result; lanes that do anything else exchange."""

from __future__ import annotations

import re

import numpy as np
import pytest
from chips_here import OLDEST

import tilefw
import tilefw.language as tl
from tilefw.api.machine import parse_function
from tilefw_nvidia.select.warp_reductions import ReduceWarps

TARGET = "nvidia-sm80"
# %0 over all lanes is %10: at distance 1 << i, %(2i + 1) is the other lane's, %(2i + 2) the sum.
CHAIN = [
    line
    for i in range(5)
    for line in (f"%{2 * i + 1} = shfl.sync.bfly.b32 %{2 * i}, {1 << i}, 31, -1", f"%{2 * i + 2} = add.s32 %{2 * i}, %{2 * i + 1}")
]
ONE = ["mov.u32", "redux.sync.add.s32", "st.global.b32", "ret"]


@tilefw.jit
def sums(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KIND: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tile = tl.load(x + row * COLUMNS + column)
    if KIND == "add":
        found = tl.sum(tile, axis=1)
    elif KIND == "xor":
        found = tl.xor_sum(tile, axis=1)
    elif KIND == "min":
        found = tl.min(tile, axis=1)
    else:
        found = tl.max(tile, axis=1)
    tl.store(out + tl.arange(0, ROWS), found)


def numbers(end: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, end, (4, 64), np.uint32)


def words(dtype: type) -> np.ndarray:
    """Integers of 64 bits, of whose few high halves, negative ones too, several lanes have the same."""
    return ((numbers(3).astype(np.uint64) - 1) << 32 | numbers(1 << 32)[::-1]).view(dtype)


@pytest.mark.parametrize(("kind", "dtype", "made"), [
    ("add", np.int32, ["redux.sync.add.s32"]), ("xor", np.int32, ["redux.sync.xor.b32"]),
    ("max", np.uint32, ["redux.sync.max.u32"]), ("max", np.float32, 5 * ["shfl"]),
    ("max", np.int64, ["redux.sync.max.s32", "redux.sync.max.u32"]), ("min", np.uint64, 2 * ["redux.sync.min.u32"]),
    ("xor", np.int64, 2 * ["redux.sync.xor.b32"]), ("add", np.int64, 10 * ["shfl"]),
])
def test_a_warp_reduces_integers_at_once(kind: str, dtype: type, made: list[str]) -> None:
    x = words(dtype) if np.dtype(dtype).itemsize == 8 else numbers(1 << 32).astype(dtype)
    out = np.zeros(4, dtype)
    text = sums[(1,)](x, out, ROWS=4, COLUMNS=64, KIND=kind, num_warps=4, target=TARGET).artifact.text
    reduce = {"add": np.add, "xor": np.bitwise_xor, "max": np.maximum, "min": np.minimum}[kind].reduce
    np.testing.assert_array_equal(out, reduce(x, axis=1, dtype=dtype))
    assert re.findall(r"\t(shfl|redux\.sync\.\w+\.\w+)", text) == made


def opcodes(lines: list[str]) -> list[str]:
    """What is left of these lines between what makes %0 and what stores %10."""
    return reduced("r: 0-10\n  regs rd: 11", '%0 = mov.u32 "%tid.x"', *lines, "st.global.b32 %11, 0, %10")


def reduced(registers: str, *lines: str) -> list[str]:
    body = "".join(f"  {line}\n" for line in (*lines, "ret"))
    function = parse_function(f'func @f target "{TARGET}"\n  regs {registers}\nentry:\n{body}')
    ReduceWarps(OLDEST).run(function)
    return [inst.opcode for inst in function.insts()]


def changed(line: int, old: str, new: str) -> list[str]:
    assert old in CHAIN[line]
    return [*CHAIN[:line], CHAIN[line].replace(old, new), *CHAIN[line + 1 :]]


def test_a_whole_chain_is_replaced() -> None:
    assert opcodes(CHAIN) == ONE
    assert opcodes(changed(3, "%2, %3", "%3, %2")) == ONE  # whichever side the other lane's is on
    distances = [line.replace(" 1,", " x,").replace(" 16,", " 1,").replace(" x,", " 16,") for line in CHAIN]
    assert opcodes(distances) == ONE  # in whatever order


@pytest.mark.parametrize("lines", [
    [*CHAIN[:8], "%10 = mov.b32 %8"],  # 16 lanes
    changed(8, "16", "8"),  # a distance twice
    changed(5, "add", "max"),  # two operations
    changed(5, "%5", "%3"),  # the other lane's is not what is added
    [*CHAIN, "%10 = add.s32 %10, %4"],  # a part is read besides, and the result written again
    [*CHAIN, "st.global.b32 %11, 4, %5"],  # what another lane sent is read besides
    [CHAIN[0], '%0 = mov.u32 "%laneid"', *CHAIN[1:]],  # what was exchanged is not what is added
], ids=["part", "twice", "mixed", "stranger", "read", "sent", "rewritten"])
def test_anything_else_stays(lines: list[str]) -> None:
    assert not any(opcode.startswith("redux") for opcode in opcodes(lines))


# %0 over all lanes is %10: at distance 1 << i, %(2i + 1) is the other lane's; the halves are %12 and above.
WIDE = [
    line
    for i in range(5)
    for low in (12 + 4 * i,)
    for line in (
        f"%{low}, %{low + 1} = mov.b64 %{2 * i}", f"%{low + 2} = shfl.sync.bfly.b32 %{low}, {1 << i}, 31, -1",
        f"%{low + 3} = shfl.sync.bfly.b32 %{low + 1}, {1 << i}, 31, -1", f"%{2 * i + 1} = mov.b64 %{low + 2}, %{low + 3}",
        f"%{2 * i + 2} = max.s64 %{2 * i}, %{2 * i + 1}",
    )
]


@pytest.mark.parametrize(("old", "new", "whole"), [
    ("", "", True),
    ("%15 = shfl.sync.bfly.b32 %13, 1,", "%15 = shfl.sync.bfly.b32 %13, 2,", False),  # halves of two lanes
    ("mov.b64 %14, %15", "mov.b64 %15, %14", False),  # put together the other way
    ("%16, %17 = mov.b64 %2", "%16, %17 = mov.b64 %0", False),  # the other lane's is not what is combined
], ids=["chain", "lanes", "turned", "stranger"])
def test_a_chain_on_64_bits_is_of_two_halves(old: str, new: str, whole: bool) -> None:
    lines = "\n".join(WIDE).replace(old, new).split("\n")
    found = reduced("r: 12-31\n  regs rd: 0-11", "%0 = mov.b64 7", *lines, "st.global.b64 %11, 0, %10")
    assert [opcode for opcode in found if opcode.startswith("redux")] == whole * ["redux.sync.max.s32", "redux.sync.max.u32"]
