"""The rows of the elementwise table that are one instruction of the vector unit, by row key.

Integers of tile IR have no sign; the instruction's element type has: `lts.i8` is `CMP.lt` on int8, `ltu.i8` on uint8.
"""

from __future__ import annotations

from typing import NamedTuple

from tilefw.api.expand import TYPES, key


class Native(NamedTuple):
    """An op of the instruction table and the element type that it names."""

    op: str
    dtype: str


INTEGERS = ("i8", "i16", "i32")
FLOATS = ("f8E4M3FN", "f8E5M2", "f16", "bf16", "f32")
MACHINE_TYPES = ("i1", *INTEGERS, *FLOATS)
"""Tile IR's element types that the machine has."""

# Row -> op, by how the row reads its operands.
_SIGNED = {
    "addi": "ADD", "subi": "SUB", "muli": "MUL", "mulhs": "MUL.hi", "andi": "LOGIC.and", "ori": "LOGIC.or", "xori": "LOGIC.xor",
    "shl": "SHIFT.left", "shrs": "SHIFT.arith", "mins": "MIN", "maxs": "MAX",
    "eqi": "CMP.eq", "nei": "CMP.ne", "lts": "CMP.lt", "les": "CMP.le", "gts": "CMP.gt", "ges": "CMP.ge",
}
_UNSIGNED = {
    "mulhu": "MUL.hi", "shru": "SHIFT.right", "minu": "MIN", "maxu": "MAX",
    "ltu": "CMP.lt", "leu": "CMP.le", "gtu": "CMP.gt", "geu": "CMP.ge",
}
_BOOL = {"andi": "LOGIC.and", "ori": "LOGIC.or", "xori": "LOGIC.xor", "eqi": "CMP.eq", "nei": "CMP.ne"}
_COMPARES = {"eqf": "CMP.eq", "nef": "CMP.ne", "ltf": "CMP.lt", "lef": "CMP.le", "gtf": "CMP.gt", "gef": "CMP.ge"}
_FP32 = {
    "addf": "ADD", "subf": "SUB", "mulf": "MUL", "fma": "FMA",
    "minf": "MIN.num", "maxf": "MAX.num", "minf_nan": "MIN", "maxf_nan": "MAX",
    "floor": "CVT.floor", "ceil": "CVT.ceil", "trunc": "CVT.trunc", "round_even": "CVT.even",
    "exp2": "EX2", "log2": "LG2", "sqrt": "SQR", "sqrt_rn": "SQR", "rsqrt": "RSQ",
}


def signed(type_: str) -> str:
    """The machine's element type of a type of tile IR, integers with their sign."""
    return TYPES[type_].name


def unsigned(type_: str) -> str:
    """As `signed`, but integers of 8 bits and more without sign."""
    return f"u{TYPES[type_].name}" if type_ in INTEGERS else TYPES[type_].name


def _plain() -> dict[str, Native]:
    rows: dict[str, Native] = {}
    for t in INTEGERS:
        rows |= {key(row, t): Native(op, signed(t)) for row, op in _SIGNED.items()}
        rows |= {key(row, t): Native(op, unsigned(t)) for row, op in _UNSIGNED.items()}
    rows |= {key(row, "i1"): Native(op, "int1") for row, op in _BOOL.items()}
    for t in FLOATS:
        rows |= {key(row, t): Native(op, signed(t)) for row, op in _COMPARES.items()}
    rows |= {key(row, "f32"): Native(op, "fp32") for row, op in _FP32.items()}
    return rows | {key("select", t): Native("SELM", signed(t)) for t in MACHINE_TYPES}


def _casts() -> dict[str, Native]:
    rows: dict[str, Native] = {}
    for source in INTEGERS:
        for to in INTEGERS:
            if TYPES[to].bits > TYPES[source].bits:
                rows[key("exts", source, to)] = Native(f"CVT.{signed(to)}", signed(source))
                rows[key("extu", source, to)] = Native(f"CVT.{unsigned(to)}", unsigned(source))
            elif TYPES[to].bits < TYPES[source].bits:
                rows[key("trunci", source, to)] = Native(f"CVT.{unsigned(to)}", unsigned(source))
    for f in FLOATS:
        rows |= {key("castf", f, to): Native(f"CVT.{signed(to)}", signed(f)) for to in FLOATS if to != f}
        rows[key("u2f", "i1", f)] = Native(f"CVT.{signed(f)}", "int1")
        for i in INTEGERS:
            rows[key("s2f", i, f)] = Native(f"CVT.{signed(f)}", signed(i))
            rows[key("u2f", i, f)] = Native(f"CVT.{signed(f)}", unsigned(i))
            rows[key("f2s", f, i)] = Native(f"CVT.{signed(i)}", signed(f))
            rows[key("f2u", f, i)] = Native(f"CVT.{unsigned(i)}", signed(f))
    return rows | {key("extu", "i1", to): Native(f"CVT.{unsigned(to)}", "int1") for to in INTEGERS}


NATIVE: dict[str, Native] = {**_plain(), **_casts()}
"""Every row that is one instruction."""
