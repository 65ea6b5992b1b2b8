"""Matrix products over the registers of a wave: fragments to dense tiles by bit maps, and the two ways of summing.

A bit map becomes one transpose of a reshaped array. Decoded operands are remembered for a few steps, because a matrix
instruction's operands are used again with many partners.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tilefw.sim.floats import UNSIGNED, Array, decode, encode
from tilefw.sim.fragments import Accumulation, BitMap, Fragment
from tilefw.sim.matrix_sums import hardware_sum

_INTEGER = {"s8": (8, True), "u8": (8, False), "s4": (4, True), "u4": (4, False), "s32": (32, True), "b1": (1, False)}
_FLOAT_BITS = {"f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16}


def element_bits(fmt: str) -> int:
    return _INTEGER[fmt][0] if fmt in _INTEGER else _FLOAT_BITS.get(fmt, 8)


@cache
def _axes(names: tuple[str, ...], counts: tuple[tuple[str, int], ...]) -> tuple[tuple[int, ...], ...]:
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


def _permute(flat: Array, names: tuple[str, ...], counts: tuple[tuple[str, int], ...]) -> Array:
    """[n, elements] with elements reordered: index bit i of the result is the source's bit `names[i]`."""
    shape, order = _axes(names, counts)
    return flat.reshape(len(flat), *shape).transpose(0, *(axis + 1 for axis in order)).reshape(len(flat), -1)


