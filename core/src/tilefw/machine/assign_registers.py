"""The pass that puts machine functions onto physical registers: merges copies, allocates, spills, checks what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilefw.machine.allocate import Failure, drop_identities, first_registers, placed_beside_spills, rewrite, too_few
from tilefw.machine.check_allocation import check_allocation, snapshot
from tilefw.machine.coalesce import coalesce
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Reg
from tilefw.machine.live_ranges import LiveRanges
from tilefw.machine.spill_model import SpillModel
from tilefw.machine.table import InstructionTable

_ROUNDS = 24  # of spilling, before a function is refused


@dataclass(frozen=True)
class AssignRegisters(FunctionPass):
    """Gives every value a physical register, and spills what finds none.

    Sets `registers`, `spills` and `scratch_bytes` of the function's attributes. Raises CapacityError (TFW0650).

    `limits`: registers that may be used, by file, where they are fewer than the chip has, and `limited_by` why. `spills`: where
    values go that find no register; without it they are refused. `verify`: an independent checker replays the result. `steps`: by
    file, ascending, the numbers of registers that are worth staying at where no more are live at once.
    """

    name = "assign-registers"
    table: InstructionTable
    limits: Mapping[str, int] | None = None
    spills: SpillModel | None = None
    verify: bool = True
    limited_by: str = ""
    steps: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def run(self, function: Function) -> None:
        assign(function, self.table, self.limits, self.spills, self.verify, self.limited_by, self.steps)


def assign(
    function: Function, table: InstructionTable, limits: Mapping[str, int] | None = None, spills: SpillModel | None = None,
    verify: bool = True, limited_by: str = "", steps: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Rewrite one function onto the physical registers of `table`; raises InternalError when the checker disagrees."""
    before = snapshot(function) if verify else None
    coalesce(function, table)
    chosen = _fit(function, table, limits or {}, spills, limited_by, steps or {})
    function.attributes = replace(function.attributes, registers=rewrite(function, table, chosen))
    drop_identities(function, table)
    if before is not None:
        check_allocation(before, function, table, spills)


def _fit(
    function: Function, table: InstructionTable, limits: Mapping[str, int], spills: SpillModel | None, limited_by: str,
    steps: Mapping[str, Sequence[int]],
) -> dict[Reg, int]:
    """A place for every register, after as much spilling as it takes."""
    ranges = LiveRanges(function, table)
    found = first_registers(function, ranges, table, limits, steps)
    if not isinstance(found, Failure):
        return found
    if spills is None:
        raise too_few(function, found, ranges, table, limits, limited_by)
    from tilefw.machine.spill import MemoryFull, Spiller  # few functions spill

    spiller = Spiller(function, table, spills, limits)
    spare: dict[str, int] = {}
    for _ in range(_ROUNDS):
        try:
            relieved = spiller.relieve(ranges, spare)
            while not relieved and spare.get(found.file, 0) < (table.classes[found.reg.cls].count or 0):
                # Fewer live at once than there are, and yet one finds no room among the others. How many more must go is not
                # known: four times as many each time, as one by one took more rounds than there are.
                spare[found.file] = max(2 * found.reg.width, 4 * spare.get(found.file, 0))
                relieved = spiller.relieve(ranges, spare)
        except MemoryFull as full:
            note = f"{full.bytes} bytes of a lane would wait in memory, where spill code reaches {spills.memory_bytes}"
            raise too_few(function, found, ranges, table, limits, limited_by, note) from None
        if not relieved:
            break
        del ranges  # large, as the next ones are
        ranges = LiveRanges(function, table)
        found = placed_beside_spills(function, ranges, table, limits)
        if not isinstance(found, Failure):
            spilled, scratch_bytes = dict(spiller.spilled), spiller.scratch_bytes
            function.attributes = replace(function.attributes, spills=spilled, scratch_bytes=scratch_bytes)
            return found
    note = "one instruction needs them, or nothing is left that could be spilled"
    raise too_few(function, found, ranges, table, limits, limited_by, note)
