"""The meanings that one file of this folder gives: builtin names to functions that build IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Meaning = Callable[..., Any]


class Meanings:
    """Called with a builtin's name, it is the decorator of the function that means it; `of` has the functions by name."""

    def __init__(self) -> None:
        self.of: dict[str, Meaning] = {}

    def __call__(self, name: str) -> Callable[[Meaning], Meaning]:
        def register(function: Meaning) -> Meaning:
            self.of[name] = function
            return function

        return register
