"""Which bits of a result are undefined when some of the operands' are: as many as the operation reaches, and no more."""

from __future__ import annotations

import pytest
from assembled import PROLOGUE, clean, run, store


@pytest.mark.parametrize(("instruction", "expected"), [
    # LLVM leaves the upper half of the addend undefined where it drops that of the sum.
    ("v_mad_u64_u32 v[2:3], vcc, v1, 3, v[2:3]", 25),
    ("v_lshl_add_u64 v[2:3], v[2:3], 1, 0", 14),
])
def test_the_lower_half_of_a_sum_does_not_depend_on_the_upper_halves(instruction: str, expected: int) -> None:
    body = PROLOGUE + f"  v_mov_b32 v1, 6\n  v_mov_b32 v2, 7\n  s_nop 1\n  {instruction}\n"
    assert set(clean(body + store("v2"))) == {expected}
    assert [f.check for f in run(body + store("v3")).findings] == ["initialisation"]


def test_a_carry_depends_on_every_bit() -> None:
    body = PROLOGUE + "  v_mov_b32 v1, 6\n  v_mov_b32 v2, 7\n  v_mad_u64_u32 v[2:3], vcc, v1, 3, v[2:3]\n"
    outcome = run(body + "  s_nop 4\n  v_cndmask_b32 v2, v0, v1, vcc\n" + store("v2"))
    assert [f.check for f in outcome.findings] == ["initialisation"]
