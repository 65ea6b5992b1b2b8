"""The instruction set of one chip: the rows that it has, their forms, and the questions to them.

Two chips have two sets in one process: what is made of a set (forms, decoder, parser) belongs to it and knows no other.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from tilefw.api.garbage_collection import paused
from tilefw_amd.chips import Chip
from tilefw_amd.isa import rows
from tilefw_amd.isa.encoding.forms import assembled
from tilefw_amd.isa.model import Form
from tilefw_amd.isa.row import Row

# Suffixes that name an encoding, also where LLVM leaves them out because there is no other.
ENCODING_SUFFIXES = {"vop1": "_e32", "vop2": "_e32", "vopc": "_e32", "vop3": "_e64", "vop3b": "_e64"}

T = TypeVar("T")


@functools.cache
def instruction_set(chip: Chip) -> InstructionSet:
    """The set of a chip, made once."""
    return InstructionSet(chip)


class InstructionSet:
    """What a chip serves. `rows` are by base mnemonic; raises ValueError where two rows of one name serve the chip."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        served = [row for row in _all_rows() if row.serves(chip)]
        self.rows: Mapping[str, Row] = MappingProxyType({row.name: row for row in served})
        if len(self.rows) != len(served):
            names = [row.name for row in served]
            raise ValueError(f"{chip.name}: {sorted({n for n in names if names.count(n) > 1})} have several rows")
        self._own: dict[Callable[[InstructionSet], Any], Any] = {}

    def __str__(self) -> str:
        return self.chip.name

    def own(self, make: Callable[[InstructionSet], T]) -> T:
        """What `make` makes of this set, once: its decoder, its parser."""
        found = self._own.get(make)
        if found is None:
            found = self._own[make] = make(self)
        return found

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """Every form of every row, those that decode first before those of which they are a special case."""
        with paused():  # all of it stays
            return tuple(form for row in self.rows.values() for form in assembled(row, self.chip))

    @cached_property
    def forms_by_mnemonic(self) -> Mapping[str, tuple[Form, ...]]:
        """Forms by what a programmer may write: LLVM's name, or without the suffix of the encoding, or an alias, shortest first."""
        found: dict[str, list[Form]] = {}
        for form in sorted(self.forms, key=lambda form: form.size):  # stable: special cases stay first
            for name in dict.fromkeys(_names(form)):
                found.setdefault(name, []).append(form)
        return {name: tuple(several) for name, several in found.items()}

    @cached_property
    def forms_by_opcode(self) -> Mapping[tuple[str, int], tuple[Form, ...]]:
        """Forms by (name of the format whose first word it is, opcode), special cases first."""
        found: dict[tuple[str, int], list[Form]] = {}
        for form in self.forms:
            found.setdefault((form.format.shared, form.opcode), []).append(form)
        return {key: tuple(several) for key, several in found.items()}

    def row(self, mnemonic: str) -> Row:
        """The row of a mnemonic in any of its spellings; KeyError when there is none."""
        return self.forms_by_mnemonic[mnemonic][0].row

    def latency(self, row: Row) -> int:
        """Cycles from issue to a dependent result."""
        rates = self.chip.rates
        return rates.pass_cycles * row.passes if row.passes else rates.latency[row.unit]

    def nearest(self, mnemonic: str, among: Iterable[str] | None = None) -> str | None:
        """The mnemonic that was probably meant."""
        found = difflib.get_close_matches(mnemonic, list(self.forms_by_mnemonic if among is None else among), 1)
        return found[0] if found else None


@functools.cache
def _all_rows() -> tuple[Row, ...]:
    """The rows of all chips: those of each chapter of `rows`."""
    modules = (importlib.import_module(f"{rows.__name__}.{module.name}") for module in pkgutil.iter_modules(rows.__path__))
    return tuple(row for module in modules if hasattr(module, "CHAPTER") for row in module.CHAPTER.rows)


def _names(form: Form) -> Iterator[str]:
    yield form.mnemonic
    suffix = form.mnemonic.removeprefix(form.row.mnemonic)
    for name in (form.row.mnemonic, *form.row.aliases):
        yield name
        yield name + suffix
        if form.encoding in ENCODING_SUFFIXES:
            yield name + ENCODING_SUFFIXES[form.encoding]
