"""Reads of LDS that transpose: `ds_read_b64_tr_b16` and its kin, with which lanes get columns of what was stored by rows.

Each group of 16 lanes reads 16 rows of `count` elements, one at each lane's own address, and shares them out again:

    ds_read_b64_tr_b16: element r of lane j is element j % 4 of what lane 4 * r + j / 4 of the group read

The CDNA4 ISA document, section "MFMA Transpose Load from LDS", says which k the instructions are for, that EXEC must be all ones,
that addresses must be aligned to the size of the data, and that the triple of ds_read_b96_tr_b6 may begin at an odd register. The
exchange for each size of elements is what AMD's rocRoller expects of the chip (`TransposeLoadsTest.cpp`, which wants 16 bytes'
alignment for ds_read_b96_tr_b6); the addresses that Triton 3.9 computes for 16 and 8 bits agree.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tilefw.api.integers import log2
from tilefw.api.sim import BitMap
from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.accesses import SHARED, Visibility, further, visibility

CHAPTER = Chapter()
row = CHAPTER.row

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

SECTION = "Data share"
GROUP = 16
ALIGNMENT = {2: 8, 3: 16}  # of addresses in bytes, by registers


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
        _require_all_lanes(lanes)
        words = _row(lanes, at, registers, how)
        moved = lanes.rearrange(_elements(lanes, words, element_bits, count), 32, exchange)
        words = _words(lanes, moved, element_bits, registers)
        return words if registers > 2 else lanes.join(words)

    return run


def _row(lanes: Algebra, at: Value, registers: int, how: Visibility) -> tuple[Value, ...]:
    """What a lane reads: a row of 64 bits, or of 96 bits from a multiple of 128 on."""
    pair = lanes.load(SHARED.name, at, 32, 2, alignment=ALIGNMENT[registers], **how)
    return pair if registers == 2 else (*pair, *SHARED.read(lanes, further(lanes, at, SHARED.width, 8), 32, 1, how))


def _require_all_lanes(lanes: Algebra) -> None:
    """EXEC is all ones (CDNA4 ISA, "MFMA Transpose Load from LDS")."""
    low, high = lanes.active()
    ones = lanes.const(0xFFFFFFFF, 32)
    whole = lanes.compare(lanes.and_(low, high), ones, "eq", False)
    lanes.require(whole, "a transposing read with an inactive lane: EXEC must be all ones")


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
    # LLVM's class of the triple is AV_96, which begins anywhere, as that of no other tuple of the chip (DSInstructions.td).
    _facts = "load, any first register" if _registers == 3 else "load"
    row(f"ds_read_{_name} d:b{32 * _registers}, [addr]", ds=_opcode, unit="lds", section=SECTION, facts=_facts, since=4)(
        partial(_transposed, _bits, _registers)
    )
