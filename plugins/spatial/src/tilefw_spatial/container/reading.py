"""Bytes and JSON of unknown origin, read with care: the error names whatever is missing, too long or of another type."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

INT64 = 1 << 63


class Damaged(ValueError):
    """A file that is no program: the text says where and why; `code`, where the error has one of its own."""

    def __init__(self, message: str, code: str = "", note: str | None = None, help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.note = note
        self.help = help


class ContainerReader:
    """Bytes from the first to the last; `what` names them in messages."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def take(self, count: int, part: str) -> bytes:
        """The next `count` bytes, which are `part`."""
        left = len(self._data) - self._at
        if count > left:
            raise Damaged(f"{self._what} is cut: {part} has {count} bytes, {left} are left")
        self._at += count
        return self._data[self._at - count : self._at]

    def unpack(self, form: struct.Struct, part: str) -> tuple[Any, ...]:
        """The next numbers, which are `part`."""
        return form.unpack(self.take(form.size, part))

    @property
    def done(self) -> bool:
        return self._at == len(self._data)

    def end(self) -> None:
        """That nothing follows."""
        if not self.done:
            raise Damaged(f"{self._what} goes on for {len(self._data) - self._at} bytes behind its last part")


@dataclass(frozen=True, slots=True)
class ContainerNode:
    """A value of a JSON document, with its path in it."""

    value: Any
    path: str

    def __getitem__(self, key: str | int) -> ContainerNode:
        if isinstance(key, str):
            if not isinstance(self.value, dict) or key not in self.value:
                raise Damaged(f"{self.path} has no {key}")
            return ContainerNode(self.value[key], f"{self.path}.{key}")
        return ContainerNode(self.value[key], f"{self.path}[{key}]")

    def keys(self, *names: str) -> ContainerNode:
        """This object, which has no others."""
        if not isinstance(self.value, dict) or not set(self.value) <= set(names):
            raise Damaged(f"{self.path} is no object of {', '.join(names)}")
        return self

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def list(self, count: int | None = None) -> list[ContainerNode]:
        """The elements of a list, `count` of them where it is given."""
        if not isinstance(self.value, list) or count not in (None, len(self.value)):
            raise Damaged(f"{self.path} is no list" + (f" of {count}" if count is not None else ""))
        return [ContainerNode(value, f"{self.path}[{i}]") for i, value in enumerate(self.value)]

    def int(self, low: int = -INT64, high: int = INT64 - 1) -> int:
        """A whole number of a range."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise Damaged(f"{self.path} is no whole number from {low} to {high}")
        return self.value

    def str(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise Damaged(f"{self.path} is no text")
        return self.value

    def object(self) -> dict[str, Any]:
        """Any object."""
        if not isinstance(self.value, dict):
            raise Damaged(f"{self.path} is no object")
        return self.value


def document(data: bytes, what: str) -> ContainerNode:
    """A JSON document."""
    try:
        return ContainerNode(json.loads(data.decode("utf-8"), parse_constant=_no_constant), what)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{what} is no JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
