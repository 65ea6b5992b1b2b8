"""What all chips need alike, dealt out among them: each part is one chip's from the beginning, and sent to all others.

Operands of products are divided by chunks of K, so that all links carry parts of one block of rows at a time and its last vectors
arrive together; anything else is one chip's as a whole. Who has been given the least gets the next part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.chunks import Activations, Chunks
from tilefw_spatial.partition.filling import parts
from tilefw_spatial.partition.needs import sent, sources_of
from tilefw_spatial.partition.packing import Packing, carried, packing, taken_apart
from tilefw_spatial.stream_program import AccessPattern, Array, LinkStreamOp, MatrixStreamOp, Product, StreamOp, StreamProgram


@dataclass(slots=True)
class Dealer:
    """The chips' stream programs as inputs are divided: `load` counts what each has been given, in vectors of one byte; `sends` are
    in order."""

    programs: Sequence[StreamProgram]
    machine: Machine
    sends: list[LinkStreamOp] = field(default_factory=list)
    load: list[int] = field(init=False)
    _activations: list[Activations] = field(init=False)
    _parts: dict[int, _Parts] = field(default_factory=dict)
    _ahead: dict[int, list[StreamOp]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.load = [0] * len(self.programs)
        self._activations = [Activations.of(program, self.machine) for program in self.programs]

    def deal(self, arrays: Sequence[Array]) -> None:
        """Divide an input that all chips have alike, an array a chip."""
        found = [chip.chunks(array) for chip, array in zip(self._activations, arrays, strict=True)]
        alike = [chunks for chunks in found if chunks is not None and chunks == found[0]]
        if len(alike) < len(arrays):
            self._whole(arrays)
        else:
            self._by_chunks(arrays, alike)

    def finish(self) -> None:
        """Let stream operations read the parts, and make what must be made of them before."""
        for program in self.programs:
            program.arrays = [part for array in program.arrays for part in self._arrays_of(array)]
            done: set[int] = set()
            stream_ops: list[StreamOp] = []
            for stream_op in program.stream_ops:
                if isinstance(stream_op, MatrixStreamOp):
                    stream_op.products = [self._read(product) for product in stream_op.products]
                for array in sources_of(stream_op):
                    if id(array) not in done:
                        done.add(id(array))
                        stream_ops += self._ahead.get(id(array), ())
                stream_ops.append(stream_op)
            program.stream_ops = stream_ops

    def _arrays_of(self, array: Array) -> Sequence[Array]:
        parts = self._parts.get(id(array))
        return (array,) if parts is None else parts.arrays

    def _read(self, product: Product) -> Product:
        """The product with what it reads of a part in place of the whole."""
        pattern = product.activations
        parts = self._parts.get(id(pattern.array))
        return product if parts is None else replace(product, activations=parts.pattern(pattern))

    def _next(self, vectors: int, dtype: str) -> int:
        """Who gets so many vectors."""
        owner = min(range(len(self.load)), key=lambda chip: self.load[chip])
        self.load[owner] += vectors * TYPES[dtype].nbytes
        return owner

    def _whole(self, arrays: Sequence[Array]) -> None:
        owner = self._next(arrays[0].vectors, arrays[0].dtype)
        for chip, array in enumerate(arrays):
            if chip != owner:
                array.role, array.transfers = "link", ()
        self._send(owner, arrays, arrays[0].vectors)

    def _by_chunks(self, arrays: Sequence[Array], alike: Sequence[Chunks]) -> None:
        """The chunk whose lanes are not all used goes first: riders are to be taken apart while the rest arrives."""
        for array, own in zip(arrays, alike, strict=True):
            self._parts[id(array)] = _Parts(array, own)
        chunks = alike[0]
        last, full = len(chunks.used) - 1, list(range(len(chunks.used)))
        packed = packing(chunks.rows, chunks.used[last], self.machine.lanes) if chunks.used[last] else None
        if packed is not None:
            self._packed(arrays, last, packed)
            full.remove(last)
        owned: list[list[int]] = [[] for _ in self.programs]
        for number in full:
            owned[self._next(chunks.rows, arrays[0].dtype)].append(number)
        for owner, numbers in enumerate(owned):
            if numbers:
                self._send(owner, self._part(arrays, owner, numbers), len(numbers) * chunks.rows)

    def _part(self, arrays: Sequence[Array], owner: int, numbers: Sequence[int]) -> list[Array]:
        """Some chunks of each chip's array as arrays of their own, of which the host fills the owner's."""
        return [
            self._parts[id(array)].add(numbers, "in" if chip == owner else "link") for chip, array in enumerate(arrays)
        ]

    def _packed(self, arrays: Sequence[Array], number: int, packed: Packing) -> None:
        """One chunk of which only the carriers are sent."""
        owner = self._next(packed.carriers, arrays[0].dtype)
        parts = self._part(arrays, owner, [number])
        for chip, (array, part) in enumerate(zip(arrays, parts, strict=True)):
            if chip == owner:
                part.transfers += tuple(ride for transfer in part.transfers for ride in carried(packed, transfer))
                continue
            part.role = "temp"  # stream operations make a part of it
            self._ahead[id(part)], pieces = taken_apart(packed, part, self.machine)
            self._parts[id(array)].arrays += pieces
        self._send(owner, parts, packed.carriers)

    def _send(self, owner: int, arrays: Sequence[Array], count: int) -> None:
        """The first `count` vectors from their owner to all others."""
        others = [(chip, array) for chip, array in enumerate(arrays) if chip != owner]
        self.sends += sent(owner, arrays[owner], *others, count=count)


@dataclass(slots=True)
class _Parts:
    """One chip's array in parts: `places` has for each chunk its part and its first vector there."""

    array: Array
    chunks: Chunks
    arrays: list[Array] = field(default_factory=list)
    places: dict[int, tuple[Array, int]] = field(default_factory=dict)

    def add(self, numbers: Sequence[int], role: str) -> Array:
        """A part of some chunks."""
        name = f"{self.array.name}part{len(self.arrays)}"
        rows = self.chunks.rows
        transfers = parts(self.chunks.fillings, numbers) if role == "in" else ()
        part = replace(self.array, name=name, vectors=len(numbers) * rows, role=role, transfers=transfers)
        self.arrays.append(part)
        self.places.update({number: (part, place * rows) for place, number in enumerate(numbers)})
        return part

    def pattern(self, pattern: AccessPattern) -> AccessPattern:
        """An access pattern within one chunk."""
        first = pattern.start if pattern.table is None else int(pattern.table[0])
        number = first // self.chunks.rows
        part, place = self.places[number]
        moved = place - number * self.chunks.rows
        if pattern.table is not None:
            return replace(pattern, array=part, table=pattern.table + moved)
        return replace(pattern, array=part, start=pattern.start + moved)
