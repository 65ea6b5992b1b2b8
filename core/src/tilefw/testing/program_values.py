"""Where a random program's operands come from: values there are, loads, constants, arguments; and where its results go."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tilefw.api.dtypes import dtype
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer
from tilefw.testing.program_places import PlaceWriter, ProgramPlace
from tilefw.testing.program_text import ProgramText, ProgramValue, Shape, tile, type_of
from tilefw.tile.elementwise import ElementwiseRow

INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = ("fp32", "fp16", "bf16", "fp64")
INPUTS_LIMIT = 7
MOST_TRIPS = 5
MOST_ELEMENTS = 1024  # of one tile
DRAWS = ("normal", "uniform", "ints", "specials")


class ProgramValues(ProgramText):
    """A program with arguments, operands for any operation, and stores."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        # Arrays are drawn from one number: shrinking an example then shrinks its structure, not its millions of bits.
        self.arrays = np.random.default_rng(rng.getrandbits(32))
        self.shape = self._home_shape()
        self.programs = rng.choice((1, 2, 3))
        self.arguments: dict[str, Buffer | int | float] = {}
        self.scalar_types: dict[str, str] = {}
        self.outputs: list[str] = []
        self.places = PlaceWriter(rng, self.programs, lambda name, value: self.argument(name, value, "int32").name)
        home = self.places.place(self.shape)
        self.scope.values += [
            ProgramValue("%pid", "int32", used=True), ProgramValue(home.offsets, "int32", self.shape, used=True),
            ProgramValue(home.mask, "int1", self.shape, used=True),
        ]

    def _home_shape(self) -> Shape:
        if self.rng.random() < 0.5:
            return (self.rng.choice((1, 16, 32, 64, 128, 256)),)
        return self.rng.choice((1, 2, 8, 16)), self.rng.choice((2, 8, 16, 32))

    def argument(self, name: str, value: int | float, element: str) -> ProgramValue:
        """A scalar argument; named ones are made once."""
        if name not in self.arguments:
            self.arguments[name] = value
            self.scalar_types[name] = element
            made = ProgramValue(f"%{name}", element, used=True)
            scope = self.scope
            while scope.outer is not None:
                scope = scope.outer
            scope.values.append(made)
            return made
        return ProgramValue(f"%{name}", element, used=True)

    # Operands

    def some_shape(self, scalars: float = 0.2) -> Shape:
        """A shape to compute on: the program's own, that of a value there is, or none."""
        choice = self.rng.random()
        if choice < scalars:
            return ()
        if choice < 0.6:
            return self.shape
        return self.rng.choice([value.shape for value in self.scope.visible() if value.shape])

    def need(
        self, element: str, shape: Shape, row: ElementwiseRow | None = None, index: int = 0, *, whole: bool = False,
        fresh: float = 0.25,
    ) -> ProgramValue:
        """A value of this type: one there is, a new one loaded, a constant, or a scalar spread over a tile.

        `row` wants values in its own ranges as operand `index`; a `whole` one is not a partial tile; `fresh` is how often a new one
        is made although there are others.
        """
        wanted = row is not None and len(row.draw.ranges) > 0
        found = [
            v for v in self.scope.visible() if v.element == element and v.shape == shape and not (whole and v.partial)
        ]
        if found and self.rng.random() >= (0.7 if wanted else fresh):
            value = self.rng.choice(found)
        elif shape:
            value = self._new_tile(element, shape, row, index, whole)
        else:
            value = self._new_scalar(element, row, index)
        value.used = True
        return value

    def _new_tile(self, element: str, shape: Shape, row: ElementwiseRow | None, index: int, whole: bool) -> ProgramValue:
        choice = self.rng.random()
        if choice < 0.75 and len([b for b in self.arguments.values() if isinstance(b, Buffer)]) < INPUTS_LIMIT:
            return self.load(element, shape, row, index, whole)
        if choice < 0.85:
            scalar = self.need(element, (), row, index)
            return self.define(element, shape, f"tile.splat {scalar.name} : {scalar.type} to {type_of(element, shape)}", scalar)
        return self._drawn(element, shape, row, index)

    def _new_scalar(self, element: str, row: ElementwiseRow | None, index: int) -> ProgramValue:
        if element != "int1" and self.rng.random() < 0.6 and dtype(element).bits >= 32:
            return self.argument(f"s{len(self.arguments)}", self._sample(element, row, index), element)
        return self._drawn(element, (), row, index)

    def _drawn(self, element: str, shape: Shape, row: ElementwiseRow | None, index: int) -> ProgramValue:
        """A constant drawn for its user."""
        value = self._sample(element, row, index)
        if isinstance(value, float) and not np.isfinite(value):
            value = 1.0  # infinities and NaN come in through memory and arguments
        return self.define(element, shape, f"tile.constant {value!r} : {type_of(element, shape)}")

    def _sample(self, element: str, row: ElementwiseRow | None, index: int) -> int | float:
        """One number of the type."""
        value = formats.decode(self.array(element, 1, row, index).array, element)[0]
        return float(value) if dtype(element).is_float else int(value)

    def array(self, element: str, size: int, row: ElementwiseRow | None = None, index: int = 0, kind: str | None = None) -> Buffer:
        """Values in the range where the row is worth testing, special ones among them; or any."""
        ranges = row.draw.ranges if row is not None else ()
        if not ranges or not dtype(element).is_float:
            return inputs.draw(self.arrays, kind or self.rng.choice(DRAWS), (size,), element)
        assert row is not None
        chosen = ranges[min(index, len(ranges) - 1)]
        low, high = chosen if chosen is not None else (-2.0, 2.0)
        values = self.arrays.uniform(low, high, (size,))
        if self.rng.random() < 0.5:
            special = np.array(row.draw.special)
            places = self.arrays.random((size,)) < 0.1
            values = np.where(places, special[self.arrays.integers(0, special.size, (size,))], values)
        return Buffer(formats.encode(values, element), element)

    # Memory

    def load(
        self, element: str, shape: Shape, row: ElementwiseRow | None = None, index: int = 0, whole: bool = False,
        kind: str | None = None,
    ) -> ProgramValue:
        """A tile of an input array of its own."""
        place = self.places.place(shape)
        stride = self.rng.choice((1, 1, 1, 2, 3))
        name = f"in{len(self.arguments)}"
        self.arguments[name] = self.array(element, place.extent * stride, row, index, kind)
        other = None
        if whole or self.rng.random() < 0.6:
            other = self._drawn(element, shape, row, index)
            other.used = True
        loaded = self._loaded(name, element, place, stride, other)
        loaded.partial = other is None
        return loaded

    def load_round(self, element: str, shape: Shape, counter: str) -> ProgramValue:
        """A tile of an input array of its own, another part of it in each round of a loop of at most MOST_TRIPS."""
        place = self.places.place(shape)
        name = f"in{len(self.arguments)}"
        self.arguments[name] = self.array(element, place.extent * MOST_TRIPS, kind=None if element == "int8" else "normal")
        kind, pointer = tile("i32", shape), f"!tile.ptr<{dtype(element).ir}>"
        begin, begins, offsets = self.name(), self.name(), self.name()
        self.line(f"{begin} = tile.muli {counter}, {self.constant(place.extent, 'int32').name} : i32")
        self.line(f"{begins} = tile.splat {begin} : i32 to {kind}")
        self.line(f"{offsets} = tile.addi {place.offsets}, {begins} : {kind}")
        zero = self.constant(0.0 if dtype(element).is_float else 0, element, shape)
        access = f"%{name}[{offsets}] mask {place.mask} other {zero.name} : {pointer}[{kind}]"
        return self.define(element, shape, f"tile.load {access}")

    def _loaded(self, name: str, element: str, place: ProgramPlace, stride: int, other: ProgramValue | None) -> ProgramValue:
        pointer, result, tail = f"!tile.ptr<{dtype(element).ir}>", type_of(element, place.shape), ""
        if other is not None:
            tail = f" other {other.name}"
        choice = self.rng.random()
        if place.grid is not None and stride == 1 and choice < 0.4:
            return self.define(element, place.shape, f"tile.load_block %{name} {self._block(place)}{tail} : {pointer}, {result}")
        offsets = self.strided(place, stride)
        if choice < 0.7:
            access = f"%{name}[{offsets}] mask {place.mask}{tail} : {pointer}[{tile('i32', place.shape)}]"
        else:
            access = f"{self.pointers(name, element, place, offsets)} mask {place.mask}{tail} : {tile(pointer, place.shape)}"
        return self.define(element, place.shape, f"tile.load {access}")

    @staticmethod
    def _block(place: ProgramPlace) -> str:
        assert place.grid is not None
        begins, strides, bounds = (", ".join(pair) for pair in (place.grid.begins, place.grid.strides, place.grid.bounds))
        return f"at ({begins} : i32, i32) strides ({strides} : i32, i32) shape ({bounds} : i32, i32) checks [upper, upper]"

    def strided(self, place: ProgramPlace, stride: int) -> str:
        """The place's offsets, `stride` elements apart."""
        if stride == 1:
            return place.offsets
        kind, step = tile("i32", place.shape), self.constant(stride, "int32", place.shape)
        return self.define("int32", place.shape, f"tile.muli {place.offsets}, {step.name} : {kind}", hidden=True).name

    def pointers(self, buffer: str, element: str, place: ProgramPlace, offsets: str) -> str:
        """A tile of pointers."""
        pointer = f"!tile.ptr<{dtype(element).ir}>"
        kind = tile(pointer, place.shape)
        base, moved = self.name(), self.name()
        self.line(f"{base} = tile.splat %{buffer} : {pointer} to {kind}")
        self.line(f"{moved} = tile.addptr {base}, {offsets} : {kind}, {tile('i32', place.shape)}")
        return moved

    def store(self, value: ProgramValue) -> None:
        """The value into an output array of its own."""
        name, value.used = f"out{len(self.arguments)}", True
        self.outputs.append(name)
        pointer = f"!tile.ptr<{dtype(value.element).ir}>"
        if not value.shape:
            self.arguments[name] = inputs.empty((self.programs,), value.element)
            moved = self.name()
            self.line(f"{moved} = tile.addptr %{name}, %pid : {pointer}, i32")
            self.line(f"tile.store {moved}, {value.name} : {pointer}")
            return
        place, stride = self.places.place(value.shape), self.rng.choice((1, 1, 2))
        self.arguments[name] = inputs.empty((place.extent * stride,), value.element)
        self._stored(name, value, place, stride, pointer)

    def _stored(self, name: str, value: ProgramValue, place: ProgramPlace, stride: int, pointer: str) -> None:
        choice = self.rng.random()
        if place.grid is not None and stride == 1 and choice < 0.4:
            self.line(f"tile.store_block %{name}, {value.name} {self._block(place)} : {pointer}, {value.type}")
            return
        offsets = self.strided(place, stride)
        if choice < 0.7:
            self.line(f"tile.store %{name}[{offsets}], {value.name} mask {place.mask} : {pointer}[{tile('i32', place.shape)}]")
        else:
            moved = self.pointers(name, value.element, place, offsets)
            self.line(f"tile.store {moved}, {value.name} mask {place.mask} : {tile(pointer, place.shape)}")

    def module(self) -> str:
        """The whole program's text."""
        parameters = [self._parameter(name, value) for name, value in self.arguments.items()]
        head = f"  func.func public @random_program({', '.join(parameters)}) {{"
        return "\n".join(["builtin.module {", head, *self.places.head.lines, *self.lines, "    func.return", "  }", "}", ""])

    def _parameter(self, name: str, value: Any) -> str:
        if not isinstance(value, Buffer):
            return f'%{name}: {dtype(self.scalar_types[name]).ir} {{tile.name = "{name}"}}'
        hint = ", tile.divisible = 16 : i64" if value.array.ctypes.data % 16 == 0 and self.rng.random() < 0.5 else ""
        return f'%{name}: !tile.ptr<{dtype(value.dtype).ir}> {{tile.name = "{name}"{hint}}}'
