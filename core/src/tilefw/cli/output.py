"""Results on stdout as JSON, files that a user names, warnings on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from tilefw.api.errors import UsageError


def print_json(schema: str, fields: dict[str, Any]) -> None:
    """One JSON object with its `schema` first; numbers that JSON has not are strings."""
    print(json.dumps({"schema": f"tilefw.{schema}/1", **_json_value(fields)}, indent=2, default=str))


def write_file(path: str, data: bytes) -> None:
    """Write a file that the user named; raises UsageError TFW0913."""
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", code="TFW0913") from None


def write_stdout(data: bytes) -> None:
    """Bytes to standard output; as text where that takes nothing else, as in a notebook. Raises UsageError TFW0913 for bytes that
    are not text there."""
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is not None:
        binary.write(data)
        return
    try:
        sys.stdout.write(data.decode())
    except UnicodeDecodeError:
        raise UsageError("standard output takes text alone here", code="TFW0913", help="give a file with -o") from None


def warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
