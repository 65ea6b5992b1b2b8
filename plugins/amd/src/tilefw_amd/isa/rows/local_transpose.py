"""Reads of LDS that transpose: `ds_read_b64_tr_b16` and its kin, with which lanes get columns of what was stored by rows.

Each group of 16 lanes reads 16 rows of `count` elements, one at each lane's own address, and shares them out again:

    ds_read_b64_tr_b16: element r of lane j is element j % 4 of what lane 4 * r + j / 4 of the group read

Modular's documentation describes the exchange of 16-bit elements ("a 4x16 tile, a lane gets a column"), and the addresses that
Triton 3.9 computes for 16 and 8 bits agree with the rule. For 4 and 6 bits no public text gives one: they follow the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tilefw.api.integers import log2
from tilefw.api.sim import BitMap
from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.accesses import SHARED, visibility

CHAPTER = Chapter()
row = CHAPTER.row

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

SECTION = "Data share"
GROUP = 16


def _exchange(count: int) -> BitMap:
    """The bits of lane and element after the exchange, by those before it, for rows of `count` elements, one a register."""
    within, across = log2(count), log2(GROUP // count)
    bits = {f"l{i}": f"r{i}" for i in range(within)} | {f"l{within + i}": f"l{i}" for i in range(across)}
    bits |= {f"r{i}": f"l{across + i}" for i in range(within)} | {"l4": "l4", "l5": "l5"}
    return BitMap.of(**bits)


def _transposed(element_bits: int, registers: int, m: Modifiers) -> Any:
    """d = a column of the rows that the group of 16 lanes reads."""
    count = 32 * registers // element_bits
    how, exchange = visibility(m), _exchange(count)

    def run(lanes: Algebra, at: Any) -> Any:
        _require_group(lanes)
        words = SHARED.read(lanes, at, 32, registers, how)
        moved = lanes.rearrange(_elements(lanes, words, element_bits, count), 32, exchange)
        words = _words(lanes, moved, element_bits, registers)
        return words if registers > 2 else lanes.join(words)

    return run


def _require_group(lanes: Algebra) -> None:
    """All lanes of the group are on: what an inactive one gives is not documented."""
    low, high = lanes.active()
    lane = lanes.lane_id()
    half = lanes.select(lanes.compare(lane, lanes.const(32, 32), "lt", False), low, high)
    group = lanes.shr(half, lanes.and_(lane, lanes.const(GROUP, 32)), False)
    all_on = lanes.const((1 << GROUP) - 1, 32)
    whole = lanes.compare(lanes.and_(group, all_on), all_on, "eq", False)
    lanes.require(whole, "a transposing read with an inactive lane in its group of 16")


def _elements(lanes: Algebra, words: tuple[Value, ...], bits: int, count: int) -> tuple[Value, ...]:
    """The elements of a row, each in the low bits of a register."""
    mask, found = lanes.const((1 << bits) - 1, 32), []
    for index in range(count):
        word, place = divmod(index * bits, 32)
        value = words[word] if not place else lanes.shr(words[word], lanes.const(place, 32), False)
        if place + bits > 32:
            value = lanes.or_(value, lanes.shl(words[word + 1], lanes.const(32 - place, 32)))
        found.append(lanes.and_(value, mask))
    return tuple(found)


def _words(lanes: Algebra, elements: tuple[Value, ...], bits: int, registers: int) -> tuple[Value, ...]:
    """Elements packed into registers again."""
    words = [lanes.const(0, 32)] * registers
    for index, element in enumerate(elements):
        word, place = divmod(index * bits, 32)
        words[word] = lanes.or_(words[word], lanes.shl(element, lanes.const(place, 32)))
        if place + bits > 32:
            words[word + 1] = lanes.or_(words[word + 1], lanes.shr(element, lanes.const(32 - place, 32), False))
    return tuple(words)


# End of the mnemonic, opcode, bits of an element, registers.
TRANSPOSING = (("b64_tr_b16", 0xE3, 16, 2), ("b64_tr_b8", 0xE2, 8, 2), ("b96_tr_b6", 0xE1, 6, 3), ("b64_tr_b4", 0xE0, 4, 2))
for _name, _opcode, _bits, _registers in TRANSPOSING:
    # The triple of 6-bit elements is LLVM's AV_96, which begins anywhere, as no other tuple of the chip (DSInstructions.td).
    _facts = "load, any first register" if _registers == 3 else "load"
    row(f"ds_read_{_name} d:b{32 * _registers}, [addr]", ds=_opcode, unit="lds", section=SECTION, facts=_facts, since=4)(
        partial(_transposed, _bits, _registers)
    )
