"""What a plugin makes an executor of a real chip with: a driver over its vendor's library, opened with ctypes, and a card over
that.

A plugin writes an `Interface` of its library, a `Driver` that calls its functions, a `CardSearch` that says which cards run a
target's code, and a `Card` that says what the driver loads of an artifact; `Backend.device` gives the card. Core does the rest:
memory by handles, launches between events, streams, peers, errors.
"""

from tilefw.argument_block import BlockLayout
from tilefw.hardware.card import Allocation, Card, CardModule, CardProgram
from tilefw.hardware.driver import CardInfo, Driver
from tilefw.hardware.failures import DriverError, Failure
from tilefw.hardware.library import DriverLibrary, Interface, find
from tilefw.hardware.search import CardSearch

__all__ = [
    "Allocation", "BlockLayout", "Card", "CardInfo", "CardModule", "CardProgram", "CardSearch", "Driver", "DriverError",
    "DriverLibrary", "Failure", "Interface", "find",
]
