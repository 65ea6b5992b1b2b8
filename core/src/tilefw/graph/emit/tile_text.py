"""A kernel being written over tiles of indices: the value of any graph op at given coordinates, as statements.

Coordinates are texts, one a dim: each is a tile of indices, or a number. Views compose into them, so that nothing is copied; maps
become formulas; what is an argument of the group is loaded. A subclass says where reductions are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

import tilefw.language as tl
from tilefw.api.cost import LaunchWork
from tilefw.api.errors import UnsupportedError
from tilefw.api.integers import ceil_div
from tilefw.graph.dialect import combining_ops, moving_ops, pointwise_ops
from tilefw.graph.dialect.combining_ops import numbers_of
from tilefw.graph.emit.scalar_text import number_text, spelled, weight_of, write_body
from tilefw.graph.index_maps import bounds, rows_of
from tilefw.language.extra import libdevice
from tilefw.runtime.jit import JITFunction, jit, next_power_of_2
from tilefw.tile import numbers, types

Coordinates = tuple[str, ...]
_WORDS = re.compile(r"[a-z]\w*")
_LONG = 200  # characters of a place
MOST_ELEMENTS = (1 << 31) - (1 << 16)  # of one tensor: kernels count in 32 bits


class NotOneKernelError(Exception):
    """A group needs a value at places where its kernel does not have it."""


class TileText:
    """The statements of one kernel, its pointers, and its grid."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], masks: Mapping[frozenset[str], str]) -> None:
        self.name = name
        self.lines: list[str] = []
        self.pointers = {value: f"x{place}_ptr" for place, value in enumerate(inputs)}
        self.outputs: list[str] = []
        self.grid = 1
        self.elements = 1
        self.lengths: dict[str, int] = {}  # of the tiles of indices
        self.trips = 1  # of the loop that is being written
        self.operations = 0  # of one program
        self.scattered: set[Operation] = set()  # the contractions whose factors are gathered element by element
        self.multiply_adds = 0  # of the launch
        self.computed: dict[Operation, int] = {}  # how many elements of each map a program computes
        self.before: TileText | None = None  # a kernel of the same tensors, which is launched before
        self.asserts = False  # whether it stops at an index that names no element, in a debug build
        self.names: dict[str, Any] = {"tl": tl, "libdevice": libdevice}
        self.combines: list[str] = []  # the text of each function that reductions combine by
        self.made_of: dict[str, frozenset[str]] = {}  # the tiles that computed coordinates follow
        self.sums: tuple[frozenset[Operation], bool] = (frozenset(), False)
        """The contractions that are summed up so far, and whether one is being."""
        self._masks = masks
        self._tiles = frozenset().union(*masks)
        self._known: dict[tuple[SSAValue, Coordinates], str] = {}
        self._flat: dict[tuple[tuple[int, ...], Coordinates], str] = {}
        self._texts: dict[str, str] = {}
        self._count = 0

    # Statements ----------------------------------------------------------------------------------------------------------

    def statement(self, text: str) -> str:
        """A new name for what `text` computes."""
        self._count += 1
        name = f"v{self._count}"
        self.lines.append(f"{name} = {text}")
        self._texts[name] = text
        return name

    def is_number(self, text: str) -> bool:
        """Whether a text is one number in each program, and no tile: no statement that it names reads a tile of indices."""
        words = _WORDS.findall(text)
        if any(word in self._tiles or word in self._masks.values() for word in words):
            return False
        return all(self.is_number(self._texts[word]) for word in words if word in self._texts)

    def mask(self, coordinates: Coordinates) -> str:
        """Which of the elements at these places there are; empty where all are."""
        return self._masks.get(self.used(*coordinates), "")

    def used(self, *texts: str) -> frozenset[str]:
        """Of which tiles of indices the texts are made; of none where they are one number."""
        found: set[str] = set()
        for word in (word for text in texts for word in _WORDS.findall(text)):
            found |= {word} if word in self._tiles else self.made_of.get(word, frozenset())
        return frozenset(found)

    def source(self) -> str:
        """The kernel's text."""
        pointers = ", ".join([*self.pointers.values(), *self.outputs])
        return f"def {self.name}({pointers}):\n" + "".join(f"    {line}\n" for line in self.lines or ["pass"])

    @property
    def key(self) -> str:
        """What tells the kernel from every other: its text, and that of the functions that it calls."""
        return "\n".join([*self.combines, self.source()])

    def kernel(self) -> JITFunction:
        """The kernel itself."""
        names = dict(self.names)
        exec(compile(self.source(), f"<graph {self.name}>", "exec"), names)
        return jit(source=self.source())(names[self.name])

    @property
    def work(self) -> LaunchWork:
        """What the launch computes."""
        return LaunchWork(operations=self.operations * self.grid, multiply_adds=self.multiply_adds)

    @property
    def warps(self) -> int:
        """About four elements of the largest tile a lane, and at most four warps."""
        return next((warps for warps in (1, 2) if self.elements <= 256 * warps), 4)

    # Places --------------------------------------------------------------------------------------------------------------

    def spread(self, flat: str, shape: Sequence[int]) -> Coordinates:
        """The coordinates of element number `flat` of a tensor."""
        found, stride = [], prod(shape)
        for extent in shape:
            stride //= max(extent, 1)
            outer = stride * extent < prod(shape)
            text = flat if stride == 1 else f"({flat} // {stride})"
            found.append("0" if extent == 1 else f"({text} % {extent})" if outer else text)
        coordinates = tuple(found)
        self.remember(shape, coordinates, flat)
        return coordinates

    def remember(self, shape: Sequence[int], coordinates: Coordinates, flat: str) -> None:
        """That the element at these coordinates has this number."""
        self._flat[squeezed(shape, coordinates)] = flat

    def in_blocks(self, count: int, most: int) -> None:
        """Give each program a block of at most so many of `count` elements, which `index` numbers."""
        block = min(most, next_power_of_2(max(count, 1)))
        self.grid, self.elements = ceil_div(count, block), block
        self.lengths["index"] = block
        self.lines += [f"index = tl.program_id(0) * {block} + tl.arange(0, {block})", f"inside = index < {count}"]

    def flat(self, shape: Sequence[int], coordinates: Coordinates) -> str:
        """The number of the element at these coordinates."""
        known = self._flat.get(squeezed(shape, coordinates))
        if known is not None:
            return known
        parts, stride = [], prod(shape)
        for extent, text in zip(shape, coordinates, strict=True):
            stride //= max(extent, 1)
            if text != "0":
                parts.append(text if stride == 1 else f"{text} * {stride}")
        return " + ".join(parts) or "0"

    def reshaped(self, shape: Sequence[int], coordinates: Coordinates, source: Sequence[int]) -> Coordinates:
        """Where in a tensor of shape `source` the same element stands."""
        sizes, texts = squeezed(shape, coordinates)
        if tuple(extent for extent in source if extent != 1) == sizes:
            return _with_ones(texts, source)
        kept = tuple(extent for extent in source if extent != 1)
        if (sizes, texts) in self._flat or not prod(sizes):
            return self.spread(self._number(sizes, texts), source)
        found: list[str] = []
        for mine, theirs in neighbours(sizes, kept):  # dims that the reshape leaves alone keep their coordinate
            part = texts[mine]
            if mine.stop - mine.start == 1 == theirs.stop - theirs.start:
                found += part
                continue
            found += self.spread(self._number(sizes[mine], part), kept[theirs])
        return _with_ones(found, source)

    def _number(self, shape: Sequence[int], coordinates: Coordinates) -> str:
        """The number of an element as a text that can be a factor. Raises NotOneKernelError where 32 bits do not count it."""
        if prod(shape) > MOST_ELEMENTS:
            raise NotOneKernelError(f"a reshape of more than {MOST_ELEMENTS:,} elements")
        flat = self.named(self.flat(shape, coordinates))
        return flat if flat.isidentifier() or flat.isdigit() else f"({flat})"

    def named(self, place: str) -> str:
        """The place, by a name of its own where its text is long: what is computed of it may name it several times."""
        if len(place) <= _LONG or not (tiles := self.used(place)):
            return place
        name = self.statement(place)
        self.made_of[name] = tiles
        return name

    def require_element(self, holds: str, axis: int, extent: int, mask: str) -> None:
        """Stop the program, in a debug build, where an index names no element."""
        self.asserts = True
        message = f"an index along dim {axis} names none of its {extent} elements"
        self.lines.append(f'tl.device_assert({holds}, "{message}"{f", mask={mask}" if mask else ""})')

    @property
    def keywords(self) -> dict[str, Any]:
        """How it is launched."""
        return {"num_warps": self.warps, **({"debug": True} if self.asserts else {})}

    # Values --------------------------------------------------------------------------------------------------------------

    def value(self, value: SSAValue, coordinates: Coordinates) -> str:
        """The name of a value's elements at the coordinates."""
        key = value, coordinates
        if key not in self._known:
            self._known[key] = self._value(value, coordinates)
        return self._known[key]

    def _value(self, value: SSAValue, coordinates: Coordinates) -> str:
        if value in self.pointers:
            return self.load(self.pointers[value], value, coordinates)
        op = value.owner
        assert isinstance(op, Operation)
        write = _WRITERS.get(op.__class__)
        if write is None:
            return self.special(op, value, coordinates)
        return write(self, op, value, coordinates)

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """The value of an op that only some kernels have. Raises NotOneKernelError."""
        raise NotOneKernelError(f"{op.name} in kernel {self.name}")

    def load(self, pointer: str, value: SSAValue, coordinates: Coordinates, tests: Sequence[str] = ()) -> str:
        """Elements of a tensor in memory, 0 where one of `tests` fails; unsigned integers as the signed ones of their bits."""
        shape = types.shape_of(value.type)
        check_counted(shape)
        mask = " & ".join(filter(None, [self.mask(coordinates), *tests]))
        kind = types.dtype_of(value.type)
        cast = "" if kind.is_float else f".to({spelled(kind.name)})"
        masked = f", mask={mask}{', other=0' if tests else ''}" if mask else ""
        return self.statement(f"tl.load({pointer} + {self.flat(shape, coordinates)}{masked}){cast}")

    def store(self, value: SSAValue, coordinates: Coordinates) -> None:
        """Store a value as the next output."""
        pointer = f"y{len(self.outputs)}_ptr"
        self.outputs.append(pointer)
        held, mask = self.value(value, coordinates), self.mask(coordinates)
        shape = types.shape_of(value.type)
        check_counted(shape)
        place = self.flat(shape, coordinates)
        masked = f", mask={mask}" if mask else ""
        self.lines.append(f"tl.store({pointer} + {place}, {held}{masked})")

    def body(self, block: Block, arguments: list[str], coordinates: Coordinates) -> list[str]:
        """The results of a body of scalar ops."""
        self.operations += weight_of(block) * self.count_at(coordinates)
        return write_body(block, arguments, lambda dim: self._index(coordinates[dim]), self.statement)

    def count_at(self, coordinates: Coordinates) -> int:
        """How many elements a program computes of a value at these coordinates."""
        return prod(self.lengths.get(word, 1) for word in self.used(*coordinates)) * self.trips

    def _index(self, text: str) -> str:
        return self.statement(f"tl.full((), {text}, tl.int32)" if text.lstrip("-").isdigit() else text)