@cache
def _inverse(names: tuple[str, ...], kinds: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """For each source bit in order (kinds, lowest first), the target bit that holds it, named "x<i>"."""
    where = {name: f"x{i}" for i, name in enumerate(names)}
    return tuple(where[f"{kind}{i}"] for kind, count in kinds for i in range(count))


def _log2(n: int) -> int:
    return n.bit_length() - 1


def _flat(values: Sequence[Array], shape: tuple[int, int, int]) -> Array:
    """[waves, registers, lanes] of the raw registers of each wave."""
    groups, waves, lanes = shape
    stacked = np.empty((groups, waves, len(values), lanes), dtype=values[0].dtype)
    for i, value in enumerate(values):
        stacked[:, :, i, :] = value
    return stacked.reshape(groups * waves, len(values), lanes)


def _kinds(fmt_bits: int, register_bits: int, registers: int, lanes: int) -> tuple[tuple[str, int], ...]:
    """Index bits of flat registers in memory order: element in register, lane, register (highest)."""
    return (("e", _log2(max(1, register_bits // fmt_bits))), ("l", _log2(lanes)), ("r", _log2(registers)))


def rearrange(values: Sequence[Array], bits: int, mapping: BitMap) -> tuple[Array, ...]:
    """`Algebra.rearrange` for values of one full shape."""
    shape = values[0].shape
    register_bits = values[0].dtype.itemsize * 8
    flat = _flat(values, shape)  # type: ignore[arg-type]
    flat = flat.reshape(flat.shape[0], -1).view(UNSIGNED[bits])
    kinds = _kinds(bits, register_bits, len(values), shape[2])
    index = _source_index(mapping, kinds, mapping.output_register_bits, _log2(shape[2]))
    moved = flat[:, index] if index is not None else flat
    moved = np.ascontiguousarray(moved).view(values[0].dtype)
    out = moved.reshape(shape[0], shape[1], 1 << mapping.output_register_bits, shape[2])
    return tuple(out[:, :, i, :] for i in range(out.shape[2]))


@cache
def _source_index(mapping: BitMap, kinds: tuple[tuple[str, int], ...], register_bits: int, lane_bits: int) -> Array | None:
    """Flat source index for each flat output index; None when it is the identity."""
    start, place = {}, 0
    for kind, count in kinds:
        start[kind] = place
        place += count
    table = dict(mapping.bits)
    element_count = dict(kinds)["e"]
    names = [f"e{i}" for i in range(element_count)] + [f"l{i}" for i in range(lane_bits)] + [f"r{i}" for i in range(register_bits)]
    output = np.arange(1 << len(names))
    source = np.zeros_like(output)
    for bit, name in enumerate(names):
        origin = table.get(name, name if name[0] == "e" else None)
        if origin is None:
            raise ValueError(f"the map says nothing of output bit {name}")
        source |= ((output >> bit) & 1) << (start[origin[0]] + int(origin[1:]))
    return None if len(output) == 1 << place and (source == output).all() else source


class MatrixUnit:
    """Matrix products of one launch; `hardware` sums as `Accumulation` says, else in f32 (f64, integers exactly)."""

    def __init__(self, hardware: bool) -> None:
        self.hardware = hardware
        self._decoded: OrderedDict[tuple[Any, ...], tuple[Sequence[Array], Array]] = OrderedDict()

    def multiply(
        self, shape: tuple[int, int, int], operands: tuple[Sequence[Array], ...], maps: tuple[Fragment, ...],
        accumulation: Accumulation,
    ) -> tuple[Array, ...]:
        a, b, c = (self._dense(shape, values, fragment) for values, fragment in zip(operands, maps, strict=False))
        if maps[2].fmt in _INTEGER:
            total = _integer(a, b, c, maps, accumulation.saturate)
        elif self.hardware:
            total = hardware_sum(a, b, c, maps, accumulation)
        elif maps[3].fmt == "f64" or a.dtype == np.float64:
            total = np.matmul(a.astype(np.float64), b.astype(np.float64)) + c
        else:
            total = np.matmul(a, b)
            total += c
        return self._registers(total, shape, maps[3])

    def _dense(self, shape: tuple[int, int, int], values: Sequence[Array], fragment: Fragment) -> Array:
        """[waves, rows, columns] in f32, f64 or int64; waves that agree are kept once for each."""
        key = (fragment, shape, *map(id, values))
        known = self._decoded.get(key)
        if known is not None:
            self._decoded.move_to_end(key)
            return known[1]
        flat = _flat(values, shape)
        bits = element_bits(fragment.fmt)
        kinds = _kinds(bits, fragment.register_bits, len(values), shape[2])
        elements = _unpack(flat.reshape(flat.shape[0], -1), bits)
        ordered = _permute(elements, fragment.columns + fragment.rows, kinds)
        dense = _values(ordered, fragment.fmt).reshape(-1, *fragment.shape)
        # Registers are never written in place; holding them keeps their ids from being given to others.
        self._decoded[key] = values, dense
        if len(self._decoded) > 48:
            self._decoded.popitem(last=False)
        return dense

    def _registers(self, total: Array, shape: tuple[int, int, int], fragment: Fragment) -> tuple[Array, ...]:
        bits = element_bits(fragment.fmt)
        count = len(fragment.rows) + len(fragment.columns)
        coded = _codes(total, fragment.fmt).reshape(total.shape[0], 1 << count)
        per_register = fragment.register_bits // bits
        registers = (1 << count) // (per_register * shape[2])
        kinds = _kinds(bits, fragment.register_bits, registers, shape[2])
        back = _inverse(fragment.columns + fragment.rows, kinds)
        flat = np.ascontiguousarray(_permute(coded, back, (("x", count),)))
        out = flat.view(UNSIGNED[fragment.register_bits]).reshape(shape[0], shape[1], registers, shape[2])
        return tuple(out[:, :, i, :] for i in range(registers))


def _unpack(flat: Array, bits: int) -> Array:
    if bits >= 8:
        return flat.view(UNSIGNED[bits])
    bytes_ = flat.view(np.uint8)
    parts = [(bytes_ >> np.uint8(i)) & np.uint8((1 << bits) - 1) for i in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(len(flat), -1)


def _values(codes: Array, fmt: str) -> Array:
    if fmt not in _INTEGER:
        return decode(codes, fmt)
    bits, signed = _INTEGER[fmt]
    # f64 holds all products and sums of these exactly, and has a fast matrix product.
    if bits == 32:
        return codes.view(np.int32).astype(np.float64)
    value = codes.astype(np.float32)
    return np.where(value >= 2.0 ** (bits - 1), value - np.float32(2.0**bits), value) if signed else value


def _codes(total: Array, fmt: str) -> Array:
    if fmt in _INTEGER:
        return total.astype(np.int64).astype(np.uint32)
    if fmt == "f32":
        return np.ascontiguousarray(total, dtype=np.float32).view(np.uint32)
    return encode(total.astype(np.float64), fmt)


def _integer(a: Array, b: Array, c: Array, maps: Sequence[Fragment], saturate: bool) -> Array:
    # |sum| <= 2**8 * 2**8 * k is exact in f32 for k up to 256.
    product = np.matmul(a, b) if a.shape[2] <= 256 else np.matmul(a.astype(np.float64), b.astype(np.float64))
    total = product.astype(np.float64) + c
    return np.clip(total, -(2.0**31), 2.0**31 - 1) if saturate else total
