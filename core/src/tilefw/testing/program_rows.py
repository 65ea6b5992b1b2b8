"""Statements of a random program that are one row of the elementwise table: on tiles or scalars, casts, addresses as integers."""

from __future__ import annotations

from tilefw.api.dtypes import DTYPES, dtype
from tilefw.testing.program_text import ProgramValue, Shape, tile, type_of
from tilefw.testing.program_values import FLOATS, INTEGERS, ProgramValues
from tilefw.tile.elementwise import ROWS, ElementwiseRow

_ARITHMETIC = {"T:int": INTEGERS, "T:float": FLOATS, "T:any": INTEGERS + FLOATS}
# Types that only memory and casts know.
_CASTABLE_FLOATS = tuple(d.name for d in DTYPES.values() if d.is_float)
_CASTABLE_INTEGERS = ("int1", "int4", *INTEGERS)
_DIVIDING = ("int.div", "int.rem")
_ON_BOOLEANS = ("andi", "ori", "xori", "select")


def any_row(program: ProgramValues) -> None:
    """Any row of the table."""
    write_row(program, program.rng.choice(tuple(ROWS.values())))


def write_row(program: ProgramValues, row: ElementwiseRow) -> None:
    """One operation of a row."""
    if row.name in ("ptr_to_int", "int_to_ptr"):
        _by_integer_address(program)
    elif row.is_cast:
        _cast(program, row)
    else:
        _plain(program, row)


def _plain(program: ProgramValues, row: ElementwiseRow) -> None:
    shape = program.some_shape()
    element = program.rng.choice(_ARITHMETIC[row.operands[row.typed_by]])
    if row.name in _ON_BOOLEANS and program.rng.random() < 0.2:
        element = "int1"
    apply_row(program, row, element, shape)


def apply_row(
    program: ProgramValues, row: ElementwiseRow, element: str, shape: Shape, first: ProgramValue | None = None
) -> ProgramValue:
    """The row on elements of a type, with `first` as its first operand; whole where that is whole."""
    whole = first is not None and not first.partial
    operands = [] if first is None else [first]
    for index in range(len(operands), len(row.operands)):
        kind = "int1" if row.operands[index] == "bool" else element
        operands.append(program.need(kind, shape, row, index, whole=whole))
    if row.group in _DIVIDING:
        operands[1] = odd(program, operands[1])
    result = "int1" if row.result == "bool" else element
    names = ", ".join(operand.name for operand in operands)
    return program.define(result, shape, f"tile.{row.name} {names} : {type_of(element, shape)}", *operands)


def odd(program: ProgramValues, value: ProgramValue) -> ProgramValue:
    """The value with its lowest bit set: a divisor that is never zero, as quotients of zero say little about what made them."""
    one = program.constant(1, value.element, value.shape)
    return program.define(
        value.element, value.shape, f"tile.ori {value.name}, {one.name} : {value.type}", value, hidden=True
    )


def _cast(program: ProgramValues, row: ElementwiseRow) -> None:
    shape = program.some_shape()
    source, result = _cast_types(program, row)
    if not shape and (dtype(source).bits < 8 or dtype(result).bits < 8):
        shape = program.shape
    operand = program.need(source, shape, row)
    narrows = dtype(result).bits < dtype(source).bits
    rounding = " rtz" if row.rounding and narrows and program.rng.random() < 0.3 else ""
    types = f"{operand.type} to {type_of(result, shape)}"
    program.define(result, shape, f"tile.{row.name} {operand.name}{rounding} : {types}", operand)


def _cast_types(program: ProgramValues, row: ElementwiseRow) -> tuple[str, str]:
    pick = program.rng.choice
    if row.name == "bitcast":
        bits = pick((8, 16, 32, 64))
        same = [d.name for d in DTYPES.values() if d.bits == bits and d.kind != "uint"]
        return pick(same), pick(same)
    if row.name == "castf":
        source = pick(_CASTABLE_FLOATS)
        return source, pick([name for name in _CASTABLE_FLOATS if name != source])
    if row.name in ("s2f", "u2f"):
        return pick(_CASTABLE_INTEGERS), pick(FLOATS)
    if row.name in ("f2s", "f2u"):
        return pick(FLOATS), pick(INTEGERS)
    narrow, wide = sorted(program.rng.sample(range(len(_CASTABLE_INTEGERS)), 2))
    pair = _CASTABLE_INTEGERS[narrow], _CASTABLE_INTEGERS[wide]
    return (pair[1], pair[0]) if row.name == "trunci" else pair


def _by_integer_address(program: ProgramValues) -> None:
    """A load whose pointers went through integers and back: addresses differ between devices, what lies there does not."""
    element = program.rng.choice(INTEGERS + FLOATS)
    shape = program.shape
    place = program.places.place(shape)
    name = f"in{len(program.arguments)}"
    program.arguments[name] = program.array(element, place.extent)
    pointer, whole = tile(f"!tile.ptr<{dtype(element).ir}>", shape), tile("i64", shape)
    moved = program.pointers(name, element, place, place.offsets)
    address, back = program.name(), program.name()
    program.line(f"{address} = tile.ptr_to_int {moved} : {pointer} to {whole}")
    program.line(f"{back} = tile.int_to_ptr {address} : {whole} to {pointer}")
    loaded = program.define(element, shape, f"tile.load {back} mask {place.mask} : {pointer}")
    loaded.partial = True
