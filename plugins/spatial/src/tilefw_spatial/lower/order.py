"""The order of accesses: what a load takes over from a store, and which loops must keep their order for stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

import numpy as np

from tilefw.api import DType
from tilefw.api.ir import AtomicCasOp, AtomicRmwOp, Operation, types
from tilefw_spatial.graph import Axis
from tilefw_spatial.lower.constant_tile import Array, ConstantTile, Key
from tilefw_spatial.lower.state import State, TrackedAccess
from tilefw_spatial.lower.tiles import Data, Entry, unsupported


class Conflict(Exception):
    """Iterations of a loop that was to become an axis depend on each other through memory."""


def forwarded(state: State, op: Operation, access: TrackedAccess, dtype: DType) -> Entry | None:
    """What the program itself stored where it loads now; refuses a load that sees a store in part, or one that a loop repeats."""
    for earlier in reversed(state.stored):
        if not _shares(state, earlier, access) or not _overlap(state, earlier, access):
            continue
        around = earlier.loops == access.loops[: len(earlier.loops)]
        entry = earlier.entry if earlier.certain and around else None
        served = isinstance(entry, Data | ConstantTile) and entry.dtype is dtype and _covers(state, earlier, access)
        if served and _is_last(state, earlier):
            state.loads.append(replace(access, entry=None))  # later stores of its loop must not come before it
            return entry
        if access.loops:
            raise Conflict
        raise unsupported(
            op, "a load reads what the kernel itself may have stored before", f"memory.reload.{dtype.name}",
            "only a load of elements that one store wrote, index by index, is served",
        )
    return None


def check_order(state: State, store: TrackedAccess) -> None:
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
        access = state.stored[index]
        state.stored[index] = replace(access, ended=(*access.ended, axis))


def _is_last(state: State, store: TrackedAccess) -> bool:
    """Whether what each trip of a store's loops that have ended wrote is still there, as no other trip wrote it too."""
    if not store.ended:
        return True
    _, first, last = _iterations(state, store, store.ended, store.size)
    return bool((first == last).all())


def check_alone(state: State, op: AtomicRmwOp | AtomicCasOp, access: TrackedAccess) -> None:
    """Refuses an atomic whose result is used, where other programs decide it: of its own class, or of one that runs before."""
    conflict = any(_shares(state, store, access) and _overlap(state, store, access) for store in state.earlier)
    if conflict or not is_alone(state, access):
        name = types.dtype_of(types.element_of(op.value.type)).name
        capability = f"atomic.cas.{name}" if isinstance(op, AtomicCasOp) else f"memory.reload.{name}"
        raise unsupported(op, "what an atomic finds in memory depends on the order of programs", capability)


def check_kept(state: State, op: Operation, access: TrackedAccess) -> None:
    """Refuses a store that keeps some of what is there (masked by data, or accumulating), where elements of another kind were
    stored before: what is kept is found element by element."""
    for store in (*state.earlier, *state.stored):
        identical = (store.parameter, store.dtype) == (access.parameter, access.dtype)
        if not identical and _shares(state, store, access) and _overlap(state, store, access):
            raise unsupported(
                op, "a store that keeps part of what is there follows one of other elements in the same bytes",
                f"memory.reload.{access.dtype.name}", "store whole elements of one type, or pass arrays that share no memory",
            )


def is_repeated(earlier: TrackedAccess, access: TrackedAccess) -> bool:
    """Whether two loads surely read the same elements, index by index."""
    if earlier.parameter != access.parameter or earlier.size != access.size or earlier.offset.shape != access.offset.shape:
        return False
    masks = (earlier.mask, access.mask)
    if masks[0] is None or masks[1] is None:
        return masks[0] is masks[1] and _identical(earlier.offset, access.offset)
    return _identical(masks[0], masks[1]) and _identical(earlier.offset, access.offset)


def _identical(a: ConstantTile, b: ConstantTile) -> bool:
    """Whether two constant tiles have the same terms."""
    if a is b:
        return True
    return len(a.terms) == len(b.terms) and all(
        x.identical(y) for x, y in zip(a.terms, b.terms, strict=True)
    )


def _shares(state: State, a: TrackedAccess, b: TrackedAccess) -> bool:
    if a.parameter == b.parameter:
        return True
    left, right = state.buffers[a.parameter], state.buffers[b.parameter]
    return left is not None and right is not None and left.storage == right.storage


def _overlap(state: State, a: TrackedAccess, b: TrackedAccess) -> bool:
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


