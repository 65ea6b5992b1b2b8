"""Atomics on memory, of the flat and buffer encodings: one table for both, as their opcodes are the same (CDNA3 ISA, chapters
"Flat memory instructions" and "Buffer memory instructions"; opcodes: `FLATInstructions.td`, checked against llvm-mc).

The old value comes back with sc0 only. A buffer atomic has one register for data and result. Float atomics on memory flush no
subnormals (LLVM `FeatureMemoryAtomicFAddF32DenormalSupport`); minimum and maximum prefer a number to NaN, as LLVM's `atomicrmw
fmin` does, which is lowered to them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.accesses import BUFFER, Space
from tilefw_amd.isa.rows.flat import SECTION, SPACES

CHAPTER = Chapter()
row = CHAPTER.row

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

BUFFER_SECTION = "Buffer memory instructions"

# Name: opcode, the algebra's operation. Of 64 bits: the name with _x2, 32 opcodes further.
_INTEGERS: dict[str, tuple[int, str]] = {
    "swap": (0x40, "exchange"),
    "add": (0x42, "add"),
    "sub": (0x43, "sub"),
    "smin": (0x44, "min_s"),
    "umin": (0x45, "min_u"),
    "smax": (0x46, "max_s"),
    "umax": (0x47, "max_u"),
    "and": (0x48, "and"),
    "or": (0x49, "or"),
    "xor": (0x4A, "xor"),
    "inc": (0x4B, "inc"),
    "dec": (0x4C, "dec"),
}
# Name: opcode, the algebra's operation and format, bits.
_FLOATS: dict[str, tuple[int, str, str, int]] = {
    "add_f32": (0x4D, "fadd", "f32", 32),
    "pk_add_f16": (0x4E, "fadd", "f16x2", 32),
    "add_f64": (0x4F, "fadd", "f64", 64),
    "min_f64": (0x50, "fmin", "f64", 64),
    "max_f64": (0x51, "fmax", "f64", 64),
    "pk_add_bf16": (0x52, "fadd", "bf16x2", 32),
}
_BUFFER_SINCE = {"pk_add_bf16": 4}  # earlier in the flat encoding alone (`BUFInstructions.td`)
# What these give back goes to vector registers only (`FLATInstructions.td`, FLAT_Global_Atomic_Pseudo without the AGPR form).
_VECTORS_ONLY = frozenset({("global", "add_f32"), ("global", "pk_add_f16")})
_COMPARE_SWAP = 0x41


def scope(m: Modifiers) -> str:
    """Of an atomic: sc1 says system, else the agent ("Memory Model gfx942")."""
    return "system" if m.sc1 else "device"


def change(space: Space, op: str, fmt: str, m: Modifiers) -> Any:
    """Memory = memory op a, as one; d = what it was before, with sc0."""
    where = scope(m)
    if op == "sub":
        return lambda lanes, at, a: space.atomic(lanes, at, "add", (lanes.neg(a),), fmt, where)
    return lambda lanes, at, a: space.atomic(lanes, at, op, (a,), fmt, where)


def compare_swap(space: Space, m: Modifiers) -> Any:
    """Memory = the first half of a if it was the second half; d = what it was before, with sc0."""
    where = scope(m)

    def run(lanes: Algebra, at: Any, a: Any) -> Value:
        new, expected = halves(lanes, a)
        return space.atomic(lanes, at, "compare_exchange", (expected, new), "", where)

    return run


def halves(lanes: Algebra, a: Any) -> tuple[Value, Value]:
    """The halves of 64 bits, or of 128 as four dwords."""
    if not isinstance(a, tuple):
        return lanes.split(a, 32)
    return lanes.join(a[:2]), lanes.join(a[2:])


def _in_place(meaning: Any, m: Modifiers) -> Any:
    """Of a buffer: the data's register = what memory was before, with sc0; else it stays."""
    run = meaning(m)
    if m.sc0:
        return run

    def silent(lanes: Algebra, at: Any, a: Value) -> Value:
        run(lanes, at, a)
        return a

    return silent


def _swap_in_place(m: Modifiers) -> Any:
    """Memory = the first half of d if it was the second half; the first half of d = what it was before, with sc0."""
    swap = compare_swap(BUFFER, m)

    def run(lanes: Algebra, at: Any, a: Any) -> Any:
        old = swap(lanes, at, a)
        if not m.sc0:
            return a
        if isinstance(a, tuple):
            return lanes.split(old, 32) + a[2:]
        return lanes.join((old, lanes.split(a, 32)[1]))

    return run


def _flat_rows(prefix: str, space: Space, facts: str) -> None:
    def add(name: str, opcode: int, bits: int, data: int, build: Any, more: str = "") -> None:
        kinds = "=v" if (prefix, name) in _VECTORS_ONLY else ""
        row(f"{prefix}_atomic_{name} d:b{bits}{kinds}, [addr], a:b{data}",
            flat=opcode, unit="vmem", section=SECTION, facts=f"{facts}, atomic, returns{more}")(build)

    for bits, suffix, further in ((32, "", 0), (64, "_x2", 0x20)):
        for name, (opcode, op) in _INTEGERS.items():
            add(name + suffix, opcode + further, bits, bits, partial(change, space, op, ""))
        add(f"cmpswap{suffix}", _COMPARE_SWAP + further, bits, 2 * bits, partial(compare_swap, space), ", compares")
    for name, (opcode, op, fmt, bits) in _FLOATS.items():
        add(name, opcode, bits, bits, partial(change, space, op, fmt))


def _buffer_rows() -> None:
    def add(name: str, opcode: int, data: int, build: Any, more: str = "") -> None:
        row(f"buffer_atomic_{name} +d:b{data}, [addr]", mubuf=opcode, unit="vmem", section=BUFFER_SECTION,
            facts=f"buffer, atomic, returns{more}", since=_BUFFER_SINCE.get(name, 0))(build)

    for bits, suffix, further in ((32, "", 0), (64, "_x2", 0x20)):
        for name, (opcode, op) in _INTEGERS.items():
            add(name + suffix, opcode + further, bits, partial(_in_place, partial(change, BUFFER, op, "")))
        add(f"cmpswap{suffix}", _COMPARE_SWAP + further, 2 * bits, _swap_in_place, ", compares")
    for name, (opcode, op, fmt, bits) in _FLOATS.items():
        add(name, opcode, bits, partial(_in_place, partial(change, BUFFER, op, fmt)))


for _prefix in ("flat", "global"):
    _flat_rows(_prefix, *SPACES[_prefix])
_buffer_rows()
