"""Elements of 8, 16 and 64 bits and the registers of 32 that hold them: taken apart, put together.

The lowest element of a register is that register, as nobody looks at the bits above an element.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element
from tilefw_amd.select.operands import scalar, vector

# V_PERM_B32 d, x, y, selector: each byte of d is the one of {x, y} that the selector's byte counts, 0-3 in y and 4-7 in x; 12 is
# zero (CDNA3 ISA, V_PERM_B32).
_HALVES = {0: 0x0100, 1: 0x0302}
_ZEROS = 0x0C0C0000  # above two bytes
_SECOND = 4  # what the bytes of x are counted from


def unpack(code: Code, bits: int, packed: Element, count: int) -> Sequence[Element]:
    """The `count` elements of a register of 32 bits, lowest first; with 32 bits, the halves of one of 64."""
    if isinstance(packed, Const):
        return [Const(f"i{bits}", packed.bits >> bits * i & (1 << bits) - 1) for i in range(count)]
    if bits == 32:
        return [packed.part(i) for i in range(count)]
    return [_above(code, bits, packed, bits * i) if i else packed for i in range(count)]


def _above(code: Code, bits: int, packed: Slice, shift: int) -> Slice:
    if code.uniform(packed):
        return scalar(code, "s_lshr_b32", f"ue{bits}", packed, shift)
    return vector(code, "v_lshrrev_b32", f"e{bits}", Const("i32", shift), packed)


def pack(code: Code, bits: int, elements: Sequence[Element]) -> Element:
    """Elements as a register of 32 bits, lowest first; with 32 bits, two halves as one of 64."""
    if all(isinstance(e, Const) for e in elements):
        value = sum((e.bits & (1 << bits) - 1) << bits * i for i, e in enumerate(elements))  # type: ignore[union-attr]
        return Const("i64" if bits == 32 else "packed", value)
    if bits == 32:
        return joined(code, elements)
    if len(elements) == 1:
        return elements[0]
    if code.uniform(*elements):
        return _scalar_pack(code, bits, elements)
    if bits == 16:
        return _pair(code, elements[0], elements[1])
    low, *high = (_two_bytes(code, elements[i : i + 2]) for i in range(0, len(elements), 2))
    return _halves(code, low, high[0]) if high else unpack(code, 16, low[0], 2)[low[1]]


def joined(code: Code, words: Sequence[Element]) -> Slice:
    """Registers of 32 bits as one: in scalar registers where all of them are."""
    if len(words) == 1 and isinstance(words[0], Slice):
        return words[0]
    return code.tuple(words, "s" if code.uniform(*words) else "v")


def in_scalars(code: Code, value: Element) -> Element:
    """A value that is equal in all lanes, in scalar registers."""
    if isinstance(value, Const) or value.reg.cls == "s":
        return value
    if value.reg.cls == "m":  # all lanes or none
        return code.inst("move.s", "ui1", value)
    return joined(code, [code.inst("v_readfirstlane_b32", "uw32", value.part(i)) for i in range(value.count)])


_Part = tuple[Element, int]  # a register and which of its bytes or halves


def _pair(code: Code, low: Element, high: Element) -> Element:
    """The low halves of two registers; of elements that were taken from halves of registers, those where they are."""
    return _halves(code, _part(code, low, 16), _part(code, high, 16))


def _halves(code: Code, low: _Part, high: _Part) -> Element:
    """Two halves of registers as one."""
    (x, i), (y, j) = low, high
    if x == y and (i, j) == (0, 1):
        return x
    if isinstance(x, Const) and x.bits == 0 and j == 0:  # only the high half is anything
        return vector(code, "v_lshlrev_b32", "w32", Const("i32", 16), y)
    return _permuted(code, x, y, _HALVES[i] | (_HALVES[j] + 0x0404) << 16)


def _two_bytes(code: Code, elements: Sequence[Element]) -> _Part:
    """One or two bytes as half of a register.

    Two that were the same byte of their registers are taken together with the bytes beside them, as a transposition of bytes asks
    for those next: four registers of four bytes are transposed by eight permutations.
    """
    if len(elements) == 1:
        x, i = _part(code, elements[0], 8)
        return (x, 0) if not i else (_permuted(code, x, x, _ZEROS | i), 0)
    (x, i), (y, j) = (_part(code, element, 8) for element in elements)
    if x == y and j == i + 1 and i % 2 == 0:
        return x, i // 2
    if i != j:
        return _permuted(code, x, y, _ZEROS | (j + _SECOND) << 8 | i), 0
    first = i & 2
    both = first | (first + _SECOND) << 8
    return _permuted(code, x, y, both | (both + 0x0101) << 16), i & 1


def _part(code: Code, element: Element, bits: int) -> _Part:
    """Where an element of some bits stands in a vector register."""
    part = code.parts.get((element, bits)) if isinstance(element, Slice) else None
    return part if part is not None and part[0].reg.cls == "v" else (element, 0)


def _permuted(code: Code, low: Element, high: Element, selector: int) -> Slice:
    return vector(code, "v_perm_b32", "w32", high, low, Const("i32", selector))


def _scalar_pack(code: Code, bits: int, elements: Sequence[Element]) -> Element:
    if bits == 16:
        return scalar(code, "s_pack_ll_b32_b16", "uw32", *elements)
    packed: Element = code.i32(0)
    for i, element in enumerate(elements):
        byte = code("andi.i32", element, code.i32(0xFF))
        packed = code("ori.i32", code("shl.i32", byte, code.i32(8 * i)), packed)
    return packed
