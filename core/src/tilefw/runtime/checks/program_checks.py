"""The checks of programs (`tilefw.api.checks.PROGRAM_CHECKS`): made by the reference interpreter before a launch, on any target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilefw.api.checks import PROGRAM_CHECKS
from tilefw.api.device import Finding
from tilefw.runtime.checks.interpreted_launch import InterpretedLaunch
from tilefw.runtime.diagnostics import check_error

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp

UNINITIALISED = "uninitialised_host"
_OF_REFERENCE = {UNINITIALISED: "initialisation", "offsets": "bounds"}  # what the interpreter calls them


def check_program(
    build: Callable[[], ModuleOp], grid: tuple[int, int, int], values: Mapping[str, Any], asked: frozenset[str], *, fusion: bool,
    budget: int,
) -> tuple[Finding, ...]:
    """Make those of the checks `asked` that are of programs; the warnings that they found.

    `build` gives the kernel's tile IR, `values` the run-time arguments by name; arrays are copied and not written. Raises
    CheckError where a check found a fault.
    """
    checks = asked & PROGRAM_CHECKS
    if not checks or not all(grid):
        return ()
    launch = InterpretedLaunch(values, unwritten=UNINITIALISED in checks)
    wanted = frozenset(_OF_REFERENCE.get(name, name) for name in checks)
    found = launch.run(build(), grid, fusion=fusion, budget=budget, checks=wanted).findings
    if any(finding.severity == "error" for finding in found):
        raise check_error(found)
    return found
