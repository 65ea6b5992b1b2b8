"""A launch under the debugger: its programs one after the other, in the order of the grid, over copies of its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api.device import Finding
from tilefw.api.errors import LaunchError
from tilefw.debug.hooks import run_function
from tilefw.debug.program import EagerProgram
from tilefw.debug.stepped import SteppedLaunch
from tilefw.frontend.activation import Activation
from tilefw.frontend.module import as_kernels_see
from tilefw.frontend.parameters import bound_parameters, is_runtime
from tilefw.frontend.values import RuntimeValue, lowered, transform
from tilefw.language.markers import STANDING_KERNEL
from tilefw.runtime import jit
from tilefw.runtime.arguments.binding import grid_of
from tilefw.runtime.checks.interpreted_launch import InterpretedLaunch


@dataclass(frozen=True, slots=True)
class EagerLaunch:
    """What an eager launch did: the programs that ran, and the warnings of the reference's checks."""

    kernel: str
    grid: tuple[int, int, int]
    programs: int
    diagnostics: tuple[Finding, ...] = ()


def launched(
    kernel: Any, given: Sequence[Any], grid: Any, keywords: Mapping[str, Any], chosen: tuple[int, ...] | None
) -> EagerLaunch:
    """Run a jit function's programs, or the `chosen` one alone, and write the arrays in place when all have ended.

    Raises CompileError and LaunchError as a launch does, CheckError at the line whose access a check refuses; then no array is
    written.
    """
    bound = dict(zip(kernel.arg_names, given, strict=True))
    extents = grid_of(grid(bound) if callable(grid) else grid)
    signature, constexprs, values = jit.specialize(kernel, bound)
    copies = InterpretedLaunch({name: value for name, value in values.items() if not signature[name].endswith(":1")})
    structures, pieces = bound_parameters(kernel, signature, constexprs)
    facts = {name: fact for name, fact in pieces.items() if is_runtime(fact)}
    launch = SteppedLaunch(
        [lowered(fact.type) for fact in facts.values()], extents, copies.arguments, memory=copies.memory,
        fusion=bool(keywords.get("enable_fp_fusion", True)),
    )
    numbers = range(launch.programs) if chosen is None else [_number(chosen, extents)]
    for number in numbers:
        program = EagerProgram(launch, number)
        known = {name: RuntimeValue(ssa, fact.type) for ssa, (name, fact) in zip(launch.arguments, facts.items(), strict=True)}
        token = STANDING_KERNEL.set(program.called)
        try:
            _run(kernel, program, structures, {**pieces, **known})
        finally:
            STANDING_KERNEL.reset(token)
        launch.end()
    copies.copy_back()
    return EagerLaunch(kernel.__name__, extents, len(numbers), launch.findings)


def _run(kernel: Any, program: EagerProgram, structures: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    frame = Activation(kernel, program.builder)
    frame.at(frame.source.tree)
    given = {
        name: program.presented(as_kernels_see(frame, transform(structure, values.__getitem__)))
        for name, structure in structures.items()
    }
    run_function(frame, program, given)


def _number(place: tuple[int, ...], extents: tuple[int, int, int]) -> int:
    """Which program stands at a place of the grid. Raises LaunchError TFW0356."""
    x, y, z = (*place, 0, 0, 0)[:3]
    if len(place) > 3 or not (0 <= x < extents[0] and 0 <= y < extents[1] and 0 <= z < extents[2]):
        raise LaunchError(f"there is no program {place} in a grid of {extents}", "TFW0356")
    return x + extents[0] * (y + extents[1] * z)
