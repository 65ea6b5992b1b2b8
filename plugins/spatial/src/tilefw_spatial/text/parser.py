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
from tilefw_spatial.text.source import DIRECTIVE, OPERANDS, PASSED, ProgramTextFault, TextSpan, lines
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
        span = self._chips[chip].queues[queue].spans[number]
        return self._source.place(span.start, span.end)

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
        self.spans: list[TextSpan] = []

    def add(self, inst: QueueInst, span: TextSpan) -> None:
        self.clock.spend(inst)
        self.code.append(inst)
        self.spans.append(span)


class _ChipText:
    def __init__(self) -> None:
        self.maps: list[tuple[int, ...]] = []
        self.queues: dict[str, _QueueText] = {}


class _ProgramText:
    def __init__(self, text: str, machine: Machine | None = None) -> None:
        self._given = machine
        self._spans = list(lines(text))
        self._end = TextSpan("", len(text))
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
            raise self._spans[0].fault("a program begins with .machine", DIRECTIVE)
        return self._machine

    def read(self) -> SpatialProgram:
        for span in self._spans:
            match = _DIRECTIVE.match(span.text)
            if match is None:
                self._instruction(span)
                continue
            handler = _HANDLERS.get(match.group())
            if handler is None:
                directives = ", ".join(_HANDLERS)
                raise span.fault(f"there is no directive {match.group()[:40]}", DIRECTIVE, help=f"there are {directives}")
            handler(self, span.part(match.end()))
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
            for place, span in enumerate(queue.spans):
                fault = inst_fault(self.machine, queue.name, queue.code, place, chip.maps)
                if fault:
                    raise span.fault(fault, OPERANDS)
        return ChipCode({name: tuple(queue.code) for name, queue in chip.queues.items()}, tuple(chip.maps))

    # --- instructions

    def _instruction(self, span: TextSpan) -> None:
        if self._queue is None:
            raise span.fault("an instruction needs a .queue before it", DIRECTIVE)
        timed = _TIMED.match(span.text)
        if timed is not None:
            self._wait(self._queue, span, int(timed[1]))
            span = span.part(timed.end())
        elif span.text.startswith("@"):
            raise span.fault("@ is followed by a cycle and an instruction")
        self._queue.add(read_statement(self.machine, span), span)

    def _wait(self, queue: _QueueText, span: TextSpan, cycle: int) -> None:
        """NOPs up to a cycle."""
        now = queue.clock.time
        if now is None:
            raise span.fault("no cycle is known behind SYNC and DSK", PASSED, help="write NOPs instead of @")
        if cycle < now:
            raise span.fault(f"cycle {cycle} has passed: {queue.name} is free from {now} on", PASSED)
        if cycle - now > _LONGEST_GAP:
            raise span.fault(f"{cycle - now} idle cycles are more than {_LONGEST_GAP}", PASSED)
        for nop in idle(cycle - now):
            queue.add(nop, span)

    # --- directives

    def on_machine(self, span: TextSpan) -> None:
        name, _, found = span.text.partition(" ")
        try:
            given = self._given if self._given is not None and self._given.name == name else None
            self._machine = given or (load(name) if re.fullmatch(r"[\w-]+", name) else None)
        except FileNotFoundError:
            self._machine = None
        if self._machine is None:
            raise span.fault(f"there is no machine file {name[:40]!r}", DIRECTIVE)
        if found and not _HASH.fullmatch(found):
            raise span.fault("a machine's hash is 64 hexadecimal digits")
        if found and found != self._machine.hash:
            note = f"that of {name} here is {self._machine.hash}"
            raise span.fault("the text was made for another machine file", OTHER_MACHINE, note, "compile it again")

    def on_entry(self, span: TextSpan) -> None:
        self._entry = string(span)

    def on_grid(self, span: TextSpan) -> None:
        extents = [part.number() for part in span.split()]
        if len(extents) != 3 or min(extents) < 0:
            raise span.fault("a grid has three extents")
        self._grid = (extents[0], extents[1], extents[2])

    def on_expect_cycles(self, span: TextSpan) -> None:
        self._cycles = span.number()
        if self._cycles < 0:
            raise span.fault("cycles are not negative")

    def on_metadata(self, span: TextSpan) -> None:
        try:
            found = json.loads(span.text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise span.fault("metadata are an object of JSON")
        self._metadata = found

    def on_parameter(self, span: TextSpan) -> None:
        self._parameters.append(read_parameter(span))

    def on_tensor(self, span: TextSpan) -> None:
        self._tensors.append(read_tensor(span))

    def _tensor(self, span: TextSpan) -> TensorText:
        if not self._tensors or self.chips:
            raise span.fault("this belongs to a .tensor before it", DIRECTIVE)
        return self._tensors[-1]

    def on_plane(self, span: TextSpan) -> None:
        self._tensor(span).plane(self.machine, span)

    def on_transfer(self, span: TextSpan) -> None:
        self._tensor(span).transfer(span)

    def on_axis(self, span: TextSpan) -> None:
        self._tensor(span).axis(span)

    def on_explicit(self, span: TextSpan) -> None:
        self._tensor(span).explicit(span)

    def on_data(self, span: TextSpan) -> None:
        self._tensor(span).bytes(self.machine, span)

    def on_chip(self, span: TextSpan) -> None:
        if span.number() != len(self.chips) or len(self.chips) >= self.machine.node_chips:
            raise span.fault(f"the next chip is {len(self.chips)}, of at most {self.machine.node_chips}", DIRECTIVE)
        self.chips.append(_ChipText())
        self._queue = None

    def _chip(self, span: TextSpan) -> _ChipText:
        if not self.chips:
            raise span.fault("this needs a .chip before it", DIRECTIVE)
        return self.chips[-1]

    def on_map(self, span: TextSpan) -> None:
        colon = span.text.find(":")
        number, chip = span.part(0, max(colon, 0)).number(), self._chip(span)
        if number != len(chip.maps) or number >= MAPS:
            raise span.fault(f"the next map is {len(chip.maps)}, of at most {MAPS}", DIRECTIVE)
        lanes = tuple(read_numbers(span.part(colon + 1), self.machine.lanes))
        fault = map_fault(self.machine, lanes)
        if fault:
            raise span.fault(fault, DIRECTIVE)
        chip.maps.append(lanes)

    def on_queue(self, span: TextSpan) -> None:
        chip = self._chip(span)
        if span.text not in self.machine.queues or span.text in chip.queues:
            why = "has its section above" if span.text in chip.queues else "is none of the machine's"
            raise span.fault(f"the queue {span.text[:40]} {why}", DIRECTIVE)
        self._queue = chip.queues[span.text] = _QueueText(span.text)


_HANDLERS: dict[str, Callable[[_ProgramText, TextSpan], None]] = {
    ".machine": _ProgramText.on_machine, ".entry": _ProgramText.on_entry, ".grid": _ProgramText.on_grid,
    ".expect_cycles": _ProgramText.on_expect_cycles,
    ".metadata": _ProgramText.on_metadata, ".parameter": _ProgramText.on_parameter, ".tensor": _ProgramText.on_tensor,
    ".plane": _ProgramText.on_plane,
    ".transfer": _ProgramText.on_transfer, ".axis": _ProgramText.on_axis, ".explicit": _ProgramText.on_explicit,
    ".data": _ProgramText.on_data,
    ".chip": _ProgramText.on_chip, ".map": _ProgramText.on_map, ".queue": _ProgramText.on_queue,
}
