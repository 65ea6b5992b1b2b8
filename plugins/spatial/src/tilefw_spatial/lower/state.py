"""What a lowering knows while it traverses a kernel: values so far, axes, stores, and how to align arrays of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilefw.api import BufferPlacement, DType, Place
from tilefw.api.ir import Operation, SSAValue, place_of
from tilefw_spatial.graph import Axis, BoundsCheck, Constant, Elementwise, Op, Rename, Value
from tilefw_spatial.limits import MOST_STEPS, beyond
from tilefw_spatial.lower import arithmetic
from tilefw_spatial.lower.axes import Axes
from tilefw_spatial.lower.constant_tile import ConstantTerm, ConstantTile
from tilefw_spatial.lower.linear import followed
from tilefw_spatial.lower.programs import Programs
from tilefw_spatial.lower.tiles import Data, Entry, Linear, Pointer, conjunction, stored, unsupported


@dataclass(frozen=True, slots=True)
class Reach:
    """What an access accesses, as sums over axes: when it becomes an `AccessMap`, axes may have been fused."""

    parameter: int
    dtype: DType
    offset: tuple[ConstantTerm, ...]
    mask: tuple[ConstantTerm, ...]
    place: Place | None
    clipped: bool = False  # elements outside of the buffer are not accessed: data masks them

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All that the access depends on."""
        return tuple(dict.fromkeys(key for term in (*self.offset, *self.mask) for key in term.keys if isinstance(key, Axis)))


@dataclass(frozen=True, slots=True)
class PendingStore:
    """A store whose axes are still open; `mask` depends on loaded data. `count` are its writes: programs, iterations, elements;
    `loops` the axes of the loops around it, the outermost first."""

    value: Value
    reach: Reach
    mask: Value | None
    accumulate: str | None
    count: int
    loops: tuple[Axis, ...]
    check: BoundsCheck | None = None  # the value are flags, which no parameter holds


@dataclass(frozen=True, slots=True)
class TrackedAccess:
    """A load or store that later accesses of the same storage must respect. `entry` is what was loaded or stored."""

    parameter: int
    offset: ConstantTile
    mask: ConstantTile | None
    dtype: DType
    loops: tuple[Axis, ...]
    entry: Entry | None = None
    certain: bool = True
    row: str | None = None  # how it accumulates
    ended: tuple[Axis, ...] = ()  # those of `loops` that have ended

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.dtype.storage_bits // 8


