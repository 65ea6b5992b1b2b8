"""Selection rules: rows and types to instructions, one register or packed pair at a time; by subject, in tables.

| module | rows |
|---|---|
| `integers` | sums, products, logic, shifts, order, counts of 8 to 64 bits, packed ones |
| `floats` | arithmetic, order, integral values, compares, functions of f16, f32, f64, packed f16 |
| `division`, `integer_division` | quotients, remainders, roots |
| `casts` | selections and casts, to and from packed registers |
| `pairs` | arithmetic of two f32 in neighbouring registers |
| `eight_bits` | casts of 8-bit floats |
| `masks` | predicates of lanes |
| `single` | what a chip has as one instruction and others have not |
| `uniform` | integers and predicates that are equal in all lanes |

Rows that are not listed are expanded by core.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tilefw.api.simt import Rule
from tilefw_amd.chips import Chip
from tilefw_amd.select.rules import (
    casts,
    division,
    eight_bits,
    floats,
    integer_division,
    integers,
    masks,
    pairs,
    single,
    uniform,
)


@cache
def rules(chip: Chip) -> Mapping[str, Rule]:
    """The rules for values of lanes. No two modules list one row, but `single` goes before the others."""
    table = eight_bits.rules(chip)
    for subject in (integers, floats, division, integer_division, casts, pairs, masks):
        table |= subject.rules()
    return table | single.rules(chip)


@cache
def uniform_rules(chip: Chip) -> Mapping[str, Rule]:
    """The rules for values in scalar registers alone."""
    return uniform.rules(chip)
