"""Which cases a run takes: levels up to one, those of one edition of the suite, an expression over ids, one part of several."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from tilefw.api.errors import UsageError
from tilefw_conformance import EDITION
from tilefw_conformance.case import ALONE, LEVELS, Case
from tilefw_conformance.edition import numbers

Part = tuple[int, int]  # which one from 1, of how many


def select(
    cases: Iterable[Case], level: str, expression: str | None, edition: str = EDITION, part: Part | None = None
) -> tuple[Case, ...]:
    """The cases of `level` and below (those of `ALONE` include no other) that belong to `edition`, whose id fits `expression`
    (`vector_add and not fp16 or cast/*`), and that are in `part`."""
    if level not in LEVELS:
        raise UsageError(f"there is no level {level!r}", code="TFW0955", help=f"levels: {', '.join(LEVELS)}")
    levels = (level,) if level in ALONE else LEVELS[: LEVELS.index(level) + 1]
    choices = _choices(expression) if expression else [[]]
    chosen = numbers(edition)
    found = tuple(
        case for case in cases
        if case.level in levels and _belongs(case, chosen) and any(all(_fits(case.id, t) for t in terms) for terms in choices)
    )
    return found if part is None else _part(found, *part)


def _part(cases: Sequence[Case], number: int, count: int) -> tuple[Case, ...]:
    """Of each kernel's cases as many as of every other's. A checksum orders them, as neighbours differ in one parameter alone; one
    of the kernel's name begins the count, or all that have few cases would be in the first part."""
    places: dict[str, int] = {}
    chosen: set[str] = set()
    for case in sorted(cases, key=lambda case: (zlib.crc32(case.id.encode()), case.id)):
        place = places.setdefault(case.kernel, zlib.crc32(case.kernel.encode()))
        places[case.kernel] += 1
        if place % count == number - 1:
            chosen.add(case.id)
    return tuple(case for case in cases if case.id in chosen)


def _belongs(case: Case, edition: tuple[int, ...]) -> bool:
    """An edition has what came in it or before, and did not end before."""
    return numbers(case.since) <= edition and (case.until is None or edition <= numbers(case.until))


Term = tuple[bool, str]  # whether it must fit, and the word or glob


def _choices(expression: str) -> list[list[Term]]:
    """`or` of `and` of words, each with or without `not`."""
    if set(expression) & set("()"):
        message = f"-k {expression!r}: there are no parentheses here"
        raise UsageError(message, code="TFW0955", help="`and` binds closer than `or`: write 'a and b or a and c'")
    choices: list[list[Term]] = [[]]
    positive, wants_word = True, True
    for word in expression.split():
        if word in ("and", "or"):
            if wants_word:
                raise UsageError(f"-k {expression!r}: a word is missing before {word!r}", code="TFW0955")
            if word == "or":
                choices.append([])
            wants_word = True
        elif word == "not":
            positive = not positive
            wants_word = True
        elif not wants_word:
            message = f"-k {expression!r}: `and` or `or` is missing before {word!r}"
            raise UsageError(message, code="TFW0955", help="words are parts of ids or globs over them, joined by and, or, not")
        else:
            choices[-1].append((positive, word))
            positive, wants_word = True, False
    if wants_word:
        raise UsageError(f"-k {expression!r} ends where a word is expected", code="TFW0955")
    return choices


def _fits(case_id: str, term: Term) -> bool:
    positive, word = term
    found = fnmatchcase(case_id, word) if set(word) & set("*?[") else word in case_id
    return found == positive
