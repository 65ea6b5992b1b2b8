"""A block keeps its check against 0 unless its offset surely has no sign."""

from __future__ import annotations

from typing import Any

import pytest

import tilefw
import tilefw.language as tl
from tilefw.frontend import build_module
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.tile.dialect.block_ops import LoadBlockOp


@tilefw.jit
def blocks(x_ptr, out_ptr, n, HOW: tl.constexpr):
    program = tl.program_id(0)
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (16,), (0,))
    total = tl.zeros((16,), tl.float32)
    if HOW == "program":
        total += tl.load(tl.advance(block, (program * 16 + 3,)), boundary_check=(0,))
    elif HOW == "argument":
        total += tl.load(tl.advance(block, (n,)), boundary_check=(0,))
    elif HOW == "below":
        total += tl.load(tl.advance(block, (program - 1,)), boundary_check=(0,))
    elif HOW == "division":
        total += tl.load(tl.advance(block, (program // 4 * 16 + program % 4,)), boundary_check=(0,))
    elif HOW == "wrapped":
        # The quotient is no linear sum of what it is made of: the product below may wrap.
        total += tl.load(tl.advance(block, (program * 65536 // 4,)), boundary_check=(0,))
    elif HOW == "branch":
        start = program
        if n > 4:
            start = program + 16
        total += tl.load(tl.advance(block, (start,)), boundary_check=(0,))
    elif HOW == "branch below":
        start = program
        if n > 4:
            start = n
        total += tl.load(tl.advance(block, (start,)), boundary_check=(0,))
    else:
        step = -16 if HOW == "backward" else n if HOW == "run-time step" else 16
        block = tl.advance(block, (program,))
        for _ in range(n):
            total += tl.load(block, boundary_check=(0,))
            block = tl.advance(block, (step,))
        if HOW == "behind":
            total += tl.load(block, boundary_check=(0,))
    tl.store(out_ptr + tl.arange(0, 16), total)


def checks(how: str) -> set[str]:
    module: Any = build_module(blocks, {"x_ptr": "*fp32:16", "out_ptr": "*fp32:16", "n": "i32"}, {"HOW": how})
    PassManager(default_passes()).run(module)
    return {op.checks[0] for op in module.walk() if isinstance(op, LoadBlockOp)}


@pytest.mark.parametrize("how", ["program", "division", "branch", "forward", "behind"])
def test_offsets_without_a_sign_are_checked_above_alone(how: str) -> None:
    assert checks(how) == {"upper"}


@pytest.mark.parametrize("how", ["argument", "below", "branch below", "wrapped", "backward", "run-time step"])
def test_offsets_that_may_have_a_sign_are_checked_at_both_ends(how: str) -> None:
    assert checks(how) == {"both"}
