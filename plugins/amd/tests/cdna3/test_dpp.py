"""DPP reads the lanes that the manual's pseudocode reads, for every control, mask and EXEC."""

from __future__ import annotations

import numpy as np
import pytest

from cdna3.lanes import WAVE, lanes
from tilefw_amd.isa.encoding.modifiers import MODIFIERS
from tilefw_amd.isa.meaning import dpp

NAMES = {value: text for value, text in MODIFIERS["dpp_ctrl"].choices.items() if value > 255 or value in (0xE4, 0x1B, 0x00, 0xB1)}


def expected_source(text: str, lane: int) -> int | None:
    """The lane that `lane` reads, None where there is none (CDNA3 ISA, section "DPP", pseudocode of DPP_CTRL)."""
    word, _, tail = text.partition(":")
    row, place = lane // 16 * 16, lane % 16
    if word == "quad_perm":
        return lane // 4 * 4 + [int(n) for n in tail[1:-1].split(",")][lane % 4]
    n = int(tail) if tail else 0
    if word == "row_shl":
        return lane + n if place + n < 16 else None
    if word == "row_shr":
        return lane - n if place >= n else None
    if word == "row_bcast":
        rows = {15: [None, 15, 31, 47], 31: [None, None, 31, 31]}[n]
        return rows[lane // 16]
    return {
        "row_ror": row + (place - n) % 16, "wave_shl": lane + 1 if lane < 63 else None, "wave_rol": (lane + 1) % 64,
        "wave_shr": lane - 1 if lane else None, "wave_ror": (lane - 1) % 64, "row_mirror": row + 15 - place,
        "row_half_mirror": lane // 8 * 8 + 7 - lane % 8, "row_newbcast": row + n,
    }[word]


@pytest.mark.parametrize("value", sorted(NAMES), ids=NAMES.__getitem__)
def test_lanes_read_what_the_manual_says(value: int) -> None:
    rng = np.random.default_rng(value)
    data = rng.integers(0, 2**32, WAVE, dtype=np.uint32)
    for row_mask, bank_mask, bound_ctrl in ((15, 15, 1), (15, 15, 0), (10, 15, 0), (15, 6, 1)):
        mask = rng.random(WAVE) < 0.8
        modifiers = {"dpp_ctrl": value, "row_mask": row_mask, "bank_mask": bank_mask, "bound_ctrl": bound_ctrl}
        taken, written = dpp.read(lanes(), data.reshape(1, 1, -1), mask.reshape(1, 1, -1), dpp.control(modifiers))
        written = np.broadcast_to(True if written is None else written, (1, 1, WAVE))[0, 0]
        for lane in range(WAVE):
            source = expected_source(NAMES[value], lane)
            valid = source is not None and bool(mask[source])
            enabled = row_mask >> lane // 16 & 1 and bank_mask >> lane // 4 % 4 & 1 and (valid or bound_ctrl)
            assert bool(written[lane]) == bool(enabled), lane
            if enabled:
                assert taken[0, 0, lane] == (data[source] if valid else 0), lane


def test_a_control_that_is_not_defined_is_refused() -> None:
    with pytest.raises(ValueError, match="0x14f"):
        dpp.control({"dpp_ctrl": 0x14F, "row_mask": 15, "bank_mask": 15, "bound_ctrl": 0})
