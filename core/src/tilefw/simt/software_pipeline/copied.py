"""Which loads of a loop asynchronous copies can make, from global to shared memory without registers.

A copy takes a few bytes at least. Where a chip puts what a wave copies in one piece, elements stay in shared memory as they stand
in global memory: so copies serve dots that read rows of k, and others where the chip transposes as it reads. A load that waits for
its registers waits for the copies before it too, so there all matrices of a loop are copied, or none. Where lanes have no copies of
their own, as in clusters, an engine may still have.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.assign.copies import fills_waves
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower.described_array import engine_of
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.engine_copies import is_the_engines
from tilefw.simt.software_pipeline.other_values import fills
from tilefw.tile import types
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shape_ops import TransOp

_NARROWEST = 4  # bytes of an access below which a copy is not a gain: no chip copies less, and a load can be of any width


def copied(loads: Sequence[Load], accesses: Accesses) -> list[Load]:
    """Those of the loads that copies make."""
    chip = accesses.machine.chip
    if not chip.copy_bytes:
        return _by_engine(loads, accesses)
    if not chip.copies_consecutive:
        least = max(_NARROWEST, min(chip.copy_bytes))
        return [load for load in loads if _bytes(load, accesses.coalesced(load), accesses) >= least]
    matrices = [load for load in loads if len(types.shape_of(load.result.type)) > 1]
    return matrices if all(_in_one_piece(load, accesses) for load in matrices) else []


def _by_engine(loads: Sequence[Load], accesses: Accesses) -> list[Load]:
    """The loads where an engine makes the copies of all, and lanes none."""
    engine = engine_of(accesses.machine, loads[0]) if loads else None
    return [] if engine is None or not all(is_the_engines(load, engine, accesses) for load in loads) else list(loads)


def _bytes(load: Load, layout: LinearLayout, accesses: Accesses) -> int:
    """What one access of a load takes in a layout."""
    return accesses.best_width(load, layout) * _size(load)


def _size(load: Load) -> int:
    return types.dtype_of(load.result.type).storage_bits // 8


def _in_one_piece(load: Load, accesses: Accesses) -> bool:
    """Whether a wave's copies of a load, the widest of the chip, fill its buffer as a dot can read it."""
    chip, layout = accesses.machine.chip, accesses.pieces(load)
    if _bytes(load, layout, accesses) != max(chip.copy_bytes) or not fills_waves(layout) or fills(load):
        return False
    depth = _depth(load.result)
    if depth is None:
        return False
    transposes = any(each.cell_bits == _size(load) * 8 for each in chip.transposed_loads)
    return transposes or _fastest(layout) == depth


def _fastest(layout: LinearLayout) -> int:
    """The dim along which a lane's first registers lie."""
    return next(dim for dim, step in enumerate(layout.coordinates(layout.register[0])) if step)


def _depth(value: SSAValue, order: Sequence[int] | None = None) -> int | None:
    """The dim of a tile that is a dot's k; None where anybody else reads it."""
    uses = list(value.uses)
    if len(uses) != 1:
        return None
    user = uses[0].operation
    if isinstance(user, TransOp) and order is None:
        return _depth(user.results[0], user.order)
    if not isinstance(user, DotOp) or uses[0].index > 1:
        return None
    rank = len(types.shape_of(value.type))
    dim = rank - 1 if uses[0].index == 0 else rank - 2
    return dim if order is None else order[dim]
