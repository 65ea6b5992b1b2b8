"""Plans the conversion of a tile from one layout to another: a move of registers, shuffles in a warp, or shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilefw.api.errors import InternalError
from tilefw.simt.layout import LinearLayout
from tilefw.simt.shared_layout import SharedLayout

if TYPE_CHECKING:
    from tilefw.simt.description import ChipDescription


@dataclass(frozen=True)
class RegisterMove:
    """No element leaves its thread: register i of the target is register `indices[i]` of the source.

    `cost` is in issue slots of a thread for the whole tile, `reason` says why the conversion is what it is.
    """

    indices: tuple[int, ...]
    cost: float
    reason: str


@dataclass(frozen=True)
class Shuffle:
    """No element leaves its warp; see `exchange.emit`."""

    cost: float
    reason: str


@dataclass(frozen=True)
class ThroughShared:
    """All threads write to a buffer of layout `shared` and read what they want; `flip` is XORed to elements read."""

    shared: SharedLayout
    flip: int
    cost: float
    reason: str


Plan = RegisterMove | Shuffle | ThroughShared


def plan(source: LinearLayout, target: LinearLayout, bits: int, description: ChipDescription, flip: int = 0) -> Plan:
    """The cheapest way to the layout `target` of a tile that stands in `source`; `bits` an element takes in registers.

    With `flip`, element e of the target is element e XOR flip of the source (`LinearLayout.flipped`).
    """
    raise InternalError("convert.plan is not there yet")
