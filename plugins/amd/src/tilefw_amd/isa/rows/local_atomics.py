"""Atomics on LDS (CDNA3 ISA, chapter "Data share"), with and without the old value: `ds_add_u32`, `ds_add_rtn_u32`.

An atomic without a result has an opcode 32 below the one that returns, but for the packed and the exchanging ones. Float atomics
round to nearest even and follow the mode of subnormals (LLVM `SIISelLowering.cpp`, `shouldExpandAtomicRMWInIR`): flushing them is
not simulated. Minimum and maximum prefer a number to NaN, as LLVM's `atomicrmw fmin` does.
Opcodes: `DSInstructions.td`, checked against llvm-mc.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.accesses import SHARED
from tilefw_amd.isa.rows.local import need_two

CHAPTER = Chapter()
row = CHAPTER.row

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

SECTION = "Data share"

# (name, type): opcode without and with a result, the algebra's operation and format; None: only one that returns.
_ONE: dict[tuple[str, str], tuple[int | None, int, str, str]] = {
    **{
        (name, kind + bits): (opcode + wide, opcode + wide + 0x20, op, "")
        for bits, wide in (("32", 0), ("64", 0x40))
        for opcode, (name, kind, op) in enumerate((
            ("add", "u", "add"), ("sub", "u", "sub"), ("rsub", "u", "sub_from"), ("inc", "u", "inc"), ("dec", "u", "dec"),
            ("min", "i", "min_s"), ("max", "i", "max_s"), ("min", "u", "min_u"), ("max", "u", "max_u"), ("and", "b", "and"),
            ("or", "b", "or"), ("xor", "b", "xor"),
        ))
    },
    ("wrxchg", "b32"): (None, 0x2D, "exchange", ""),
    ("wrxchg", "b64"): (None, 0x6D, "exchange", ""),
    ("min", "f32"): (0x12, 0x32, "fmin", "f32"),
    ("max", "f32"): (0x13, 0x33, "fmax", "f32"),
    ("add", "f32"): (0x15, 0x35, "fadd", "f32"),
    ("pk_add", "f16"): (0x17, 0xB7, "fadd", "f16x2"),
    ("pk_add", "bf16"): (0x18, 0xB8, "fadd", "bf16x2"),
    ("min", "f64"): (0x52, 0x72, "fmin", "f64"),
    ("max", "f64"): (0x53, 0x73, "fmax", "f64"),
    ("add", "f64"): (0x5C, 0x7C, "fadd", "f64"),
}
# The same for those of two data operands.
_TWO: dict[tuple[str, str], tuple[int | None, int, str, str]] = {
    ("mskor", "b32"): (0x0C, 0x2C, "mask_or", ""),
    ("cmpst", "b32"): (0x10, 0x30, "compare_exchange", ""),
    ("cmpst", "f32"): (0x11, 0x31, "compare_exchange", "f32"),
    ("wrap", "b32"): (None, 0x34, "wrap", ""),
    ("mskor", "b64"): (0x4C, 0x6C, "mask_or", ""),
    ("cmpst", "b64"): (0x50, 0x70, "compare_exchange", ""),
    ("cmpst", "f64"): (0x51, 0x71, "compare_exchange", "f64"),
}


def _change(op: str, fmt: str, m: Modifiers) -> Any:
    """LDS = LDS op a, as one; d = what it was before."""
    _need_subnormals(fmt, m)
    if op == "sub":
        return lambda lanes, at, a: SHARED.atomic(lanes, at, "add", (lanes.neg(a),), fmt, "")
    return lambda lanes, at, a: SHARED.atomic(lanes, at, op, (a,), fmt, "")


def _change_two(op: str, fmt: str, m: Modifiers) -> Any:
    """LDS = op of LDS, a and b, as one; d = what it was before. cmpst: b if it was a. mskor: its bits but those of a, and those of
    b. wrap: less a if it was at least a, else more by b."""
    _need_subnormals(fmt, m)
    return lambda lanes, at, a, b: SHARED.atomic(lanes, at, op, (a, b), fmt, "")


def _need_subnormals(fmt: str, m: Modifiers) -> None:
    """ValueError in a mode that flushes the subnormals of the format."""
    if fmt and (m.mode.flush32 if fmt == "f32" else m.mode.flush64):
        raise ValueError(f"an atomic of {fmt} on LDS in a mode that flushes subnormals is not simulated")


def _silent(build: Any, m: Modifiers) -> Any:
    """The same without a result."""
    meaning = build(m)

    def run(lanes: Algebra, *operands: Any) -> None:
        meaning(lanes, *operands)

    return run


def _add_rows(name: str, kind: str, operands: str, facts: tuple[int | None, int, str, str], build: Any) -> None:
    opcode, returning, op, fmt = facts
    returns = partial(build, op, fmt)
    width = "b64" if kind.endswith("64") else "b32"
    data = ", ".join(f"{operand}:{width}" for operand in operands)
    if opcode is not None:
        row(f"ds_{name}_{kind} [addr], {data}", ds=opcode, unit="lds", section=SECTION, facts="atomic")(partial(_silent, returns))
    row(f"ds_{name}_rtn_{kind} d:{width}, [addr], {data}", ds=returning, unit="lds", section=SECTION, facts="atomic")(returns)


for (_name, _kind), _facts in _ONE.items():
    _add_rows(_name, _kind, "a", _facts, _change)
for (_name, _kind), _facts in _TWO.items():
    _add_rows(_name, _kind, "ab", _facts, _change_two)


def _exchange_two(bits: int, m: Modifiers) -> Any:
    """The elements at the two addresses = a and b; d = what they were before, the first one lowest."""
    need_two(m)

    def run(lanes: Algebra, at: Any, a: Value, b: Value) -> Any:
        first, second = (SHARED.atomic(lanes, one, "exchange", (data,), "", "") for one, data in zip(at, (a, b), strict=True))
        return lanes.join((first, second)) if bits == 32 else lanes.split(first, 32) + lanes.split(second, 32)

    return run


for _bits, _plain, _strided in ((32, 0x2E, 0x2F), (64, 0x6E, 0x6F)):
    for _infix, _opcode, _stride in (("2", _plain, ""), ("2st64", _strided, ", dword64 stride")):
        row(f"ds_wrxchg{_infix}_rtn_b{_bits} d:b{2 * _bits}, [addr], a:b{_bits}, b:b{_bits}",
            ds=_opcode, unit="lds", section=SECTION, facts=f"atomic, two offsets{_stride}")(partial(_exchange_two, _bits))


@row("ds_condxchg32_rtn_b64 d:b64, [addr], a:b64", ds=0x7E, unit="lds", section=SECTION, facts="atomic")
def ds_condxchg32_rtn_b64(m: Modifiers) -> Any:
    """Each of the two dwords at the address, its low three bits cleared, = the dword of a without bit 31 if that bit is set;
    d = what they were before. One dword after the other."""

    def run(lanes: Algebra, at: Value, a: Value) -> Value:
        base = lanes.and_(at, lanes.const(0xFFF8, 32))
        places = (base, lanes.add(base, lanes.const(4, 32)))
        return lanes.join([_conditional(lanes, place, word) for place, word in zip(places, lanes.split(a, 32), strict=True)])

    return run


def _conditional(lanes: Algebra, place: Value, word: Value) -> Value:
    given = lanes.truncate(lanes.shr(word, lanes.const(31, 32), False), 1)
    mask = lanes.select(given, lanes.const(-1, 32), lanes.const(0, 32))
    value = lanes.and_(lanes.and_(word, mask), lanes.const(0x7FFFFFFF, 32))
    return SHARED.atomic(lanes, place, "mask_or", (mask, value), "", "")
