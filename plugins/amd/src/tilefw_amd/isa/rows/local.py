"""Loads and stores of LDS (CDNA3 ISA, chapter "Data share"): one address, two offsets from one address, addresses by lane.

Addresses are bytes within the workgroup's LDS. Opcodes: `DSInstructions.td`, checked against llvm-mc.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.accesses import (
    SHARED,
    bound,
    lane_address,
    load_extended,
    load_half,
    load_words,
    store_narrow,
    store_words,
    visibility,
)

CHAPTER = Chapter()
row = CHAPTER.row

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

SECTION = "Data share"

_LOADS: tuple[tuple[str, int, str, Any, tuple[Any, ...]], ...] = (
    ("b32", 0x36, "d:b32", load_words, (1,)),
    ("i8", 0x39, "d:b32", load_extended, (8, True)),
    ("u8", 0x3A, "d:b32", load_extended, (8, False)),
    ("i16", 0x3B, "d:b32", load_extended, (16, True)),
    ("u16", 0x3C, "d:b32", load_extended, (16, False)),
    ("u8_d16", 0x56, "+d:b32", load_half, (8, False, False)),
    ("u8_d16_hi", 0x57, "+d:b32", load_half, (8, False, True)),
    ("i8_d16", 0x58, "+d:b32", load_half, (8, True, False)),
    ("i8_d16_hi", 0x59, "+d:b32", load_half, (8, True, True)),
    ("u16_d16", 0x5A, "+d:b32", load_half, (16, False, False)),
    ("u16_d16_hi", 0x5B, "+d:b32", load_half, (16, False, True)),
    ("b64", 0x76, "d:b64", load_words, (2,)),
    ("b96", 0xFE, "d:b96", load_words, (3,)),
    ("b128", 0xFF, "d:b128", load_words, (4,)),
)
_STORES: tuple[tuple[str, int, str, Any, tuple[Any, ...]], ...] = (
    ("b32", 0x0D, "a:b32", store_words, (1,)),
    ("b8", 0x1E, "a:b32", store_narrow, (8, False)),
    ("b16", 0x1F, "a:b32", store_narrow, (16, False)),
    ("b64", 0x4D, "a:b64", store_words, (2,)),
    ("b8_d16_hi", 0x54, "a:b32", store_narrow, (8, True)),
    ("b16_d16_hi", 0x55, "a:b32", store_narrow, (16, True)),
    ("b96", 0xDE, "a:b96", store_words, (3,)),
    ("b128", 0xDF, "a:b128", store_words, (4,)),
)


for _name, _opcode, _operand, _meaning, _variant in _LOADS:
    row(f"ds_read_{_name} {_operand}, [addr]", ds=_opcode, unit="lds", section=SECTION, facts="load")(
        bound(_meaning, SHARED, _variant)
    )
for _name, _opcode, _operand, _meaning, _variant in _STORES:
    row(f"ds_write_{_name} [addr], {_operand}", ds=_opcode, unit="lds", section=SECTION, facts="store")(
        bound(_meaning, SHARED, _variant)
    )


# --- two elements, each at its own offset ---------------------------------------------------------------------------------


def need_two(m: Modifiers) -> None:
    """ValueError where both offsets are the same: the chip makes one access of them (CDNA3 ISA 11.3.1), and what becomes of the
    second result is not said. LLVM never pairs such accesses (SILoadStoreOptimizer.cpp, offsetsCanBeCombined)."""
    if m.offset0 == m.offset1:
        raise ValueError(f"both offsets are {m.offset0}, which makes one access of the two: its second result is not documented")


def _read_two(bits: int, m: Modifiers) -> Any:
    """d = the elements at the two addresses, the first one lowest."""
    need_two(m)
    how = visibility(m)

    def run(lanes: Algebra, at: Any) -> Any:
        (first,), (second,) = (SHARED.read(lanes, one, bits, 1, how) for one in at)
        return lanes.join((first, second)) if bits == 32 else lanes.split(first, 32) + lanes.split(second, 32)

    return run


def _write_two(bits: int, m: Modifiers) -> Any:
    """The element at the first address = a, that at the second = b; a alone where both offsets are the same (CDNA3 ISA 11.3.1)."""
    how, same = visibility(m), m.offset0 == m.offset1

    def run(lanes: Algebra, at: Any, a: Value, b: Value) -> None:
        SHARED.write(lanes, at[0], (a,), bits, how)
        if not same:
            SHARED.write(lanes, at[1], (b,), bits, how)

    return run


for _infix, _stride, _opcodes in (
    ("2", "", (0x37, 0x0E, 0x77, 0x4E)),
    ("2st64", ", dword64 stride", (0x38, 0x0F, 0x78, 0x4F)),
):
    for _bits, _read, _write in ((32, *_opcodes[:2]), (64, *_opcodes[2:])):
        row(f"ds_read{_infix}_b{_bits} d:b{2 * _bits}, [addr]",
            ds=_read, unit="lds", section=SECTION, facts=f"load, two offsets{_stride}")(partial(_read_two, _bits))
        row(f"ds_write{_infix}_b{_bits} [addr], a:b{_bits}, b:b{_bits}",
            ds=_write, unit="lds", section=SECTION, facts=f"store, two offsets{_stride}")(partial(_write_two, _bits))


# --- addresses by lane ------------------------------------------------------------------------------------------------------


@row("ds_read_addtid_b32 d:b32, <m0", ds=0xB6, unit="lds", section=SECTION, facts="load")
def ds_read_addtid_b32(m: Modifiers) -> Any:
    """d = the dword at M0[15:0] + offset + 4 * lane."""
    read = load_words(SHARED, 1, m)
    return lambda lanes, m0: read(lanes, lane_address(lanes, m0, m.offset, m.chip))


@row("ds_write_addtid_b32 a:b32, <m0", ds=0x1D, unit="lds", section=SECTION, facts="store")
def ds_write_addtid_b32(m: Modifiers) -> Any:
    """The dword at M0[15:0] + offset + 4 * lane = a."""
    write = store_words(SHARED, 1, m)
    return lambda lanes, a, m0: write(lanes, lane_address(lanes, m0, m.offset, m.chip), a)


@row("ds_nop", ds=0x14, unit="lds", section=SECTION, without="offset", facts="no gds")
def ds_nop(m: Modifiers) -> Any:
    """Nothing."""
    return lambda lanes: None
