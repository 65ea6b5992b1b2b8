"""Selection of values: registers for a chunk of a lane value are made when something asks for them, depth first.

That selects the chain behind a chunk for its elements only, so that a long chain over many elements never holds whole intermediate
vectors (a gelu over 64 elements: 72 registers instead of 192). What nothing asks for is never selected. Elements that only move
(picks, joins, splats) cost nothing; packed registers that move whole stay packed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from tilefw.api.errors import IRError
from tilefw.api.integers import ceil_div
from tilefw.machine.inst import Slice
from tilefw.simt import lane
from tilefw.simt.chip import LaneChip
from tilefw.simt.lane.promises import promise_of
from tilefw.simt.lane.registers import CHUNK, LaneVector, RegisterPiece, bits_of, size_of, type_name
from tilefw.simt.select.code import Code, Const, Element, PlacedConst
from tilefw.simt.select.literals import float_bits
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.text.source_location import place_of

Needs = list[tuple[SSAValue, int]]


class Values:
    """The registers of one function's lane values; `vectors` maps each to what is known of it."""

    def __init__(self, code: Code, chip: LaneChip) -> None:
        self.code = code
        self.chip = chip
        self.vectors: dict[SSAValue, LaneVector] = {}

    def define(self, value: SSAValue, *elements: Element) -> None:
        """A value that stands in these single elements."""
        self.vectors[value] = LaneVector(type_name(value.type), len(elements), [RegisterPiece(elements=list(elements))])

    def postpone(self, op: Operation) -> None:
        """Select a pure op when its result is asked for."""
        result = op.results[0]
        n = size_of(result.type)
        vector = LaneVector(type_name(result.type), n, [None] * ceil_div(n, CHUNK), op)
        origins = _ORIGINS.get(type(op))
        if origins is not None:
            vector.origins = origins(op, n)
        self.vectors[result] = vector

    # -- what others ask for

    def piece(self, value: SSAValue, chunk: int) -> RegisterPiece:
        """The registers of one chunk of a value, selecting what is missing behind it, in order, without recursion."""
        found = self.vectors[value].pieces[chunk]
        if found is not None:
            return found
        stack = [(value, chunk)]
        while stack:
            value_now, chunk_now = stack[-1]
            vector = self.vectors[value_now]
            if vector.pieces[chunk_now] is not None:
                stack.pop()
                continue
            missing = [(v, c) for v, c in self.needs(vector, chunk_now) if self.vectors[v].pieces[c] is None]
            if missing:
                stack += reversed(missing)  # the first operand first: the others of a running sum end with it
                continue
            vector.pieces[chunk_now] = self.make(vector, chunk_now)
            stack.pop()
        found = self.vectors[value].pieces[chunk]
        assert found is not None
        return found

    def element(self, value: SSAValue, index: int = 0) -> Element:
        """One element of a value."""
        return self.elements(value, index // CHUNK)[index % CHUNK]

    def elements(self, value: SSAValue, chunk: int) -> Sequence[Element]:
        """A chunk as single elements.

        Taking apart is value-numbered and not kept in the piece: what a loop's body or a branch took apart is not there, or no
        longer the same, after it.
        """
        piece = self.piece(value, chunk)
        if piece.elements is not None:
            return piece.elements
        assert piece.packed is not None
        vector = self.vectors[value]
        bits, per = bits_of(vector.type), vector.per_register
        count = vector.count(chunk)
        return [e for k, r in enumerate(piece.packed) for e in self.apart(bits, r, min(per, count - k * per))]

    def apart(self, bits: int, register: Element, count: int) -> Sequence[Element]:
        """A packed register's elements. Packed anew with others, they may be taken from where they are."""
        elements = self.chip.unpack(self.code, bits, register, count)
        if isinstance(register, Slice):
            self.code.parts.update(((e, bits), (register, i)) for i, e in enumerate(elements) if isinstance(e, Slice))
        return elements

    def packed(self, value: SSAValue, chunk: int) -> Sequence[Element]:
        """A chunk as registers of 32 bits (64 for wide elements)."""
        piece = self.piece(value, chunk)
        if piece.packed is not None:
            return piece.packed
        assert piece.elements is not None
        vector = self.vectors[value]
        bits, per = bits_of(vector.type), vector.per_register
        if per == 1:
            return piece.elements
        return [self.chip.pack(self.code, bits, piece.elements[k : k + per]) for k in range(0, len(piece.elements), per)]

    def register(self, value: SSAValue, first: int) -> Element:
        """The packed register that begins with element `first`."""
        return self.packed(value, first // CHUNK)[first % CHUNK // self.vectors[value].per_register]

    def all_elements(self, value: SSAValue) -> list[Element]:
        """All single elements of a value."""
        return [e for chunk in range(len(self.vectors[value].pieces)) for e in self.elements(value, chunk)]

    def all_packed(self, value: SSAValue) -> list[Element]:
        """All packed registers of a value."""
        return [r for chunk in range(len(self.vectors[value].pieces)) for r in self.packed(value, chunk)]

    def force(self, value: SSAValue) -> None:
        """Select all of a value here."""
        for chunk in range(len(self.vectors[value].pieces)):
            self.piece(value, chunk)

    def forget_predicates(self, kept: Container[SSAValue]) -> None:
        """Compare again where masks of indices are asked for next, but for those that are `kept`.

        After a loop: few chips have the predicates to hold them all through it, and indices are there anyway or small.
        """
        for value, vector in self.vectors.items():
            if vector.type != "i1" or value in kept:
                continue
            row = vector.op if isinstance(vector.op, ElementwiseOp) else None
            if vector.origins or (row is not None and not any(types.is_float(operand.type) for operand in row.operands)):
                vector.pieces = [None] * len(vector.pieces)
        cls = self.chip.forms["i1"][0]
        scope = self.code.scopes[-1]
        for key, made in list(scope.items()):
            if any(isinstance(m, Slice) and m.reg.cls == cls for m in (made if isinstance(made, tuple) else (made,))):
                del scope[key]

    # -- how a chunk is made

    def needs(self, vector: LaneVector, chunk: int) -> Needs:
        """What must be there before a chunk of a vector can be made."""
        op = vector.op
        assert op is not None
        if vector.origins:
            return list({(v, i // CHUNK): None for v, i in vector.origins[chunk * CHUNK : (chunk + 1) * CHUNK]})
        if isinstance(op, lane.ShuffleOp) and len(op.operands) == 2:
            lanes = op.operands[1]
            return [(op.operands[0], chunk), (lanes, chunk if self.vectors[lanes].n > 1 else 0)]
        return [(v, chunk) for v in op._operands]

    def make(self, vector: LaneVector, chunk: int) -> RegisterPiece:
        """Select one chunk of a postponed vector, whose needs are met."""
        op: Any = vector.op
        self.code.insert_at(op)
        if vector.origins:
            return self._moved(vector, chunk)
        return _MAKERS.get(type(op), Values._elementwise)(self, op, vector, chunk)

    def _moved(self, vector: LaneVector, chunk: int) -> RegisterPiece:
        origins = vector.origins[chunk * CHUNK : (chunk + 1) * CHUNK]
        per = vector.per_register
        if per > 1 and len(origins) % per == 0:
            registers = [self._whole_register(origins[k : k + per]) for k in range(0, len(origins), per)]
            if None not in registers:
                return RegisterPiece(packed=registers)  # type: ignore[arg-type]
        return RegisterPiece(elements=[self.elements(v, i // CHUNK)[i % CHUNK] for v, i in origins])

    def _whole_register(self, origins: Sequence[tuple[SSAValue, int]]) -> Element | None:
        """The packed register that holds just these elements, where there is one."""
        value, first = origins[0]
        packed = self.piece(value, first // CHUNK).packed
        together = all(v is value and i == first + k for k, (v, i) in enumerate(origins))
        if packed is None or first % len(origins) or not together:
            return None
        return packed[first % CHUNK // len(origins)]

    def _constant(self, op: lane.ConstantOp, vector: LaneVector, chunk: int) -> RegisterPiece:
        value = op.value
        bits = float_bits(value, vector.type) if isinstance(value, float) else _wrap(value, vector.type)
        elements: list[Element] = [Const(vector.type, bits)] * vector.count(chunk)
        return RegisterPiece(elements=elements)

    def _constants(self, op: lane.ConstantsOp, vector: LaneVector, chunk: int) -> RegisterPiece:
        values = op.values[chunk * CHUNK : (chunk + 1) * CHUNK]
        elements: list[Element] = [Const(vector.type, _wrap(v, vector.type)) for v in values]
        return RegisterPiece(elements=elements)

    def _uniform(self, op: lane.UniformOp, vector: LaneVector, chunk: int) -> RegisterPiece:
        element = self.elements(op.operands[0], 0)[0]
        if not isinstance(element, Const):
            element = self.chip.uniform(self.code, self.chip.form(vector.type, True), element)
        return RegisterPiece(elements=[element])

    def _alloc(self, op: lane.AllocOp, vector: LaneVector, chunk: int) -> RegisterPiece:
        if op.offset is None:
            raise IRError(
                f"{op.label} has no offset in shared memory", "TFW0402", place_of(op), help="run the pass place-shared first"
            )
        place = self.code.displaced(self.chip.shared_base(self.code), op.offset)
        if isinstance(place, Const) and self.chip.description.copies_consecutive:  # which need it without what lanes add
            place = PlacedConst(*place)
        return RegisterPiece(elements=[place])

    def _shuffle(self, op: lane.ShuffleOp, vector: LaneVector, chunk: int) -> RegisterPiece:
        amount, per, count = op.amount, vector.per_register, vector.count(chunk)
        if amount is not None:
            lanes: Sequence[Element] = [self.code.i32(amount)] * count
        else:
            found = self.elements(op.operands[1], chunk if self.vectors[op.operands[1]].n > 1 else 0)
            lanes = list(found) * count if len(found) == 1 else found
        source, mode = op.operands[0], op.mode
        if per > 1 and all(lanes[i] == lanes[i - i % per] for i in range(count)):
            registers = self.packed(source, chunk)
            return RegisterPiece(packed=[self._from_lane(mode, r, lanes[k * per], 32) for k, r in enumerate(registers)])
        elements = zip(self.elements(source, chunk), lanes, strict=True)
        return RegisterPiece(elements=[self._from_lane(mode, e, l, bits_of(vector.type)) for e, l in elements])

    def _from_lane(self, mode: str, element: Element, lanes: Element, bits: int) -> Element:
        """One register of another lane; predicates and narrow elements go in a word, wide ones as two."""
        code, chip = self.code, self.chip
        if isinstance(element, Const):
            return element
        if bits == 32:
            return chip.shuffle(code, mode, element, lanes)
        if bits == 64:
            return chip.pack(code, 32, [chip.shuffle(code, mode, half, lanes) for half in chip.unpack(code, 32, element, 2)])
        if bits == 1:
            word = code("select.i32", element, code.i32(1), code.i32(0))
            return code("nei.i32", chip.shuffle(code, mode, word, lanes), code.i32(0))
        return chip.unpack(code, bits, chip.shuffle(code, mode, chip.pack(code, bits, [element]), lanes), 1)[0]

    def _elementwise(self, op: ElementwiseOp, vector: LaneVector, chunk: int) -> RegisterPiece:
        operands, row = op._operands, op.row
        source = self.vectors[operands[row.typed_by]]
        name = row.name + ("_rtz" if op.rounding == "rtz" else "")
        if name == "ptr_to_int" or (name in ("bitcast", "int_to_ptr") and source.per_register == vector.per_register):
            return self._renamed(operands[0], vector, chunk)
        key = f"{name}.{source.type}.{vector.type}" if row.is_cast else f"{name}.{source.type}"
        count, code, per = vector.count(chunk), self.code, source.per_register
        packs = row.result == "same" and "bool" not in row.operands
        if packs and per > 1 and count % per == 0:
            pairs = f"{key}x{per}"
            if pairs in self.chip.rules:
                columns = [self.packed(v, chunk) for v in operands]
                return RegisterPiece(packed=[code(pairs, *registers) for registers in zip(*columns, strict=True)])
        columns = [self.elements(v, chunk) for v in operands]
        to = vector.per_register
        if (row.result == "same" or row.is_cast) and per == to == 1 and count % 2 == 0 and f"{key}x2" in self.chip.rules:
            return RegisterPiece(elements=self._by_pairs(key, columns))
        if row.is_cast and to > 1 and count % to == 0 and f"{key}x{to}" in self.chip.rules:
            return RegisterPiece(packed=[code(f"{key}x{to}", *columns[0][i : i + to]) for i in range(0, count, to)])
        with code.promising(promise_of(op)):
            return RegisterPiece(elements=[code(key, *elements) for elements in zip(*columns, strict=True)])

    def _by_pairs(self, key: str, columns: Sequence[Sequence[Element]]) -> list[Element]:
        """Elements of whole registers two at a time, where the chip has an instruction for those that stand so."""
        found: list[Element] = []
        for i in range(0, len(columns[0]), 2):
            both = self.code(f"{key}x2", *(element for column in columns for element in column[i : i + 2]))
            found += both or [self.code(key, *(column[k] for column in columns)) for k in (i, i + 1)]
        return found

    def _renamed(self, source: SSAValue, vector: LaneVector, chunk: int) -> RegisterPiece:
        """The same registers under another type of the same width."""
        piece = self.piece(source, chunk)

        def retype(elements: Sequence[Element] | None) -> list[Element] | None:
            return None if elements is None else [Const(vector.type, e.bits) if isinstance(e, Const) else e for e in elements]

        return RegisterPiece(retype(piece.elements), retype(piece.packed))


def _wrap(value: int | float, name: str) -> int:
    return int(value) & ((1 << bits_of(name)) - 1)


def _joined_elements(op: Operation, n: int) -> Sequence[tuple[SSAValue, int]]:
    return [(v, i) for v in op.operands for i in range(size_of(v.type))]


_ORIGINS: dict[type, Callable[[Any, int], Sequence[tuple[SSAValue, int]]]] = {
    lane.SplatOp: lambda op, n: [(op.source, 0)] * n,
    lane.PickOp: lambda op, n: [(op.operands[0], i) for i in op.indices],
    lane.JoinOp: _joined_elements,
}
_MAKERS: dict[type, Callable[[Values, Any, LaneVector, int], RegisterPiece]] = {
    lane.ConstantOp: Values._constant, lane.ConstantsOp: Values._constants, lane.UniformOp: Values._uniform,
    lane.AllocOp: Values._alloc, lane.ShuffleOp: Values._shuffle,
}
