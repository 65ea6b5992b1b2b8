"""Selection of inline assembly: elements go into the registers that the text is written for, and come out of them."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.errors import CompileError
from tilefw.simt import lane
from tilefw.simt.chip_requests import AsmOperand, InlineAssembly
from tilefw.simt.lane.registers import bits_of, size_of, type_name, vector_in
from tilefw.simt.select.code import Const, Element
from tilefw.simt.select.values import Values
from tilefw.tile.dialect.asm_constraints import packed_elements, parse_constraints, register_count
from tilefw.tile.text.source_location import place_of


def inline_asm(values: Values, op: lane.InlineAsmOp) -> None:
    """Have the chip run the text on each `pack` elements."""
    elements = [values.all_elements(operand) for operand in op.operands]
    count = max(size_of(value.type) for value in (*op.operands, *op.results))
    found: list[list[Element]] = [[] for _ in op.results]
    for first in range(0, count, op.pack):
        for result, more in zip(found, _run(values, op, [each[first : first + op.pack] for each in elements]), strict=True):
            result.extend(more)
    for result, made in zip(op.results, found, strict=True):
        name = type_name(result.type)
        values.vectors[result] = vector_in(name, count, made[:count], False)


def _run(values: Values, op: lane.InlineAsmOp, columns: Sequence[Sequence[Element]]) -> list[list[Element]]:
    """The elements of each result for `pack` elements of each operand."""
    known = parse_constraints(op.constraints)
    operands: list[AsmOperand] = []
    for value, column in zip(op.operands, columns, strict=True):
        name = type_name(value.type)
        bits = bits_of(name)
        per = packed_elements(bits, op.pack)
        filled = [*column, *[Const(f"i{bits}", 0)] * (op.pack - len(column))]
        for k in range(0, op.pack, per):
            element = filled[k] if per == 1 else values.chip.pack(values.code, bits, filled[k : k + per])
            operands.append(AsmOperand(known.operands[len(operands)], bits * per, element))
    shapes = [(bits := bits_of(type_name(result.type)), packed_elements(bits, op.pack)) for result in op.results]
    widths = [bits * per for bits, per in shapes for _ in range(register_count(bits, op.pack))]
    assembly = InlineAssembly(op.text, tuple(zip(known.results, widths, strict=True)), tuple(operands))
    try:
        registers = iter(values.chip.inline_assembly(values.code, assembly))
    except CompileError as error:
        error.place = error.place or place_of(op)
        raise
    found: list[list[Element]] = []
    for bits, per in shapes:
        parts = [next(registers) for _ in range(register_count(bits, op.pack))]
        found.append([e for part in parts for e in ([part] if per == 1 else values.chip.unpack(values.code, bits, part, per))])
    return found
