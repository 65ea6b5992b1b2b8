"""The word that a compare-and-swap exchanges for an atomic access: the element itself, a pair of them, or one half of the word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tilefw.api.errors import UnsupportedError
from tilefw.machine.inst import Slice
from tilefw.simt.chip import LaneChip
from tilefw.simt.select.code import Code, Const, Element

_HALF, _WORD = 16, "i32"
_NEGATIVE_ZEROS = 0x80008000  # of two floats of 16 bits
_HALF_MASK, _WORD_MASK, _WORD_BYTES = (1 << _HALF) - 1, (1 << 32) - 1, 4
_ROWS = {
    "and": "andi", "or": "ori", "xor": "xori", **{row: row for row in ("maxs", "maxu", "mins", "minu")},
}
# Floats are ordered by their codes: as integers with a sign where the operand has none, the other way round where it has one. By
# kind, what that is for operands without and with a sign.
BY_SIGN = {"maxf": ("maxs", "minu"), "minf": ("mins", "maxu")}


@dataclass(frozen=True, slots=True)
class RequestedAtomic:
    """One access as the op has it; `operands` have the type `type`, which is an integer's but for sums."""

    kind: str
    type: str
    bits: int
    operands: tuple[Element, ...]
    address: Slice
    immediate: int
    predicate: Slice | None


class ExchangedWord(Protocol):
    """`type` is the integer type that is exchanged, at `address` and `immediate`."""

    @property
    def type(self) -> str: ...

    @property
    def address(self) -> Slice: ...

    @property
    def immediate(self) -> int: ...

    def changed(self, old: Element) -> Element:
        """What the word becomes."""
        ...

    def found(self, old: Element) -> Element:
        """What the access gives of the old word."""
        ...


def word_of(code: Code, chip: LaneChip, request: RequestedAtomic) -> ExchangedWord:
    """The word to exchange for an access without an instruction of its own. Raises UnsupportedError (TFW0625) where the chip has no
    compare-and-swap for it."""
    word = f"i{request.bits}"
    if f"cas.{word}" in chip.atomics:
        return _WholeWord(code, request, word)
    if request.bits == _HALF and f"cas.{_WORD}" in chip.atomics:
        return half_of(code, chip, request)
    bits = max(request.bits, 2 * _HALF)
    raise UnsupportedError(
        f"{chip.name} has no atomic {request.kind} of {request.type}, and no compare-and-swap of {bits} bits to make one of",
        code="TFW0625", place=code.place,
    )


@dataclass(frozen=True, slots=True)
class _WholeWord:
    code: Code
    request: RequestedAtomic
    type: str

    @property
    def address(self) -> Slice:
        return self.request.address

    @property
    def immediate(self) -> int:
        return self.request.immediate

    def changed(self, old: Element) -> Element:
        return combined(self.code, self.request, old)

    def found(self, old: Element) -> Element:
        return old


@dataclass(frozen=True, slots=True)
class HalfWord:
    """One half of a word: the upper one where `high` holds."""

    code: Code
    request: RequestedAtomic
    address: Slice
    high: Element
    type: str = _WORD
    immediate: int = 0

    def changed(self, old: Element) -> Element:
        code = self.code
        half = code("extu.i16.i32", combined(code, self.request, self.found(old)))
        return code("ori.i32", code("andi.i32", old, self._others(_WORD_MASK)), self._shifted(half))

    def sum_operand(self) -> Element:
        """What a sum of two floats in the word adds: the operand, and -0 to the other half, which leaves every number as it is."""
        code, (operand,) = self.code, self.request.operands
        half = code.i32(operand.bits) if isinstance(operand, Const) else code("extu.i16.i32", operand)
        return code("ori.i32", self._shifted(half), self._others(_NEGATIVE_ZEROS))

    def found(self, old: Element) -> Element:
        code = self.code
        return code("trunci.i32.i16", code("select.i32", self.high, code("shru.i32", old, code.i32(_HALF)), old))

    def _shifted(self, half: Element) -> Element:
        code = self.code
        return code("select.i32", self.high, code("shl.i32", half, code.i32(_HALF)), half)

    def _others(self, bits: int) -> Element:
        """The bits of a word that belong to the other half."""
        code = self.code
        return code("select.i32", self.high, code.i32(bits & _HALF_MASK), code.i32(bits & ~_HALF_MASK))


def half_of(code: Code, chip: LaneChip, request: RequestedAtomic) -> HalfWord:
    """The aligned word of an element of 16 bits."""
    pointer, mask = f"i{chip.pointer_bits}", (1 << chip.pointer_bits) - 1
    at = code(
        f"addi.{pointer}", request.address, Const(pointer, request.immediate & mask)
    ) if request.immediate else request.address
    word = code(f"andi.{pointer}", at, Const(pointer, mask - _WORD_BYTES + 1))
    low = code(f"trunci.{pointer}.i32", at) if chip.pointer_bits != 32 else at
    high = code("nei.i32", code("andi.i32", low, code.i32(_WORD_BYTES // 2)), code.i32(0))
    return HalfWord(code, request, word, high)


def combined(code: Code, request: RequestedAtomic, old: Element) -> Element:
    """What an element becomes, or each of a pair."""
    kind, type, operand = request.kind, request.type, request.operands[-1]
    if kind == "add":
        return _sum(code, type, old, operand)
    if kind == "xchg":
        return operand
    if kind == "cas":
        return code(f"select.{type}", code(f"eqi.{type}", old, request.operands[0]), operand, old)
    if kind not in BY_SIGN:
        return code(f"{_ROWS[kind]}.{type}", old, operand)
    plain, signed = (code(f"{row}.{type}", old, operand) for row in BY_SIGN[kind])
    if isinstance(operand, Const):
        return signed if operand.bits >> request.bits - 1 else plain
    return code(f"select.{type}", code(f"lts.{type}", operand, Const(type, 0)), signed, plain)


def _sum(code: Code, type: str, old: Element, operand: Element) -> Element:
    name, _, pair = type.partition("x")
    key = f"addi.{type}" if name.startswith("i") else f"addf.{type}"
    if not pair or key in code.chip.rules:
        return code(key, old, operand)
    halves = (code.chip.unpack(code, _HALF, value, 2) for value in (old, operand))
    return code.chip.pack(code, _HALF, [code(f"addf.{name}", x, _typed(y, name)) for x, y in zip(*halves, strict=True)])


def _typed(element: Element, name: str) -> Element:
    return Const(name, element.bits) if isinstance(element, Const) else element
