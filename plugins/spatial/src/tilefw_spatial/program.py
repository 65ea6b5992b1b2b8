"""A program of the machine as data: instructions in queues, and where the host's arrays lie in the slices.

The scheduler makes it, the container and the text hold it, the simulators run it and the checker judges it. Time is not stored: an
instruction issues when the one before it in its queue has issued (`isa` has how long each occupies the queue).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class QueueInst:
    """One instruction word, field by field (packed by `container.word`); what each field means is the row's affair (`isa`). `op`
    is a row with its variant (`CMP.lt`).

    `dtype` is an element type's name (`fp16`) or empty; `burst` counts vectors on consecutive cycles, 1 to 4096. `a`, `b`, `c` and
    `dst` are six bits each: a stream (0-31 flow east, 32-63 west), or an ALU's operand as `map` says. `address` is bank · 4096 +
    row, an accumulator likewise; `step` the rows from vector to vector, `map` an index of the chip's maps or the kinds of ALU
    operands.
    """

    op: str
    dtype: str = ""
    burst: int = 1
    a: int = 0
    b: int = 0
    c: int = 0
    dst: int = 0
    flags: int = 0
    address: int = 0
    step: int = 0
    imm: int = 0
    map: int = 0


@dataclass(frozen=True, slots=True)
class ChipCode:
    """One chip's queues by name (`MEM.E12`, `MXM.W0.MAC`, `VXM.5`, …), and its maps: 320 source lanes each, -1 for zero."""

    queues: Mapping[str, tuple[QueueInst, ...]]
    maps: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class SliceRows:
    """Consecutive rows of one bank of one slice (`MEM.E12`) of one chip."""

    slice: str
    bank: int
    row: int
    chip: int = 0


@dataclass(frozen=True, slots=True)
class RowAllocation:
    """The rows of an array of vectors: `planes[byte][block]`; a vector of 4-byte elements has four planes.

    Each `segment` successive vectors have `groups` blocks of their own, and neighbours lie in different ones: byte plane `byte` of
    vector v is row `row + w // groups` of `planes[byte][s * groups + w % groups]`, where s, w = divmod(v, segment). A bank has 4096
    rows, so that larger arrays have several segments; `segment` is a multiple of `groups`."""

    dtype: str
    vectors: int
    planes: tuple[tuple[SliceRows, ...], ...]
    groups: int
    segment: int


@dataclass(frozen=True, slots=True)
class AxisMap:
    """One axis of an array's elements. Index i is `offsets[i]` elements from the array's begin in the host's buffer, and adds i ·
    `vector` to the vector's number and i · `lane` to the position in lanes; where `valid` is False nothing is transferred."""

    extent: int
    offsets: NDArray[np.int64]
    vector: int
    lane: int
    valid: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Transfer:
    """How elements of a host buffer and lanes of an array correspond.

    Element (i…) of the product of `axes` is at `base + Σ offsets_k[i_k]` of parameter `parameter` (elements of `dtype`), and in
    lane `position % lanes` of vector `Σ i_k · vector_k + (position // lanes) · chunk`, where position = Σ i_k · lane_k. `explicit`,
    where it is given, replaces `base` and all axes: rows of (host element, vector, lane), elements counted from the pointer. Lanes
    that no element comes to hold `fill` (bits of one element).
    """

    parameter: int
    base: int
    axes: tuple[AxisMap, ...]
    lanes: int
    chunk: int = 0
    explicit: NDArray[np.int64] | None = None
    fill: int = 0


@dataclass(frozen=True, slots=True)
class HostTensor:
    """An array that the host fills before the first cycle (`in`, `const`) or reads after the last (`out`).

    `transfers` are carried out in order: where two write one element of the host's buffer the later one wins. A `const` has `data`:
    its vectors, [vectors, lanes], as elements of its allocation's dtype."""

    name: str
    role: str
    allocation: RowAllocation
    transfers: tuple[Transfer, ...] = ()
    data: NDArray[np.generic] | None = None


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """A parameter of the kernel, with what it was bound to when the program was made: a scalar's `value`; the `nbytes` behind a
    pointer (0: unknown) and its `storage`, the number of the memory that it points into, with the byte there."""

    name: str
    kind: str
    dtype: str
    nbytes: int = 0
    value: int | float | None = None
    storage: tuple[int, int] | None = None

    def takes(self, value: int | float) -> bool:
        """Whether a number is what the scalar was bound to, as the parameter holds both: integers are bits, of either sign."""
        bound = self.value
        if bound is None or value == bound or (value != value and bound != bound):
            return True
        if isinstance(bound, float) or isinstance(value, float):
            return self.dtype == "fp32" and bool(np.float64(value).astype(np.float32) == np.float64(bound).astype(np.float32))
        return (value - bound) % (1 << 8 * self.nbytes) == 0 if self.nbytes else False


@dataclass(frozen=True, slots=True)
class SpatialProgram:
    """All that the machine needs: code for each chip, tensors, and the cycles that the scheduler predicted.

    `machine_hash` names the machine file that it was scheduled for: on any other its times mean nothing."""

    entry: str
    machine: str
    machine_hash: str
    grid: tuple[int, int, int]
    parameters: tuple[BoundParameter, ...]
    tensors: tuple[HostTensor, ...]
    chips: tuple[ChipCode, ...]
    cycles: int
    metadata: Mapping[str, object] = field(default_factory=dict)
