"""The base set: the rows that every SIMT chip must have; all others can be made of them.

Beside these a chip has four ways to look at bits that cost at most a move (see `builder.ExpansionBuilder`), access to memory in 8,
16 and 32 bits, and a barrier: at most 40 rows in all.

On registers (`elements`) the looks at bits of a narrow element are themselves four rows, for each register form of one:

| row | from | to | bits above |
|---|---|---|---|
| `extu.i8.i32` | `e8` | `w32` | zero, whatever stood above the byte |
| `extu.i16.i32` | `e16` | `w32` | zero, whatever stood above the half |
| `trunci.i32.i8` | `w32` | `e8` | undefined: a chip may hand the register on as it is (`alias`) |
| `trunci.i32.i16` | `w32` | `e16` | undefined |

The expansions of these four stand on themselves, so that no chip can do without; `check_rules` refuses one that lacks any.
"""

from __future__ import annotations

from collections.abc import Container

from tilefw.api.errors import PluginError

_INT32 = ("addi", "subi", "muli", "mulhu", "andi", "ori", "xori", "shl", "shrs", "shru", "eqi", "lts", "ltu", "select")
_BOOL = ("andi", "ori", "xori")
_FLOAT32 = ("addf", "subf", "mulf", "fma", "divf", "eqf", "ltf", "lef")

BASE_ROWS: frozenset[str] = frozenset(
    [f"{row}.i32" for row in _INT32]
    + [f"{row}.i1" for row in _BOOL]
    + [f"{row}.f32" for row in _FLOAT32]
    + ["s2f.i32.f32", "f2s.f32.i32"]
)
"""The rows that all others can be made of."""

NARROW_ROWS: frozenset[str] = frozenset({"extu.i8.i32", "extu.i16.i32", "trunci.i32.i8", "trunci.i32.i16"})

_REQUIRED = tuple(sorted(BASE_ROWS | NARROW_ROWS))


def check_rules(name: str, rules: Container[str]) -> None:
    """Raises PluginError (TFW0510) when a chip's rules lack what the expansions stand on; it says all that is missing."""
    missing = [row for row in _REQUIRED if row not in rules]
    if missing:
        raise PluginError(
            f"the rules of {name} lack {len(missing)} that the expansions need: {', '.join(missing)}", code="TFW0510",
            help="add them to the chip's `rules`; `tilefw explain TFW0510` describes each",
        )
