"""A graph builder that knows the values of small constants, such as the counts of loops and the places of slices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilefw.graph.builder import GraphOperation, GraphValue, ModuleBuilder, shape_of
from tilefw.graph.meaning import results_of

_UNKNOWN = ("graph.kernel", "graph.part", "graph.collective")  # not looked into, or other on each rank
_MOST = 256  # elements of a tensor whose values are kept


class KnownValueBuilder(ModuleBuilder):
    """As its base; besides, the values of tensors that follow from constants."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[GraphValue, np.ndarray[Any, Any]] = {}

    def known(self, value: GraphValue) -> np.ndarray[Any, Any] | None:
        """The elements of a small tensor that follows from constants; integers are signed. None for any other."""
        return self._known.get(value)

    def number(self, value: GraphValue) -> int | None:
        """The one element of a known tensor of integers."""
        found = self._known.get(value)
        return int(found.reshape(-1)[0]) if found is not None and found.size == 1 else None

    def add(self, op: GraphOperation) -> GraphValue:
        """An op at the end, computed where all that it reads is known."""
        first = super().add(op)
        small = all(prod(shape_of(one)) <= _MOST for one in op.results)
        if small and all(operand in self._known for operand in op.operands) and op.name not in _UNKNOWN:
            found = results_of(op, [self._known[operand] for operand in op.operands])
            self._known.update(zip(op.results, map(np.asarray, found), strict=True))
        return first
