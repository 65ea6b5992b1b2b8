"""Packs: bodies of cases that come from elsewhere, each a module with `cases()` and `spec(name)`, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from tilefw.api.errors import UsageError
from tilefw.runtime.names import suggest

if TYPE_CHECKING:
    from tilefw.kernels.spec import KernelSpec
    from tilefw_conformance.case import Case

# By name, the module; its kernels are called `NAME:…`.
PACKS: Mapping[str, str] = {"onnx": "tilefw_conformance.packs.onnx"}


class Pack(Protocol):
    """What the module of a pack has."""

    def cases(self) -> tuple[Case, ...]:
        """Its cases; their kernels are called `NAME:…`. Raises UsageError where what they come from is not installed."""
        ...

    def spec(self, name: str) -> KernelSpec:
        """The kernel of one of its cases, by the word behind `NAME:`; it describes itself (`own`)."""
        ...


def pack(name: str) -> Pack:
    """The pack called `name`; raises UsageError TFW0960 with the nearest name."""
    if name not in PACKS:
        raise UsageError(f"there is no pack {name!r}", code="TFW0960", help=suggest(name, PACKS, what="packs"))
    return cast(Pack, import_module(PACKS[name]))
