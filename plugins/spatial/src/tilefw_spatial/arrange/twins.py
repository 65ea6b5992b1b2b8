"""Second copies of what the host fills, for sweeps that would run at the same time but for reading one array.

A slice reads one row a cycle, so that two sweeps that walk one array take turns. Products of two planes and drains of two sides
need not: each second of them reads a twin, an array of its own with the same contents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tilefw_spatial.isa import TYPES
from tilefw_spatial.sweep import Array, MatrixSweep, VectorSweep, Walk

MOST = 16 << 20
"""Bytes of second copies in all, the compiler's own limit: they are for what sweeps walk again and again, not for large arrays."""


@dataclass(slots=True)
class Twins:
    """The twins of one launch's arrays."""

    lanes: int  # of the machine's vectors
    arrays: list[Array] = field(default_factory=list)
    _of: dict[Array, Array] = field(default_factory=dict)
    _used: int = 0

    def give(self, sweeps: Iterable[VectorSweep | MatrixSweep]) -> None:
        """Let these sweeps read twins."""
        for sweep in sweeps:
            if isinstance(sweep, VectorSweep):
                for number in range(len(sweep.drains), len(sweep.reads)):
                    read = sweep.reads[number]
                    sweep.reads[number] = replace(read, walk=self._walk(read.walk))
            else:
                sweep.products = [replace(one, activations=self._walk(one.activations)) for one in sweep.products]

    def _walk(self, walk: Walk) -> Walk:
        array = walk.array
        if array.role not in ("in", "const"):
            return walk
        twin = self._of.get(array)
        if twin is None:
            size = array.vectors * self.lanes * TYPES[array.dtype].nbytes
            if self._used + size > MOST:
                return walk
            self._used += size
            twin = self._of[array] = replace(array, name=f"{array.name}'")
            self.arrays.append(twin)
        return replace(walk, array=twin)
