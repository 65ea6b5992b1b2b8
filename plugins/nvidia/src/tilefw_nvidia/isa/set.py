"""InstructionSet: the forms that one chip has, and the questions to them: which form a full opcode is, what it needs, and, when
it is none, what was probably meant.

    instructions = instruction_set(chip)
    instructions.opcode("ld.global.v4.b32").version    # what the emitter asks
    instructions.lookup("mma.sync.aligned.…")          # what the decoder asks
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilefw.api.sim import Special
from tilefw_nvidia.chips import Architecture, Chip
from tilefw_nvidia.chips.chip import Version
from tilefw_nvidia.isa.known import NOT_SERVED_OPCODES
from tilefw_nvidia.isa.meaning.specials import specials
from tilefw_nvidia.isa.model import Form, Modifiers
from tilefw_nvidia.isa.rows import forms
from tilefw_nvidia.isa.text.source import NOT_SERVED, UNKNOWN, VERSION


@dataclass(frozen=True, slots=True)
class Spec:
    """What the emitter asks: whether the chip has a full opcode, and the lowest `.version` and first chip that have it."""

    opcode: str
    exists: bool
    version: Version = (0, 0)
    since: int = 0
    unit: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A form with the modifiers of one full opcode; `meanings` keeps the closures made for its constants."""

    form: Form
    modifiers: Modifiers
    version: Version
    since: int
    meanings: dict[Any, Any] = field(default_factory=dict, compare=False)

    def on(self, target: Architecture) -> bool:
        """Whether code for `target` may have this opcode."""
        return self.form.on(target) and self.since <= target.number


class OpcodeError(ValueError):
    """No form has this opcode. `word` is the part that does not fit, `help` the nearest that would."""

    def __init__(self, message: str, word: str, help: str | None = None, code: str = UNKNOWN) -> None:
        super().__init__(message)
        self.word = word
        self.help = help
        self.code = code


class InstructionSet:
    """What one chip executes. Decode tables and caches are this object's own, so that several chips live in one process.

    `every` is the whole table, of which the chip has what its architecture and its page say.
    """

    def __init__(self, chip: Chip, every: Iterable[Form] = ()) -> None:
        self.chip = chip
        self.specials: Mapping[str, Special] = specials(chip)
        self._by_base: dict[str, list[Form]] = {}
        for form in every or forms():
            self._by_base.setdefault(form.base, []).append(form)
        self._found: dict[str, tuple[Match, ...]] = {}

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms that the chip has, in the table's order."""
        return tuple(form for every in self._by_base.values() for form in every if form.on(self.chip.architecture))

    def latency(self, form: Form) -> int:
        """Cycles from an instruction of this form to one that uses its result."""
        return self.chip.latencies[form.unit]

    def lookup(self, opcode: str) -> tuple[Match, ...]:
        """Every form that a full opcode may be on this chip, in the table's order; raises OpcodeError when there is none."""
        found = self._found.get(opcode)
        if found is None:
            found = self._found[opcode] = self._lookup(opcode)
        return found

    def _lookup(self, opcode: str) -> tuple[Match, ...]:
        base, *words = opcode.split(".")
        if base not in self._by_base:
            raise self._unknown_base(base)
        every = [
            Match(form, modifiers, *form.requires(words))
            for form in self._by_base[base]
            if (modifiers := form.match(words)) is not None
        ]
        if not every:
            raise self._unknown_modifiers(base, words)
        if self.chip.lacks(opcode):
            raise OpcodeError(f"{self.chip.name} has no {opcode}", "", code=VERSION)
        found = tuple(match for match in every if match.on(self.chip.architecture))
        if not found:
            raise OpcodeError(f"{opcode} needs {_first(every)}; the chip is {self.chip.name}", "", code=VERSION)
        return found

    def opcode(self, text: str) -> Spec:
        """What the table says of a full opcode, such as `ld.global.v4.b32`."""
        try:
            matches = self.lookup(text)
        except OpcodeError as error:
            return Spec(text, False, problem=str(error))
        lowest = min(matches, key=lambda match: (match.since, match.version))
        return Spec(text, True, lowest.version, lowest.since, lowest.form.unit)

    def _unknown_base(self, base: str) -> OpcodeError:
        if base in NOT_SERVED_OPCODES:
            return OpcodeError(
                f"{base} is a PTX instruction that is not served yet", base, NOT_SERVED_OPCODES[base] or None, NOT_SERVED
            )
        near = difflib.get_close_matches(base, [*self._by_base, *NOT_SERVED_OPCODES], 1)
        return OpcodeError(f"{base!r} is not a PTX instruction", base, f"the nearest is {near[0]}" if near else None)

    def _unknown_modifiers(self, base: str, words: list[str]) -> OpcodeError:
        every = self._by_base[base]
        known = {word for candidate in every for item in candidate.modifiers for word in item.words}
        for word in words:
            if word not in known:
                near = difflib.get_close_matches(word, sorted(known), 1)
                return OpcodeError(
                    f"{base} has no modifier .{word} that is served", f".{word}", f"the nearest is .{near[0]}" if near else None
                )
        lines = "\n".join(candidate.pattern for candidate in every[:8])
        return OpcodeError(f"{'.'.join([base, *words])} is not a form of {base}", "", f"the forms are\n{lines}")


def _first(matches: Iterable[Match]) -> str:
    """The earliest target that has one of these forms."""
    names = [name for match in matches for name in match.form.only]
    return names[0] if names else f"sm_{min(match.since for match in matches)}"


@functools.cache
def instruction_set(chip: Chip) -> InstructionSet:
    """The instruction set of a chip, made once."""
    return InstructionSet(chip)
