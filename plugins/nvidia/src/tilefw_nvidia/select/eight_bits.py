"""Conversions of 8-bit floats: the chip's own, of two at once; of e5m2 on a chip without them, as the upper byte of an f16.

PTX ISA, "Data Movement and Conversion: cvt" (`.e4m3x2`, `.e5m2x2`), "prmt", "lop3". Other formats are core's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule
from tilefw_nvidia.isa.types import FORMATS
from tilefw_nvidia.select.emits import Emits, Table


def conversions() -> Table:
    """Rules with the chip's own conversions."""
    table: Table = {}
    for name, t in FORMATS.items():
        narrow, widen = f"cvt.rn.satfinite.{name}x2.f32", f"cvt.rn.f16x2.{name}x2"
        table[f"castf.f32.{t}"] = Emits((narrow,), _narrowed(narrow))
        table[f"castf.f32.{t}x4"] = Emits((narrow,), _four_narrowed(narrow))
        table[f"castf.{t}.f16"] = Emits((widen,), _widened(widen))
        table[f"castf.{t}.f16x2"] = Emits((widen,), _two_widened(widen))
        table[f"castf.{t}.f32"] = Emits((widen, "cvt.f32.f16"), _widened_twice(t))
    return table


def _narrowed(opcode: str) -> Rule:
    def rule(code: Code, x: Element) -> Element:
        zero = code.chip.operand(code, Const("f32", 0))
        return code.inst("cvt.u32.u16", "e8", code.inst(opcode, "e16", zero, code.chip.operand(code, x)))

    return rule


def _four_narrowed(opcode: str) -> Rule:
    def rule(code: Code, first: Element, second: Element, third: Element, fourth: Element) -> Element:
        a, b, c, d = (code.chip.operand(code, x) for x in (first, second, third, fourth))
        return code.inst("mov.b32", "w32", code.inst(opcode, "e16", b, a), code.inst(opcode, "e16", d, c))

    return rule


def _widened(opcode: str) -> Rule:
    """The upper byte is whatever stands above the element: its half is thrown away."""

    def rule(code: Code, x: Element) -> Element:
        pair = code.inst(opcode, "w32", code.inst("cvt.u16.u32", "e16", code.chip.operand(code, x)))
        return code.insts("mov.b32", ("e16", "e16"), pair)[0]

    return rule


def _two_widened(opcode: str) -> Rule:
    def rule(code: Code, low: Element, high: Element) -> Element:
        both = code.inst("prmt.b32", "w32", code.chip.operand(code, low), code.chip.operand(code, high), 0x0040)
        return code.inst(opcode, "w32", code.inst("cvt.u16.u32", "e16", both))

    return rule


def _widened_twice(t: str) -> Rule:
    """An f16 holds every value of the format."""

    def rule(code: Code, x: Element) -> Element:
        return code("castf.f16.f32", code(f"castf.{t}.f16", x))

    return rule


# --- e5m2 by its code: the upper byte of the f16 that it is equal to ------------------------------------------------------------


def _upper_byte(code: Code, x: Element) -> Element:
    if isinstance(x, Const):
        return Const("f16", x.bits << 8 & 0xFF00)
    return code.inst("cvt.u16.u32", "e16", code.inst("shl.b32", "w32", x, 8))


def _upper_bytes(code: Code, low: Element, high: Element) -> Element:
    """One prmt where both bytes come of one register, whose other operand is then the zeros below them: digits 0-3 select bytes of
    the first operand, 4-7 of the second."""
    first, second = (code.parts.get((x, 8)) if isinstance(x, Slice) else None for x in (low, high))
    if first is not None and second is not None and first[0] == second[0]:
        return code.inst("prmt.b32", "w32", first[0], 0, 0x0404 | first[1] << 4 | second[1] << 12)
    both = code.inst("prmt.b32", "w32", code.chip.operand(code, low), code.chip.operand(code, high), 0x4000)
    return code.inst("and.b32", "w32", both, _each(0xFF00))


def _cut(code: Code, elements: Sequence[Element]) -> Slice:
    """Two f32 to e5m2, each in the upper byte of a half; nearest even, beyond the largest finite value that one.

    Both are cut to f16, whose exponents are those of e5m2, subnormal ones too, and the halves' codes rounded to their upper bytes.
    So that a value a little above the middle of two codes is not taken for it, its last 16 bits, which the cut may lose, leave a
    mark: no value of half the least code and above loses the bit over them.
    """
    marked: list[Slice] = []
    for x in elements:
        carried = code.inst("add.s32", "w32", code.chip.operand(code, x), 0xFFFF)
        marked.append(code.inst("lop3.b32", "w32", code.chip.operand(code, x), carried, 0x10000, _A_OR_B_AND_C))
    halves = code.inst("cvt.rz.f16x2.f32", "w32", marked[1], marked[0])
    largest = code.inst("mov.b32", "w32", _each(0x7B00))  # 57344
    size = code.inst("min.f16x2", "w32", code.inst("and.b32", "w32", halves, _each(0x7FFF)), largest)
    odd = code.inst("and.b32", "w32", code.inst("shr.u32", "w32", size, 8), _each(1))
    rounded = code.inst("add.s32", "w32", code.inst("add.s32", "w32", size, odd), _each(0x7F))
    nan = code.inst("set.nan.u32.f16x2", "w32", halves, halves)
    return code.inst("lop3.b32", "w32", code.inst("or.b32", "w32", rounded, nan), halves, _each(0x7FFF), _A_WHERE_C_ELSE_B)


def _cut_four(code: Code, *elements: Element) -> Element:
    low, high = _cut(code, elements[:2]), _cut(code, elements[2:])
    return code.inst("prmt.b32", "w32", low, high, 0x7531)


def _each(half: int) -> int:
    """A literal with the same bits in both halves."""
    return half << 16 | half


# Tables of lop3: what a function is on 0xF0, 0xCC and 0xAA.
_A_OR_B_AND_C = 0xF0 | 0xCC & 0xAA
_A_WHERE_C_ELSE_B = 0xF0 & 0xAA | 0xCC & 0x55

E5M2: Table = {
    "castf.f8E5M2.f16": Emits(("shl.b32", "cvt.u16.u32"), _upper_byte),
    "castf.f8E5M2.f16x2": Emits(("prmt.b32",), _upper_bytes),
    "castf.f8E5M2.f32": Emits(("shl.b32", "cvt.f32.f16"), _widened_twice("f8E5M2")),
    "castf.f32.f8E5M2x4": Emits(("lop3.b32", "cvt.rz.f16x2.f32", "min.f16x2", "set.nan.u32.f16x2", "prmt.b32"), _cut_four),
}
"""Rules of a chip without conversions of its own."""
