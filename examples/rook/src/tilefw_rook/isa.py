"""THE TABLE of the Rook R1: every instruction, its operands, unit, latency, and its meaning, written once in the lane algebra.

Registers of a lane: `x` (25 of 32 bits: integers, addresses, conditions) and `f` (32 of 32 bits: binary32). An operand is `x`; `f`;
`d`, two consecutive `x`, the lower word first; `c`, an `x` or a constant of 12 bits with its sign; `i`, a constant of 32 bits;
or `o`, one of 12 bits with its sign. A condition is an `x` that is 0 or not. An address in global and shared memory is an `x` plus
an `o`; in private memory and among the arguments it is an `i` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilefw.api.machine import BRANCH, EFFECT, JUMP, MOVE, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict
from tilefw.api.sim import Algebra
from tilefw_rook.target import R1

Meaning = Callable[..., Any]

BITS = {"x": 32, "f": 32, "d": 64, "c": 32, "i": 32, "o": 32}  # of an operand, by its letter
SMALL = range(-2048, 2048)  # constants of kinds `c` and `o`


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction: a letter for each result and operand, its unit, latency in cycles, meaning and traits.

    `control` names the control flow; a conditional branch also has a meaning, its condition.
    """

    results: str
    operands: str
    unit: str
    latency: int
    meaning: Meaning | None = None
    traits: InstructionTraits = PURE
    control: str = ""


def holds(x: Algebra, a: Any) -> Any:
    """A condition as a predicate."""
    return x.compare(a, x.const(0, 32), "ne", False)


def _word(x: Algebra, predicate: Any) -> Any:
    return x.zero_extend(predicate, 32)


def _load(space: Any, bits: int) -> Meaning:
    return lambda x, base, offset: x.zero_extend(x.load(space, x.add(base, offset), bits)[0], 32)


def _store(space: Any, bits: int) -> Meaning:
    return lambda x, base, offset, value: x.store(space, x.add(base, offset), [x.truncate(value, bits)])


def _alu(meaning: Meaning, latency: int = 1) -> Row:
    return Row("x", "xc", "alu", latency, meaning)


_CHEAP = InstructionTraits(cheap=True)
_MOVES: dict[str, Row] = {
    "mv": Row("x", "x", "alu", 1, lambda x, a: a, MOVE),
    "fmv": Row("f", "f", "fpu", 1, lambda x, a: a, MOVE),
    "fmv.x": Row("x", "f", "alu", 2, lambda x, a: a),  # bits as they are, from one file to the other
    "fmv.f": Row("f", "x", "alu", 2, lambda x, a: a),
    "li": Row("x", "i", "alu", 1, lambda x, a: a, _CHEAP),
    "fli": Row("f", "i", "fpu", 1, lambda x, a: a, _CHEAP),
}
_INTEGER: dict[str, Row] = {
    "add": _alu(lambda x, a, b: x.add(a, b)),
    "sub": _alu(lambda x, a, b: x.sub(a, b)),
    "mul": _alu(lambda x, a, b: x.mul(a, b), 3),
    "mulhu": _alu(lambda x, a, b: x.mul_high(a, b, False), 3),
    "and": _alu(lambda x, a, b: x.and_(a, b)),
    "or": _alu(lambda x, a, b: x.or_(a, b)),
    "xor": _alu(lambda x, a, b: x.xor(a, b)),
    "sll": _alu(lambda x, a, b: x.shl(a, b)),
    "srl": _alu(lambda x, a, b: x.shr(a, b, False)),
    "sra": _alu(lambda x, a, b: x.shr(a, b, True)),
    "seq": _alu(lambda x, a, b: _word(x, x.compare(a, b, "eq", False))),
    "sne": _alu(lambda x, a, b: _word(x, x.compare(a, b, "ne", False))),
    "slt": _alu(lambda x, a, b: _word(x, x.compare(a, b, "lt", True))),
    "sltu": _alu(lambda x, a, b: _word(x, x.compare(a, b, "lt", False))),
    "sel": Row("x", "xxc", "alu", 1, lambda x, p, a, b: x.select(holds(x, p), a, b)),
    "any": Row("x", "x", "alu", 2, lambda x, a: _word(x, holds(x, x.or_(*x.ballot(holds(x, a)))))),  # in a lane that is awake
}
_FLOAT: dict[str, Row] = {
    "fadd": Row("f", "ff", "fpu", 4, lambda x, a, b: x.fadd(a, b, "f32")),
    "fsub": Row("f", "ff", "fpu", 4, lambda x, a, b: x.fsub(a, b, "f32")),
    "fmul": Row("f", "ff", "fpu", 4, lambda x, a, b: x.fmul(a, b, "f32")),
    "fmadd": Row("f", "fff", "fpu", 4, lambda x, a, b, c: x.ffma(a, b, c, "f32")),
    "fdiv": Row("f", "ff", "fpu", 16, lambda x, a, b: x.fdiv(a, b, "f32")),
    "fsel": Row("f", "xff", "fpu", 1, lambda x, p, a, b: x.select(holds(x, p), a, b)),
    "feq": Row("x", "ff", "fpu", 2, lambda x, a, b: _word(x, x.fcompare(a, b, "eq", "f32"))),
    "flt": Row("x", "ff", "fpu", 2, lambda x, a, b: _word(x, x.fcompare(a, b, "lt", "f32"))),
    "fle": Row("x", "ff", "fpu", 2, lambda x, a, b: _word(x, x.fcompare(a, b, "le", "f32"))),
    "fcvt.f": Row("f", "x", "fpu", 4, lambda x, a: x.int_to_float(a, True, "f32")),
    "fcvt.x": Row("x", "f", "fpu", 4, lambda x, a: x.float_to_int(a, "f32", 32, True)),  # toward zero, clamped; NaN gives 0
}


