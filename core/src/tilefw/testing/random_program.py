"""A random pointwise tile program as tile IR text with its arguments, drawn from the elementwise table.

Every row of the table can come up, on tiles and on scalars, inside and outside of loops and branches; loads and stores are masked,
strided, by pointer tiles or by base and offsets; 2-D tiles also get operands by broadcast. Values that nothing uses are stored, so
that every operation drawn counts. No two programs (tile instances) of a launch touch the same output element.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.api.dtypes import DTYPES, DType, dtype
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer
from tilefw.tile.elementwise import ROWS, Row

INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = ("fp32", "fp16", "bf16", "fp64")
_ARITHMETIC = {"T:int": INTEGERS, "T:float": FLOATS, "T:any": INTEGERS + FLOATS}
# Types that only memory and casts know.
_CASTABLE_FLOATS = tuple(d.name for d in DTYPES.values() if d.is_float)
_CASTABLE_INTEGERS = ("int1", "int4", *INTEGERS)
OUTPUTS_LIMIT = 8
INPUTS_LIMIT = 7


@dataclass(frozen=True, slots=True)
class Program:
    """Tile IR with what one launch of it takes: arguments by name in order; `outputs` names the buffers it writes."""

    text: str
    arguments: dict[str, Buffer | int | float]
    scalar_types: dict[str, str]
    outputs: tuple[str, ...]
    grid: tuple[int, int, int]
    num_warps: int


@dataclass(slots=True)
class _Value:
    """An SSA value: its element type, and whether it is a tile; `used` once something reads it."""

    name: str
    element: str
    is_tile: bool
    used: bool = False


@dataclass(slots=True)
class _Scope:
    """The values that may be used here, by place of definition: a region sees those outside of it."""

    values: list[_Value] = field(default_factory=list)
    outer: _Scope | None = None

    def visible(self) -> Iterator[_Value]:
        yield from self.values
        if self.outer is not None:
            yield from self.outer.visible()


def generate(rng: random.Random, statements: int = 10, first: str | None = None) -> Program:
    """A program of about `statements` operations; `first` names a row that is sure to be among them."""
    return _Writer(rng).program(statements, first)


class _Writer:
    """Writes one program, a line an operation; SSA names count up."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # Arrays are drawn from one number: shrinking an example then shrinks its structure, not its millions of bits.
        self.arrays = np.random.default_rng(rng.getrandbits(32))
        self.shape = self._shape()
        self.programs = rng.choice((1, 2, 3))
        self.elements = int(np.prod(self.shape))
        self.total = max(1, self.elements * self.programs - rng.choice((0, 1, 7, self.elements // 2)))
        self.lines: list[str] = []
        self.depth = 2
        self.counter = 0
        self.scope = _Scope()
        self.arguments: dict[str, Buffer | int | float] = {}
        self.scalar_types: dict[str, str] = {}
        self.outputs: list[str] = []
        self.mask = self.offsets = ""

    def program(self, statements: int, first: str | None) -> Program:
        self._addresses()
        self._argument("trips", self.rng.choice((0, 1, 2, 3)), "int32")
        if first is not None:
            self._row(ROWS[first])
        # Every row weighs the same, so that rare ones come up as often as additions.
        kinds: Sequence[Callable[[], None]] = (self._any_row,) * 9 + (self._for, self._if, self._while)
        for _ in range(statements):
            self.rng.choice(kinds)()
        self._store_leftovers()
        return Program(
            self._module(), self.arguments, self.scalar_types, tuple(self.outputs), (self.programs, 1, 1),
            self.rng.choice((1, 2, 4, 8)),
        )

    # Text

    def _emit(self, element: str, is_tile: bool, operation: str) -> _Value:
        value = _Value(self._name(), element, is_tile)
        self._line(f"{value.name} = {operation}")
        self.scope.values.append(value)
        return value

    def _line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def _name(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def _type(self, element: str, is_tile: bool) -> str:
        return self._tile(dtype(element).ir) if is_tile else dtype(element).ir

    def _tile(self, element: str, shape: Sequence[int] | None = None) -> str:
        return f"tensor<{'x'.join(map(str, self.shape if shape is None else shape))}x{element}>"

    def _module(self) -> str:
        parameters = []
        for name, value in self.arguments.items():
            if isinstance(value, Buffer):
                hint = ", tile.divisible = 16 : i64" if value.array.ctypes.data % 16 == 0 and self.rng.random() < 0.5 else ""
                parameters.append(f"%{name}: !tile.ptr<{dtype(value.dtype).ir}> {{tile.name = \"{name}\"{hint}}}")
            else:
                parameters.append(f"%{name}: {dtype(self.scalar_types[name]).ir} {{tile.name = \"{name}\"}}")
        head = f"  func.func public @random_program({', '.join(parameters)}) {{"
        return "\n".join(["builtin.module {", head, *self.lines, "    func.return", "  }", "}", ""])

    def _shape(self) -> tuple[int, ...]:
        if self.rng.random() < 0.6:
            return (self.rng.choice((1, 16, 32, 64, 128, 256)),)
        return self.rng.choice((1, 2, 8, 16)), self.rng.choice((2, 8, 16, 32))

    # Addresses

    def _addresses(self) -> None:
        """`self.offsets`: the linear index of each element in the launch; `self.mask`: whether it is below the total."""
        i32, tile = "i32", self._tile("i32")
        self._argument("total", self.total, "int32")
        self._line("%pid = tile.program_id 0")
        self._line(f"%size = tile.constant {self.elements} : {i32}")
        self._line(f"%start = tile.muli %pid, %size : {i32}")
        self._line(f"%starts = tile.splat %start : i32 to {tile}")
        local = self._local_index()
        self._line(f"%linear = tile.addi %starts, {local} : {tile}")
        self._line(f"%totals = tile.splat %total : i32 to {tile}")
        self._line(f"%inside = tile.lts %linear, %totals : {tile}")
        self.offsets, self.mask = "%linear", "%inside"
        self.scope.values.append(_Value("%pid", "int32", False, used=True))
        self.scope.values.append(_Value("%linear", "int32", True, used=True))
        self.scope.values.append(_Value("%inside", "int1", True, used=True))

    def _local_index(self) -> str:
        if len(self.shape) == 1:
            self._line(f"%lane = tile.iota 0 to {self.shape[0]}")
            return "%lane"
        rows, columns = self.shape
        tile = self._tile("i32")
        for axis, (name, extent) in enumerate((("row", rows), ("column", columns))):
            thin = [rows, columns]
            thin[1 - axis] = 1
            self._line(f"%{name}s = tile.iota 0 to {extent}")
            self._line(f"%{name}t = tile.expand_dims %{name}s axis {1 - axis} : {self._tile('i32', [extent])}")
            self._line(f"%{name} = tile.broadcast %{name}t : {self._tile('i32', thin)} to {tile}")
        self._line(f"%width = tile.constant {columns} : {tile}")
        self._line(f"%above = tile.muli %row, %width : {tile}")
        self._line(f"%local = tile.addi %above, %column : {tile}")
        return "%local"

    def _argument(self, name: str, value: int | float, element: str) -> _Value:
        self.arguments[name] = value
        self.scalar_types[name] = element
        made = _Value(f"%{name}", element, False, used=True)
        self._outermost().values.append(made)
        return made

    def _outermost(self) -> _Scope:
        scope = self.scope
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def _strided(self, stride: int) -> str:
        if stride == 1:
            return self.offsets
        tile = self._tile("i32")
        step, scaled = self._name(), self._name()
        self._line(f"{step} = tile.constant {stride} : {tile}")
        self._line(f"{scaled} = tile.muli {self.offsets}, {step} : {tile}")
        return scaled

    def _pointers(self, buffer: str, element: str, offsets: str) -> str:
        """A tile of pointers, sometimes by way of integers."""
        pointer = f"!tile.ptr<{dtype(element).ir}>"
        base, moved = self._name(), self._name()
        self._line(f"{base} = tile.splat %{buffer} : {pointer} to {self._tile(pointer)}")
        self._line(f"{moved} = tile.addptr {base}, {offsets} : {self._tile(pointer)}, {self._tile('i32')}")
        return moved

    # Values

    def _need(self, element: str, is_tile: bool, row: Row | None = None, index: int = 0) -> str:
        """The name of a value of this type: one there is, a new one loaded, a constant, or a scalar spread over a tile."""
        wanted = row is not None and len(row.draw.ranges) > 0
        found = [v for v in self.scope.visible() if v.element == element and v.is_tile == is_tile]
        if found and self.rng.random() < (0.3 if wanted else 0.75):
            value = self.rng.choice(found)
        elif is_tile:
            value = self._new_tile(element, row, index)
        else:
            value = self._new_scalar(element, row, index)
        value.used = True
        return value.name

    def _new_tile(self, element: str, row: Row | None, index: int) -> _Value:
        choice = self.rng.random()
        if choice < 0.75 and len([b for b in self.arguments.values() if isinstance(b, Buffer)]) < INPUTS_LIMIT:
            return self._load(element, row, index)
        if choice < 0.85:
            scalar = self._need(element, False, row, index)
            return self._emit(element, True, f"tile.splat {scalar} : {dtype(element).ir} to {self._tile(dtype(element).ir)}")
        return self._constant(element, True, row, index)

    def _new_scalar(self, element: str, row: Row | None, index: int) -> _Value:
        if element != "int1" and self.rng.random() < 0.6 and dtype(element).bits >= 32:
            value = self._sample(element, row, index)
            return self._argument(f"s{len(self.arguments)}", value, element)
        return self._constant(element, False, row, index)

    def _constant(self, element: str, is_tile: bool, row: Row | None, index: int) -> _Value:
        value = self._sample(element, row, index)
        if isinstance(value, float) and not np.isfinite(value):
            value = 1.0  # infinities and NaN come in through memory and arguments
        return self._emit(element, is_tile, f"tile.constant {value!r} : {self._type(element, is_tile)}")

    def _sample(self, element: str, row: Row | None, index: int) -> int | float:
        """One number of the type."""
        value = formats.decode(self._array(element, (1,), row, index).array, element)[0]
        if dtype(element).is_float:
            return float(value)
        return int(value)

    def _array(self, element: str, shape: tuple[int, ...], row: Row | None, index: int) -> Buffer:
        """Values in the range where the row is worth testing, special ones among them; or any."""
        ranges = row.draw.ranges if row is not None else ()
        if not ranges or not dtype(element).is_float:
            return inputs.draw(self.arrays, self.rng.choice(("normal", "uniform", "ints", "specials")), shape, element)
        assert row is not None
        chosen = ranges[min(index, len(ranges) - 1)]
        low, high = chosen if chosen is not None else (-2.0, 2.0)
        values = self.arrays.uniform(low, high, shape)
        if self.rng.random() < 0.5:
            special = np.array(row.draw.special)
            places = self.arrays.random(shape) < 0.1
            values = np.where(places, special[self.arrays.integers(0, special.size, shape)], values)
        return Buffer(formats.encode(values, element), element)

    def _load(self, element: str, row: Row | None, index: int) -> _Value:
        stride = self.rng.choice((1, 1, 1, 2, 3))
        name = f"in{len(self.arguments)}"
        self.arguments[name] = self._array(element, (self.total * stride,), row, index)
        offsets, pointer = self._strided(stride), f"!tile.ptr<{dtype(element).ir}>"
        tail = f"mask {self.mask}"
        if self.rng.random() < 0.6:
            other = self._constant(element, True, row, index)
            other.used = True
            tail += f" other {other.name}"
        if self.rng.random() < 0.5:
            return self._emit(element, True, f"tile.load %{name}[{offsets}] {tail} : {pointer}[{self._tile('i32')}]")
        return self._emit(
            element, True, f"tile.load {self._pointers(name, element, offsets)} {tail} : {self._tile(pointer)}"
        )

    # Rows

    def _any_row(self) -> None:
        self._row(self.rng.choice(tuple(ROWS.values())))

    def _row(self, row: Row) -> None:
        if row.name in ("ptr_to_int", "int_to_ptr"):
            self._by_integer_address()
        elif row.is_cast:
            self._cast(row)
        else:
            self._plain(row)

    def _plain(self, row: Row) -> None:
        is_tile = self.rng.random() < 0.8
        element = self.rng.choice(_ARITHMETIC[row.operands[row.typed_by]])
        if "int1" not in _ARITHMETIC["T:int"] and row.name in ("andi", "ori", "xori", "select") and self.rng.random() < 0.2:
            element = "int1"
        names = [
            self._need("int1" if kind == "bool" else element, is_tile, row, index) for index, kind in enumerate(row.operands)
        ]
        if row.undefined is not None:
            names[1] = self._odd(names[1], element, is_tile)
        result = "int1" if row.result == "bool" else element
        self._emit(result, is_tile, f"tile.{row.name} {', '.join(names)} : {self._type(element, is_tile)}")

    def _odd(self, name: str, element: str, is_tile: bool) -> str:
        """The value with its lowest bit set, as a divisor that is never zero."""
        type, one = self._type(element, is_tile), self._name()
        self._line(f"{one} = tile.constant 1 : {type}")
        odd = self._name()
        self._line(f"{odd} = tile.ori {name}, {one} : {type}")
        return odd

    def _cast(self, row: Row) -> None:
        is_tile = self.rng.random() < 0.8
        source, result = self._cast_types(row)
        if not is_tile and (dtype(source).bits < 8 or dtype(result).bits < 8):
            is_tile = True
        name = self._need(source, is_tile, row)
        narrows = dtype(result).bits < dtype(source).bits
        rounding = " rtz" if row.rounding and narrows and self.rng.random() < 0.3 else ""
        types = f"{self._type(source, is_tile)} to {self._type(result, is_tile)}"
        self._emit(result, is_tile, f"tile.{row.name} {name}{rounding} : {types}")

    def _cast_types(self, row: Row) -> tuple[str, str]:
        pick = self.rng.choice
        if row.name == "bitcast":
            bits = pick((8, 16, 32, 64))
            same = [d.name for d in DTYPES.values() if d.bits == bits and d.kind != "uint"]
            return pick(same), pick(same)
        if row.name == "castf":
            source = pick(_CASTABLE_FLOATS)
            return source, pick([name for name in _CASTABLE_FLOATS if name != source])
        if row.name in ("s2f", "u2f"):
            return pick(_CASTABLE_INTEGERS), pick(FLOATS)
        if row.name in ("f2s", "f2u"):
            return pick(FLOATS), pick(INTEGERS)
        narrow, wide = sorted(self.rng.sample(range(len(_CASTABLE_INTEGERS)), 2))
        pair = _CASTABLE_INTEGERS[narrow], _CASTABLE_INTEGERS[wide]
        return pair[::-1] if row.name == "trunci" else pair

    def _by_integer_address(self) -> None:
        """A load whose pointers went through integers and back: addresses differ between devices, what lies there does not."""
        element = self.rng.choice(INTEGERS + FLOATS)
        name = f"in{len(self.arguments)}"
        self.arguments[name] = self._array(element, (self.total,), None, 0)
        pointer = self._tile(f"!tile.ptr<{dtype(element).ir}>")
        moved = self._pointers(name, element, self.offsets)
        address, back = self._name(), self._name()
        self._line(f"{address} = tile.ptr_to_int {moved} : {pointer} to {self._tile('i64')}")
        self._line(f"{back} = tile.int_to_ptr {address} : {self._tile('i64')} to {pointer}")
        self._emit(element, True, f"tile.load {back} mask {self.mask} : {pointer}")

    # Control flow

    @contextmanager
    def _region(self, *values: _Value) -> Iterator[None]:
        self.scope = _Scope(list(values), self.scope)
        self.depth += 1
        yield
        self.depth -= 1
        assert self.scope.outer is not None
        self.scope = self.scope.outer

    def _carried(self) -> _Value:
        element = self.rng.choice(INTEGERS + FLOATS)
        is_tile = self.rng.random() < 0.8
        return _Value(self._need(element, is_tile), element, is_tile)

    def _body(self, result: _Value) -> str:
        """A few operations, the last of which has the type of `result`; its name."""
        for _ in range(self.rng.choice((0, 1, 2))):
            self._any_row()
        fitting = [row for row in ROWS.values() if row.result == "same" and self._fits(row, result.element)]
        row = self.rng.choice(fitting)
        names = [result.name] + [
            self._need("int1" if kind == "bool" else result.element, result.is_tile, row, i)
            for i, kind in enumerate(row.operands) if i > 0
        ]
        if row.undefined is not None:
            names[1] = self._odd(names[1], result.element, result.is_tile)
        type = self._type(result.element, result.is_tile)
        return self._emit(result.element, result.is_tile, f"tile.{row.name} {', '.join(names)} : {type}").name

    @staticmethod
    def _fits(row: Row, element: str) -> bool:
        kind = row.operands[0]
        return kind == ("T:float" if dtype(element).is_float else "T:int")

    def _for(self) -> None:
        start = self._carried()
        type = self._type(start.element, start.is_tile)
        low, step = self._index_constant(0), self._index_constant(1)
        counter, carried, made = self._name(), self._name(), self._name()
        head = f"scf.for {counter} = {low} to %trips step {step} iter_args({carried} = {start.name}) -> ({type})"
        self._line(f"{made} = {head} : i32 {{")
        inner = _Value(carried, start.element, start.is_tile, used=True)
        with self._region(_Value(counter, "int32", False, used=True), inner):
            self._line(f"scf.yield {self._body(inner)} : {type}")
        self._line("}")
        self.scope.values.append(_Value(made, start.element, start.is_tile))

    def _index_constant(self, value: int) -> str:
        name = self._name()
        self._line(f"{name} = tile.constant {value} : i32")
        return name

    def _if(self) -> None:
        condition = self._need("int1", False) if self.rng.random() < 0.3 else self._program_condition()
        start = self._carried()
        type, made = self._type(start.element, start.is_tile), self._name()
        self._line(f"{made} = scf.if {condition} -> ({type}) {{")
        with self._region(start):
            self._line(f"scf.yield {self._body(start)} : {type}")
        self._line("} else {")
        with self._region(start):
            self._line(f"scf.yield {self._body(start)} : {type}")
        self._line("}")
        self.scope.values.append(_Value(made, start.element, start.is_tile))

    def _program_condition(self) -> str:
        """A condition that differs between the programs of a launch."""
        bound, condition = self._index_constant(self.rng.choice((0, 1, 2))), self._name()
        self._line(f"{condition} = tile.{self.rng.choice(('eqi', 'les', 'gtu'))} %pid, {bound} : i32")
        return condition

    def _while(self) -> None:
        """Counts a scalar up to the argument `trips` plus the program's number, changing one value in each trip."""
        start = self._carried()
        type, made = self._type(start.element, start.is_tile), self._name()
        zero, limit = self._index_constant(0), self._name()
        self._line(f"{limit} = tile.addi %trips, %pid : i32")
        before, kept, at, inner = (self._name() for _ in range(4))
        counted = self._name()
        self._line(
            f"{counted}, {made} = scf.while ({before} = {zero}, {kept} = {start.name}) : (i32, {type}) -> (i32, {type}) {{"
        )
        with self._region():
            more = self._name()
            self._line(f"{more} = tile.lts {before}, {limit} : i32")
            self._line(f"scf.condition({more}) {before}, {kept} : i32, {type}")
        self._line("} do {")
        self._line(f"^bb0({at}: i32, {inner}: {type}):")
        carried = _Value(inner, start.element, start.is_tile, used=True)
        with self._region(_Value(at, "int32", False, used=True), carried):
            changed = self._body(carried)
            following = self._name()
            self._line(f"{following} = tile.addi {at}, {self._index_constant(1)} : i32")
            self._line(f"scf.yield {following}, {changed} : i32, {type}")
        self._line("}")
        self.scope.values.append(_Value(made, start.element, start.is_tile))

    # Results

    def _store_leftovers(self) -> None:
        """Store what nothing uses; where that is too much, the first ones, which the most operations lead to, go last."""
        unused = [value for value in self.scope.values if not value.used]
        for value in unused[-OUTPUTS_LIMIT:]:
            self._store(value)

    def _store(self, value: _Value) -> None:
        name, value.used = f"out{len(self.arguments)}", True
        stride = self.rng.choice((1, 1, 2)) if value.is_tile else 1
        size = self.total * stride if value.is_tile else self.programs
        self.arguments[name] = inputs.empty((size,), value.element)
        self.outputs.append(name)
        pointer = f"!tile.ptr<{dtype(value.element).ir}>"
        if not value.is_tile:
            moved = self._name()
            self._line(f"{moved} = tile.addptr %{name}, %pid : {pointer}, i32")
            self._line(f"tile.store {moved}, {value.name} : {pointer}")
        elif self.rng.random() < 0.5:
            offsets = self._strided(stride)
            self._line(f"tile.store %{name}[{offsets}], {value.name} mask {self.mask} : {pointer}[{self._tile('i32')}]")
        else:
            moved = self._pointers(name, value.element, self._strided(stride))
            self._line(f"tile.store {moved}, {value.name} mask {self.mask} : {self._tile(pointer)}")


def element_types(program: Program) -> dict[str, DType]:
    """The element type of every argument."""
    return {n: dtype(v.dtype if isinstance(v, Buffer) else program.scalar_types[n]) for n, v in program.arguments.items()}


def fresh(program: Program) -> dict[str, Any]:
    """The arguments with arrays of their own, so that a launch leaves the program's as they are."""
    return {n: Buffer(v.array.copy(), v.dtype) if isinstance(v, Buffer) else v for n, v in program.arguments.items()}
