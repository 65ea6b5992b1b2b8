"""Emits machine instructions for elements: rows by rule or expansion, value-numbered; literals; the open block.

An element is a register slice or a `Const`. Row keys are `row.type` or, for casts, `row.from.to`: `addi.i32`,
`castf.f16.f32`. An element of 8 (or fewer) or 16 bits in its own register leaves the bits above undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tilefw.api.errors import Place, UnsupportedError
from tilefw.machine.inst import Block, Function, Inst, Operand, Slice
from tilefw.simt.places import place_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from tilefw.simt.chip import LaneChip


class Const(NamedTuple):
    """A literal element: the bits of its type, unsigned. A tuple, as these are hashed more than anything else."""

    type: str
    bits: int


Element = Slice | Const

_MASK32 = 0xFFFFFFFF
_FOLDS = {
    "addi.i32": lambda x, y: x + y, "subi.i32": lambda x, y: x - y, "muli.i32": lambda x, y: x * y,
    "andi.i32": lambda x, y: x & y, "ori.i32": lambda x, y: x | y, "xori.i32": lambda x, y: x ^ y,
    "shl.i32": lambda x, y: x << y if y < 32 else 0, "shru.i32": lambda x, y: x >> y if y < 32 else 0,
}
# Rows that give their first operand back when the second is this constant.
_NEUTRAL = {"addi.i32": 0, "subi.i32": 0, "ori.i32": 0, "xori.i32": 0, "shl.i32": 0, "shru.i32": 0, "shrs.i32": 0, "muli.i32": 1}


class Code:
    """The machine function under construction and the place in it where instructions go."""

    def __init__(self, function: Function, chip: LaneChip) -> None:
        self.function = function
        self.chip = chip
        self.block = function.block("entry")
        self.place: Place | None = None
        self._location: object = None
        self.scopes: list[dict[object, Any]] = [{}]
        self.parts: dict[Slice, tuple[Slice, int]] = {}  # registers that are an element of a packed one: that, and which
        self._displaced: dict[Slice, tuple[Slice, int]] = {}
        self._labels = 0

    def __call__(self, key: str, *operands: Element) -> Any:
        """The element that row `key` gives for `operands`, by the chip's rule or core's expansion."""
        fold = _FOLDS.get(key)
        if fold is not None and all(isinstance(o, Const) for o in operands):
            return Const("i32", fold(operands[0].bits, operands[1].bits) & _MASK32)  # type: ignore[union-attr]
        if key in _NEUTRAL and isinstance(operands[1], Const) and operands[1].bits == _NEUTRAL[key]:
            return operands[0]
        if key == "addi.i32" and self._displaced:
            x, y = operands
            if x in self._displaced:
                return self._add_displaced(x, y)
            if y in self._displaced:
                return self._add_displaced(y, x)
        if key == "xori.i32" and operands[0] in self._displaced and isinstance(operands[1], Const):
            base, offset = self._displaced[operands[0]]
            if offset % (1 << operands[1].bits.bit_length()) == 0:  # the bits that change are the base's own
                return self.displaced(self._numbered(key, (base, operands[1])), offset)
        return self._numbered(key, operands)

    def _numbered(self, key: str, operands: tuple[Element, ...]) -> Any:
        memo = (key, operands)
        for scope in reversed(self.scopes):
            if memo in scope:
                return scope[memo]
        rule = self.chip.rule(key)
        if rule is None:
            raise UnsupportedError(f"{self.chip.name} does not serve {key}", code="TFW0610", place=self.place)
        result = rule(self, *operands)
        self.scopes[-1][memo] = result
        return result

    def displaced(self, base: Element, offset: int) -> Element:
        """`base` + `offset`, an address in shared memory. Sums with it keep the constant outermost: accesses take it as theirs."""
        if isinstance(base, Const):
            return self.i32(base.bits + offset)
        result = self._numbered("addi.i32", (base, self.i32(offset))) if offset else base
        self._displaced[result] = (base, offset)
        return result

    def displacement(self, address: Slice) -> tuple[Slice, int]:
        """An address as a register and a constant."""
        return self._displaced.get(address, (address, 0))

    def _add_displaced(self, x: Element, y: Element) -> Element:
        base, offset = self._displaced[x]  # type: ignore[index]
        if isinstance(y, Const):
            return self.displaced(base, offset + (y.bits ^ 1 << 31) - (1 << 31))
        return self.displaced(self._numbered("addi.i32", (y, base)), offset)

    def new_register(self, form: str) -> Slice:
        """A fresh virtual register of a form (`i1`, `e8`, `e16`, `w32`, `w64`)."""
        cls, width, align = self.chip.forms[form]
        return self.function.register(cls, width, align).whole

    def inst(self, opcode: str, form: str, *uses: Operand) -> Slice:
        """A pure instruction with one result; the same one again gives the same register."""
        return self.insts(opcode, (form,), *uses)[0]

    def insts(self, opcode: str, forms: Sequence[str], *uses: Operand, **extra: Any) -> tuple[Slice, ...]:
        """A pure instruction with several results."""
        key = (opcode, uses, tuple(extra.items()))
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        defs = tuple(self.new_register(form) for form in forms)
        self.block.insts.append(Inst(opcode, defs, uses, place=self.place, **extra))
        self.scopes[-1][key] = defs
        return defs

    def effect(self, opcode: str, defs: Sequence[Slice] = (), uses: Sequence[Operand] = (), **keywords: Any) -> None:
        """An instruction that is emitted as it stands: memory, control, a write to a register that others write too."""
        self.block.insts.append(Inst(opcode, defs, uses, place=self.place, **keywords))

    def stand_at(self, op: Operation) -> None:
        """What is emitted next comes from the op's place in the source."""
        if op.location is not self._location:
            self._location, self.place = op.location, place_of(op)

    def label(self, word: str) -> str:
        """A fresh label."""
        self._labels += 1
        return f"{word}_{self._labels}"

    def start(self, label: str) -> Block:
        """Open the block `label`; control falls into it from the one before."""
        self.block = self.function.block(label)
        return self.block

    def i32(self, value: int) -> Const:
        return Const("i32", value & _MASK32)
