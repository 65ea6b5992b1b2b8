"""The passes of one chip that put waits and pauses in, and the checkers of these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

from tilefw.api.errors import InternalError
from tilefw.api.machine import (
    Function,
    InstructionTable,
    WaitModel,
    check_wait_states,
    check_waits,
    fill_wait_states,
    insert_waits,
)
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine import verify, wait_states, waits
from tilefw_amd.machine.traits import instructions


@dataclass(frozen=True)
class Passes:
    """Those of the chip that `isa` is of."""

    isa: InstructionSet

    @cached_property
    def table(self) -> InstructionTable:
        return instructions(self.isa)

    @cached_property
    def waits(self) -> WaitModel:
        return waits.model(self.isa)

    def insert(self, function: Function) -> int:
        """Waits go in; how many."""
        return insert_waits(function, self.table, self.waits)

    def fill(self, function: Function) -> None:
        """Pauses go in."""
        fill_wait_states(function, self.table, wait_states.model(self.isa))

    def check_waits(self, function: Function) -> None:
        check_waits(function, self.table, partial(verify.seen, self.isa))

    def check_wait_states(self, function: Function) -> None:
        check_wait_states(function, self.table, verify.rules(self.isa))

    def complaint(self, function: Function) -> str:
        """What the checkers complain of; empty when of nothing."""
        try:
            self.check_waits(function)
            self.check_wait_states(function)
        except InternalError as error:
            return str(error)
        return ""
