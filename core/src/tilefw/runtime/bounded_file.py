"""A regular file's bytes, up to a limit."""

from __future__ import annotations

import os

from tilefw.api.errors import CodeError


def read_bounded(path: str, limit: int, what: str) -> bytes:
    """A regular file's bytes; raises CodeError TFW0930 when it cannot be read or is larger than `limit`."""
    try:
        if not os.path.isfile(path):
            raise OSError("there is no such file" if not os.path.exists(path) else "it is not a regular file")
        size = os.path.getsize(path)
        if size > limit:
            raise OSError(f"it has {size} bytes, more than the {limit} of {what}")
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CodeError(f"{path} cannot be read: {reason}", code="TFW0930") from None
