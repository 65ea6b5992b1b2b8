"""What core's expansions build on here: micro steps instead of instructions, each made once, constants folded as they come.

A term is a source read as a type of tile IR. Reading the same bytes as another type is free; so are the signs of floats, which
become modifiers of the step that reads them, until somebody looks at the bits.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tilefw.api import UnsupportedError
from tilefw.api.expand import CASTS, TYPES, key
from tilefw_spatial import isa
from tilefw_spatial.chain.micro import Micro, MicroOperand, Source, is_reduced
from tilefw_spatial.chain.native import FLOATS, NATIVE, Native, signed
from tilefw_spatial.chain.node import Literal
from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.types import reinterpret


@dataclass(frozen=True, slots=True)
class RecordTerm:
    """A source read as `type` (tile IR's spelling), with the modifiers that its reader is to apply."""

    source: Source
    type: str
    negate: bool = False
    absolute: bool = False

    @property
    def operand(self) -> MicroOperand:
        return MicroOperand(self.source, self.negate, self.absolute)


class Recorder:
    """`tilefw.api.expand.ExpansionBuilder` over micro steps: equal steps are one, steps of constants are constants."""

    rows: Container[str] = NATIVE.keys() | {key(row, t) for row in ("negf", "absf") for t in FLOATS}

    def __init__(self) -> None:
        self._made: dict[object, Micro] = {}
        self.contractible = False  # of the step that is made next

    # --- the protocol ---

    def op(self, row: str, operands: tuple[RecordTerm, ...], result: str) -> RecordTerm:
        if row == "negf":
            return replace(operands[0], negate=not operands[0].negate)
        if row == "absf":
            return replace(operands[0], negate=False, absolute=True)
        native = NATIVE[_spelled(row, operands, result)]
        return RecordTerm(self.step(native, operands), result)

    def const(self, pattern: int, type_: str) -> RecordTerm:
        return RecordTerm(Literal(pattern, _machine_type(type_)), type_)

    def type_of(self, value: RecordTerm) -> str:
        return value.type

    def bits(self, value: RecordTerm) -> RecordTerm:
        plain = self.settled(value)
        width = TYPES[value.type].bits
        return RecordTerm(plain.source if width == 32 else self._converted(plain.source, _code_type(width), "uint32"), "i32")

    def narrow(self, value: RecordTerm, type_: str) -> RecordTerm:
        if TYPES[type_].bits == 32:
            return RecordTerm(self.settled(value).source, type_)
        if type_ == "i1":
            return RecordTerm(self.step(Native("CVT.int1", "uint32"), (self._low_bit(value),)), type_)
        return RecordTerm(self._converted(value.source, "uint32", _code_type(TYPES[type_].bits)), type_)

    def split(self, value: RecordTerm) -> tuple[RecordTerm, RecordTerm]:
        raise _not_served(value.type)

    def join(self, low: RecordTerm, high: RecordTerm, type_: str) -> RecordTerm:
        raise _not_served(type_)

    # --- what they use ---

    def recast(self, value: RecordTerm, type_: str) -> RecordTerm:
        """The same bits as another type of one width."""
        return replace(self.settled(value), type=type_)

    def settled(self, value: RecordTerm) -> RecordTerm:
        """The value with its modifiers carried out: what looks at bits sees them."""
        if not (value.negate or value.absolute):
            return value
        return RecordTerm(self.step(Native("MOV", signed(value.type)), (value,)), value.type)

    def step(self, native: Native, operands: tuple[RecordTerm, ...], every: int = 0) -> Source:
        """The result of an op: a constant where all operands are, else the micro step that does this."""
        read = [o if _reads_signs(native.dtype) else self.settled(o) for o in operands]
        if native.op == "SELM" and isinstance(read[0].source, Literal):
            chosen = self.settled(read[1] if read[0].source.bits & 0xFF else read[2])
            return chosen.source
        sources = tuple(term.operand for term in read)
        if all(isinstance(o.source, Literal) for o in sources) and not every:
            return folded(native, sources)
        reduced = all(is_reduced(o.source) for o in sources) and not every
        name = (native, tuple(_named(o) for o in sources), every, self.contractible)
        if name not in self._made:
            self._made[name] = Micro(native.op, native.dtype, sources, reduced, every, self.contractible)
        return self._made[name]

    def placed(self, native: Native, operand: RecordTerm) -> Micro:
        """The step itself, even of a constant."""
        name = (native, _named(operand.operand), "placed")
        if name not in self._made:
            reduced = not isinstance(operand.source, Literal) and is_reduced(operand.source)
            self._made[name] = Micro(native.op, native.dtype, (operand.operand,), reduced)
        return self._made[name]

    def _converted(self, source: Source, of: str, to: str) -> Source:
        return self.step(Native(f"CVT.{to}", of), (RecordTerm(source, "i32"),))

    def _low_bit(self, value: RecordTerm) -> RecordTerm:
        return RecordTerm(self.step(NATIVE["andi.i32"], (value, self.const(1, "i32"))), "i32")


def folded(native: Native, operands: tuple[MicroOperand, ...]) -> Literal:
    """A step on constants, computed as the machine would."""
    read: list[np.ndarray] = []
    for operand, dtype in zip(operands, operand_types(native), strict=True):
        assert isinstance(operand.source, Literal)
        element = immediate(dtype, operand.source.bits)
        read.append(modified(element, operand.negate, operand.absolute))
    to = isa.result_type(native.op, native.dtype)
    found = meaning(native.op, native.dtype, read)
    return Literal(int(reinterpret(found, "uint32" if to != "int1" else "int1")[0, 0]), to)


@cache
def operand_types(native: Native) -> tuple[str, ...]:
    """As what a step reads each of its operands."""
    fields = isa.OPS[native.op][0].operands
    return tuple("int1" if field.use is isa.Use.MASK else native.dtype for field in fields)


def _reads_signs(dtype: str) -> bool:
    return isa.TYPES[dtype].is_float


def _named(operand: MicroOperand) -> object:
    source = operand.source
    kept = (source.bits, source.dtype) if isinstance(source, Literal) else id(source)
    return (kept, operand.negate, operand.absolute)


def _spelled(row: str, operands: tuple[RecordTerm, ...], result: str) -> str:
    type_ = operands[1 if row == "select" else 0].type
    return key(row, type_, result) if row in CASTS else key(row, type_)


def _code_type(bits: int) -> str:
    """The element type that holds a code of so many bits."""
    return "int1" if bits == 1 else f"uint{bits}"


def _machine_type(type_: str) -> str:
    name = TYPES[type_].name
    if name not in isa.TYPES:
        raise _not_served(type_)
    return name


def _not_served(type_: str) -> UnsupportedError:
    return UnsupportedError(f"the vector unit has no elements of type {TYPES[type_].name}", code="TFW0680")
