"""Kernels whose offsets leave 32 bits, and those whose offsets only seem to: what simulators find of them (check `bounds`).

A target may compute offsets in as few bits as all accesses in bounds need. What wraps around must not get into bounds unseen. What
is right where an access is made must not be reported, whatever becomes of offsets on the way and in lanes that access nothing.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.device import Finding
from tilefw.api.errors import CheckError

ROWS = 8
_FAR = 1 << 30  # as many elements of 4 bytes are 2**32 bytes


@tilefw.jit
def strided(x, out, stride, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + r * stride))


@tilefw.jit
def masked(x, out, stride, n, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + r * stride, r < n, other=0.0), r < n)


@tilefw.jit
def scattered(x, out, stride, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r * stride, tl.load(x + r))


@tilefw.jit
def matrix(x, out, row_stride, column_stride, BLOCK: tl.constexpr):
    r, c = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    tl.store(out + r * BLOCK + c, tl.load(x + r * row_stride + c * column_stride))


@tilefw.jit
def gathered(x, out, index, stride, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + tl.load(index + r) * stride))


@tilefw.jit
def factors(x, out, a, b, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + r * a * b))


@tilefw.jit
def difference(x, out, index, a, b, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    i = tl.load(index + r)
    tl.store(out + r, tl.load(x + i * a - i * b))


@tilefw.jit
def carried(x, out, index, stride, n, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    i = tl.load(index + r)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total += tl.load(x + i)
        i += stride
    tl.store(out + r, total)


@tilefw.jit
def rows(x, out, stride, n, BLOCK: tl.constexpr):
    r, c = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        total += tl.load(x + r * stride + (k + c), k + c < n, other=0.0)
    tl.store(out + r * BLOCK + c, total)


@tilefw.jit
def programs(x, out, stride, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    p = tl.program_id(0)
    tl.store(out + p * BLOCK + r, tl.load(x + p * stride + r))


@tilefw.jit
def counted(x, index, stride, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.atomic_add(x + tl.load(index + r) * stride, 1.0)


@tilefw.jit
def there_and_back(x, out, back, FAR: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + FAR + (back + r)))


@tilefw.jit
def indices_from_there(x, out, index, back, FAR: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + FAR // 2 + FAR // 2 + (back + tl.load(index + r))))


@tilefw.jit
def there_and_back_masked(x, out, back, first, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + 2147483648 + (back + r), r >= first, other=0.0))


@tilefw.jit
def other_promise(x, out, first, n, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    more = tl.load(out + (first * 4 + r), r < n, other=0.0)
    index = (r.to(tl.int64) + first) * 4
    tl.store(out + r, tl.load(x - 4294967296 + index) + more)


@tilefw.jit
def wider_mask(x, out, first, n, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    index = (r.to(tl.int64) + first) + first
    tl.store(out + r, tl.load(x + (first * 2 + r), index < n, other=0.0))


@dataclass(frozen=True, slots=True)
class OffsetCase:
    """A launch of `kernel` over `programs` programs. `arrays` make its array arguments, `scalars` follow them."""

    kernel: Any
    arrays: tuple[Callable[[], Any], ...]
    scalars: tuple[int, ...]
    programs: int = 1
    constexprs: dict[str, int] = field(default_factory=lambda: {"BLOCK": ROWS})


def _floats(count: int = ROWS * ROWS) -> Callable[[], Any]:
    return lambda: np.arange(count).astype(np.float32)


def _indices(*first: int, dtype: Any = np.int32) -> Callable[[], Any]:
    return lambda: np.resize(np.array(first, dtype), ROWS)


def _from(far: int) -> dict[str, int]:
    return {"FAR": far, "BLOCK": ROWS}


def _bytes() -> Any:
    return np.zeros(256, np.int8)


_X, _OUT = _floats(), _floats()
WRONG = {
    "a stride of 2**32 bytes": OffsetCase(strided, (_X, _OUT), (_FAR,)),
    "a stride of -2**32 bytes": OffsetCase(strided, (_X, _OUT), (-_FAR,)),
    "a stride of 64 bits": OffsetCase(strided, (_X, _OUT), (4 * _FAR,)),
    "one lane of a mask too many": OffsetCase(masked, (_X, _OUT), (_FAR, 2)),
    "a store": OffsetCase(scattered, (_X, _OUT), (_FAR,)),
    "rows of a matrix": OffsetCase(matrix, (_X, _OUT), (_FAR, 1)),
    "columns of a matrix": OffsetCase(matrix, (_X, _OUT), (ROWS, _FAR)),
    "rows and columns": OffsetCase(matrix, (_X, _OUT), (_FAR, -2 * _FAR)),
    "an index from memory": OffsetCase(gathered, (_X, _OUT, _indices(0, 1)), (_FAR,)),
    "an index of 64 bits": OffsetCase(gathered, (_X, _OUT, _indices(0, 1 << 32, dtype=np.int64)), (1,)),
    "a product that wraps twice": OffsetCase(factors, (_X, _OUT), (_FAR, 1 << 20)),
    "a loop's offsets": OffsetCase(carried, (_X, _OUT, _indices(0)), (_FAR, 2)),
    "rows in a loop": OffsetCase(rows, (_X, _OUT), (_FAR, 2 * ROWS)),
    "programs": OffsetCase(programs, (_X, _OUT), (_FAR,), programs=2),
}
"""Offsets that are far out of bounds and, in 32 bits, in bounds again. In 64 bits they are out of bounds (TFW0801)."""
WRONG_IN_ELEMENTS = {
    "an index whose product wraps": OffsetCase(gathered, (_X, _OUT, _indices(0, 4)), (_FAR,)),
    "a negative one": OffsetCase(gathered, (_X, _OUT, _indices(0, -4)), (_FAR,)),
}
"""The same where the kernel's own arithmetic of 32 bits wraps, in elements: no target's code is out of bounds (TFW0817)."""
RIGHT = {
    "a stride": OffsetCase(strided, (_X, _OUT), (2,)),
    "no stride": OffsetCase(strided, (_X, _OUT), (0,)),
    "lanes behind the mask": OffsetCase(masked, (_X, _OUT), (_FAR, 1)),
    "lanes behind the mask, in 64 bits": OffsetCase(masked, (_X, _OUT), (4 * _FAR, 1)),
    "a matrix": OffsetCase(matrix, (_X, _OUT), (ROWS, 1)),
    "a matrix read backwards": OffsetCase(matrix, (_X, _OUT), (ROWS, 0)),
    "indices": OffsetCase(gathered, (_X, _OUT, _indices(*range(ROWS))), (2,)),
    "indices of 64 bits": OffsetCase(gathered, (_X, _OUT, _indices(*range(ROWS), dtype=np.int64)), (2,)),
    "a difference of products that wrap": OffsetCase(difference, (_X, _OUT, _indices(*range(ROWS))), (9 << 25, (9 << 25) - 2)),
    "a difference of bytes": OffsetCase(difference, (_bytes, _bytes, _indices(*range(ROWS))), (300_000_000, 299_999_998)),
    "factors": OffsetCase(factors, (_X, _OUT), (2, 4)),
    "a loop": OffsetCase(carried, (_X, _OUT, _indices(*range(ROWS))), (ROWS, ROWS)),
    "a loop over rows": OffsetCase(rows, (_X, _OUT), (ROWS, ROWS)),
    "programs": OffsetCase(programs, (_X, _OUT), (ROWS,), programs=ROWS),
    "atomics": OffsetCase(counted, (_X, _indices(*range(ROWS))), (2,)),
    "a base beyond what a bias leaves of 32 bits": OffsetCase(there_and_back, (_X, _OUT), (-(1 << 14),), 1, _from(1 << 14)),
    "indices from there": OffsetCase(indices_from_there, (_X, _OUT, _indices(*range(ROWS))), (-(1 << 14),), 1, _from(1 << 14)),
    "that wrap where a mask of 64 bits accesses nothing": OffsetCase(wider_mask, (_X, _OUT), (3 << 29, ROWS)),
}
"""Offsets that are right wherever they are used."""
RIGHT_IN_64_BITS = {
    "a base beyond 32 bits and back": OffsetCase(there_and_back, (_X, _OUT), (-(1 << 31),), 1, _from(1 << 31)),
    "a base moved twice": OffsetCase(indices_from_there, (_X, _OUT, _indices(*range(ROWS))), (-(1 << 31),), 1, _from(1 << 31)),
    "a base beyond 32 bits and back, masked": OffsetCase(there_and_back_masked, (_X, _OUT), (-(1 << 31), 2)),
    "beside another access's that wraps where it accesses nothing": OffsetCase(other_promise, (_X, _OUT), (_FAR, 0)),
}
"""Right where addresses have more than 32 bits, by a base that is 4 GiB away or more: one of 32 bits does not tell how far it was
moved, and what leads back counts as wrapped."""


def findings(case: OffsetCase, target: str, checks: str = "default") -> tuple[Finding, ...]:
    """What a target's simulator reports of a case."""
    arrays = [make() for make in case.arrays]
    with tilefw.target(target):
        try:
            case.kernel[(case.programs,)](*arrays, *case.scalars, **case.constexprs, checks=checks)
        except CheckError as error:
            return tuple(error.findings)
    return ()


def written(finding: Finding) -> str:
    """The kernel's line that a finding is about."""
    assert finding.source is not None, finding
    return linecache.getline(finding.source.file, finding.source.line).strip()


def codes(case: OffsetCase, target: str, checks: str = "default") -> set[str]:
    """Their codes."""
    return {finding.code for finding in findings(case, target, checks)}
