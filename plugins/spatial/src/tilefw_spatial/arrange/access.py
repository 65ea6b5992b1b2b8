"""Affine accesses: the buffer element of each index of a value, as a sum of terms over small sets of axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.arrange.reindexing import AxisIndex, over, reindexed_elements
from tilefw_spatial.graph import AccessMap, Axis
from tilefw_spatial.index_tables import Offsets, Valid, check_size

NOWHERE = np.iinfo(np.int64).min  # elements may be negative


@dataclass(frozen=True, slots=True)
class AccessTerm:
    """What some axes add together: `offsets` over their extents; where `valid` is False nothing is accessed."""

    axes: tuple[Axis, ...]
    offsets: Offsets
    valid: Valid | None = None

    def renamed(self, reindexing: Mapping[Axis, AxisIndex]) -> AccessTerm:
        """The same over other axes."""
        if not any(axis in reindexing for axis in self.axes):
            return self
        axes, offsets = reindexed_elements(self.axes, np.asarray(self.offsets), reindexing)
        valid = None if self.valid is None else reindexed_elements(self.axes, np.asarray(self.valid), reindexing)[1]
        return AccessTerm(axes, offsets, valid)


@dataclass(frozen=True, slots=True, eq=False)
class AffineAccess:
    """Index (i…) is element `base + Σ offsets` of a parameter, if every term has it valid."""

    parameter: int
    base: int
    terms: tuple[AccessTerm, ...]

    def renamed(self, reindexing: Mapping[Axis, AxisIndex]) -> AffineAccess:
        """The access over other axes."""
        base, terms = self.base, []
        for term in (term.renamed(reindexing) for term in self.terms):
            if term.axes or (term.valid is not None and not term.valid.all()):
                terms.append(term)
            else:
                base += int(np.asarray(term.offsets))
        return AffineAccess(self.parameter, base, tuple(terms))

    def elements(self, axes: tuple[Axis, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The element of every index over `axes`, and whether it is accessed."""
        shape = [axis.extent for axis in axes]
        check_size(prod(shape))
        offsets, valid = np.full(shape, self.base, dtype=np.int64), np.ones(shape, dtype=np.bool_)
        for term in self.terms:
            offsets += over(term.axes, np.asarray(term.offsets), axes)
            if term.valid is not None:
                valid &= over(term.axes, np.asarray(term.valid), axes)
        return offsets, valid


def access_of(access_map: AccessMap) -> AffineAccess:
    """The access by terms; axes along which nothing changes have none."""
    parts = (*(AccessTerm((part.axis,), part.offsets, part.valid) for part in access_map.along),
             *(AccessTerm(part.axes, part.offsets, part.valid) for part in access_map.joint))
    lean = (AccessTerm(t.axes, t.offsets, None if t.valid is None or t.valid.all() else t.valid) for t in parts)
    return AffineAccess(access_map.parameter, access_map.base, tuple(t for t in lean if t.valid is not None or t.offsets.any()))


def elements(access_map: AccessMap) -> NDArray[np.int64]:
    """The element of every index of an access, NOWHERE for none, over its axes in order."""
    offsets, valid = access_of(access_map).elements(tuple(part.axis for part in access_map.along))
    return np.where(valid, offsets, NOWHERE)
