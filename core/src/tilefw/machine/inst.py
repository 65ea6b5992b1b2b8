"""Reg, Slice, Inst, Block, Function: machine code as slots classes in plain lists, without behaviour of any chip.

Registers are virtual until allocation and may be redefined; there are no phis. A physical register file is one
`Reg` as wide as the file, so that a physical register, a tuple of them and a part of a virtual tuple are all the same
thing: a `Slice` (register, first, count), counted in the class's smallest registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from tilefw.api.errors import Place
from tilefw.machine.function_attributes import FunctionAttributes


class Reg:
    """A register: `width` consecutive registers of class `cls`, the first at a multiple of `align`.

    `physical` marks the register file of a class (`width` is then its size).
    """

    __slots__ = ("align", "cls", "id", "parts", "physical", "whole", "width")

    def __init__(self, id: int, cls: str, width: int = 1, align: int = 1, physical: bool = False) -> None:
        self.id = id
        self.cls = cls
        self.width = width
        self.align = align
        self.physical = physical
        self.whole = Slice(self, 0, width)
        self.parts: dict[tuple[int, int], Slice] | None = None  # made when first asked for: most registers have none

    def slice(self, first: int, count: int) -> Slice:
        """The slice of `count` registers from `first`."""
        if count == self.width:
            return self.whole
        if self.parts is None:
            self.parts = {}
        found = self.parts.get((first, count))
        if found is None:
            found = self.parts[first, count] = Slice(self, first, count)
        return found

    def slices(self) -> Iterator[Slice]:
        """Every slice of this register that anybody asked for."""
        yield self.whole
        yield from (self.parts or {}).values()

    def __repr__(self) -> str:
        return f"${self.cls}" if self.physical else f"%{self.id}:{self.cls}"


class Slice:
    """`count` consecutive registers of `reg`, from `first`.

    `Reg.slice` makes one object of each, so that slices are compared and hashed by identity: selection looks up little else.
    """

    __slots__ = ("_units", "count", "first", "reg")

    def __init__(self, reg: Reg, first: int, count: int) -> None:
        self.reg = reg
        self.first = first
        self.count = count
        self._units: tuple[tuple[Reg, int], ...] | None = None

    @property
    def units(self) -> tuple[tuple[Reg, int], ...]:
        """The smallest registers that it covers, each as (register, index)."""
        found = self._units
        if found is None:
            reg, first = self.reg, self.first
            found = self._units = ((reg, first),) if self.count == 1 else tuple([(reg, first + i) for i in range(self.count)])
        return found

    def part(self, first: int, count: int = 1) -> Slice:
        """The slice of this slice."""
        return self.reg.slice(self.first + first, count)

    def __repr__(self) -> str:
        return str(self.reg) if self is self.reg.whole else f"{self.reg}[{self.first}:{self.count}]"


NoWrap = Literal["", "exact", "proven", "lost"]
"""What is promised of the integers that an instruction gives.

