"""The configuration of a library kernel that `tilefw tune` has kept for a problem."""

from __future__ import annotations

from typing import Any

from tilefw.kernels.spec import KernelSpec, Parameters
from tilefw.kernels.tuning import space
from tilefw.runtime.tuned_choices import kept, problem_key


def choice_key(spec: KernelSpec, parameters: Parameters, target: str) -> str:
    """The key of a problem: all parameters that a search does not choose."""
    chosen = space(spec.info)
    return problem_key(spec.name, target, {name: value for name, value in parameters.items() if name not in chosen})


def tuned(spec: KernelSpec, given: Parameters, target: str) -> dict[str, Any]:
    """`given` with the kept choice for what it does not say; as it is where none is kept."""
    choice = kept(choice_key(spec, spec.resolve(given), target)) or {}
    known = {parameter.name for parameter in spec.info.parameters}
    return {**{name: str(value) for name, value in choice.items() if name in known}, **given}
