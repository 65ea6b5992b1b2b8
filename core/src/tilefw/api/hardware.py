"""What a plugin makes an executor of real hardware with: a card behind a vendor's driver library, or the processor of the host.

For a card a plugin writes an `Interface` of the library, a `Driver` that calls its functions, a `CardSearch` that says which cards
run a target's code, and a `Card` that says what the driver loads of an artifact; `Backend.device` gives the card. Core does the
rest: memory by handles, launches between events, streams, peers, errors. For code of the host's own processor a plugin writes a
`ProcessorDevice`, which says how an artifact's code is loaded.
"""

from tilefw.hardware.card import Allocation, Card, CardModule, CardProgram
from tilefw.hardware.driver import CardInfo, Driver
from tilefw.hardware.failures import DriverError, Failure
from tilefw.hardware.library import DriverLibrary, Interface, LaunchBlock, TakenBlock, find
from tilefw.hardware.processor_device import (
    LOOKING,
    TRAPS,
    HeldMemory,
    ProcessorChecks,
    ProcessorCode,
    ProcessorDevice,
    ProcessorModule,
)
from tilefw.hardware.ready_entry import ReadyEntry
from tilefw.hardware.search import CardSearch
from tilefw.hardware.shared_library import SharedLibrary
from tilefw.hardware.traps import Trap, metadata_of

__all__ = [
    "Allocation", "Card", "CardInfo", "CardModule", "CardProgram", "CardSearch", "Driver", "DriverError", "DriverLibrary",
    "Failure", "HeldMemory", "Interface", "LOOKING", "LaunchBlock", "ProcessorChecks", "ProcessorCode", "ProcessorDevice",
    "ProcessorModule", "ReadyEntry", "SharedLibrary", "TRAPS", "TakenBlock", "Trap", "find", "metadata_of",
]
