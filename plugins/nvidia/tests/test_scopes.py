"""Order and scope in PTX: each atomic and fence of the language has the words of the PTX memory model, and ptxas takes them."""

from __future__ import annotations

import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld

_SCOPES = {"workgroup": "cta", "device": "gpu", "node": "sys"}


@tilefw.jit
def ordered(p, SEM: tl.constexpr, SCOPE: tl.constexpr, WORD: tl.constexpr):
    tld.atomic_add(p, 1, 0, sem=SEM, scope=SCOPE)
    tl.store(p + 1, tl.atomic_cas(p, 1, 2, sem=SEM, scope=WORD))


@tilefw.jit
def fenced(p, SEM: tl.constexpr, SCOPE: tl.constexpr):
    tl.store(p, 1)
    tld.fence(SEM, SCOPE)
    tl.atomic_xchg(p + 1, 1, sem="relaxed")


@pytest.mark.parametrize("scope", _SCOPES)
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_an_atomic_says_its_order_and_scope(sem: str, scope: str) -> None:
    word = _SCOPES[scope]
    text = tilefw.compile(ordered, "nvidia-sm80", {"p": "*i32"}, {"SEM": sem, "SCOPE": scope, "WORD": word}).text
    assert text is not None
    kind = "red" if sem in ("relaxed", "release") else "atom"  # a reduction takes no acquire
    assert f"{kind}.{sem}.{word}.global.add.u32" in text
    assert f"atom.{sem}.{word}.global.cas.b32" in text


@pytest.mark.parametrize("scope", _SCOPES)
@pytest.mark.parametrize("sem", ["acquire", "release", "acq_rel"])
def test_a_fence_says_its_scope_behind_a_barrier(sem: str, scope: str) -> None:
    text = tilefw.compile(fenced, "nvidia-sm80", {"p": "*i32"}, {"SEM": sem, "SCOPE": scope}).text
    assert text is not None
    kept = [line.split()[-2 if line.startswith("bar") else 0] for line in (row.strip().rstrip(";") for row in text.splitlines())
            if line.startswith(("bar.sync", "fence"))]
    wanted = ["bar.sync", f"fence.acq_rel.{_SCOPES[scope]}"]
    assert kept == (wanted if sem == "release" else [*wanted, "bar.sync"])
