"""What a row of the table is: a form in the PTX manual's own notation, its unit, the chips that have it, and its meaning, once.

    CHAPTER = Chapter()
    form = CHAPTER.form

    @form("add{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=ROUNDING, unit="fma", section="Floating Point Instructions: add")
    def add_f32(m):
        '''d = a + b, rounded once.'''
        return lambda lanes, a, b: lanes.fadd(a, b, "f32", m.rnd or "rn", m.ftz, m.sat)

Modifiers: `.word` must stand, `{.word}` may. A word that is a keyword argument of the decorator is a choice among its
values (`m.rnd` is the one written, "" when none was); any other stands for itself (`m.ftz` is True or False). The assembler takes
modifiers in any order as long as types keep theirs, and so do we. The function runs once, at decode, with what was
written; what it returns runs for each step, with the sources in the order of the pattern.

Operands: names that start with d are destinations. `a:u32` states a type, `a:stype` takes it from a choice, and without
either it is the choice `type`, or else the last type among the literal modifiers.

| pattern | means |
|---|---|
| `d`, `a` | a register; a source may be a constant, an address of a variable or a special register |
| `d|p` | two destinations; the second, a predicate, may be left out with its `|` (`d|both`: may not) |
| `a^`, `d^` | the register may be wider than the type (ld, st, cvt): truncated, or extended as the type is signed |
| `[a]` | an address; in `[a_shared]`, `[a_global]` a variable must lie in that space |
| `[a:dim]` | an address with as many coordinates, `[a, {x, y}]`, as the choice `dim` says (`2d`) |
| `_` | the sign for no destination |
| `a*4` | a vector of 4, flattened; `a*vec` takes the count from the choice `vec` (`v4`), one register if it was not written, or
from `counts` |
| `d&` | a destination whose old value is read too: a source before the others |
| `a{}` | a vector of two or four registers that together have the type's bits |
| `p:pred` | a predicate, which a `!` may negate where it is a source |
| `=n` | an integer constant, given to the function as `m.n` |
| `x?` | may be left out, with all behind it; `m.given` names what was written |
| `<carry`, `>carry` | the condition code as an unwritten source or destination |
| `@t` | a label, given as `m.target`; `@@t` a table of labels, as `m.targets` |
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tilefw_nvidia.chips import Architecture, Chip
from tilefw_nvidia.chips.chip import Version
from tilefw_nvidia.isa.types import TYPES

Facts = dict[str, Any]
"""Arguments of `Chapter.form` that several rows share."""
OperandKind = Literal["value", "address", "vector", "pack", "pair", "constant", "label", "table", "carry", "sink"]


class Modifiers(dict):
    """What was written of a form's modifiers and constant operands, by name; attributes that were not written are ""."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name, "")

    def type_of(self, name: str = "type") -> Any:
        return TYPES[self[name]]


@dataclass(frozen=True, slots=True)
class ModifierItem:
    """One position of the modifier grammar: `name` of the choice or flag, the words that fit it, whether it may be absent."""

    name: str
    words: tuple[str, ...]
    optional: bool
    choice: bool


@dataclass(frozen=True, slots=True)
class OperandItem:
    """One operand of the pattern; see the table above. `type` is a type's name, or a choice's in `typed_by`."""

    name: str
    kind: OperandKind
    destination: bool
    type: str = ""
    typed_by: str = ""
    second: str = ""
    count: str = ""
    wider: bool = False
    optional: bool = False
    tied: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """One line of the manual's syntax with its meaning.

    Chips from `since` on have it, up to and without `until` (0: for ever); `only`, where it is not empty, names the targets
    (their names end in `a`) that alone have it. `needs` raises version and `since` for modifiers, or for several that
    stand together (with spaces between them); `refuse` says why a
    combination of allowed modifiers is none ("" when it is one). `of_chip`: the meaning depends on the chip, which `build` takes
    as well. `counts`: by name, how many registers a vector has. `asynchrony` gives further facts of `tilefw.api.sim.Instruction`,
    for the modifiers and the bound sources: what goes on beside the warp.
    """

    pattern: str
    base: str
    modifiers: tuple[ModifierItem, ...]
    operands: tuple[OperandItem, ...]
    unit: str
    section: str
    version: Version
    since: int
    needs: Mapping[str, tuple[Version, int]]
    refuse: Callable[[Modifiers], str]
    build: Callable[..., Any]
    flow: bool = False
    until: int = 0
    only: tuple[str, ...] = ()
    of_chip: bool = False
    counts: Mapping[str, Callable[[Modifiers], int]] = field(default_factory=dict)
    asynchrony: Callable[[Modifiers, Sequence[Any]], Facts] | None = None

    @property
    def doc(self) -> str:
        return (getattr(self.build, "func", self.build).__doc__ or "").strip()  # `func`: of a functools.partial

    def on(self, target: Architecture) -> bool:
        """Whether code for `target` may have this form, apart from single modifiers."""
        if self.only:
            return str(target) in self.only
        return self.since <= target.number and (not self.until or target.number < self.until)

    def meaning(self, modifiers: Modifiers, chip: Chip) -> Any:
        """The meaning, or the flow, for the modifiers that were written."""
        return self.build(modifiers, chip) if self.of_chip else self.build(modifiers)

    def match(self, words: list[str]) -> Modifiers | None:
        """The modifiers if `words` (after the base opcode) are this form's; None if they are not."""
        left = list(words)
        found = Modifiers()
        for item in self.modifiers:
            word = next((w for w in left if w in item.words), None)
            if word is None:
                if not item.optional:
                    return None
                continue
            left.remove(word)
            found[item.name] = word if item.choice else True
        return None if left or self.refuse(found) else found

    def requires(self, words: list[str]) -> tuple[Version, int]:
        """The lowest `.version` and the number of the first chip for these modifiers."""
        version, since = self.version, self.since
        for together, (least, first) in self.needs.items():
            if all(word in words for word in together.split()):
                version, since = max(version, least), max(since, first)
        return version, since

    def opcodes(self) -> Iterator[str]:
        """Every full opcode of the form, in the pattern's order of modifiers."""
        choices = [(("",) if item.optional else ()) + item.words for item in self.modifiers]
        for words in itertools.product(*choices):
            found = Modifiers({i.name: w if i.choice else True for i, w in zip(self.modifiers, words, strict=True) if w})
            if not self.refuse(found):
                yield ".".join([self.base, *(w for w in words if w)])


