"""Instruction words: 128 bits a word, little-endian, the fields of `program.QueueInst` at the bits below.

    code = pack(machine, inst)        # 16 bytes
    inst = unpack(machine, code)

Both refuse what is no instruction of the table: an unknown opcode, reserved bits, a field out of range or that the row has not.
`encode` and `decode` are the same without the last two, for who judges whole programs (`valid`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw_spatial.isa import CODES, TYPES, opcode
from tilefw_spatial.isa.types import BY_CODE
from tilefw_spatial.isa.wellformed import faults
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst

BYTES = 16


@dataclass(frozen=True, slots=True)
class WordBits:
    """A field of the word: its lowest bit, its width, whether its highest is a sign, and what is taken off before it is stored."""

    name: str
    low: int
    width: int
    signed: bool = False
    bias: int = 0


def _layout() -> tuple[WordBits, ...]:
    widths = (("opcode", 8), ("dtype", 4), ("flags", 4), ("burst", 12), ("a", 6), ("b", 6), ("c", 6), ("dst", 6), ("address", 13),
              ("step", 13), ("imm", 32), ("map", 12), ("reserved", 6))
    found, low = [], 0
    for name, width in widths:
        found.append(WordBits(name, low, width, signed=name == "step", bias=1 if name == "burst" else 0))
        low += width
    return tuple(found)


LAYOUT = _layout()
"""The fields of a word from its lowest bit; a burst of n is stored as n - 1."""

_NUMBERS = tuple(bits for bits in LAYOUT if bits.name not in ("opcode", "dtype", "reserved"))


class WordError(ValueError):
    """An instruction that is none; the text says why."""


def pack(machine: Machine, inst: QueueInst) -> bytes:
    """The word of an instruction. Raises WordError."""
    _refuse(machine, inst)
    return encode(inst)


def encode(inst: QueueInst) -> bytes:
    """The word of what is known to be an instruction."""
    word = opcode(inst.op) | (TYPES[inst.dtype].code if inst.dtype else 0) << 8
    for bits in _NUMBERS:
        word |= (getattr(inst, bits.name) - bits.bias & (1 << bits.width) - 1) << bits.low
    return word.to_bytes(BYTES, "little")


def unpack(machine: Machine, code: bytes) -> QueueInst:
    """The instruction of a word of 16 bytes. Raises WordError."""
    inst = decode(code)
    _refuse(machine, inst)
    return inst


def decode(code: bytes) -> QueueInst:
    """The fields of a word of 16 bytes, whatever they hold. Raises WordError for an unknown opcode or type, and reserved bits."""
    word = int.from_bytes(code, "little")
    fields = {bits.name: word >> bits.low & (1 << bits.width) - 1 for bits in LAYOUT}
    op = CODES.get(fields["opcode"])
    if op is None:
        raise WordError(f"there is no instruction with the opcode {fields['opcode']:#04x}")
    if fields["reserved"]:
        raise WordError(f"reserved bits are set: {fields['reserved']:#04x}")
    if fields["dtype"] and fields["dtype"] not in BY_CODE:
        raise WordError(f"there is no element type with the code {fields['dtype']}")
    numbers = {bits.name: _number(bits, fields[bits.name]) for bits in _NUMBERS}
    return QueueInst(op, BY_CODE[fields["dtype"]].name if fields["dtype"] else "", **numbers)


def _number(bits: WordBits, stored: int) -> int:
    sign = bits.signed and stored >> bits.width - 1
    return stored - (1 << bits.width) + bits.bias if sign else stored + bits.bias


def _refuse(machine: Machine, inst: QueueInst) -> None:
    fault = next(faults(machine, inst), None)
    if fault is not None:
        raise WordError(fault)
