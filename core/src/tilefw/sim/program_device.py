"""ProgramDevice: a simulator of a machine that executes one program of a grid after another, on what the plugin decodes.

The plugin says what an artifact's code does in one program; buffers, arguments, the grid, bounds and findings are the same for all
such machines.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

import numpy as np

from tilefw.api.artifact import Artifact
from tilefw.api.device import Argument, BufferView, Finding, LaunchOptions, LaunchReport
from tilefw.api.errors import CodeError, LaunchError, Place
from tilefw.argument_block import argument_block
from tilefw.hardware.processor_device import TRAPS
from tilefw.hardware.traps import finding_of
from tilefw.sim.floats import Array
from tilefw.sim.memory.buffers import SimulatedBuffers
from tilefw.sim.memory.regions import GlobalMemory, Region

_CODES = {
    "bounds": "TFW0801", "initialisation": "TFW0803", "pending": "TFW0805", "leftovers": "TFW0808", "readonly": "TFW0809",
    "budget": "TFW0810",
}


class ProgramFault(Exception):
    """What a program must not do. `check` is that which finds it; `line` is set by whoever knows which instruction it was."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check
        self.message = message
        self.line = 0
        self.instruction = ""


class ProgramTrap(Exception):
    """A program gives the launch up by trap `number`, counted from 1."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(slots=True)
class ProgramCall:
    """One program: its number along each axis of the grid, the argument block, the memory of all, and how many instructions it and
    those behind it may execute."""

    memory: ProgramMemory
    arguments: bytes
    ids: tuple[int, int, int]
    grid: tuple[int, int, int]
    budget: int

    def spend(self, instructions: int) -> None:
        """Count instructions. Raises ProgramFault where the budget is spent."""
        self.budget -= instructions
        if self.budget < 0:
            raise ProgramFault("budget", "the launch executes more instructions than its budget allows")


class ProgramMemory:
    """Memory of the kernel's arguments by address, checked: elements of some bytes in, and out."""

    def __init__(self, memory: GlobalMemory, checks: frozenset[str]) -> None:
        self._memory = memory
        self._initialised = "initialisation" in checks

    def read(self, addresses: Array, width: int) -> Array:
        """The bytes of elements of `width` bytes, a row each. Raises ProgramFault."""
        found = np.empty((len(addresses), width), np.uint8)
        for which, region, index in self._places(addresses, width):
            if self._initialised and region.poison is not None and region.poison[index].any():
                raise ProgramFault("initialisation", f"bytes of {region.label or 'a buffer'} are read that nobody has written")
            found[which] = region.data[index]
        return found

    def write(self, addresses: Array, data: Array) -> None:
        """Write elements, a row of bytes each. Raises ProgramFault."""
        for which, region, index in self._places(addresses, data.shape[1]):
            if region.readonly:
                raise ProgramFault("readonly", f"{region.label or 'a buffer'} is written, which is read-only")
            region.data[index] = data[which]
            if region.poison is not None:
                region.poison[index] = 0

    def _places(self, addresses: Array, width: int) -> list[tuple[Array | slice, Region, Array]]:
        """Which elements are in which region, with the places of their bytes."""
        if not len(addresses):
            return []
        span = np.arange(width)
        first = self._region(int(addresses.min()), width)
        index = addresses - np.uint64(first.base)
        if int(index.max()) + width <= first.size:
            return [(slice(None), first, index.astype(np.int64)[:, None] + span)]
        regions = [self._region(int(address), width) for address in addresses]
        return [
            (np.array([number]), region, np.array([int(address) - region.base])[:, None] + span)
            for number, (address, region) in enumerate(zip(addresses, regions, strict=True))
        ]

    def _region(self, address: int, width: int) -> Region:
        region = self._memory.find(address)
        if region is None or address + width > region.base + region.size:
            near = self._memory.nearest(address)
            where = "" if near is None else f"; {near.label or 'a buffer'} of {near.size} bytes begins at {near.base:#x}"
            raise ProgramFault("bounds", f"{width} bytes at {address:#x} are in no buffer{where}")
        return region


SimulatedEntry = Callable[[ProgramCall], None]
"""Runs one program of an entry. Raises ProgramFault and ProgramTrap."""


@dataclass(frozen=True, slots=True)
class ProgramModule:
    """A loaded artifact: what runs a program of each entry."""

    artifact: Artifact
    name: str
    entries: Mapping[str, SimulatedEntry]


class ProgramDevice(SimulatedBuffers, ABC):
    """`tilefw.api.Device` for artifacts of one `format`; programs run in the order of their numbers."""

    executor: Literal["sim"] = "sim"
    assembled = False
    checks = frozenset({"bounds", "initialisation", "pending", "leftovers"})
    samples = True
    format: ClassVar[str]

    def __init__(self, name: str) -> None:
        super().__init__(GlobalMemory())
        self.name = name

    @abstractmethod
    def decode(self, artifact: Artifact, name: str) -> Mapping[str, SimulatedEntry]:
        """The entries of an artifact; `name` is its file's, for messages. Raises CodeError."""

    def load(self, artifact: Artifact) -> ProgramModule:
        """Prepare an artifact; raises CodeError."""
        if artifact.format != self.format:
            raise CodeError(f"{self.name} runs code of the format '{self.format}', not '{artifact.format}'", "TFW0702")
        name = str(artifact.metadata.get("source_name", f"{artifact.target}.{artifact.format}"))
        return ProgramModule(artifact, name, self.decode(artifact, name))

    def launch(
        self, module: ProgramModule, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Run a grid. Raises LaunchError where the arguments do not fit."""
        if entry not in module.entries:
            raise LaunchError(f"no entry {entry!r}", code="TFW0346", note="entries: " + ", ".join(module.entries))
        block = argument_block(entry, module.artifact.entry(entry).parameters, args, self._address, 64, self.name)
        x, y, z = [*grid, 1, 1][:3]
        call = ProgramCall(ProgramMemory(self._memory, options.checks), block, (0, 0, 0), (x, y, z), options.budget)
        begin, findings = time.perf_counter(), ()
        try:
            with np.errstate(all="ignore"):
                for number in range(prod(call.grid)) if options.programs is None else options.programs:
                    call.ids = (number % x, number // x % y, number // x // y)
                    module.entries[entry](call)
        except ProgramFault as fault:
            place = Place(module.name, fault.line, 1, 1, text=fault.instruction) if fault.line else None
            findings = (Finding(fault.check, _CODES[fault.check], fault.message, fault.instruction, place, workgroup=call.ids),)
        except ProgramTrap as trap:
            told = module.artifact.metadata.get(TRAPS, {})
            known = 1 <= trap.number <= len(told.get(entry, ()))
            findings = (finding_of(told, entry, trap.number) if known else Finding("trap", "TFW0812", f"trap {trap.number}"),)
        return LaunchReport(findings, {"instructions": options.budget - call.budget}, time.perf_counter() - begin)

    def _address(self, view: BufferView) -> int:
        return self._memory.region(view.handle).base + view.offset
