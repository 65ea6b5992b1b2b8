"""Questions to the table: which form a full opcode is, what it needs, and, when it is none, what was probably meant."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass, field
from typing import Any

from tilefw_nvidia.isa.known import NOT_SERVED_OPCODES
from tilefw_nvidia.isa.row import ROWS, Form, Modifiers, Version
from tilefw_nvidia.isa.rows import load_rows
from tilefw_nvidia.isa.source import NOT_SERVED, UNKNOWN

load_rows()


@dataclass(frozen=True, slots=True)
class Spec:
    """What the emitter asks: whether a full opcode exists, and the lowest `.version` and sm that have it."""

    opcode: str
    exists: bool
    version: Version = (0, 0)
    sm: int = 0
    unit: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A form with the modifiers of one full opcode; `meanings` keeps the closures made for its constants."""

    form: Form
    modifiers: Modifiers
    version: Version
    sm: int
    meanings: dict[Any, Any] = field(default_factory=dict, compare=False)


class OpcodeError(ValueError):
    """No form has this opcode. `word` is the part that does not fit, `help` the nearest that would."""

    def __init__(self, message: str, word: str, help: str | None = None, code: str = UNKNOWN) -> None:
        super().__init__(message)
        self.word = word
        self.help = help
        self.code = code


@functools.lru_cache(maxsize=4096)
def lookup(opcode: str) -> tuple[Match, ...]:
    """Every form that a full opcode may be, in the table's order; raises OpcodeError when there is none."""
    base, *words = opcode.split(".")
    row = ROWS.get(base)
    if row is None:
        raise _unknown_base(base)
    found: list[Match] = []
    for candidate in row.forms:
        modifiers = candidate.match(words)
        if modifiers is not None:
            found.append(Match(candidate, modifiers, *candidate.requires(words)))
    if not found:
        raise _unknown_modifiers(base, words)
    return tuple(found)


def opcode(text: str) -> Spec:
    """What the table says of a full opcode, such as `ld.global.v4.b32`."""
    try:
        matches = lookup(text)
    except OpcodeError as error:
        return Spec(text, False, problem=str(error))
    lowest = min(matches, key=lambda match: (match.sm, match.version))
    return Spec(text, True, lowest.version, lowest.sm, lowest.form.unit)


def _unknown_base(base: str) -> OpcodeError:
    if base in NOT_SERVED_OPCODES:
        return OpcodeError(
            f"{base} is a PTX instruction that is not served yet", base, NOT_SERVED_OPCODES[base] or None, NOT_SERVED
        )
    near = difflib.get_close_matches(base, [*ROWS, *NOT_SERVED_OPCODES], 1)
    return OpcodeError(f"{base!r} is no PTX instruction", base, f"the nearest is {near[0]}" if near else None)


def _unknown_modifiers(base: str, words: list[str]) -> OpcodeError:
    forms = ROWS[base].forms
    known = {word for candidate in forms for item in candidate.modifiers for word in item.words}
    for word in words:
        if word not in known:
            near = difflib.get_close_matches(word, sorted(known), 1)
            return OpcodeError(
                f"{base} has no modifier .{word} that is served", f".{word}", f"the nearest is .{near[0]}" if near else None
            )
    lines = "\n".join(candidate.pattern for candidate in forms[:8])
    return OpcodeError(f"{'.'.join([base, *words])} is no form of {base}", "", f"the forms are\n{lines}")
