"""Which arrays can be divided by chunks of their lanes: operands of products, whose vectors of one part of K follow one another.

No sweep then reads two chunks in one walk, so that each can lie in an array of its own and be another chip's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.filling import Filling, fillings
from tilefw_spatial.schedule.runs import runs
from tilefw_spatial.sweep import Array, MatrixSweep, Product, Work, arrays_of


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

    products: dict[int, list[tuple[MatrixSweep, Product]]]
    others: set[int]
    machine: Machine

    @staticmethod
    def of(work: Work, machine: Machine) -> Activations:
        """Those of all of a chip's sweeps."""
        found = Activations({}, set(), machine)
        for sweep in work.sweeps:
            if isinstance(sweep, MatrixSweep):
                for product in sweep.products:
                    found.products.setdefault(id(product.activations.array), []).append((sweep, product))
                    found.others.add(id(product.weights))
            else:
                found.others.update(id(array) for array in arrays_of(sweep))
        return found

    def chunks(self, array: Array) -> Chunks | None:
        """How an array's chunks are used; None where it cannot be divided by them."""
        found = fillings(array, self.machine.lanes)
        if found is None or id(array) in self.others or id(array) not in self.products:
            return None
        rows = found[0].rows.extent
        used = [0] * (array.vectors // rows)
        for sweep, product in self.products[id(array)]:
            bounds = [run.bounds() for run in runs((sweep.rows,), product.activations)]
            chunk = min(low for low, _ in bounds) // rows
            if max(high for _, high in bounds) // rows != chunk:
                return None
            used[chunk] = max(used[chunk], product.half * self.machine.depth(sweep.dtype) + product.depth)
        return Chunks(rows, tuple(used), found)
