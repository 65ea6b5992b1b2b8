"""Control flow of a random program: loops and branches that carry one value, a tile or a scalar, through nested statements."""

from __future__ import annotations

from collections.abc import Callable

from tilefw.api.dtypes import dtype
from tilefw.testing.program_rows import apply_row
from tilefw.testing.program_text import ProgramValue
from tilefw.testing.program_values import FLOATS, INTEGERS, ProgramValues
from tilefw.tile.elementwise import ROWS, ElementwiseRow

Statement = Callable[[ProgramValues], None]


def write_for(program: ProgramValues, inner: Statement) -> None:
    """A loop of `trips` rounds."""
    start = _carried(program)
    low, step = program.constant(0, "int32"), program.constant(1, "int32")
    counter, carried, made = program.name(), program.name(), program.name()
    head = f"scf.for {counter} = {low.name} to %trips step {step.name} iter_args({carried} = {start.name}) -> ({start.type})"
    program.line(f"{made} = {head} : i32 {{")
    value = ProgramValue(carried, start.element, start.shape, used=True, partial=start.partial)
    with program.region(ProgramValue(counter, "int32", used=True), value):
        program.line(f"scf.yield {_body(program, value, inner).name} : {start.type}")
    program.line("}")
    program.scope.values.append(ProgramValue(made, start.element, start.shape, partial=start.partial))


def write_if(program: ProgramValues, inner: Statement) -> None:
    """A branch, on a value or on which program it is."""
    chosen = program.need("int1", ()) if program.rng.random() < 0.3 else _program_condition(program)
    start, made = _carried(program), program.name()
    program.line(f"{made} = scf.if {chosen.name} -> ({start.type}) {{")
    with program.region():
        program.line(f"scf.yield {_body(program, start, inner).name} : {start.type}")
    program.line("} else {")
    with program.region():
        program.line(f"scf.yield {_body(program, start, inner).name} : {start.type}")
    program.line("}")
    program.scope.values.append(ProgramValue(made, start.element, start.shape, partial=start.partial))


def write_while(program: ProgramValues, inner: Statement) -> None:
    """Counts a scalar up to the argument `trips` plus the program's number, changing one value in each trip."""
    start = _carried(program)
    type, made = start.type, program.name()
    zero, limit = program.constant(0, "int32"), program.name()
    program.line(f"{limit} = tile.addi %trips, %pid : i32")
    before, kept, at, carried, counted = (program.name() for _ in range(5))
    heads = f"({before} = {zero.name}, {kept} = {start.name})"
    program.line(f"{counted}, {made} = scf.while {heads} : (i32, {type}) -> (i32, {type}) {{")
    with program.region():
        more = program.name()
        program.line(f"{more} = tile.lts {before}, {limit} : i32")
        program.line(f"scf.condition({more}) {before}, {kept} : i32, {type}")
    program.line("} do {")
    program.line(f"^bb0({at}: i32, {carried}: {type}):")
    value = ProgramValue(carried, start.element, start.shape, used=True, partial=start.partial)
    with program.region(ProgramValue(at, "int32", used=True), value):
        changed = _body(program, value, inner)
        following = program.name()
        program.line(f"{following} = tile.addi {at}, {program.constant(1, 'int32').name} : i32")
        program.line(f"scf.yield {following}, {changed.name} : i32, {type}")
    program.line("}")
    program.scope.values.append(ProgramValue(made, start.element, start.shape, partial=start.partial))


CONTROL: dict[str, Callable[[ProgramValues, Statement], None]] = {"for": write_for, "if": write_if, "while": write_while}


def _carried(program: ProgramValues) -> ProgramValue:
    return program.need(program.rng.choice(INTEGERS + FLOATS), program.some_shape())


def _body(program: ProgramValues, carried: ProgramValue, inner: Statement) -> ProgramValue:
    """A few operations, the last of which makes a value of the carried one's type from it."""
    for _ in range(program.rng.choice((0, 1, 2))):
        inner(program)
    row = program.rng.choice([row for row in ROWS.values() if row.result == "same" and _fits(row, carried.element)])
    made = apply_row(program, row, carried.element, carried.shape, carried)
    made.used = True
    return made


def _fits(row: ElementwiseRow, element: str) -> bool:
    return row.operands[0] == ("T:float" if dtype(element).is_float else "T:int")


def _program_condition(program: ProgramValues) -> ProgramValue:
    """A condition that differs between the programs of a launch."""
    bound = program.constant(program.rng.choice((0, 1, 2)), "int32")
    row = program.rng.choice(("eqi", "les", "gtu"))
    return program.define("int1", (), f"tile.{row} %pid, {bound.name} : i32", hidden=True)
