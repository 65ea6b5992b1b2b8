"""What a run of the suite knows of a target's plugin: the failures that it expects, and the cases that it brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilefw.api.errors import CodeError
from tilefw.runtime.plugins.loader import Target
from tilefw_conformance.case import Case
from tilefw_conformance.case_files import in_folder
from tilefw_conformance.expectations import Expectation, located, of_plugin, source_of


def expectations_of(target: Target) -> tuple[Expectation, ...]:
    """From the `tilefw_conformance` hook of the target's plugin; raises CodeError with the line of a fault."""
    return of_plugin(_said(target))


def cases_of(target: Target) -> tuple[Case, ...]:
    """The cases in the folders (`"package:folder"`) that the hook names; raises CodeError with the line of a fault."""
    found: list[Case] = []
    for facts in _said(target):
        for location in facts.get("cases", ()):
            package, name = located(location)
            try:
                found += in_folder(package, name)
            except (OSError, ImportError, UnicodeDecodeError) as error:
                raise CodeError(f"the cases {location} cannot be read: {error}", code="TFW0953") from None
    for case in found:
        _refuse_foreign(case, target)
    return tuple(found)


def _refuse_foreign(case: Case, target: Target) -> None:
    """No case of a plugin may ever have the id of one that the suite gets later."""
    assert target.plugin is not None
    own = target.plugin.name.replace("-", "_")
    if case.group != own and not case.group.startswith(f"{own}_"):
        message = f"plugin '{target.plugin.name}' brings cases of the group {case.group!r}"
        raise CodeError(message, code="TFW0961", help=f"call the group {own}_{case.group}")


def writable(target: Target) -> str | None:
    """The file in which the plugin keeps its expectations, where that is a source of its author's: no installed copy."""
    return next((path for facts in _said(target) if (path := source_of(facts)) is not None), None)


def _said(target: Target) -> Iterator[Mapping[str, Any]]:
    plugin = target.plugin
    if plugin is not None and plugin.manager is not None and "tilefw_conformance" in plugin.hooks:
        yield from plugin.manager.hook.tilefw_conformance()
