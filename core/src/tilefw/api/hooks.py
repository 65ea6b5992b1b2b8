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
    """The targets of this plugin, each with a name that no other plugin's target has."""


@hookspec
def tilefw_passes() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Passes for `tilefw opt`: the name of each to `"module:Class"`, a subclass of xDSL's `ModulePass`, which is imported when a
    pipeline names it."""


@hookspec
def tilefw_dialects() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Dialects for parsing: the name of each to `"module:attribute"`, an xDSL `Dialect`."""


@hookspec
def tilefw_register_kernels() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Library kernels: the name of each to `"module:attribute"`, a `tilefw.api.kernels.KernelSpec`. `tilefw run NAME` and the
    conformance suite then find them."""


@hookspec
def tilefw_checks() -> Mapping[str, CheckInfo]:  # type: ignore[empty-body]
    """Checks by name, for every simulator that is made with the kit: `{"shared_stores": CheckInfo(...)}`. `--checks PLUGIN:NAME`
    asks for one."""


@hookspec
def tilefw_conformance() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """What the conformance suite reads of this plugin: `{"expectations": "package:file.yaml", "cases": ["package:folder"]}`."""


@hookspec
def tilefw_systems() -> str:  # type: ignore[empty-body]
    """The package whose YAML files are systems of this plugin's devices, for the model of links. `tilefw links` then finds them as
    `PLUGIN:NAME`."""


@hookspec
def tilefw_before_pass(target: str, pass_name: str, index: int, module: Any) -> None:
    """Called before each pass of a compilation for `target`.

    `index` is the number of the pass in its pipeline, from 0; `module` is xDSL's `ModuleOp`, which must not be changed. A hook that
    raises is reported as a warning and is not called again.
    """


@hookspec
def tilefw_after_pass(target: str, pass_name: str, index: int, module: Any, seconds: float) -> None:
    """Called after each pass, as `tilefw_before_pass`; the pass took `seconds`.

    `module` is lent for the call: the next pass changes it. A hook prints it, or copies it as text, before it returns.
    """
