"""SharedLayout: which element of a tile stands at which offset of a buffer in shared memory, as an invertible linear map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilefw.simt.layout import f2


@dataclass(frozen=True)
class SharedLayout:
    """Bit i of the offset, counted in elements, adds the element `bases[i]` (a row-major flat index) of a tile of `shape`.

    The bases are independent and span the tile: every offset holds one element. A XOR swizzle is such a map.
    """

    shape: tuple[int, ...]
    bases: tuple[int, ...]

    @cached_property
    def inverse(self) -> tuple[int, ...]:
        """For each bit of the element's flat index the offset that it adds."""
        return f2.invert(self.bases)

    @property
    def size(self) -> int:
        """Elements in the buffer."""
        return 1 << len(self.bases)

    def element(self, offset: int) -> int:
        """The flat index of the element at an offset."""
        return f2.apply(self.bases, offset)

    def offset(self, element: int) -> int:
        """Where an element of this flat index stands, in elements from the start of the buffer."""
        return f2.apply(self.inverse, element)

    def offsets(self, bases: tuple[int, ...]) -> tuple[int, ...]:
        """The offsets that a layout's bases add."""
        return f2.compose(self.inverse, bases)
