"""`tl.atomic_load`, `atomic_store` and `atomic_poll`: programs hand values to each other by them, on every kind of target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError


@tilefw.jit
def handed_on(data_ptr, flags_ptr, out_ptr, N: tl.constexpr):
    """Each program waits for the one before it, takes its value and hands the next one on."""
    program = tl.program_id(0)
    at = tl.arange(0, N)
    tl.atomic_poll(flags_ptr + program * N + at, 1)
    value = tl.load(data_ptr + program * N + at)
    tl.store(out_ptr + program * N + at, value)
    tl.store(data_ptr + (program + 1) * N + at, value + 1)
    tl.debug_barrier()
    (flags_ptr + (program + 1) * N + at).atomic_store(1)


@tilefw.jit
def read_and_written(x_ptr, out_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    found = tl.atomic_load(x_ptr + at, mask=at < n, sem="relaxed")
    tl.atomic_store(out_ptr + at, tl.where(at < n, found, 0), mask=at <= n)


@tilefw.jit
def narrow(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, (x_ptr + at).atomic_load().to(tl.float32))


@tilefw.jit
def asked_once(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.atomic_poll(x_ptr + at, 3, timeout_ns=0).to(tl.int32))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_programs_wait_for_each_other(target: str, kind: Any) -> None:
    data, out = np.zeros((5, 32), np.int32), np.zeros((4, 32), np.int32)
    flags = np.zeros((5, 32), kind)
    flags[0], data[0] = 1, np.arange(32)
    handed_on[(4,)](data, flags, out, N=32)
    np.testing.assert_array_equal(out, np.arange(32) + np.arange(4)[:, None])
    assert (flags == 1).all()


@pytest.mark.parametrize("kind", [np.int32, np.uint64, np.float32, np.float64])
def test_what_is_masked_is_not_accessed(target: str, kind: Any) -> None:
    x, out = (np.arange(64) - 7).astype(kind), np.full(64, 9, kind)
    before = x.copy()
    read_and_written[(1,)](x, out, 50, N=64)
    np.testing.assert_array_equal(out, np.concatenate([before[:50], np.zeros(1, kind), np.full(13, 9, kind)]))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("kind", [np.int16, np.float16])
def test_elements_of_16_bits_are_read(target: str, kind: Any) -> None:
    x, out = (np.arange(32) - 7).astype(kind), np.zeros(32, np.float32)
    narrow[(1,)](x, out, N=32)
    np.testing.assert_array_equal(out, x.astype(np.float32))


def test_a_poll_without_time_asks_once(target: str) -> None:
    x, out = np.arange(32, dtype=np.int32) % 4, np.zeros(32, np.int32)
    asked_once[(1,)](x, out, N=32)
    np.testing.assert_array_equal(out, x == 3)


@tilefw.jit
def mistaken(x_ptr, c_ptr: tl.const, n, MISTAKE: tl.constexpr):
    if MISTAKE == "order":
        tl.atomic_load(x_ptr, sem="release")
    elif MISTAKE == "store order":
        tl.atomic_store(x_ptr, 1, sem="acquire")
    elif MISTAKE == "narrow":
        tl.atomic_store(x_ptr.to(tl.pointer_type(tl.int16)), 1)
    elif MISTAKE == "masked":
        tl.atomic_load(x_ptr.to(tl.pointer_type(tl.int16)), mask=n > 0)
    elif MISTAKE == "float":
        tl.atomic_poll(x_ptr.to(tl.pointer_type(tl.float32)), 1)
    elif MISTAKE == "time":
        tl.atomic_poll(x_ptr, 1, timeout_ns=0.5)
    elif MISTAKE == "negative":
        tl.atomic_poll(x_ptr, 1, timeout_ns=-1)
    else:
        tl.atomic_load(c_ptr)


@pytest.mark.parametrize(("mistake", "code", "message"), [
    ("order", "TFW0221", "sem is one of 'acquire', 'relaxed', not"),
    ("store order", "TFW0221", "sem is one of 'release', 'relaxed'"),
    ("narrow", "TFW0220", "tl.atomic_store is not there for int16"), ("masked", "TFW0220", "takes no mask"),
    ("float", "TFW0220", "tl.atomic_poll is not there for fp32"),
    ("time", "TFW0221", "timeout_ns of tl.atomic_poll is one integer"),
    ("negative", "TFW0221", "is not negative"), ("const", "TFW0211", "Cannot store to a constant pointer"),
])
def test_mistakes_are_told(mistake: str, code: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        mistaken[(1,)](np.zeros(8, np.int32), np.zeros(8, np.int32), 1, MISTAKE=mistake)
    assert caught.value.code == code and caught.value.place is not None
