"""The kernel of one launch as a graph of arrays over named axes: programs of the grid, loops and tiles.

Nothing here knows lanes or time. A value has one element for each index of the product of its axes; an operand that lacks an axis
is the same for all its indices. Arithmetic of addresses and masks is gone: accesses map each index to an element of a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tilefw.api import Place
from tilefw_spatial.index_tables import Offsets, Valid
from tilefw_spatial.postorder import postorder


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A dimension by identity: two axes are never the same for having one extent. `name` is for people."""

    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class Along:
    """What one axis adds to an access: index i adds `offsets[i]` elements; where `valid[i]` is False nothing is accessed."""

    axis: Axis
    offsets: Offsets
    valid: Valid | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """What several axes add together, where that is no sum: `offsets` and `valid` over their extents in order."""

    axes: tuple[Axis, ...]
    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class AccessMap:
    """The element of a parameter that each index of a value accesses: `base + Σ offsets`, where every part has it valid.

    A load's value has the axes of `along` in this order, and a store is over them; those of `joint` are among them. Elements count
    from where the parameter points, and may be negative."""

    parameter: int
    base: int
    along: tuple[Along, ...]
    joint: tuple[Joint, ...] = ()


@dataclass(slots=True, eq=False)
class Value:
    """One array. `op` says how it is made; `axes` in no meaningful order."""

    op: Op
    axes: tuple[Axis, ...]
    dtype: str
    place: Place | None = None


class Op:
    """How a value is made."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Load(Op):
    """Elements of a buffer as they were before the launch; `fill` (an element's bits) where nothing is accessed."""

    access_map: AccessMap
    fill: int = 0


@dataclass(frozen=True, slots=True)
class Constant(Op):
    """A compile-time constant: `data` over the value's axes in order, of the storage type of its dtype: NumPy's own for fp64, fp32,
    fp16 and integers (bool for int1), the codes as unsigned integers for all other floats."""

    data: NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Elementwise(Op):
    """A row of tile IR's elementwise table; each operand is over a subset of the value's axes and has its own element type.

    `fusion` lets a sum take a product unrounded, if both allow it; `rounding` is `rtz` for a cast to a narrower float that
    truncates."""

    row: str
    operands: tuple[Value, ...]
    fusion: bool = True
    rounding: str = "rtne"


class ReductionKind(StrEnum):
    """What a reduction combines with, as the row of the elementwise table."""

    ADDF = "addf"
    ADDI = "addi"
    MULF = "mulf"
    MULI = "muli"
    MAXF = "maxf_nan"  # NaN wins
    MINF = "minf_nan"
    MAXNUM = "maxf"  # of a NaN and a number, the number
    MINNUM = "minf"
    MAXS = "maxs"
    MINS = "mins"
    MAXU = "maxu"
    MINU = "minu"
    AND = "andi"
    OR = "ori"
    XOR = "xori"


@dataclass(frozen=True, slots=True)
class Reduce(Op):
    """`operand` combined over `axes`, which the value then lacks. `ordered` names the axis, if any, whose order is the kernel's own
    (a loop's): combined from its first index to its last, beginning with `initial`; other axes in any order."""

    kind: ReductionKind
    operand: Value
    axes: tuple[Axis, ...]
    ordered: Axis | None = None
    initial: Value | None = None


@dataclass(frozen=True, slots=True)
class Dot(Op):
    """Σ over `contracted` of a · b (+ `accumulator`); `dtype` of the value is that of the sums.

    `precision` is the dot's `input_precision` (fp32 operands), `unsigned` says how both operands of int8 are read."""

    a: Value
    b: Value
    contracted: tuple[Axis, ...]
    accumulator: Value | None = None
    precision: str = "ieee"
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Rename(Op):
    """The operand's elements under other axes: value index i along `new` is index `index[i]` along `old` (identity where None).

    A transpose needs no node; a flip, a slice, one half of a split or a reshaped axis is one."""

    operand: Value
    old: tuple[Axis, ...]
    new: tuple[Axis, ...]
    index: NDArray[np.int64] | None = None  # over the extents of `new`, flat index into those of `old`


@dataclass(frozen=True, slots=True)
class Join(Op):
    """Several operands one after the other along `axis` of the value; operand k has `parts[k]` instead."""

    operands: tuple[Value, ...]
    axis: Axis
    parts: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Gather(Op):
    """Elements of a table that loaded data chooses: index i has the table's element at `index` of i along `axis`, and at i along
    the table's other axes. The integers of `index` lie within the axis."""

    table: Value
    axis: Axis
    index: Value


@dataclass(frozen=True, slots=True)
class Store:
    """A value written to a buffer, in the order of the list: of two that write one element the later wins.

    `access_map` may have axes that the value lacks: it is the same for all their indices. No element is written twice by one store,
    unless it accumulates. `mask` (i1) is there only where it depends on loaded data; `accumulate` is the row of the elementwise
    table by which the value is combined with what is there (static atomics)."""

    value: Value
    access_map: AccessMap
    mask: Value | None = None
    accumulate: str | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """A run-time check of accesses that depend on data: `elements` flags, each set where the check fails. `what` and `place` are
    for people.

    A store's parameter beyond those of the kernel is one of these."""

    what: str
    elements: int
    place: Place | None


@dataclass(slots=True)
class Graph:
    """The whole launch: its stores, and through them all values."""

    stores: list[Store] = field(default_factory=list)
    checks: list[BoundsCheck] = field(default_factory=list)

    def values(self) -> list[Value]:
        """Every value, operands before their users."""
        roots = (root for store in self.stores for root in (store.value, store.mask) if root is not None)
        return postorder(roots, lambda value: operands_of(value.op))


def operands_of(op: Op) -> tuple[Value, ...]:
    """The values that an op reads."""
    match op:
        case Elementwise(operands=operands) | Join(operands=operands):
            return operands
        case Reduce(operand=operand, initial=initial):
            return (operand,) if initial is None else (operand, initial)
        case Dot(a=a, b=b, accumulator=accumulator):
            return (a, b) if accumulator is None else (a, b, accumulator)
        case Rename(operand=operand):
            return (operand,)
        case Gather(table=table, index=index):
            return (table, index)
    return ()