def _memory() -> dict[str, Row]:
    """Loads and stores of global memory (`lw`), of the workgroup's (`lw.s`) and of the lane's (`lw.p`); arguments (`lw.a`)."""
    rows: dict[str, Row] = {}
    for suffix, space, latency in (("", "global", 40), (".s", "shared", 6)):
        reads, writes = InstructionTraits(memory=space), InstructionTraits(effects=True, memory=space)
        for letter, bits in (("b", 8), ("h", 16), ("w", 32)):
            rows[f"l{letter}{suffix}"] = Row("x", "xo", "memory", latency, _load(space, bits), reads)
            rows[f"s{letter}{suffix}"] = Row("", "xox", "memory", 1, _store(space, bits), writes)
        rows[f"flw{suffix}"] = Row("f", "xo", "memory", latency, _load(space, 32), reads)
        rows[f"fsw{suffix}"] = Row("", "xof", "memory", 1, _store(space, 32), writes)
    reads, writes = InstructionTraits(memory="private"), InstructionTraits(effects=True, memory="private")
    for prefix, kind in (("", "x"), ("f", "f")):
        rows[f"{prefix}lw.p"] = Row(kind, "i", "memory", 20, lambda x, at: x.load("private", at, 32)[0], reads)
        rows[f"{prefix}sw.p"] = Row("", f"i{kind}", "memory", 1, lambda x, at, value: x.store("private", at, [value]), writes)
    for letter, bits in (("b", 8), ("h", 16), ("w", 32)):
        rows[f"l{letter}.a"] = Row("x", "i", "memory", 4, lambda x, at, n=bits: x.zero_extend(x.load("param", at, n)[0], 32))
    return rows


def _store_conditional(x: Algebra, base: Any, value: Any) -> Any:
    return _word(x, x.store_conditional("global", base, value, order="acq_rel"))


# Load-reserved, and store-conditional, whose result is 1 where it stored. All of them keep accesses in order around them.
_RESERVED: dict[str, Row] = {
    "lr.w": Row("x", "x", "memory", 40, lambda x, a: x.load_reserved("global", a, 32, order="acquire"), EFFECT),
    "lr.d": Row("d", "x", "memory", 40, lambda x, a: x.load_reserved("global", a, 64, order="acquire"), EFFECT),
    "sc.w": Row("x", "xx", "memory", 40, _store_conditional, EFFECT),
    "sc.d": Row("x", "xd", "memory", 40, _store_conditional, EFFECT),
}


def _ids() -> dict[str, Row]:
    rows = {"thread": Row("x", "", "alu", 1, lambda x: x.thread_id(0))}
    for axis, letter in enumerate("xyz"):
        rows[f"group.{letter}"] = Row("x", "", "alu", 1, lambda x, axis=axis: x.workgroup_id(axis))
        rows[f"groups.{letter}"] = Row("x", "", "alu", 1, lambda x, axis=axis: x.grid_size(axis))
    return rows


_CONTROL: dict[str, Row] = {
    # Lanes without the condition (with it, for push.n) sleep until the pop: the wave goes on, and they change nothing.
    "push": Row("", "x", "control", 1, lambda x, a: x.push_mask(holds(x, a)), EFFECT),
    "push.n": Row("", "x", "control", 1, lambda x, a: x.push_mask(x.not_(holds(x, a))), EFFECT),
    "pop": Row("", "", "control", 1, lambda x: x.pop_mask(), EFFECT),
    "j": Row("", "", "control", 2, traits=JUMP, control="branch"),
    "beqz": Row("", "x", "control", 2, lambda x, a: x.compare(a, x.const(0, 32), "eq", False), BRANCH, "branch"),
    "bnez": Row("", "x", "control", 2, holds, BRANCH, "branch"),
    "bar": Row("", "ii", "control", 8, traits=EFFECT, control="barrier"),  # its number, and how many waves it waits for
    "end": Row("", "", "control", 1, traits=JUMP, control="end"),
}

ROWS: dict[str, Row] = _MOVES | _INTEGER | _FLOAT | _memory() | _RESERVED | _ids() | _CONTROL
CLASSES = tuple(RegisterClass(file, 32, R1.limits[f"{kind}_registers"]) for file, kind in (("x", "integer"), ("f", "float")))


def table() -> InstructionTable:
    """What passes on machine code must know: the instructions, with their latencies and units, and the registers."""
    timed = {name: replace(row.traits, latency=row.latency, unit=row.unit) for name, row in ROWS.items()}
    return from_dict("rook-r1", timed, list(CLASSES))
