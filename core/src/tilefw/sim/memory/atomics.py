"""Atomic read-modify-write over many lanes: lanes on one address go one after the other, in the order of their numbers.

The order is the lanes' own or, with a seed, a permutation. Addresses that are hit once are done together; long chains of
an operation that accumulates are one `ufunc.accumulate`, which is the sequential definition. A chain of equal operands is done as
soon as one of them leaves the value as it was: the others find the same. So a lock that many lanes wait for costs two turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilefw.sim.floats import SIGNED, Array, decode, encode, flush
from tilefw.sim.memory.regions import Region, gather, scatter

_SIGNED_OPS = {"min_s": np.minimum, "max_s": np.maximum}
_PLAIN_OPS = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min_u": np.minimum, "max_u": np.maximum,
}
_FLOAT_OPS = {"fadd": np.add, "fmin": np.fmin, "fmax": np.fmax}
_LONG_CHAIN = 8


def perform(
    region: Region, index: Array, size: int, op: str, values: Sequence[Array], fmt: str, turns: Array | None, ftz: bool = False
) -> tuple[Array, bool]:
    """Apply `op` at byte offsets `index` (flat) with flat operands, in the order `turns`.

    Gives the value that each lane found, and whether any value in memory is another now.
    """
    if not len(index):
        return np.empty(0, values[0].dtype), False
    order = np.arange(len(index)) if turns is None else turns
    order = order[np.argsort(index[order], kind="stable")]
    sorted_index = index[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = sorted_index[1:] != sorted_index[:-1]
    starts = np.nonzero(first)[0]
    lengths = np.diff(np.append(starts, len(order)))
    operands = [v[order] for v in values]
    current = gather(region, sorted_index[starts], size)
    found = np.empty(len(order), dtype=current.dtype)
    ufunc = _ufunc(op, fmt)
    if ufunc is not None and lengths.max() > _LONG_CHAIN:
        final = _chains(ufunc, current, operands[0], starts, lengths, found)
        accumulated = not ftz or not any((flush(bits, fmt) != bits).any() for bits in (found, operands[0], final))
    else:
        final, accumulated = current, False
    if not accumulated:
        final = _rounds(update_rule(op, fmt, ftz), current, operands, starts, lengths, found)
    scatter(region.data, region.view(size), sorted_index[starts], final, size)
    old = np.empty_like(found)
    old[order] = found
    return old, bool((final != current).any())


def _ufunc(op: str, fmt: str) -> tuple[Any, Any] | None:
    """(ufunc, dtype to view as), where accumulating means the same as going lane by lane."""
    if op in _PLAIN_OPS:
        return _PLAIN_OPS[op], None
    if op in _SIGNED_OPS:
        return _SIGNED_OPS[op], "signed"
    if op == "fadd" and fmt in ("f32", "f64"):
        return np.add, {"f32": np.float32, "f64": np.float64}[fmt]
    return None


def _chains(ufunc: tuple[Any, Any], current: Array, values: Array, starts: Array, lengths: Array, found: Array) -> Array:
    function, kind = ufunc
    bits = current.dtype
    dtype = SIGNED[bits.itemsize * 8] if kind == "signed" else (kind or bits)
    final = np.empty_like(current)
    for place, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        chain = np.empty(length + 1, dtype=dtype)
        chain[0] = current[place : place + 1].view(dtype)[0]
        chain[1:] = values[start : start + length].view(dtype)
        chain = function.accumulate(chain, dtype=dtype).view(bits)
        found[start : start + length] = chain[:-1]
        final[place] = chain[-1]
    return final


def _rounds(
    step: Callable[..., Array], current: Array, operands: Sequence[Array], starts: Array, lengths: Array, found: Array
) -> Array:
    current, lengths = current.copy(), lengths.copy()
    alike = _alike(operands, starts) if lengths.max() > _LONG_CHAIN else None
    turn = 0
    while len(live := np.nonzero(lengths > turn)[0]):
        lanes = starts[live] + turn
        before = found[lanes] = current[live]
        current[live] = after = step(before, *(v[lanes] for v in operands))
        turn += 1
        if alike is None:
            continue
        for chain in live[alike[live] & (after == before)].tolist():
            found[starts[chain] + turn : starts[chain] + lengths[chain]] = current[chain]
            lengths[chain] = turn
    return current


def _alike(operands: Sequence[Array], starts: Array) -> Array:
    """Chains whose lanes all have the same operands."""
    same = np.ones(len(starts), dtype=np.bool_)
    for values in operands:
        same &= np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
    return same


def update_rule(op: str, fmt: str, ftz: bool) -> Callable[..., Array]:
    """The new value of old and operands."""
    if op in _PLAIN_OPS:
        return _PLAIN_OPS[op]
    if op in _SIGNED_OPS:
        ufunc = _SIGNED_OPS[op]
        return lambda old, b: ufunc(old.view(SIGNED[old.itemsize * 8]), b.view(SIGNED[b.itemsize * 8])).view(old.dtype)
    if op in _FLOAT_OPS:
        return _flushing(_float_step(_FLOAT_OPS[op], fmt), fmt) if ftz else _float_step(_FLOAT_OPS[op], fmt)
    return {
        "exchange": lambda old, b: b,
        "compare_exchange": lambda old, expected, new: np.where(_equal(old, expected, fmt), new, old),
        "sub_from": lambda old, b: b - old,
        "mask_or": lambda old, mask, b: old & ~mask | b,
        "wrap": lambda old, a, b: np.where(old >= a, old - a, old + b),
        "inc": lambda old, b: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
        "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
    }[op]


def _equal(a: Array, b: Array, fmt: str) -> Array:
    return decode(a, fmt) == decode(b, fmt) if fmt else a == b


def _float_step(ufunc: Any, fmt: str) -> Callable[..., Array]:
    name = fmt.removesuffix("x2")

    def step(old: Array, b: Array) -> Array:
        half = np.uint16 if fmt.endswith("x2") else old.dtype
        x, y = decode(old.view(half), name), decode(b.view(half), name)
        # f16 and bf16 sums of two values are exact in f64, so that encoding rounds once.
        result = ufunc(x, y) if name in ("f32", "f64") else ufunc(x.astype(np.float64), y)
        return encode(result.astype(np.float64), name).view(old.dtype)

    return step


def _flushing(step: Callable[[Array, Array], Array], fmt: str) -> Callable[[Array, Array], Array]:
    return lambda old, b: flush(step(flush(old, fmt), flush(b, fmt)), fmt)
