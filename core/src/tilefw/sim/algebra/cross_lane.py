"""Primitives across the lanes of a wave, and those that say where a lane stands; see `Algebra` for their meaning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.sim.algebra.primitives import Algebra
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.observers import Observers
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.matrix.fragments import Accumulation, BitMap, Fragment
from tilefw.sim.matrix.layout import rearrange
from tilefw.sim.matrix.unit import MatrixUnit

_REDUCE = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min_s": np.minimum, "min_u": np.minimum,
    "max_s": np.maximum, "max_u": np.maximum,
}
_WORD = np.uint32


class CrossLanes(Algebra):
    """Needs of the whole: `frame`, `mask` (lanes that act now, None for all), `place` (batch constants), `matrix_unit`."""

    launch: LaunchState
    batch: Batch
    observers: Observers
    frame: Frame
    mask: Array | None
    wave_size: int
    matrix_unit: MatrixUnit
    # A primitive sets this when its result has undefined bits: the engine then repeats the step with `ShadowLanes`.
    tainted: bool
    # The last ballot, (low word, high word, predicate): taken apart again it is the predicate.
    balloted: tuple[Array, Array, Array] | None = None

    def _full(self, a: Array) -> Array:
        return np.broadcast_to(a, self.frame.shape)

    def _acting(self) -> Array:
        if self.mask is None:
            return np.ones((1, 1, self.wave_size), dtype=np.bool_)
        return np.broadcast_to(self.mask, (*self.mask.shape[:2], self.wave_size))

    def undefined(self, bits: int) -> Array:
        self.tainted = self.observers.follows_undefined
        return self.const(0, bits)

    def read_lane(self, a: Array, lane: Array, inactive: str = "undefined") -> Array:
        index = (lane & _WORD(self.wave_size - 1)).astype(np.intp)
        watched = inactive == "undefined" and self.mask is not None and self.observers.follows_undefined
        if watched and not self.lane_is_active(index).all():
            self.tainted = True
        if a.shape[2] == 1:
            return a
        if index.shape[0] == 1 and index.shape[1] == 1:
            return a[:, :, index[0, 0]]
        a, index = np.broadcast_arrays(a, index) if a.shape[2] == index.shape[2] else (self._full(a), index)
        if index.shape[:2] != a.shape[:2]:
            index = np.broadcast_to(index, (*a.shape[:2], index.shape[2]))
        return np.take_along_axis(a, index, axis=2)

    def lane_is_active(self, index: Array) -> Array:
        """Whether the lanes read by acting lanes act; true for lanes that do not act themselves."""
        acting = self._acting()
        shape = np.broadcast_shapes(acting.shape[:2], index.shape[:2])
        acting = np.broadcast_to(acting, (*shape, self.wave_size))
        index = np.broadcast_to(index, (*shape, self.wave_size))
        return np.take_along_axis(acting, index, axis=2) | ~acting

    def ballot(self, p: Array) -> tuple[Array, Array]:
        lanes = p if self.mask is None else p & self._acting()
        if lanes.shape[2] == 1:
            lanes = np.broadcast_to(lanes, (*lanes.shape[:2], self.wave_size))
        packed = np.packbits(lanes, axis=2, bitorder="little")
        words = np.zeros((*lanes.shape[:2], 8), dtype=np.uint8)
        words[:, :, : packed.shape[2]] = packed
        pair = words.view(np.uint32)
        low, high = pair[:, :, :1], pair[:, :, 1:]
        self.balloted = low, high, lanes
        return low, high

    def unballot(self, low: Array, high: Array) -> Array:
        same = _agreeing(low, min(32, self.wave_size))
        if same is not None and (self.wave_size <= 32 or _agreeing(high, self.wave_size - 32) == same):
            return self.const(int(same), 1)
        if self.balloted is not None and self.balloted[0] is low and self.balloted[1] is high:
            return self.balloted[2]
        words = np.concatenate(np.broadcast_arrays(low, high), axis=2)
        return np.unpackbits(words.view(np.uint8), axis=2, bitorder="little")[:, :, : self.wave_size].view(np.bool_)

    def active(self) -> tuple[Array, Array]:
        return self.ballot(np.ones((1, 1, 1), dtype=np.bool_))

    def _in_members(self, members: Array) -> Array:
        bits = (members >> np.arange(self.wave_size, dtype=_WORD)) & _WORD(1) if members.shape[2] == 1 else (
            (members >> self.frame.lane.astype(_WORD)) & _WORD(1)
        )
        return bits.astype(np.bool_) & self._acting()

    def wave_reduce(self, a: Array, op: str, members: Array) -> Array:
        signed = op.endswith("_s")
        value = a.view(np.int32) if signed else a
        neutral = {
            "add": 0, "or": 0, "xor": 0, "and": 0xFFFFFFFF, "min_u": 0xFFFFFFFF, "max_u": 0, "min_s": 2**31 - 1, "max_s": -(2**31),
        }[op]
        inside, none = self._in_members(members), value.dtype.type(neutral)
        if members.shape[2] == 1 or (~inside | (members == members[:, :, :1])).all():
            taken = np.where(inside, value, none)
            return _REDUCE[op].reduce(taken, axis=2, keepdims=True, dtype=taken.dtype).view(np.uint32)
        of = self._each_ones(members) & inside[..., None, :]
        taken = np.where(of, np.broadcast_to(value, np.broadcast_shapes(value.shape, inside.shape))[..., None, :], none)
        return _REDUCE[op].reduce(taken, axis=3, dtype=taken.dtype).view(np.uint32)

    def _each_ones(self, members: Array) -> Array:
        """By lane, and then by lane, whether the second is in the mask of the first."""
        return ((members[..., None] >> np.arange(self.wave_size, dtype=_WORD)) & _WORD(1)).astype(np.bool_)

    def in_some_member(self, p: Array, members: Array) -> Array:
        """Whether a predicate holds in some acting lane of each lane's mask."""
        return np.asarray((self._each_ones(members) & (p & self._acting())[..., None, :]).any(axis=3))

    def match(self, a: Array, members: Array) -> Array:
        inside = self._in_members(members)
        value = np.broadcast_to(a, np.broadcast_shapes(a.shape, inside.shape))
        equal = (value[..., None, :] == value[..., :, None]) & inside[..., None, :] & self._each_ones(members)
        packed = np.packbits(equal, axis=-1, bitorder="little")
        return np.ascontiguousarray(packed).view(np.uint32)[..., 0]

    def rearrange(self, values: Sequence[Array], bits: int, mapping: BitMap) -> tuple[Array, ...]:
        return rearrange([self._full(v) for v in values], bits, mapping)

    def matrix_multiply(
        self, a: Sequence[Array], b: Sequence[Array], c: Sequence[Array], a_map: Fragment, b_map: Fragment, c_map: Fragment,
        accumulation: Accumulation, d_map: Fragment | None = None,
    ) -> tuple[Array, ...]:
        return self.matrix_unit.multiply(self.frame.shape, (a, b, c), (a_map, b_map, c_map, d_map or c_map), accumulation)

    def sparse_matrix_multiply(
        self, a: Sequence[Array], index: Array, b: Sequence[Array], c: Sequence[Array], a_map: Fragment, index_map: Fragment,
        b_map: Fragment, c_map: Fragment, accumulation: Accumulation,
    ) -> tuple[Array, ...]:
        maps = (a_map, b_map, c_map, c_map)
        return self.matrix_unit.multiply_sparse(self.frame.shape, (a, b, c), maps, (index,), index_map, accumulation)

    def scaled_matrix_multiply(
        self, a: Sequence[Array], a_scales: Array, b: Sequence[Array], b_scales: Array, c: Sequence[Array], a_map: Fragment,
        a_scale_map: Fragment, b_map: Fragment, b_scale_map: Fragment, c_map: Fragment, accumulation: Accumulation,
    ) -> tuple[Array, ...]:
        operands, maps = (a, b, c, (a_scales,), (b_scales,)), (a_map, b_map, c_map, a_scale_map, b_scale_map)
        return self.matrix_unit.multiply_scaled(self.frame.shape, operands, maps, accumulation)

    def lane_id(self) -> Array:
        return self.frame.lane.astype(_WORD)

    def wave_id(self) -> Array:
        return self.frame.wave.astype(_WORD)

    def thread_id(self, axis: int) -> Array:
        x, y, _ = self.launch.geometry.block
        linear = self.frame.wave * self.wave_size + self.frame.lane
        index = (linear % x, linear // x % y, linear // (x * y))[axis]
        if self.launch.geometry.block[axis] == 1:
            return self.const(0, 32)
        return index.astype(_WORD)

    def argument_address(self) -> Array:
        return self.const(self.launch.memory.argument_base, 64)

    def workgroup_id(self, axis: int) -> Array:
        if self.launch.geometry.grid[axis] == 1:
            return self.const(0, 32)
        return self.batch.coordinates[axis][self.frame.group]

    def workgroup_size(self, axis: int) -> Array:
        return self.const(self.launch.geometry.block[axis], 32)

    def grid_size(self, axis: int) -> Array:
        return self.const(self.launch.geometry.grid[axis], 32)

    def shared_size(self, dynamic: bool) -> Array:
        return self.const(self.launch.memory.dynamic_shared if dynamic else self.launch.memory.shared_bytes, 32)

    def clock(self) -> Array:
        return self.const(self.launch.diagnostics.counters.executed, 64)


def _agreeing(words: Array, bits: int) -> bool | None:
    """What all of the low `bits` bits of all words are, None where they differ."""
    ones = (1 << bits) - 1
    first = int(words.flat[0]) & ones
    if first not in (0, ones) or (words.size > 1 and ((words & _WORD(ones)) != first).any()):
        return None
    return first == ones
