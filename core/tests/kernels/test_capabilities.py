"""What a kernel needs is read off its operations, and claims cover it by their patterns."""

from __future__ import annotations

import pytest

from tilefw.kernels.capabilities import missing, required
from tilefw.tile.text import parse

DOT = "tensor<16x16x{0}>, tensor<16x16x{0}>, tensor<16x16x{1}>"
OPERATIONS = [
    ("tensor<16x16xf16>", "%y = tile.dot %x, %x, %c : " + DOT.format("f16", "f32"), "f32", {"dot.fp16.fp16.fp32"}),
    ("tensor<16x16xf32>", "%y = tile.dot %x, %x, %c tf32x3 : " + DOT.format("f32", "f32"), "f32", {"dot.fp32.fp32.fp32.tf32x3"}),
    ("tensor<16x16xi8>", "%y = tile.dot %x, %x, %c : " + DOT.format("i8", "i32"), "i32", {"dot.int8.int8.int32"}),
    ("tensor<16x16xi8>", "%y = tile.dot %x, %x, %c unsigned : " + DOT.format("i8", "i32"), "i32", {"dot.uint8.uint8.int32"}),
    ("tensor<16x16xbf16>", "%y = tile.trans %x [1, 0] : tensor<16x16xbf16>", "f32", {"shape.trans.bf16"}),
    ("tensor<16x16xi32>", "%y = tile.flip %x axis 1 : tensor<16x16xi32>", "f32", {"shape.flip.int32"}),
    (
        "tensor<16x16xf32>",
        "%y = tile.reduce %x axis 0 : tensor<16x16xf32> {\n^bb0(%a : f32, %b : f32):\n"
        "%s = tile.addf %a, %b : f32\ntile.reduce_return %s : f32\n}",
        "f32", {"reduce.fp32", "float.add.fp32"},
    ),
]


@pytest.mark.parametrize(("type", "operation", "accumulator", "needed"), OPERATIONS)
def test_an_operation_needs_its_capability(type: str, operation: str, accumulator: str, needed: set[str]) -> None:
    text = f"func.func public @f(%x : {type}, %c : tensor<16x16x{accumulator}>) {{\n{operation}\nfunc.return\n}}\n"
    assert required(parse(text)) == needed


@pytest.mark.parametrize(("claims", "left"), [
    ({"dot.*"}, {"reduce.fp32"}),
    ({"dot.fp16.*", "*.fp32"}, set()),
    ({"reduce.fp16", "dot.fp16.fp16.fp16"}, {"dot.fp16.fp16.fp32", "reduce.fp32"}),
])
def test_claims_cover_by_pattern(claims: set[str], left: set[str]) -> None:
    assert missing({"dot.fp16.fp16.fp32", "reduce.fp32"}, frozenset(claims)) == left
