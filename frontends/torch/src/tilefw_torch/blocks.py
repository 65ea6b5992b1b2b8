"""The extents of a kernel's tiles, chosen from what PyTorch's compiler says of its sizes: no launch is timed.

PyTorch names an axis by a letter: `x`, `y`, `z` are an output's, `r0_` and `r1_` a sum's. The tile of axis `x` is XBLOCK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

# Elements of a tile that hold in registers on every target.
TILE = 1024
# Extents of a tile of a matrix product, from which one multiplies with matrix instructions.
PRODUCT = {"x": 32, "y": 32, "z": 1, "r0_": 32}


@dataclass(frozen=True, slots=True)
class TileExtents:
    """What a kernel's text says above its function: the kind of loop, an estimate of each axis, and notes on the launch."""

    kind: str
    size_hints: Mapping[str, int]
    notes: Mapping[str, Any] = field(default_factory=dict)  # PyTorch's `inductor_meta`
    product: bool = False

    def constexprs(self, names: Sequence[str]) -> dict[str, int]:
        """A value for each of a kernel's constexpr parameters."""
        extents = self._extents()
        # The split of a sum over programs is one that PyTorch's kernel does without.
        return {name: extents.get(name.removesuffix("BLOCK").lower(), 1) for name in names}

    def _extents(self) -> dict[str, int]:
        sums = {axis: size for axis, size in self.size_hints.items() if axis.startswith("r")}
        others = {axis: size for axis, size in self.size_hints.items() if axis not in sums}
        if self.product:
            return {axis: max(PRODUCT.get(axis, 1), 1) for axis in self.size_hints}
        if self.kind == "split_scan":
            return {**dict.fromkeys(others, 1), **{axis: min(size, TILE) for axis, size in sums.items()}}
        if self.kind == "persistent_reduction":
            held, found = prod(sums.values()), dict(sums)
        else:
            found = _shared(sums, TILE)
            held = prod(found.values())
        return {**_shared(others, max(TILE // held, 1)), **found}


def _shared(axes: Mapping[str, int], elements: int) -> dict[str, int]:
    """Powers of two within each axis whose product is at most `elements`; the innermost axis, `x` or the last sum, gets most."""
    found = dict.fromkeys(axes, 1)
    order = sorted(axes, key=lambda axis: (axis[0] != "x", axis))
    each = max(elements, 1) if len(axes) == 1 else 1 << ((max(elements, 1).bit_length() - 1) // max(len(axes), 1))
    left = max(elements, 1)
    for axis in sorted(order, key=lambda axis: axes[axis]):
        found[axis] = min(_power(axes[axis]), each, left)
        left //= found[axis]
    for axis in order:
        grown = min(_power(axes[axis]), found[axis] * left)
        left //= max(grown // found[axis], 1)
        found[axis] = max(grown, found[axis])
    return found


def _power(size: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(size - 1, 0).bit_length()
