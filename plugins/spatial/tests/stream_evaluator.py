"""What a stream program computes, operation by operation in NumPy: arrays as [vectors, 320], the host's buffers by number of the
parameter.

Vectors that nothing has written hold random bits, and so do the lanes that a transfer does not fill where its fill is zero: what
must not reach a result shows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.table import OPS
from tilefw_spatial.isa.types import TYPES, reinterpret
from tilefw_spatial.program import Transfer
from tilefw_spatial.stream_program import (
    AccessPattern,
    Array,
    LaneStreamOp,
    MatrixStreamOp,
    OperandSource,
    StreamProgram,
    VectorStreamOp,
)

LANES = 320
_DEPTH = {"int8": 320}


class StreamEvaluator:
    """Runs all stream operations in their order; `buffers` are flat arrays or their bytes, changed in place; a parameter points
    `offsets` bytes behind the begin of its own."""

    def __init__(
        self, stream_program: StreamProgram, buffers: Mapping[int, np.ndarray], offsets: Mapping[int, int] | None = None,
        seed: int = 0,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._buffers, self._offsets = buffers, offsets or {}
        self.memory: dict[Array, np.ndarray] = {array: self._initial(array) for array in stream_program.arrays}
        self._sums: dict[MatrixStreamOp, np.ndarray] = {}
        self.points = 0
        for stream_op in stream_program.stream_ops:
            self._run(stream_op)
        for array in sorted(stream_program.arrays, key=lambda array: array.rank):
            if array.role == "out":
                for transfer in array.transfers:
                    host, vector, lane = cells(transfer)
                    elements, first = self._elements(transfer, array)
                    elements[host + first] = self.memory[array][vector, lane]

    def _initial(self, array: Array) -> np.ndarray:
        dtype = TYPES[array.dtype].numpy
        if array.role == "const":
            assert array.data is not None and array.data.shape == (array.vectors, LANES)
            return np.array(array.data).view(dtype) if array.data.dtype.itemsize == dtype.itemsize else array.data.astype(dtype)
        raw = self._rng.integers(0, 256, (array.vectors, LANES, dtype.itemsize), np.uint8)
        vectors = np.ascontiguousarray(raw % 2 if array.dtype == "int1" else raw).view(dtype)[..., 0]
        if array.role == "in":
            assert len({transfer.fill for transfer in array.transfers}) == 1
            if array.transfers[0].fill:
                vectors[:] = immediate(array.dtype, array.transfers[0].fill)[0, 0]
            elif any(_masked(transfer) for transfer in array.transfers):
                vectors[:] = np.zeros(1, dtype)
            for transfer in array.transfers:
                host, vector, lane = cells(transfer)
                elements, first = self._elements(transfer, array)
                vectors[vector, lane] = elements[host + first]
        return vectors

    def _elements(self, transfer: Transfer, array: Array) -> tuple[np.ndarray, int]:
        """The host's buffer as elements of the array's type, and which of them the parameter points to."""
        dtype, raw = TYPES[array.dtype].numpy, self._buffers[transfer.parameter].view(np.uint8)
        first, begin = divmod(self._offsets.get(transfer.parameter, 0), dtype.itemsize)
        return raw[begin : begin + (raw.size - begin) // dtype.itemsize * dtype.itemsize].view(dtype), first

    def _run(self, stream_op: VectorStreamOp | MatrixStreamOp | LaneStreamOp) -> None:
        match stream_op:
            case VectorStreamOp():
                self._vector(stream_op)
            case MatrixStreamOp():
                self._matrix(stream_op)
            case LaneStreamOp():
                self._lanes(stream_op)

    def _vector(self, stream_op: VectorStreamOp) -> None:
        assert all(sum(1 for s in stream_op.steps if s.alu == step.alu) == 1 for step in stream_op.steps)
        points = int(np.prod(stream_op.domain, dtype=np.int64))
        self.points += points
        streams = []
        for number, read in enumerate(stream_op.reads):
            if number < len(stream_op.drains):
                streams.append(self._sums[stream_op.drains[number]])
            else:
                assert not any(write.pattern.array is read.pattern.array for write in stream_op.writes)
                streams.append(self.memory[read.pattern.array][numbers(read.pattern, stream_op.domain)])
        made: dict[int, np.ndarray] = {}
        for number, step in sorted(enumerate(stream_op.steps), key=lambda pair: pair[1].time):
            operands = [self._operand(source, step.dtype, step.op, streams, made) for source in step.operands]
            given = [operand for operand in operands if operand is not None]
            result = meaning(step.op, step.dtype, given, step.every)
            count = points // step.every
            made[number] = np.ascontiguousarray(np.broadcast_to(result, (count, LANES)))
        for write in stream_op.writes:
            every = stream_op.steps[write.step].every
            domain = stream_op.domain if every == 1 else stream_op.domain[:-1]
            assert every in (1, stream_op.domain[-1])
            target = self.memory[write.pattern.array]
            target[numbers(write.pattern, domain)] = reinterpret(made[write.step], write.pattern.array.dtype)

    def _operand(self, source: OperandSource, dtype: str, op: str, streams: list, made: dict[int, np.ndarray]) -> np.ndarray | None:
        if source.kind == "none":
            return None
        if source.kind == "imm":
            found = immediate(dtype, source.index)
        else:
            found = (streams if source.kind == "stream" else made)[source.index]
            mask = OPS[op][0].name == "SELM" and source is not None and found.dtype == np.bool_
            found = found if mask else reinterpret(found, dtype)
        return modified(found, source.negate, source.absolute)

    @np.errstate(all="ignore")  # what lanes beyond the weights' hold is anybody's number
    def _matrix(self, stream_op: MatrixStreamOp) -> None:
        whole = TYPES["int32" if stream_op.dtype == "int8" else "fp32"].numpy
        total = None
        for part in stream_op.products:
            rows = self.memory[part.activations.array][numbers(part.activations, (stream_op.rows,))]
            depth = _DEPTH.get(stream_op.dtype, 160)
            assert 0 < part.depth <= depth and part.weights.groups == 16 // TYPES[stream_op.dtype].nbytes
            assert part.first % part.weights.groups == 0
            a = rows[:, part.half * depth : part.half * depth + part.depth]
            b = self.memory[part.weights][part.first : part.first + part.depth]
            if stream_op.dtype == "int8":
                found = a.astype(np.int32) @ b.astype(np.int32)
            else:
                found = (a.astype(np.float64) @ b.astype(np.float64)).astype(whole)
            total = found if total is None else total + found
        assert total is not None
        self._sums[stream_op] = total

    def _lanes(self, stream_op: LaneStreamOp) -> None:
        rows = self.memory[stream_op.read.array][numbers(stream_op.read, stream_op.domain)]
        assert stream_op.op == "PRM"
        source = np.array(stream_op.map)
        found = np.where(source >= 0, rows[:, source], rows.dtype.type(0))
        self.memory[stream_op.write.array][numbers(stream_op.write, stream_op.domain)] = found


def numbers(pattern: AccessPattern, domain: tuple[int, ...]) -> np.ndarray:
    """The vectors of an access pattern at each point."""
    if pattern.table is not None:
        assert len(pattern.table) == int(np.prod(domain))
        found = pattern.table
    else:
        assert len(pattern.strides) == len(domain)
        index = np.indices(domain).reshape(len(domain), int(np.prod(domain)))
        found = pattern.start + sum(
            (index[n] * stride for n, stride in enumerate(pattern.strides)), np.zeros(index.shape[1], np.int64)
        )
    assert found.min() >= 0 and found.max() < pattern.array.vectors, (pattern.array.name, found.max(), pattern.array.vectors)
    return found


def _masked(transfer: Transfer) -> bool:
    return transfer.explicit is not None or any(axis.valid is not None for axis in transfer.axes)


def cells(transfer: Transfer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Host element, vector and lane of everything that a transfer moves."""
    if transfer.explicit is not None:
        host, vector, lane = transfer.explicit.T
        return host, vector, lane
    shape = [axis.extent for axis in transfer.axes]
    host, vector, position = (np.full(shape, start) for start in (transfer.base, 0, 0))
    valid = np.ones(shape, bool)
    for number, axis in enumerate(transfer.axes):
        along = [-1 if n == number else 1 for n in range(len(shape))]
        host = host + axis.offsets.reshape(along)
        vector = vector + (np.arange(axis.extent) * axis.vector).reshape(along)
        position = position + (np.arange(axis.extent) * axis.lane).reshape(along)
        if axis.valid is not None:
            valid = valid & axis.valid.reshape(along)
    vector = vector + position // transfer.lanes * transfer.chunk
    return host[valid], vector[valid], (position % transfer.lanes)[valid]
