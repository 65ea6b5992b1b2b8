"""Which cases a run takes: levels up to one, and an expression over ids."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from tilefw.api.errors import UsageError
from tilefw_conformance.case import LEVELS, Case


def select(cases: Iterable[Case], level: str, expression: str | None) -> tuple[Case, ...]:
    """The cases of `level` and below (`preview` stands alone) whose id fits `expression`: `vector_add and not fp16 or cast/*`."""
    if level not in LEVELS:
        raise UsageError(f"there is no level {level!r}", code="TFW0955", help=f"levels: {', '.join(LEVELS)}")
    levels = ("preview",) if level == "preview" else LEVELS[: LEVELS.index(level) + 1]
    choices = _choices(expression) if expression else [[]]
    return tuple(case for case in cases if case.level in levels and any(all(_fits(case.id, t) for t in terms) for terms in choices))


Term = tuple[bool, str]  # whether it must fit, and the word or glob


def _choices(expression: str) -> list[list[Term]]:
    """`or` of `and` of words, each with or without `not`."""
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
        raise UsageError(f"-k {expression!r} ends where a word should stand", code="TFW0955")
    return choices


def _fits(case_id: str, term: Term) -> bool:
    positive, word = term
    found = fnmatchcase(case_id, word) if set(word) & set("*?[") else word in case_id
    return found == positive
