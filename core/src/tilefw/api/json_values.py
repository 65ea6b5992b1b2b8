"""Values of parsed JSON, each checked for its type: what is missing raises KeyError, what is of another type ValueError."""

from __future__ import annotations

from typing import Any


def checked(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """The value, if it is of the kind; a boolean is not a number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise ValueError(f"{what} has the wrong type ({type(value).__name__})")
    return value


def optional(value: Any, kind: type, what: str) -> Any:
    """The same, but None is let through."""
    return None if value is None else checked(value, kind, what)


def string(raw: dict[str, Any], name: str) -> str:
    """The member `name`, a string."""
    return checked(raw[name], str, name)


def array(raw: dict[str, Any], name: str) -> list[Any]:
    """The member `name`, an array."""
    return checked(raw[name], list, name)


def counts(raw: Any, what: str) -> dict[str, int] | None:
    """An object of numbers, or None."""
    found = optional(raw, dict, what)
    return None if found is None else {checked(k, str, what): checked(v, int, what) for k, v in found.items()}
