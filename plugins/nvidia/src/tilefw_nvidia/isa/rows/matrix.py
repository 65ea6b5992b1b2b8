"""Matrix instructions of a warp (PTX ISA, "Warp Level Matrix Instructions": mma.sync, ldmatrix, movmatrix)."""

from __future__ import annotations

import functools

from tilefw.api.sim import BitMap
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.meaning.fragments import SHAPES, MatrixShape, accumulation, fragments
from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Warp Level Matrix Instructions"

# A register of an 8x8 matrix of 16-bit elements: lane l holds row l/4, columns 2*(l%4) and the next ("ldmatrix", figure of the
# fragment). Lane 8*i + r addressed row r of matrix i, and loaded its 16 bytes as four words.
ROWS_TO_FRAGMENT = BitMap.of(l0="r0", l1="r1", l2="l0", l3="l1", l4="l2")
# Transposed: lane l holds column l/4 of rows 2*(l%4) and the next; the words' bits are now (place in word, word).
COLUMNS_TO_FRAGMENT = BitMap.of(e0="l0", l0="l1", l1="l2", l2="e0", l3="r0", l4="r1")
_MATRIX_BITS = {"x1": {}, "x2": {"r0": "l3"}, "x4": {"r0": "l3", "r1": "l4"}}


@form("ldmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 d*num:b32, [a]", num="x1 x2 x4", space="shared shared::cta",
      unit="shared", section=f"{SECTION}: ldmatrix", ptx="6.5", since=75, needs={"shared::cta": ("7.8", 75)})
def ldmatrix(m):
    """One, two or four 8x8 matrices of 16-bit elements, each row at the address that a lane gives, spread as mma takes them."""
    count, space = int(m.num[1:]), "shared" if m.space else "generic"
    base = COLUMNS_TO_FRAGMENT if m.trans else ROWS_TO_FRAGMENT
    mapping = BitMap.of(**dict(base.bits), **_MATRIX_BITS[m.num])
    bits = 16 if m.trans else 32

    def meaning(lanes, address):
        words = lanes.load(space, address, 32, 4, lanes=8 * count)
        return lanes.rearrange(words, bits, mapping)

    return meaning


# Stored: word w of row r of matrix i goes to lane 8*i + r. Lanes beyond the last matrix store nothing, whatever they get.
_FRAGMENT_TO_ROWS = {"r0": "l0", "r1": "l1", "l0": "l2", "l1": "l3", "l2": "l4"}
_FRAGMENT_TO_COLUMNS = {"r0": "l3", "r1": "l4", "l0": "e0", "l1": "l0", "l2": "l1", "e0": "l2"}
_STORED_BITS = {"x1": {"l3": "l3", "l4": "l4"}, "x2": {"l3": "r0", "l4": "l4"}, "x4": {"l3": "r0", "l4": "r1"}}


@form("stmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 [a], b*num:b32", num="x1 x2 x4", space="shared shared::cta",
      unit="shared", section=f"{SECTION}: stmatrix", ptx="7.8", since=90)
def stmatrix(m):
    """One, two or four 8x8 matrices of 16-bit elements, spread as mma gives them, each row to the address that a lane gives."""
    count, space = int(m.num[1:]), "shared" if m.space else "generic"
    mapping = BitMap.of(**(_FRAGMENT_TO_COLUMNS if m.trans else _FRAGMENT_TO_ROWS), **_STORED_BITS[m.num])
    bits = 16 if m.trans else 32

    def meaning(lanes, address, *registers):
        rows = lanes.rearrange(registers, bits, mapping)
        storing = lanes.compare(lanes.lane_id(), lanes.const(8 * count, 32), "lt", False)
        lanes.store(space, address, rows, where=storing)

    return meaning


@form("movmatrix.sync.aligned.m8n8.trans.b16 d:b32, a:b32", unit="shuffle", section=f"{SECTION}: movmatrix", ptx="7.8", since=75)
def movmatrix(m):
    """An 8x8 matrix of 16-bit elements transposed, from fragment to fragment."""
    # Row is (l2, l3, l4) and column (e0, l0, l1) on both sides.
    mapping = BitMap.of(e0="l2", l0="l3", l1="l4", l2="e0", l3="l0", l4="l1")
    return lambda lanes, a: lanes.rearrange((a,), 16, mapping)[0]


def _multiply(m: Modifiers, chip: Chip, shape: MatrixShape):
    """D = A x B + C over the warp; see `fragments` for where elements lie and how sums are rounded."""
    a_map, b_map, c_map, d_map = fragments(shape, m)
    rule = accumulation(m, shape.types, chip)
    a_end, b_end = shape.a, shape.a + shape.b

    def meaning(lanes, *registers):
        a, b, c = registers[:a_end], registers[a_end:b_end], registers[b_end:]
        return lanes.matrix_multiply(a, b, c, a_map, b_map, c_map, rule, d_map)

    return meaning


def _multiply_bits(m: Modifiers, chip: Chip, shape: MatrixShape):
    """D = popc(A op B) + C, bit for bit: and is the product of bits; a xor b = a + b - 2ab."""
    multiply = _multiply(Modifiers(m, atype="b1", btype="b1"), chip, shape)
    a_end, b_end = shape.a, shape.a + shape.b
    if m.op == "and":
        return multiply

    def meaning(lanes, *registers):
        a, b, c = registers[:a_end], registers[a_end:b_end], registers[b_end:]
        ones_a, ones_b = ([lanes.const(-1, 32)] * n for n in (len(a), len(b)))
        sums = multiply(lanes, *ones_a, *b, *multiply(lanes, *a, *ones_b, *c))
        common = multiply(lanes, *a, *b, *([lanes.const(0, 32)] * len(c)))
        return tuple(lanes.sub(s, lanes.add(t, t)) for s, t in zip(sums, common, strict=True))

    return meaning


for _shape in SHAPES:
    _types = _shape.types
    _build = _multiply_bits if _types.elements == "b1" else _multiply
    _choices: Facts = dict(_types.choices)
    _inputs = f"a*{_shape.a}:{_types.register}, b*{_shape.b}:{_types.register}, c*{_shape.c}:{_types.c_register}"
    form(
        f"{_shape.pattern} d*{_shape.d}:{_types.d_register}, {_inputs}", unit="tensor", section=f"{SECTION}: mma",
        ptx=_shape.version, since=_shape.since, of_chip=True, **_choices,
    )(functools.partial(_build, shape=_shape))
