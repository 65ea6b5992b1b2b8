"""What a chip does not serve: the rows of the elementwise table, by type, that it has not and that no rule makes of what it has.

Each row is built once on values that are nothing but types, as the compiler would build it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from tilefw.api.errors import UnsupportedError
from tilefw.simt.expand.builder import TYPES, Legal, Rule, Value, key
from tilefw.simt.expand.rules import RULES
from tilefw.tile.elementwise import ROWS
from tilefw.tile.elementwise.row import ElementwiseRow


class RowsOfChip(Protocol):
    """What is asked of a chip: the keys of its rows. Its `rules` are asked too, where it has some."""

    @property
    def rows(self) -> Container[str]:
        """The keys of the rows that it has."""
        ...


def missing(chip: RowsOfChip) -> dict[str, str]:
    """The rows that a chip does not serve, by key (`exp.f64`), each with the first row on its way that nothing makes (`fma.f64`).

    The chip's own `rules` count where it has them, else core's. For tests of a backend: `missing(chip) == {}` says that every row
    is served at every type, and `set(missing(chip).values())` are the rows to add.
    """
    rules = getattr(chip, "rules", RULES)
    build = _DryRun(_TypesAlone(chip.rows), rules)
    return {wanted: reason for wanted, row, types, to in _table() if (reason := build.reason(row, types, to)) is not None}


@dataclass(frozen=True, slots=True)
class _TypedOperand:
    type: str


class _TypesAlone:
    """An `ExpansionBuilder` whose values are types."""

    def __init__(self, rows: Container[str]) -> None:
        self.rows = rows

    def op(self, row: str, operands: tuple[Value, ...], result: str) -> Value:
        return _TypedOperand(result)

    def const(self, pattern: int, type_: str) -> Value:
        return _TypedOperand(type_)

    def type_of(self, value: Value) -> str:
        return value.type

    def bits(self, value: Value) -> Value:
        return _TypedOperand("i32")

    def narrow(self, value: Value, type_: str) -> Value:
        return _TypedOperand(type_)

    def split(self, value: Value) -> tuple[Value, Value]:
        return _TypedOperand("i32"), _TypedOperand("i32")

    def join(self, low: Value, high: Value, type_: str) -> Value:
        return _TypedOperand(type_)


class _DryRun(Legal):
    """Builds a row once and remembers what became of it."""

    def __init__(self, chip: _TypesAlone, rules: Mapping[str, Rule]) -> None:
        super().__init__(chip, rules)
        self._made: dict[str, Value] = {}
        self._reasons: dict[str, str] = {}
        self._open: set[str] = set()

    def __call__(self, row: str, *operands: Value, to: str | None = None) -> Value:
        wanted = key(row, self.type_of(operands[1] if row == "select" else operands[0]), to)
        if wanted in self._made:
            return self._made[wanted]
        if wanted not in self._reasons:
            self._try(wanted, row, operands, to)
        if wanted in self._reasons:
            raise UnsupportedError(self._reasons[wanted], code="TFW0610")
        return self._made[wanted]

    def _try(self, wanted: str, row: str, operands: tuple[Value, ...], to: str | None) -> None:
        """Build a row. One that its own rule needs again is made of nothing."""
        native = wanted in self.chip.rows
        if not native and (wanted in self._open or wanted not in self.rules):
            self._reasons[wanted] = wanted
            return
        self._open.add(wanted)
        try:
            self._made[wanted] = super().__call__(row, *operands, to=to)
        except UnsupportedError as error:
            self._reasons.setdefault(wanted, error.message)
        finally:
            self._open.discard(wanted)

    def reason(self, row: str, types: tuple[str, ...], to: str | None) -> str | None:
        """The row that a row needs and nothing makes; None where it is served."""
        try:
            self(row, *map(_TypedOperand, types), to=to)
        except UnsupportedError as error:
            return error.message
        return None


def _table() -> Iterator[tuple[str, str, tuple[str, ...], str | None]]:
    """All rows: key, name, operands' types, and the result's of a cast."""
    for row in ROWS.values():
        if "T:ptr" in (*row.operands, row.result.replace("to:", "T:")):
            continue  # a pointer is its address
        for type_ in _types(row.operands[row.typed_by]):
            operands = tuple("i1" if kind == "bool" else type_ for kind in row.operands)
            for to in _results(row, type_):
                yield key(row.name, type_, to), row.name, operands, to


def _types(kind: str) -> tuple[str, ...]:
    wanted = kind.partition(":")[2]
    return tuple(name for name, dtype in TYPES.items() if wanted == "any" or dtype.is_float == (wanted == "float"))


def _results(row: ElementwiseRow, type_: str) -> tuple[str | None, ...]:
    """What a cast may give; None alone for a row that is no cast."""
    if not row.is_cast:
        return (None,)
    source = TYPES[type_]
    fits = _CASTS.get(row.name, lambda a, b: True)
    return tuple(to for to in _types(row.result) if fits((type_, source.bits), (to, TYPES[to].bits)))


_CASTS = {
    "exts": lambda a, b: a[1] < b[1], "extu": lambda a, b: a[1] < b[1], "trunci": lambda a, b: a[1] > b[1],
    "castf": lambda a, b: a[0] != b[0], "bitcast": lambda a, b: a[1] == b[1],
    **dict.fromkeys(("f2s", "f2u"), lambda a, b: b[1] > 1),
}
"""Which pairs of (type, bits) the casts of tile IR have; any where a row is not named."""
