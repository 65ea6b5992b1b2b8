"""Barriers of a block: what reductions give, of all threads or of those counted, and which of them diverged lanes may reach."""

from __future__ import annotations

import numpy as np
import pytest

from isa.machine import launch

THREADS = 128


def outputs(code: str, **options: object) -> tuple[np.ndarray, tuple]:
    """%r2 of every thread after the code, which finds the thread's number in %r1 and whether it is odd in %p1."""
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global out)
{{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p1, %r3, 1;
    mov.u32 %r2, 0;
    {code}
    st.global.u32 [%rd1], %r2;
    ret;
}}
"""
    (found,), findings = launch(text, [np.zeros(THREADS, np.uint32)], 1, THREADS, **options)
    return np.frombuffer(found, np.uint32), findings


@pytest.mark.parametrize("name", ["bar", "barrier", "bar.cta"])
@pytest.mark.parametrize(("below", "popc", "every", "some"), [(THREADS, THREADS, 1, 1), (5, 5, 0, 1), (0, 0, 0, 0)])
def test_a_reduction_counts_or_joins_the_predicates_of_all_threads(name: str, below: int, popc: int, every: int, some: int) -> None:
    holds = f"setp.lt.u32 %p3, %r1, {below};"
    found, findings = outputs(f"{holds} {name}.red.popc.u32 %r2, 0, %p3;")
    assert findings == () and set(found.tolist()) == {popc}
    for op, expected in (("and", every), ("or", some)):
        found, findings = outputs(f"{holds} {name}.red.{op}.pred %p2, 0, %p3; selp.u32 %r2, 1, 0, %p2;")
        assert findings == () and set(found.tolist()) == {expected}


def test_a_counted_reduction_is_of_the_threads_that_take_part() -> None:
    found, findings = outputs("setp.lt.u32 %p2, %r1, 64; @!%p2 bra DONE; bar.red.popc.u32 %r2, 1, 64, %p1;\nDONE:")
    assert findings == () and found.tolist() == [32] * 64 + [0] * 64


def test_only_a_barrier_without_aligned_may_be_reached_by_lanes_at_different_times() -> None:
    """PTX ISA, "bar, barrier": `.aligned` needs all threads of the warp at the same instruction; `bar` always has it."""
    code = "@%p1 bra ODD; {0} bra.uni DONE;\nODD: {0}\nDONE: mov.u32 %r2, 1;"
    found, findings = outputs(code.format("barrier.sync 0;"))
    assert findings == () and set(found.tolist()) == {1}
    for aligned in ("bar.sync 0;", "barrier.sync.aligned 0;"):
        assert outputs(code.format(aligned))[1], aligned


def test_lanes_that_meet_again_at_a_block_earlier_in_the_text_reach_the_barrier_together() -> None:
    found, findings = outputs("""
    mov.u32 %r4, 0; bra.uni HEAD;
BAR: bar.sync 0; bra.uni DONE;
LATCH: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 2; @%p2 bra HEAD; bra.uni BAR;
HEAD: setp.eq.u32 %p3, %r3, %r4; @%p3 bra LATCH; add.u32 %r2, %r2, 10; bra.uni LATCH;
DONE:
""")
    assert not findings
    np.testing.assert_array_equal(found, np.full(THREADS, 10, np.uint32))
