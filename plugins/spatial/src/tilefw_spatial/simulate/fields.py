"""Whether an instruction's fields mean something: unknown ops, wrong queues and types, streams that are no aligned group."""

from __future__ import annotations

from tilefw_spatial.isa import ALU_USES, OPS, TYPES, Field, Kind, Row, Use
from tilefw_spatial.machine import Machine, Queue
from tilefw_spatial.program import Inst

# Rows that the fast simulator does not carry out.
_NOT_SERVED = frozenset({"IFETCH"})


def operand_type(field: Field, dtype: str) -> str:
    """The element type of an ALU's operand."""
    return "int1" if field.use is Use.MASK else dtype


def operand_kind(inst: Inst, index: int) -> Kind:
    """Where operand `index` (of a, b, c) comes from."""
    return Kind(inst.map >> 2 * index & 3)


def width(field: Field, inst: Inst) -> int:
    """How many streams a TAKE or PUT field stands for."""
    return field.planes or TYPES[inst.dtype].nbytes


def complaint(inst: Inst, queue: Queue, machine: Machine, maps: int) -> str | None:
    """What is wrong with an instruction in a queue, or None."""
    if inst.op not in OPS:
        return f"no instruction is called {inst.op!r}"
    row, variant = OPS[inst.op]
    if queue.kind not in row.queues:
        return f"{inst.op} is no instruction of this queue"
    if row.name in _NOT_SERVED:
        return f"{inst.op} is not served by this simulator"
    types = row.types_of(variant)
    if bool(types) != bool(inst.dtype) or (types and inst.dtype not in types):
        return f"{inst.op} does not work on elements of type {inst.dtype or '(none)'}"
    return _fields(row, inst, machine, maps) or _of_row(row, inst, queue, machine)


def _fields(row: Row, inst: Inst, machine: Machine, maps: int) -> str | None:
    for number, field in enumerate(row.fields):
        value = getattr(inst, field.part)
        wrong = None
        if field.use in (Use.TAKE, Use.PUT) and (row.unit != "VXM" or field.use is Use.TAKE):
            wrong = _group(value, width(field, inst), machine)
        elif field.use in ALU_USES:
            wrong = _operand(field, inst, number, machine)
        elif field.use is Use.NUMBER and not field.low <= value <= field.high:
            wrong = f"{field.key or field.part} is {value}, not within {field.low} to {field.high}"
        elif field.use is Use.LANES and value >= maps:
            wrong = f"map {value} of {maps}"
        if wrong:
            return wrong
    return None


def _group(stream: int, planes: int, machine: Machine) -> str | None:
    if not 0 <= stream < 2 * machine.streams or stream % planes:
        return f"stream {stream} does not begin a group of {planes}"
    return None


def _operand(field: Field, inst: Inst, number: int, machine: Machine) -> str | None:
    index = "abc".index(field.part)
    kind, value = operand_kind(inst, index), getattr(inst, field.part)
    if kind is Kind.STREAM:
        if field.use is Use.CONSTANT:
            return "a constant is an immediate or the lane's number"
        return _group(value, TYPES[operand_type(field, inst.dtype)].nbytes, machine)
    if kind is Kind.ALU and value % 16 >= machine.alus:
        return f"there is no ALU {value % 16}"
    return None


def _of_row(row: Row, inst: Inst, queue: Queue, machine: Machine) -> str | None:
    if row.name == "TRED" and inst.burst % inst.step:
        return f"a burst of {inst.burst} vectors is no multiple of every={inst.step}"
    if row.name in ("LW", "IW", "MAC") and inst.dtype != "int8" and queue.number:
        return f"{inst.dtype} takes the pair of planes, by the queues of plane 0"
    if row.name == "MAC" and inst.imm > machine.depth(inst.dtype):
        return f"depth {inst.imm}: {inst.dtype} has {machine.depth(inst.dtype)} rows of K"
    if row.name == "LW" and inst.burst * (machine.weight_streams // TYPES[inst.dtype].nbytes) > machine.depth(inst.dtype):
        return f"{inst.burst} cycles bring more rows than the {machine.depth(inst.dtype)} of {inst.dtype}"
    return None
