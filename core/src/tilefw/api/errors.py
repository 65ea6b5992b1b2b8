"""One family of errors: what went wrong, where in the user's own text, why, and what to do about it.

This file holds the classes and the one renderer. The text behind each code is a page of its own in
`tilefw/explanations/`, printed by `tilefw explain CODE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """A range of columns on one line of a file; lines and columns count from 1, `end_column` is exclusive. Line 0: `file` says it
    all, as it does of a place in a binary.

    `text` is that line as the user wrote it (empty when it cannot be had); `caller` is the place of the call
    that brought us here, for code inlined from another function.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    text: str = ""
    function: str = ""
    caller: Place | None = None

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}" if self.line else self.file

    def chain(self) -> Sequence[Place]:
        """This place and every call site above it, innermost first."""
        places: list[Place] = []
        place: Place | None = self
        while place is not None:
            places.append(place)
            place = place.caller
        return places


@dataclass(eq=False)
class KernelError(Exception):
    """An error that a user caused or can mend: message, place, note, help and a stable code.

    `code` is `TFW` and four digits (see `tilefw explain`); `note` gives the facts behind the message, `help`
    what to change. Subclasses name the kind and fix the exit code of the command line.
    """

    message: str
    code: str = "TFW0000"
    place: Place | None = None
    note: str | None = None
    help: str | None = None
    exit_code: int = field(default=1, repr=False)

    def __post_init__(self) -> None:
        Exception.__init__(self, self.message)

    def __str__(self) -> str:
        return render(self)


class CompileError(KernelError):
    """A kernel's source, types or shapes are wrong, or ask for what is not there."""

    @property
    def error_message(self) -> str:
        """The message alone, under the name that Triton's programs read it by."""
        return self.message


class UnsupportedError(CompileError):
    """A right program that this target, or today's tilefw, does not serve; says which part."""


@dataclass(eq=False)
class CapacityError(CompileError):
    """A right program that asks for more of a resource than one workgroup or lane of the chip can have.

    `resource` is what ran out (registers of a class, shared memory, threads), `needed` and `available` count it in `unit`.
    """

    resource: str = ""
    needed: int = 0
    available: int = 0
    unit: str = ""


class IRError(KernelError):
    """Tile, lane or machine text that does not parse or does not verify."""


class LaunchError(KernelError):
    """Arguments, grid or options of a launch do not fit the kernel."""


class CodeError(KernelError):
    """Machine code, an artifact or a launch file that is malformed, or of another target."""


@dataclass(eq=False)
class CheckError(KernelError):
    """A check of a simulator found a fault in the running kernel; carries every `api.Finding` in `findings`."""

    findings: tuple[Any, ...] = field(default=(), repr=False)


class UsageError(KernelError):
    """A command, option or name that does not exist; the nearest one is suggested in `help`."""

    def __post_init__(self) -> None:
        KernelError.__post_init__(self)
        self.exit_code = 2


class PluginError(KernelError):
    """The plugin that is needed is broken, incompatible, disabled or shadowed."""

    def __post_init__(self) -> None:
        KernelError.__post_init__(self)
        self.exit_code = 4


class InternalError(Exception):
    """A bug of tilefw or of a plugin, never of the user; `reproducer` is the path of a file that shows it."""

    def __init__(self, message: str, reproducer: str | None = None) -> None:
        super().__init__(message)
        self.reproducer = reproducer


_SHOWN_COLUMNS = 400  # of a longer line, what surrounds the place is shown
_SHOWN_CALLS = 8  # of a longer chain of calls, the ends are shown


def render(error: KernelError) -> str:
    """The error as text: `error[CODE]: message`, then place, source line with carets, call chain, note and help."""
    lines = [f"error[{error.code}]: {error.message}"]
    if error.place is not None:
        lines += render_place(error.place)
    for label, text in (("note", error.note), ("help", error.help)):
        if text:
            lines.append(f"  = {label}: " + text.replace("\n", "\n    "))
    return "\n".join(lines)


def render_place(place: Place) -> list[str]:
    """The lines that show a place: file and position, the source line with carets, and the calls that led there."""
    gutter = len(str(place.line))
    lines = [f"{' ' * gutter}--> {place}" + (f" in {place.function}" if place.function else "")]
    if place.text:
        text, before, width = _shown_part(place)
        # Tabs before the caret are kept, so that it stands under its column at any tab width.
        lead = "".join("\t" if c == "\t" else " " for c in text[:before])
        lines += [f"{' ' * gutter} |", f"{place.line} | {text}", f"{' ' * gutter} | {lead}{'^' * width}"]
    calls = [f"called from {caller}" + (f" in {caller.function}" if caller.function else "") for caller in place.chain()[1:]]
    if len(calls) > _SHOWN_CALLS:
        calls[_SHOWN_CALLS // 2 : -(_SHOWN_CALLS // 2)] = [f"… {len(calls) - _SHOWN_CALLS} more calls"]
    return [*lines, *(f"{' ' * gutter} = {call}" for call in calls)]


def _shown_part(place: Place) -> tuple[str, int, int]:
    """The place's line, or of a very long one the part around the place; the columns before the carets; how many carets."""
    text, before, width = place.text.rstrip(), max(0, place.column - 1), max(1, place.end_column - place.column)
    if len(text) <= _SHOWN_COLUMNS:
        return text, before, width
    start = max(0, before - _SHOWN_COLUMNS // 4)
    end = start + _SHOWN_COLUMNS
    lead, tail = "…" if start else "", "…" if end < len(text) else ""
    return f"{lead}{text[start:end]}{tail}", before - start + len(lead), max(1, min(width, end - before))
