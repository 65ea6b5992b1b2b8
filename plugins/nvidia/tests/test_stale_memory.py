"""Memory that returns stale values: handwritten PTX whose fences, scopes and barriers are right is right; weakened, it is not."""

from __future__ import annotations

import numpy as np
import pytest
from test_simulate import kernel, run

# Workgroup 0 stores data and a flag, workgroup 1 waits for the flag and keeps what it then reads of the data.
PASSING = """
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, 7; mov.u32 %r2, 1;
    setp.ne.u32 %p1, %r0, 0; @%p1 bra READ;
    {store}
    {release}
    bra END;
READ:
    ld.global.u32 %r5, [%d0];
WAIT:
    {acquire}
    setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;
    {after}
    ld.global.u32 %r4, [%d0];
    st.global.u32 [%d2], %r4;
END:
    ret;
"""
RIGHT = {
    "store": "st.global.u32 [%d0], %r1;", "release": "st.release.gpu.global.u32 [%d1], %r2;",
    "acquire": "ld.acquire.gpu.global.u32 %r3, [%d1];", "after": "",
}
FENCED = {
    **RIGHT, "release": "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%d1], %r2;",
    "acquire": "ld.relaxed.gpu.global.u32 %r3, [%d1];", "after": "fence.acq_rel.gpu;",
}
ADDED = {**RIGHT, "release": "atom.add.release.gpu.global.u32 %r6, [%d1], %r2;"}
WEAKENED = [
    {**RIGHT, "release": "st.relaxed.gpu.global.u32 [%d1], %r2;"},
    {**RIGHT, "release": "st.release.cta.global.u32 [%d1], %r2;"},
    {**RIGHT, "acquire": "ld.relaxed.gpu.global.u32 %r3, [%d1];"},
    {**RIGHT, "acquire": "ld.acquire.cta.global.u32 %r3, [%d1];"},
    {**FENCED, "after": ""},
    {**FENCED, "after": "fence.acq_rel.cta;"},
    {**FENCED, "release": "st.relaxed.gpu.global.u32 [%d1], %r2;"},
    {**ADDED, "release": "atom.add.relaxed.gpu.global.u32 %r6, [%d1], %r2;"},
]


def read_by_the_second(words: dict[str, str], seed: int) -> tuple[int, float]:
    text = kernel(PASSING.format(**words), pointers=3)
    data, flag, out = (np.zeros(1, np.uint32) for _ in range(3))
    report, arrays = run(text, data, flag, out, grid=(2,), block=32, checks=frozenset({"weak_memory"}), seed=seed)
    assert not report.findings
    return int(arrays[2][0]), report.counters["stale_reads"]


@pytest.mark.parametrize("words", [RIGHT, FENCED, ADDED])
def test_synchronised_data_are_never_stale(words):
    assert {read_by_the_second(words, seed)[0] for seed in range(1, 40)} == {7}


@pytest.mark.parametrize("words", WEAKENED)
def test_each_weakened_order_or_scope_shows_stale_data(words):
    assert {read_by_the_second(words, seed)[0] for seed in range(1, 40)} == {0, 7}
