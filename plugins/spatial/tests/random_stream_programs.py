"""Random stream programs for the scheduler: operations over random loop nests that read what earlier ones wrote, and products of
matrices."""

from __future__ import annotations

import random

import numpy as np

from tilefw_spatial.isa import TYPES, latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import AxisMap, Transfer
from tilefw_spatial.stream_program import (
    AccessPattern,
    AluStep,
    Array,
    LaneStreamOp,
    MatrixStreamOp,
    OperandSource,
    Product,
    Read,
    StreamOp,
    StreamProgram,
    VectorStreamOp,
    Write,
)

LANES = 320
_OPS = ("ADD", "SUB", "MUL", "LOGIC.xor", "MIN")


class Maker:
    """Grows one stream program."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self.machine, self.rng = machine, random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.stream_program = StreamProgram()
        self.buffers: dict[int, np.ndarray] = {}
        self.readable: list[Array] = []

    def make(self, stream_ops: int, recent: int | None = None) -> StreamProgram:
        for dtype in ("int32", "int8", "int16", "int32"):
            self.readable.append(self._input(dtype, self.rng.randint(1, 14)))
        for _ in range(stream_ops):
            made = self.rng.choices((self._stream, self._product, self._lanes), (6, 2, 1))[0]
            made()
            if recent is not None:
                self._forget(recent)
        for array in self.stream_program.arrays:
            if array.role == "temp" and (self.rng.random() < 0.7 if recent is None else array in self.readable):
                array.role, array.transfers = "out", (self._transfer(array),)
        return self.stream_program

    def _forget(self, recent: int) -> None:
        """Only inputs and some arrays of late are read from now on."""
        made = [array for array in self.readable if array.role == "temp"]
        self.readable = [array for array in self.readable if array.role == "in"] + made[-recent:]

    # --- arrays --------------------------------------------------------------------------------------------------------

    def _input(self, dtype: str, vectors: int, groups: int = 1, side: str = "") -> Array:
        array = self._array("in", dtype, vectors, groups, side)
        array.transfers = (self._transfer(array),)
        values = self.numpy.integers(-4, 5, vectors * LANES)
        self.buffers[array.transfers[0].parameter] = values.astype(TYPES[dtype].numpy)
        return array

    def _array(self, role: str, dtype: str, vectors: int, groups: int = 1, side: str = "") -> Array:
        array = Array(f"{role}{len(self.stream_program.arrays)}", dtype, vectors, role, groups, side)
        self.stream_program.arrays.append(array)
        return array

    def _transfer(self, array: Array) -> Transfer:
        """All of the array from, or to, a buffer of its own."""
        parameter = len(self.buffers)
        size = array.vectors * LANES
        self.buffers[parameter] = np.zeros(size, TYPES[array.dtype].numpy)
        return Transfer(parameter, 0, (AxisMap(size, np.arange(size), 0, 1),), LANES, 1)

    def _pattern(self, array: Array, domain: tuple[int, ...]) -> AccessPattern:
        points = int(np.prod(domain))
        if self.rng.random() < 0.4:
            return AccessPattern(array, 0, (), self.numpy.integers(0, array.vectors, points))
        start, strides = self.rng.randrange(array.vectors), []
        low = high = start
        for extent in domain:
            reaches = [stride * (extent - 1) for stride in range(-4, 5)]
            reach = self.rng.choice([r for r in reaches if low + min(0, r) >= 0 and high + max(0, r) < array.vectors])
            strides.append(reach // (extent - 1) if extent > 1 else self.rng.randint(-4, 4))
            low, high = low + min(0, reach), high + max(0, reach)
        return AccessPattern(array, start, tuple(strides))

    def _whole(self, array: Array, domain: tuple[int, ...]) -> AccessPattern:
        """Each vector of an array once, in order or not."""
        if self.rng.random() < 0.5:
            return AccessPattern(array, 0, (), self.numpy.permutation(array.vectors))
        strides = tuple(int(np.prod(domain[n + 1 :], dtype=np.int64)) for n in range(len(domain)))
        return AccessPattern(array, 0, strides)

    # --- stream operations --------------------------------------------------------------------------------------------------------

    def _domain(self) -> tuple[int, ...]:
        return tuple(self.rng.randint(1, 5) for _ in range(self.rng.randint(1, 3)))

    def _stream(self, drains: tuple[MatrixStreamOp, ...] = (), domain: tuple[int, ...] = ()) -> None:
        stream_op = VectorStreamOp(domain or self._domain(), [], [], [], drains)
        for number, drained in enumerate(drains):
            stream_op.reads.append(Read(AccessPattern(self.readable[0], 0, (0,)), 4 * number))
            whole = "int32" if drained.dtype == "int8" else "fp32"
            stream_op.steps.append(AluStep("CVT.int32", whole, (OperandSource("stream", number),), "int32", 1, number, 4 * number))
        for _ in range(self.rng.randint(1, 4)):
            self._step(stream_op)
        if self.rng.random() < 0.4:
            self._step(stream_op, every=stream_op.domain[-1])
        last = len(stream_op.steps) - 1
        self._write(stream_op, last)
        if stream_op.steps[last].every > 1 or self.rng.random() < 0.3:
            self._write(stream_op, self.rng.randrange(last + 1))
        self.stream_program.stream_ops.append(stream_op)
        self.readable += [write.pattern.array for write in stream_op.writes]

    def _write(self, stream_op: VectorStreamOp, number: int) -> None:
        every = stream_op.steps[number].every
        domain = stream_op.domain if every == 1 else stream_op.domain[:-1]
        array = self._array("temp", "int32", int(np.prod(domain, dtype=np.int64)))
        stream_op.writes.append(Write(number, self._whole(array, domain)))

    def _step(self, stream_op: VectorStreamOp, every: int = 1) -> None:
        """One more ALU: on results that are still there, and on new streams."""
        results = [
            (n, s.time + self.machine.delays[latency_key(s.op, s.dtype)]) for n, s in enumerate(stream_op.steps) if s.every == 1
        ]
        time = max((at for _, at in results), default=0) + 4 * self.rng.randint(0, 2)
        ready = [n for n, at in results if time - at <= 12]
        ready = [n for n in ready if n in self._unused(stream_op) or self.rng.random() < 0.5]
        if every > 1:
            sources = [OperandSource("alu", self.rng.choice(ready))] if ready else [self._new_stream(stream_op, time)]
            stream_op.steps.append(AluStep("TRED.add", "int32", tuple(sources), "", every, len(stream_op.steps), time))
            return
        sources = [OperandSource("alu", n) for n in self.rng.sample(ready, min(len(ready), self.rng.randint(0, 2)))]
        while len(sources) < 2:
            streamed = self.rng.random() < 0.8
            sources.append(self._new_stream(stream_op, time) if streamed else OperandSource("imm", self.rng.randrange(1 << 32)))
            if sum(source.kind == "imm" for source in sources) > 1:
                sources.pop()
        stream_op.steps.append(AluStep(self.rng.choice(_OPS), "int32", tuple(sources), "", 1, len(stream_op.steps), time))

    def _unused(self, stream_op: VectorStreamOp) -> set[int]:
        used = {source.index for step in stream_op.steps for source in step.operands if source.kind == "alu"}
        return {*range(len(stream_op.steps))} - used

    def _new_stream(self, stream_op: VectorStreamOp, time: int) -> OperandSource:
        array = self.rng.choice([array for array in self.readable if array.dtype == "int32"])
        stream_op.reads.append(Read(self._pattern(array, stream_op.domain), time))
        return OperandSource("stream", len(stream_op.reads) - 1)

    def _product(self) -> None:
        dtype, rows = self.rng.choice(("fp16", "int8")), self.rng.choice((1, 3, 24, 50))
        sides = self.rng.choice((("W",), ("E",), ("W", "E")))
        stream_ops = [self._matrix(dtype, rows, side) for side in sides]
        self.stream_program.stream_ops += stream_ops
        self._stream(tuple(stream_ops), (rows,))

    def _matrix(self, dtype: str, rows: int, side: str) -> MatrixStreamOp:
        depth, groups = self.machine.depth(dtype), 16 // TYPES[dtype].nbytes
        count = self.rng.randint(1, 3)
        activations = self._input(dtype, rows * count)
        weights = self._input(dtype, depth * count, groups, self.rng.choice(("", side)))
        products = [
            Product(
                AccessPattern(activations, n * rows, (1,)), self.rng.randint(0, 1) if dtype != "int8" else 0, weights, n * depth,
                self.rng.randint(1, depth),
            )
            for n in range(count)
        ]
        return MatrixStreamOp(dtype, rows, products, side)

    def _lanes(self) -> None:
        source = self.rng.choice(self.readable)
        domain = self._domain()
        target = self._array("temp", source.dtype, int(np.prod(domain)))
        moved = tuple(self.rng.randint(-1, LANES - 1) for _ in range(LANES))
        self.stream_program.stream_ops.append(
            LaneStreamOp(domain, "PRM", source.dtype, self._pattern(source, domain), self._whole(target, domain), moved)
        )
        self.readable.append(target)


def random_stream_programs(
    machine: Machine, seed: int, stream_ops: int, recent: int | None = None
) -> tuple[StreamProgram, dict[int, np.ndarray]]:
    """A stream program and the buffers of its parameters. If `recent` is given, only so many arrays of late are read again or
    stored."""
    maker = Maker(machine, seed)
    return maker.make(stream_ops, recent), maker.buffers


__all__ = ["StreamOp", "random_stream_programs"]
