"""A program from its text. Every mistake is an error at its source location: TFW0730 to TFW0734, TFW0737 and TFW0738."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cached_property

from tilefw.api import Place
from tilefw.api.source_text import SourceText
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import BoundParameter, ChipCode, HostTensor, QueueInst, SpatialProgram
from tilefw_spatial.text.arrays import TensorText, read_parameter, read_tensor, string
from tilefw_spatial.text.clock import Clock, idle
from tilefw_spatial.text.runs import read_numbers
from tilefw_spatial.text.source import DIRECTIVE, OPERANDS, PASSED, ProgramTextFault, TextPiece, lines
from tilefw_spatial.text.statement import read_statement
from tilefw_spatial.valid import MAPS, inst_fault, map_fault

_DIRECTIVE = re.compile(r"\.\w+")
_TIMED = re.compile(r"@(\d{1,12})\s+")
_HASH = re.compile(r"[0-9a-f]{64}")
OTHER_MACHINE = "TFW0737"
_LONGEST_GAP = 1 << 30  # cycles that NOPs are made for: a second of the chip


def parse(text: str, filename: str, machine: Machine | None = None) -> SpatialProgram:
    """The program of a text; `machine` is another than the packaged one of its name. Raises CodeError with the location of the
    first mistake."""
    try:
        return _ProgramText(text, machine).read()
    except ProgramTextFault as fault:
        raise SourceText(text, filename).error(fault) from None


class Listing:
    """The lines of a text's instructions, for messages about the program that was read from it."""

    def __init__(self, text: str, filename: str) -> None:
        self._source = SourceText(text, filename)

    def place(self, chip: int, queue: str, number: int) -> Place:
        """The line of a queue's instruction; the NOPs of an `@` are on the line of the instruction after it."""
        piece = self._chips[chip].queues[queue].pieces[number]
        return self._source.place(piece.start, piece.end)

    @cached_property
    def _chips(self) -> list[_ChipText]:
        """Read again only where something is wrong with the program: most need no message."""
        file = _ProgramText(self._source.text)
        file.read()
        return file.chips