def count_of(outputs: Sequence[SSAValue]) -> int:
    """The number of elements that each output has. Raises NotOneKernelError where they have several."""
    counts = {prod(types.shape_of(value.type)) for value in outputs}
    if len(counts) != 1:
        raise NotOneKernelError("outputs of several sizes")
    return counts.pop()


def check_counted(shape: Sequence[int]) -> None:
    """Raise UnsupportedError TFW0992 for a tensor whose elements 32 bits do not count."""
    if prod(shape) > MOST_ELEMENTS:
        raise UnsupportedError(f"a tensor of more than {MOST_ELEMENTS:,} elements", code="TFW0992")


def squeezed(shape: Sequence[int], coordinates: Coordinates) -> tuple[tuple[int, ...], Coordinates]:
    """The extents other than 1, and the coordinates along them."""
    kept = [(extent, text) for extent, text in zip(shape, coordinates, strict=True) if extent != 1]
    return tuple(extent for extent, _ in kept), tuple(text for _, text in kept)


def _with_ones(texts: Sequence[str], shape: Sequence[int]) -> Coordinates:
    """Coordinates along the dims of more than one element, and 0 along the others."""
    left = iter(texts)
    return tuple("0" if extent == 1 else next(left) for extent in shape)


def neighbours(shape: Sequence[int], other: Sequence[int]) -> list[tuple[slice, slice]]:
    """The shortest runs of neighbouring dims of two shapes, without dims of one element, that have as many elements each."""
    found: list[tuple[slice, slice]] = []
    ends, begins, held = [0, 0], [0, 0], [1, 1]
    both = (shape, other)
    while ends[0] < len(shape) or ends[1] < len(other):
        side = 0 if held[0] <= held[1] and ends[0] < len(shape) else 1
        held[side] *= both[side][ends[side]]
        ends[side] += 1
        if held[0] == held[1]:
            found.append((slice(begins[0], ends[0]), slice(begins[1], ends[1])))
            begins, held = list(ends), [1, 1]
    return found


