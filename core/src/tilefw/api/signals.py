"""Exceptions that a Python signal handler raised while other code ran: they belong to the program that set the handler."""

from __future__ import annotations

from types import FrameType


def from_signal_handler(error: BaseException) -> bool:
    """Whether the exception passed through a Python signal handler: it is the only function that gets its own caller's frame."""
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_back is not None and _has_argument(frame, frame.f_back):
            return True
        traceback = traceback.tb_next
    return False


def _has_argument(frame: FrameType, value: FrameType) -> bool:
    code = frame.f_code
    named = code.co_argcount + code.co_kwonlyargcount
    words = code.co_varnames[: named + bool(code.co_flags & 0x04)]  # CO_VARARGS: the name of `*args` follows the arguments'
    found = [frame.f_locals.get(word) for word in words]
    return any(one is value or (isinstance(one, tuple) and any(item is value for item in one)) for one in found)
