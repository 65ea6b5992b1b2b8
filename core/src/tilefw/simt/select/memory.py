"""Selection of memory accesses, in their order: loads, stores, asynchronous copies; widths, fills, guards and addresses."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from typing import Self

from xdsl.ir import Operation, SSAValue

from tilefw.machine.inst import Slice
from tilefw.simt import lane
from tilefw.simt.chip_requests import AsyncCopy, LaneAccess
from tilefw.simt.lane.memory import AccessOp
from tilefw.simt.lane.registers import CHUNK, LaneVector, RegisterPiece, bits_of, form_of, size_of, type_name, vector_in
from tilefw.simt.select import declared
from tilefw.simt.select.cluster import ClusterSelection
from tilefw.simt.select.code import Const, Element
from tilefw.simt.select.values import Values
from tilefw.tile import types


@dataclass(frozen=True, slots=True)
class _Accesses:
    """What an op says of all its accesses, read from its properties once: unpacking them for each access would be quadratic."""

    address: SSAValue
    base: SSAValue | None
    limit: SSAValue | None
    places: tuple[tuple[int, int], ...]  # slot and immediate of each
    mask: SSAValue | None
    buffer: int
    cache: str
    eviction: str
    volatile: bool
    space: str
    early: bool

    @classmethod
    def of(cls, op: lane.MemoryOp, early: bool = False) -> Self:
        return cls(
            address_of(op), op.part("base"), op.part("limit"), address_slots(op), op.part("mask"),
            op.buffer, op.word("cache"), op.word("eviction"), "volatile" in op.properties, op.word("space"), early,
        )


def address_of(op: AccessOp) -> SSAValue:
    """The vector of an op's addresses."""
    address = op.part("address")
    assert address is not None
    return address


def address_slots(op: AccessOp) -> tuple[tuple[int, int], ...]:
    """For each access of an op which of its addresses it takes, and the bytes on top."""
    return tuple(zip(op.slots, op.immediates, strict=True))


