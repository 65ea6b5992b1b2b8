"""What the driver libraries of all vendors do alike, on our simulator: memory, streams, events, peers, a launch on a stream.

Status codes are CUDA's, which HIP took over (`cuda.h`, CUresult; `hip_runtime_api.h`, hipError_t).
"""

from __future__ import annotations

import bisect
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from oracles.standin.server import Process, StandIn
from oracles.standin.streams import Event, StatusError, Stream
from tilefw.api import DEFAULT_CHECKS, LaunchOptions
from tilefw.api.errors import LaunchError

INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE, INVALID_DEVICE, NO_BINARY, INVALID_HANDLE = 1, 2, 100, 101, 209, 400
NOT_FOUND, NOT_READY, ILLEGAL_ADDRESS, PEER_ALREADY_ENABLED, LAUNCH_FAILURE = 500, 600, 700, 704, 719
TO_CARD, TO_HOST, BETWEEN_CARDS = 1, 2, 3
NANOSECOND = 1e-9  # what a stand-in's card takes for an instruction


class CardRuntime(ABC):
    """The library of one process, without the functions' names. `simulator` is a simulated device whose attribute `given` is the
    argument block of the launch to come; None where none of the cards is of a chip that the plugin has."""

    def __init__(self, standin: StandIn, process: Process, simulator: Any) -> None:
        self.standin, self.process, self.thread = standin, process, 0
        self.simulator = simulator
        self.allocations: dict[int, tuple[int, int, int]] = {}  # address: (handle, bytes, card)
        self.objects: dict[int, Any] = {}  # modules, functions, streams, events by handle
        self.default = [Stream(card) for card in range(len(standin.cards))]
        self.clock = [0.0] * len(standin.cards)
        self.enabled: set[tuple[int, int]] = set()
        self.failed = 0

    @property
    @abstractmethod
    def card(self) -> int:
        """The card that is current in the calling thread."""

    # -- words and handles ----------------------------------------------------------------------------------------------------

    def out(self, place: int, form: str, value: Any) -> None:
        self.process.write(place, struct.pack("<" + form, value))

    def keep(self, thing: Any) -> int:
        handle = 0x10000 + 16 * len(self.objects)
        self.objects[handle] = thing
        return handle

    def found(self, handle: int, kind: type) -> Any:
        thing = self.objects.get(handle)
        if not isinstance(thing, kind):
            raise StatusError(INVALID_HANDLE)
        return thing

    def end(self, handle: int, kind: type) -> None:
        self.found(handle, kind)
        self.objects[handle] = None

    # -- memory ---------------------------------------------------------------------------------------------------------------

    def allocate(self, place: int, size: int) -> None:
        self.check()
        free, _ = self.memory()
        if size > free:
            raise StatusError(OUT_OF_MEMORY)
        handle = self.simulator.allocate(size)
        address = self.simulator._memory.region(handle).base
        self.allocations[address] = handle, size, self.card
        self.out(place, "Q", address)

    def free(self, address: int) -> None:
        self.finish()
        if address not in self.allocations:
            raise StatusError(INVALID_VALUE)
        self.simulator.free(self.allocations.pop(address)[0])

    def memory(self) -> tuple[int, int]:
        """(Free, all) bytes of the current card."""
        size = self.standin.cards[self.card].memory_bytes
        return size - sum(nbytes for _, nbytes, card in self.allocations.values() if card == self.card), size

    def region(self, address: int) -> tuple[int, int]:
        """(Base address, offset) of the allocation around an address."""
        bases = sorted(self.allocations)
        at = bisect.bisect_right(bases, address) - 1
        if at < 0 or address >= bases[at] + max(1, self.allocations[bases[at]][1]):
            raise StatusError(INVALID_VALUE)
        return bases[at], address - bases[at]

    def owner(self, address: int) -> int:
        """The card in whose memory an address is."""
        return self.allocations[self.region(address)[0]][2]

    def copy_now(self, target: int, source: int, size: int, kind: int) -> None:
        self.finish(self.default[self.card])
        self.copy(target, source, size, kind)

    def copy_later(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        self.check()
        self.stream(stream).put(lambda: self.copy(target, source, size, kind))

    def copy(self, target: int, source: int, size: int, kind: int) -> None:
        if kind == TO_CARD:
            data = self.process.read(source, size)
        else:
            base, offset = self.region(source)
            data = self.simulator.read(self.allocations[base][0], size, offset)
        if kind == TO_HOST:
            self.process.write(target, data)
        else:
            base, offset = self.region(target)
            self.simulator.write(self.allocations[base][0], data, offset)

    # -- launches -------------------------------------------------------------------------------------------------------------

    def block(self, extra: int, keys: tuple[int, int, int]) -> bytes:
        """The argument block of the `extra` array, whose entries have these keys."""
        words = struct.unpack("<5Q", self.process.read(extra, 40))
        if (words[0], words[2], words[4]) != keys:
            raise StatusError(INVALID_VALUE)
        (size,) = struct.unpack("<Q", self.process.read(words[3], 8))
        return self.process.read(words[1], size)

    def launch(
        self, loaded: Any, entry: str, grid: Sequence[int], block: Sequence[int], shared: int, stream: int, given: bytes,
        pointers: Sequence[int],
    ) -> None:
        """Put a launch on a stream; its argument block has pointers at these offsets."""
        card = self.card
        x, y, z = block
        options = LaunchOptions(block=(x, y, z), dynamic_shared=shared, checks=DEFAULT_CHECKS, numerics="hw")
        addresses = [int.from_bytes(given[offset : offset + 8], "little") for offset in pointers]
        self.stream(stream).put(lambda: self._execute(loaded, entry, grid, options, given, addresses, card))

    def _execute(
        self, loaded: Any, entry: str, grid: Sequence[int], options: LaunchOptions, given: bytes, addresses: Sequence[int],
        card: int,
    ) -> None:
        if self.failed:
            return
        if any(self._unreachable(address, card) for address in addresses):
            self.failed = ILLEGAL_ADDRESS
            return
        self.simulator.given = given
        try:
            report = self.simulator.launch(loaded, entry, grid, (), options)
        except LaunchError as error:
            self.standin.problems.append(error.message)
            self.failed = LAUNCH_FAILURE
            return
        self.clock[card] += report.counters.get("instructions", 0) * NANOSECOND
        if report.errors:
            self.standin.problems += [f"{finding.check}: {finding.message}" for finding in report.errors]
            self.failed = ILLEGAL_ADDRESS if report.errors[0].check == "bounds" else LAUNCH_FAILURE

    def _unreachable(self, address: int, card: int) -> bool:
        """Whether an address is in memory of another card that is not a peer."""
        owner = next((c for base, (_, size, c) in self.allocations.items() if base <= address < base + max(1, size)), card)
        return owner != card and (card, owner) not in self.enabled

    # -- streams, events, peers -----------------------------------------------------------------------------------------------

    def stream(self, handle: int) -> Stream:
        return self.found(handle, Stream) if handle else self.default[self.card]

    def streams(self) -> list[Stream]:
        return [*self.default, *(one for one in self.objects.values() if isinstance(one, Stream))]

    def finish(self, stream: Stream | None = None) -> None:
        """Do the work of a stream, or of all; a card that has failed says so from then on."""
        for one in self.streams() if stream is None else [stream]:
            one.run()
        self.check()

    def check(self) -> None:
        if self.failed:
            raise StatusError(self.failed)

    def new_stream(self, place: int) -> None:
        self.out(place, "Q", self.keep(Stream(self.card)))

    def end_stream(self, stream: int) -> None:
        self.finish(self.found(stream, Stream))
        self.end(stream, Stream)

    def wait_event_on(self, stream: int, event: int) -> None:
        found = self.found(event, Event)
        # The record that stands now counts, not one that comes later.
        before, place = found.stream, found.place
        self.stream(stream).put(lambda: before.run(place) if before is not None else None)

    def new_event(self, place: int) -> None:
        self.out(place, "Q", self.keep(Event(self.card)))

    def record(self, event: int, stream: int) -> None:
        self.check()
        found, queue = self.found(event, Event), self.stream(stream)
        if found.card != queue.card:
            raise StatusError(INVALID_HANDLE)
        found.record(queue, lambda: self.clock[queue.card])

    def query(self, event: int) -> int:
        self.check()
        found = self.found(event, Event)
        return NOT_READY if found.stream is not None and found.stream.done < found.place else 0

    def wait_event(self, event: int) -> None:
        self.found(event, Event).wait()
        self.check()

    def elapsed(self, place: int, start: int, end: int) -> None:
        first, last = self.found(start, Event), self.found(end, Event)
        if first.time is None or last.time is None:
            raise StatusError(NOT_READY)
        self.out(place, "f", 1000 * (last.time - first.time))

    def can_access(self, place: int, card: int, peer: int) -> None:
        self.out(place, "i", int(peer in self.standin.cards[card].peers))

    def enable_peer(self, peer: int, flags: int) -> int:
        if flags or peer not in self.standin.cards[self.card].peers:
            raise StatusError(INVALID_DEVICE)
        pair = self.card, peer
        status = PEER_ALREADY_ENABLED if pair in self.enabled else 0
        self.enabled.add(pair)
        return status

    def text(self, place: int, words: str) -> None:
        self.process.write(place, words.encode() + b"\0")
