"""What a backend emits: machine code with everything that a driver or simulator needs to run it, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an entry, in order; offset, size and alignment are in bytes of the argument block.

    `hidden` names what the runtime passes by itself ("null_pointer", "scratch", …); it is None for the user's own.
    `readonly` says whether the kernel is known never to store through the pointer (True) or to hold a store that may
    (False); None where nobody looked, as in foreign machine code.
    """

    name: str
    kind: Literal["pointer", "scalar"]
    dtype: str
    offset: int
    size: int
    alignment: int
    readonly: bool | None = None
    hidden: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel of the artifact: how to call it and what one workgroup of it takes."""

    name: str
    parameters: tuple[Parameter, ...]
    workgroup: tuple[int, int, int]
    grid_rank: int = 3
    shared_bytes: int = 0
    scratch_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Resources:
    """Resource use as the tool that knows it reported it; None where nobody knows, with the reason in `unknown`.

    `instructions` counts those of the code by kind, in the chip's words.
    """

    registers: Mapping[str, int] | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    scratch_bytes: int | None = None
    occupancy: float | None = None
    unknown: str | None = None
    instructions: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """Machine code for one exact target.

    `format` is the file kind (`ptx`, `hsaco`, `tile`, `machine`); `text` the assembly, `binary` the assembled bytes
    where the target has them. `levels` keeps the text of earlier levels (`tile`, `lane`, `machine`) when asked for.
    `metadata` holds plain JSON values only.
    """

    target: str
    format: str
    text: str
    entries: tuple[Entry, ...]
    binary: bytes | None = None
    resources: Resources = field(default_factory=Resources)
    levels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, name: str | None = None) -> Entry:
        """The entry called `name`, or the only one; raises KeyError with the names there are."""
        if name is None and len(self.entries) == 1:
            return self.entries[0]
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"{name!r}; entries: {', '.join(e.name for e in self.entries)}")

    @property
    def notes(self) -> tuple[Mapping[str, str], ...]:
        """What a user should learn of the compilation though nothing is wrong: `code`, `message`, `place` and `help` of each."""
        return tuple(self.metadata.get("notes", ()))

    @property
    def abi(self) -> dict[str, tuple[Parameter, ...]]:
        """How each entry is called: its parameters in order, hidden ones too."""
        return {entry.name: entry.parameters for entry in self.entries}

    def save(self, path: str | PathLike[str]) -> None:
        """Write a self-contained file that `tilefw.load` reads back; raises OSError."""
        from tilefw.api.artifact_file import encode

        with open(path, "wb") as file:
            file.write(encode(self))
