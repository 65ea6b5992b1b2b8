"""Scalar memory: loads, stores and atomics for the whole wave, its cache, clocks (CDNA3 ISA, section "SMEM").

Addresses are of whole dwords: the low two bits do not count. `[addr]` gives the 64-bit address; those of buffers come with a
predicate for each dword, as `accesses.BufferSpace` takes them. All of them count in lgkmcnt and finish in any order.
"""

from __future__ import annotations

from collections.abc import Callable

from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.accesses import BUFFER, GLOBAL, Space
from tilefw_amd.isa.rows.control import refused
from tilefw_amd.isa.rows.scalar import Meaning, said

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "SMEM"
_DWORDS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def joined(lanes, words):
    """Words of 32 bits as the value of a register tuple: one value up to 64 bits, a tuple of words beyond."""
    if len(words) == 1:
        return words[0]
    return lanes.join(words) if len(words) == 2 else tuple(words)


def words_of(lanes, value, count: int):
    """The inverse of `joined`."""
    if count == 1:
        return (value,)
    return lanes.split(value, 32) if count == 2 else tuple(value)


# Keyword of the mnemonic -> (where it accesses, facts, how far the opcodes of loads and stores, and of atomics, are shifted).
_SPACES: dict[str, tuple[Space, str, int, int]] = {"": (GLOBAL, "", 0, 0), "buffer_": (BUFFER, "buffer", 8, -64)}


def _facts(*words: str) -> str:
    return ", ".join(word for word in words if word)


# --- loads and stores --------------------------------------------------------------------------------------------------


def _load(space: Space, count: int) -> Meaning:
    return lambda lanes, at: joined(lanes, space.read(lanes, at, 32, count, {}))


def _store(space: Space, count: int) -> Meaning:
    return lambda lanes, value, at: space.write(lanes, at, words_of(lanes, value, count), 32, {})


for _prefix, (_space, _fact, _shift, _) in _SPACES.items():
    for _index, (_name, _count) in enumerate(_DWORDS.items()):
        row(f"s_{_prefix}load_{_name} d:b{32 * _count}, [addr]",
            smem=_shift + _index, unit="smem", section=SECTION, wave=True, facts=_facts("load", _fact))(
            said(f"d = {_count} dwords from the address on.", _load(_space, _count))
        )
    for _index, _name in enumerate(("dword", "dwordx2", "dwordx4")):
        _count = _DWORDS[_name]
        row(f"s_{_prefix}store_{_name} a:b{32 * _count}, [addr]",
            smem=16 + _shift + _index, unit="smem", section=SECTION, wave=True, facts=_facts("store", _fact))(
            said(f"{_count} dwords from the address on = a.", _store(_space, _count))
        )

for _index, _name in enumerate(("dword", "dwordx2", "dwordx4")):
    _bits = 32 * _DWORDS[_name]
    for _kind, _opcode, _operand, _results in (("load", 5, "d", (_bits,)), ("store", 21, "a", ())):
        row(f"s_scratch_{_kind}_{_name} {_operand}:b{_bits}, [addr]",
            smem=_opcode + _index, unit="smem", section=SECTION, wave=True, facts="scratch")(
            refused(
                f"Scalar {_kind} of {_bits // 32} dwords of the wave's scratch memory.",
                f"s_scratch_{_kind}_{_name}: how scratch memory is spread over lanes is not published for this chip",
                *_results,
            )
        )


# --- atomics ---------------------------------------------------------------------------------------------------------------

# Name -> (place among the opcodes, what becomes of the dword in memory, the algebra's name).
_ATOMICS = {
    "swap": (0, "a", "exchange"),
    "add": (2, "old + a", "add"),
    "sub": (3, "old - a", "sub"),
    "smin": (4, "the smaller, signed", "min_s"),
    "umin": (5, "the smaller, unsigned", "min_u"),
    "smax": (6, "the larger, signed", "max_s"),
    "umax": (7, "the larger, unsigned", "max_u"),
    "and": (8, "old & a", "and"),
    "or": (9, "old | a", "or"),
    "xor": (10, "old ^ a", "xor"),
    "inc": (11, "old >= a ? 0 : old + 1", "inc"),
    "dec": (12, "old == 0 or old > a ? a : old - 1", "dec"),
}


