"""Work that somebody else may end: what takes long asks between its steps whether it is still wanted.

    with ended_by(event):
        ...                     # somewhere below: check_wanted(), which raises Cancelled once the event is set
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ENDED: ContextVar[threading.Event | None] = ContextVar("tilefw_ended", default=None)


class Cancelled(BaseException):
    """Nobody waits for the result any more. No `Exception`: it is no fault of what it passes through."""


@contextmanager
def ended_by(event: threading.Event) -> Iterator[None]:
    """What runs in the block ends soon after the event is set."""
    token = _ENDED.set(event)
    try:
        yield
    finally:
        _ENDED.reset(token)


def check_wanted() -> None:
    """Raises Cancelled where whoever wanted this has gone."""
    event = _ENDED.get()
    if event is not None and event.is_set():
        raise Cancelled