# How ops are written that any kernel can have ------------------------------------------------------------------------------


def _constant(text: TileText, op: Any, value: SSAValue, _coordinates: Coordinates) -> str:
    kind = types.dtype_of(value.type)
    data = np.frombuffer(op.value.data, np.uint8)
    (number,) = numbers.from_bytes(data, kind).tolist()
    return text.statement(f"tl.full((), {number_text(number)}, {spelled(kind.name)})")


def _map(text: TileText, op: Any, value: SSAValue, coordinates: Coordinates) -> str:
    arguments = [text.value(operand, coordinates) for operand in op.operands]
    results = text.body(op.body.block, arguments, coordinates)
    text.computed[op] = text.computed.get(op, 0) + text.count_at(coordinates)
    return results[list(op.results).index(value)]


def _view(text: TileText, op: Any, _value: SSAValue, coordinates: Coordinates) -> str:
    source = types.shape_of(op.source.type)
    if op.pad is not None and not prod(source):
        return text.value(op.pad, ())
    found = [
        "0" if extent == 1 and op.pad is None else text.named(place_text(factors, offset, coordinates))
        for (factors, offset), extent in zip(rows_of(op.map.data), source, strict=True)
    ]
    if op.pad is None:
        return text.value(op.source, tuple(found))
    sizes = types.shape_of(op.result.type)
    reach = [bounds(terms, sizes) for terms in rows_of(op.map.data)]
    leaving = [k for k, (low, high) in enumerate(reach) if low < 0 or high >= source[k]]
    tests = [f"({found[k]} >= 0) & ({found[k]} < {source[k]})" for k in leaving]
    for k in leaving:
        found[k] = clamped(text, found[k], source[k])
    held, outside = text.value(op.source, tuple(found)), text.value(op.pad, ())
    return text.statement(f"tl.where({' & '.join(tests)}, {held}, {outside})") if tests else held


