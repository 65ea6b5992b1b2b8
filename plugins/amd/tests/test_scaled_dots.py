"""Products with scales are those of the reference, by the scaled instruction for their formats and sizes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tilefw.kernels.spec import load
from tilefw.kernels.verify import verify

TARGET = "amd-cdna4"
CODES = {"e4m3": 0, "e5m2": 1, "e2m3": 2, "e3m2": 3, "e2m1": 4}  # of cbsz and blgp
TILE: dict[str, Any] = {"m": 32, "n": 32, "k": 128}
PRODUCT = re.compile(r"v_mfma_scale_f32_(\S+)_f8f6f4 .*")


def products(parameters: dict[str, Any], kernel: str = "dot_scaled_tile", target: str = TARGET, **keywords: Any) -> list[str]:
    """The scaled instructions of the kernel's code, which is also run with all checks and compared with the reference."""
    verdict = verify(load(kernel), parameters, target, checks="all", keywords=keywords)
    assert verdict.ok and verdict.artifact is not None, verdict
    return [found.group() for found in PRODUCT.finditer(str(verdict.artifact.text))]


def shapes(found: list[str]) -> set[str]:
    return {shape for product in found for shape in PRODUCT.findall(product)}


@pytest.mark.parametrize("a", CODES)
@pytest.mark.parametrize("b", CODES)
def test_each_pair_of_formats_is_named_by_its_codes(a: str, b: str) -> None:
    found = products(TILE | {"a_format": a, "b_format": b})
    modifiers = [f"{word}:{CODES[side]}" for word, side in (("cbsz", b), ("blgp", a)) if CODES[side]]  # transposed: B comes first
    assert found and all(modifier in product for product in found for modifier in modifiers)


@pytest.mark.parametrize(("sizes", "shape"), [
    ({"m": 16, "n": 16, "k": 128}, "16x16x128"), ({"m": 32, "n": 32, "k": 64}, "32x32x64"),
    ({"m": 64, "n": 16, "k": 256}, "16x16x128"),
])  # fmt: skip
def test_the_instruction_follows_from_the_sizes(sizes: dict[str, Any], shape: str) -> None:
    assert shapes(products(sizes | {"a_format": "e4m3", "b_format": "e2m1"})) == {shape}


@pytest.mark.parametrize(("rows", "shape"), [(16, "16x16x128"), (32, "32x32x64")])
@pytest.mark.parametrize("side", [32, 64])  # of which 16x16x128 and 32x32x64 cost least
def test_the_instruction_has_the_rows_that_were_asked_for(side: int, rows: int, shape: str) -> None:
    found = products({"m": side, "n": side, "k": 128}, matrix_instr_nonkdim=rows)
    assert shapes(found) == {shape}


def test_a_tile_with_fewer_rows_than_were_asked_for_has_no_such_instruction() -> None:
    assert products({"m": 16, "n": 16, "k": 128}, matrix_instr_nonkdim=32) == []


@pytest.mark.parametrize("parameters", [
    {"a_format": "bf16", "b_format": "e2m1"}, {"a_format": "e2m1", "b_format": "e2m1", "scales": "e4m3", "group": 16},
    {"a_format": "e4m3", "b_format": "e4m3", "m": 16, "k": 64},
], ids=str)
def test_other_products_have_none(parameters: dict[str, Any]) -> None:
    assert products(TILE | parameters) == []


def test_a_chip_without_such_instructions_has_none() -> None:
    assert products(TILE | {"a_format": "e4m3", "b_format": "e4m3"}, target="amd-cdna3") == []


def test_several_scales_of_a_register_are_selected_by_their_bytes() -> None:
    found = products({
        "a_format": "e4m3", "b_format": "e2m1", "m": 128, "n": 64, "k": 256, "block_m": 128, "block_n": 64, "block_k": 128,
    }, "block_scaled_matmul")
    assert {"op_sel:[" in product for product in found} == {True, False}
