"""Which assumptions cuTile makes of strides along axes of one element: they need not be true, since no address depends on them.

Source: cuTile Python 1.7.0, `_ir/ops.py`, where a view is made of an array: the stride of such an axis is assumed to be divisible
by as many elements as 16 bytes hold, in the value that the view is given and in no other one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilefw.importers.cutile.bytecode_tree import BytecodeBlock, BytecodeOperation
from tilefw.importers.cutile.bytecode_types import DYNAMIC, TensorViewType


def of_singletons(block: BytecodeBlock) -> frozenset[int]:
    """Where the `assume` operations begin whose results are strides along axes of one element, and nothing else."""
    walk = _Walk()
    walk.block(block)
    return frozenset(walk.strides - walk.others)


class _Walk:
    """Follows the results of `assume` by number. A number of a region is bound anew before it is used behind the region."""

    def __init__(self) -> None:
        self.strides: set[int] = set()
        self.others: set[int] = set()
        self._assumed: dict[int, int] = {}

    def block(self, block: BytecodeBlock) -> None:
        self._bind(block.arguments)
        for op in block.operations:
            self._use(op)
            for region in op.regions:
                self.block(region)
            self._bind(op.results)
            if op.name == "assume":
                self._assumed[op.results[0]] = op.start

    def _bind(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            self._assumed.pop(number, None)

    def _use(self, op: BytecodeOperation) -> None:
        for name, given in op.operands.items():
            numbers = given if isinstance(given, tuple) else (given,)
            only = _of_one_element(op) if name == "strides" else iter(())
            for number in numbers:
                found = self.strides if next(only, False) else self.others
                if number in self._assumed:
                    found.add(self._assumed[number])


def _of_one_element(op: BytecodeOperation) -> Iterator[bool]:
    """Of each stride that a view is given, whether its axis has one element."""
    type = op.types[0] if op.types else None
    if isinstance(type, TensorViewType):
        yield from (extent == 1 for extent, stride in zip(type.shape, type.strides, strict=True) if stride == DYNAMIC)
