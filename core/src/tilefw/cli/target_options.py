"""A target's own launch keywords as options of the command line: `--lanes 4` is `--option lanes=4` where a target knows `lanes`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tilefw.api.errors import UsageError


def spelled_out(argv: Sequence[str], known: Collection[str]) -> list[str]:
    """The words with options that targets declare, and the parser (`known`) lacks, as `--option name=value`.

    Whether the chosen target is one of those is seen later, as for every `--option`. Raises UsageError TFW0911 for an option
    without a value."""
    from tilefw.runtime.loader import registry

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
