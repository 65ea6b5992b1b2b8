"""Which card of this machine runs a target's code, and what the machine lacks for that, in the order in which it is looked for: the
driver's library, its version, cards, their chip."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from tilefw.api.device import Requirement
from tilefw.api.errors import UnsupportedError
from tilefw.api.target import TargetInfo
from tilefw.hardware.driver import CardInfo, Driver
from tilefw.hardware.failures import DriverError

D = TypeVar("D", bound=Driver)


class CardSearch(ABC, Generic[D]):
    """The search for one target. `product` is what a vendor's library belongs to; `chip` is the target's, as its cards are called;
    `first` is the product's first version, major and minor, that runs its code."""

    product: str
    unlike = "is not"
    """What a card that does not run the code does, before the chip's name."""

    def __init__(self, target: TargetInfo, chip: str, first: tuple[int, int]) -> None:
        self.target, self.chip, self.first = target, chip, first

    @abstractmethod
    def open(self) -> tuple[D, tuple[int, ...], str]:
        """The driver, its version, its library's path. Raises UnsupportedError."""

    @abstractmethod
    def too_old(self, version: tuple[int, ...], path: str) -> UnsupportedError:
        """The error for a version before `first`."""

    @abstractmethod
    def misfit(self, card: CardInfo) -> tuple[str, str]:
        """That this card does not run the code, and what helps."""

    @abstractmethod
    def hidden(self) -> str:
        """What hides a card most often."""

    def runs(self, card: CardInfo) -> bool:
        """Whether a card runs the code."""
        return card.chip == self.chip

    def chosen(self, number: int | None = None) -> tuple[D, CardInfo]:
        """The driver, and the card of that number, or the first one of the target's chip, else the first that runs its code.

        Raises UnsupportedError: those of `open` and `too_old`, TFW0606 without a card (or that card), TFW0607 for a card that does
        not run the code.
        """
        driver, version, path = self.open()
        if version[:2] < self.first:
            raise self.too_old(version, path)
        cards = self._cards(driver)
        if number is not None and number >= len(cards):
            raise self._no_card(f"there is no card {number}", cards)
        if not cards:
            raise self._no_card(f"the {self.product} finds no card", cards)
        best = min(cards, key=lambda card: (not self.runs(card), card.chip != self.chip))
        card = best if number is None else cards[number]
        if not self.runs(card):
            message, help = self.misfit(card)
            raise UnsupportedError(message, code="TFW0607", note=_shown(cards), help=help)
        return driver, card

    def requirements(self) -> Iterator[Requirement]:
        """What the search needs, each up to the first that is not met."""
        try:
            driver, version, path = self.open()
        except UnsupportedError as error:
            yield Requirement(self.product, False, _told(error))
            return
        text = f"{_dotted(version)} at {path}"
        if version[:2] < self.first:
            yield Requirement(self.product, False, f"{text}; {self.chip} needs {_dotted(self.first)} or newer")
            return
        yield Requirement(self.product, True, text)
        try:
            cards = self._cards(driver)
        except UnsupportedError as error:
            yield Requirement("card", False, _told(error))
            return
        if not cards:
            yield Requirement("card", False, f"none; {self.hidden()}")
        yield from map(self._requirement, cards)

    def _requirement(self, card: CardInfo) -> Requirement:
        fits = self.runs(card)
        text = f"{card.name}, {card.chip}" + ("" if fits else f", which {self.unlike} {self.chip}")
        return Requirement(f"card {card.number}", fits, text)

    def _cards(self, driver: D) -> Sequence[CardInfo]:
        try:
            return driver.cards()
        except DriverError as error:
            message = f"the {self.product} does not start: {error}"
            raise UnsupportedError(message, code="TFW0606", help=self.hidden()) from None

    def _no_card(self, message: str, cards: Sequence[CardInfo]) -> UnsupportedError:
        return UnsupportedError(message, code="TFW0606", note=_shown(cards) if cards else None, help=self.hidden())


def _shown(cards: Sequence[CardInfo]) -> str:
    return "cards:\n" + "\n".join(map(str, cards))


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _told(error: UnsupportedError) -> str:
    return error.message + (f"; {error.help}" if error.help else "")
