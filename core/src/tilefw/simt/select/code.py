"""Emits machine instructions for elements: rows by rule or expansion, value-numbered; literals; the open block.

An element is a register slice or a `Const`. Row keys are `row.type` or, for casts, `row.from.to`: `addi.i32`,
`castf.f16.f32`. An element of 8 (or fewer) or 16 bits in its own register leaves the bits above undefined.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from tilefw.api.errors import Place, UnsupportedError
from tilefw.machine.inst import Block, Function, Inst, Operand, Slice
from tilefw.machine.opcodes import place_of_source, unknown_opcode
from tilefw.machine.promises import drop_idle_promises, note_halves
from tilefw.machine.table import InstructionTable
from tilefw.simt.lane.promises import Promising
from tilefw.tile.text.source_location import place_of_location

if TYPE_CHECKING:
    from xdsl.ir import Operation


class Const(NamedTuple):
    """A literal element: the bits of its type, unsigned. A tuple, as these are hashed more than anything else."""

    type: str
    bits: int


class PlacedConst(Const):
    """A literal that is where a buffer stands in shared memory: sums with it keep it outermost (`Code.displaced`)."""


Element = Slice | Const
"""One selected element: registers, or a literal that no register holds yet."""



class ChipRules(Protocol):
    """What `Code` asks of the chip that it emits for; see `tilefw.simt.chip.LaneChip`, which has more."""

    forms: ClassVar[Mapping[str, tuple[str, int, int]]]

    @property
    def name(self) -> str: ...

    @property
    def table(self) -> InstructionTable: ...

    @property
    def rules(self) -> Mapping[str, Callable[..., Any]]: ...

    @property
    def uniform_classes(self) -> frozenset[str]: ...

    @property
    def uniform_rules(self) -> Mapping[str, Callable[..., Any]]: ...

    @property
    def consecutive(self) -> bool: ...

    def alignment(self, cls: str, width: int) -> int: ...

    def rule(self, key: str) -> Callable[..., Any] | None: ...

    def wide_product(self, code: Any, x: Element, y: Element) -> Element | None: ...

    def operand(self, code: Any, element: Element) -> Operand: ...

    def move(self, code: Any, to: Slice, source: Element) -> None: ...

    def pack(self, code: Any, bits: int, elements: Sequence[Element]) -> Element: ...

    def unpack(self, code: Any, bits: int, packed: Element, count: int) -> Sequence[Element]: ...

    def thread_id(self, code: Any) -> Element: ...


_MASK32 = 0xFFFFFFFF
# What literals come to: sums and places that nobody computes, so that addresses of them stay uniform.
_FOLDS = {
    "addi": lambda x, y: x + y, "subi": lambda x, y: x - y, "muli": lambda x, y: x * y,
    "andi": lambda x, y: x & y, "ori": lambda x, y: x | y, "xori": lambda x, y: x ^ y,
    "shl": lambda x, y: x << min(y, 64), "shru": lambda x, y: x >> min(y, 64),
}
_FOLDED = {f"{row}.i{bits}": (fold, bits) for row, fold in _FOLDS.items() for bits in (32, 64)}
# Rows that give their first operand back when the second is this constant.
_NEUTRAL = {
    f"{row}.i{bits}": constant for bits in (32, 64)
    for row, constant in {"addi": 0, "subi": 0, "ori": 0, "xori": 0, "shl": 0, "shru": 0, "shrs": 0, "muli": 1}.items()
}
# The second one when the first is.
_EITHER_WAY = frozenset(f"{row}.i{bits}" for row in ("addi", "ori", "xori", "muli") for bits in (32, 64))
_ARITHMETIC = frozenset(_FOLDED) | frozenset(_NEUTRAL)  # the rows that are simplified; most others are of floats


# Rows that make the exact integers of offsets.
_OFFSETS = frozenset({
    *(f"{row}.i{bits}" for row in ("addi", "subi", "muli", "shl", "select") for bits in (32, 64)), "exts.i32.i64", "trunci.i64.i32",
})
_TWO_WORDS = ("i64", "f64")  # types whose literals take two registers of a tuple


def in_order(elements: Sequence[Element]) -> bool:
    """Whether elements are consecutive slices of one register."""
    for e, f in pairwise(elements):
        if not isinstance(e, Slice) or not isinstance(f, Slice) or e.reg is not f.reg or f.first != e.first + e.count:
            return False
    return True


def _aligned(first: Slice, align: int) -> bool:
    """Whether a slice surely begins at a multiple of `align`."""
    return first.first % align == 0 and (first.reg.physical or first.reg.align % align == 0)


def _line_of(chip: type) -> Place | None:
    """The line of the chip's package that called for the instruction under way; the class where core did for it (`template`)."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    if frame.f_globals.get("__name__", "").partition(".")[0] == chip.__module__.partition(".")[0]:
        return Place(frame.f_code.co_filename, frame.f_lineno)
    return place_of_source(chip)


