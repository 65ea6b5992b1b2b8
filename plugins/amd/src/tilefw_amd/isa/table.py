"""Questions to the table: the forms of a mnemonic, the forms at an opcode, and, when there is none, what was probably meant."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterable, Iterator

from tilefw.api.collector import paused
from tilefw_amd.isa import rows
from tilefw_amd.isa.assembly import assembled
from tilefw_amd.isa.form import Form
from tilefw_amd.isa.row import ROWS, Row

# Suffixes that name an encoding, also where LLVM leaves them out because there is no other.
ENCODING_SUFFIXES = {"vop1": "_e32", "vop2": "_e32", "vopc": "_e32", "vop3": "_e64", "vop3b": "_e64"}


@functools.lru_cache(maxsize=1)
def load_rows() -> dict[str, Row]:
    """Every row, by base mnemonic: imports each chapter of `rows`."""
    for module in pkgutil.iter_modules(rows.__path__):
        importlib.import_module(f"{rows.__name__}.{module.name}")
    return ROWS


@functools.lru_cache(maxsize=1)
def forms() -> tuple[Form, ...]:
    """Every form of every row, those that decode first before those of which they are a special case."""
    with paused():  # all of it stays
        return tuple(form for row in load_rows().values() for form in assembled(row))


@functools.lru_cache(maxsize=1)
def forms_by_mnemonic() -> dict[str, tuple[Form, ...]]:
    """Forms by what a programmer may write: LLVM's name, or without the suffix of the encoding, or an alias, shortest first."""
    found: dict[str, list[Form]] = {}
    for form in sorted(forms(), key=lambda form: form.size):  # stable: special cases stay first
        for name in dict.fromkeys(_names(form)):
            found.setdefault(name, []).append(form)
    return {name: tuple(several) for name, several in found.items()}


def _names(form: Form) -> Iterator[str]:
    yield form.mnemonic
    suffix = form.mnemonic.removeprefix(form.row.name)
    for name in (form.row.name, *form.row.aliases):
        yield name
        yield name + suffix
        if form.encoding in ENCODING_SUFFIXES:
            yield name + ENCODING_SUFFIXES[form.encoding]


@functools.lru_cache(maxsize=1)
def forms_by_opcode() -> dict[tuple[str, int], tuple[Form, ...]]:
    """Forms by (name of the format whose first word it is, opcode), special cases first."""
    found: dict[tuple[str, int], list[Form]] = {}
    for form in forms():
        found.setdefault((form.format.shared, form.opcode), []).append(form)
    return {key: tuple(several) for key, several in found.items()}


def nearest(mnemonic: str, among: Iterable[str] | None = None) -> str | None:
    """The mnemonic that was probably meant."""
    found = difflib.get_close_matches(mnemonic, list(forms_by_mnemonic() if among is None else among), 1)
    return found[0] if found else None
