"""Copies of a wave that land in one piece: kernels of a chip that has no others are right, and use them where dots can read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from library_on_chips import check, lowered
from made_up import PIECES

BLOCK = {"block_m": 64, "block_n": 64, "block_k": 32}
EVEN = {"m": 64, "n": 64, "k": 128, **BLOCK}
COPIED = [
    ("matmul", EVEN),
    ("matmul", {**EVEN, "k": 80, "num_stages": 2}),
    ("matmul", {**EVEN, "block_m": 128, "m": 128, "num_stages": 4}),
    ("int8_matmul", {"m": 64, "n": 64, "k": 192, **BLOCK, "block_k": 64}),
    ("matmul", {**EVEN, "block_m": 32, "m": 32}),  # less than a piece for each wave
    ("batched_matmul", {"m": 64, "n": 64, "k": 64, **BLOCK}),
    ("attention", {"queries": 64, "keys": 128, "head_size": 64, "block_m": 64, "block_n": 64, "heads": 1}),
]


def _ids(value):
    return value if isinstance(value, str) else "-".join(f"{k}={v}" for k, v in value.items())


@pytest.mark.parametrize("small", [False, True], ids=["large", "small"])
@pytest.mark.parametrize(("name", "parameters"), COPIED, ids=_ids)
def test_a_kernel_whose_copies_land_in_one_piece_is_right(name, parameters, small):
    check(name, parameters, PIECES, small)


@pytest.mark.parametrize(("name", "parameters"), COPIED, ids=_ids)
def test_dots_operands_are_copied(name, parameters):
    function, *_ = lowered(name, parameters, PIECES, True)
    assert str(function).count("lane.copy_async") >= 2 * 2  # both operands, before the loop and in it


@pytest.mark.parametrize(
    ("parameters", "chip"),
    [
        ({**EVEN, "k": 66}, PIECES),  # narrow accesses
        ({**EVEN, "block_m": 16, "m": 16, "block_n": 16, "n": 16, "block_k": 16}, PIECES),  # less than a piece for each lane
        (EVEN, replace(PIECES, transposed_loads=())),  # B has rows of n
    ],
    ids=["narrow", "small", "no transposing loads"],
)
def test_what_copies_cannot_bring_goes_through_registers(parameters, chip):
    function, *_ = lowered("matmul", parameters, chip, True)
    assert "lane.copy_async" not in str(function)
    check("matmul", parameters, chip, True)
