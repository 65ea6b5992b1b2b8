"""Data-parallel primitives: a source taken from another lane of the wave (CDNA3 ISA, section "DPP").

A row is 16 lanes, a bank 4. `control` makes from an instruction's modifiers the function that says, for each lane, which lane it
reads and whether there is one. A lane that reads none (beyond its row, or a lane that EXEC disables) gets 0 when `bound_ctrl` is
set, else it is not written; nor is a lane whose row or bank is not in `row_mask` or `bank_mask`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tilefw_amd.chips import WAVE
from tilefw_amd.isa.encoding.modifiers import (
    ROW_BCAST15,
    ROW_BCAST31,
    ROW_HALF_MIRROR,
    ROW_MIRROR,
    ROW_NEWBCAST,
    ROW_ROR,
    ROW_SHL,
    ROW_SHR,
    WAVE_ROL,
    WAVE_ROR,
    WAVE_SHL,
    WAVE_SHR,
)

ROW = 16
ALL = 0xF  # a row_mask or bank_mask that leaves nobody out

Selection = Callable[[Any, Any], tuple[Any, Any]]
"""(lanes, number of the lane) to (lane that is read, predicate whether it lies in reach; None where all do)."""


class Control(NamedTuple):
    """`select` says who reads whom; `zero` what a lane without a source gets; the masks which rows and banks are written."""

    select: Selection
    zero: bool
    row_mask: int
    bank_mask: int

    @property
    def writes_all(self) -> bool:
        return self.zero and self.row_mask == ALL and self.bank_mask == ALL


def control(modifiers: Mapping[str, Any]) -> Control:
    """Of an instruction's modifiers, defaults among them; raises ValueError for a value of `dpp_ctrl` that is not defined."""
    value = modifiers["dpp_ctrl"]
    for first, last, pattern in _PATTERNS:
        if first <= value <= last:
            select = pattern(value - first)
            return Control(select, bool(modifiers["bound_ctrl"]), modifiers["row_mask"], modifiers["bank_mask"])
    raise ValueError(f"dpp_ctrl 0x{value:x} is not defined")


def read(lanes: Any, value: Any, exec_mask: Any, control: Control) -> tuple[Any, Any]:
    """(What each lane reads of a register of 32 bits, predicate which lanes are written; None where all are)."""
    here = lanes.lane_id()
    source, inside = control.select(lanes, here)
    taken = lanes.read_lane(value, source, inactive="value")
    valid = lanes.read_lane(exec_mask, source, inactive="value")
    if inside is not None:
        valid = lanes.and_(valid, inside)
    written = _in_masks(lanes, here, control)
    if control.zero:
        return lanes.select(valid, taken, lanes.const(0, 32)), written
    return taken, valid if written is None else lanes.and_(valid, written)


def _in_masks(lanes: Any, here: Any, control: Control) -> Any:
    """Whether a lane's row and bank are written: bit `lane / 16` of the one mask, bit `lane / 4 mod 4` of the other."""
    found = None
    for mask, low, width in ((control.row_mask, 4, 2), (control.bank_mask, 2, 2)):
        if mask == ALL:
            continue
        place = lanes.and_(lanes.shr(here, lanes.const(low, 32), False), lanes.const((1 << width) - 1, 32))
        inside = lanes.truncate(lanes.shr(lanes.const(mask, 32), place, False), 1)
        found = inside if found is None else lanes.and_(found, inside)
    return found


def _word(lanes: Any, value: int) -> Any:
    return lanes.const(value, 32)


def _quad_perm(packed: int) -> Selection:
    """Two bits for each lane of four: which of them it reads."""

    def select(lanes: Any, here: Any) -> tuple[Any, Any]:
        shift = lanes.shl(lanes.and_(here, _word(lanes, 3)), _word(lanes, 1))
        place = lanes.and_(lanes.shr(_word(lanes, packed), shift, False), _word(lanes, 3))
        return lanes.or_(lanes.and_(here, _word(lanes, ~3)), place), None

    return select


def _row_shift(amount: int, reach: int) -> Selection:
    """Lane i of a row reads lane i + amount of it."""

    def select(lanes: Any, here: Any) -> tuple[Any, Any]:
        source = lanes.add(here, _word(lanes, amount))
        same_row = lanes.compare(lanes.xor(source, here), _word(lanes, reach), "lt", False)
        return source, same_row

    return select


def _row_rotate(amount: int) -> Selection:
    def select(lanes: Any, here: Any) -> tuple[Any, Any]:
        place = lanes.and_(lanes.sub(here, _word(lanes, amount)), _word(lanes, ROW - 1))
        return lanes.or_(lanes.and_(here, _word(lanes, ~(ROW - 1))), place), None

    return select


def _wave_rotate(amount: int) -> Selection:
    def select(lanes: Any, here: Any) -> tuple[Any, Any]:
        return lanes.and_(lanes.add(here, _word(lanes, amount)), _word(lanes, lanes.wave_size - 1)), None

    return select


def _mirror(mask: int) -> Selection:
    """Lanes in reverse order within 16 or 8: the low bits complemented."""
    return lambda lanes, here: (lanes.xor(here, _word(lanes, mask)), None)


def _row_broadcast(last: int) -> Selection:
    """Lane 15 of each row to the row behind it (`last` 15), or lane 31 to the two rows behind it (31)."""

    def select(lanes: Any, here: Any) -> tuple[Any, Any]:
        source = lanes.sub(lanes.and_(here, _word(lanes, ~last)), _word(lanes, 1))
        return source, lanes.compare(here, _word(lanes, last), "gt", False)

    return select


def _new_broadcast(place: int) -> Selection:
    """Lane `place` of each row to the whole row."""
    return lambda lanes, here: (lanes.or_(lanes.and_(here, _word(lanes, ~(ROW - 1))), _word(lanes, place)), None)


# CDNA3 ISA, table "DPP_CTRL", as (first value, last value, pattern of the offset in between): shifts left read the lane above,
# shifts right the lane below. A shift of the wave reaches its 64 lanes, as a row of that size.
_PATTERNS: tuple[tuple[int, int, Callable[[int], Selection]], ...] = (
    (0x000, 0x0FF, _quad_perm),
    (ROW_SHL, ROW_SHL + 15, lambda n: _row_shift(n, ROW)),
    (ROW_SHR, ROW_SHR + 15, lambda n: _row_shift(-n, ROW)),
    (ROW_ROR, ROW_ROR + 15, _row_rotate),
    (WAVE_SHL, WAVE_SHL, lambda _: _row_shift(1, WAVE)),
    (WAVE_ROL, WAVE_ROL, lambda _: _wave_rotate(1)),
    (WAVE_SHR, WAVE_SHR, lambda _: _row_shift(-1, WAVE)),
    (WAVE_ROR, WAVE_ROR, lambda _: _wave_rotate(-1)),
    (ROW_MIRROR, ROW_MIRROR, lambda _: _mirror(ROW - 1)),
    (ROW_HALF_MIRROR, ROW_HALF_MIRROR, lambda _: _mirror(ROW // 2 - 1)),
    (ROW_BCAST15, ROW_BCAST15, lambda _: _row_broadcast(15)),
    (ROW_BCAST31, ROW_BCAST31, lambda _: _row_broadcast(31)),
    (ROW_NEWBCAST, ROW_NEWBCAST + 15, _new_broadcast),
)
