"""What the parser makes of PTX text: a module of functions, each a flat list of statements with its scopes.

Nothing is resolved here: operands are names and numbers as written, opcodes are strings. `decode` gives them meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tilefw.api.integers import round_up
from tilefw_nvidia.chips import Architecture
from tilefw_nvidia.isa.text.source import PtxSource
from tilefw_nvidia.isa.types import Type

# --- operands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A register, special register, variable, parameter or label; `negated` for `!%p`; `offset` for `symbol+8`."""

    text: str
    negated: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Integer:
    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A float immediate: `0f…` (bits 32), `0d…` (bits 64), or a decimal, which is kept as f64."""

    pattern: int
    bits: Literal[32, 64]
    decimal: bool = False


@dataclass(frozen=True, slots=True)
class AddressOperand:
    """`[base + offset]`, or `[base, {x, y}]` with coordinates; base is None for an absolute address."""

    base: str | None
    offset: int
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class VectorOperand:
    """`{a, b}`: one operand of several registers."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class PairOperand:
    """`d|p`: two destinations of one instruction."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class SinkOperand:
    """`_`: a destination that is thrown away."""


@dataclass(frozen=True, slots=True)
class CallOperands:
    """All operands of `call (results), function, (arguments);`. `indirect`: the function is a register, with a prototype."""

    function: str
    results: tuple[str, ...]
    arguments: tuple[str, ...]
    indirect: bool = False


Operand = Name | Integer | Float | AddressOperand | VectorOperand | PairOperand | SinkOperand | CallOperands

# --- statements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Location:
    """`.loc`: a line of the user's source, with the call that it was inlined at."""

    file: int
    line: int
    column: int
    function: str = ""
    inlined_at: Location | None = None


class PtxScope:
    """The names of one `{ }`: registers, variables, labels. Names of the outer scopes are seen from the inner ones."""

    __slots__ = ("counts", "labels", "outer", "registers", "tables", "variables")

    def __init__(self, outer: PtxScope | None = None) -> None:
        self.outer = outer
        self.registers: dict[str, Type] = {}
        self.counts: dict[str, tuple[int, Type]] = {}
        self.variables: dict[str, PtxVariable] = {}
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}

    def variable(self, name: str) -> PtxVariable | None:
        """The variable called `name` here or in an outer scope; None when there is none. `label` and `table` likewise."""
        return next((scope.variables[name] for scope in self._outwards() if name in scope.variables), None)

    def label(self, name: str) -> int | None:
        return next((scope.labels[name] for scope in self._outwards() if name in scope.labels), None)

    def table(self, name: str) -> tuple[str, ...] | None:
        return next((scope.tables[name] for scope in self._outwards() if name in scope.tables), None)

    def _outwards(self) -> Iterator[PtxScope]:
        scope: PtxScope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


@dataclass(slots=True)
class Statement:
    """One instruction as written. `start` and `end` are offsets into the source; `location` the `.loc` in force. `stops`: of a trap
    that stands for a call, why a launch ends where it is executed."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Name | None
    start: int
    end: int
    scope: PtxScope
    location: Location | None
    stops: str | None = None


Space = Literal["global", "const", "shared", "local", "param"]


@dataclass(frozen=True, slots=True)
class PtxVariable:
    """A variable in a state space. `size` is in bytes, 0 for an unsized extern array (the dynamic shared memory).

    One in `param` is declared in a body: it carries an argument or a result of a call, and each thread has its own.
    """

    name: str
    space: Space
    type: Type
    size: int
    alignment: int
    extern: bool = False
    data: bytes | None = None
    start: int = 0


@dataclass(frozen=True, slots=True)
class PtxParameter:
    """A parameter of an entry: its place in the argument block, and what `.ptr` says of the memory behind it."""

    name: str
    type: Type
    size: int
    alignment: int
    offset: int
    pointer: bool = False
    pointer_space: str = ""
    pointer_alignment: int = 0


@dataclass(slots=True)
class PtxFunction:
    """An `.entry` or, where `called`, a `.func` with its body; `results` are a `.func`'s. `directives` keeps performance directives
    by name (`reqntid`, `maxntid`, …). A function that is only declared is not `defined`."""

    name: str
    parameters: tuple[PtxParameter, ...]
    directives: Mapping[str, tuple[int, ...]]
    statements: list[Statement]
    scope: PtxScope
    start: int
    variables: list[PtxVariable] = field(default_factory=list)
    results: tuple[PtxParameter, ...] = ()
    called: bool = False
    defined: bool = True

    @property
    def required_workgroup(self) -> tuple[int, int, int] | None:
        """What `.reqntid` says, in all three dims; `.maxntid` only bounds the launch."""
        required = self.directives.get("reqntid")
        if not required:
            return None
        x, y, z = (*required, 1, 1)[:3]
        return x, y, z

    @property
    def parameter_bytes(self) -> int:
        return max((p.offset + p.size for p in self.parameters), default=0)


@dataclass(slots=True)
class PtxModule:
    """A PTX file. `target` is as written (a suffix `a` or `f` included); `files` holds the names of `.file` by number,
    `aliases` other names of functions."""

    source: PtxSource
    version: tuple[int, int] = (0, 0)
    target: str = ""
    address_size: int = 64
    entries: dict[str, PtxFunction] = field(default_factory=dict)
    functions: dict[str, PtxFunction] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    variables: dict[str, PtxVariable] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        return self.source.filename

    @property
    def architecture(self) -> Architecture:
        """The target as a number and a suffix, which decide what the module may contain and where it runs."""
        return Architecture.parse(self.target)

    def shared_bytes(self, function: PtxFunction) -> int:
        """Bytes of statically sized shared memory that the function and the module declare, each at its alignment."""
        total = 0
        for variable in [*self.variables.values(), *function.variables]:
            if variable.space == "shared":
                total = round_up(total, variable.alignment) + variable.size
        return total