def _atomic(space: Space, operation: str) -> Callable[..., Meaning]:
    def build(m):
        def meaning(lanes, at, data):
            if operation == "sub":
                old = space.atomic(lanes, at, "add", (lanes.neg(data),), "", "device")
            else:
                old = space.atomic(lanes, at, operation, (data,), "", "device")
            return old if m.glc else data

        return meaning

    return build


def _compare_swap(space: Space, bits: int) -> Callable[..., Meaning]:
    count = bits // 32

    def build(m):
        def meaning(lanes, at, data):
            words = words_of(lanes, data, 2 * count)
            new, expected = joined(lanes, words[:count]), joined(lanes, words[count:])
            old = space.atomic(lanes, at, "compare_exchange", (expected, new), "", "device")
            return joined(lanes, (*words_of(lanes, old, count), *words[count:])) if m.glc else data

        return meaning

    return build


def _documented(doc: str, build: Callable[..., Meaning]) -> Callable[..., Meaning]:
    build.__doc__ = doc
    return build


for _prefix, (_space, _fact, _, _shift) in _SPACES.items():
    for _suffix, _bits, _place in (("", 32, 128 + _shift), ("_x2", 64, 160 + _shift)):
        for _name, (_opcode, _words, _operation) in _ATOMICS.items():
            row(f"s_{_prefix}atomic_{_name}{_suffix} +d:b{_bits}, [addr]",
                smem=_place + _opcode, unit="smem", section=SECTION, wave=True, facts=_facts("returns", _fact))(
                _documented(f"Memory = {_words}, with a = d; with glc, d = the old value.", _atomic(_space, _operation))
            )
        row(f"s_{_prefix}atomic_cmpswap{_suffix} +d:b{2 * _bits}, [addr]",
            smem=_place + 1, unit="smem", section=SECTION, wave=True, facts=_facts("returns", "compares", _fact))(
            _documented(
                "The first half of d goes to memory if the second half was there; with glc, the first half of d = the old value.",
                _compare_swap(_space, _bits),
            )
        )

# --- the scalar cache, clocks ------------------------------------------------------------------------------------------------

_INVISIBLE = "the simulator has no caches that could hold old data"
for _name, _opcode, _words in (
    ("s_dcache_inv", 32, "Invalidate the scalar cache"),
    ("s_dcache_wb", 33, "Write the scalar cache back"),
    ("s_dcache_inv_vol", 34, "Invalidate the volatile lines of the scalar cache"),
    ("s_dcache_wb_vol", 35, "Write the volatile lines of the scalar cache back"),
):
    row(_name, smem=_opcode, unit="smem", section=SECTION, wave=True)(
        said(f"{_words}: {_INVISIBLE}.", lambda lanes: None)
    )

for _name, _opcode, _words in (
    ("s_memtime", 36, "d = a counter of cycles"),
    ("s_memrealtime", 37, "d = a counter of constant frequency"),
):
    row(f"{_name} d:b64", smem=_opcode, unit="smem", section=SECTION, wave=True)(
        said(f"{_words}; here of instructions.", lambda lanes: lanes.clock())
    )

for _name, _opcode, _fact in (("s_atc_probe", 38, ""), ("s_atc_probe_buffer", 39, "buffer")):
    row(f"{_name} =probe, [addr]", smem=_opcode, unit="smem", section=SECTION, wave=True, facts=_fact)(
        said("Translate the address ahead of time; nothing to see of it.", lambda lanes, at: None)
    )
for _suffix, _opcode in (("", 40), ("_x2", 41)):
    row(f"s_dcache_discard{_suffix} [addr]", smem=_opcode, unit="smem", section=SECTION, wave=True)(
        refused("Drop a line of the scalar cache, unwritten.", f"s_dcache_discard{_suffix}: {_INVISIBLE}")
    )
