"""The proofs that a wait or barrier is redundant: what must be proved is, and what must not be is not."""

from __future__ import annotations

import pytest

from oracles.site import Site
from ptx_oracles.conditions import conditions
from ptx_oracles.constants import constants
from ptx_oracles.equivalence import proof
from ptx_oracles.sites import sites

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


PRODUCTS = """
.reqntid {threads}
bar.sync 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f1, %f2, %f3, %f4}}, %rd1, %rd2, %p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{before}
bar.sync 0;
cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10;
bar.sync 0;
ret;
"""


@pytest.mark.parametrize(
    ("threads", "before", "idle"),
    [("128", "", True), ("128, 1, 1", "", True), ("256", "", False), ("128", "ld.shared.b32 %r2, [%r1];", False)],
)
def test_what_products_read_needs_no_barrier_within_one_warpgroup(threads: str, before: str, idle: bool) -> None:
    ptx = PRODUCTS.format(threads=threads, before=before)
    site = [site for site in sites(ptx) if site.kind == "barrier"][1]
    assert bool(proof(ptx, site)) == idle


MASKS = """
.reqntid 128, 1, 1
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 96;
shl.b32 %r3, %r2, 2;
and.b32 %r4, %r3, 128;
mov.b32 %r5, 0;
$L_loop:
and.b32 %r6, %r5, 1;
add.s32 %r5, %r5, 1;
st.shared.b32 [%r4], %r6;
st.shared.b32 [%r2], %r6;
@%p1 bra $L_loop;
"""


def masks(ptx: str) -> dict[tuple[str, str], bool]:
    """Of every changed mask, whether it is proved to make no difference."""
    return {(s.before.split()[1], s.after.split()[-1]): bool(proof(ptx, s)) for s in constants(ptx) if s.before.startswith("and")}


def test_bits_that_no_thread_has_set_may_be_masked_or_not() -> None:
    assert masks(MASKS) == {
        ("%r2,", "64;"): False, ("%r2,", "32;"): False, ("%r2,", "224;"): True,
        ("%r4,", "0;"): False, ("%r4,", "384;"): False,
    }
    assert masks(MASKS.replace("128, 1, 1", "256, 1, 1"))["%r2,", "224;"] is False


STORES = """
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, {kept};
setp.eq.s32 %p1, %r2, 0;
and.b32 %r3, %r1, 31;
ld.global.b32 %r4, [%rd1];
add.s32 %r5, %r4, %r3;
shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1;
add.f32 %r7, %r5, %r6;
{made}
@%p1 st.shared.b32 [{address}], {value};
{end}
"""


@pytest.mark.parametrize(("kept", "address", "value", "proved"), [
    (96, "%r3", "%r5", True),
    (32, "%r3", "%r5", True),
    (16, "%r3", "%r5", False),  # threads that the guard keeps out have another place
    (8, "%rd1", "%r7", True),  # x + shuffle(x, lane ^ 8) is the same in both
    (8, "%rd1", "%r5", False),
    (24, "%rd1", "%r7", False),
])
def test_a_guard_may_go_where_it_keeps_out_threads_that_would_store_the_same(
    kept: int, address: str, value: str, proved: bool,
) -> None:
    ptx = STORES.format(kept=kept, address=address, value=value, made="", end="ret;")
    assert [bool(proof(ptx, s)) for s in sites(ptx) if s.kind == "predicate"] == [proved]


@pytest.mark.parametrize("made", ["setp.lt.and.s32 %p1, %r4, 7, %p1;", "xor.b32 %r3, %r3, %r2;"])
def test_a_second_part_of_the_guard_or_a_changed_address_forbids_it(made: str) -> None:
    ptx = STORES.format(kept=96, address="%r3", value="%r5", made=made, end="ret;")
    assert [proof(ptx, s) for s in sites(ptx) if s.kind == "predicate"] == [""]


def test_threads_that_take_other_branches_are_not_compared() -> None:
    ptx = STORES.format(kept=96, address="%r3", value="%r5", made="", end="$L_end:\nsetp.lt.s32 %p2, %r1, 40;\n@%p2 bra $L_end;")
    assert [proof(ptx, s) for s in sites(ptx) if s.kind == "predicate" and "st." in s.before] == [""]


@pytest.mark.parametrize(("condition", "proved"), [
    ("setp.eq.and.s32 %p1, %r2, 0, %p4;", {"setp.eq.s32 %p1, %r2, 0;": False, "mov.pred %p1, %p4;": True}),
    ("setp.eq.and.s32 %p1, %r2, 1, %p4;", {"setp.eq.s32 %p1, %r2, 1;": False, "mov.pred %p1, %p4;": False}),
    ("setp.lt.and.s32 %p1, %r3, 7, %p3;", {"setp.lt.s32 %p1, %r3, 7;": True, "mov.pred %p1, %p3;": False}),
    ("and.pred %p1, %p3, %p4;", {"mov.pred %p1, %p3;": False, "mov.pred %p1, %p4;": True}),
    ("and.pred %p1, %p3, %p5;", {"mov.pred %p1, %p3;": False, "mov.pred %p1, %p5;": False}),
])
def test_one_of_two_conditions_may_go_where_it_keeps_out_such_threads(condition: str, proved: dict[str, bool]) -> None:
    """%p3: bits 5 and 6 are zero; %p4 says nothing of them, %p5 does."""
    text = STORES.format(kept=96, address="%r3", value="%r5", made=condition, end="ret;").replace(
        "setp.eq.s32 %p1, %r2, 0;",
        "setp.eq.s32 %p3, %r2, 0;\nsetp.lt.s32 %p4, %r3, %r9;\nsetp.lt.s32 %p5, %r1, %r9;",
    )
    assert {s.after: bool(proof(text, s)) for s in conditions(text)} == proved


