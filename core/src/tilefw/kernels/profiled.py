"""A library kernel profiled: compiled and bound as its own launch, which is recorded and not judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilefw.kernels.launchable import launchable
from tilefw.kernels.spec import KernelSpec, Parameters
from tilefw.runtime import config
from tilefw.runtime.plugins.loader import find_target
from tilefw.runtime.recording import BESIDE, Recording, profile_of, record
from tilefw.timing.launch_profile import LaunchProfile


def profiled(
    spec: KernelSpec, parameters: Parameters, target: str | None = None, *, keywords: Mapping[str, Any] | None = None,
    workgroups: int = BESIDE, warm: bool = False, **execution: Any,
) -> LaunchProfile:
    """The profile of `spec` with `parameters` on `target`; `warm`: as it is launched again and again on the same arrays. Raises as
    `recorded`."""
    return profile_of(recorded(spec, parameters, target, keywords=keywords, workgroups=workgroups, **execution), warm)


def recorded(
    spec: KernelSpec, parameters: Parameters, target: str | None = None, *, keywords: Mapping[str, Any] | None = None,
    workgroups: int = BESIDE, **execution: Any,
) -> Recording:
    """Compile `spec` with `parameters` for `target`; run the workgroups of one processor, and the beginnings of at most so many.

    Raises UnsupportedError TFW0666 for a target without a model of time, before anything is compiled; CheckError where the kernel
    does something wrong: a profile of that would mean nothing."""
    resolved = config.resolve(config.settings(target, **execution))
    chosen = find_target(resolved.target)
    chosen.backend.timing()
    return record(launchable(spec, parameters, chosen, resolved, keywords, assemble=True), workgroups)
