"""A target's own launch keywords as options of the command line: `--lanes 4` is `--option lanes=4` where a target knows `lanes`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilefw.api.errors import LaunchError, UsageError
from tilefw.api.target import TargetInfo
from tilefw.cli.arguments import literals
from tilefw.runtime import config, options
from tilefw.runtime.loader import find, registry


def spelled_out(argv: Sequence[str], known: Collection[str]) -> list[str]:
    """The words with options that targets declare, and the parser (`known`) lacks, as `--option name=value`.

    Whether the chosen target is one of those is seen later, as for every `--option`. Raises UsageError TFW0911 for an option
    without a value."""
    declared = {f"--{name.replace('_', '-')}": name for info in registry().infos() for name in info.options}
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "--":
            return [*words, word, *rest]
        flag, equals, value = word.partition("=")
        if flag in known or flag not in declared:
            words.append(word)
            continue
        given = value if equals else next(rest, None)
        if given is None or (not equals and given.startswith("--")):
            raise UsageError(f"{flag} takes a value", code="TFW0911", help=f"write `{flag} VALUE`")
        words += ["--option", f"{declared[flag]}={given}"]
    return words


def keywords(args: Namespace) -> dict[str, Any]:
    """The launch keywords of `--option`. Raises UsageError for what the target of `--target` does not take."""
    given = literals(args.option)
    if given:
        refuse_unknown(given, find(config.resolve(config.settings(args.target)).target).info)
    return given


def refuse_unknown(keywords: Mapping[str, Any], info: TargetInfo) -> None:
    """Raises UsageError for a launch keyword that the target does not know, and for a value that it cannot have."""
    with told_to_the_user():
        options.resolve(keywords, info)


@contextmanager
def told_to_the_user() -> Iterator[None]:
    """What a launch would refuse inside this block is a mistake of the command line."""
    try:
        yield
    except LaunchError as error:
        raise UsageError(error.message, code=error.code, note=error.note, help=error.help) from None
