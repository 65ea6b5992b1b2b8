"""The integer functions of libdevice: bits, bytes, averages, absolute differences."""

from __future__ import annotations

import tilefw.language as tl
from tilefw.frontend.libdevice.signatures import Functions, of_one_type
from tilefw.frontend.libdevice.term import Term

define = Functions()

_WORDS = of_one_type(1, "int32", "int64")
_TWO = of_one_type(2, "int32", "uint32")


@define(_WORDS)
def ffs(x: Term) -> Term:
    """The lowest one bit stands alone in x & -x."""
    lowest = (x & -x).row("clz")
    return (x.dtype.int_bitwidth - lowest).to(tl.int32)


@define(_WORDS)
def brev(x: Term) -> Term:
    """Neighbouring groups of bits are exchanged, of one bit first (Warren, "Hacker's Delight", 7-1)."""
    width = x.dtype.int_bitwidth
    unsigned = x.as_type(tl.uint32 if width == 32 else tl.uint64)
    step = 1
    while step < width:
        mask = sum(((1 << step) - 1) << place for place in range(0, width, 2 * step))
        unsigned = ((unsigned >> step) & mask) | ((unsigned & mask) << step)
        step *= 2
    return unsigned.as_type(x.dtype)


@define(of_one_type(3, "int32"))
def byte_perm(x: Term, y: Term, s: Term) -> Term:
    """Three bits of a selector choose a byte, the fourth replicates its sign."""
    low, high = x.as_type(tl.uint32), y.as_type(tl.uint32)
    result = low.constant(0)
    for place in range(4):
        selector = (s >> (4 * place)) & 15
        shift = ((selector & 3) << 3).as_type(tl.uint32)
        byte = ((selector & 4).equals(0).where(low, high) >> shift) & 255
        sign = ((byte & 128).equals(0)).where(byte.constant(0), byte.constant(255))
        byte = (selector & 8).equals(0).where(byte, sign)
        result = result | (byte << (8 * place))
    return result.as_type(x.dtype)


@define(_TWO)
def hadd(x: Term, y: Term) -> Term:
    """The bits that both have, and half of those that one has; nothing is carried out."""
    return (x & y) + ((x ^ y) >> 1)


@define(_TWO)
def rhadd(x: Term, y: Term) -> Term:
    """The bits that either has, less half of those that one has."""
    return (x | y) - ((x ^ y) >> 1)


@define(_TWO)
def mul24(x: Term, y: Term) -> Term:
    """The low 24 bits of each, of the type's sign."""
    return ((x << 8) >> 8) * ((y << 8) >> 8)


@define((("int32", "int32", "uint32"), ("uint32", "uint32", "uint32")))
def sad(x: Term, y: Term, z: Term) -> Term:
    """The difference of the larger and the smaller fits in 32 bits unsigned."""
    return (x < y).where(y - x, x - y) + z.as_type(x.dtype)
