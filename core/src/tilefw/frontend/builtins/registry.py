"""The table of meanings and the decorator that fills it while the files of this folder are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MEANINGS: dict[str, Callable[..., Any]] = {}


def meaning(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the meaning of the builtin `name`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        MEANINGS[name] = function
        return function

    return register
