"""Comparisons and float classes, to a mask of lanes, and with x to EXEC too (CDNA3 ISA, "VOPC instructions").

Lanes that are off get 0 in the mask. The opcodes are systematic: a block of 16 float or 8 integer operators for each type.
"""

from __future__ import annotations

from functools import partial

from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.precision import SHAPES, flush_of, unit_of
from tilefw_amd.isa.types import TYPES

CHAPTER = Chapter()
row = CHAPTER.row

# The algebra's operator, and whether it is true of NaN; None is constant. `n` negates, so that NaN turns to true.
FLOAT_OPERATORS = (
    ("f", None, False), ("lt", "lt", False), ("eq", "eq", False), ("le", "le", False), ("gt", "gt", False), ("lg", "ne", False),
    ("ge", "ge", False), ("o", "num", False), ("u", "nan", False), ("nge", "lt", True), ("nlg", "eq", True), ("ngt", "le", True),
    ("nle", "gt", True), ("neq", "ne", True), ("nlt", "ge", True), ("tru", None, True),
)
INTEGER_OPERATORS = ("f", "lt", "eq", "le", "gt", "ne", "ge", "t")
# Where a type's block begins; that of v_cmpx is 16 further.
FLOAT_BLOCKS = {"f16": 0x20, "f32": 0x40, "f64": 0x60}
INTEGER_BLOCKS = {"i16": 0xA0, "u16": 0xA8, "i32": 0xC0, "u32": 0xC8, "i64": 0xE0, "u64": 0xE8}
CLASSES = {"f32": 0x10, "f64": 0x12, "f16": 0x14}


def _float_comparison(operator, nan, fmt, m):
    """Whether the operator holds, by lane; with n in front the negation of the operator, which is true of NaN."""
    if operator is None:
        return lambda lanes, a, b: lanes.const(int(nan), 1)
    flush = flush_of(m, fmt)
    return lambda lanes, a, b: lanes.fcompare(a, b, operator, fmt, nan, flush)


def _integer_comparison(operator, signed, m):
    """Whether the operator holds, by lane; f never does, t always."""
    if operator in ("f", "t"):
        return lambda lanes, a, b: lanes.const(int(operator == "t"), 1)
    return lambda lanes, a, b: lanes.compare(a, b, operator, signed)


def _class(fmt, m):
    """Whether the class of a is among the bits of b: 0 signaling NaN, 1 quiet NaN, 2 -infinity, 3 -normal, 4 -subnormal, 5 -0,
    6 +0, 7 +subnormal, 8 +normal, 9 +infinity."""
    shape = SHAPES[fmt]

    def meaning(lanes, a, b):
        size = lanes.and_(a, lanes.const(shape.sign - 1, shape.bits))

        def at_least(pattern):
            return lanes.compare(size, lanes.const(pattern, shape.bits), "ge", False)

        # 0 zero, 1 subnormal, 2 normal, 3 infinity, and so on from +0 up or -0 down.
        steps = [lanes.zero_extend(at_least(pattern), 32) for pattern in (1, shape.power(1 - shape.bias), shape.infinity)]
        distance = lanes.add(lanes.add(steps[0], steps[1]), steps[2])
        negative = lanes.compare(a, lanes.const(0, shape.bits), "lt", True)
        number = lanes.select(negative, lanes.sub(lanes.const(5, 32), distance), lanes.add(distance, lanes.const(6, 32)))
        kind = lanes.select(at_least(shape.infinity + 1), lanes.zero_extend(at_least(shape.quiet), 32), number)
        return lanes.truncate(lanes.shr(b, kind, False), 1)

    return meaning


def _to_exec(build):
    """The comparison whose result goes to the mask and to EXEC."""

    def both(m):
        meaning = build(m)

        def written(lanes, a, b):
            holds = meaning(lanes, a, b)
            return holds, lanes.join(lanes.ballot(holds))

        return written

    both.__doc__ = f"{build.func.__doc__} Also written to EXEC."
    return both


def _pair_of_rows(name, types, opcode, distance, build, **facts):
    """v_cmp and v_cmpx."""
    a, b = types
    without = "dpp sdwa" if TYPES[a].bits == 64 else "dpp"
    unit = unit_of("f64" if TYPES[a].bits == 64 else "f32")
    sources = f"a:{a}, b:{b}"
    common = {"unit": unit, "section": "VOPC", "without": without, **facts}
    row(f"v_cmp_{name} d:mask, {sources}", vopc=opcode, **common)(build)
    row(f"v_cmpx_{name} d:mask, {sources}, >exec", vopc=opcode + distance, **common)(_to_exec(build))


for _fmt, _first in FLOAT_BLOCKS.items():
    for _index, (_name, _operator, _nan) in enumerate(FLOAT_OPERATORS):
        _build = partial(_float_comparison, _operator, _nan, _fmt)
        _pair_of_rows(f"{_name}_{_fmt}", (_fmt, _fmt), _first + _index, 16, _build, modifiers="clamp")
for _kind, _first in INTEGER_BLOCKS.items():
    for _index, _name in enumerate(INTEGER_OPERATORS):
        _pair_of_rows(
            f"{_name}_{_kind}", (_kind, _kind), _first + _index, 16, partial(_integer_comparison, _name, TYPES[_kind].signed)
        )
for _fmt, _first in CLASSES.items():
    _pair_of_rows(f"class_{_fmt}", (_fmt, "b32"), _first, 1, partial(_class, _fmt))
