"""How a product of factors wider than bf16 is made of products of bf16: parts of each factor, and which of them are multiplied.

A part is what is left of a number by the parts before it, cut off after bf16's 8 bits: all have the number's sign, so that no
partial sum exceeds the sum of magnitudes. Three parts are a whole fp32. Of their nine products six are made; the others are less
than 2^-21 of a product, as much as 4 of the K + 1 roundings by 2^-23 that a sum over K may take. The instructions round to nearest,
so that theirs are half as large. A sum that fits in fp32 for every order of its additions stays exact: what is left out needs
factors of 9 and of 17 bits, whose product does not fit. Two parts hold the 11 bits of tf32 and fp16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Products = tuple[tuple[int, int], ...]
_EXPONENT_BIAS, _LEAST = 127, -126  # of bf16 and fp32; the least exponent of a normal number


@dataclass(frozen=True, slots=True)
class FactorPlanes:
    """How many `parts` a factor has; which parts of the left and of the right one are multiplied, the largest product last, and
    from one to the next as few tiles change as can be. With less than `least_rows` of the left factor, loops are faster than
    taking the right one apart."""

    parts: int
    products: Products
    least_rows: int = 1

    @property
    def least_exponent(self) -> int:
        """The exponent field of fp32 from which on the bits that parts hold, 8 for each, are no subnormal part."""
        return _LEAST + 8 * self.parts - 1 + _EXPONENT_BIAS

    @property
    def least_sum(self) -> int:
        """The sum of two exponent fields from which on products of parts are multiples of 2^-126. A part behind zeros may end
        lower; below 2^-126 the instructions take 0 instead. That is less than 2^-22 of the whole product, and nothing where it is
        exact in fp32."""
        below = max(left + right for left, right in self.products)
        return _LEAST + 14 + 8 * below + 2 * _EXPONENT_BIAS


_TWO_PARTS: Products = ((0, 1), (1, 1), (1, 0), (0, 0))
# By the type of a factor or, for fp32, by how it is multiplied (`input_precision` of `tile.dot`).
PLANES: Mapping[str, FactorPlanes] = {
    "f16": FactorPlanes(2, _TWO_PARTS),
    "tf32": FactorPlanes(2, _TWO_PARTS, 128),
    "bf16x3": FactorPlanes(2, ((0, 1), (1, 0), (0, 0)), 128),
    "f32": FactorPlanes(3, ((0, 2), (0, 1), (1, 1), (1, 0), (2, 0), (0, 0)), 128),
}
WHOLE = FactorPlanes(1, ((0, 0),))


def planes_of(operand_type: str) -> FactorPlanes:
    """How factors of a type are multiplied."""
    return PLANES.get(operand_type, WHOLE)