def _span(state: State, access: TrackedAccess) -> tuple[int, int]:
    """Bounds of the bytes that an access accesses, whatever its mask."""
    buffer = state.buffers[access.parameter]
    first = 0 if buffer is None else buffer.offset
    low, high = access.offset.bounds()
    return first + low * access.size, first + (high + 1) * access.size


def _bytes(state: State, access: TrackedAccess) -> Array:
    """The first byte of every element that is accessed, in its storage, ascending."""
    return np.unique(_byte_addresses(state, access, ())[0])


def _later(state: State, first: TrackedAccess, second: TrackedAccess, loops: Sequence[Axis]) -> bool:
    """Whether the first access, in some iteration, follows the second one of an earlier iteration at one address."""
    begins = (0 if buffer is None else buffer.offset for buffer in (state.buffers[t.parameter] for t in (first, second)))
    size = gcd(first.size, second.size, *begins)  # so that no element straddles two units
    one, two = (_iterations(state, access, loops, size) for access in (first, second))
    _, mine, other = np.intersect1d(one[0], two[0], return_indices=True)
    return bool((one[2][mine] > two[1][other]).any())


def _iterations(state: State, access: TrackedAccess, loops: Sequence[Axis], size: int) -> tuple[Array, Array, Array]:
    """Units of `size` bytes that are accessed; the first and the last iteration that accesses each."""
    begins, iterations = _byte_addresses(state, access, loops)
    spread = np.arange(0, access.size, size)
    found, inverse = np.unique((begins[:, None] + spread).ravel() // size, return_inverse=True)
    iterations = np.repeat(iterations, spread.size)
    first, last = np.full(found.size, np.iinfo(np.int64).max), np.full(found.size, -1, np.int64)
    np.minimum.at(first, inverse, iterations)
    np.maximum.at(last, inverse, iterations)
    return found, first, last


def _byte_addresses(state: State, access: TrackedAccess, loops: Sequence[Axis]) -> tuple[Array, Array]:
    """The first byte of every access and its iteration of `loops`, index by index."""
    buffer = state.buffers[access.parameter]
    offset = access.offset.whole()
    mask = None if access.mask is None else access.mask.whole()
    terms = [offset] if mask is None else [offset, mask]
    extents: dict[Key, int] = {axis: axis.extent for axis in loops}
    for term in terms:
        extents.update(zip(term.keys, term.data.shape, strict=True))
    keys, shape = tuple(extents), list(extents.values())
    iterations = np.zeros([1] * len(keys), np.int64)
    for dim, axis in enumerate(loops):
        iterations = iterations * axis.extent + np.arange(axis.extent).reshape([-1 if i == dim else 1 for i in range(len(keys))])
    begins = np.broadcast_to(offset.over(keys) * access.size + (0 if buffer is None else buffer.offset), shape)
    iterations = np.broadcast_to(iterations, shape)
    if mask is None:
        return begins.ravel(), iterations.ravel()
    valid = np.broadcast_to(mask.over(keys), shape)
    return begins[valid], iterations[valid]


def _covers(state: State, store: TrackedAccess, load: TrackedAccess) -> bool:
    """Whether a store wrote all that a load reads, index by index."""
    if store.size != load.size or store.offset.shape != load.offset.shape:
        return False
    wholes = [tile.whole() for access in (store, load) for tile in (access.offset, access.mask) if tile is not None]
    keys = tuple(dict.fromkeys(key for whole in wholes for key in whole.keys))
    (written, stored), (read, loaded) = (_over(state, access, keys) for access in (store, load))
    return bool((~loaded | (stored & (written == read))).all())


def _over(state: State, access: TrackedAccess, keys: tuple[Key, ...]) -> tuple[Array, Array]:
    """The first byte of every access and whether it is made, over keys."""
    buffer = state.buffers[access.parameter]
    begins = access.offset.whole().over(keys) * access.size + (0 if buffer is None else buffer.offset)
    return begins, np.ones((), np.bool_) if access.mask is None else access.mask.whole().over(keys)


def is_alone(state: State, access: TrackedAccess) -> bool:
    """Whether every program, iteration and index of an access accesses an element of its own."""
    begins, _ = _byte_addresses(state, access, (*state.programs.axes, *state.loops))
    dims = {key for tile in (access.offset, access.mask) if tile is not None for key in tile.keys if isinstance(key, int)}
    repeated = any(extent > 1 and dim not in dims for dim, extent in enumerate(access.offset.shape))
    return not repeated and np.unique(begins).size == begins.size
