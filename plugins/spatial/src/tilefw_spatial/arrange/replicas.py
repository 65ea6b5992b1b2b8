"""Second copies of arrays that the host fills, for stream operations that could run at the same time if they did not read one
array.

A slice reads one row a cycle, so that two stream operations that read one array alternate. Products of two planes and drains of two
sides need not: each second of them reads a replica, an array of its own with the same contents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tilefw_spatial.isa import TYPES
from tilefw_spatial.stream_program import AccessPattern, Array, MatrixStreamOp, VectorStreamOp

MOST = 16 << 20
"""Bytes of second copies in all, the compiler's own limit: they are for arrays that are read again and again, not for large
ones."""


@dataclass(slots=True)
class Replicas:
    """The replicas of one launch's arrays."""

    lanes: int  # of the machine's vectors
    arrays: list[Array] = field(default_factory=list)
    _of: dict[Array, Array] = field(default_factory=dict)
    _used: int = 0

    def give(self, stream_ops: Iterable[VectorStreamOp | MatrixStreamOp]) -> None:
        """Let these stream operations read replicas."""
        for stream_op in stream_ops:
            if isinstance(stream_op, VectorStreamOp):
                for number in range(len(stream_op.drains), len(stream_op.reads)):
                    read = stream_op.reads[number]
                    stream_op.reads[number] = replace(read, pattern=self._pattern(read.pattern))
            else:
                stream_op.products = [replace(one, activations=self._pattern(one.activations)) for one in stream_op.products]

    def _pattern(self, pattern: AccessPattern) -> AccessPattern:
        array = pattern.array
        if array.role not in ("in", "const"):
            return pattern
        replica = self._of.get(array)
        if replica is None:
            size = array.vectors * self.lanes * TYPES[array.dtype].nbytes
            if self._used + size > MOST:
                return pattern
            self._used += size
            replica = self._of[array] = replace(array, name=f"{array.name}'")
            self.arrays.append(replica)
        return replace(pattern, array=replica)
