"""Statements of a random program that move elements of tiles: reshape, trans, join and their kin, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod

from tilefw.testing.program_text import ProgramValue, Shape, type_of
from tilefw.testing.program_values import FLOATS, INTEGERS, MOST_ELEMENTS, ProgramValues

_MOST_DIMS = 4


ARITHMETIC = (*INTEGERS, *FLOATS)


def source(program: ProgramValues, most: int = MOST_ELEMENTS, *, arithmetic: bool = False) -> ProgramValue:
    """A whole tile: one there is (of a type that computes, if `arithmetic`), or a new one."""
    found = [
        v for v in program.scope.visible()
        if v.shape and not v.partial and prod(v.shape) <= most and (v.element in ARITHMETIC or not arithmetic)
    ]
    if found and program.rng.random() < 0.6:
        chosen = program.rng.choice(found)
        chosen.used = True
        return chosen
    shape = program.shape if prod(program.shape) <= most else (16,)
    return program.need(program.rng.choice(ARITHMETIC), shape, whole=True)


def reshaped(program: ProgramValues, value: ProgramValue, shape: Shape) -> ProgramValue:
    """The value in another shape."""
    types = f"{value.type} to {type_of(value.element, shape)}"
    return program.define(value.element, shape, f"tile.reshape {value.name} : {types}", value)


def permuted(program: ProgramValues, value: ProgramValue, order: list[int]) -> ProgramValue:
    """The value with its dims permuted."""
    shape = tuple(value.shape[dim] for dim in order)
    return program.define(value.element, shape, f"tile.trans {value.name} {order} : {value.type}", value)


def expanded(program: ProgramValues, value: ProgramValue, axis: int) -> ProgramValue:
    """The value with a dim of size 1."""
    shape = (*value.shape[:axis], 1, *value.shape[axis:])
    return program.define(value.element, shape, f"tile.expand_dims {value.name} axis {axis} : {value.type}", value)


def broadcast(program: ProgramValues, value: ProgramValue, shape: Shape) -> ProgramValue:
    """The value with dims of size 1 repeated."""
    types = f"{value.type} to {type_of(value.element, shape)}"
    return program.define(value.element, shape, f"tile.broadcast {value.name} : {types}", value)


def joined(program: ProgramValues, a: ProgramValue, b: ProgramValue) -> ProgramValue:
    """Two values in a new last dim."""
    return program.define(a.element, (*a.shape, 2), f"tile.join {a.name}, {b.name} : {a.type}", a, b)


def halves(program: ProgramValues, value: ProgramValue) -> tuple[ProgramValue, ProgramValue]:
    """The two values of a last dim of 2."""
    made = [ProgramValue(program.name(), value.element, value.shape[:-1]) for _ in range(2)]
    program.line(f"{made[0].name}, {made[1].name} = tile.split {value.name} : {value.type}")
    value.used = True
    program.scope.values += made
    return made[0], made[1]


def factored(program: ProgramValues, size: int, dims: int) -> Shape:
    """A shape of `dims` dims with that many elements, a power of two, drawn at random."""
    cuts = sorted(program.rng.randint(0, size.bit_length() - 1) for _ in range(dims - 1))
    ends = [0, *cuts, size.bit_length() - 1]
    return tuple(1 << (high - low) for low, high in pairwise(ends))


def _reshape(program: ProgramValues) -> None:
    value = source(program)
    reshaped(program, value, factored(program, prod(value.shape), program.rng.choice((1, 2, 2, 3))))


def _trans(program: ProgramValues) -> None:
    """Two dims exchanged, or three permuted."""
    value = source(program)
    if len(value.shape) == 1 or program.rng.random() < 0.3:
        value = reshaped(program, value, factored(program, prod(value.shape), program.rng.choice((2, 3))))
    order = list(range(len(value.shape)))
    program.rng.shuffle(order)
    permuted(program, value, order)


def _broadcast(program: ProgramValues) -> None:
    """A new dim, repeated."""
    value = source(program, most=MOST_ELEMENTS // 4)
    if len(value.shape) >= _MOST_DIMS:
        value = reshaped(program, value, (prod(value.shape),))
    axis = program.rng.randint(0, len(value.shape))
    thin = expanded(program, value, axis)
    times = program.rng.choice((2, 4))
    broadcast(program, thin, (*value.shape[:axis], times, *value.shape[axis:]))


def _pair(program: ProgramValues) -> tuple[ProgramValue, ProgramValue]:
    first = source(program, most=MOST_ELEMENTS // 2)
    if len(first.shape) >= _MOST_DIMS:
        first = reshaped(program, first, (prod(first.shape),))
    return first, program.need(first.element, first.shape, whole=True)


def _join(program: ProgramValues) -> None:
    joined(program, *_pair(program))


def _split(program: ProgramValues) -> None:
    value = source(program)
    size = prod(value.shape)
    if size < 4:
        value, size = joined(program, *_pair(program)), 0
    if size and (value.shape[-1] != 2 or len(value.shape) < 2):
        value = reshaped(program, value, (size // 2, 2))
    if len(value.shape) > 1:
        halves(program, value)


def _interleave(program: ProgramValues) -> None:
    both = joined(program, *_pair(program))
    reshaped(program, both, (*both.shape[:-2], 2 * both.shape[-2]))


def _cat(program: ProgramValues) -> None:
    """One after the other along the first dim."""
    both = joined(program, *_pair(program))
    order = [len(both.shape) - 1, *range(len(both.shape) - 1)]
    moved = permuted(program, both, order)
    reshaped(program, moved, (2 * moved.shape[1], *moved.shape[2:]))


def _flip(program: ProgramValues) -> None:
    value = source(program)
    axis = program.rng.randrange(len(value.shape))
    program.define(value.element, value.shape, f"tile.flip {value.name} axis {axis} : {value.type}", value)


def _gather(program: ProgramValues) -> None:
    """Elements picked along one dim; any integer is an index."""
    value = source(program)
    axis = program.rng.randrange(len(value.shape))
    others = prod(value.shape) // value.shape[axis]
    extent = min(program.rng.choice((1, 4, 16, value.shape[axis])), max(1, MOST_ELEMENTS // others))
    index = program.need("int32", (*value.shape[:axis], extent, *value.shape[axis + 1 :]), whole=True)
    text = f"tile.gather {value.name}[{index.name}] axis {axis} : {value.type}, {index.type}"
    program.define(value.element, index.shape, text, value, index)


MOVES: dict[str, Callable[[ProgramValues], None]] = {
    "reshape": _reshape, "trans": _trans, "broadcast": _broadcast, "join": _join, "split": _split, "interleave": _interleave,
    "cat": _cat, "flip": _flip, "gather": _gather,
}
