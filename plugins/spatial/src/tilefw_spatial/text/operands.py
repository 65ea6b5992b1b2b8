"""How operands are written: streams `sE4`, rows `b0:64`, accumulators `acc1:0`, and the operands of ALUs with their signs.

| operand of an ALU | |
|---|---|
| `sE4` | what passes on the streams from sE4 on |
| `alu3+8` | ALU 3's result, 8 cycles after it appeared (`alu3`: as it appears) |
| `#0x3f800000` | the immediate: bits; also a number, `#1.0`, `#-3` |
| `lane` | the number of the lane |
| `-x`, `\\|x\\|`, `-\\|x\\|` | the sign of floats |
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tilefw_spatial.isa import TYPES, OperandKind, Use, WordField, alu_and_steps, alu_operand
from tilefw_spatial.isa.conversions import convert
from tilefw_spatial.isa.wellformed import ABSOLUTE, NEGATE
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst
from tilefw_spatial.text.source import OPERANDS, RANGE, TextSpan

_STREAM = re.compile(r"s([EW])(\d{1,2})")
_ROW = {Use.ROW: re.compile(r"b(\d):(\d{1,5}|0x[0-9a-f]{1,4})"), Use.ACCUMULATOR: re.compile(r"acc(\d):(\d{1,5}|0x[0-9a-f]{1,4})")}
_ROW_NAME = {Use.ROW: "b", Use.ACCUMULATOR: "acc"}
_ALU = re.compile(r"alu(\d{1,2})(?:\+(\d{1,3}))?")
_SIGNED = re.compile(r"(-?)(\|?)(.*?)(\|?)")
_BITS = re.compile(r"0x[0-9a-fA-F]{1,8}")

# --- writing ---------------------------------------------------------------------------------------------------------------


def stream_name(machine: Machine, stream: int) -> str:
    """`sE4`, `sW0`."""
    return f"s{'W' if machine.is_west(stream) else 'E'}{stream % machine.streams}"


def row_name(machine: Machine, use: Use, address: int) -> str:
    """`b0:64`, `acc1:0`."""
    bank, row = divmod(address, machine.rows if use is Use.ROW else machine.accumulator_rows)
    return f"{_ROW_NAME[use]}{bank}:{row}"


def operand_text(machine: Machine, inst: QueueInst, field: WordField) -> str:
    """An ALU's operand; nothing for one that is not there."""
    at = "abc".index(field.part)
    kind, value = OperandKind(inst.map >> 2 * at & 3), getattr(inst, field.part)
    if kind is OperandKind.LANE and field.use is Use.START:
        return ""
    if kind is OperandKind.STREAM:
        found = stream_name(machine, value)
    elif kind is OperandKind.ALU:
        alu, steps = alu_and_steps(value)
        found = f"alu{alu}" + (f"+{steps * machine.delay_step}" if steps else "")
    else:
        found = f"#{inst.imm:#x}" if kind is OperandKind.IMMEDIATE else "lane"
    found = f"|{found}|" if inst.map >> ABSOLUTE + at & 1 else found
    return f"-{found}" if inst.map >> NEGATE + at & 1 else found


# --- reading ---------------------------------------------------------------------------------------------------------------


class TextOperand(NamedTuple):
    """An ALU's operand: its kind, field, signs, and the bits of an immediate."""

    kind: OperandKind
    value: int = 0
    negate: bool = False
    absolute: bool = False
    bits: int | None = None

    def map(self, at: int) -> int:
        """Its part of the word's `map`."""
        return self.kind << 2 * at | self.negate << NEGATE + at | self.absolute << ABSOLUTE + at


NOTHING = TextOperand(OperandKind.LANE)
"""An operand that the row lacks, or that is missing."""


def read_stream(machine: Machine, span: TextSpan) -> int:
    """The number of a stream."""
    match = _STREAM.fullmatch(span.text)
    if match is None:
        raise span.fault(f"a stream is expected here, sE0 to sW{machine.streams - 1}, not {span.text[:40]!r}", OPERANDS)
    if int(match[2]) >= machine.streams:
        raise span.fault(f"there is no stream {span.text}: each direction has {machine.streams}", RANGE)
    return int(match[2]) + (machine.streams if match[1] == "W" else 0)


def read_row(machine: Machine, use: Use, span: TextSpan) -> int:
    """The address of a row of a bank."""
    match = _ROW[use].fullmatch(span.text)
    if match is None:
        raise span.fault(f"a row is expected here, as {_ROW_NAME[use]}0:64, not {span.text[:40]!r}", OPERANDS)
    rows, banks = (machine.rows, machine.banks) if use is Use.ROW else (machine.accumulator_rows, machine.accumulator_banks)
    bank, row = int(match[1]), int(match[2], 0 if "x" in match[2] else 10)
    if bank >= banks or row >= rows:
        raise span.fault(f"there is no row {span.text}: {banks} banks have {rows} rows each", RANGE)
    return bank * rows + row


def read_operand(machine: Machine, dtype: str, span: TextSpan) -> TextOperand:
    """An ALU's operand of elements of `dtype`."""
    match = _SIGNED.fullmatch(span.text)
    if match is None or bool(match[2]) != bool(match[4]):
        raise span.fault(f"{span.text[:40]!r} is no operand", OPERANDS)
    inner = TextSpan(match[3], span.start + match.start(3))
    negate, absolute = bool(match[1]), bool(match[2])
    if inner.text == "lane":
        return TextOperand(OperandKind.LANE, 0, negate, absolute)
    if inner.text.startswith("#"):
        return TextOperand(OperandKind.IMMEDIATE, 0, negate, absolute, _immediate(dtype, inner))
    alu = _ALU.fullmatch(inner.text)
    if alu is not None:
        return TextOperand(OperandKind.ALU, _alu(machine, inner, int(alu[1]), int(alu[2] or 0)), negate, absolute)
    if not _STREAM.fullmatch(inner.text):
        raise span.fault(
            f"{span.text[:40]!r} is no operand of an ALU", OPERANDS, help="write a stream (sE4), a result (alu3+8), #bits, or lane"
        )
    return TextOperand(OperandKind.STREAM, read_stream(machine, inner), negate, absolute)


def _alu(machine: Machine, span: TextSpan, number: int, delay: int) -> int:
    if number >= machine.alus:
        raise span.fault(f"there is no ALU {number}: there are {machine.alus}", RANGE)
    steps, rest = divmod(delay, machine.delay_step)
    if rest or steps >= machine.delay_steps:
        delays = [str(i * machine.delay_step) for i in range(machine.delay_steps)]
        raise span.fault(f"a result is there after {', '.join(delays)} cycles, not after {delay}", RANGE)
    return alu_operand(number, steps)


def _immediate(dtype: str, span: TextSpan) -> int:
    """The bits of `#0x3f800000`, `#1.5` or `#-3`, one element of `dtype`."""
    text = span.text[1:]
    if _BITS.fullmatch(text):
        return int(text, 16)
    if TYPES[dtype].is_float:
        try:
            value = float(text)
        except ValueError:
            raise span.fault(f"{span.text[:40]!r} is no immediate: write #0x and bits, or a number") from None
        with np.errstate(over="ignore"):
            found = convert("fp32", dtype, np.array([value]))
        return int.from_bytes(found.tobytes(), "little")
    value = TextSpan(text, span.start + 1).number("an immediate's number")
    bits = TYPES[dtype].bits
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if TYPES[dtype].is_signed else (0, (1 << bits) - 1)
    if not low <= value <= high:
        raise span.fault(f"{value} is no {dtype}: {low} to {high}", RANGE)
    return value & (1 << bits) - 1
