"""LoopMachine: what a plugin says of a machine without lanes, so that the kit can write a tile program as loops for it.

A vector of several elements of one row of a tile is the unit of work; a machine that has scalars alone says that a vector has one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from xdsl.ir import Operation

from tilefw.api.errors import Place
from tilefw.hardware.traps import Trap
from tilefw.simt.expand.builder import Rule
from tilefw.simt.expand.rules import RULES


class LoopValue(Protocol):
    """A value of the machine: `lanes` elements of `type` (tile IR's spelling; a pointer is its address, an i64)."""

    @property
    def type(self) -> str:
        """The elements' type."""
        ...

    @property
    def lanes(self) -> int:
        """How many elements it has."""
        ...


V = TypeVar("V", bound=LoopValue)


@dataclass(frozen=True, slots=True)
class ElementMemory(Generic[V]):
    """Where elements stand: at `address` + `offset` · element size; element k of a vector `stride` elements further each.

    `address` is an i64 of one lane; `offset` an i64 of one lane, or one for each element (`stride` is then 0). Without an address
    the offsets are addresses, in bytes. A stride of 0 from one offset is one element for all lanes; of stores the last one's stays.
    `local` memory is the program's own scratch, which no other program sees; `alignment` in bytes is that of the first element, as
    far as is known. `streamed`: they are of a tile with one dim, so that those behind them are likely wanted next, if not by this
    program then by the one after it. `ahead`: how many elements further what is read some turns later stands, an i64; None where it
    is not known, or where a processor finds out by itself.
    """

    address: V | None
    offset: V
    stride: V | int = 1
    local: bool = False
    alignment: int = 1
    volatile: bool = False
    streamed: bool = False
    ahead: V | None = None


@dataclass(frozen=True, slots=True)
class BlockCopy(Generic[V]):
    """A copy of a block between memory and the program's own: from `memory` to `local` where it goes `inward`, else the other way.

    Both are addresses of the first element, of `width` bytes. Of each dim `counts` elements are copied, maybe none; neighbours are
    `strides` bytes apart in memory and `local_strides` in the program's own.
    """

    memory: V
    local: V
    counts: tuple[V, ...]
    strides: tuple[V, ...]
    local_strides: tuple[int, ...]
    width: int
    inward: bool


@dataclass(frozen=True, slots=True)
class TileProduct(Generic[V]):
    """One step of a matrix unit: to the rows × columns at `sums` is added the product of the rows × depth at `left` and the depth ×
    columns at `right`, `sizes` in this order. All are addresses in the program's own memory; rows are so many bytes apart.
    Integers have signs, unless `operand_type` is `u8`; `tf32` and `bf16x3` are fp32 that may be multiplied with that precision."""

    sizes: tuple[int, int, int]
    sums: V
    left: V
    right: V
    sums_row: int
    left_row: int
    right_row: int
    operand_type: str
    sums_type: str


class TileReader(Protocol[V]):
    """A tile whose elements a unit asks for; they are read or made there."""

    def each(
        self, rows: int, lanes: int, across: int, take: Callable[[V, V, Sequence[Sequence[V]]], None],
        first: V | int = 0, count: int = 0,
    ) -> None:
        """Inside loops over all groups of `rows` rows and `across` vectors of `lanes` elements: what `take` does with the numbers,
        i64, of their first row and column, and with the vectors of each row. With a `count` so many rows, from `first` on, are
        taken, and counted from there."""
        ...

    def at(self, row: V | int, column: V | int, lanes: int) -> V:
        """One vector of a row; its column is a multiple of its lanes."""
        ...


@dataclass(frozen=True, slots=True)
class WholeProduct(Generic[V]):
    """A product for a unit that takes it whole. `sizes` and types are as `TileProduct` has them. Its sums go to `sums`, rows
    `sums_row` bytes apart: the product alone where `alone` holds, which may be an i1, else added to `onto`, or where that is None
    to what is at `sums`. An element of `onto` may be read where its sum is written, and no later. `workspace` is the unit's own
    memory."""

    sizes: tuple[int, int, int]
    sums: V
    sums_row: int
    left: TileReader[V]
    right: TileReader[V]
    operand_type: str
    sums_type: str
    alone: V | bool
    onto: TileReader[V] | None
    workspace: V | None


@dataclass(frozen=True, slots=True)
class LoopAtomic(Generic[V]):
    """One atomic access: `kind` is one of tile IR's, or `cas`, whose operands are what is expected and what takes its place. Order
    and scope are those of `tile.atomic_rmw`."""

    kind: str
    type: str
    address: V
    operands: tuple[V, ...]
    order: str
    scope: str


class LoopMachine(ABC, Generic[V]):
    """The description of a machine without lanes, and the writer of its code.

    `rows` are the elementwise rows that `op` writes, by key (`addf.f32`); core makes all others of them. Rows of i64 are needed for
    indices: `addi`, `subi`, `muli`, `divs`, `rems`, `lts`, `eqi`. Operands of one and of several lanes may meet in one row: the
    single one is repeated.

    `product_tile` is how many rows, and how many vectors of a row, of a product are summed up at once: as many registers. A machine
    that `transposes` exchanges the rows and columns of a square of vectors faster than it reads elements that are far apart, and
    one that `permutes` has lanes of a vector in another order faster. One that `fetches` is told what will be read later
    (`ElementMemory.ahead`). Where masked stores of vectors take longer than others, `cheap_masked_stores` is false: what a mask
    lets through whole is then stored without it, in a loop of its own.

    A machine with an engine that copies blocks says how many dims one copy counts, `copy_dims`, and how many tags tell its copies
    apart, `copy_tags`: tag 0 for copies that are awaited at once, the others for loads of loops that are started a turn early. One
    with a matrix unit has its sizes, (rows, columns, depth), and the types that it takes, (operands, sums); `u8` are bytes without
    a sign. A unit that `takes_whole` products gets all of a product at once (`multiply_whole`), whose sizes are multiples of these.

    `origin` is the op whose code is being written, for line tables and messages; the kit keeps it.
    """

    rows: Container[str]
    origin: Operation | None = None
    rules: Mapping[str, Rule] = RULES
    product_tile: tuple[int, int] = (1, 1)
    transposes: ClassVar[bool] = False
    permutes: ClassVar[bool] = False
    fetches: ClassVar[bool] = False
    cheap_masked_stores: bool = True
    copy_dims: ClassVar[int] = 0
    copy_tags: ClassVar[int] = 1
    matrix_tile: tuple[int, int, int] | None = None
    matrix_types: frozenset[tuple[str, str]] = frozenset()
    takes_whole: ClassVar[bool] = False

    def __init__(self) -> None:
        self.traps: list[Trap] = []
        self.parameters: list[V] = []

    @abstractmethod
    def vector_lanes(self, bits: int) -> int:
        """How many elements of `bits` bits a vector has: a power of two."""

    # -- values

    @abstractmethod
    def op(self, row: str, operands: tuple[V, ...], result: str) -> V:
        """A row that is in `rows` at the operands' type, with a result of type `result`."""

    @abstractmethod
    def const(self, pattern: int, type_: str) -> V:
        """The constant of `type_` whose bits, read without a sign, are `pattern`; of one lane."""

    def type_of(self, value: V) -> str:
        """The value's element type."""
        return value.type

    @abstractmethod
    def bits(self, value: V) -> V:
        """The code of a value of at most 32 bits, zero-extended to an i32."""

    @abstractmethod
    def narrow(self, value: V, type_: str) -> V:
        """The value of `type_` whose code is in the low bits of an i32: the inverse of `bits`."""

    @abstractmethod
    def split(self, value: V) -> tuple[V, V]:
        """The (low, high) halves of a 64-bit value, as i32."""

    @abstractmethod
    def join(self, low: V, high: V, type_: str) -> V:
        """The 64-bit value of `type_` with these i32 halves."""

    @abstractmethod
    def repeated(self, value: V, lanes: int) -> V:
        """A value of one lane in `lanes` lanes."""

    @abstractmethod
    def numbered(self, lanes: int) -> V:
        """0, 1, 2, … in lanes of i64."""

    @abstractmethod
    def part(self, value: V, first: int, count: int) -> V:
        """`count` lanes of a value, from lane `first` on."""

    def transposed(self, rows: Sequence[V]) -> Sequence[V]:
        """Of as many vectors as they have lanes: element k of vector i becomes element i of vector k. For a machine that
        `transposes`."""
        raise NotImplementedError

    def permuted(self, value: V, order: Sequence[int]) -> V:
        """Lanes of a vector, by their numbers, some of them perhaps more than once. For a machine that `permutes`."""
        raise NotImplementedError

    def numbers(self, numbers: Sequence[int]) -> V:
        """Known numbers in lanes of i64. For a machine that `permutes`."""
        raise NotImplementedError

    # -- memory

    @abstractmethod
    def load(self, memory: ElementMemory[V], type_: str, lanes: int, mask: V | None = None, other: V | None = None) -> V:
        """Elements of `type_` from memory; where `mask` is false nothing is read and `other` comes instead (any number, without). A
        byte of an i1 is true unless it is 0; of an i4 the low four bits count."""

    @abstractmethod
    def store(self, memory: ElementMemory[V], value: V, mask: V | None = None) -> None:
        """Elements to memory; where `mask` is false nothing is written."""

    @abstractmethod
    def atomic(self, access: LoopAtomic[V]) -> V:
        """One atomic access of one element; the value is what was there before."""

    @abstractmethod
    def scratch(self, offset: int) -> V:
        """The address of byte `offset` of the program's own memory."""

    def fence(self) -> None:
        """The program's memory accesses stay in order here. One program is one thread: nothing need be written."""

    def start_copy(self, copy: BlockCopy[V], tag: int) -> None:
        """Begin a copy. Until it has been awaited, neither side of it is touched but by copies of other elements. For a machine
        with `copy_dims`."""
        raise NotImplementedError

    def wait_copy(self, tag: int) -> None:
        """Wait until all copies with a tag are finished; there may be none."""
        raise NotImplementedError

    def multiplies(self, sizes: tuple[int, int, int], operand_type: str) -> bool:
        """Whether the unit is faster than loops at a product of these sizes."""
        return True

    def matrix_workspace(self, sizes: tuple[int, int, int], operand_type: str) -> int:
        """How many bytes of the program's own memory the unit uses for a product that it takes whole."""
        return 0

    def multiply(self, product: TileProduct[V]) -> None:
        """A step of the matrix unit. For a machine with a `matrix_tile` that takes no products whole."""
        raise NotImplementedError

    def multiply_whole(self, product: WholeProduct[V]) -> V | None:
        """A product. For a machine that `takes_whole` products. Where the unit cannot tell beforehand that it keeps what is
        promised of products, an i1: true where no sum has been written, and the product is to be made as loops."""
        raise NotImplementedError

    def trap(self, message: str, place: Place | None) -> None:
        """The launch is given up with a message, for what stands at a place; nothing that follows counts."""
        self.traps.append(Trap(message, place))
        self.stop(len(self.traps))

    @abstractmethod
    def stop(self, number: int) -> None:
        """The launch is given up here by trap `number`, counted from 1."""

    # -- the program

    @abstractmethod
    def parameter(self, number: int, type_: str) -> V:
        """A parameter of the kernel; of a pointer its address. They are asked for in order, each once, and are then
        `parameters`."""

    @abstractmethod
    def program_id(self, axis: int) -> V:
        """The program's number along an axis of the grid, an i32."""

    @abstractmethod
    def programs(self, axis: int) -> V:
        """The grid's extent along an axis, an i32."""

    @abstractmethod
    def observe(self, what: str) -> V:
        """What the machine knows here, of those that the target claims (`observe.*`): `nanoseconds` and `ticks` of clocks, i64, and
        the number of the `processor`, an i32."""

    # -- control flow

    @abstractmethod
    def variable(self, type_: str, lanes: int = 1) -> V:
        """A variable that is assigned and read; a handle, not its value. It may be made anywhere and is valid everywhere."""

    @abstractmethod
    def assign(self, variable: V, value: V) -> None:
        """Give a variable a value."""

    @abstractmethod
    def read(self, variable: V) -> V:
        """The value that a variable has here."""

    @abstractmethod
    def loop(self, begin: V, end: V, step: V) -> AbstractContextManager[V]:
        """A loop over `begin`, `begin` + `step`, … below `end` (signed, of one type); what is written inside is its body. Numbers
        beyond the type's largest end it; a step of 0 or below makes no turn."""

    @abstractmethod
    def branch(self, condition: V) -> AbstractContextManager[None]:
        """What is written inside happens where a condition of one lane holds."""

    @abstractmethod
    def forever(self) -> AbstractContextManager[None]:
        """A loop that `leave` ends."""

    @abstractmethod
    def leave(self, condition: V) -> None:
        """End the innermost `forever` where a condition of one lane holds."""