def clamped(text: TileText, place: str, extent: int) -> str:
    """The nearest place along a dim."""
    if not text.used(place):
        place = f"tl.full((), {place}, tl.int32)" if place.lstrip("-").isdigit() else place
    name = text.statement(f"tl.minimum(tl.maximum({place}, 0), {extent - 1})")
    text.made_of[name] = text.used(place)
    return name


def place_text(factors: Sequence[int], offset: int, coordinates: Coordinates) -> str:
    """A linear expression of coordinates."""
    parts = [
        place if factor == 1 else f"{place} * {factor}"
        for factor, place in zip(factors, coordinates, strict=True) if factor and place != "0"
    ]
    if offset or not parts:
        parts.append(str(offset))
    return parts[0] if len(parts) == 1 and " * " not in parts[0] else f"({' + '.join(parts)})"


def _reshape(text: TileText, op: Any, value: SSAValue, coordinates: Coordinates) -> str:
    places = text.reshaped(types.shape_of(value.type), coordinates, types.shape_of(op.source.type))
    return text.value(op.source, places)


def _concat(text: TileText, op: Any, _value: SSAValue, coordinates: Coordinates) -> str:
    axis, begin, held = op.axis.value.data, 0, ""
    for part in op.operands:
        extent = types.shape_of(part.type)[axis]
        if not extent:
            continue
        place = clamped(text, f"({coordinates[axis]} - {begin})" if begin else coordinates[axis], extent)
        found = text.value(part, (*coordinates[:axis], place, *coordinates[axis + 1 :]))
        held = text.statement(f"tl.where({coordinates[axis]} < {begin}, {held}, {found})") if held else found
        begin += extent
    return held


