"""Which arrays can be divided by chunks of their lanes: operands of products, whose vectors of one part of K follow one another.

No stream operation then reads two chunks by one access pattern, so that each can be an array of its own, on another chip.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.filling import Filling, fillings
from tilefw_spatial.schedule.runs import runs
from tilefw_spatial.stream_program import Array, MatrixStreamOp, Product, StreamProgram, arrays_of


@dataclass(frozen=True, slots=True)
class Chunks:
    """An array in chunks of `rows` vectors; of each chunk the lanes up to `used` are counted by products. `fillings` is what the
    host puts there."""

    rows: int
    used: tuple[int, ...]
    fillings: tuple[Filling, ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Activations:
    """What one chip's products take as activations; arrays of `others`, by identity, are read by something else as well."""

    products: dict[int, list[tuple[MatrixStreamOp, Product]]]
    others: set[int]
    machine: Machine

    @staticmethod
    def of(program: StreamProgram, machine: Machine) -> Activations:
        """Those of all of a chip's stream operations."""
        found = Activations({}, set(), machine)
        for stream_op in program.stream_ops:
            if isinstance(stream_op, MatrixStreamOp):
                for product in stream_op.products:
                    found.products.setdefault(id(product.activations.array), []).append((stream_op, product))
                    found.others.add(id(product.weights))
            else:
                found.others.update(id(array) for array in arrays_of(stream_op))
        return found

    def chunks(self, array: Array) -> Chunks | None:
        """How an array's chunks are used; None where it cannot be divided by them."""
        found = fillings(array, self.machine.lanes)
        if found is None or id(array) in self.others or id(array) not in self.products:
            return None
        rows = found[0].rows.extent
        used = [0] * (array.vectors // rows)
        for stream_op, product in self.products[id(array)]:
            bounds = [run.bounds() for run in runs((stream_op.rows,), product.activations)]
            chunk = min(low for low, _ in bounds) // rows
            if max(high for _, high in bounds) // rows != chunk:
                return None
            used[chunk] = max(used[chunk], product.half * self.machine.depth(stream_op.dtype) + product.depth)
        return Chunks(rows, tuple(used), found)
