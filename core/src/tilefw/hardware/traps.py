"""Where a program gives its launch up: numbered in the code, told in the artifact's metadata, a finding when it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api.device import Finding
from tilefw.api.errors import Place


@dataclass(frozen=True, slots=True)
class Trap:
    """Where a kernel gives up, and with what message."""

    message: str
    place: Place | None


def metadata_of(traps: Mapping[str, Sequence[Trap]]) -> dict[str, list[dict[str, str | int]]]:
    """The traps of each entry, in order, as plain JSON values; entries without any are left out."""
    return {entry: [_told(trap) for trap in found] for entry, found in traps.items() if found}


def finding_of(metadata: Mapping[str, Any], entry: str, number: int) -> Finding:
    """The finding for trap `number` of an entry, counted from 1."""
    told = metadata[entry][number - 1]
    place = Place(told["file"], told["line"], told["column"]) if "file" in told else None
    return Finding("trap", "TFW0812", told["message"], source=place)


def _told(trap: Trap) -> dict[str, str | int]:
    place = trap.place
    where: dict[str, str | int] = {} if place is None else {"file": place.file, "line": place.line, "column": place.column}
    return {"message": trap.message, **where}
