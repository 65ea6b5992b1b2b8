"""What a run of the suite knows of a target's plugin: the failures that it expects, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable

from tilefw.api.errors import KernelError
from tilefw.runtime.loader import Target
from tilefw_conformance.case import Case
from tilefw_conformance.expectations import Expectation, of_plugin, unmatched


def expectations_of(target: Target) -> tuple[Expectation, ...]:
    """From the `tilefw_conformance` hook of the target's plugin; raises CodeError with the line of a fault."""
    plugin = target.plugin
    if plugin is None or plugin.manager is None or "tilefw_conformance" not in plugin.hooks:
        return ()
    return of_plugin(plugin.manager.hook.tilefw_conformance())


def faults(expectations: Iterable[Expectation], cases: Iterable[Case], target: Target) -> tuple[KernelError, ...]:
    """Expectations that are past their edition or name no case of the whole suite."""
    return unmatched(expectations, (case.id for case in cases), target.name)