class MemorySelection:
    """Emits accesses; `values` gives their operands and takes what they load."""

    def __init__(self, values: Values, cluster: ClusterSelection | None = None) -> None:
        self.values = values
        self.cluster = cluster or ClusterSelection(values.code, values.chip)
        self.code = values.code
        self.chip = values.chip
        self.early: Container[Operation] = ()  # loads, see `early_loads`

    # -- loads

    def load(self, op: lane.LoadOp) -> None:
        name, n = type_name(op.accessed), size_of(op.accessed)
        stored = "i8" if name == "i1" else name
        bits, width = bits_of(stored), op.width
        narrow, pairs = bits * width < 32, self.chip.byte_pairs and (bits, width) == (8, 2)
        accesses, other = _Accesses.of(op, op in self.early), op.part("other")
        registers: list[Element] = []
        type = self._register_type(stored, bits if narrow else max(bits, 32))
        form = self.chip.form(type, not types.shape_of(op.accessed))
        for k in range(n // width):
            if pairs:
                fills = [None if other is None else self._stored(other, name, 2 * k + i) for i in range(2)]
                fill = None if None in fills else self.chip.pack(self.code, 8, fills)  # type: ignore[arg-type]
                registers += self.values.apart(8, self._load(accesses, k, "i32", "w32", [fill], 16, 0)[0], 2)
                continue
            if narrow:
                for i in range(width):
                    fill = None if other is None else self._stored(other, name, k * width + i)
                    registers += self._load(accesses, k, type, form, [fill], bits, i * bits // 8)
                continue
            count = bits * width // max(bits, 32)
            fills = [None if other is None else self._stored_register(other, name, k * count + i) for i in range(count)]
            registers += self._load(accesses, k, type, form, fills, max(bits, 32), 0)
        self.values.vectors[op.results[0]] = self._loaded(name, stored, n, registers, narrow)

    def _load(
        self, accesses: _Accesses, k: int, type: str, form: str, fills: list[Element | None], bits: int, extra: int
    ) -> list[Element]:
        code = self.code
        registers = code.new_registers(form, len(fills))
        predicate = self.guard(accesses.mask, k)
        if accesses.limit is not None:
            declared.load(self.chip, code, self._access(accesses, k, tuple(registers), bits, extra, None))
            return [self._filled(predicate, r, fill, type) for r, fill in zip(registers, fills, strict=True)]
        if predicate is not None:
            for register, fill in zip(registers, fills, strict=True):
                self.chip.move(code, register, Const(type, 0) if fill is None else fill)
        if not isinstance(predicate, Const):
            declared.load(self.chip, code, self._access(accesses, k, tuple(registers), bits, extra, predicate))
        return list(registers)

    def _filled(self, predicate: Slice | Const | None, loaded: Slice, fill: Element | None, type: str) -> Element:
        """What a load gave, or the fill where it reached beyond its limit."""
        if predicate is None or fill is None or _is_zero(fill):
            return loaded
        return self.code(f"select.{type}", predicate, loaded, fill)

    def _register_type(self, name: str, bits: int) -> str:
        """The type of a loaded register of so many bits: the element's, where one fills the register and the chip has a form for
        its type; else an integer's, as of packed elements and of types that the chip does not tell apart."""
        return name if name in self.chip.forms and bits_of(name) == bits else f"i{bits}"

    def _loaded(self, name: str, stored: str, n: int, registers: list[Element], narrow: bool) -> LaneVector:
        vector = vector_in(stored, n, registers, not narrow)
        if name != "i1":
            return vector
        loaded = LaneVector("i1", n, [])
        for chunk, piece in enumerate(vector.pieces):
            assert piece is not None
            elements = piece.elements
            if elements is None:
                assert piece.packed is not None
                elements = [e for r in piece.packed for e in self.chip.unpack(self.code, 8, r, min(4, vector.count(chunk)))]
            loaded.pieces.append(RegisterPiece(elements=[self.code("nei.i8", e, Const("i8", 0)) for e in elements]))
        return loaded

    # -- stores

    def store(self, op: lane.StoreOp) -> None:
        value = op.part("value")
        assert value is not None
        name = type_name(value.type)
        bits, width, accesses = bits_of("i8" if name == "i1" else name), op.width, _Accesses.of(op)
        for k in range(len(accesses.places)):
            predicate = self.guard(accesses.mask, k) if accesses.limit is None else None
            if isinstance(predicate, Const):
                continue
            if bits * width < 32:
                for i in range(width):
                    register = self._stored(value, name, k * width + i)
                    access = self._access(accesses, k, (register,), bits, i * bits // 8, predicate)
                    self._store(access)
                continue
            count = bits * width // (64 if bits == 64 else 32)
            registers = tuple(self._stored_register(value, name, k * count + i) for i in range(count))
            self._store(self._access(accesses, k, registers, max(bits, 32), 0, predicate))

    def _store(self, access: LaneAccess) -> None:
        for each in self.cluster.stores(access):
            declared.store(self.chip, self.code, each)

    def _stored(self, value: SSAValue, name: str, index: int) -> Element:
        """One element in its memory form: an i1 is a byte of 0 or 1."""
        element = self.values.element(value, index)
        if name != "i1":
            return element
        if isinstance(element, Const):
            return Const("i8", element.bits & 1)
        return self.code("select.i8", element, Const("i8", 1), Const("i8", 0))

    def _stored_register(self, value: SSAValue, name: str, index: int) -> Element:
        """One 32-bit (64-bit) register of a value in its memory form."""
        if name == "i1":
            return self.chip.pack(self.code, 8, [self._stored(value, name, index * 4 + i) for i in range(4)])
        return self.values.register(value, index * self.values.vectors[value].per_register)

    # -- asynchronous copies

    def copy_async(self, op: lane.CopyAsyncOp) -> None:
        when = self.guard(op.part("when"), 0)
        if isinstance(when, Const):
            return
        address, source, mask = address_of(op), op.part("source"), op.part("mask")
        assert source is not None
        base, limit = (None if v is None else self.values.element(v) for v in map(op.part, ("base", "limit")))
        facts = (op.buffer, op.word("cache"), op.word("eviction"), base, limit)
        size, sources = op.bytes, zip(op.source_slots, op.source_immediates, strict=True)
        for k, (place, (slot, immediate)) in enumerate(zip(address_slots(op), sources, strict=True)):
            if op.consecutive:
                to, offset, wave = self.wave_address(address, op.part("wave"), place)
            else:
                (to, offset), wave = self.address(address, place), None
            copy = AsyncCopy(size, to, offset, self.register(source, slot), immediate, self.guard(mask, k), when, *facts, wave)
            declared.act(self.chip, self.code, "asynchronous copies", partial(self.chip.copy_async, self.code, copy))

    # -- guards and addresses

    def guard(self, mask: SSAValue | None, k: int) -> Slice | Const | None:
        """The predicate of access `k`: None where it is always made, a constant where it never is."""
        if mask is None:
            return None
        element = self.values.element(mask, k if self.values.vectors[mask].n > 1 else 0)
        return None if isinstance(element, Const) and element.bits else element

    def address(self, addresses: SSAValue, place: tuple[int, int]) -> tuple[Slice, int]:
        """An access's address register and the constant on top; shared addresses give their constant part to the instruction."""
        slot, immediate = place
        base, offset = self.code.displacement(self.register(addresses, slot))
        return base, offset + immediate

    def wave_address(
        self, addresses: SSAValue, wave: SSAValue | None, place: tuple[int, int]
    ) -> tuple[Slice, int, Slice | None]:
        """An address equal in all lanes, the constant on top, and what those of a wave add; of a literal the latter alone."""
        more = None if wave is None else self.register(wave, 0)
        where = self.values.element(addresses, place[0])
        if more is not None and isinstance(where, Const):
            return more, where.bits + place[1], None
        return *self.address(addresses, place), more

    def register(self, value: SSAValue, index: int) -> Slice:
        """An element of an address as a register."""
        where = self.values.elements(value, index // CHUNK)[index % CHUNK]
        if isinstance(where, Slice):
            return where
        if self.chip.consecutive:  # which keeps what it has made
            return self.code.tuple([where], self.chip.forms[form_of(where.type)][0])
        register = self.code.new_register(form_of(where.type))
        self.chip.move(self.code, register, where)
        return register

    def packed_register(self, value: SSAValue, first: int) -> Slice:
        """The 32 bits of a value that begin with element `first`, as a register."""
        found = self.values.register(value, first)
        if isinstance(found, Slice):
            return found
        register = self.code.new_register("w32")
        self.chip.move(self.code, register, found)
        return register

    def _access(
        self, of: _Accesses, k: int, registers: tuple[Element, ...], bits: int, extra: int, predicate: Slice | None
    ) -> LaneAccess:
        base, limit = (None if v is None else self.values.element(v) for v in (of.base, of.limit))
        if base is None:
            address, immediate = self.address(of.address, of.places[k])
        else:  # such sums wrap at 32 bits, accesses do not: what is added stays in them
            slot, immediate = of.places[k]
            address = self.register(of.address, slot)
        return LaneAccess(
            registers, bits, address, immediate + extra, predicate, of.buffer, of.cache, of.eviction, of.volatile, of.space,
            base, limit, of.early,
        )


def _is_zero(fill: Element | None) -> bool:
    """Whether a fill is of no interest or zero in all bits."""
    return fill is None or (isinstance(fill, Const) and fill.bits == 0)
