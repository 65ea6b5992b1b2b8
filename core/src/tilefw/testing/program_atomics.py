"""Statements of a random program that change memory by atomics, each an output of its own that holds values before.

Where elements and programs meet at cells, the operations commute and nobody reads old values: no order of them shows but in how
float sums round, which the reference's bounds cover. Where each element has a cell to itself, every operation may come, and its old
values are results like any other.
"""

from __future__ import annotations

from collections.abc import Callable

from tilefw.api.dtypes import dtype
from tilefw.testing.program_places import ProgramPlace
from tilefw.testing.program_sums import ordinary
from tilefw.testing.program_text import ProgramValue, Shape, tile
from tilefw.testing.program_values import ProgramValues

_INTEGERS = ("int32", "int64")
_COMMUTING: dict[str, tuple[str, ...]] = {
    "add": (*_INTEGERS, "fp32", "fp64", "fp16", "bf16"), **dict.fromkeys(("maxs", "mins", "maxu", "minu"), _INTEGERS),
    **dict.fromkeys(("maxf", "minf"), ("fp32", "fp64")), **dict.fromkeys(("and", "or", "xor"), _INTEGERS),
}
_KINDS = {**_COMMUTING, "xchg": (*_INTEGERS, "fp32", "fp64")}
_SWAPPED = ("int16", *_INTEGERS, "fp16", "bf16", "fp32", "fp64")
_ORDERS = ("relaxed", "relaxed", "acquire", "release", "acq_rel")
_SCOPES = ("device", "device", "system")  # programs meet, so no narrower one
_WORD = 32  # bits
_CELLS = (3, 16, 64)  # 16-bit sums of targets without an instruction for them are loops, as long as many meet


def _memory(program: ProgramValues, element: str, extent: int, kind: str) -> str:
    """An output array with drawn numbers in it, of whole words: a chip may change 16 bits by an atomic on the word around them."""
    name, extent = f"out{len(program.arguments)}", extent + (extent * dtype(element).bits % _WORD != 0)
    program.outputs.append(name)
    program.arguments[name] = program.array(element, extent, kind=kind)
    return name


def _drawn(element: str) -> str:
    """How memory is drawn: what cancels or is not a number would leave sums open."""
    return "normal" if dtype(element).is_float else "ints"


def _operand(program: ProgramValues, element: str, shape: Shape) -> ProgramValue:
    if dtype(element).is_float and shape:
        return ordinary(program, element, shape)
    if dtype(element).is_float:
        return program.constant(program.rng.choice((-1.5, 0.25, 2.0)), element)
    return program.need(element, shape, whole=True)


def _masked(program: ProgramValues, place: ProgramPlace) -> str:
    """The elements that are there, or some of them."""
    if program.rng.random() < 0.5:
        return place.mask
    some, kind = program.need("int1", place.shape, whole=True), tile("i1", place.shape)
    return program.define("int1", place.shape, f"tile.andi {place.mask}, {some.name} : {kind}", hidden=True).name


def _order_and_scope(program: ProgramValues) -> str:
    return f"{program.rng.choice(_ORDERS)} {program.rng.choice(_SCOPES)}"


def _tile_access(program: ProgramValues, name: str, element: str, place: ProgramPlace, offsets: str, mask: str) -> tuple[str, str]:
    """The address of each element, and what follows the operands."""
    pointer = f"!tile.ptr<{dtype(element).ir}>"
    if program.rng.random() < 0.6:
        return f"%{name}[{offsets}]", f" mask {mask} : {pointer}[{tile('i32', place.shape)}]"
    return program.pointers(name, element, place, offsets), f" mask {mask} : {tile(pointer, place.shape)}"


def _shared(program: ProgramValues) -> None:
    """Elements of all programs meet at few cells."""
    kind = program.rng.choice(tuple(_COMMUTING))
    element, shape = program.rng.choice(_COMMUTING[kind]), program.some_shape()
    value = _operand(program, element, shape)
    value.used = True
    head = f"{program.name()} = tile.atomic_rmw {kind} {_order_and_scope(program)}"
    if not shape:
        name = _memory(program, element, 1, _drawn(element))
        program.line(f"{head} %{name}, {value.name} : !tile.ptr<{dtype(element).ir}>")
        return
    place, cells = program.places.place(shape), program.rng.choice(_CELLS)
    name = _memory(program, element, cells, _drawn(element))
    every = program.constant(cells, "int32", shape)
    cell = program.define("int32", shape, f"tile.remu {place.offsets}, {every.name} : {tile('i32', shape)}", hidden=True)
    address, tail = _tile_access(program, name, element, place, cell.name, _masked(program, place))
    program.line(f"{head} {address}, {value.name}{tail}")


def _alone(program: ProgramValues, operation: str, element: str, kind: str, operands: int) -> None:
    """Each element of each program at a cell of its own; old values are kept."""
    shape = program.some_shape()
    values = [program.load(element, shape, whole=True, kind=kind) if shape else program.need(element, ()) for _ in range(operands)]
    given = ", ".join(value.name for value in values)
    head = f"tile.{operation} {_order_and_scope(program)}"
    if not shape:
        name, moved, pointer = _memory(program, element, program.programs, kind), program.name(), f"!tile.ptr<{dtype(element).ir}>"
        program.line(f"{moved} = tile.addptr %{name}, %pid : {pointer}, i32")
        program.define(element, (), f"{head} {moved}, {given} : {pointer}", *values)
        return
    place = program.places.place(shape)
    name = _memory(program, element, place.extent, kind)
    address, tail = _tile_access(program, name, element, place, place.offsets, place.mask)
    program.define(element, shape, f"{head} {address}, {given}{tail}", *values).partial = True


def _changed(program: ProgramValues) -> None:
    kind = program.rng.choice(tuple(_KINDS))
    element = program.rng.choice(_KINDS[kind])
    _alone(program, f"atomic_rmw {kind}", element, _drawn(element), 1)


def _swapped(program: ProgramValues) -> None:
    """Small whole numbers, of which some are what is expected."""
    _alone(program, "atomic_cas", program.rng.choice(_SWAPPED), "ints", 2)


ATOMICS: dict[str, Callable[[ProgramValues], None]] = {
    "atomic_shared": _shared, "atomic_alone": _changed, "atomic_swap": _swapped,
}
