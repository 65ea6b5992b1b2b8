"""Integers and addresses of one program, computed with numbers: what a launch knows, where nothing that was loaded takes part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.structural_op import StructuralOp

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Address:
    """A pointer, or a tile of them: elements from where a pointer argument, by its place, points."""

    argument: int
    offset: Array


Known = Array | Address


def signed(number: int) -> Array:
    """The 64 bits of an integer: an unsigned one may have the highest."""
    return np.array(number & (1 << 64) - 1, np.uint64).astype(np.int64)


class KnownIntegers:
    """Values of a program at `place` of a `grid`, as arrays of i64: indices and offsets, which are meant as exact integers."""

    def __init__(
        self, arguments: Mapping[SSAValue, Known], place: tuple[int, int, int], grid: tuple[int, int, int],
        contents: Mapping[int, Array] | None = None,
    ) -> None:
        self._values = dict(arguments)
        self._place, self._grid, self._contents = place, grid, contents or {}

    def loaded(self, pointer: SSAValue, offset: SSAValue | None) -> Array | None:
        """A scalar that is read from an argument's memory, where that is known (`contents`, by place of the argument)."""
        base, more = self._values.get(pointer), 0 if offset is None else self.number(offset)
        if not isinstance(base, Address) or more is None or base.offset.ndim:
            return None
        held, at = self._contents.get(base.argument), int(base.offset) + more
        return np.array(held[at], np.int64) if held is not None and 0 <= at < held.size else None

    def __getitem__(self, value: SSAValue) -> Known | None:
        return self._values.get(value)

    def number(self, value: SSAValue) -> int | None:
        """A scalar integer, where it is known."""
        found = self._values.get(value)
        return int(found) if isinstance(found, np.ndarray) and found.ndim == 0 else None

    def set(self, value: SSAValue, known: Known | None) -> None:
        if known is None:
            self._values.pop(value, None)
        else:
            self._values[value] = known

    def compute(self, op: Operation) -> None:
        """The results of an op, as far as its operands are known."""
        if isinstance(op, StructuralOp):
            self._moved(op)
        elif len(op.results) == 1:
            self.set(op.results[0], self._result(op))

    def _result(self, op: Operation) -> Known | None:
        if isinstance(op, ops.ConstantOp):
            shape = types.shape_of(op.results[0].type)
            return np.broadcast_to(np.int64(op.value), shape) if types.is_int(op.results[0].type) else None
        if isinstance(op, ops.IotaOp):
            return np.arange(op.start, op.end, dtype=np.int64)
        if isinstance(op, ops.ProgramIdOp):
            return np.array(self._place[op.axis], np.int64)
        if isinstance(op, ops.NumProgramsOp):
            return np.array(self._grid[op.axis], np.int64)
        operands = [self._values.get(operand) for operand in op.operands]
        if any(operand is None for operand in operands):
            return None
        if isinstance(op, ops.AddPtrOp):
            base, offset = operands
            return Address(base.argument, base.offset + offset) if isinstance(base, Address) else None
        return self._row(op, operands) if isinstance(op, ElementwiseOp) else None

    def _row(self, op: ElementwiseOp, operands: Sequence[Any]) -> Known | None:
        row, type = op.row, op.results[0].type
        if any(isinstance(operand, Address) for operand in operands) or not types.is_int(type):
            return None
        if row.name in _KEPT:
            return operands[0]
        if row.name == "select":
            return np.where(operands[0], operands[1], operands[2])
        if row.meaning is None or not types.is_int(op.operands[row.typed_by].type):
            return None
        bits = (types.dtype_of(op.operands[row.typed_by].type).bits,) if row.wants_bits else ()
        with np.errstate(all="ignore"):
            return np.asarray(row.meaning(*operands, *bits)).astype(np.int64)

    def _moved(self, op: StructuralOp) -> None:
        parts = [self._values.get(operand) for operand in op.operands]
        shapes = [types.shape_of(result.type) for result in op.results]
        found: Sequence[Known | None] = [None] * len(shapes)
        if parts and all(isinstance(part, Address) and part.argument == parts[0].argument for part in parts):  # type: ignore[union-attr]
            moved = op.elements(*[part.offset[None] for part in parts])  # type: ignore[union-attr]
            found = [Address(parts[0].argument, np.broadcast_to(m[0], shape)) for m, shape in zip(moved, shapes, strict=True)]  # type: ignore[union-attr]
        elif parts and all(isinstance(part, np.ndarray) for part in parts):
            moved = op.elements(*[part[None] for part in parts])  # type: ignore[index]
            found = [np.broadcast_to(m[0], shape) for m, shape in zip(moved, shapes, strict=True)]
        for result, known in zip(op.results, found, strict=True):
            self.set(result, known)


_KEPT = frozenset({"exts", "extu", "trunci"})
