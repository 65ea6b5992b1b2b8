"""Accesses whose addresses are computed one by one are as wide as facts of runs, divisors and masks allow, and no wider."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl

TARGET = "nvidia-sm80"
ROWS, COLUMNS = 8, 64


@tilefw.jit
def gather(table, index, out, stride, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.load(index + tl.arange(0, ROWS))
    c = tl.arange(0, COLUMNS)
    inside = (c[None, :] < columns) & (i[:, None] >= 0)
    v = tl.load(table + i[:, None] * stride + c[None, :], mask=inside)
    tl.store(out + i[:, None] * stride + c[None, :], v + 1, mask=inside)


def widths(stride: str, columns: str, element: str = "fp32", base: str = ":16") -> set[str]:
    """The opcodes of the gathered loads and stores."""
    signature = {"table": f"*{element}{base}", "index": "*i32:16", "out": f"*{element}{base}", "stride": stride, "columns": columns}
    artifact = tilefw.compile(gather, target=TARGET, signature=signature, constexprs={"ROWS": ROWS, "COLUMNS": COLUMNS})
    return {word for line in artifact.text.splitlines() for word in line.split() if word.startswith("st.global")}


@pytest.mark.parametrize(
    ("stride", "columns", "element", "base", "opcode"),
    [
        ("i32:16", "i32:16", "fp32", ":16", "st.global.v4.b32"),
        ("i64:16", "i32:16", "fp32", ":16", "st.global.v4.b32"),
        ("i32:16", "i32:16", "fp64", ":16", "st.global.v2.b64"),
        ("i32:16", "i32:16", "i8", ":16", "st.global.b32"),  # four elements a lane are all there are
        ("i32", "i32:16", "fp32", ":16", "st.global.b32"),  # rows begin anywhere
        ("i32:16", "i32", "fp32", ":16", "st.global.b32"),  # the mask may end within an access
        ("i32:16", "i32:16", "fp32", ":1", "st.global.b32"),  # the base may be anywhere
    ],
)
def test_rows_that_are_gathered_are_accessed_as_wide_as_facts_allow(stride, columns, element, base, opcode):
    assert widths(stride, columns, element, base) == {opcode}


@pytest.mark.parametrize(("stride", "columns"), [(80, 48), (80, 47), (77, 48)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_wide_gathers_touch_what_the_mask_lets_through(stride, columns, dtype, chip):
    index = np.array([3, -1, 0, 7, 9, -5, 2, 8], np.int32)
    table = (np.arange(10 * stride) % 100).astype(dtype)
    out = np.zeros_like(table)
    gather[(1,)](table, index, out, stride, columns, ROWS=ROWS, COLUMNS=COLUMNS, target=chip.target)
    expected = np.zeros((10, stride), dtype)
    kept = index[index >= 0]
    expected[kept, :columns] = table.reshape(10, stride)[kept, :columns] + 1
    np.testing.assert_array_equal(out.reshape(10, stride), expected)