"exact": an access whose offset is made of them means its sums, products and choices as exact integers, of operands that are so too.
"proven": they never wrap around. "lost": such an integer, of which nothing is known here. "": a number of its own, as an index that
was loaded, or nothing that offsets are made of."""

Operand = Slice | int | str
"""A source operand: registers, an immediate's bits, or a name (special register, symbol) or literal in the chip's spelling."""


class Inst:
    """One instruction.

    `tied` pairs (definition index, use index) that must be one register. `implicit_defs` and `implicit_uses` are
    registers that the text does not spell (condition codes, execution masks). An instruction under a `predicate`
    (negated by `predicate_not`) leaves its definitions unchanged where the predicate is false, so it also reads them.
    `targets` are the labels that it may branch to; `buffer` names the memory that it accesses (an argument's index,
    a shared allocation), -1 for unknown; a `volatile` access is made once, in its order among the others; `place` is
    the user's source line. `line` is the line of the text that the instruction was parsed from, 0 for none.
    `no_wrap` is a promise (`NoWrap`); `wide` are the definitions, as (index, first register), that are the low half of an integer
    whose high half follows it.
    """

    __slots__ = (
        "buffer", "defs", "implicit_defs", "implicit_uses", "line", "no_wrap", "opcode", "place", "predicate", "predicate_not",
        "targets", "tied", "uses", "volatile", "wide",
    )

    def __init__(
        self,
        opcode: str,
        defs: Sequence[Slice] = (),
        uses: Sequence[Operand] = (),
        *,
        predicate: Slice | None = None,
        predicate_not: bool = False,
        tied: tuple[tuple[int, int], ...] = (),
        implicit_defs: Sequence[Slice] = (),
        implicit_uses: Sequence[Slice] = (),
        targets: tuple[str, ...] = (),
        buffer: int | None = None,
        volatile: bool = False,
        place: Place | None = None,
        no_wrap: NoWrap = "",
    ) -> None:
        self.opcode = opcode
        self.defs = tuple(defs)
        self.uses = tuple(uses)
        self.predicate = predicate
        self.predicate_not = predicate_not
        self.tied = tied
        self.implicit_defs = tuple(implicit_defs)
        self.implicit_uses = tuple(implicit_uses)
        self.targets = targets
        self.buffer = buffer
        self.volatile = volatile
        self.place = place
        self.no_wrap: NoWrap = no_wrap
        self.wide: tuple[tuple[int, int], ...] = ()
        self.line = 0

    def reads(self) -> Iterator[Slice]:
        """Every register slice that this instruction may read, the predicate and kept definitions included."""
        found: list[Slice] = [use for use in self.uses if use.__class__ is Slice]  # type: ignore[misc]
        if self.implicit_uses:
            found += self.implicit_uses
        if self.predicate is not None:
            found += (self.predicate, *self.defs)
        return iter(found)

    def writes(self) -> Iterator[Slice]:
        """Every register slice that this instruction may write."""
        return iter(self.defs + self.implicit_defs if self.implicit_defs else self.defs)

    def __repr__(self) -> str:
        guard = "" if self.predicate is None else f"@{'!' * self.predicate_not}{self.predicate} "
        return f"{guard}{', '.join(map(str, self.defs))} = {self.opcode} {', '.join(map(str, self.uses))} {self.targets or ''}"


class Block:
    """A label and the instructions up to the next block. Control falls through unless the last one ends it."""

    __slots__ = ("insts", "label")

    def __init__(self, label: str, insts: list[Inst] | None = None) -> None:
        self.label = label
        self.insts: list[Inst] = insts if insts is not None else []


class Function:
    """A kernel as blocks in layout order; the first is the entry.

    `attributes` are what emitters need besides: how it is called, what it takes. `files` are the physical register files by class,
    once used. `writer` is a plugin's class or function that changed it and whose opcodes no pass has checked yet.
    """

    __slots__ = ("_made", "attributes", "blocks", "files", "name", "registers", "target", "writer")

    def __init__(self, name: str, target: str, attributes: FunctionAttributes | None = None) -> None:
        self.name = name
        self.target = target
        self.attributes = attributes or FunctionAttributes()
        self.blocks: list[Block] = []
        self.registers: list[Reg] = []
        self._made: list[Reg] = []  # those that allocation has replaced too
        self.files: dict[str, Reg] = {}
        self.writer: object = None

    def register(self, cls: str, width: int = 1, align: int = 1) -> Reg:
        """A new virtual register."""
        reg = Reg(len(self.registers), cls, width, align)
        self.registers.append(reg)
        self._made.append(reg)
        return reg

    def file(self, cls: str, size: int) -> Reg:
        """The physical register file of class `cls`."""
        if cls not in self.files:
            self.files[cls] = Reg(-1, cls, size, 1, physical=True)
        return self.files[cls]

    def block(self, label: str) -> Block:
        """A new block at the end of the layout."""
        block = Block(label)
        self.blocks.append(block)
        return block

    def insts(self) -> Iterator[Inst]:
        """Every instruction, block by block, in order."""
        return chain.from_iterable(block.insts for block in self.blocks)

    def release(self) -> None:
        """Give up the instructions and what they name, as nobody needs the function any more.

        Registers and their slices name each other: only the cyclic collector would free them, in ten times the time.
        """
        for reg in {*self._made, *self.registers, *self.files.values()}:
            reg.parts = None
            del reg.whole
        self.blocks, self.registers, self._made, self.files = [], [], [], {}
