"""How a NumPy function of two arguments goes along an axis: to its end, as reductions do, or to each element, as scans do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.tile.value import Array


@dataclass(frozen=True, slots=True)
class Along:
    """The axis, as NumPy counts it, and whether every prefix has a result (`running`) or the whole axis one."""

    axis: int
    running: bool = False

    def __call__(self, function: np.ufunc, x: Array, dtype: Any = None) -> Array:
        """`x` combined by `function`; without the axis, or of x's shape."""
        found = (function.accumulate if self.running else function.reduce)(x, axis=self.axis, dtype=dtype)
        return np.asarray(found)

    def counts(self, x: Array) -> Any:
        """How many elements each result combines: a number, or a range that broadcasts along the axis."""
        length = x.shape[self.axis]
        if not self.running:
            return length
        return np.arange(1, length + 1).reshape((length,) + (1,) * (x.ndim - self.axis - 1))
