"""Where a chip spills values, and with which instructions it stores and reloads them: a table that a plugin writes.

A value goes to the first slot class of its register class that has room: registers of another file, lanes of a register that has an
element for each lane, and finally memory of the lane (scratch). Allocation writes the spill code; its checker reads it back through
`copied`, which a plugin writes independently of `store` and `load`, so that one can find an error in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilefw.machine.inst import Inst, Reg, Slice

# One smallest register's worth of bits: (file, register, WHOLE), (file, register, lane), or (MEMORY, byte offset, WHOLE).
Location = tuple[str, int, int]
MEMORY = ""  # in a Location, in place of a file: memory of the lane
WHOLE = -1  # in a Location, in place of a lane: the whole register

Transfer = Callable[[Slice, Slice | None, int], Sequence[Inst]]


@dataclass(frozen=True, slots=True)
class SpillSlotClass:
    """One kind of spill slot for the registers of a class.

    `holder`: the class of the registers that are the slots, or MEMORY. `units`: how many smallest registers one holder register
    takes: 1 where one register holds one, the lanes of a wave where wave registers go into lanes, 1 in memory. `cost`: cycles to
    reload a value. `store(value, slot, index)` and `load(value, slot, index)` give the instructions for the slice `value`. Where
    one register holds one, `slot` is a slice of the same width and `index` 0; with several units it is one holder register, and
    `index` the first unit; in memory it is None, and `index` the offset in bytes, a multiple of a register's size.

    `reach`: how many bytes of memory the offset of an access reaches, None for all. Beyond it `slot` is a new register of class
    `pointer`, for the address alone, which `store` and `load` set first by a `cheap` instruction whose one operand is its value.
    """

    holder: str
    units: int
    cost: int
    store: Transfer
    load: Transfer
    reach: int | None = None
    pointer: str = ""


@dataclass(frozen=True)
class SpillModel:
    """The slot classes of each register class, best first.

    `accepts(inst, reg, cls)`: whether the chip has `inst` with every operand of `reg` in class `cls` instead (accumulators of
    matrix instructions, data of memory accesses): a value that is spilled to registers of `cls` needs no reload for it.
    `copied(inst)`: what an instruction on physical registers copies, as (to, from) of each smallest register, if a copy between
    locations is all that it does; None for every other instruction.
    `memory_bytes`: how much memory of a lane the instructions reach, None for all that there is.
    `pointer(inst)`: the register whose value an access of memory adds to the offset that `copied` tells, None where it adds none.
    The checker has to know the constant that it holds.
    """

    slot_classes: Mapping[str, tuple[SpillSlotClass, ...]]
    accepts: Callable[[Inst, Reg, str], bool]
    copied: Callable[[Inst], Sequence[tuple[Location, Location]] | None]
    memory_bytes: int | None = None
    pointer: Callable[[Inst], Slice | None] | None = None
