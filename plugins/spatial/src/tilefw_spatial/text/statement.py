"""One instruction as text and back: `ADD.fp32 sW0, -alu3+8, n=256 -> sE4`.

Operands are in the order of the row's fields; `n` is the burst, where it is not 1; output streams follow `->`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace

from tilefw_spatial.isa import ALU_USES, OPS, PUT_FLAG, TYPES, InstructionRow, OperandKind, Use, WordField
from tilefw_spatial.isa.wellformed import Beyond, faults
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst
from tilefw_spatial.text.operands import (
    NOTHING,
    TextOperand,
    operand_text,
    read_operand,
    read_row,
    read_stream,
    row_name,
    stream_name,
)
from tilefw_spatial.text.source import OPERANDS, RANGE, UNKNOWN, TextSpan

_HEAD = re.compile(r"[A-Za-z][\w.]*")
_NAMES = {
    Use.TAKE: "stream", Use.ROW: "b0:row", Use.ACCUMULATOR: "acc0:row", Use.ALU: "operand", Use.MASK: "mask", Use.START: "[start]",
    Use.CONSTANT: "#bits or lane",
}
_KEY = re.compile(r"([a-z]\w*)\s*=\s*(.*)", re.DOTALL)

# --- writing ---------------------------------------------------------------------------------------------------------------


def statement(machine: Machine, inst: QueueInst) -> str:
    """The text of an instruction of the table."""
    row, _ = OPS[inst.op]
    head = f"{inst.op}.{inst.dtype}" if inst.dtype else inst.op
    parts = [part for field in row.fields if (part := _part(machine, inst, field))]
    if row.burst and inst.burst != 1:
        parts.append(f"n={inst.burst}")
    put = [f for f in row.fields if f.use is Use.PUT]
    text = f"{head} {', '.join(parts)}".rstrip()
    return f"{text} -> {stream_name(machine, inst.dst)}" if put and (not row.operands or inst.flags & PUT_FLAG) else text


def _part(machine: Machine, inst: QueueInst, field: WordField) -> str:
    value: int = getattr(inst, field.part)
    if field.use in ALU_USES:
        return operand_text(machine, inst, field)
    match field.use:
        case Use.TAKE:
            return stream_name(machine, value)
        case Use.ROW | Use.ACCUMULATOR:
            return row_name(machine, field.use, value)
        case Use.FLAG:
            return field.key if value & field.low else ""
        case Use.PUT:
            return ""
    if value == field.default:
        return ""
    return f"{field.key}={value}" if field.key else str(value)


# --- reading ---------------------------------------------------------------------------------------------------------------


def read_statement(machine: Machine, span: TextSpan) -> QueueInst:
    """The instruction of a line without `@`. Raises Fault."""
    head = _HEAD.match(span.text)
    if head is None:
        raise span.fault("an instruction is expected here")
    op, dtype = _op(TextSpan(head.group(), span.start))
    row, _ = OPS[op]
    rest, arrow, put = span.part(head.end()), span.text.find("->"), None
    if arrow >= 0:
        rest, put = span.part(head.end(), arrow), span.part(arrow + 2)
    inst = _StatementReader(machine, row, QueueInst(op, dtype), span).read(list(rest.split()), put)
    for fault in faults(machine, inst):
        code = RANGE if isinstance(fault, Beyond) else OPERANDS
        raise span.fault(fault, code, note=takes(row))
    return inst


def _op(head: TextSpan) -> tuple[str, str]:
    """Op and element type of a mnemonic with its points."""
    parts = head.text.split(".")
    for count in (2, 1):
        op, rest = ".".join(parts[:count]), parts[count:]
        if op in OPS and len(rest) < 2 and (not rest or rest[0] in TYPES):
            return op, rest[0] if rest else ""
    near = difflib.get_close_matches(head.text, [*OPS, *(f"{op}.{t}" for op, (row, v) in OPS.items() for t in row.types_of(v))], 1)
    raise head.fault(f"there is no instruction {head.text[:40]}", UNKNOWN, help=f"did you mean {near[0]}?" if near else None)


def syntax(row: InstructionRow) -> str:
    """What follows a mnemonic: `b0:row, step=, n= -> stream`."""
    parts = [_NAMES.get(f.use) or (f.key if f.use is Use.FLAG else f"{f.key}=" if f.key else "number") for f in row.fields
             if f.use is not Use.PUT]
    parts += ["n="] if row.burst else []
    put = " -> stream" if any(f.use is Use.PUT for f in row.fields) else ""
    return f"{', '.join(parts)}{put}".strip()


def takes(row: InstructionRow) -> str:
    """The same as a sentence, for messages."""
    return f"{row.name} takes {syntax(row) or 'nothing'}"


class _StatementReader:
    """The parts of one statement, given to the row's fields."""

    def __init__(self, machine: Machine, row: InstructionRow, inst: QueueInst, span: TextSpan) -> None:
        self._machine, self._row, self._inst, self._span = machine, row, inst, span
        self._bits: int | None = None
        self._keys = {f.key: f for f in row.fields if f.key}

    def read(self, items: list[TextSpan], put: TextSpan | None) -> QueueInst:
        for field in self._row.fields:
            if field.default is not None:
                self._set(field, field.default)
        items_left = self._named(items)
        self._positional(items_left)
        self._put(put)
        return self._inst

    def _set(self, field: WordField, value: int) -> None:
        self._inst = replace(self._inst, **{field.part: value})

    def _named(self, items: list[TextSpan]) -> list[TextSpan]:
        """Takes `key=value` and flags; gives what is left."""
        left, seen = [], set[str]()
        for item in items:
            match = _KEY.fullmatch(item.text)
            flag = self._keys.get(item.text)
            if match is None and (flag is None or flag.use is not Use.FLAG):
                left.append(item)
                continue
            key = match[1] if match else item.text
            if key in seen:
                raise item.fault(f"{key} stands twice")
            seen.add(key)
            if match is None:
                self._inst = replace(self._inst, flags=self._inst.flags | self._keys[key].low)
            else:
                self._key(item, key, TextSpan(match[2], item.start + match.start(2)).number())
        self._missing(seen)
        return left

    def _key(self, item: TextSpan, key: str, value: int) -> None:
        field = self._keys.get(key)
        if key == "n" and self._row.burst:
            self._inst = replace(self._inst, burst=value)
        elif field is None or field.use is Use.FLAG:
            raise item.fault(f"{self._row.name} has no {key}", OPERANDS, note=takes(self._row))
        elif field.use is not Use.LANES and not field.low <= value <= field.high:
            raise item.fault(f"{key} is from {field.low} to {field.high}, not {value}", RANGE)
        else:
            self._set(field, value)

    def _missing(self, seen: set[str]) -> None:
        for key, field in self._keys.items():
            if field.use is not Use.FLAG and field.default is None and key not in seen:
                raise self._span.fault(f"{self._row.name} needs {key}=", OPERANDS, note=takes(self._row))

    def _positional(self, items_left: list[TextSpan]) -> None:
        fields = [f for f in self._row.fields if not f.key and f.use is not Use.PUT]
        needed = sum(f.use is not Use.START and f.default is None for f in fields)
        if not needed <= len(items_left) <= len(fields):
            count = str(needed) if needed == len(fields) else f"{needed} to {len(fields)}"
            item = items_left[len(fields)] if len(items_left) > len(fields) else self._span
            raise item.fault(f"{self._inst.op} takes {count} operands, not {len(items_left)}", OPERANDS, note=takes(self._row))
        operands = [NOTHING, NOTHING, NOTHING]
        for field, item in zip(fields, items_left, strict=False):
            if field.use in ALU_USES:
                operands["abc".index(field.part)] = self._operand(field, item)
            elif field.use is Use.TAKE:
                self._set(field, read_stream(self._machine, item))
            elif field.use in (Use.ROW, Use.ACCUMULATOR):
                self._set(field, read_row(self._machine, field.use, item))
            else:
                self._number(field, item)
        if self._row.operands:
            self._inst = replace(self._inst, map=sum(o.map(at) for at, o in enumerate(operands)), imm=self._bits or 0)

    def _number(self, field: WordField, item: TextSpan) -> None:
        value = item.number()
        if not field.low <= value <= field.high:
            raise item.fault(f"{self._row.name} is from {field.low} to {field.high}, not {value}", RANGE)
        self._set(field, value)

    def _operand(self, field: WordField, item: TextSpan) -> TextOperand:
        dtype = "int1" if field.use is Use.MASK else self._inst.dtype
        if not dtype:
            raise self._span.fault(f"{self._inst.op} needs an element type: {self._inst.op}.fp32", OPERANDS)
        found = read_operand(self._machine, dtype, item)
        if found.kind is OperandKind.IMMEDIATE:
            if self._bits not in (None, found.bits):
                raise item.fault("an instruction has one immediate: this is another", OPERANDS)
            self._bits = found.bits
        self._set(field, found.value)
        return found

    def _put(self, put: TextSpan | None) -> None:
        field = next((f for f in self._row.fields if f.use is Use.PUT), None)
        if field is None:
            if put is not None:
                raise put.fault(f"{self._row.name} puts nothing on streams", OPERANDS, note=takes(self._row))
        elif put is not None:
            self._set(field, read_stream(self._machine, put))
            if self._row.operands:
                self._inst = replace(self._inst, flags=self._inst.flags | PUT_FLAG)
        elif not self._row.operands:
            raise self._span.fault(f"{self._row.name} needs -> and a stream", OPERANDS, note=takes(self._row))
