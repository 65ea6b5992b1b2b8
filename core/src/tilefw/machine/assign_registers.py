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
from tilefw.machine.spill_pressure import Crowded
from tilefw.machine.table import InstructionTable

_ROUNDS = 24  # of spilling, before a function is refused
_MANY = 8  # one in so many registers of a file, if free all through a life, could have been enough for it


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
    crowded: dict[str, Crowded] = {}  # while more live at once than there are registers, one that finds none says nothing else
    failures = [found]
    for _ in range(_ROUNDS):
        try:
            relieved = spiller.relieve(ranges, crowded)
            while not relieved and (crowded := _more_crowded(crowded, failures, table)):
                relieved = spiller.relieve(ranges, crowded)
        except MemoryFull as full:
            note = f"{full.bytes} bytes of a lane would wait in memory, where spill code reaches {spills.memory_bytes}"
            raise too_few(function, failures[0], ranges, table, limits, limited_by, note) from None
        if not relieved:
            break
        del ranges  # large, as the next ones are
        ranges = LiveRanges(function, table)
        placed = placed_beside_spills(function, ranges, table, limits)
        if isinstance(placed, dict):
            spilled, scratch_bytes = dict(spiller.spilled), spiller.scratch_bytes
            function.attributes = replace(function.attributes, spills=spilled, scratch_bytes=scratch_bytes)
            return placed
        failures = placed
        crowded = _more_crowded(crowded, failures, table)
    note = "one instruction needs them, or nothing is left that could be spilled"
    raise too_few(function, failures[0], ranges, table, limits, limited_by, note)


def _more_crowded(before: Mapping[str, Crowded], failures: Sequence[Failure], table: InstructionTable) -> dict[str, Crowded]:
    """Where registers found no room among the others, though no more live at once than there are. How many must go there is not
    known: four times as many each time, as one by one took more rounds than there are. Empty where that is more than there are."""
    found: dict[str, Crowded] = {}
    for file in dict.fromkeys(failure.file for failure in failures):
        regs = frozenset(failure.reg for failure in failures if failure.file == file)
        known, count = before.get(file, Crowded(0, frozenset())), table.classes[next(iter(regs)).cls].count or 0
        again = (regs & known.registers) - known.leaving
        if again and known.spare * _MANY >= count:
            found[file] = Crowded(known.spare, regs, again)
        elif known.spare < count:
            found[file] = Crowded(max(2 * max(reg.width for reg in regs), 4 * known.spare), regs)
    return found
