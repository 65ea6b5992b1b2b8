"""What a user should learn of a compilation though nothing is wrong: a dot left to the lanes, values that wait in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilefw.api import json_values as values
from tilefw.api.errors import Place


@dataclass(frozen=True, slots=True)
class Remark:
    """`code` has a page (`tilefw explain CODE`), `message` tells what the compiler did, `help` what to do about it. `place` is the
    line of the user's source, None where it is the kernel as a whole."""

    code: str
    message: str
    help: str
    place: Place | None = None


def remark_to_json(remark: Remark) -> dict[str, Any]:
    """The texts by name; of a place its file, line and column."""
    place = remark.place
    where = None if place is None else {"file": place.file, "line": place.line, "column": place.column}
    return {"code": remark.code, "message": remark.message, "help": remark.help, "place": where}


def remark_of(raw: Any) -> Remark:
    """What `remark_to_json` gave. Raises KeyError, ValueError."""
    values.checked(raw, dict, "a remark")
    where = values.optional(raw["place"], dict, "place")
    if where is not None:
        line, column = (values.checked(where[name], int, name) for name in ("line", "column"))
        where = Place(values.string(where, "file"), line, column)
    return Remark(values.string(raw, "code"), values.string(raw, "message"), values.string(raw, "help"), where)
