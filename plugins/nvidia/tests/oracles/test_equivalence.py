"""The proofs that a wait or barrier is redundant: what must be proved is, and what must not be is not."""

from __future__ import annotations

import pytest

from oracles.equivalence import proof
from oracles.sites import Site, sites

LOOP = """
cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
$L_loop:
{middle}
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r3];
bar.sync 0;
cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
@%p1 bra $L_loop;
ret;
"""


def middle(text: str, offset: int = 0) -> tuple[str, Site]:
    """The loop with `text` at its head, and the first site on its line `offset`."""
    ptx = LOOP.format(middle=text)
    line = ptx.splitlines().index("$L_loop:") + 2 + offset
    return ptx, next(site for site in sites(ptx) if site.line == line)


@pytest.mark.parametrize("text", [
    "cp.async.wait_group 0;", "cp.async.wait_group 1;", "bar.sync 0;", "cp.async.wait_group 0;\ncp.async.wait_group 0;",
])
def test_what_is_covered_on_every_path_is_proved(text: str) -> None:
    assert proof(*middle(text)).startswith("proved")


@pytest.mark.parametrize("text", [
    "st.shared.b32 [%r3], %r9;\nbar.sync 0;", "cp.async.commit_group;\ncp.async.wait_group 0;",
])
def test_a_write_or_a_commit_before_it_forbids_the_proof(text: str) -> None:
    assert proof(*middle(text, offset=1)) == ""


def test_the_loops_own_waits_and_barriers_are_not_redundant() -> None:
    ptx = LOOP.format(middle="")
    assert [proof(ptx, s) for s in sites(ptx) if s.kind in ("wait", "barrier")] == [""] * 5
