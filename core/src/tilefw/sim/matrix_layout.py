"""Index bits moved: elements of a wave's registers to a dense matrix and back, each a transpose of a reshaped array.

The flat index of a wave's registers has, from the lowest: bits of the place in the register ("e"), of the lane ("l"), of the
register ("r"). A fragment names the same bits in the order of columns, rows and blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tilefw.sim.floats import UNSIGNED, Array
from tilefw.sim.fragments import BitMap

Kinds = tuple[tuple[str, int], ...]


def log2(n: int) -> int:
    return n.bit_length() - 1


def kinds(element_bits: int, register_bits: int, registers: int, lanes: int) -> Kinds:
    """Index bits of flat registers in memory order: element in register, lane, register (highest)."""
    return (("e", log2(max(1, register_bits // element_bits))), ("l", log2(lanes)), ("r", log2(registers)))


def memory_order(name: str) -> tuple[int, int]:
    """Sorts the names of index bits as `kinds` orders them."""
    return "elr".index(name[0]), int(name[1:])


@cache
def _axes(names: tuple[str, ...], counts: Kinds) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape of the source's flat index as runs of bits, and the order of those runs in the target (highest first)."""
    start = {}
    place = 0
    for kind, count in counts:
        start[kind] = place
        place += count
    targets = [start[name[0]] + int(name[1:]) for name in names]
    runs: list[list[int]] = []
    for bit in targets:
        if runs and runs[-1][-1] + 1 == bit:
            runs[-1].append(bit)
        else:
            runs.append([bit])
    low_first = sorted(range(len(runs)), key=lambda i: runs[i][0])
    covered = [bit for i in low_first for bit in runs[i]]
    if covered != list(range(place)):
        raise ValueError(f"bit map {names} does not name each of {place} index bits once")
    shape = tuple(1 << len(runs[i]) for i in reversed(low_first))
    axis_of = {run: len(runs) - 1 - axis for axis, run in enumerate(low_first)}
    order = tuple(axis_of[i] for i in reversed(range(len(runs))))
    return shape, order


def permute(flat: Array, names: tuple[str, ...], counts: Kinds) -> Array:
    """[n, elements] with elements reordered: index bit i of the result is the source's bit `names[i]`. A view where the order is
    the source's own."""
    shape, order = _axes(names, counts)
    return flat.reshape(len(flat), *shape).transpose(0, *(axis + 1 for axis in order)).reshape(len(flat), -1)


@cache
def inverse(names: tuple[str, ...], counts: Kinds) -> tuple[str, ...]:
    """For each source bit in order (kinds, lowest first), the target bit that holds it, named "x<i>"."""
    where = {name: f"x{i}" for i, name in enumerate(names)}
    return tuple(where[f"{kind}{i}"] for kind, count in counts for i in range(count))


def flat_registers(values: Sequence[Array], shape: tuple[int, int, int]) -> Array:
    """[waves, registers * lanes] of the raw registers of each wave."""
    groups, waves, lanes = shape
    stacked = np.empty((groups, waves, len(values), lanes), dtype=values[0].dtype)
    for i, value in enumerate(values):
        stacked[:, :, i, :] = value
    return stacked.reshape(groups * waves, len(values) * lanes)


def rearrange(values: Sequence[Array], bits: int, mapping: BitMap) -> tuple[Array, ...]:
    """`Algebra.rearrange` for values of one full shape."""
    shape = values[0].shape
    register_bits = values[0].dtype.itemsize * 8
    flat = flat_registers(values, shape).view(UNSIGNED[bits])  # type: ignore[arg-type]
    counts = kinds(bits, register_bits, len(values), shape[2])
    index = _source_index(mapping, counts, mapping.output_register_bits, log2(shape[2]))
    moved = flat[:, index] if index is not None else flat
    moved = np.ascontiguousarray(moved).view(values[0].dtype)
    out = moved.reshape(shape[0], shape[1], 1 << mapping.output_register_bits, shape[2])
    return tuple(out[:, :, i, :] for i in range(out.shape[2]))


@cache
def _source_index(mapping: BitMap, counts: Kinds, register_bits: int, lane_bits: int) -> Array | None:
    """Flat source index for each flat output index; None when it is the identity."""
    start, place = {}, 0
    for kind, count in counts:
        start[kind] = place
        place += count
    table = dict(mapping.bits)
    element_count = dict(counts)["e"]
    names = [f"e{i}" for i in range(element_count)] + [f"l{i}" for i in range(lane_bits)] + [f"r{i}" for i in range(register_bits)]
    output = np.arange(1 << len(names))
    source = np.zeros_like(output)
    for bit, name in enumerate(names):
        origin = table.get(name, name if name[0] == "e" else None)
        if origin is None:
            raise ValueError(f"the map says nothing of output bit {name}")
        source |= ((output >> bit) & 1) << (start[origin[0]] + int(origin[1:]))
    return None if len(output) == 1 << place and (source == output).all() else source
