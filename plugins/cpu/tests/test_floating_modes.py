"""How the caller's thread rounds and flushes changes no result of a kernel, and is as it was behind a launch."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw_cpu.compile import NativeCode, object_of
from tilefw_cpu.processor import processor

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="MXCSR is a register of x86-64")

# Intel SDM, volume 1, 10.2.3: FTZ and DAZ; towards +infinity; a trap for subnormal operands.
PLAIN, FLUSHES, UPWARDS, TRAPS = 0x1F80, 0x1F80 | 0x8040, 0x1F80 | 0x4000, 0x1F80 & ~0x0100
_TEXT = """target triple = "{triple}"
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @"tilefw.set"(ptr %word) {{
  call void @llvm.x86.sse.ldmxcsr(ptr %word)
  ret void
}}
define void @"tilefw.get"(ptr %word) {{
  call void @llvm.x86.sse.stmxcsr(ptr %word)
  ret void
}}
"""


@tilefw.jit
def halves(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 0.5 + 1e-38, mask=at < n)


@tilefw.jit
def shifted(x, out, shift, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at + shift))


@cache
def _code() -> NativeCode:
    return NativeCode(object_of(_TEXT.format(triple=processor().triple), processor()), processor())


def _call(name: str, word: ctypes.c_uint32) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_code().address(name))(ctypes.addressof(word))


def _modes() -> int:
    word = ctypes.c_uint32()
    _call("get", word)
    return word.value & ~0x3F  # without the flags of what has happened


@pytest.fixture
def modes() -> Iterator[Callable[[int], None]]:
    """Set this thread's modes, until the test ends."""
    before = ctypes.c_uint32()
    _call("get", before)
    yield lambda value: _call("set", ctypes.c_uint32(value))
    _call("set", before)


def _halved(programs: int) -> bytes:
    x = np.array([713624, 14272477, 0x3F800001, 0x40490FDB] * (256 * programs), np.int32).view(np.float32)  # subnormal, and normal
    out = np.empty_like(x)
    halves[(programs,)](x, out, x.size, BLOCK=1024)
    return out.tobytes()


@pytest.mark.parametrize("programs", [1, 512])
@pytest.mark.parametrize("chosen", [FLUSHES, UPWARDS, TRAPS])
def test_results_do_not_depend_on_the_callers_modes(modes: Callable[[int], None], chosen: int, programs: int) -> None:
    plain = _halved(programs)
    modes(chosen)
    found, kept = _halved(programs), _modes()
    modes(PLAIN)
    assert found == plain and kept == chosen


def test_the_callers_modes_are_back_behind_a_fault(modes: Callable[[int], None]) -> None:
    x = np.zeros(64, np.float32)
    modes(FLUSHES)
    with pytest.raises(tilefw.KernelError, match="the processor stopped the kernel"):
        shifted[(1,)](x, x, 1 << 44, BLOCK=64)
    kept = _modes()
    modes(PLAIN)
    assert kept == FLUSHES
