"""Sharded inputs: of what all chips need, each part is on one chip from the beginning, which broadcasts it to the others.

Operands of products are divided by chunks of K, so that all links carry parts of one block of rows at a time and its last vectors
arrive together; anything else is on one chip as a whole. The chip with the fewest vectors gets the next part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.chunks import Activations, Chunks
from tilefw_spatial.partition.exchange import sources_of, transmissions
from tilefw_spatial.partition.filling import parts
from tilefw_spatial.partition.packing import Packing, packed_transfers, packing, unpacked
from tilefw_spatial.stream_program import AccessPattern, Array, LinkStreamOp, MatrixStreamOp, Product, StreamOp, StreamProgram


@dataclass(slots=True)
class Sharder:
    """The chips' stream programs as inputs are divided: `load` counts what each holds, in vectors of one byte; `sends` are in
    order."""

    programs: Sequence[StreamProgram]
    machine: Machine
    sends: list[LinkStreamOp] = field(default_factory=list)
    load: list[int] = field(init=False)
    _activations: list[Activations] = field(init=False)
    _parts: dict[int, _ShardedArray] = field(default_factory=dict)
    _ahead: dict[int, list[StreamOp]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.load = [0] * len(self.programs)
        self._activations = [Activations.of(program, self.machine) for program in self.programs]

    def shard(self, arrays: Sequence[Array]) -> None:
        """Shard an input that is identical on all chips; `arrays` has each chip's."""
        found = [chip.chunks(array) for chip, array in zip(self._activations, arrays, strict=True)]
        identical = [chunks for chunks in found if chunks is not None and chunks == found[0]]
        if len(identical) < len(arrays):
            self._whole(arrays)
        else:
            self._by_chunks(arrays, identical)

    def finish(self) -> None:
        """Let stream operations read the shards, after the operations that unpack them."""
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
        """The product with the shard that it reads in place of the whole array."""
        pattern = product.activations
        parts = self._parts.get(id(pattern.array))
        return product if parts is None else replace(product, activations=parts.pattern(pattern))

    def _next(self, vectors: int, dtype: str) -> int:
        """The chip that gets so many vectors."""
        owner = min(range(len(self.load)), key=lambda chip: self.load[chip])
        self.load[owner] += vectors * TYPES[dtype].nbytes
        return owner

    def _whole(self, arrays: Sequence[Array]) -> None:
        owner = self._next(arrays[0].vectors, arrays[0].dtype)
        for chip, array in enumerate(arrays):
            if chip != owner:
                array.role, array.transfers = "link", ()
        self._send(owner, arrays, arrays[0].vectors)

    def _by_chunks(self, arrays: Sequence[Array], identical: Sequence[Chunks]) -> None:
        """The chunk whose lanes are not all used goes first, so that it is unpacked while the rest arrives."""
        for array, own in zip(arrays, identical, strict=True):
            self._parts[id(array)] = _ShardedArray(array, own)
        chunks = identical[0]
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
        """One chunk with packed lanes, of which only the first vectors are sent."""
        owner = self._next(packed.sent, arrays[0].dtype)
        parts = self._part(arrays, owner, [number])
        for chip, (array, part) in enumerate(zip(arrays, parts, strict=True)):
            if chip == owner:
                part.transfers += tuple(added for transfer in part.transfers for added in packed_transfers(packed, transfer))
                continue
            part.role = "temp"  # stream operations make a part of it
            self._ahead[id(part)], temporaries = unpacked(packed, part, self.machine)
            self._parts[id(array)].arrays += temporaries
        self._send(owner, parts, packed.sent)

    def _send(self, owner: int, arrays: Sequence[Array], count: int) -> None:
        """The first `count` vectors from their owner to all others."""
        others = [(chip, array) for chip, array in enumerate(arrays) if chip != owner]
        self.sends += transmissions(owner, arrays[owner], *others, count=count)


@dataclass(slots=True)
class _ShardedArray:
    """One chip's array in shards: `positions` has for each chunk its shard and its first vector there."""

    array: Array
    chunks: Chunks
    arrays: list[Array] = field(default_factory=list)
    positions: dict[int, tuple[Array, int]] = field(default_factory=dict)

    def add(self, numbers: Sequence[int], role: str) -> Array:
        """A shard of some chunks."""
        name = f"{self.array.name}part{len(self.arrays)}"
        rows = self.chunks.rows
        transfers = parts(self.chunks.fillings, numbers) if role == "in" else ()
        part = replace(self.array, name=name, vectors=len(numbers) * rows, role=role, transfers=transfers)
        self.arrays.append(part)
        self.positions.update({number: (part, position * rows) for position, number in enumerate(numbers)})
        return part

    def pattern(self, pattern: AccessPattern) -> AccessPattern:
        """An access pattern within one chunk."""
        first = pattern.start if pattern.table is None else int(pattern.table[0])
        number = first // self.chunks.rows
        part, position = self.positions[number]
        moved = position - number * self.chunks.rows
        if pattern.table is not None:
            return replace(pattern, array=part, table=pattern.table + moved)
        return replace(pattern, array=part, start=pattern.start + moved)
