"""The floating-point mode is that of the kernel descriptor until the code changes it, and must be known where it counts."""

from __future__ import annotations

import numpy as np
import pytest
from assembled import PROLOGUE, clean, run, store

from tilefw.api.errors import CodeError

SUBNORMAL = 0x00000100
ADD = f"  v_mov_b32 v1, {SUBNORMAL:#x}\n  v_add_f32 v2, v1, v1\n"
FLUSH = "  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\n  s_nop 1\n"
KEEP = "  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\n  s_nop 1\n"


@pytest.mark.parametrize(("denormals", "expected"), [(0, 0), (3, 2 * SUBNORMAL)])
def test_the_descriptor_says_the_first_mode(denormals: int, expected: int) -> None:
    assert clean(PROLOGUE + ADD + store("v2"), directives=f"float_denorm_mode_32 {denormals}").tolist() == [expected] * 64


@pytest.mark.parametrize(("change", "expected"), [(FLUSH, 0), (KEEP, 2 * SUBNORMAL), (FLUSH + KEEP, 2 * SUBNORMAL)],
                         ids=["flush", "keep", "both"])
def test_writes_of_the_mode_hold_from_there_on(change: str, expected: int) -> None:
    assert clean(PROLOGUE + change + ADD + store("v2"), directives="float_denorm_mode_32 0").tolist() == [expected] * 64


@pytest.mark.parametrize(("mode", "expected"), [(0, 0x3F800000), (1, 0x3F800001), (2, 0x3F800000), (3, 0x3F800000)])
def test_rounding_is_as_the_mode_says(mode: int, expected: int) -> None:
    """1 + 2^-24 - ulp's quarter: between 1 and its successor, nearer to 1."""
    body = PROLOGUE + "  v_mov_b32 v1, 1.0\n  v_mov_b32 v2, 0x33000000\n  v_add_f32 v3, v1, v2\n" + store("v3")
    assert clean(body, directives=f"float_round_mode_32 {mode}").tolist() == [expected] * 64


def branching(one: str, other: str) -> str:
    return PROLOGUE + f"""
  s_cmp_eq_u32 s2, 1
  s_cbranch_scc1 .Lother
{one}  s_branch .Ljoin
.Lother:
{other}.Ljoin:
""" + ADD + store("v2")


def test_ways_that_agree_may_meet() -> None:
    assert clean(branching(FLUSH, FLUSH)).tolist() == [0] * 64


def test_ways_that_disagree_are_refused_at_the_instruction_that_asks() -> None:
    with pytest.raises(CodeError) as caught:
        run(branching(FLUSH, KEEP))
    assert caught.value.code == "TFW0822"
    assert "kernel+0x" in str(caught.value)


def test_ways_that_disagree_do_not_matter_to_integers() -> None:
    body = branching(FLUSH, KEEP).replace("v_add_f32", "v_add_u32")
    assert clean(body).tolist() == [2 * SUBNORMAL] * 64


def test_a_mode_from_a_register_is_not_known() -> None:
    with pytest.raises(CodeError) as caught:
        run(PROLOGUE + "  s_mov_b32 s5, 0\n  s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s5\n" + ADD + store("v2"))
    assert caught.value.code == "TFW0822"


def test_a_mode_in_a_loop_is_that_of_every_round() -> None:
    body = PROLOGUE + "  s_mov_b32 s5, 2\n.Lloop:\n" + ADD + KEEP + """
  s_sub_u32 s5, s5, 1
  s_cmp_lg_u32 s5, 0
  s_cbranch_scc1 .Lloop
""" + store("v2")
    with pytest.raises(CodeError):
        run(body, directives="float_denorm_mode_32 0")
    assert np.all(clean(body, directives="float_denorm_mode_32 3") == 2 * SUBNORMAL)


LIMITED = "  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n"
PRODUCT = """
  v_mov_b32 v4, {a}
  v_mov_b32 v5, v4
  v_mov_b32 v8, {c}
  v_mov_b32 v9, v8
  v_mov_b32 v10, v8
  v_mov_b32 v11, v8
  s_nop 1
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], v[8:11]
  s_nop 15
"""


def test_where_the_mode_limits_sums_of_products_finite_ones_are_as_ever_and_infinite_ones_stop_the_launch() -> None:
    ones = PRODUCT.format(a="0x3c003c00", c="1.0")
    assert (clean(PROLOGUE + LIMITED + ones + store("v9")).view(np.float32) == 17.0).all()
    assert np.isinf(clean(PROLOGUE + PRODUCT.format(a="0x3c003c00", c="0x7f800000") + store("v9")).view(np.float32)).all()
    outcome = run(PROLOGUE + LIMITED + PRODUCT.format(a="0x3c003c00", c="0x7f800000") + store("v9"))
    assert ["infinite sum" in finding.message for finding in outcome.findings] == [True]
