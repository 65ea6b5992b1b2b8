"""What a kernel has acquired, by an atomic or by a fence, is not read through the scalar cache, which no acquire invalidates."""

from __future__ import annotations

import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.plugins import loader


@tilefw.jit
def taken(data, flag, out, SEM: tl.constexpr, FENCED: tl.constexpr):
    while tl.atomic_add(flag, 0, sem=SEM) == 0:
        pass
    if FENCED:
        tld.fence("acquire", "device")
    tl.store(out, tl.load(data))


@pytest.mark.parametrize(("sem", "fenced", "scalar"), [
    ("acquire", False, False), ("relaxed", True, False), ("relaxed", False, True),
])
def test_what_was_acquired_comes_by_vector_loads(sem: str, fenced: bool, scalar: bool) -> None:
    signature = {"data": "*i32", "flag": "*i32", "out": "*i32"}
    target = loader.find_target("amd-cdna3")
    request = options.resolve({}, target.info, facts=("disjoint",))
    source = kernel_source.from_jit(taken, signature, {"SEM": sem, "FENCED": fenced})
    behind = compiler.compile_source(source, target, request).artifact.text.partition("found")[2]
    assert ("s_load_dword " in behind, "global_load_dword " in behind) == (scalar, not scalar)
