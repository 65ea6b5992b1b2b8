"""A launch of a function of a Python file as a command line states it: types, constants, grid, scalars, sizes of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, literals

if TYPE_CHECKING:
    import argparse

STATED = ("signature", "constexpr", "grid", "scalar", "extent")
"""Options of a command line that state such a launch, besides `--option`."""


@dataclass(frozen=True, slots=True)
class FunctionLaunch:
    """`extents` are the bytes behind each pointer of the `signature`; `keywords` those of the launch that shape code."""

    path: str
    name: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    grid: str | None
    scalars: Mapping[str, Any]
    extents: Mapping[str, Any]
    keywords: Mapping[str, Any]

    def varied(self, against: Mapping[str, Any]) -> FunctionLaunch:
        """The same launch with other compile-time values, and other launch keywords where a name is none of those."""
        constants = {name: value for name, value in against.items() if name in self.constexprs}
        others = {name: value for name, value in against.items() if name not in self.constexprs}
        return replace(self, constexprs={**self.constexprs, **constants}, keywords={**self.keywords, **others})


def add_stated(parse: Parser) -> None:
    """The options of STATED."""
    add_assignments(parse, "--signature", "types of a function's run-time parameters, such as x_ptr=*fp32 or n=i32:16")
    add_assignments(parse, "--constexpr", "values of its compile-time parameters")
    parse.add_argument("--grid", metavar="X[,Y[,Z]]", help="the grid of a function's launch")
    add_assignments(parse, "--scalar", "its scalar arguments")
    add_assignments(parse, "--extent", "bytes behind each of its pointers, which are zeros")


def named_function(kernel: str) -> tuple[str, str] | None:
    """File and function of `FILE.py:FUNCTION`, None for what names no Python file; raises UsageError TFW0916 for a file alone."""
    path, _, function = kernel.rpartition(":")
    if function and path.endswith(".py"):
        return path, function
    file = kernel.removesuffix(":")
    if file.endswith(".py"):
        raise UsageError(f"which function of {file}?", code="TFW0916", help=f"write {file}:FUNCTION")
    return None


def function_launch(args: argparse.Namespace, path: str, name: str) -> FunctionLaunch:
    """The launch of a function that a command line states."""
    return FunctionLaunch(
        path, name, dict(args.signature), literals(args.constexpr), args.grid, literals(args.scalar), literals(args.extent),
        literals(args.option),
    )