class Code(Promising):
    """The machine function under construction and the place in it where instructions go."""

    def __init__(self, function: Function, chip: ChipRules) -> None:
        self.function = function
        self.chip = chip
        self._uniform_classes, self._uniform_rules = chip.uniform_classes, chip.uniform_rules
        self._traits = chip.table.traits
        self.block = self.home = function.block("entry")  # `home`: where what stands before all loops may be put
        self.place: Place | None = None
        self._location: object = None
        self.scopes: list[dict[object, Any]] = [{}]
        # Registers that are an element of so many bits of a packed one: that, and which element.
        self.parts: dict[tuple[Slice, int], tuple[Slice, int]] = {}
        self._displaced: dict[Slice, tuple[Slice, int]] = {}
        self._extended: dict[Slice, Element] = {}  # i64 that were i32 with a sign
        self._masked: dict[Element, tuple[Element, int]] = {}  # values that are others, of which only some bits are left
        self._labels = 0
        self._makers: dict[Slice, Inst] = {}  # of what pure instructions give
        self._constants: dict[Slice, Const] = {}  # in parts of tuples
        self._truncated: dict[Slice, None] = {}  # 64 bits of whose exact integers only the low half is taken

    def __call__(self, key: str, *operands: Element) -> Any:
        """The element that row `key` gives for `operands`, by the chip's rule or core's expansion."""
        found = self._selected(key, operands)
        if self._promised and key in _OFFSETS:
            self._promise(found, operands[0])
        return found

    def _promise(self, found: Element, operand: Element) -> None:
        maker = self._makers.get(found)  # type: ignore[arg-type]
        if maker is not None:
            # Of 64 bits in two registers there are several instructions, none of which gives the integer.
            if maker.no_wrap != "proven" and maker.defs[0].count == 1:
                maker.no_wrap = self._promised
        elif isinstance(operand, Slice) and isinstance(found, Slice) and found.reg is operand.reg and found.count < operand.count:
            self._truncated[operand] = None

    def finish(self) -> None:
        """All is selected: what is left to say of promises."""
        note_halves(self.function, self.chip.table, list(self._truncated))
        drop_idle_promises(self.function, self.chip.table)

    def _selected(self, key: str, operands: tuple[Element, ...]) -> Any:
        if key not in _ARITHMETIC:
            return self._numbered(key, operands)
        if key in _FOLDED and all(isinstance(o, Const) for o in operands):
            fold, bits = _FOLDED[key]
            return Const(f"i{bits}", fold(operands[0].bits, operands[1].bits) & (1 << bits) - 1)  # type: ignore[union-attr]
        if key in _NEUTRAL and isinstance(operands[1], Const) and operands[1].bits == _NEUTRAL[key]:
            return operands[0]
        if key in _EITHER_WAY and isinstance(operands[0], Const) and operands[0].bits == _NEUTRAL[key]:
            return operands[1]
        if key == "addi.i32":
            x, y = operands
            if isinstance(x, PlacedConst) and isinstance(y, Slice):
                return self.displaced(y, x.bits)
            if x in self._displaced:
                return self._add_displaced(x, y)
            if y in self._displaced:
                return self._add_displaced(y, x)
        if key == "xori.i32" and operands[0] in self._displaced and isinstance(operands[1], Const):
            base, offset = self._displaced[operands[0]]
            if offset % (1 << operands[1].bits.bit_length()) == 0:  # the bits that change are the base's own
                return self.displaced(self._numbered(key, (base, operands[1])), offset)
        if key == "muli.i64":
            x, y = (self._narrow(o) for o in operands)
            product = None if x is None or y is None else self.chip.wide_product(self, x, y)
            if product is not None:
                return product
        return self._numbered(key, operands)

    def _narrow(self, element: Element) -> Element | None:
        """The i32 that an i64 is with a sign, if it surely is one."""
        if not isinstance(element, Const):
            return self._extended.get(element)
        return self.i32(element.bits) if (element.bits + (1 << 31)) % (1 << 64) < 1 << 32 else None

    def _numbered(self, key: str, operands: tuple[Element, ...]) -> Any:
        memo = (key, operands)
        for scope in reversed(self.scopes):
            if memo in scope:
                return scope[memo]
        rule = (self._uniform_rules.get(key) if self._uniform_rules and self.uniform(*operands) else None) or self.chip.rule(key)
        if rule is None:
            raise UnsupportedError(f"{self.chip.name} does not serve {key}", code="TFW0610", place=self.place)
        result = rule(self, *operands)
        if key == "exts.i32.i64":
            self._extended[result] = operands[0]
        elif key.startswith("andi.") and isinstance(operands[1], Const):
            self._masked[result] = operands[0], operands[1].bits
        self.scopes[-1][memo] = result
        return result

    def known(self, key: str, *operands: Element) -> Any:
        """The element that a row gave for operands, where it is available here; None where it was not asked for."""
        return next((scope[key, operands] for scope in reversed(self.scopes) if (key, operands) in scope), None)

    def maker(self, element: Slice) -> Inst | None:
        """The pure instruction whose first result a register is; None for all others, such as what a loop carries."""
        return self._makers.get(element)

    def constant_in(self, element: Element) -> Element:
        """The constant that was put into a part of a tuple; any other element as it is."""
        return element if isinstance(element, Const) else self._constants.get(element, element)

    def modulo(self, element: Element, bits: int) -> Element | None:
        """An integer that is `element` in its lowest `bits` bits, if all others of `element` surely are 0."""
        source, mask = self._masked.get(element, (element, -1))
        if not 0 <= mask < 1 << bits:
            return None
        return source if mask == (1 << bits) - 1 else element

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

    def uniform(self, *elements: Element) -> bool:
        """Whether all of these are literals or registers that are equal in all lanes, and not all are literals."""
        any_register = False
        for element in elements:
            if isinstance(element, Slice):
                if element.reg.cls not in self._uniform_classes:
                    return False
                any_register = True
        return any_register

    def new_register(self, form: str) -> Slice:
        """A fresh virtual register of a form (`i1`, `e8`, `e16`, `w32`, `w64`)."""
        cls, width, align = self.chip.forms[form]
        return self.function.register(cls, width, align).whole

    def new_registers(self, form: str, count: int) -> list[Slice]:
        """Fresh registers for one access or operand of an instruction: parts of one register on a chip of `consecutive` ones."""
        if count == 1 or not self.chip.consecutive:
            return [self.new_register(form) for _ in range(count)]
        cls, width, align = self.chip.forms[form]
        together = self.function.register(cls, width * count, max(align, self.chip.alignment(cls, width * count)))
        return [together.slice(k * width, width) for k in range(count)]

    def tuple(self, elements: Sequence[Element], cls: str) -> Slice:
        """These elements in order as one slice of class `cls`: in place, or else copied into a register of their own.

        The copies are value-numbered, as if they were one pure instruction.
        """
        widths = [e.count if isinstance(e, Slice) else 2 if e.type in _TWO_WORDS else 1 for e in elements]
        first, width = elements[0], sum(widths)
        align = self.chip.alignment(cls, width)
        if isinstance(first, Slice) and first.reg.cls == cls and in_order(elements) and _aligned(first, align):
            return first.reg.slice(first.first, width)
        key = ("tuple", cls, *elements)
        for scope in reversed(self.scopes):
            if (found := scope.get(key)) is not None:
                return found
        together = self.function.register(cls, width, align)
        at = 0
        for element, count in zip(elements, widths, strict=True):
            part = together.slice(at, count)
            self.chip.move(self, part, element)
            if isinstance(element, Const):
                self._constants[part] = element
            at += count
        self.scopes[-1][key] = together.whole
        return together.whole

    def inst(self, opcode: str, form: str, *uses: Operand) -> Slice:
        """A pure instruction with one result; the same one again gives the same register."""
        return self.insts(opcode, (form,), *uses)[0]

    def insts(self, opcode: str, forms: Sequence[str], *uses: Operand, **extra: Any) -> tuple[Slice, ...]:
        """A pure instruction with several results. `tied` pairs a result with the operand whose register it changes: selection
        leaves them apart, and the pass `tie-operands` brings them together."""
        key = (opcode, uses, tuple(extra.items()))
        for scope in reversed(self.scopes):
            if (found := scope.get(key)) is not None:
                return found
        defs = tuple(self.new_register(form) for form in forms)
        inst = self._makers[defs[0]] = Inst(opcode, defs, uses, place=self.place, **extra)
        self._append(inst)
        self.scopes[-1][key] = defs
        return defs

    def effect(self, opcode: str, defs: Sequence[Slice] = (), uses: Sequence[Operand] = (), **keywords: Any) -> None:
        """An instruction that is emitted as it is: memory, control, a write to a register that others write too."""
        self._append(Inst(opcode, defs, uses, place=self.place, **keywords))

    def _append(self, inst: Inst) -> None:
        try:
            self._traits(inst.opcode)
        except KeyError as missing:
            raise unknown_opcode(self.chip.name, inst, _line_of(type(self.chip)), missing) from None
        self.block.insts.append(inst)

    def insert_at(self, op: Operation) -> None:
        """What is emitted next comes from the op's place in the source."""
        if op.location is not self._location:
            self._location, self.place = op.location, place_of_location(op.location, with_text=False)

    def label(self, word: str) -> str:
        """A fresh label."""
        self._labels += 1
        return f"{word}_{self._labels}"

    def start(self, label: str) -> Block:
        """Open the block `label`; control falls into it from the one before."""
        self.block = self.function.block(label)
        return self.block

    def i32(self, value: int) -> Const:
        """A literal of 32 bits: `value` modulo 2^32."""
        return Const("i32", value & _MASK32)
