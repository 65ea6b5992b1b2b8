"""Conditions on the end of a litmus test: comparisons of registers, locations and numbers under `/\\`, `\\/` and `~`."""

from __future__ import annotations

import re
from typing import Literal, cast

from tilefw.sim.memory.litmus.test import Condition, Final

_TOKEN = re.compile(r"\s*(?:(/\\)|(\\/)|(~)|(\()|(\))|(==|!=|=)|P?(\d+)\s*:\s*(\w+)|(-?\d+)|(\w+))")
_NAMES = ("and", "or", "not", "(", ")")


def read_condition(quantifier: str, text: str) -> Condition:
    """The condition that a quantifier and its predicate make."""
    pattern: list[str] = []
    names: list[str] = []
    position = 0
    text = text.strip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if not found:
            raise ValueError(f"a condition was expected at {text[position:]!r}")
        position = found.end()
        pattern.append(_word(found, names))
    code = compile(" ".join(pattern), "<condition>", "eval")

    def holds(final: Final) -> bool:
        return bool(eval(code, {"__builtins__": {}, "value": [final.get(name, 0) for name in names]}))

    return Condition(cast(Literal["exists", "~exists", "forall"], quantifier), holds, frozenset(names))


def _word(found: re.Match[str], names: list[str]) -> str:
    for group, word in enumerate(_NAMES, 1):
        if found[group]:
            return word
    if found[6]:
        return "!=" if found[6] == "!=" else "=="
    if found[9]:
        return found[9]
    names.append(f"{found[7]}:{found[8]}" if found[8] else found[10])
    return f"value[{len(names) - 1}]"