_MODIFIER = re.compile(r"(\{)?\.([\w:]+)(?(1)\})")
_OPERAND = re.compile(
    r"""(?:
      \[(?P<address>\w+)(?::(?P<coordinates>\w+))?\]
    | (?P<sink>_)
    | =(?P<constant>\w+)
    | (?P<labels>@@?)(?P<label>\w+)
    | (?P<way>[<>])carry
    | (?P<name>\w+)(?P<tied>&)?(?P<pack>\{\})?(?:\*(?P<count>\w+))?(?::(?P<type>\w+))?(?P<wider>\^)?(?:\|(?P<second>\w+))?
    )(?P<optional>\?)?$""",
    re.VERBOSE,
)


class Chapter:
    """The forms of one chapter of the manual, collected in the order of its file."""

    def __init__(self) -> None:
        self._forms: list[Form] = []

    @property
    def forms(self) -> tuple[Form, ...]:
        return tuple(self._forms)

    def form(
        self,
        pattern: str,
        *,
        unit: str,
        section: str,
        ptx: str = "1.0",
        since: int = 10,
        until: int = 0,
        only: str = "",
        needs: Mapping[str, tuple[str, int]] | None = None,
        refuse: Callable[[Modifiers], str] = lambda _: "",
        flow: bool = False,
        of_chip: bool = False,
        counts: Mapping[str, Callable[[Modifiers], int]] | None = None,
        asynchrony: Callable[[Modifiers, Sequence[Any]], Facts] | None = None,
        **choices: str,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a form.

        `ptx` (the first `.version`) and `since` are from the manual's "PTX ISA Notes" and "Target ISA Notes" of `section`; `only`
        names targets, separated by spaces. `flow`: the function returns a `tilefw.api.sim` flow instead of a meaning.
        """

        def add(build: Callable[..., Any]) -> Callable[..., Any]:
            head, _, tail = pattern.partition(" ")
            base = re.split(r"\W", head, maxsplit=1)[0]
            items = tuple(_modifier(optional, word, choices) for optional, word in _MODIFIER.findall(head[len(base) :]))
            default = _default_type(items, choices)
            operands = tuple(_operand(text.strip(), default, choices) for text in tail.split(",")) if tail else ()
            raised = {word: (_version(v), s) for word, (v, s) in (needs or {}).items()}
            self._forms.append(Form(
                pattern, base, items, operands, unit, section, _version(ptx), since, raised, refuse, build, flow, until,
                tuple(only.split()), of_chip, counts or {}, asynchrony,
            ))
            return build

        return add


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _modifier(optional: str, word: str, choices: Mapping[str, str]) -> ModifierItem:
    words = tuple(choices[word].split()) if word in choices else (word,)
    return ModifierItem(word.replace("::", "_"), words, bool(optional), word in choices)


def _default_type(items: tuple[ModifierItem, ...], choices: Mapping[str, str]) -> str:
    if "type" in choices:
        return "type"
    literal = [i.name for i in items if not i.choice and i.name in TYPES]
    return literal[-1] if literal else ""


def _operand(text: str, default: str, choices: Mapping[str, str]) -> OperandItem:
    match = _OPERAND.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not an operand pattern")
    optional = bool(match["optional"])
    if match["address"]:
        return OperandItem(match["address"], "address", False, "s32", count=match["coordinates"] or "", optional=optional)
    if match["sink"]:
        return OperandItem("none", "sink", True)
    if match["constant"]:
        return OperandItem(match["constant"], "constant", False, optional=optional)
    if match["label"]:
        return OperandItem(match["label"], "label" if match["labels"] == "@" else "table", False)
    if match["way"]:
        return OperandItem("carry", "carry", match["way"] == ">", "pred")
    kind: OperandKind = "pair" if match["second"] else "pack" if match["pack"] else "vector" if match["count"] else "value"
    given = match["type"] or default
    typed_by = given if given in choices else ""
    return OperandItem(
        match["name"],
        kind,
        match["name"].startswith("d"),
        "" if typed_by else given,
        typed_by,
        match["second"] or "",
        match["count"] or "",
        bool(match["wider"]),
        optional,
        bool(match["tied"]),
    )
