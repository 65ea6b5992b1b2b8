"""The text of a plugin whose one target is the reference by another name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

HOOKS = """
TILEFW_API = (0, 1)
from tilefw.api import hookimpl, TargetInfo

@hookimpl
def tilefw_targets():
    return [TargetInfo(
        name="NAME", vendor="v", chip="x", summary="the reference by another name", capabilities=frozenset({"*"}),
        backend="tilefw.tile.reference.backend:ReferenceBackend", provides=frozenset({"lower", "emit", "simulate"}),
    )]

"""


@pytest.fixture
def renamed_reference() -> Callable[[str], str]:
    """The module of such a plugin, by its target's name; further hooks may follow."""
    return lambda target: HOOKS.replace("NAME", target)
