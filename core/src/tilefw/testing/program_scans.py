"""Statements of a random program that scan tiles, forward and in reverse: by rows, and by functions that need not commute."""

from __future__ import annotations

from collections.abc import Callable

from tilefw.api.dtypes import dtype
from tilefw.testing.program_sums import FLOAT_ROWS, INTEGER_ROWS, RING_SUM, TWO_SUMS, WELFORD, combine, ordinary, two_dims
from tilefw.testing.program_text import ProgramValue
from tilefw.testing.program_values import ProgramValues

# Functions as in `program_sums`, of which order matters: maps x -> a·x + b one after the other, and the latest element
# that is not zero.
_AFFINE = """
%a = tile.mul{k} %a0, %b0 : {t}
%m = tile.mul{k} %a1, %b0 : {t}
%b = tile.add{k} %m, %b1 : {t}
return %a, %b : {t}, {t}"""
_LATEST = """
%zero = tile.constant 0 : i32
%n = tile.nei %b0, %zero : i32
%c = tile.select %n, %b0, %a0 : i32
return %c : i32"""


def _scan(program: ProgramValues, values: list[ProgramValue], axis: int, body: str) -> list[ProgramValue]:
    return combine(program, values, axis, body, "scan", program.rng.choice(("", " reverse")))


def _by_row(program: ProgramValues) -> None:
    """Running sums, products, extremes and bits."""
    value = two_dims(program)
    row, element = program.rng.choice(FLOAT_ROWS if dtype(value.element).is_float else INTEGER_ROWS), dtype(value.element).ir
    _scan(program, [value], program.rng.randrange(len(value.shape)), f"%r = tile.{row} %a0, %b0 : {element}\nreturn %r : {element}")


def _of_booleans(program: ProgramValues) -> None:
    """Whether any, all, or an odd number so far."""
    mask, row = program.need("int1", program.shape, whole=True), program.rng.choice(("andi", "ori", "xori"))
    _scan(program, [mask], program.rng.randrange(len(mask.shape)), f"%r = tile.{row} %a0, %b0 : i1\nreturn %r : i1")


def _by_function(program: ProgramValues) -> None:
    kind = program.rng.choice(("recurrence", "maps", "latest", "ring", "sums", "welford"))
    shape = program.shape if len(program.shape) == 2 else program.rng.choice((program.shape, (4, 16), (16, 8)))
    axis = program.rng.randrange(len(shape))
    if kind == "maps":
        pair = [program.need("int32", shape, whole=True) for _ in range(2)]
        _scan(program, pair, axis, _AFFINE.format(k="i", t="i32"))
    elif kind in ("latest", "ring"):
        _scan(program, [program.need("int32", shape, whole=True)], axis, _LATEST if kind == "latest" else RING_SUM)
    elif kind == "sums":
        _scan(program, [program.need(e, shape, whole=True) for e in ("fp32", "int32")], axis, TWO_SUMS)
    else:  # groupings differ by what cancels: ordinary numbers only
        value = ordinary(program, "fp32", shape)
        if kind == "recurrence":
            _scan(program, [ordinary(program, "fp32", shape), value], axis, _AFFINE.format(k="f", t="f32"))
        else:
            start = [program.constant(number, "fp32", shape) for number in (0.0, 1.0)]
            _scan(program, [value, *start], axis, WELFORD)


SCANS: dict[str, Callable[[ProgramValues], None]] = {
    "scan_row": _by_row, "scan_booleans": _of_booleans, "scan_function": _by_function,
}
