"""Pointers may be anywhere, as long as what is accessed is in its buffer: also where 32 bits of each lane are all that is added."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilefw
import tilefw.language as tl

TARGET = "amd-cdna3"


@tilefw.jit
def from_afar(x_ptr, out_ptr, offsets_ptr, far, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    offsets = tl.load(offsets_ptr + places)
    start = x_ptr + far
    x = tl.load(start + offsets, places < n, other=7)
    tl.store(out_ptr + places, x, places < n)
    tl.store(start + offsets, x + x, places < n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("far", [0, 1 << 28, (1 << 29) + 7, 1 << 30, (1 << 31) - 1000, -(1 << 29), -(1 << 30)])
def test_offsets_from_a_pointer_far_outside_its_buffer(far: int, dtype: type) -> None:
    """Nobody knows what the offsets are, and together with the pointer they are within the buffer: up to 16 GiB away, and back."""
    x = np.arange(100).astype(dtype) % 50
    before, out = x.copy(), np.zeros_like(x)
    offsets = (np.arange(128) - far).astype(np.int32)
    from_afar[(1,)](x, out, offsets, far, x.size, BLOCK=128, target=TARGET, checks="all")
    assert np.array_equal(out, before) and np.array_equal(x, before + before)


@tilefw.jit
def from_table(x_ptr, out_ptr, offsets_ptr, table_ptr, far, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(table_ptr, (x_ptr + far).to(tl.int64))
    tl.debug_barrier()
    start = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + places, tl.load(start + tl.load(offsets_ptr + places)))


@pytest.mark.parametrize("far", [0, 1 << 29, 1 << 30, -(1 << 30)])
def test_a_pointer_from_memory_may_be_one_of_a_buffer_of_any_size(far: int) -> None:
    """All arguments are small, which says nothing of what their elements point to: 64 bits of each lane are added."""
    x = np.arange(128, dtype=np.float32)
    out = np.zeros_like(x)
    offsets = (np.arange(128) - far).astype(np.int32)
    from_table[(1,)](x, out, offsets, np.zeros(1, np.int64), far, BLOCK=128, target=TARGET, checks="all")
    assert np.array_equal(out, x)


def test_a_pointer_that_is_the_argument_takes_32_bits() -> None:
    x = np.arange(128, dtype=np.float32)
    result = from_afar[(1,)](x, np.zeros_like(x), np.arange(128, dtype=np.int32), 5, 100, BLOCK=128, target=TARGET)
    assert not re.search(r"global_(load|store)\w* v\[?\d+\S*, v\[", result.artifact.text)
