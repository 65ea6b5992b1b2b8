"""The configuration of a library kernel that `tilefw tune` has kept for a problem."""

from __future__ import annotations

from typing import Any

from tilefw.kernels.spec import KernelSpec, Parameters
from tilefw.kernels.tuning import space
from tilefw.runtime.tuned_choices import kept, problem_key, source_of


def choice_key(spec: KernelSpec, parameters: Parameters, target: str) -> str:
    """The key of a problem: the kernel's source, and all parameters that a search does not choose."""
    chosen, source = space(spec.info), source_of(spec.kernel)
    return problem_key(f"{spec.name} {source}", target, {name: value for name, value in parameters.items() if name not in chosen})


def tuned(spec: KernelSpec, given: Parameters, target: str) -> dict[str, Any] | None:
    """`given` with the kept choice for what it does not say; None where none is kept."""
    choice = kept(choice_key(spec, spec.resolve(given), target))
    if choice is None:
        return None
    known = {parameter.name for parameter in spec.info.parameters}
    return {**{name: str(value) for name, value in choice.items() if name in known}, **given}
