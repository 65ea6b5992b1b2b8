"""`-p MODULE` before the verb and `--disable-plugin NAME` before or behind it: which plugins a command sees.

Both go into the environment for as long as the command runs, since its child processes must see the same plugins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_BEFORE = {"-p": "TILEFW_PLUGINS", "--plugin": "TILEFW_PLUGINS"}
_ANYWHERE = {"--disable-plugin": "TILEFW_DISABLE_PLUGINS"}


@contextmanager
def plugins_chosen(arguments: list[str]) -> Iterator[list[str]]:
    """The arguments without these options, which hold inside; raises UsageError TFW0911 for one without its word."""
    rest, said = _taken(arguments)
    if not said:
        yield rest
        return
    before = {variable: os.environ.get(variable) for variable in said}
    try:
        for variable, words in said.items():
            os.environ[variable] = ",".join(word for word in (before[variable], *words) if word)
        yield rest
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def _taken(arguments: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The other arguments, and the words by environment variable. What follows `--` is a script's own."""
    rest: list[str] = []
    said: dict[str, list[str]] = {}
    at = 0
    while at < len(arguments) and arguments[at] != "--":
        option, equals, word = arguments[at].partition("=")
        variable = _ANYWHERE.get(option) or (None if rest else _BEFORE.get(option))
        at += 1
        if variable is None:
            rest.append(arguments[at - 1])
            continue
        if not equals:
            word, at = _next(arguments, at, option), at + 1
        said.setdefault(variable, []).append(word)
    return rest + arguments[at:], said


def _next(arguments: list[str], at: int, option: str) -> str:
    if at < len(arguments) and not arguments[at].startswith("-"):
        return arguments[at]
    from tilefw.api.errors import UsageError

    what = "the module of a plugin" if option in _BEFORE else "the name of a plugin"
    raise UsageError(f"{option} takes {what}", code="TFW0911", help="`tilefw plugins` lists those there are")
