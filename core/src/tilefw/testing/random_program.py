"""A random tile program as tile IR text with its arguments: rows of the elementwise table, moves, reductions, scans, dots, atomics,
control flow.

Every row of the table can come up, on tiles and on scalars, inside and outside of loops and branches; loads and stores are masked,
strided, by pointer tiles, by base and offsets, or by rows and columns. Values that nothing uses are stored, so that every operation
drawn counts. No two programs (tile instances) of a launch touch the same output element but by atomics that commute.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api.dtypes import DType, dtype
from tilefw.kernels.spec import Buffer
from tilefw.testing.program_atomics import ATOMICS
from tilefw.testing.program_control import CONTROL
from tilefw.testing.program_rows import any_row, write_row
from tilefw.testing.program_scans import SCANS
from tilefw.testing.program_sums import SUMS
from tilefw.testing.program_text import ProgramValue
from tilefw.testing.program_tiles import MOVES
from tilefw.testing.program_values import MOST_TRIPS, ProgramValues
from tilefw.tile.elementwise import ROWS

OUTPUTS_LIMIT = 8
TILES: dict[str, Callable[[ProgramValues], None]] = {**MOVES, **SUMS, **SCANS, **ATOMICS}
OPERATIONS: tuple[str, ...] = (*ROWS, *TILES)  # what a program can be asked to have


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """Tile IR with what one launch of it takes: arguments by name in order; `outputs` names the buffers it writes.

    `told` says that the compiler hears what the launch knows of the arguments (sizes, overlaps), as a launch from Python tells
    it; otherwise it compiles ahead of time.
    """

    text: str
    arguments: dict[str, Buffer | int | float]
    scalar_types: dict[str, str]
    outputs: tuple[str, ...]
    grid: tuple[int, int, int]
    num_warps: int
    told: bool


def generate(rng: random.Random, statements: int = 10, first: str | None = None, *, tiles: bool = True) -> RandomProgram:
    """A program of about `statements` operations; `first` names one of OPERATIONS that is sure to be among them.

    Without `tiles`, only what works on each element by itself is drawn.
    """
    program = ProgramValues(rng)
    program.argument("trips", rng.choice(range(MOST_TRIPS)), "int32")
    before = len(program.scope.values)
    if first is not None:
        _write(program, first)
    asked = program.scope.values[before:]
    # Every row weighs the same, so that rare ones come up as often as additions.
    chances: Sequence[tuple[Callable[[ProgramValues], None], int]] = (
        (any_row, 9), (_any_tile if tiles else any_row, 4), *((_nested(name, tiles), 1) for name in CONTROL),
    )
    kinds = [kind for kind, weight in chances for _ in range(weight)]
    for _ in range(statements):
        rng.choice(kinds)(program)
    _store_leftovers(program, asked)
    return RandomProgram(
        program.module(), program.arguments, program.scalar_types, tuple(program.outputs), (program.programs, 1, 1),
        rng.choice((1, 2, 4, 8)), rng.random() < 0.5,
    )


def _write(program: ProgramValues, name: str) -> None:
    if name in ROWS:
        write_row(program, ROWS[name])
    else:
        TILES[name](program)


def _any_tile(program: ProgramValues) -> None:
    program.rng.choice(tuple(TILES.values()))(program)


def _nested(name: str, tiles: bool) -> Callable[[ProgramValues], None]:
    """Control flow whose body is mostly rows."""

    def inner(program: ProgramValues) -> None:
        (_any_tile if tiles and program.rng.random() < 0.3 else any_row)(program)

    return lambda program: CONTROL[name](program, inner)


def _store_leftovers(program: ProgramValues, asked: Sequence[ProgramValue]) -> None:
    """Store what nothing uses, the results that were asked for first; of too much the last, which the most operations lead to."""
    unused = [value for value in program.scope.values if not value.used]
    first = [value for value in asked if not value.used]
    rest = [value for value in unused if all(value is not kept for kept in first)]
    for value in (first + rest[::-1])[:OUTPUTS_LIMIT]:
        program.store(value)


def element_types(program: RandomProgram) -> dict[str, DType]:
    """The element type of every argument."""
    return {n: dtype(v.dtype if isinstance(v, Buffer) else program.scalar_types[n]) for n, v in program.arguments.items()}


def fresh(program: RandomProgram) -> dict[str, Any]:
    """The arguments with arrays of their own, so that a launch leaves the program's as they are."""
    return {n: Buffer(v.array.copy(), v.dtype) if isinstance(v, Buffer) else v for n, v in program.arguments.items()}
