"""A card as a `tilefw.api.Device`: its memory by handles, modules, launches between two events, streams, and its peers."""

from __future__ import annotations

import ctypes
import itertools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.device import Argument, BufferView, DescribedArray, LaunchOptions, LaunchReport
from tilefw.api.errors import LaunchError
from tilefw.argument_block import BlockLayout, Describe
from tilefw.hardware.completion import CardCompletion, CardEntry, EventPool
from tilefw.hardware.driver import CardInfo, Driver
from tilefw.hardware.failures import DriverError, kernel_error, told
from tilefw.hardware.ready_entry import ReadyEntry


@dataclass(frozen=True, slots=True)
class CardProgram:
    """What a driver loads: the `image`, and the bytes of shared memory that each entry's own code declares, by its name."""

    image: bytes
    shared: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory of the card that a handle names."""

    address: int
    nbytes: int


class CardModule:
    """A loaded artifact; the driver gets its module back with the object."""

    def __init__(self, driver: Driver, number: int, artifact: Artifact, program: CardProgram) -> None:
        """Raises DriverError. The card is current."""
        self.artifact, self.shared = artifact, program.shared
        self._driver = driver
        self._handle = driver.load(program.image)
        self._entries = {entry.name: entry for entry in artifact.entries}
        self._functions: dict[str, int] = {}
        self._layouts: dict[str, BlockLayout] = {}
        # Not at the end of the process, which takes it all back: a library may be half down by then.
        weakref.finalize(self, _unload, driver, number, self._handle).atexit = False

    def entry(self, name: str) -> Entry:
        """The artifact's entry; raises LaunchError TFW0346."""
        found = self._entries.get(name)
        if found is not None:
            return found
        note = "entries: " + (", ".join(entry.name for entry in self.artifact.entries) or "none")
        raise LaunchError(f"no entry {name!r}", code="TFW0346", note=note)

    def layout(self, entry: Entry, address_bits: int, describe: Describe) -> BlockLayout:
        """How the arguments of an entry go into its block; `describe` makes descriptors for the card's copy engine."""
        found = self._layouts.get(entry.name)
        if found is None:
            found = self._layouts[entry.name] = BlockLayout(entry, address_bits, describe)
        return found

    def function(self, name: str) -> int:
        """The driver's handle of an entry. Raises DriverError."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._driver.function(self._handle, name)
        return found


def _unload(driver: Driver, number: int, handle: int) -> None:
    try:
        with driver.on(number):
            driver.wait_card()  # a launch may still run in its code
            driver.unload(handle)
    except DriverError:
        pass  # a card that has failed: there is nobody to tell, and the next call tells it


class Card(ABC):
    """`tilefw.api.Device` for one card; a plugin says what its driver loads of an artifact.

    Launches are asynchronous. `read` and `write` without a stream wait for what runs on the default stream; work on any other
    stream must have been waited for (`synchronize`). Errors of the driver are LaunchError, with the driver's own words.
    """

    executor: Literal["hw"] = "hw"
    assembled = True
    asynchronous = True
    checks: frozenset[str] = frozenset()
    address_bits = 64

    def __init__(self, target: str, driver: Driver, info: CardInfo) -> None:
        self.name, self.driver, self.info = target, driver, info
        self._events = EventPool(driver)
        self._handles = itertools.count(1)
        self._allocations: dict[int, Allocation] = {}
        self._peers: set[int] = set()
        self._owners: dict[Hashable, int] = {}  # the card of a device, by what another library calls it

    @cached_property
    def number(self) -> int:
        """The driver's number of the card."""
        return self.info.number

    @cached_property
    def described(self) -> str:
        """The card in messages."""
        return f"card {self.number} ({self.info.name})"

    @abstractmethod
    def program(self, artifact: Artifact) -> CardProgram:
        """What the driver loads of an artifact; raises CodeError."""

    def copy_descriptor(self, array: DescribedArray) -> bytes:
        """What the card's copy engine reads of an array; raises LaunchError."""
        with told("describing an array to the copy engine", self.described), self.driver.on(self.number):
            return self.driver.copy_descriptor(array)

    # -- memory ---------------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """A new allocation; raises LaunchError TFW0348 where the card has no room. Nothing keeps a kernel from writing to
        `readonly` memory, or from reading what nobody wrote."""
        doing = f"{nbytes} bytes" + (f" of '{label}'" if label else "")
        with told(doing, self.described), self.driver.on(self.number):
            address = self.driver.allocate(max(nbytes, 1))
        handle = next(self._handles)
        self._allocations[handle] = Allocation(address, nbytes)
        return handle

    def free(self, handle: int) -> None:
        """End an allocation. A card that has failed keeps it, and is not asked again: who waits for the kernel is told."""
        address = self.allocation(handle).address
        del self._allocations[handle]
        with told("freeing memory", self.described), self.driver.on(self.number):
            try:
                self.driver.free(address)
            except DriverError as error:
                if error.failure != "fault":
                    raise

    def allocation(self, handle: int) -> Allocation:
        """Where an allocation lies; raises LaunchError TFW0341."""
        found = self._allocations.get(handle)
        if found is None:
            raise LaunchError(f"{handle} is not an allocation of {self.described}", code="TFW0341")
        return found

    def write(self, handle: int, data: Any, offset: int = 0, *, stream: int | None = None) -> None:
        """Copy `data` in; with a `stream` behind what it holds, and `data` must stay until the stream was waited for."""
        import numpy as np

        host = memoryview(data).cast("B")
        address = self._range(handle, host.nbytes, offset)
        if host.nbytes:
            place = np.frombuffer(host, np.uint8).ctypes.data  # which reads buffers that ctypes will not have: read-only ones
            with told("copying to the card", self.described), self.driver.on(self.number):
                self.driver.copy_in(address, place, host.nbytes, stream)

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        """Copy `nbytes` bytes out."""
        host = bytearray(nbytes)
        self.read_into(handle, host, offset)
        return bytes(host)

    def read_into(self, handle: int, data: Any, offset: int = 0, *, stream: int | None = None) -> None:
        """Fill writable `data` from an allocation; with a `stream` behind what it holds, and `data` is filled when that was waited
        for."""
        host = memoryview(data).cast("B")
        address = self._range(handle, host.nbytes, offset)
        if host.nbytes:
            place = ctypes.addressof(ctypes.c_char.from_buffer(host))
            with told("copying from the card", self.described), self.driver.on(self.number):
                self.driver.copy_out(place, address, host.nbytes, stream)

    def _range(self, handle: int, nbytes: int, offset: int) -> int:
        found = self.allocation(handle)
        if offset < 0 or nbytes < 0 or offset + nbytes > found.nbytes:
            raise LaunchError(f"a copy of {nbytes} bytes at offset {offset} of an allocation of {found.nbytes}", code="TFW0345")
        return found.address + offset

    def memory_info(self) -> Mapping[str, int]:
        """Bytes of the card's memory, whoever holds them, and the number of allocations made here."""
        with told("asking for memory", self.described), self.driver.on(self.number):
            free, total = self.driver.memory()
        return {"total": total, "used": total - free, "free": free, "allocations": len(self._allocations)}

    # -- code -----------------------------------------------------------------------------------------------------------------

    def load(self, artifact: Artifact) -> CardModule:
        """Load an artifact; raises CodeError TFW0704 for what the driver refuses."""
        program = self.program(artifact)
        with told(f"loading {_names(artifact)}", self.described), self.driver.on(self.number):
            return CardModule(self.driver, self.number, artifact, program)

    def launch(
        self, module: CardModule, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Put a launch on the stream of the options; its completion tells its end. Raises LaunchError."""
        declared = module.entry(entry)
        layout = module.layout(declared, self.address_bits, self.copy_descriptor)
        arguments = layout.pack(args, self._address, self.address_bits, self.name)
        x, y, z = (*grid, 1, 1)[:3]
        return self.ready(module, entry, options)((x, y, z), arguments, options.stream or 0)

    def ready(self, module: CardModule, entry: str, options: LaunchOptions) -> ReadyEntry:
        """`launch` on a stream that the options need not name, of blocks of arguments that are packed. Raises LaunchError."""
        declared = module.entry(entry)
        block = _workgroup_size(declared, options)
        shared = self._dynamic_shared(module, declared, options)
        driver, number, events = self.driver, self.number, self._events
        mine = CardEntry(driver, number, self.described, events, entry, block, module)
        with told(f"finding {entry}", self.described), driver.on(number):
            function = module.function(entry)

        def put(grid: tuple[int, int, int], arguments: bytes, stream: int) -> LaunchReport:
            try:
                before = driver.enter(number)
                try:
                    pair = events.take()
                    try:
                        driver.launch_between(pair, function, grid, block, shared, stream, arguments)
                    except DriverError:
                        events.give_back(pair)
                        raise
                finally:
                    if before is not None:
                        driver.leave(before)
            except DriverError as error:
                raise kernel_error(error, mine.doing(grid), mine.device) from error
            return LaunchReport(completion=CardCompletion(mine, grid, pair))

        return put

    def _address(self, view: BufferView) -> int:
        return self.allocation(view.handle).address + view.offset

    def _dynamic_shared(self, module: CardModule, entry: Entry, options: LaunchOptions) -> int:
        if options.dynamic_shared is not None:
            return options.dynamic_shared
        return max(0, entry.shared_bytes - module.shared.get(entry.name, entry.shared_bytes))

    # -- streams and peers ----------------------------------------------------------------------------------------------------

    def new_stream(self) -> int:
        """A stream of its own, whose launches run beside those of others (`LaunchOptions.stream`)."""
        with told("making a stream", self.described), self.driver.on(self.number):
            return self.driver.new_stream()

    def end_stream(self, stream: int) -> None:
        """Give a stream back."""
        with told("ending a stream", self.described), self.driver.on(self.number):
            self.driver.end_stream(stream)

    def synchronize(self, stream: int | None = None) -> None:
        """Wait for all that a stream holds, or for all that the card does. Raises LaunchError TFW0349 where a kernel failed."""
        with told("waiting", self.described), self.driver.on(self.number):
            if stream is None:
                self.driver.wait_card()
            else:
                self.driver.wait_stream(stream)

    def follow(self, stream: int, others: Iterable[int]) -> None:
        """Let what comes to `stream` from now on begin when all is done that the `others` hold now."""
        with told("ordering streams", self.described), self.driver.on(self.number):
            for other in others:
                events = self._events.take()
                self.driver.record(events[0], other)
                self.driver.order(stream, events[0])
                self._events.give_back(events)

    def owner(self, address: int) -> int | None:
        """The number of the card whose memory an address is; None where it is not a card's."""
        with told("looking for an address", self.described), self.driver.on(self.number):
            return self.driver.owner(address)

    def owners(self, places: Iterable[tuple[int, Hashable]]) -> list[int | None]:
        """`owner` of each address. With each comes what its library calls the device that it is on, or None: the driver is asked
        once for a device that has a card, since launch after launch has arrays on it."""
        places = list(places)
        found = [None if device is None else self._owners.get(device) for _, device in places]
        if None not in found:
            return found
        with told("looking for addresses", self.described), self.driver.on(self.number):
            for index, (address, device) in enumerate(places):
                number = found[index] = self.driver.owner(address)
                if number is not None and device is not None:
                    self._owners[device] = number
        return found

    def holds(self, addresses: Iterable[int]) -> bool:
        """Whether all addresses are in this card's memory."""
        owner, number = self.driver.owner, self.number
        with told("looking for addresses", self.described), self.driver.on(number):
            return all([owner(address) == number for address in addresses])

    def use_peer(self, number: int) -> None:
        """Let kernels of this card access the memory of another. Raises LaunchError TFW0335 where they cannot."""
        if number == self.number or number in self._peers:
            return
        with told(f"access to card {number}", self.described), self.driver.on(self.number):
            if not self.driver.reaches(self.number, number):
                raise LaunchError(
                    f"{self.described} cannot access the memory of card {number}", code="TFW0335",
                    help="move the arrays of a launch to one card",
                )
            self.driver.enable_peer(number)
        self._peers.add(number)


def _names(artifact: Artifact) -> str:
    return ", ".join(entry.name for entry in artifact.entries) or "code"


def _workgroup_size(entry: Entry, options: LaunchOptions) -> tuple[int, int, int]:
    """Threads of a workgroup; an entry that says how many it needs cannot be launched with others."""
    said = entry.workgroup if all(entry.workgroup) else None
    if said is not None and options.block is None:
        return said
    block = options.block or said
    if block is None or not all(block):
        raise LaunchError(
            f"the number of threads of a workgroup of {entry.name} is missing", code="TFW0342",
            help="give `block` in the launch options",
        )
    x, y, z = (*(int(n) for n in block), 1, 1)[:3]
    if said is not None and (x, y, z) != tuple(said):
        raise LaunchError(f"{entry.name} needs workgroups of {said}, not {(x, y, z)} threads", code="TFW0342")
    return x, y, z
