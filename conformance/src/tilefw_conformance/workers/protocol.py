"""All that the suite and a worker say to each other: a line of JSON each, over two pipes that nobody else writes to.

    suite  → worker   open     which target, and how to run: once, first
    worker → suite    ready    what the target is, which failures its plugin expects, which cases it brings
                      refused  or why it cannot be used; the worker ends
    suite  → worker   run      a case; one at a time
    worker → suite    began    a stage of it begins
                      done     its result, as in the report

The suite closes its pipe, or dies: the worker ends at once. A worker that ends, is silent for too long, holds too much memory or
says anything else than the above loses the case that it runs, and nothing but that: the suite knows which one it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tilefw.api import errors
from tilefw.api.errors import KernelError, Place
from tilefw_conformance.case import Case
from tilefw_conformance.expectations import Expectation

LINE_LIMIT = 16 << 20  # bytes of one message


class ProtocolError(Exception):
    """A line that is not a message."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """`stage` is the last one to run; `execution` holds executor, checks, budget, numerics and seed where the user said them,
    `keywords` launch keywords beside those of a case.

    `artifacts` keeps every artifact's text; `audit` runs cases of capabilities that the target does not claim.
    """

    target: str
    stage: str = "compare"
    execution: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    artifacts: bool = False
    audit: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """`target` is its entry in a report's header; `stage` the last one that the target can run; `file` where its plugin keeps its
    expectations, if they can be written there."""

    target: dict[str, Any]
    stage: str
    expectations: tuple[Expectation, ...]
    file: str | None
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """`error` is what a launch on the target raises."""

    error: KernelError


@dataclass(frozen=True, slots=True)
class Run:
    case: Case


@dataclass(frozen=True, slots=True)
class Began:
    """The case has come to `stage`: should the worker be lost, that is where."""

    case: str
    stage: str


@dataclass(frozen=True, slots=True)
class Done:
    """`record` is the case's result, before any expectation."""

    case: str
    record: dict[str, Any]


Message = OpenSession | Ready | Refused | Run | Began | Done

_SAY: Mapping[str, type[Message]] = {
    "open": OpenSession, "ready": Ready, "refused": Refused, "run": Run, "began": Began, "done": Done
}
_WORDS = {kind: word for word, kind in _SAY.items()}
# The dataclasses of our own inside messages: each becomes an object with its fields.
_PARTS: Mapping[str, type[Any]] = {"case": Case, "expectation": Expectation, "place": Place}
_PART_NAMES = {kind: name for name, kind in _PARTS.items()}


def encode(message: Message) -> bytes:
    """One line."""
    return json.dumps({"say": _WORDS[type(message)], **_fields(message)}, default=_plain, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message of a line; raises ProtocolError for any other bytes."""
    try:
        raw = json.loads(line, object_hook=_whole)
        return _SAY[raw.pop("say")](**raw)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProtocolError(f"{line[:80]!r} is not a message: {error}") from None


def _fields(one: Any) -> dict[str, Any]:
    return {f.name: getattr(one, f.name) for f in fields(one)}


def _plain(value: Any) -> Any:
    """What JSON does not know."""
    if isinstance(value, frozenset):
        return {"@": "set", "of": sorted(value)}
    if isinstance(value, KernelError):
        said = {"message": value.message, "code": value.code, "place": value.place, "note": value.note, "help": value.help}
        return {"@": "error", "kind": type(value).__name__, "exit_code": value.exit_code, "said": said}
    if (name := _PART_NAMES.get(type(value))) is not None:
        return {"@": name, **_fields(value)}
    if hasattr(value, "item"):  # a NumPy scalar
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a part of a message")


def _whole(raw: dict[str, Any]) -> Any:
    """The reverse of `_plain`."""
    kind = raw.pop("@", None)
    if kind is None:
        return raw
    if kind == "set":
        return frozenset(raw["of"])
    if kind == "error":
        error: KernelError = getattr(errors, raw["kind"], KernelError)(**raw["said"])
        error.exit_code = raw["exit_code"]
        return error
    return _PARTS[kind](**{name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()})
