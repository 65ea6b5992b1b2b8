"""Checks that plugins have registered: `PLUGIN:NAME` to the classes that make them."""

from __future__ import annotations

from collections.abc import Iterable

from tilefw.api.checks import CheckInfo
from tilefw.api.errors import PluginError, UsageError
from tilefw.runtime.names import suggest
from tilefw.runtime.plugins.loader import registry


def observers(checks: Iterable[str]) -> tuple[str, ...]:
    """The classes of those of `checks` that plugins have, as `"module:attribute"`, in the order of the checks' names.

    Raises UsageError for a name that no plugin has, PluginError where what a plugin registers is not a `CheckInfo`.
    """
    return tuple(name for check in sorted(checks) if ":" in check for name in _registered(check).observers)


def _registered(check: str) -> CheckInfo:
    brought_by, _, short = check.partition(":")
    plugin = registry().plugin(brought_by)
    answers = plugin.manager.hook.tilefw_checks() if plugin.manager is not None and "tilefw_checks" in plugin.hooks else ()
    known = {key: info for answer in answers for key, info in dict(answer).items()}
    if short not in known:
        helped = suggest(short, known, what="its checks")
        raise UsageError(f"plugin '{brought_by}' has no check called {short!r}", code="TFW0901", help=helped)
    if not isinstance(known[short], CheckInfo):
        raise PluginError(f"check {check!r}: {known[short]!r} is not a tilefw.api.CheckInfo", code="TFW0514")
    return known[short]
