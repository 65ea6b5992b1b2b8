"""Whether an instruction is one of the table's: its type, its fields' ranges, streams that begin where elements' planes do, and
nothing in fields that its row has not. One rule for words, text and programs that were made in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tilefw_spatial.isa.row import ALU_USES, InstructionRow, OperandKind, Use, WordField, alu_and_steps
from tilefw_spatial.isa.table import OPS, PUT_FLAG, is_vector, result_type
from tilefw_spatial.isa.types import TYPES
from tilefw_spatial.machine import Machine, Queue
from tilefw_spatial.program import QueueInst

PARTS = ("a", "b", "c", "dst", "flags", "address", "step", "imm", "map")
BURST = 4096
NEGATE, ABSOLUTE = 6, 9
"""First bits in `map` of the modifiers of operands a, b, c."""


class Beyond(str):
    """A fault that is a number beyond its field; the others are of kinds and types."""

    __slots__ = ()


# What CFG may set, by its variant: a level of power, nothing; CFG.vl as many superlanes as there are.
_SETTINGS: Mapping[str, tuple[int, int]] = MappingProxyType({"CFG.power": (0, 3), "CFG.halt": (0, 0)})
_KINDS: Mapping[Use, tuple[OperandKind, ...]] = MappingProxyType({
    Use.ALU: tuple(OperandKind), Use.START: tuple(OperandKind),
    Use.MASK: (OperandKind.STREAM, OperandKind.ALU, OperandKind.IMMEDIATE),
    Use.CONSTANT: (OperandKind.IMMEDIATE, OperandKind.LANE),
})


def faults(machine: Machine, inst: QueueInst) -> Iterator[str]:
    """All that is wrong with an instruction by itself, in words; nothing for one of the table's."""
    found = OPS.get(inst.op)
    if found is None:
        yield f"there is no instruction {inst.op}"
        return
    row, variant = found
    yield from _type(row, variant, inst)
    if inst.dtype not in row.types_of(variant) and row.types:
        return  # widths below are those of the type
    if not row.burst and inst.burst != 1 and not any(f.part == "burst" for f in row.fields):
        yield f"{row.name} takes no burst"
    for field in row.fields:
        yield from _field(machine, inst, field)
    yield from _extras(row, inst)
    if row.name == "TRED" and inst.step and inst.burst % inst.step:
        yield Beyond(f"a burst of {inst.burst} is no multiple of every={inst.step}")
    if row.name == "MAC" and inst.imm > machine.depth(inst.dtype):
        yield Beyond(f"depth={inst.imm} is more than the {machine.depth(inst.dtype)} rows that {inst.dtype} has")
    if row.name == "MAC" and inst.dtype == "int8" and inst.flags & 2:
        yield "int8 takes all lanes: there is no half"
    if row.name == "LW" and inst.burst > machine.depth(inst.dtype) * TYPES[inst.dtype].nbytes // machine.weight_streams:
        yield Beyond(f"a burst of {inst.burst} brings more rows than the {machine.depth(inst.dtype)} that {inst.dtype} has")
    low, high = (1, machine.superlanes) if inst.op == "CFG.vl" else _SETTINGS.get(inst.op, (0, 0xFFFFFFFF))
    if not low <= inst.imm <= high:
        yield Beyond(f"{inst.op} takes {low} to {high}, not {inst.imm}")


def misplaced(queue: Queue, inst: QueueInst) -> str | None:
    """Why an instruction of the table cannot be in a queue, or None."""
    row = OPS[inst.op][0]
    if queue.kind not in row.queues:
        return f"{inst.op} is for queues of {row.unit}, not for {queue.name}"
    if queue.kind in ("LW", "MAC", "DRN") and queue.number and inst.dtype not in ("int8", "int32", ""):
        return f"{inst.dtype} takes both planes of {queue.unit}, which the queues of plane 0 steer, not {queue.name}"
    return None


def planes_of(inst: QueueInst, field: WordField) -> int:
    """How many consecutive streams a stream field names."""
    if field.planes:
        return field.planes
    if field.use is Use.MASK:
        return 1
    named = result_type(inst.op, inst.dtype) if field.use is Use.PUT and is_vector(inst.op) else inst.dtype
    return TYPES[named].nbytes


def kind_of(inst: QueueInst, field: WordField) -> OperandKind:
    """Where an operand field's value comes from."""
    return OperandKind(inst.map >> 2 * "abc".index(field.part) & 3)


def _type(row: InstructionRow, variant: str, inst: QueueInst) -> Iterator[str]:
    types = row.types_of(variant)
    if not types and inst.dtype:
        yield f"{inst.op} has no element type, not {inst.dtype}"
    elif types and inst.dtype not in types:
        yield f"{inst.op} is not there for {inst.dtype or 'no type'}; it takes {', '.join(t for t in TYPES if t in types)}"


