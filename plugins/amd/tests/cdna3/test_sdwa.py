"""SDWA takes and places the part of a register that its selector names."""

from __future__ import annotations

import numpy as np
import pytest

from cdna3.lanes import lanes
from tilefw_amd.isa.encoding.modifiers import DWORD, SELECTS
from tilefw_amd.isa.meaning import sdwa

PARTS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8), "WORD_0": (0, 16), "WORD_1": (16, 16)}


def words(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (1, 1, 64), dtype=np.uint32)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("signed", [0, 1])
def test_a_source_is_the_part_extended(name: str, signed: int) -> None:
    low, width = PARTS[name]
    value = words(1)
    select = sdwa.source(SELECTS.index(name), signed)
    assert select is not None
    part = value >> low & (1 << width) - 1
    wide = np.where(signed and part >> width - 1 & 1, part | (0xFFFFFFFF << width & 0xFFFFFFFF), part)
    assert np.array_equal(select(lanes(), value), wide.astype(np.uint32))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("unused", [sdwa.PAD, sdwa.SEXT, sdwa.PRESERVE])
def test_a_result_goes_to_the_part_and_the_rest_is_as_dst_unused_says(name: str, unused: int) -> None:
    low, width = PARTS[name]
    value, old = words(2).astype(np.uint64), words(3).astype(np.uint64)
    put = sdwa.destination(SELECTS.index(name), unused)
    assert put is not None
    mask = (1 << width) - 1
    part = value & mask
    upper = np.uint64(0xFFFFFFFF & ~((mask << low) | ((1 << low) - 1)))
    above = (part >> width - 1 & 1) * upper
    rest = {sdwa.PAD: 0, sdwa.SEXT: above, sdwa.PRESERVE: old & (0xFFFFFFFF & ~(mask << low))}[unused]
    expected = (part << low | rest).astype(np.uint32)
    assert np.array_equal(put(lanes(), value.astype(np.uint32), old.astype(np.uint32)), expected)


def test_a_whole_register_needs_no_adapter() -> None:
    assert sdwa.source(DWORD, 1) is None
    assert sdwa.destination(DWORD, sdwa.PRESERVE) is None
