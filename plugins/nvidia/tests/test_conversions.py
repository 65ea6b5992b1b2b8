"""Conversions between layouts, through PTX on the strict simulator: shuffles by XOR and by index, selects, wide shared accesses."""

from __future__ import annotations

import numpy as np
import pytest
from isa.machine import launch
from lane_kernels import select
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import LinearLayout, convert, f2
from tilefw.simt.layout.shuffle import Shuffle, shuffle
from tilefw.simt.shared_memory.barriers import InsertBarriers
from tilefw.simt.shared_memory.placement import PlaceShared
from tilefw.testing.conversion_kernel import conversion_kernel, converted
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.emit import emit
from tilefw_nvidia.select.lanes import description

ROWS, COLUMNS = (1 << 5, 1 << 6, 1 << 7), (1, 2, 4, 8, 16)  # bits of a tile of 8x32
ROW_WISE = LinearLayout((8, 32), ROWS, COLUMNS, (0, 0))
LAYOUTS = {
    "rows": ROW_WISE,
    "lanes turned": LinearLayout((8, 32), ROWS, (*COLUMNS[1:], COLUMNS[0]), (0, 0)),
    "row against column": LinearLayout((8, 32), (COLUMNS[0], *ROWS[1:]), (ROWS[0], *COLUMNS[1:]), (0, 0)),
    "pairs": LinearLayout((8, 32), (COLUMNS[0], ROWS[0], ROWS[1]), (*COLUMNS[1:], ROWS[2]), (0, 0)),
    "skewed": LinearLayout((8, 32), (ROWS[0] ^ 3, ROWS[1], ROWS[2] ^ 16), (1, 2 ^ ROWS[1], 4, 8, 16 ^ 7), (0, 0)),
    "copies": LinearLayout((8, 32), (*ROWS, 1, 2), (0, 4, 8, 16, 4), (0, 0)),
    "warps": LinearLayout((8, 32), (1,), (2, 4, 8, 16, ROWS[0]), ROWS[1:]),
    "warps along columns": LinearLayout((8, 32), (ROWS[2],), (*ROWS[:2], 1, 2, 4), (8, 16)),
}


def check(source: LinearLayout, target: LinearLayout, element: str, plan: convert.Plan, flip: int, chip: Chip) -> str:
    function = conversion_kernel(plan, source, target, element, LaneMachine(description(chip), 4))
    module = ModuleOp([function])
    for step in (PlaceShared(description(chip).shared_bytes), InsertBarriers()):
        step.apply(Context(), module)
    text = emit(select(module, chip), chip, None)
    wanted = converted(target, element, flip)
    buffers, findings = launch(text, [np.zeros_like(wanted)], 1, 128, chip)
    assert findings == ()
    assert (np.frombuffer(buffers[0], wanted.dtype).reshape(wanted.shape) == wanted).all()
    return text


@pytest.mark.parametrize("element", ["i1", "i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("target", sorted(LAYOUTS))
def test_rows_become_any_layout_and_come_back(target, element, chip):
    layout = LAYOUTS[target]
    assert f2.rank(layout.bases) == 8
    for pair in ((ROW_WISE, layout), (layout, ROW_WISE)):
        for flip in (0, layout.flipped(1)):
            check(*pair, element, convert.plan(*pair, int(element[1:]), description(chip), flip), flip, chip)


@pytest.mark.parametrize("element", ["i1", "i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("target", ["lanes turned", "row against column", "pairs", "skewed", "copies"])
def test_shuffles_alone_do_what_stays_within_warps(target, element, chip):
    plan = shuffle(ROW_WISE, LAYOUTS[target], max(8, int(element[1:])), 0)
    assert isinstance(plan, Shuffle)
    text = check(ROW_WISE, LAYOUTS[target], element, plan, 0, chip)
    assert text.count("shfl.sync") == plan.instructions(max(8, int(element[1:])))