@dataclass(slots=True)
class State:
    """One class of programs being lowered. `loops` are the axes of the loops around, `names` those of the parameters, `steps` what
    is left of the budget, `earlier` what classes before have stored; `fusion` allows sums to take products unrounded."""

    programs: Programs
    buffers: Sequence[BufferPlacement | None]
    names: Sequence[str]
    steps: int
    earlier: Sequence[TrackedAccess] = ()
    fusion: bool = True
    axes: Axes = field(default_factory=Axes)
    values: dict[SSAValue, Entry] = field(default_factory=dict)
    reaches: dict[Value, Reach] = field(default_factory=dict)
    stores: list[PendingStore] = field(default_factory=list)
    loads: list[TrackedAccess] = field(default_factory=list)
    stored: list[TrackedAccess] = field(default_factory=list)
    loops: tuple[Axis, ...] = ()
    ended: list[Axis] = field(default_factory=list)
    place: Place | None = None
    _constants: dict[tuple[int, tuple[Axis | None, ...]], tuple[ConstantTile, Value]] = field(default_factory=dict)

    def constant(self, value: SSAValue, op: Operation, what: str, capability: str) -> ConstantTile:
        """A value that must be a compile-time constant; refuses `op` where it depends on loaded data."""
        entry = self.values[value]
        if isinstance(entry, ConstantTile):
            return entry
        raise unsupported(op, what, capability)

    def spend(self, op: Operation) -> None:
        """One more operation; refuses a kernel that unrolls without end."""
        self.steps -= 1
        self.place = place_of(op)
        if self.steps < 0:
            raise beyond(
                "this launch unrolls its loops", MOST_STEPS + 1, MOST_STEPS, "operations", self.place,
                "loops are unrolled unless their iterations are independent or only accumulate", exact=False,
            )

    def made(self, op: Op, axes: Sequence[Axis], dtype: DType) -> Value:
        """A new array of the graph."""
        roots = self.axes.all(axes)
        self.axes.keep_apart(roots)
        return Value(op, roots, dtype.name, self.place)

    def loop_axis(self, trips: int) -> Axis:
        """An axis for a loop: that of an earlier one of as many trips, which has ended, so that both may read the same arrays."""
        for axis in self.ended:
            if axis.extent == trips and axis not in self.loops:
                return axis
        self.ended.append(Axis("loop", trips))
        return self.ended[-1]

    def fresh(self, extent: int, name: str = "d") -> Axis:
        """A new axis."""
        return Axis(name, extent)

    # Aligning arrays -----------------------------------------------------------------------------------------------------

    def aligned(self, entries: Sequence[Entry]) -> tuple[Axis | None, ...]:
        """Common axes for the dims of tiles of one shape; two axes of a dim become one where nothing has both."""
        rank = len(entries[0].shape)
        target: list[Axis | None] = [None] * rank
        for entry in entries:
            for dim in range(rank):
                axis = self.dim_axis(entry, dim)
                if axis is None:
                    continue
                meeting = target[dim]
                if meeting is None:
                    target[dim] = axis if axis not in target else self.fresh(axis.extent)
                elif axis is not meeting and axis not in target:
                    self.axes.unite(meeting, axis)
            target = [None if axis is None else self.axes[axis] for axis in target]
        for entry in entries:
            for dim in _dims_of(entry):
                if target[dim] is None:
                    target[dim] = self.fresh(entry.shape[dim])
        self.axes.keep_apart(axis for axis in target if axis is not None)
        return tuple(target)

    def dim_axis(self, entry: Entry, dim: int) -> Axis | None:
        """The axis of a dim of loaded data."""
        axis = entry.dims[dim] if isinstance(entry, Data) else None
        return None if axis is None else self.axes[axis]

    def value(self, entry: Entry, target: Sequence[Axis | None]) -> Value:
        """An array of the graph with the entry's elements, its dims under the axes of `target`."""
        if isinstance(entry, ConstantTile):
            return self._constant(entry, tuple(target))
        assert isinstance(entry, Data)
        old, new = [], []
        for dim, wanted in enumerate(target):
            axis = self.dim_axis(entry, dim)
            if axis is not None and axis is not wanted:
                assert wanted is not None
                old.append(axis)
                new.append(wanted)
        if not old:
            return entry.value
        axes = [axis for axis in self.axes.all(entry.value.axes) if axis not in old]
        return self.made(Rename(entry.value, tuple(old), tuple(new)), (*axes, *new), entry.dtype)

    def _constant(self, tile: ConstantTile, target: tuple[Axis | None, ...]) -> Value:
        dims = {key for key in tile.keys if isinstance(key, int)}
        used = tuple(axis if dim in dims else None for dim, axis in enumerate(target))
        found = self._constants.get((id(tile), used))
        if found is not None:
            return found[1]
        whole = tile.whole()
        axes: list[Axis] = []
        for key in whole.keys:
            axis = target[key] if isinstance(key, int) else key
            assert axis is not None
            axes.append(axis)
        value = self.made(Constant(stored(whole.data.copy(), tile.dtype)), axes, tile.dtype)
        self._constants[id(tile), used] = tile, value
        return value

    def elementwise(self, row: str, entries: Sequence[Entry], dtype: DType, rounding: str = "rtne") -> Entry:
        """A row of the table on tiles of one shape."""
        if all(isinstance(entry, ConstantTile) for entry in entries):
            return arithmetic.apply(row, [entry for entry in entries if isinstance(entry, ConstantTile)], dtype, rounding)
        if row == "select" and isinstance(entries[0], ConstantTile) and (condition := entries[0].number) is not None:
            return entries[1] if condition else entries[2]
        target = self.aligned(entries)
        operands = tuple(self.value(entry, target) for entry in entries)
        axes = [axis for operand in operands for axis in operand.axes]
        value = self.made(Elementwise(row, operands, self.fusion, rounding), axes, dtype)
        return replace(self.data(value, target, entries[0].shape, followed(row, entries)), apart=conjunction(row, entries))

    def data(self, value: Value, target: Sequence[Axis | None], shape: tuple[int, ...], linear: Linear | None = None) -> Data:
        """A tile of an array; dims along which the array does not change have no axis."""
        has = set(self.axes.all(value.axes))
        dims = [None if axis is None or self.axes[axis] not in has else self.axes[axis] for axis in target]
        return Data(value, tuple(dims), shape, linear)


def _dims_of(entry: Entry) -> list[int]:
    tile = entry.offset if isinstance(entry, Pointer) else entry
    return [key for key in tile.keys if isinstance(key, int)] if isinstance(tile, ConstantTile) else []