def _field(machine: Machine, inst: QueueInst, field: WordField) -> Iterator[str]:
    row = OPS[inst.op][0]
    value: int = getattr(inst, field.part)
    if field.use in (Use.TAKE, Use.PUT) and not (field.use is Use.PUT and is_vector(inst.op) and not inst.flags & PUT_FLAG):
        yield from _stream(machine, value, planes_of(inst, field))
    elif field.use in ALU_USES:
        yield from _operand(machine, inst, field, value)
    elif field.use in (Use.ROW, Use.ACCUMULATOR):
        yield from _rows(machine, inst, field, value)
    elif field.use in (Use.STEP, Use.NUMBER) and not field.low <= value <= field.high:
        yield Beyond(f"{field.key or row.name} is from {field.low} to {field.high}, not {value}")
    elif field.use is Use.LANES and not 0 <= value < 4096:
        yield Beyond(f"a map's number is from 0 to 4095, not {value}")


def _stream(machine: Machine, value: int, planes: int) -> Iterator[str]:
    if not 0 <= value < 2 * machine.streams:
        yield f"there is no stream {value}"
    elif value % planes:
        yield f"{planes} planes begin at a stream that is a multiple of {planes}, not at {value % machine.streams}"


def _operand(machine: Machine, inst: QueueInst, field: WordField, value: int) -> Iterator[str]:
    kind, at = kind_of(inst, field), "abc".index(field.part)
    if kind not in _KINDS[field.use]:
        what = "the number of the lane" if kind is OperandKind.LANE else kind.name.lower()
        yield f"operand {field.part} of {inst.op} cannot be {what}"
    elif kind is OperandKind.STREAM:
        yield from _stream(machine, value, planes_of(inst, field))
    elif kind is OperandKind.ALU:
        alu, steps = alu_and_steps(value)
        if alu >= machine.alus or steps >= machine.delay_steps:
            yield f"operand {field.part}: {value} is no ALU and delay"
    elif kind in (OperandKind.IMMEDIATE, OperandKind.LANE) and value:
        yield f"operand {field.part} is an immediate or the lane's number: its field is 0, not {value}"
    modifiers = inst.map >> NEGATE + at & 1 | inst.map >> ABSOLUTE + at & 1
    is_float = field.use is not Use.MASK and TYPES[inst.dtype].is_float
    if modifiers and (not is_float or (field.use is Use.START and kind is OperandKind.LANE)):
        yield f"operand {field.part} of {inst.op} takes no sign: signs are for floats"


def _rows(machine: Machine, inst: QueueInst, field: WordField, first: int) -> Iterator[str]:
    """The burst's first and last row must be in one bank."""
    rows = machine.rows if field.use is Use.ROW else machine.accumulator_rows
    banks = machine.banks if field.use is Use.ROW else machine.accumulator_banks
    last = first + inst.step * (inst.burst - 1)
    if not 0 <= first < banks * rows:
        yield Beyond(f"there is no row {first}: {banks} banks have {rows} each")
    elif first // rows != last // rows:
        yield Beyond(f"a burst of {inst.burst} from row {first % rows} by {inst.step} leaves its bank of {rows} rows")


def _extras(row: InstructionRow, inst: QueueInst) -> Iterator[str]:
    """Fields that the row lacks must be 0."""
    if not 1 <= inst.burst <= BURST:
        yield Beyond(f"a burst is from 1 to {BURST}, not {inst.burst}")
    used = {field.part for field in row.fields}
    flags = sum(field.low for field in row.fields if field.use is Use.FLAG)
    if row.operands:
        flags, used = PUT_FLAG, used | {"map", "imm"}
        yield from _map(row, inst)
        if not inst.flags & PUT_FLAG:
            used -= {"dst"}
    for part in PARTS:
        value: int = getattr(inst, part)
        if part == "flags":
            if value & ~flags:
                yield f"flags {value & ~flags:#x} mean nothing to {inst.op}"
        elif value and part not in used:
            yield f"{inst.op} does not use {part}, which is {value}"


def _map(row: InstructionRow, inst: QueueInst) -> Iterator[str]:
    """Operands that the row has not are of kind 3 and unmodified; an immediate needs one that takes it."""
    if not 0 <= inst.map < 4096:
        yield f"map {inst.map} does not fit 12 bits"
        return
    has = {field.part for field in row.operands}
    for at, part in enumerate("abc"):
        signed = inst.map >> NEGATE + at & 1 or inst.map >> ABSOLUTE + at & 1
        if part not in has and (inst.map >> 2 * at & 3 != OperandKind.LANE or signed):
            yield f"{inst.op} has no operand {part}: its kind is 3, without sign"
    if inst.imm and not any(kind_of(inst, field) is OperandKind.IMMEDIATE for field in row.operands):
        yield "an immediate that no operand takes"
