"""In which layout a tile is loaded that goes to shared memory, for dots to read there, on chips without fragment loads.

A lane of a dot's operand reads a run of k. Where memory has another dim in a row, a lane loads several such rows and stores runs
of k: elements are transposed in registers, and the wide accesses are wide on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from tilefw.api.integers import log2
from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.assign.k_steps import dot_of, operand_of
from tilefw.simt.description import ChipDescription
from tilefw.simt.lane.registers import bits_of
from tilefw.simt.layout import LinearLayout, f2, swizzle
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shape_ops import TransOp
from tilefw.tile.dialect.shared_ops import LoadSharedOp, SlotOp, StoreSharedOp

_Load = ops.LoadOp | ops.LoadBlockOp


def staged_layout(op: StoreSharedOp, accesses: Accesses, dots: dict[DotOp, DotLayouts]) -> LinearLayout | None:
    """The layout of a load whose only use is this store to a buffer that dots read; None where there is no reason for its own."""
    load = op.value.owner
    chip = accesses.machine.chip
    if chip.fragment_loads or not isinstance(load, _Load) or op.value.has_more_than_one_use():
        return None
    readers = list(readers_of(op.view, dots, chip))
    bits = bits_of(types.dtype_of(op.value.type).ir)
    if not readers or bits < 8:
        return None
    own = accesses.coalesced(load)

    candidates = _candidates(own, log2(accesses.best_width(load, own)), readers, bits, chip.shared_access_bytes)
    best, least = own, (math.inf, 0)
    for layout in dict.fromkeys((own, *candidates)):
        loading = accesses.cost(load, layout)
        if loading > least[0]:
            continue  # shared memory costs something besides
        # Slots; of equals, the one of fewer accesses.
        slots, times = swizzle.price(layout.shape, bits, (layout,), tuple(readers), chip)
        price = loading + slots, layout.registers // accesses.best_width(load, layout) + times
        if price < least:
            best, least = layout, price
    return best


def _candidates(own: LinearLayout, width: int, readers: list[LinearLayout], bits: int, access_bytes: int) -> Iterator[LinearLayout]:
    """`own` with less of its run in a lane's registers and instead what a reader takes at once; lanes as before, lowest first."""
    most = len(own.register)
    for reader in readers:
        wanted = reader.register[: log2(access_bytes * 8 // bits)]
        if any(basis not in own.bases for basis in wanted):
            continue
        for run in range(min(width, most), 0, -1):
            held = list(own.register[:run])
            held += [basis for basis in wanted if basis not in held][: most - run]
            rest = [basis for basis in own.bases if basis and basis not in held]
            held += [rest.pop() for _ in range(most - len(held))]
            if f2.rank(held + rest) == len(held) + len(rest):
                yield _dealt(own, held, rest)
                # What is left of the reader's run to neighbours: together they fill the banks.
                yield _dealt(own, held, sorted(rest, key=lambda basis: basis not in wanted))


def _dealt(own: LinearLayout, held: list[int], rest: list[int]) -> LinearLayout:
    """Lanes and waves take what is left in the order in which they had it; bits that copy stay."""
    left = iter(rest)
    lane = tuple(next(left) if basis else 0 for basis in own.lane)
    return LinearLayout(own.shape, tuple(held), lane, tuple(next(left) if basis else 0 for basis in own.wave))


def readers_of(view: SSAValue, dots: dict[DotOp, DotLayouts], chip: ChipDescription) -> Iterator[LinearLayout]:
    """The layouts in which dots read the buffer of a view."""
    for user in users_of(buffer_of_view(view)):
        if isinstance(user, LoadSharedOp):
            yield from _reading(user, dots, chip)


def users_of(buffer: SSAValue) -> Iterator[Operation]:
    """The ops that use a buffer or one of its slots."""
    views = [buffer]
    while views:
        for use in views.pop().uses:
            if isinstance(use.operation, SlotOp):
                views.append(use.operation.results[0])
            else:
                yield use.operation


def _reading(op: LoadSharedOp, dots: dict[DotOp, DotLayouts], chip: ChipDescription) -> Iterator[LinearLayout]:
    dot = dot_of(op)
    if dot is not None:
        if not dots[dot].atom.asynchronous:
            yield operand_of(op, dot, dots[dot], chip)
        return
    for use in op.results[0].uses:
        user: Operation = use.operation
        value, order = op.results[0], None
        if isinstance(user, TransOp):
            value, order = user.results[0], user.order
        for inner in value.uses if order is not None else (use,):
            if isinstance(inner.operation, DotOp) and inner.index < 2:
                layouts = dots[inner.operation]
                if layouts.atom.asynchronous:
                    continue
                whole = layouts.a if inner.index == 0 else layouts.b
                yield whole if order is None else whole.before_trans(order)[0]


def buffer_of_view(view: SSAValue) -> SSAValue:
    """The buffer that a view is of, or a slot of."""
    owner = view.owner
    return buffer_of_view(owner.ring) if isinstance(owner, SlotOp) else view
