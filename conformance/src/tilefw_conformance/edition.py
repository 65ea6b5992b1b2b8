"""Editions of the suite, as `0.1`: each holds the cases that came with it or before, so that an old report can be made again."""

from __future__ import annotations

import re
from functools import cache

from tilefw.api.errors import UsageError
from tilefw_conformance import EDITION


def checked(text: str) -> str:
    """`text`, an edition that this suite still holds; raises UsageError TFW0972 for anything else."""
    if not re.fullmatch(r"\d+\.\d+", text) or numbers(text) > numbers(EDITION):
        raise UsageError(f"there is no edition {text!r} of the suite", code="TFW0972", help=f"it holds those up to {EDITION}")
    return text


@cache
def numbers(edition: str) -> tuple[int, ...]:
    """By which editions are ordered."""
    return tuple(int(part) for part in edition.split("."))
