"""What a kernel that prints leaves in memory: the layout of its print buffer, which code is made for and the host reads.

The buffer begins with three words of 64 bits: the bytes of records asked for, the records that found no room, and the room for
records in bytes. Records follow one another from byte `HEADER_BYTES`. A record is the number of its print, from 1, the program's
ids along x, y and z, in 32 bits each, and then each operand's elements in row-major order, from the next multiple of
`ALIGNMENT` on. No record that comes after one without room has room, so that what is there is a whole number of records.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilefw.api.dtypes import dtype
from tilefw.api.integers import round_up

USED, LOST, ROOM = range(3)  # words of the header
WORD_BYTES = 8
HEADER_BYTES = 32
ALIGNMENT = 16
PARAMETER = "print.buffer"  # a user's parameter has no dot
HIDDEN = "print_buffer"  # what `Parameter.hidden` says


@dataclass(frozen=True, slots=True)
class PrintedOperand:
    """An operand of a print: its element type, `pointer` for addresses of 64 bits, and its shape, () for a scalar."""

    element: str
    shape: tuple[int, ...]

    @property
    def element_bytes(self) -> int:
        """Bytes of an element in a record."""
        return 8 if self.element == "pointer" else dtype(self.element).storage_bits // 8

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in a record."""
        return self.element_bytes * prod(self.shape)


@dataclass(frozen=True, slots=True)
class PrintSite:
    """A print of a kernel: what its records hold and how their lines read."""

    prefix: str
    hex: bool
    operands: tuple[PrintedOperand, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each operand begins in a record."""
        found, offset = [], ALIGNMENT
        for operand in self.operands:
            found.append(offset)
            offset += round_up(operand.nbytes, ALIGNMENT)
        return tuple(found)

    @property
    def nbytes(self) -> int:
        """Bytes of a record."""
        return ALIGNMENT + sum(round_up(operand.nbytes, ALIGNMENT) for operand in self.operands)


def to_text(sites: Sequence[PrintSite]) -> str:
    """The sites in the order of their numbers, as an artifact keeps them."""
    return json.dumps([[site.prefix, site.hex, [[o.element, o.shape] for o in site.operands]] for site in sites])


def from_text(text: str) -> tuple[PrintSite, ...]:
    """The reverse of `to_text`; raises ValueError, TypeError or KeyError for anything else."""
    def operand(element: str, shape: Sequence[int]) -> PrintedOperand:
        return PrintedOperand(str(element), tuple(map(int, shape)))

    sites = json.loads(text)
    return tuple(PrintSite(str(prefix), bool(hex), tuple(operand(*each) for each in found)) for prefix, hex, found in sites)
