"""Order and scope on gfx942: the cache actions around atomics and fences, and their words, are those that LLVM's llc writes.

LLVM's AMDGPUUsage, "Memory Model gfx942", has the table; a program's atomics are one lane's, and its fences all lanes'.
"""

from __future__ import annotations

import re
import subprocess

import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from cdna3.llc import TIME_LIMIT, needs_llc, source, tools

_SCOPES = {"device": "agent", "system": ""}
_OF_INTEREST = re.compile(
    r"^\s*(buffer_wbl2|buffer_inv|global_atomic_\w+|(?:global|buffer)_store_dword|s_waitcnt)\b(.*)$", re.MULTILINE
)


@tilefw.jit
def ordered(p, SEM: tl.constexpr, SCOPE: tl.constexpr):
    tl.store(p + 1, 1)
    tl.atomic_add(p, 1, sem=SEM, scope="gpu" if SCOPE == "device" else "sys")


@tilefw.jit
def fenced(p, SEM: tl.constexpr, SCOPE: tl.constexpr):
    if SEM == "acquire":  # by what an atomic has read
        tl.atomic_add(p, 1, sem="relaxed", scope="gpu" if SCOPE == "device" else "sys")
    else:
        tl.store(p + 1, 1)
    tld.fence(SEM, SCOPE)
    tl.atomic_add(p, 1, sem="relaxed", scope="gpu" if SCOPE == "device" else "sys")


def _sequence(text: str) -> list[str]:
    """Cache actions, accesses and full waits in order, with the bits that say a scope."""
    found: list[str] = []
    for opcode, rest in _OF_INTEREST.findall(text):
        if opcode == "s_waitcnt":
            if "vmcnt(0)" in rest and found and found[-1] != "wait":
                found.append("wait")
            continue
        access = "store" if "_store_" in opcode else opcode  # which of the two ways to memory says nothing of an order
        found.append(" ".join([access, *re.findall(r"\bsc[01]\b", rest)]))
    return found[:-1] if found[-1] == "wait" else found


_STORE = "  %at = getelementptr i32, ptr addrspace(1) %p0, i64 1\n  store i32 1, ptr addrspace(1) %at\n"


def _llvm(body: str, before: str = _STORE) -> list[str]:
    text = source(before + body, 1)
    command = [str(tools()[0]), "-mcpu=gfx942", "-O2", "-o", "-", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    return _sequence(done.stdout)


def _ours(kernel: object, sem: str, scope: str) -> list[str]:
    text = tilefw.compile(kernel, "amd-cdna3", {"p": "*i32"}, {"SEM": sem, "SCOPE": scope}, num_warps=1).text
    assert text is not None
    return _sequence(text)


def _syncscope(scope: str) -> str:
    return f'syncscope("{_SCOPES[scope]}") ' if _SCOPES[scope] else ""


@needs_llc
@pytest.mark.parametrize("scope", _SCOPES)
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_an_atomic_has_the_cache_actions_of_llvm(sem: str, scope: str) -> None:
    order = "monotonic" if sem == "relaxed" else sem
    assert _ours(ordered, sem, scope) == _llvm(f"  atomicrmw add ptr addrspace(1) %p0, i32 1 {_syncscope(scope)}{order}")


@needs_llc
@pytest.mark.parametrize("scope", _SCOPES)
@pytest.mark.parametrize("sem", ["acquire", "release", "acq_rel"])
def test_a_fence_has_the_cache_actions_of_llvm(sem: str, scope: str) -> None:
    access = f"ptr addrspace(1) %p0, i32 1 {_syncscope(scope)}monotonic\n"
    before = f"  %read = atomicrmw add {access}" if sem == "acquire" else _STORE
    assert _ours(fenced, sem, scope) == _llvm(f"  fence {_syncscope(scope)}{sem}\n  %old = atomicrmw add {access}", before)
