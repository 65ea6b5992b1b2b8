"""A plugin whose targets each have one bug: the reference interpreter behind a pass that plants it.

Target `planted-NAME` has the bug NAME of `tilefw_planted.table`, `planted-nothing` has none. All claim everything, and are judged
like any target.
"""

from __future__ import annotations

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets():
    from tilefw_planted.table import BUGS

    mistakes = {"nothing": "no bug; its artifacts say which bugs have sites in them", **{b.name: b.mistake for b in BUGS.values()}}
    return [_target(name, mistake) for name, mistake in mistakes.items()]


def _target(name, mistake):
    provides = frozenset({"lower", "emit", "simulate"})
    backend = "tilefw_planted.backend:Planted"
    return TargetInfo(f"planted-{name}", "planted", name, mistake, backend, provides, frozenset({"*"}))
