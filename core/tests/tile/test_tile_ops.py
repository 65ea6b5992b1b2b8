"""Reductions, dots, joins, splits and flips as text: they read back as printed, and what is wrong with one is said in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import launch
from xdsl.traits import ConstantLike

from tilefw.api.errors import IRError
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.base import literal_attr
from tilefw.tile.text.module import parse

GOOD = """builtin.module {
  func.func public @k(%x: tensor<16x32xf32>, %i: tensor<16x32xi32>, %a: tensor<2x8x8xf32>, %c: tensor<16x16xi8>) {
    %s = tile.constant 0 : tensor<16x16xi32>
    %m, %mi = tile.reduce %x, %i axis 0 : tensor<16x32xf32>, tensor<16x32xi32> {
    ^bb0(%u: f32, %ui: i32, %v: f32, %vi: i32):
      %w = tile.gtf %v, %u : f32
      %w2 = tile.select %w, %v, %u : f32
      %w3 = tile.select %w, %vi, %ui : i32
      tile.reduce_return %w2, %w3 : f32, i32
    }
    %total = tile.reduce %m axis 0 : tensor<32xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = tile.addf %v, %u : f32
      tile.reduce_return %w : f32
    }
    %n, %ni = tile.scan %x, %i axis 1 reverse : tensor<16x32xf32>, tensor<16x32xi32> {
    ^bb0(%p: f32, %pi: i32, %q: f32, %qi: i32):
      %r = tile.mulf %p, %q : f32
      tile.scan_return %r, %pi : f32, i32
    }
    %d = tile.dot %a, %a, %a tf32x3 : tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>
    %e = tile.dot %c, %c, %s unsigned : tensor<16x16xi8>, tensor<16x16xi8>, tensor<16x16xi32>
    %z = tile.constant 0.0 : tensor<32x32xf32>
    %k = tile.constant 127 : tensor<16x1xi8>
    %l = tile.constant 1.0 : tensor<16x32xf16>
    %p = tile.constant 2.0 : tensor<16x16xf32>
    %q = tile.trans %l [1, 0] : tensor<16x32xf16>
    %t = tile.constant 1.0 : tensor<16x16xf8E4M3FN>
    %u = tile.constant 1.0 : tensor<16x16xf32>
    %v = tile.dot %t, %t, %u imprecise : tensor<16x16xf8E4M3FN>, tensor<16x16xf8E4M3FN>, tensor<16x16xf32>
    %y = tile.dot_scaled %c by %k, %q, %p : tensor<16x16xi8>, tensor<32x16xf16>, tensor<16x16xf32>, tensor<16x1xi8>
    %y2 = tile.dot_scaled %c outer, %l, %z : tensor<16x16xi8>, tensor<16x32xf16>, tensor<32x32xf32>
    %j = tile.join %e, %s : tensor<16x16xi32>
    %h, %h2 = tile.split %j : tensor<16x16x2xi32>
    %f = tile.flip %h axis 1 {tile.hint} : tensor<16x16xi32>
    func.return
  }
}
"""


def test_text_reads_back() -> None:
    module = parse(GOOD)
    assert str(parse(str(module))) == str(module) == GOOD.rstrip("\n")
    rows = [op.row for op in module.walk() if isinstance(op, ops.ReduceOp)]
    assert rows == [None, "addf"]


def test_xdsl_sees_the_number_of_a_constant() -> None:
    """What xDSL's own patterns and folders ask of any dialect's constants."""
    constant = ops.ConstantOp(-3, types.tile((8,), types.i32))
    assert ConstantLike.get_constant_value(constant.result) == constant.literal == literal_attr(-3, types.i32)


# A piece of GOOD, what it becomes, and what is said of it.
MISTAKES = {
    "a tile in a function": (
        "%w = tile.gtf %v, %u : f32", "%t = tile.iota 0 to 8\n      %w = tile.gtf %v, %u : f32",
        "elementwise ops and constants only, got tile.iota",
    ),
    "a value from outside": ("%w = tile.addf %v, %u : f32", "%w = tile.addf %v, %outer : f32", "uses a value from outside"),
    "too many results": (
        "tile.reduce_return %w : f32", "tile.reduce_return %w, %w : f32, f32", "its function gives f32, got f32, f32",
    ),
    "wrong arguments": (
        "^bb0(%u: f32, %v: f32):", "^bb0(%u: f32):\n      %v = tile.constant 1.0 : f32", "its function takes f32, f32, got f32",
    ),
    "an axis that is not there": ("%m axis 0 :", "%m axis 1 :", "axis 1 does not fit"),
    "a return outside": (
        "%f = tile.flip", "tile.reduce_return %h : tensor<16x16xi32>\n    %f = tile.flip", "ends the function of a tile.reduce",
    ),
    "another op's return": (
        "tile.scan_return %r, %pi : f32, i32", "tile.reduce_return %r, %pi : f32, i32", "its function ends in tile.scan_return",
    ),
    "a scan along no axis": ("axis 1 reverse :", "axis 2 reverse :", "axis 2 does not fit"),
    "a precision for others than f32": ("%s unsigned :", "%s tf32 :", "input precision tf32 is for operands of f32, got i8"),
    "imprecise sums of wider floats": ("%a tf32x3 :", "%a imprecise :", "imprecise sums are of 8-bit floats, got f32"),
    "unsigned floats": ("%a tf32x3 :", "%a unsigned :", "unsigned operands are i8"),
    "matrices that do not fit": (
        "%f = tile.flip",
        "%g = tile.dot %x, %x, %x : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>\n    %f = tile.flip",
        "has 32 columns and",
    ),
    "an accumulator that does not add up": (
        "%f = tile.flip", "%g = tile.dot %c, %c, %c : tensor<16x16xi8>, tensor<16x16xi8>, tensor<16x16xi8>\n    %f = tile.flip",
        "products of i8 do not add up in i8",
    ),
    "packed elements of two bytes": (
        "%f = tile.flip",
        "%g = tile.dot_scaled %l outer, %q, %p : tensor<16x32xf16>, tensor<32x16xf16>, tensor<16x16xf32>\n    %f = tile.flip",
        "only bytes of two elements have a packing",
    ),
    "scales of groups of another size": (
        "%f = tile.flip",
        "%g = tile.dot_scaled %l by %c, %q, %p : tensor<16x32xf16>, tensor<32x16xf16>, tensor<16x16xf32>, tensor<16x16xi8>\n"
        "    %f = tile.flip",
        "a scale is for 16 or 32 elements along K",
    ),
    "a scaled product in f16": (
        "%f = tile.flip",
        "%g = tile.dot_scaled %l, %q, %h : tensor<16x32xf16>, tensor<32x16xf16>, tensor<16x16xi32>\n    %f = tile.flip",
        "adds up in f32",
    ),
    "a join of two types": ("%j = tile.join %e, %s", "%j = tile.join %e, %c", "previously used or defined with type"),
    "a split of no pair": (
        "%f = tile.flip", "%g, %g2 = tile.split %s : tensor<16x16xi32>\n    %f = tile.flip", "whose last dim is 2",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_wrong_is_said(mistake: str) -> None:
    before, after, words = MISTAKES[mistake]
    assert before in GOOD
    text = GOOD.replace(before, after)
    if "%outer" in after:
        text = text.replace("    %s = ", "    %outer = tile.constant 2.0 : f32\n    %s = ", 1)
    with pytest.raises(IRError) as raised:
        parse(text)
    assert words in str(raised.value)
    assert raised.value.place is not None


def test_generic_text_without_what_the_op_needs_is_an_error() -> None:
    for text in (
        '"tile.flip"(%x) : (tensor<4xf32>) -> tensor<4xf32>', '"tile.split"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        '"tile.dot"(%x, %x, %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
        '"tile.reduce"(%x) <{axis = 0 : i64}> : (tensor<4xf32>) -> f32',
        '"tile.scan"(%x) <{axis = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>',
        '"tile.join"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
    ):
        with pytest.raises(IRError):
            parse(f"func.func @f(%x: tensor<4xf32>) {{\n  %0 = {text}\n  func.return\n}}")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_moves_of_elements_are_numpys(seed: int) -> None:
    """Random chains of trans, reshape, flip, join and split on i32, against NumPy's own."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-(2**31), 2**31, 64).astype(np.int32)
    lines, name, tile = [], "%x", x.copy()
    for step in range(int(rng.integers(1, 7))):
        kind = rng.choice(["trans", "reshape", "flip", "join", "split"])
        before, made = types.tile(tile.shape, types.i32), f"%v{step}"
        if kind == "trans":
            order = [int(d) for d in rng.permutation(tile.ndim)]
            tile, text = tile.transpose(order), f"tile.trans {name} {order} : {before}"
        elif kind == "flip":
            axis = int(rng.integers(tile.ndim))
            tile, text = np.flip(tile, axis), f"tile.flip {name} axis {axis} : {before}"
        elif kind == "reshape":
            columns = 1 << int(rng.integers(0, tile.size.bit_length()))
            tile = tile.reshape(tile.size // columns, columns)
            text = f"tile.reshape {name} : {before} to {types.tile(tile.shape, types.i32)}"
        elif kind == "join" and tile.ndim < 4:
            lines.append(f"  %f{step} = tile.flip {name} axis 0 : {before}")
            tile, text = np.stack([tile, np.flip(tile, 0)], -1), f"tile.join {name}, %f{step} : {before}"
        elif tile.ndim > 1 and tile.shape[-1] == 2:
            half = int(rng.integers(2))
            tile, text, made = tile[..., half], f"tile.split {name} : {before}", ", ".join(
                made if i == half else f"%other{step}" for i in range(2)
            )
        else:
            continue
        lines.append(f"  {made} = {text}")
        name = f"%v{step}"
    flat = f"tensor<{tile.size}xi32>"
    program = "\n".join([
        "func.func @f(%p: !tile.ptr<i32>, %o: !tile.ptr<i32>) {", "  %i = tile.iota 0 to 64",
        "  %x = tile.load %p[%i] : !tile.ptr<i32>[tensor<64xi32>]", *lines,
        f"  %end = tile.reshape {name} : {types.tile(tile.shape, types.i32)} to {flat}", f"  %k = tile.iota 0 to {tile.size}",
        f"  tile.store %o[%k], %end : !tile.ptr<i32>[{flat}]", "  func.return", "}",
    ])
    report, (_, out) = launch(program, [x, (tile.nbytes,)])
    assert not report.findings
    assert (out.read_reference().x.reshape(-1) == np.ascontiguousarray(tile).reshape(-1)).all()
