"""e5m2 on chips without conversions of 8-bit floats: each code widens to its f16, each f32 becomes the nearest code."""

from __future__ import annotations

import numpy as np
import pytest
from isa.machine import launch
from row_kernels import RowCase, compile_text, kernel

from tilefw_nvidia.chips import Chip

CODES = np.arange(256, dtype=np.uint8)
HALVES = (CODES.astype(np.uint16) << 8).view(np.float16)  # e5m2 is an f16 without its lower byte
VALUES = HALVES[:0x7C].astype(np.float64)  # the finite ones without a sign, in order


def cast(x: np.ndarray, source: str, to: str, out: np.ndarray, chip: Chip) -> tuple[np.ndarray, str]:
    text = compile_text(kernel(RowCase("castf", (source,), to), x.size).replace("@row(", "@k("), chip).text
    buffers, findings = launch(text, [x, np.zeros_like(out)], 1, 128, chip)
    assert findings == ()
    return np.frombuffer(buffers[1], out.dtype), text


def nearest(x: np.ndarray) -> np.ndarray:
    """The code of the nearest value, of the even one between two; the largest beyond it. NumPy alone, no cast of ours."""
    size = np.abs(x.astype(np.float64))
    middles = (VALUES[:-1] + VALUES[1:]) / 2
    code = np.searchsorted(middles, size)  # the first that is not below
    tie = (code < len(middles)) & (size == middles[np.minimum(code, len(middles) - 1)])
    return (code + (tie & (code % 2 == 1)) | np.signbit(x) << 7).astype(np.uint8)


def near_middles() -> np.ndarray:
    """Values, middles between them and zero, each with what stands within 3 ulp of f32, and sums of random bits; both signs."""
    places = np.concatenate([VALUES, (VALUES[:-1] + VALUES[1:]) / 2, [61440.0, 65504.0, 65520.0, 1e30]]).astype(np.float32)
    bits = (places.view(np.int32)[:, None] + np.arange(-3, 4)).ravel()
    found = bits[bits >= 0].view(np.float32)
    drawn = np.random.default_rng(3).integers(0, 0x7F800000, 1 << 11, dtype=np.int32).view(np.float32)
    every = np.concatenate([found, drawn, [np.inf]]).astype(np.float32)
    both = np.concatenate([every, -every])
    return np.resize(both, 1 << (both.size - 1).bit_length())


@pytest.mark.parametrize(("to", "dtype"), [("f16", np.float16), ("f32", np.float32)])
def test_every_code_widens_to_the_half_that_it_begins(to, dtype, chip):
    given, _ = cast(np.resize(CODES, 1024), "f8E5M2", to, np.empty(1024, dtype), chip)
    np.testing.assert_array_equal(given, np.resize(HALVES.astype(dtype), 1024))
    assert (np.signbit(given) == np.signbit(np.resize(HALVES, 1024)))[~np.isnan(given)].all()


def test_numbers_become_the_nearest_code_and_ties_the_even_one(chip):
    x = near_middles()
    given, _ = cast(x, "f32", "f8E5M2", np.empty(x.size, np.uint8), chip)
    wrong = given != nearest(x)
    assert not wrong.any(), list(zip(x[wrong][:5], given[wrong][:5], nearest(x)[wrong][:5], strict=True))


def test_nan_stays_nan(chip):
    x = np.resize(np.array([0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x3F800000], np.uint32).view(np.float32), 512)
    given, _ = cast(x, "f32", "f8E5M2", np.empty(512, np.uint8), chip)
    assert (((given & 0x7F) > 0x7C) == np.isnan(x)).all()


def test_two_bytes_of_a_word_widen_in_one_instruction():
    from chips_here import OLDEST

    _, text = cast(np.resize(CODES, 1024), "f8E5M2", "f16", np.empty(1024, np.float16), OLDEST)
    assert text.count("prmt.b32") == 4  # of 8 elements a thread, which come in two words
    assert "selp" not in text


@pytest.mark.parametrize("to", ["f16", "i8"])
def test_two_bytes_that_stand_together_are_read_at_once(to, chip):
    case = RowCase("bitcast", ("f8E5M2",), "i8") if to == "i8" else RowCase("castf", ("f8E5M2",), to)
    text = compile_text(kernel(case, 256).replace("@row(", "@k("), chip).text
    assert text.count("ld.global.u16") == 1
    assert "ld.global.u8" not in text
    dtype = np.uint8 if to == "i8" else np.float16
    buffers, findings = launch(text, [CODES, np.zeros(256, dtype)], 1, 128, chip)
    assert findings == ()
    np.testing.assert_array_equal(np.frombuffer(buffers[1], dtype), CODES if to == "i8" else HALVES)
