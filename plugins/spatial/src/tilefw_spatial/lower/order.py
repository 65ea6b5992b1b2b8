"""The order of accesses: what a load takes over from a store, and which loops must keep their order for stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

import numpy as np

from tilefw.api import DType
from tilefw.api.ir import AtomicCasOp, AtomicRmwOp, Operation, types
from tilefw_spatial.graph import Axis
from tilefw_spatial.lower.known import Array, Key, KnownTile
from tilefw_spatial.lower.state import LoweredTouch, State
from tilefw_spatial.lower.tiles import Data, Entry, unsupported


class Conflict(Exception):
    """Iterations of a loop that was to become an axis depend on each other through memory."""


def forwarded(state: State, op: Operation, touch: LoweredTouch, dtype: DType) -> Entry | None:
    """What the program itself stored where it loads now; refuses a load that sees a store in part, or one that a loop repeats."""
    for earlier in reversed(state.stored):
        if not _shares(state, earlier, touch) or not _overlap(state, earlier, touch):
            continue
        around = earlier.loops == touch.loops[: len(earlier.loops)]
        entry = earlier.entry if earlier.certain and around else None
        served = isinstance(entry, Data | KnownTile) and entry.dtype is dtype and _covers(state, earlier, touch)
        if served and _is_last(state, earlier):
            state.loads.append(replace(touch, entry=None))  # later stores of its loop must not come before it
            return entry
        if touch.loops:
            raise Conflict
        raise unsupported(
            op, "a load reads what the kernel itself may have stored before", f"memory.reload.{dtype.name}",
            "only a load of elements that one store wrote, index by index, is served",
        )
    return None


def check_order(state: State, store: LoweredTouch) -> None:
    """Raises Conflict where a store in a loop that is an axis would come before what has to be first: a load of a later iteration
    must see what it wrote, or an earlier store of a later iteration must win."""
    if not state.loops:
        return
    for earlier in (*state.loads, *state.stored):
        loops = tuple(a for a, b in zip(earlier.loops, state.loops, strict=False) if a is b)
        if not loops or not _shares(state, earlier, store) or (earlier.row is not None and earlier.row == store.row):
            continue
        if _overlap(state, earlier, store) and _later(state, earlier, store, loops):
            raise Conflict


def left(state: State, axis: Axis, loads: int, stores: int) -> None:
    """A loop's axis has ended: the loads of its body, number `loads` and on, now belong to the loops around. Its stores, number
    `stores` and on, keep the axis, under which a later loop of as many trips finds what each trip left."""
    for index in range(loads, len(state.loads)):
        state.loads[index] = replace(state.loads[index], loops=state.loops)
    for index in range(stores, len(state.stored)):
        touch = state.stored[index]
        state.stored[index] = replace(touch, ended=(*touch.ended, axis))


def _is_last(state: State, store: LoweredTouch) -> bool:
    """Whether what each trip of a store's loops that have ended wrote is still there, as no other trip wrote it too."""
    if not store.ended:
        return True
    _, first, last = _turns(state, store, store.ended, store.size)
    return bool((first == last).all())


def check_alone(state: State, op: AtomicRmwOp | AtomicCasOp, touch: LoweredTouch) -> None:
    """Refuses an atomic whose result is used, where other programs decide it: of its own class, or of one that runs before."""
    met = any(_shares(state, store, touch) and _overlap(state, store, touch) for store in state.earlier)
    if met or not is_alone(state, touch):
        name = types.dtype_of(types.element_of(op.value.type)).name
        capability = f"atomic.cas.{name}" if isinstance(op, AtomicCasOp) else f"memory.reload.{name}"
        raise unsupported(op, "what an atomic finds in memory depends on the order of programs", capability)


def check_kept(state: State, op: Operation, touch: LoweredTouch) -> None:
    """Refuses a store that keeps some of what stands there (masked by data, or accumulating), where elements of another kind were
    stored before: what is kept is found element by element."""
    for store in (*state.earlier, *state.stored):
        alike = (store.parameter, store.dtype) == (touch.parameter, touch.dtype)
        if not alike and _shares(state, store, touch) and _overlap(state, store, touch):
            raise unsupported(
                op, "a store that keeps part of what is there follows one of other elements in the same bytes",
                f"memory.reload.{touch.dtype.name}", "store whole elements of one type, or pass arrays that share no memory",
            )


def is_repeated(earlier: LoweredTouch, touch: LoweredTouch) -> bool:
    """Whether two loads surely read the same elements, index by index."""
    if earlier.parameter != touch.parameter or earlier.size != touch.size or earlier.offset.shape != touch.offset.shape:
        return False
    masks = (earlier.mask, touch.mask)
    if masks[0] is None or masks[1] is None:
        return masks[0] is masks[1] and _alike(earlier.offset, touch.offset)
    return _alike(masks[0], masks[1]) and _alike(earlier.offset, touch.offset)


def _alike(a: KnownTile, b: KnownTile) -> bool:
    """Whether two known tiles have the same terms."""
    if a is b:
        return True
    return len(a.terms) == len(b.terms) and all(
        x.alike(y) for x, y in zip(a.terms, b.terms, strict=True)
    )


def _shares(state: State, a: LoweredTouch, b: LoweredTouch) -> bool:
    if a.parameter == b.parameter:
        return True
    left, right = state.buffers[a.parameter], state.buffers[b.parameter]
    return left is not None and right is not None and left.storage == right.storage


