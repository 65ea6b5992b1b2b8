"""The hooks that a plugin may implement, with pluggy. Each returns plain data; none does work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pluggy

from tilefw.api.checks import CheckInfo
from tilefw.api.target import TargetInfo

hookspec = pluggy.HookspecMarker("tilefw")
hookimpl = pluggy.HookimplMarker("tilefw")
"""Marks a function of a hook module as the implementation of the hook of its name."""


@hookspec
def tilefw_targets() -> Sequence[TargetInfo]:  # type: ignore[empty-body]
    """The targets of this plugin."""


@hookspec
def tilefw_passes() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Passes for `tilefw opt`: name to `"module:Class"`."""


@hookspec
def tilefw_dialects() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Dialects for parsing: name to `"module:attribute"`."""


@hookspec
def tilefw_register_kernels() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Library kernels: name to `"module:attribute"` of a KernelSpec."""


@hookspec
def tilefw_checks() -> Mapping[str, CheckInfo]:  # type: ignore[empty-body]
    """Checks by name, for every simulator that is made with the kit: `{"shared_stores": CheckInfo(...)}`. `--checks PLUGIN:NAME`
    asks for one."""


@hookspec
def tilefw_conformance() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """What the suite must know: `{"expectations": "package:file.yaml", "cases": ["package:folder"]}`."""


@hookspec
def tilefw_before_pass(target: str, pass_name: str, index: int, module: Any) -> None:
    """Observe a module before a pass."""


@hookspec
def tilefw_after_pass(target: str, pass_name: str, index: int, module: Any, seconds: float) -> None:
    """Observe a module after a pass."""
