"""Memory: global by vector address or by scalar base and 32-bit offset, through a buffer descriptor where there is a limit, LDS,
and scalar loads of what all lanes read alike.

CDNA3 ISA, chapters "Vector memory operations", "Flat memory instructions", "Data share", "Scalar memory operations". Cache
hints: LLVM's AMDGPUUsage, "Memory Model gfx942": volatile accesses are of the system's scope (sc0 sc1), nontemporal ones have nt.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api import Parameter
from tilefw.api.integers import ceil_div
from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Code, Const, Element, FragmentAccess, LaneAccess
from tilefw_amd import abi
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.select.operands import in_vector, instruction_set_of, scalar, scalar_constant, vector_constant
from tilefw_amd.select.packing import in_scalars

# How wide an access is, in bits, to how opcodes say it.
_GLOBAL_LOADS = {8: "ubyte", 16: "ushort", 32: "dword", 64: "dwordx2", 96: "dwordx3", 128: "dwordx4"}
_GLOBAL_STORES = _GLOBAL_LOADS | {8: "byte", 16: "short"}
_LOCAL_LOADS = {8: "u8", 16: "u16", 32: "b32", 64: "b64", 96: "b96", 128: "b128"}
_LOCAL_STORES = _LOCAL_LOADS | {8: "b8", 16: "b16"}
_SCALAR_LOADS = {32: "dword", 64: "dwordx2", 128: "dwordx4", 256: "dwordx8", 512: "dwordx16"}

_WORD = 32
_WIDTHS = (32, 64, 128)
_GLOBAL_VERBS = tuple(f"{kind}_{verb}_" for kind in ("global", "buffer") for verb in ("load", "store"))
_HINTS = {".cs": ("nt",), ".cv": ("sc0", "sc1"), ".wt": ("sc0", "sc1"), "evict_first": ("nt",)}


@dataclass(frozen=True, slots=True)
class _Offsets:
    """The constants that an instruction adds to an address, from `low` on, below `high`."""

    low: int
    high: int

    def split(self, immediate: int) -> tuple[int, int]:
        """What goes into the address, the same for neighbours, and what into the instruction."""
        if self.low <= immediate < self.high:
            return 0, immediate
        return immediate - immediate % self.high, immediate % self.high


# CDNA3 ISA: FLAT "OFFSET" 13 bits with a sign, MUBUF "OFFSET" 12 bits, DS "OFFSET" 16 bits, SMEM "OFFSET" 21 bits with a sign.
_GLOBAL, _BUFFER, _LOCAL, _SCALAR = _Offsets(-4096, 4096), _Offsets(0, 4096), _Offsets(0, 1 << 16), _Offsets(0, 1 << 20)
# The last word of a buffer descriptor: its data format is of 32 bits, which raw accesses ignore (LLVM, SIInstrInfo.cpp,
# getDefaultRsrcDataFormat: RSRC_DATA_FORMAT of gfx9).
_RAW_BUFFER = 0x00027000
_HIGH_ADDRESS = 0xFFFF  # of a descriptor's second word, below the stride
_ALL = Const("i32", (1 << _WORD) - 1)  # a limit that no offset reaches


def global_bytes(isa: InstructionSet) -> int:
    """How wide an access of global memory is at most: as far as the chip has every load and store."""
    return _widest(isa, _GLOBAL_LOADS, *_GLOBAL_VERBS)


def shared_bytes(isa: InstructionSet) -> int:
    """The same of LDS."""
    return _widest(isa, _LOCAL_LOADS, "ds_read_", "ds_write_")


def scalar_words(isa: InstructionSet) -> int:
    """How many words a scalar load has at most."""
    served = itertools.takewhile(lambda bits: f"s_load_{_SCALAR_LOADS[bits]}" in isa.rows, _SCALAR_LOADS)
    return max(served, default=_WORD) // _WORD


def _widest(isa: InstructionSet, words: Mapping[int, str], *verbs: str) -> int:
    served = itertools.takewhile(lambda bits: all(f"{verb}{words[bits]}" in isa.rows for verb in verbs), _WIDTHS)
    return min(max(served, default=_WORD) // 8, isa.chip.access_bytes)


def load(code: Code, access: LaneAccess) -> None:
    """Read into `access.registers`; into scalar ones once for all lanes."""
    registers = access.registers
    if not code.uniform(*registers):
        _load(code, access, _together(registers))
    elif _by_scalars(code, access):
        base, offset = _scalar_address(code, access)
        opcode = f"s_load_{_SCALAR_LOADS[_bits(access)]}"
        code.effect(opcode, [_together(registers)], [base, offset], buffer=access.buffer)
    else:
        _load_for_all(code, access)


def store(code: Code, access: LaneAccess) -> None:
    """Write `access.registers`."""
    data, half = _stored(code, access)
    bits = _bits(access)
    if access.space == "shared":
        place, names = _local_address(code, access)
        opcode, uses = f"ds_write_{_LOCAL_STORES[bits]}", [place, data, *names]
    else:
        kind, address, names = _global_address(code, access)
        where = [data, *address] if kind == "buffer" else [address[0], data, *address[1:]]
        opcode, uses = f"{kind}_store_{_GLOBAL_STORES[bits]}", [*where, *names, *_hints(access)]
    code.effect(opcode + half, (), uses, predicate=access.predicate, buffer=access.buffer, volatile=_volatile(access))


def _stored(code: Code, access: LaneAccess) -> tuple[Slice, str]:
    """What a store takes, and how its opcode ends: an element that was taken from the high half of a register is stored from
    there."""
    first, *more = access.registers
    if not more and isinstance(first, Slice) and first.reg.cls == "v":
        register, index = code.parts.get((first, access.bits), (first, 0))
        if index * access.bits == _WORD // 2 and _stores_high_halves(instruction_set_of(code), access):
            return register, "_d16_hi"
    return code.tuple(access.registers, "v"), ""


def _stores_high_halves(isa: InstructionSet, access: LaneAccess) -> bool:
    if access.space == "shared":
        return f"ds_write_{_LOCAL_STORES[access.bits]}_d16_hi" in isa.rows
    return all(f"{kind}_store_{_GLOBAL_STORES[access.bits]}_d16_hi" in isa.rows for kind in ("global", "buffer"))


def _load(code: Code, access: LaneAccess, registers: Slice) -> None:
    bits = _bits(access)
    if access.space == "shared":
        place, names = _local_address(code, access)
        opcode, uses = f"ds_read_{_LOCAL_LOADS[bits]}", [place, *names]
    else:
        kind, address, names = _global_address(code, access)
        opcode, uses = f"{kind}_load_{_GLOBAL_LOADS[bits]}", [*address, *names, *_hints(access)]
    code.effect(opcode, [registers], uses, predicate=access.predicate, buffer=access.buffer, volatile=_volatile(access))


def load_transposed(code: Code, access: FragmentAccess) -> None:
    """A read of LDS that transposes."""
    more, offset = _LOCAL.split(access.immediate)
    place = _vector(code, code("addi.i32", access.address, code.i32(more)))
    code.effect(access.load, [_together(access.registers)], [place, *_offset(offset)], buffer=access.buffer)


def _load_for_all(code: Code, access: LaneAccess) -> None:
    """What every lane reads alike, read by the vector unit and taken from the first lane."""
    listed = access.registers
    wide = "w64" if access.bits == 64 else "w32"
    vectors = code.new_registers(wide, len(listed))
    if access.predicate is not None:
        for vector, register in zip(vectors, listed, strict=True):
            code.chip.move(code, vector, register)
    _load(code, access, _together(vectors))
    for vector, register in zip(vectors, listed, strict=True):
        code.chip.move(code, register, vector)  # type: ignore[arg-type]


def _bits(access: LaneAccess) -> int:
    return access.bits * len(access.registers)


def _together(registers: Any) -> Slice:
    """The registers of one load, which stand in order in one register, as one slice."""
    first = registers[0]
    return first.reg.slice(first.first, sum(r.count for r in registers))


def _volatile(access: LaneAccess) -> bool:
    """Whether memory is asked each time, in order: `.cv` is "don't cache, fetch again"."""
    return access.volatile or access.cache == ".cv"


def _hints(access: LaneAccess) -> tuple[str, ...]:
    return ("sc0", "sc1") if access.volatile else hints(access.cache, access.eviction)


def hints(cache: str, eviction: str) -> tuple[str, ...]:
    """The modifiers for what a kernel says of caches."""
    return _HINTS.get(cache, _HINTS.get(eviction, ()))


# --- addresses -----------------------------------------------------------------------------------------------------------------


def _local_address(code: Code, access: LaneAccess) -> tuple[Operand, list[Operand]]:
    more, offset = _LOCAL.split(access.immediate)
    address = code("addi.i32", access.address, code.i32(more))
    return _vector(code, address), _offset(offset)


def _global_address(code: Code, access: LaneAccess) -> tuple[str, list[Operand], list[Operand]]:
    """What kind of instruction it is, its address, and modifiers.

    With a base, in loops and branches: through a descriptor as well, for which two more scalar instructions are needed. LLVM's
    models of gfx9 have what waits for LDS wait for global loads too (FLAT's LGKM_CNT); LLVM's tools then show loops as they run.
    """
    if access.limit is not None or (access.base is not None and len(code.scopes) > 1):
        return buffer_address(code, access)
    if access.base is None:
        return "global", *flat_address(code, access.address, access.immediate)
    more, offset = _GLOBAL.split(access.immediate)
    base = _scalar_pair(code, code("addi.i64", access.base, Const("i64", more & (1 << 64) - 1)) if more else access.base)
    return "global", [_vector(code, access.address), base], _offset(offset)


def flat_address(code: Code, address: Slice, immediate: int) -> tuple[list[Operand], list[Operand]]:
    """The operands of an address of 64 bits, of each lane or of all, and modifiers."""
    more, offset = _GLOBAL.split(immediate)
    if more:
        address = code("addi.i64", address, Const("i64", more & (1 << 64) - 1))
    if code.uniform(address):
        return [vector_constant(code, 0, _WORD), address], _offset(offset)
    return [address, "off"], _offset(offset)


def buffer_address(code: Code, access: LaneAccess) -> tuple[str, list[Operand], list[Operand]]:
    assert access.base is not None
    more, offset = _BUFFER.split(access.immediate)
    return "buffer", through_descriptor(code, access.base, access.limit, access.address, more), ["offen", *_offset(offset)]


def through_descriptor(code: Code, base: Element, limit: Element | None, address: Slice, immediate: int) -> list[Operand]:
    """The operands of an offset from a base; those beyond a limit are out of bounds. `immediate` is added to the offset."""
    low, high = code.chip.unpack(code, _WORD, base, 2)
    words: list[Element] = [low, code("andi.i32", high, code.i32(_HIGH_ADDRESS)), limit or _ALL, code.i32(_RAW_BUFFER)]
    descriptor = code.tuple(words, "s")
    return [_vector(code, code("addi.i32", address, code.i32(immediate))), descriptor, 0]


def _offset(offset: int) -> list[Operand]:
    return [f"offset:{offset}"] if offset else []


def _vector(code: Code, element: Element) -> Slice:
    """An address of 32 bits in a vector register."""
    if isinstance(element, Const):
        return vector_constant(code, element.bits, _WORD)
    return in_vector(code, element) if code.uniform(element) else element


def _scalar_pair(code: Code, base: Element) -> Slice:
    """A base, which is equal in all lanes, in scalar registers: a quotient of 64 bits is made in vector ones."""
    base = in_scalars(code, base)
    return scalar_constant(code, base.bits, 64) if isinstance(base, Const) else base


# --- scalar loads ----------------------------------------------------------------------------------------------------------------


def _by_scalars(code: Code, access: LaneAccess) -> bool:
    """Whether the scalar cache may serve a load: whole words at one address, of memory that nobody writes, or not before it."""
    isa = instruction_set_of(code)
    plain = not access.space and not _volatile(access) and access.predicate is None and access.limit is None
    at = access.address if access.base is None else access.base
    uniform = isinstance(at, Const) or code.uniform(at)
    bits = _bits(access)
    words = bits in _SCALAR_LOADS and bits <= _WORD * scalar_words(isa) and access.bits >= _WORD and _whole(code, access)
    return plain and uniform and words and (access.early or _unwritten(code, access.buffer))


def _unwritten(code: Code, buffer: int) -> bool:
    """Whether nobody writes to an argument's memory, be it through another argument: the scalar cache does not see what vector
    stores write (CDNA3 ISA, section "Scalar memory operations"), nor does an acquire invalidate it (LLVM's AMDGPUUsage, "Memory
    Model gfx942")."""
    attributes = code.function.attributes
    listed = attributes.parameters
    if attributes.acquires or not 0 <= buffer < len(listed) or not listed[buffer].readonly:
        return False
    return code.chip.disjoint or all(p.readonly for p in listed if p.kind == "pointer")  # type: ignore[attr-defined]


def _whole(code: Code, access: LaneAccess) -> bool:
    return access.base is None or isinstance(access.address, Const) or code.uniform(access.address)


def _scalar_address(code: Code, access: LaneAccess) -> tuple[Operand, int]:
    address: Element = access.address
    if access.base is not None:
        address = code("addi.i64", access.base, code("extu.i32.i64", access.address))
    more, offset = _SCALAR.split(access.immediate)
    if more:
        address = code("addi.i64", address, Const("i64", more & (1 << 64) - 1))
    return _scalar_pair(code, address), offset


# --- arguments -------------------------------------------------------------------------------------------------------------------


def parameter(code: Code, arguments: Slice, index: int, type: str) -> Element:
    """A kernel argument. All come by the fewest loads, each as wide as can be: SMEM answers one after the other."""
    listed = code.function.attributes.parameters
    offset, size = listed[index].offset, listed[index].size
    word, words = offset // 4, max(1, size // 4)
    most = scalar_words(instruction_set_of(code))
    first, count = next((f, c) for f, c in _runs(abi.argument_bytes(listed) // 4, _end(listed), most) if f <= word < f + c)
    forms = {1: "uw32", 2: "uw64"}
    if count in forms:
        loaded = code.inst(f"s_load_{_SCALAR_LOADS[_WORD * count]}", forms[count], arguments, 4 * first)
    else:
        loaded = _wide(code, arguments, first, count)
    found = loaded.part(word - first, words)
    if size >= 4:
        return found
    if offset % 4:
        found = scalar(code, "s_lshr_b32", f"ue{8 * size}", found, 8 * (offset % 4))
    if type == "i1":
        return code("nei.i32", code("andi.i32", found, code.i32(0xFF)), code.i32(0))
    return found


def _wide(code: Code, arguments: Slice, first: int, count: int) -> Slice:
    key = ("arguments", first, count)
    found = code.scopes[0].get(key)
    if found is None:
        found = code.scopes[0][key] = code.function.register("s", count, code.chip.alignment("s", count)).whole
        code.effect(f"s_load_{_SCALAR_LOADS[_WORD * count]}", [found], [arguments, 4 * first])
    return found


def _end(listed: Sequence[Parameter]) -> int:
    """Words of the caller's arguments."""
    return max((ceil_div(p.offset + p.size, 4) for p in listed), default=0)


def _runs(block: int, words: int, most: int) -> list[tuple[int, int]]:
    """How `words` words at the beginning of a block are read: (first, count) of loads of a power of two of words, up to `most`."""
    runs, first = [], 0
    while first < words:
        left = words - first
        count = min(most, 1 << (left - 1).bit_length())
        if first + count > block:
            count = 1 << left.bit_length() - 1
        runs.append((first, min(most, count)))
        first += runs[-1][1]
    return runs