def _gather(text: TileText, op: Any, _value: SSAValue, coordinates: Coordinates) -> str:
    source = types.shape_of(op.source.type)
    found = [place_text(factors, offset, coordinates) for factors, offset in rows_of(op.map.data)]
    outside: list[str] = []
    for axis, index in zip(numbers_of(op.axes), op.indices, strict=True):
        asked = text.value(index, coordinates)
        wide = types.dtype_of(index.type).bits
        if wide < 32:
            asked = text.statement(f"{asked}.to(tl.int32)")
        name = text.statement(f"tl.minimum(tl.maximum({asked}, 0), {source[axis] - 1}).to(tl.int32)")
        text.made_of[name] = frozenset() if text.is_number(asked) else text.used(*coordinates)
        found[axis] = name
        outside.append(f"({asked} != {name})")
        if op.trusted is not None:
            text.require_element(f"{asked} == {name}", axis, source[axis], text.mask(coordinates))
    if op.trusted is None or not text.pointers:
        return text.value(op.source, tuple(found))
    return _trusted(text, op, coordinates, tuple(found), " | ".join(outside))


def _trusted(text: TileText, op: Any, coordinates: Coordinates, places: Coordinates, outside: str) -> str:
    """Elements at indices that a caller answers for: where one names no element, and nothing stops the program on a target without
    traps, an address before a tensor is read, which a simulator's check of bounds tells."""
    if op.source not in text.pointers:
        held, kind, mask = text.value(op.source, places), types.dtype_of(op.source.type), text.mask(coordinates)
        fault = text.statement(f"({outside}) & {mask}" if mask else outside)
        read = text.statement(f"tl.load({next(iter(text.pointers.values()))} - 1 + tl.where({fault}, 0, 1), mask={fault})")
        return text.statement(f"tl.where({fault}, {read}.to({spelled(kind.name)}), {held})")
    axis, shape = numbers_of(op.axes)[0], types.shape_of(op.source.type)
    before = (prod(shape[:axis]) - 1) * shape[axis] + 1
    name = text.statement(f"tl.where({outside}, {-before}, {places[axis]})")
    text.made_of[name] = text.made_of[places[axis]]
    return text.value(op.source, (*places[:axis], name, *places[axis + 1 :]))


def _reduce(text: TileText, op: Any, value: SSAValue, coordinates: Coordinates) -> str:
    axes, shape = numbers_of(op.axes), types.shape_of(op.operands[0].type)
    if prod(shape[axis] for axis in axes) > 1:
        return text.special(op, value, coordinates)
    left = iter(coordinates)
    places = tuple("0" if dim in axes else next(left) for dim in range(len(shape)))
    return text.value(op.operands[list(op.results).index(value)], places)


def _scan(text: TileText, op: Any, value: SSAValue, coordinates: Coordinates) -> str:
    if types.shape_of(value.type)[numbers_of(op.axes)[0]] > 1:
        return text.special(op, value, coordinates)
    return text.value(op.operands[list(op.results).index(value)], coordinates)


def _sort(text: TileText, op: Any, value: SSAValue, coordinates: Coordinates) -> str:
    if types.shape_of(value.type)[op.axis.value.data] > 1:
        return text.special(op, value, coordinates)
    return text.value(op.source, coordinates)


_WRITERS: Mapping[type[Operation], Callable[[TileText, Any, SSAValue, Coordinates], str]] = {
    pointwise_ops.GraphConstantOp: _constant, pointwise_ops.MapOp: _map, moving_ops.ViewOp: _view,
    moving_ops.GraphReshapeOp: _reshape, moving_ops.GraphConcatOp: _concat, moving_ops.GraphGatherOp: _gather,
    combining_ops.GraphReduceOp: _reduce, combining_ops.GraphScanOp: _scan, moving_ops.GraphSortOp: _sort,
}
