"""Index bits moved: elements of a wave's registers to a dense matrix and back, and elements between lanes.

The flat index of a wave's registers has, from the lowest: bits of the place in the register ("e"), of the lane ("l"), of the
register ("r"). A fragment names the same bits in the order of columns, rows and blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tilefw.api.integers import log2
from tilefw.sim.floats import UNSIGNED, Array
from tilefw.sim.matrix.fragments import BitMap

Kinds = tuple[tuple[str, int], ...]


def kinds(element_bits: int, register_bits: int, registers: int, lanes: int) -> Kinds:
    """Index bits of flat registers in memory order: element in register, lane, register (highest)."""
    return (("e", log2(max(1, register_bits // element_bits))), ("l", log2(lanes)), ("r", log2(registers)))


def memory_order(name: str) -> tuple[int, int]:
    """Sorts the names of index bits as `kinds` orders them."""
    return "elr".index(name[0]), int(name[1:])


class Layout:
    """Where the elements of a dense array [block, row, column] stand among a wave's registers, and the way there and back.

    `names` are the index bits of the dense array, lowest first. An index into words does both ways; words are as wide as neighbours
    stay neighbours, and where all of them do nothing is moved.
    """

    def __init__(self, names: tuple[str, ...], element_bits: int, register_bits: int, lanes: int) -> None:
        self.element_bits, self.register_bits, self.lanes = element_bits, register_bits, lanes
        self.registers = (element_bits << len(names)) // (register_bits * lanes)
        counts = kinds(element_bits, register_bits, self.registers, lanes)
        bits = [bit for kind, count in counts for bit in (f"{kind}{i}" for i in range(count))]
        if sorted(names) != sorted(bits):
            raise ValueError(f"bit map {names} does not name each of {bits} once")
        # Elements of less than a byte are taken apart first, each to a byte of its own.
        self.stored_bits = max(8, element_bits)
        together = 0
        while element_bits >= 8 and together < counts[0][1] and names[together] == bits[together]:
            together += 1
        self.word = UNSIGNED[self.stored_bits << together]
        order = [bits.index(name) - together for name in names[together:]]
        self.gather_index = self._index(order)
        self.scatter_index = self._index([order.index(i) for i in range(len(order))])

    @staticmethod
    def _index(order: list[int]) -> Array | None:
        """For each flat target index the source's, whose bit `order[i]` is bit i of the target's; None for the identity."""
        if order == sorted(order):
            return None
        target = np.arange(1 << len(order))
        source = np.zeros_like(target)
        for bit, origin in enumerate(order):
            source |= (target >> bit & 1) << origin
        return source

    def gather(self, values: Sequence[Array], shape: tuple[int, int, int]) -> Array:
        """Bit patterns [waves, elements] in the dense order, of registers [groups, waves, lanes]."""
        flat = _unpack(self._stack(values, shape), self.element_bits)
        if self.gather_index is not None:
            flat = np.take(flat.view(self.word), self.gather_index, axis=1)
        return flat.view(UNSIGNED[self.stored_bits])

    def scatter(self, codes: Array, shape: tuple[int, int, int], given_bits: int) -> tuple[Array, ...]:
        """The inverse, in registers of `given_bits`: elements of a byte and more."""
        flat = codes.view(self.word)
        if self.scatter_index is not None:
            flat = np.take(flat, self.scatter_index, axis=1)
        whole = flat.view(UNSIGNED[self.register_bits]).reshape(shape[0], shape[1], self.registers, self.lanes)
        if given_bits == self.register_bits:
            return tuple(whole[:, :, i, :] for i in range(self.registers))
        parts = whole.view(UNSIGNED[given_bits]).reshape(*whole.shape, -1)
        return tuple(parts[:, :, i, :, j] for i in range(self.registers) for j in range(parts.shape[-1]))

    def _stack(self, values: Sequence[Array], shape: tuple[int, int, int]) -> Array:
        """[waves, registers * lanes] of the raw registers of each wave, those of 64 bits from halves where they are given so."""
        groups, waves, lanes = shape
        given = values[0].dtype
        if self.register_bits not in UNSIGNED:  # several registers that only together hold whole elements
            each = self.register_bits // (8 * given.itemsize)
            parts = np.empty((groups, waves, self.registers, lanes, each), given)
            for i, value in enumerate(values):
                parts[:, :, i // each, :, i % each] = value
            return parts.reshape(groups * waves, -1)
        stacked = np.empty((groups, waves, self.registers, lanes), UNSIGNED[self.register_bits])
        if given == stacked.dtype:
            for i, value in enumerate(values):
                stacked[:, :, i, :] = value
        else:
            each = stacked.itemsize // given.itemsize
            parts = stacked.view(given).reshape(*stacked.shape, each)
            for i, value in enumerate(values):
                parts[:, :, i // each, :, i % each] = value
        return stacked.reshape(groups * waves, -1)


def _unpack(flat: Array, bits: int) -> Array:
    if bits >= 8:
        return flat
    bytes_ = flat.view(np.uint8)
    if bits == 6:  # four in three bytes
        first, second, third = (bytes_[:, i::3] for i in range(3))
        whole = first | second.astype(np.uint32) << np.uint32(8) | third.astype(np.uint32) << np.uint32(16)
        codes = [(whole >> np.uint32(i) & np.uint32(63)).astype(np.uint8) for i in range(0, 24, 6)]
        return np.stack(codes, axis=-1).reshape(len(flat), -1)
    parts = [(bytes_ >> np.uint8(i)) & np.uint8((1 << bits) - 1) for i in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(len(flat), -1)


def rearrange(values: Sequence[Array], bits: int, mapping: BitMap) -> tuple[Array, ...]:
    """`Algebra.rearrange` for values of one full shape."""
    shape = values[0].shape
    register_bits = values[0].dtype.itemsize * 8
    flat = np.stack(values, axis=2).reshape(shape[0] * shape[1], -1).view(UNSIGNED[bits])
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
            raise ValueError(f"the map lacks output bit {name}")
        source |= ((output >> bit) & 1) << (start[origin[0]] + int(origin[1:]))
    return None if len(output) == 1 << place and (source == output).all() else source
