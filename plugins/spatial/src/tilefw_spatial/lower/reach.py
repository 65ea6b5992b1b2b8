"""What an access accesses, over axes: dims of its tile get axes where they have none."""

from __future__ import annotations

from tilefw.api.ir import Operation, place_of
from tilefw_spatial.graph import Axis
from tilefw_spatial.lower.constant_tile import ConstantTerm, ConstantTile
from tilefw_spatial.lower.state import Reach, State
from tilefw_spatial.lower.tiles import Pointer


def reached(
    state: State, op: Operation, pointer: Pointer, mask: ConstantTile | None, target: tuple[Axis | None, ...] | None, clipped: bool
) -> tuple[Reach, tuple[Axis | None, ...]]:
    """What an access accesses, over axes: those of `target`, and new ones for the dims that it has none for."""
    axes: list[Axis | None] = [None] * len(pointer.shape) if target is None else list(target)
    tile = (pointer.offset,) if mask is None else (pointer.offset, mask)
    for key in (key for part in tile for key in part.keys):
        if isinstance(key, int) and axes[key] is None:
            axes[key] = state.fresh(pointer.shape[key])
    masks = () if mask is None else mask.terms
    reach = Reach(
        pointer.parameter, pointer.dtype, tuple(_over(term, axes) for term in pointer.offset.terms),
        tuple(_over(term, axes) for term in masks), place_of(op), clipped,
    )
    return reach, tuple(axes)


def _over(term: ConstantTerm, axes: list[Axis | None]) -> ConstantTerm:
    keys = [axes[key] if isinstance(key, int) else key for key in term.keys]
    return term.rekeyed([key for key in keys if key is not None])
