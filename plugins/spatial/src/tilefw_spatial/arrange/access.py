"""Where the elements of a value stand in a buffer, as a sum of terms over small sets of axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.graph import Axis, Where

NOWHERE = np.iinfo(np.int64).min  # elements may be negative


@dataclass(frozen=True, slots=True)
class Term:
    """What some axes add together: `offsets` over their extents; where `valid` is False nothing is accessed."""

    axes: tuple[Axis, ...]
    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Element (i…) stands at `base + Σ offsets` of a parameter, if every term has it valid."""

    parameter: int
    base: int
    terms: tuple[Term, ...]

    def renamed(self, indices: dict[Axis, tuple[tuple[Axis, ...], NDArray[np.int64]]]) -> Access:
        """The access by other axes: the index along each old axis is a table over some new ones."""
        base, terms = self.base, []
        for term in (_renamed(term, indices) for term in self.terms):
            if term.axes or (term.valid is not None and not term.valid):
                terms.append(term)
            else:
                base += int(term.offsets)
        return Access(self.parameter, base, tuple(terms))


def access_of(where: Where) -> Access:
    """The access by terms; axes along which nothing changes have none."""
    parts = (*(Term((part.axis,), part.offsets, part.valid) for part in where.along),
             *(Term(part.axes, part.offsets, part.valid) for part in where.joint))
    lean = (Term(t.axes, t.offsets.astype(np.int64), None if t.valid is None or t.valid.all() else t.valid) for t in parts)
    return Access(where.parameter, where.base, tuple(t for t in lean if t.valid is not None or t.offsets.any()))


def elements(where: Where) -> NDArray[np.int64]:
    """The element of every index of an access, NOWHERE for none, over its axes in order."""
    access = access_of(where)
    axes = tuple(part.axis for part in where.along)
    shape = [axis.extent for axis in axes]
    offsets, valid = np.full(shape, access.base, dtype=np.int64), np.ones(shape, dtype=np.bool_)
    for term in access.terms:
        offsets += over(term.axes, term.offsets, axes)
        if term.valid is not None:
            valid &= over(term.axes, term.valid, axes)
    return np.where(valid, offsets, NOWHERE)


def _renamed(term: Term, indices: dict[Axis, tuple[tuple[Axis, ...], NDArray[np.int64]]]) -> Term:
    if not any(axis in indices for axis in term.axes):
        return term
    new: list[Axis] = []
    for axis in term.axes:
        new += [n for n in (indices[axis][0] if axis in indices else (axis,)) if n not in new]
    picks = tuple(
        over(*indices[axis], tuple(new)) if axis in indices else over((axis,), np.arange(axis.extent), tuple(new))
        for axis in term.axes
    )
    valid = None if term.valid is None else term.valid[picks]
    return Term(tuple(new), term.offsets[picks], valid)


def over(axes: tuple[Axis, ...], table: NDArray, target: tuple[Axis, ...]) -> NDArray:
    """`table` over `axes` as an array that broadcasts over the extents of `target`."""
    present = [axis for axis in target if axis in axes]
    turned = table.reshape([axis.extent for axis in axes]).transpose([axes.index(axis) for axis in present])
    return turned.reshape([axis.extent if axis in axes else 1 for axis in target])


def flat_index(shape: tuple[int, ...], digit: int) -> NDArray[np.int64]:
    """Digit number `digit` of every flat index of a product of extents, outermost first."""
    inner = int(np.prod(shape[digit + 1 :], dtype=np.int64))
    return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64) // inner % shape[digit]