class _QueueText:
    """A queue while its instructions are read, with the line of each; `code` includes the NOPs of an `@`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock = Clock()
        self.code: list[QueueInst] = []
        self.pieces: list[TextPiece] = []

    def add(self, inst: QueueInst, piece: TextPiece) -> None:
        self.clock.spend(inst)
        self.code.append(inst)
        self.pieces.append(piece)


class _ChipText:
    def __init__(self) -> None:
        self.maps: list[tuple[int, ...]] = []
        self.queues: dict[str, _QueueText] = {}


class _ProgramText:
    def __init__(self, text: str, machine: Machine | None = None) -> None:
        self._given = machine
        self._pieces = list(lines(text))
        self._end = TextPiece("", len(text))
        self._machine: Machine | None = None
        self._entry: str | None = None
        self._grid: tuple[int, int, int] | None = None
        self._cycles: int | None = None
        self._metadata: dict[str, object] = {}
        self._parameters: list[BoundParameter] = []
        self._tensors: list[TensorText] = []
        self.chips: list[_ChipText] = []
        self._queue: _QueueText | None = None

    @property
    def machine(self) -> Machine:
        if self._machine is None:
            raise self._pieces[0].fault("a program begins with .machine", DIRECTIVE)
        return self._machine

    def read(self) -> SpatialProgram:
        for piece in self._pieces:
            match = _DIRECTIVE.match(piece.text)
            if match is None:
                self._instruction(piece)
                continue
            handler = _HANDLERS.get(match.group())
            if handler is None:
                directives = ", ".join(_HANDLERS)
                raise piece.fault(f"there is no directive {match.group()[:40]}", DIRECTIVE, help=f"there are {directives}")
            handler(self, piece.part(match.end()))
        return self._program()

    def _program(self) -> SpatialProgram:
        if self._machine is None or self._entry is None or self._grid is None or self._cycles is None or not self.chips:
            needed = {".machine": self._machine, ".entry": self._entry, ".grid": self._grid, ".expect_cycles": self._cycles}
            missing = next((name for name, value in needed.items() if value is None), ".chip")
            raise self._end.fault(f"the program has no {missing}", DIRECTIVE)
        chips = tuple(self._chip_code(chip) for chip in self.chips)
        tensors: list[HostTensor] = [t.finish(self._machine, self._parameters, len(chips)) for t in self._tensors]
        return SpatialProgram(
            self._entry, self._machine.name, self._machine.hash, self._grid, tuple(self._parameters), tuple(tensors), chips,
            self._cycles, self._metadata,
        )

    def _chip_code(self, chip: _ChipText) -> ChipCode:
        for queue in chip.queues.values():
            for place, piece in enumerate(queue.pieces):
                fault = inst_fault(self.machine, queue.name, queue.code, place, chip.maps)
                if fault:
                    raise piece.fault(fault, OPERANDS)
        return ChipCode({name: tuple(queue.code) for name, queue in chip.queues.items()}, tuple(chip.maps))

    # --- instructions

    def _instruction(self, piece: TextPiece) -> None:
        if self._queue is None:
            raise piece.fault("an instruction needs a .queue before it", DIRECTIVE)
        timed = _TIMED.match(piece.text)
        if timed is not None:
            self._wait(self._queue, piece, int(timed[1]))
            piece = piece.part(timed.end())
        elif piece.text.startswith("@"):
            raise piece.fault("@ is followed by a cycle and an instruction")
        self._queue.add(read_statement(self.machine, piece), piece)

    def _wait(self, queue: _QueueText, piece: TextPiece, cycle: int) -> None:
        """NOPs up to a cycle."""
        now = queue.clock.time
        if now is None:
            raise piece.fault("no cycle is known behind SYNC and DSK", PASSED, help="write NOPs instead of @")
        if cycle < now:
            raise piece.fault(f"cycle {cycle} has passed: {queue.name} is free from {now} on", PASSED)
        if cycle - now > _LONGEST_GAP:
            raise piece.fault(f"{cycle - now} idle cycles are more than {_LONGEST_GAP}", PASSED)
        for nop in idle(cycle - now):
            queue.add(nop, piece)

    # --- directives

    def on_machine(self, piece: TextPiece) -> None:
        name, _, found = piece.text.partition(" ")
        try:
            given = self._given if self._given is not None and self._given.name == name else None
            self._machine = given or (load(name) if re.fullmatch(r"[\w-]+", name) else None)
        except FileNotFoundError:
            self._machine = None
        if self._machine is None:
            raise piece.fault(f"there is no machine file {name[:40]!r}", DIRECTIVE)
        if found and not _HASH.fullmatch(found):
            raise piece.fault("a machine's hash is 64 hexadecimal digits")
        if found and found != self._machine.hash:
            note = f"that of {name} here is {self._machine.hash}"
            raise piece.fault("the text was made for another machine file", OTHER_MACHINE, note, "compile it again")

    def on_entry(self, piece: TextPiece) -> None:
        self._entry = string(piece)

    def on_grid(self, piece: TextPiece) -> None:
        extents = [part.number() for part in piece.split()]
        if len(extents) != 3 or min(extents) < 0:
            raise piece.fault("a grid has three extents")
        self._grid = (extents[0], extents[1], extents[2])

    def on_expect_cycles(self, piece: TextPiece) -> None:
        self._cycles = piece.number()
        if self._cycles < 0:
            raise piece.fault("cycles are not negative")

    def on_metadata(self, piece: TextPiece) -> None:
        try:
            found = json.loads(piece.text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise piece.fault("metadata are an object of JSON")
        self._metadata = found

    def on_parameter(self, piece: TextPiece) -> None:
        self._parameters.append(read_parameter(piece))

    def on_tensor(self, piece: TextPiece) -> None:
        self._tensors.append(read_tensor(piece))

    def _tensor(self, piece: TextPiece) -> TensorText:
        if not self._tensors or self.chips:
            raise piece.fault("this belongs to a .tensor before it", DIRECTIVE)
        return self._tensors[-1]

    def on_plane(self, piece: TextPiece) -> None:
        self._tensor(piece).plane(self.machine, piece)

    def on_transfer(self, piece: TextPiece) -> None:
        self._tensor(piece).transfer(piece)

    def on_axis(self, piece: TextPiece) -> None:
        self._tensor(piece).axis(piece)

    def on_explicit(self, piece: TextPiece) -> None:
        self._tensor(piece).explicit(piece)

    def on_data(self, piece: TextPiece) -> None:
        self._tensor(piece).bytes(self.machine, piece)

    def on_chip(self, piece: TextPiece) -> None:
        if piece.number() != len(self.chips) or len(self.chips) >= self.machine.node_chips:
            raise piece.fault(f"the next chip is {len(self.chips)}, of at most {self.machine.node_chips}", DIRECTIVE)
        self.chips.append(_ChipText())
        self._queue = None

    def _chip(self, piece: TextPiece) -> _ChipText:
        if not self.chips:
            raise piece.fault("this needs a .chip before it", DIRECTIVE)
        return self.chips[-1]

    def on_map(self, piece: TextPiece) -> None:
        colon = piece.text.find(":")
        number, chip = piece.part(0, max(colon, 0)).number(), self._chip(piece)
        if number != len(chip.maps) or number >= MAPS:
            raise piece.fault(f"the next map is {len(chip.maps)}, of at most {MAPS}", DIRECTIVE)
        lanes = tuple(read_numbers(piece.part(colon + 1), self.machine.lanes))
        fault = map_fault(self.machine, lanes)
        if fault:
            raise piece.fault(fault, DIRECTIVE)
        chip.maps.append(lanes)

    def on_queue(self, piece: TextPiece) -> None:
        chip = self._chip(piece)
        if piece.text not in self.machine.queues or piece.text in chip.queues:
            why = "has its section above" if piece.text in chip.queues else "is none of the machine's"
            raise piece.fault(f"the queue {piece.text[:40]} {why}", DIRECTIVE)
        self._queue = chip.queues[piece.text] = _QueueText(piece.text)


_HANDLERS: dict[str, Callable[[_ProgramText, TextPiece], None]] = {
    ".machine": _ProgramText.on_machine, ".entry": _ProgramText.on_entry, ".grid": _ProgramText.on_grid,
    ".expect_cycles": _ProgramText.on_expect_cycles,
    ".metadata": _ProgramText.on_metadata, ".parameter": _ProgramText.on_parameter, ".tensor": _ProgramText.on_tensor,
    ".plane": _ProgramText.on_plane,
    ".transfer": _ProgramText.on_transfer, ".axis": _ProgramText.on_axis, ".explicit": _ProgramText.on_explicit,
    ".data": _ProgramText.on_data,
    ".chip": _ProgramText.on_chip, ".map": _ProgramText.on_map, ".queue": _ProgramText.on_queue,
}
