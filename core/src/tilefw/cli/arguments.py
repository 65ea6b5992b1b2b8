"""argparse with our manners: errors are UsageError with the nearest name, and options that several verbs share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from tilefw.api.errors import UsageError
from tilefw.runtime.names import suggest

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


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
            from tilefw.cli.target_options import spelled_out

            known = {option for action in self._actions for option in action.option_strings}
            args, rest = self.parse_known_args(_repeated(spelled_out(argv, known), flags))
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
    parser.add_argument("--executor", choices=("sim", "hw", "auto"), help="simulator (default), chip, or chip if there is one")
    parser.add_argument("--checks", metavar="C", help="default, all, none, or names of checks with commas between")
    parser.add_argument("--budget", type=whole, metavar="N", help="executed instructions at most, summed over threads")
    parser.add_argument("--numerics", choices=("ieee", "hw"), help="matrix arithmetic as IEEE has it, or as the chip does it")
    parser.add_argument("--seed", type=whole, metavar="N", help="inputs, and the adversarial order of execution when above 0")


def execution(args: argparse.Namespace) -> dict[str, Any]:
    """The keywords of `runtime.config.settings` that were given."""
    names = ("executor", "checks", "budget", "numerics", "seed")
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def whole(text: str) -> int:
    """A whole number, decimal or 0x, with or without `_`."""
    return int(text, 0)


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
