"""What a vendor's driver does for a card, in words that all vendors share; a plugin implements it over its library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tilefw.api.device import DescribedArray


@dataclass(frozen=True, slots=True)
class CardInfo:
    """One card as the driver lists it: its `number`, the product's `name`, its `chip` as `TargetInfo.chip` spells chips, its
    memory."""

    number: int
    name: str
    chip: str
    memory_bytes: int

    def __str__(self) -> str:
        return f"{self.number}: {self.name}, {self.chip}, {self.memory_bytes >> 30} GiB"


class _OnCard:
    """`Driver.on`. A generator would take three times as long."""

    __slots__ = ("_before", "_driver", "_number")

    def __init__(self, driver: Driver, number: int) -> None:
        self._driver, self._number = driver, number

    def __enter__(self) -> None:
        self._before = self._driver.enter(self._number)

    def __exit__(self, *raised: object) -> None:
        if self._before is not None:
            self._driver.leave(self._before)


class Driver(ABC):
    """A driver. Addresses, and the handles of modules, functions, streams and events, are whole numbers as the library gives them;
    stream 0 is its default stream.

    Every method but `cards` and `current` acts on the card that is current in the calling thread, which `on` sets. A method whose
    function fails raises DriverError.
    """

    @abstractmethod
    def cards(self) -> Sequence[CardInfo]:
        """All cards that the driver has, in order of their numbers, from 0."""

    @abstractmethod
    def current(self) -> int:
        """The number of the card that is current in this thread."""

    @abstractmethod
    def make_current(self, number: int) -> None:
        """Make a card current in this thread."""

    def copy_descriptor(self, array: DescribedArray) -> bytes:
        """What the copy engine of a card reads of an array, for drivers of cards with such engines."""
        raise NotImplementedError(f"{type(self).__name__} describes no arrays to copy engines")

    def on(self, number: int) -> AbstractContextManager[None]:
        """A block in which a card is current; the one before is current again behind it, since other libraries rely on theirs."""
        return _OnCard(self, number)

    def enter(self, number: int) -> int | None:
        """Make a card current; what `leave` makes current again, None where it was current."""
        before = self.current()
        if before == number:
            return None
        self.make_current(number)
        return before

    def leave(self, before: int) -> None:
        """What `enter` gave is current again."""
        self.make_current(before)

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """The address of `nbytes` new bytes on the current card. Raises DriverError where there are too few."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Give memory back; what runs on the card ends before."""

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """(Free, total) bytes of the current card's memory."""

    @abstractmethod
    def copy_in(self, address: int, host: int, nbytes: int, stream: int | None = None) -> None:
        """Copy host memory to the card's: at once behind all that runs on the default stream, or behind what `stream` holds; then
        the host memory must stay until the stream was waited for."""

    @abstractmethod
    def copy_out(self, host: int, address: int, nbytes: int, stream: int | None = None) -> None:
        """Copy the card's memory to the host's, as `copy_in`."""

    @abstractmethod
    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy between memory of cards, behind what `stream` holds."""

    @abstractmethod
    def owner(self, address: int) -> int | None:
        """The number of the card in whose memory an address lies; None for one that no card has."""

    @abstractmethod
    def load(self, image: bytes) -> int:
        """The handle of a module of machine code, loaded on the current card from `image`, a whole file. Raises DriverError."""

    @abstractmethod
    def unload(self, module: int) -> None:
        """Give a module back."""

    @abstractmethod
    def function(self, module: int, name: str) -> int:
        """The handle of a module's entry `name`. Raises DriverError where there is none."""

    @abstractmethod
    def prepare(
        self, function: int, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, stream: int, arguments: bytes
    ) -> Callable[[], None]:
        """A call that launches workgroups of `block` threads over `grid`, with `shared` bytes of shared memory beside the code's
        own. All that can be done before it is done here: the call stands between two events that tell its time. It is made in this
        thread, before the thread prepares another one."""

    def launch_between(
        self, events: tuple[int, int], function: int, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
        stream: int, arguments: bytes,
    ) -> None:
        """What `prepare` gives, called between two events. Every launch does this: a driver may do it in fewer steps."""
        go = self.prepare(function, grid, block, shared, stream, arguments)
        self.record(events[0], stream)
        go()
        self.record(events[1], stream)

    @abstractmethod
    def new_stream(self) -> int:
        """The handle of a stream on the current card that runs beside the default stream."""

    @abstractmethod
    def end_stream(self, stream: int) -> None:
        """Give a stream back when its work is done."""

    @abstractmethod
    def wait_stream(self, stream: int) -> None:
        """Wait for all that a stream holds."""

    @abstractmethod
    def wait_card(self) -> None:
        """Wait for all that the card does."""

    @abstractmethod
    def new_event(self) -> int:
        """The handle of an event that records when it happens."""

    @abstractmethod
    def end_event(self, event: int) -> None:
        """Give an event back."""

    @abstractmethod
    def record(self, event: int, stream: int) -> None:
        """Let an event happen when all that the stream holds now is done."""

    @abstractmethod
    def happened(self, event: int) -> bool:
        """Whether an event has happened; does not wait."""

    @abstractmethod
    def wait_event(self, event: int) -> None:
        """Wait until an event has happened."""

    @abstractmethod
    def order(self, stream: int, event: int) -> None:
        """Let what comes to the stream from now on begin when the event has happened."""

    @abstractmethod
    def seconds(self, start: int, end: int) -> float:
        """The seconds from one event to another by the card's clock. Both must have happened."""

    @abstractmethod
    def reaches(self, number: int, peer: int) -> bool:
        """Whether one card can access the memory of another."""

    @abstractmethod
    def enable_peer(self, peer: int) -> None:
        """Let the current card access a peer's memory; a second time changes nothing."""
