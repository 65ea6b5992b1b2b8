"""Where a chip's values wait while no register of theirs is free, and by which instructions they come and go: a plugin's table.

A value goes to the first of its class's homes that has room: registers of another file, lanes of a register that has one place for
each lane, and in the end memory of the lane (scratch). Allocation writes these instructions; its checker reads them back by
`copied`, which a plugin writes apart from `store` and `load`, so that one may find the other wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilefw.machine.inst import Inst, Reg, Slice

# One smallest register's worth of bits: (file, register, WHOLE), (file, register, lane), or (MEMORY, byte offset, WHOLE).
Location = tuple[str, int, int]
MEMORY = ""  # in a Location, the place of a file: memory of the lane
WHOLE = -1  # in a Location, the place of a lane: all of the register

Transfer = Callable[[Slice, Slice | None, int], Sequence[Inst]]


@dataclass(frozen=True, slots=True)
class SpillSlotClass:
    """One kind of place for values of a class.

    `holder`: the class of the registers that hold them, or MEMORY. `units`: how many smallest registers one holder register
    takes (1 for a register for a register; the lanes of a wave where wave registers go into lanes); 1 in memory. `cost`: cycles
    until a value is back. `store(value, place, index)` and `load(value, place, index)` give the instructions for the slice
    `value`: of a register for a register `place` is as wide a slice and `index` 0; for units it is one holder register, and
    `index` the first unit; in memory it is None, and `index` the offset in bytes, a multiple of a register's size.
    """

    holder: str
    units: int
    cost: int
    store: Transfer
    load: Transfer


@dataclass(frozen=True)
class SpillModel:
    """The homes of each class, best first.

    `stands(inst, reg, cls)`: whether the chip has `inst` with every operand of `reg` in class `cls` instead (accumulators of
    matrix instructions, data of memory accesses): then a value at home in registers of `cls` need not come back for it.
    `copied(inst)`: what an instruction on physical registers copies, as (to, from) of each smallest register, if a copy between
    locations is all that it does; None for every other instruction.
    `memory_bytes`: how much memory of a lane the instructions reach, None for all that there is.
    """

    homes: Mapping[str, tuple[SpillSlotClass, ...]]
    stands: Callable[[Inst, Reg, str], bool]
    copied: Callable[[Inst], Sequence[tuple[Location, Location]] | None]
    memory_bytes: int | None = None
