"""Command lines: argparse whose errors are UsageError with the nearest name, options that several verbs share, and options that
targets declare: `--lanes 4` is `--option lanes=4` where a target knows the launch keyword `lanes`."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from tilefw.api.errors import LaunchError, UsageError
from tilefw.api.target import TargetInfo
from tilefw.runtime.names import suggest

ASSIGNMENT = re.compile(r"([^=-][^=]*)=(.*)", re.DOTALL)  # models call their sizes what they like, such as `input:0.0`


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError instead of printing and ending the program."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **keywords)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, code="TFW0911", help=f"see `{self.prog} --help`")

    def parse_all(self, argv: list[str]) -> argparse.Namespace:
        """Every argument, or UsageError TFW0911 that names the nearest option. Where there is `--option`, launch keywords that
        targets declare are options too."""
        flags = {flag for action in self._actions if action.type is assignment for flag in action.option_strings}
        args, rest = self.parse_known_args(_repeated(argv, flags))
        if "--option" in flags and any(word.startswith("--") for word in rest):
            known = {option for action in self._actions for option in action.option_strings}
            args, rest = self.parse_known_args(_repeated(_spelled_out(argv, known), flags))
        if rest:
            options = [o for action in self._actions for o in action.option_strings]
            near = suggest(rest[0].partition("=")[0], options, what="options") if rest[0].startswith("-") else None
            raise UsageError(f"{self.prog} does not take '{rest[0]}'", code="TFW0911", help=near or f"see `{self.prog} --help`")
        return args


def parser(verb: str, summary: str, epilog: str | None = None) -> Parser:
    return Parser(prog=f"tilefw {verb}", description=summary, epilog=epilog)


def add_assignments(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """An option that takes one or more `name=value`, and may be given again; `parse_all` reads it."""
    parser.add_argument(name, type=assignment, action="append", default=[], metavar="K=V …", help=text)


def _repeated(argv: list[str], flags: set[str]) -> list[str]:
    """`--param a=1 b=2` as `--param a=1 --param b=2`. Only words like `b=2` go to the option: what follows is left as it is."""
    words: list[str] = []
    flag = None
    for at, word in enumerate(argv):
        if word == "--":
            return words + argv[at:]
        follows = bool(words) and words[-1] == flag
        if flag is not None and not follows and ASSIGNMENT.fullmatch(word):
            words.append(flag)
        elif not follows:
            flag = name if (name := word.partition("=")[0]) in flags else None
        words.append(word)
    return words


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def add_execution(parser: argparse.ArgumentParser) -> None:
    """The options that choose how to execute; `execution` reads them."""
    parser.add_argument(
        "--executor", choices=("sim", "hw", "auto"), help="simulator (default where there is one), chip, or chip if there is one"
    )
    parser.add_argument("--checks", metavar="C", help="default, all, none, or names of checks with commas between")
    parser.add_argument("--budget", type=whole, metavar="N", help="executed instructions at most, summed over threads")
    parser.add_argument("--numerics", choices=("ieee", "hw"), help="matrix arithmetic as IEEE has it, or as the chip does it")
    parser.add_argument("--seed", type=whole, metavar="N", help="inputs, and the adversarial order of execution when above 0")


def execution(args: argparse.Namespace) -> dict[str, Any]:
    """The keywords of `runtime.config.settings` that were given."""
    names = ("executor", "checks", "budget", "numerics", "seed")
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def refuse(args: argparse.Namespace, names: Iterable[str], what: str) -> None:
    """Raise UsageError TFW0917 where one of these options is given beside `what`, which has no use for it."""
    for name in names:
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} does not go with {what}", code="TFW0917")


def is_file(word: str) -> bool:
    """Whether a word names a file rather than a kernel of the library."""
    return os.sep in word or bool(os.path.splitext(word)[1])


def whole(text: str) -> int:
    """A whole number, decimal or 0x, with or without `_`."""
    return int(text, 0)


def positive(text: str) -> int:
    """A whole number from 1."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def assignment(text: str) -> tuple[str, str]:
    """`name=value`."""
    found = ASSIGNMENT.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not name=value")
    return found[1], found[2]


def literals(given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The values of assignments, by name."""
    return {name: literal(text) for name, text in given}


def literal(text: str) -> Any:
    """A Python literal where the text is one (`3`, `1.5`, `True`, `(1, 2)`), else the word itself."""
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _spelled_out(argv: Sequence[str], known: Collection[str]) -> list[str]:
    """The words with options that targets declare, and the parser (`known`) lacks, as `--option name=value`.

    Whether the chosen target is one of those is seen later, as for every `--option`. Raises UsageError TFW0911 for an option
    without a value."""
    from tilefw.runtime.plugins.loader import registry

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


def keywords(args: argparse.Namespace) -> dict[str, Any]:
    """The launch keywords of `--option`. Raises UsageError for what the target of `--target` does not take."""
    from tilefw.runtime import config
    from tilefw.runtime.plugins.loader import find_target

    given = literals(args.option)
    if given:
        refuse_unknown(given, find_target(config.resolve(config.settings(args.target)).target).info)
    return given


def refuse_unknown(keywords: Mapping[str, Any], info: TargetInfo) -> None:
    """Raises UsageError for a launch keyword that the target does not know, and for a value that it cannot have."""
    from tilefw.runtime.compilation import options

    with told_to_the_user():
        options.resolve(keywords, info)


@contextmanager
def told_to_the_user() -> Iterator[None]:
    """What a launch would refuse inside this block is a mistake of the command line."""
    try:
        yield
    except LaunchError as error:
        raise UsageError(error.message, code=error.code, note=error.note, help=error.help) from None
