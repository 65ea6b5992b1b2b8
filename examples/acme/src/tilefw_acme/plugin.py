"""The hooks of the ACME plugin: what there is, without doing any of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    from tilefw_acme.target import X1, X2

    return (X1, X2)


@hookimpl
def tilefw_conformance() -> Mapping[str, Any]:
    return {"expectations": "tilefw_acme:conformance.yaml"}