def _overlap(state: State, a: LoweredTouch, b: LoweredTouch) -> bool:
    """Whether any byte is accessed by both."""
    (low, high), (least, most) = _span(state, a), _span(state, b)
    if high <= least or most <= low:
        return False
    left, right = _bytes(state, a), _bytes(state, b)
    if not left.size or not right.size or left[-1] + a.size <= right[0] or right[-1] + b.size <= left[0]:
        return False
    if a.size == b.size and not ((left[0] - right[0]) % a.size):
        return bool(np.isin(left, right).any())
    return bool(np.isin((left[:, None] + np.arange(a.size)).ravel(), (right[:, None] + np.arange(b.size)).ravel()).any())


def _span(state: State, touch: LoweredTouch) -> tuple[int, int]:
    """Bounds of the bytes that an access touches, whatever its mask."""
    buffer = state.buffers[touch.parameter]
    first = 0 if buffer is None else buffer.offset
    low, high = touch.offset.bounds()
    return first + low * touch.size, first + (high + 1) * touch.size


def _bytes(state: State, touch: LoweredTouch) -> Array:
    """The first byte of every element that is touched, in its storage, ascending."""
    return np.unique(_placed(state, touch, ())[0])


def _later(state: State, first: LoweredTouch, second: LoweredTouch, loops: Sequence[Axis]) -> bool:
    """Whether the first access, in some iteration, follows the second one of an earlier iteration at one place."""
    begins = (0 if buffer is None else buffer.offset for buffer in (state.buffers[t.parameter] for t in (first, second)))
    size = gcd(first.size, second.size, *begins)  # so that no element stands across two places
    one, two = (_turns(state, touch, loops, size) for touch in (first, second))
    _, mine, other = np.intersect1d(one[0], two[0], return_indices=True)
    return bool((one[2][mine] > two[1][other]).any())


def _turns(state: State, touch: LoweredTouch, loops: Sequence[Axis], size: int) -> tuple[Array, Array, Array]:
    """Places of `size` bytes that are touched; the first and the last iteration that touches each."""
    begins, turns = _placed(state, touch, loops)
    spread = np.arange(0, touch.size, size)
    found, inverse = np.unique((begins[:, None] + spread).ravel() // size, return_inverse=True)
    turns = np.repeat(turns, spread.size)
    first, last = np.full(found.size, np.iinfo(np.int64).max), np.full(found.size, -1, np.int64)
    np.minimum.at(first, inverse, turns)
    np.maximum.at(last, inverse, turns)
    return found, first, last


def _placed(state: State, touch: LoweredTouch, loops: Sequence[Axis]) -> tuple[Array, Array]:
    """The first byte of every access and its iteration of `loops`, index by index."""
    buffer = state.buffers[touch.parameter]
    offset = touch.offset.whole()
    mask = None if touch.mask is None else touch.mask.whole()
    terms = [offset] if mask is None else [offset, mask]
    extents: dict[Key, int] = {axis: axis.extent for axis in loops}
    for term in terms:
        extents.update(zip(term.keys, term.data.shape, strict=True))
    keys, shape = tuple(extents), list(extents.values())
    turns = np.zeros([1] * len(keys), np.int64)
    for dim, axis in enumerate(loops):
        turns = turns * axis.extent + np.arange(axis.extent).reshape([-1 if i == dim else 1 for i in range(len(keys))])
    begins = np.broadcast_to(offset.over(keys) * touch.size + (0 if buffer is None else buffer.offset), shape)
    turns = np.broadcast_to(turns, shape)
    if mask is None:
        return begins.ravel(), turns.ravel()
    valid = np.broadcast_to(mask.over(keys), shape)
    return begins[valid], turns[valid]


def _covers(state: State, store: LoweredTouch, load: LoweredTouch) -> bool:
    """Whether a store wrote all that a load reads, index by index."""
    if store.size != load.size or store.offset.shape != load.offset.shape:
        return False
    wholes = [known.whole() for touch in (store, load) for known in (touch.offset, touch.mask) if known is not None]
    keys = tuple(dict.fromkeys(key for whole in wholes for key in whole.keys))
    (written, stored), (read, loaded) = (_over(state, touch, keys) for touch in (store, load))
    return bool((~loaded | (stored & (written == read))).all())


def _over(state: State, touch: LoweredTouch, keys: tuple[Key, ...]) -> tuple[Array, Array]:
    """The first byte of every access and whether it is made, over keys."""
    buffer = state.buffers[touch.parameter]
    begins = touch.offset.whole().over(keys) * touch.size + (0 if buffer is None else buffer.offset)
    return begins, np.ones((), np.bool_) if touch.mask is None else touch.mask.whole().over(keys)


def is_alone(state: State, touch: LoweredTouch) -> bool:
    """Whether every program, iteration and index of an access touches an element of its own."""
    begins, _ = _placed(state, touch, (*state.programs.axes, *state.loops))
    dims = {key for known in (touch.offset, touch.mask) if known is not None for key in known.keys if isinstance(key, int)}
    repeated = any(extent > 1 and dim not in dims for dim, extent in enumerate(touch.offset.shape))
    return not repeated and np.unique(begins).size == begins.size
