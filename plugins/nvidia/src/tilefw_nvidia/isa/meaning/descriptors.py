"""Matrix descriptors of wgmma: where a tile of shared memory lies (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions",
"Shared Memory Matrix Layout", "Matrix Descriptor Format").

A descriptor has, in units of 16 bytes, the start address (bits 0-13), the leading and the stride byte offset (16-29, 32-45), then
the base offset (49-51) and the swizzle mode (62-63). Tiles consist of core matrices of 8 rows by 16 bytes. The layouts of both
major orders, as CUTLASS writes them (include/cute/arch/mma_sm90_desc.hpp), in chunks of 16 bytes, for a swizzle whose rows have w
chunks:

| major | without swizzle | swizzled |
|---|---|---|
| k | row 1 of 8, 8 rows: stride; next chunk of k: leading | row w of 8, 8 rows: stride; chunks side by side |
| m, n | chunk of rows: stride; k 1 of 8, 8 of k: leading | w chunks side by side, then leading; k w of 8, 8 of k: stride |

A swizzle exchanges chunks: the bits of an address from bit 4 on are XORed with those from bit 7 on, of absolute addresses, where
the base offset says in which row of the pattern the tile begins if not in its first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 16
# Of k, every shape of wgmma has so many bytes.
K_BYTES = 32
CORE_ROWS = 8
# By swizzle mode: bytes of a row of the pattern, and which bits of the row's number change a chunk's place.
_PATTERNS: Mapping[int, tuple[int, int]] = {0: (16, 0), 1: (128, 7), 2: (64, 3), 3: (32, 1)}


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """The fields of a descriptor: offsets in bytes."""

    start: int
    leading: int
    stride: int
    base: int
    mode: int

    @classmethod
    def parse(cls, word: int) -> MatrixDescriptor:
        def offset(first: int) -> int:
            return (word >> first & 0x3FFF) * CHUNK

        return cls(offset(0), offset(16), offset(32), word >> 49 & 7, word >> 62 & 3)

    def swizzled(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        _, mask = _PATTERNS[self.mode]
        return address ^ ((((address >> 7) - self.base) & mask) << 4)


@dataclass(frozen=True, slots=True)
class SharedTile:
    """`tilefw.api.sim.DescribedTile`: `rows` of A, or columns of B, in k-major order (`along_k`) or the other."""

    fmt: str
    rows: int
    along_k: bool = True
    negated: bool = False

    def places(self, descriptor: int) -> NDArray[np.int64]:
        """The address of each chunk of 16 bytes: [rows, 2], or [16, rows / 8] for the elements of two bytes that may lie so."""
        import numpy as np  # the compiler asks the table what instructions are, and has no use for arrays

        found = MatrixDescriptor.parse(descriptor)
        pitch, _ = _PATTERNS[found.mode]
        across = pitch // CHUNK
        plain = found.mode == 0
        if self.along_k:
            row, chunk = np.arange(self.rows)[:, None], np.arange(K_BYTES // CHUNK)
            address = row % CORE_ROWS * pitch + row // CORE_ROWS * found.stride + chunk * (found.leading if plain else CHUNK)
        else:
            k, chunk = np.arange(K_BYTES // 2)[:, None], np.arange(self.rows // CORE_ROWS)
            far, near = (found.stride, found.leading) if plain else (found.leading, found.stride)
            address = chunk % across * CHUNK + chunk // across * far + k % CORE_ROWS * pitch + k // CORE_ROWS * near
        return found.swizzled(found.start + address.astype(np.int64))