HOST = """
.visible .entry k(.param .u64 k_0)
.reqntid 128
{
	mov.u32 	%r10, %tid.x;
	mbarrier.init.shared::cta.b64 [%r1], 1;
	bar.sync 	0;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 2048;
	bar.sync 	0;
	cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r3, %r4}], [%r1];
	mov.b32 	%r5, 0;
	mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r5;
	bar.sync 	0;
	add.s32 	%r20, %r10, %r2;
	ld.shared.b32 	%r21, [%r20];
	bar.sync 	0;
	st.shared.b32 	[OTHER], %r21;
	bar.sync 	0;
	ret;
}
"""


@pytest.mark.parametrize("line, other, idle", [
    (7, "%r20", False),  # between a barrier that is made and an arrival at it
    (9, "%r20", True),  # bytes may come before they are announced
    (13, "%r20", False),  # between an engine's bytes and their reader
    (16, "%r20", True),  # each thread reads and writes its own place
    (16, "%r2", False),
])
def test_what_engines_do_counts_at_barriers(line: int, other: str, idle: bool) -> None:
    text = HOST.replace("OTHER", other)
    site = next(site for site in sites(text, ("barrier",)) if site.line == line)
    assert bool(proof(text, site)) == idle


def test_a_wait_for_the_parity_that_a_register_has_is_the_same() -> None:
    found = [s for s in sites(HOST, ("phase",)) if s.after.split()[-1] in ("0;", "1;")]
    assert [bool(proof(HOST, site)) for site in found[:2]] == [True, False]


FENCES = """
.visible .entry k()
{
	st.shared.b32 	[%r1], %r2;
	fence.proxy.async.shared::cta;
	bar.sync 	0;
	OTHER 	[%r1], %r2;
	fence.proxy.async.shared::cta;
	ret;
}
"""


@pytest.mark.parametrize("other, idle", [("st.global.b32", True), ("st.shared.b32", False), ("st.b32", False)])
def test_a_fence_with_nothing_new_to_fence_is_redundant(other: str, idle: bool) -> None:
    text = FENCES.replace("OTHER", other)
    first, second = sites(text, ("fence",))
    assert [bool(proof(text, first)), bool(proof(text, second))] == [False, idle]


MADE = """
.visible .entry k()
{
	@%p1 mbarrier.init.shared.b64 [%r1], 1;
	@%p1 fence.mbarrier_init.release.cluster;
	mbarrier.FIRST.shared.b64 [%r2], 1;
	MEET;
	@%p1 mbarrier.arrive.shared.b64 %rd1, [%r1];
	ret;
}
"""


@pytest.mark.parametrize("first, meet, idle", [
    ("init", "bar.sync 0", True), ("arrive", "bar.sync 0", False), ("init", "bar.warp.sync -1", False),
    ("init", "barrier.cluster.arrive.relaxed", False),
])
def test_a_workgroup_alone_meets_behind_the_making_of_barriers(first: str, meet: str, idle: bool) -> None:
    text = MADE.replace("FIRST", first).replace("MEET", meet)
    (site,) = sites(text, ("fence",))
    assert bool(proof(text, site)) == idle


COMMITTED = """
.visible .entry k()
{
	@%p1 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], [%r2];
	@GUARD cp.async.bulk.commit_group;
	ret;
}
"""


@pytest.mark.parametrize("guard, idle", [("%p1", True), ("%p2", False)])
def test_threads_without_a_copy_commit_nothing(guard: str, idle: bool) -> None:
    text = COMMITTED.replace("GUARD", guard)
    (site,) = (site for site in sites(text, ("predicate",)) if "commit" in site.before)
    assert bool(proof(text, site)) == idle


GROUPS = """
.visible .entry k()
{
	cp.async.cg.shared.global [ %r1 ], [ %rd1 ], 0x10;
	cp.async.commit_group;
	cp.async.cg.shared.global [ %r2 ], [ %rd2 ], 0x10;
	cp.async.commit_group;
$again:
	cp.async.wait_group LEFT;
	cp.async.cg.shared.global [ %r3 ], [ %rd3 ], 0x10;
	cp.async.commit_group;
	@%p1 bra $again;
	ret;
}
"""


@pytest.mark.parametrize("left, joined", [(0, [True, False, False]), (1, [False, False, False]), (2, [False, False, False])])
def test_a_group_that_joins_the_next_is_the_same_where_all_waits_cover_both(left: int, joined: list[bool]) -> None:
    text = GROUPS.replace("LEFT", str(left))
    assert [bool(proof(text, site)) for site in sites(text, ("commit",))] == joined


POLL = """
st.global.b32 [%rd1], %r1;
bar.sync 0;
$again:
mov.b32 %r3, {added};
@%p1 atom.{order}.sys.global.or.b32 %r2, [%rd2], %r3;
@%p2 bra $again;
bar.sync 0;
st.global.b32 [%rd1], %r1;
ret;
"""


@pytest.mark.parametrize("order, added, idle", [
    ("relaxed", 0, True), ("acquire", 0, True), ("release", 0, False), ("acq_rel", 0, False), ("relaxed", 1, False),
])
def test_a_barrier_is_idle_before_polls_alone(order: str, added: int, idle: bool) -> None:
    """Not behind them: there it tells the others what one thread has learnt."""
    ptx = POLL.format(order=order, added=added)
    assert [bool(proof(ptx, site)) for site in sites(ptx) if site.kind == "barrier"] == [idle, False]
