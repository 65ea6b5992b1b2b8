"""Which sites a mutation campaign finds, and what it makes of each."""

from __future__ import annotations

import pytest

from ptx_oracles.conditions import conditions
from ptx_oracles.constants import constants
from ptx_oracles.sites import LINE_KINDS, OWN_ENGINE_KINDS, sites

SWIZZLED = """
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 24;
shl.b32 %r3, %r2, 1;
xor.b32 %r4, %r3, 32;
add.s32 %r5, %r1, 64;
mul.wide.s32 %rd1, %r5, 4;
selp.b32 %r6, 0, %r7, %p1;
setp.eq.s32 %p1, %r7, 3;
add.s32 %r8, %r4, %r6;
ld.global.b32 %r9, [%rd1];
st.shared.b32 [%r8], %r9;
ret;
"""


@pytest.mark.parametrize(("line", "kind", "after"), [
    ("cp.async.wait_group 1;", "wait", [""]),
    ("cp.async.wait_group 1;", "weaken", ["cp.async.wait_group 2;"]),
    ("cp.async.commit_group;", "commit", [""]),
    ("bar.sync 0;", "barrier", [""]),
    ("@!%p1 bra $end;", "predicate", ["bra $end;"]),
    ("@%p1 cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;", "size", [
        "@%p1 cp.async.cg.shared.global [%r1], [%rd1], 16, 16;", "@%p1 cp.async.cg.shared.global [%r1], [%rd1], 16, 8;",
    ]),
    ("cp.async.cg.shared.global [%r1+512], [%rd1], 16;", "offset", [
        "cp.async.cg.shared.global [%r1+528], [%rd1], 16;", "cp.async.cg.shared.global [%r1+0], [%rd1], 16;",
    ]),
    ("st.shared.v2.b32 [%r1], {%r2, %r3};", "offset", ["st.shared.v2.b32 [%r1+8], {%r2, %r3};"]),
    ("ld.global.b32 %r1, [%rd1+16];", "offset", []),
    ("shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;", "shuffle", [
        "shfl.sync.bfly.b32 %r1, %r2, 0, 31, -1;", "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;",
    ]),
])
def test_changes_of_a_line(line: str, kind: str, after: list[str]) -> None:
    assert [site.after for site in sites(f"\t{line}\n", LINE_KINDS) if site.kind == kind] == after


@pytest.mark.parametrize(("line", "kind", "after"), [
    ("@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128;", "bytes", [
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 144;", "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 112;",
    ]),
    ("@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], %r2;", "bytes", [
        f"{{ .reg .b32 told; add.s32 told, %r2, {more}; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], told; }}"
        for more in (16, -16)
    ]),
    ("mov.b64 %rd1, {%r1, -2147483616};", "descriptor", [
        f"mov.b64 %rd1, {{%r1, {-2147483616 % 2**32 ^ 1 << bit}}};" for bit in (0, 6, 17, 30, 31)
    ]),
    ("or.b64 %rd1, %rd2, 4611686293305294848;", "descriptor", [
        f"or.b64 %rd1, %rd2, {4611686293305294848 ^ 1 << bit};" for bit in (32, 38, 49, 62, 63)
    ]),
    ("mov.b64 %rd1, {%r1, %r2};", "descriptor", []),
])
def test_changes_of_what_engines_and_units_are_told(line: str, kind: str, after: list[str]) -> None:
    assert [site.after for site in sites(f"\t{line}\n", OWN_ENGINE_KINDS) if site.kind == kind] == after


def test_constants_are_those_that_reach_a_shared_address() -> None:
    """The ring's slot and the swizzle are found, a global address is not."""
    found = {}
    for site in constants(SWIZZLED):
        found.setdefault(site.before.split()[0], []).append(site.after.split()[-1])
    assert set(found) == {"and.b32", "shl.b32", "xor.b32", "selp.b32", "setp.eq.s32"}
    assert found["and.b32"] == ["16;", "8;", "56;"]
    assert found["shl.b32"] == ["0;", "3;"]
    assert found["xor.b32"] == ["0;", "96;"]
    assert found["setp.eq.s32"] == ["2;"]


@pytest.mark.parametrize(("condition", "after"), [
    ("and.pred %p1, %p2, %p3;", ["mov.pred %p1, %p2;", "mov.pred %p1, %p3;"]),
    ("setp.lt.and.s32 %p1, %r1, 5, %p2;", ["setp.lt.s32 %p1, %r1, 5;", "mov.pred %p1, %p2;"]),
])
def test_conditions_are_those_of_stores(condition: str, after: list[str]) -> None:
    store, load = "@%p1 st.global.b32 [%rd1], %r2;", "@%p1 ld.global.b32 %r2, [%rd1];"
    assert [site.after for site in conditions(f"\t{condition}\n\t{store}\n")] == after
    assert [*conditions(f"\t{condition}\n\t{load}\n\t{store}\n")] == []
