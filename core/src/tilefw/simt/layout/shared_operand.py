"""SharedOperand: an operand of a dot as a matrix unit reads it from shared memory, and the layout of the buffer that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilefw.api.integers import log2
from tilefw.simt.description import SharedForm
from tilefw.simt.layout.shared import SharedLayout


@dataclass(frozen=True)
class SharedOperand:
    """An operand of `shape` ([b,] m, k or [b,] k, n) with elements of `bits` bits, in a form with rows along its dim `fast`."""

    form: SharedForm
    shape: tuple[int, ...]
    bits: int
    fast: int

    @cached_property
    def layout(self) -> SharedLayout:
        """The layout of the whole buffer."""
        bits, form = _bits_of_dims(self.shape), self.form
        slow = 2 * len(self.shape) - 3 - self.fast
        row, rows = log2(form.row_bytes * 8 // self.bits), log2(form.rows)
        along, across = bits[self.fast], bits[slow]
        bases = [*along[:row], *across, *along[row:], *(bit for dim in bits[:-2] for bit in dim)]
        for at in range(row, row + rows):
            if log2(form.piece_bytes * 8 // self.bits) <= at - rows < row:
                bases[at] ^= bases[at - rows]
        return SharedLayout(self.shape, tuple(bases))

    @property
    def row_stride(self) -> int:
        """Bytes from what is in one row to what goes on behind it."""
        return self.shape[2 * len(self.shape) - 3 - self.fast] * self.form.row_bytes

    def offset(self, element: int) -> int:
        """The byte at which an element stands."""
        return self.layout.offset(element) * self.bits // 8


def in_form(
    shape: Sequence[int], bits: int, fast: int, k: int, atom: Sequence[int], forms: Sequence[SharedForm]
) -> SharedOperand | None:
    """An operand whose rows lie along the dim `fast`, `k` being that of the products' sum, in the widest form that serves; None
    where none does. `atom` is what one instruction takes of it: of a dim that is not k a row is no longer than that."""
    slow = 2 * len(shape) - 3 - fast
    for form in sorted(forms, key=lambda form: -form.row_bytes):
        row = form.row_bytes * 8 // bits
        longest = shape[fast] if fast == k else atom[fast - len(shape)]
        if form.along_k == (fast == k) and row <= longest and form.rows <= shape[slow]:
            return SharedOperand(form, tuple(shape), bits, fast)
    return None


def transposed(layout: SharedLayout) -> SharedLayout:
    """The same buffer, of the matrix transposed."""
    rows, columns = (log2(size) for size in layout.shape)

    def turned(flat: int) -> int:
        return flat >> columns | (flat & (1 << columns) - 1) << rows

    return SharedLayout(tuple(reversed(layout.shape)), tuple(map(turned, layout.bases)))


def _bits_of_dims(shape: Sequence[int]) -> list[list[int]]:
    """For each dim the flat indices of its bits, lowest first."""
    found: list[list[int]] = []
    stride = 1
    for size in reversed(shape):
        found.append([stride << i for i in range(log2(size))])
        stride *= size
    return found[::-1]
