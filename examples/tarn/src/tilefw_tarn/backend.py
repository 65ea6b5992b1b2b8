"""The backend: the kit writes tile IR as text of the Tarn N1, and its simulator runs that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilefw.api import Device
from tilefw.api.sim import TextBackend, TextTable

if TYPE_CHECKING:
    from tilefw_tarn.writer import TarnWriter


class TarnBackend(TextBackend):
    """Compiles for the Tarn N1; what the simulator loads is the text."""

    format = "tarn"

    @property
    def table(self) -> TextTable:
        from tilefw_tarn.isa import TABLE

        return TABLE

    def machine(self) -> Callable[[], TarnWriter]:
        from tilefw_tarn.writer import TarnWriter

        return TarnWriter

    def simulator(self) -> Device:
        from tilefw_tarn.simulate import TarnSimulator

        return TarnSimulator(self.target.name)
