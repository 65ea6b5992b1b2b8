"""THE TABLES of the ACME chips: every instruction, its operands, unit, latency, and its meaning, written once in the lane algebra.

Registers: `v` of 32 bits and `p` of one bit (`target.py` says how many); a 64-bit value is an even `v` and the next one. An operand
is `v`, `p` or `d` (such a pair), each a register or, for sources `v` and `p`, an immediate; or `i`, always an immediate. Any
instruction may stand under a predicate. An address is a pair, in shared memory a `v`, plus a signed byte offset. Floats are
binary32 with subnormals, rounded to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tilefw.api import TargetInfo
from tilefw.api.machine import EFFECT, JUMP, MOVE, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict
from tilefw.api.sim import Algebra
from tilefw_acme.matrix import MATRICES, MatrixRow

Meaning = Callable[..., Any]
Scope = Literal["device", "system"]

BITS = {"v": 32, "p": 1, "d": 64, "i": 32}  # of an operand, by its letter


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction: a letter for each result and operand, latency in cycles; `control` is its flow where it has no meaning."""

    results: str
    operands: str
    unit: str
    latency: int
    meaning: Meaning | None = None
    traits: InstructionTraits = PURE
    control: str = ""


def _parameter(bits: int) -> Meaning:
    def read(x: Algebra, offset: Any) -> Any:
        return x.zero_extend(x.load("param", offset, bits)[0], 32)

    return read


def _load(bits: int) -> Meaning:
    def load(x: Algebra, base: Any, offset: Any) -> Any:
        return x.zero_extend(x.load("global", x.add(base, x.sign_extend(offset, 64)), bits)[0], 32)

    return load


def _store(bits: int) -> Meaning:
    def store(x: Algebra, base: Any, offset: Any, value: Any) -> None:
        x.store("global", x.add(base, x.sign_extend(offset, 64)), [x.truncate(value, bits)])

    return store


def _load_shared(bits: int) -> Meaning:
    return lambda x, base, offset: x.zero_extend(x.load("shared", x.add(base, offset), bits)[0], 32)


def _store_shared(bits: int) -> Meaning:
    return lambda x, base, offset, value: x.store("shared", x.add(base, offset), [x.truncate(value, bits)])


def _compare_swap(x: Algebra, base: Any, offset: Any, expected: Any, new: Any) -> Any:
    """What is at the address becomes `new` if it is `expected`; the result is what was there. It is done at the memory that all
    chips of a node share, and orders no other access."""
    where = x.add(base, x.sign_extend(offset, 64))
    return x.atomic("global", where, "compare_exchange", [expected, new], order="relaxed", scope="system")


def _flush(scope: Scope) -> Callable[[Algebra], None]:
    """The caches write back what the wave has stored, before its later accesses."""
    return lambda x: x.fence("release", scope)


def _refresh(scope: Scope) -> Callable[[Algebra], None]:
    """The caches forget what they hold, before the wave's later loads."""
    return lambda x: x.fence("acquire", scope)


def _any(x: Algebra, a: Any) -> Any:
    low, high = x.ballot(a)
    return x.compare(x.or_(low, high), x.const(0, 32), "ne", False)


def _moves() -> dict[str, Row]:
    rows = {f"mov.{kind}": Row(kind, kind, "alu", 1, lambda x, a: a, MOVE) for kind in "vpd"}
    return rows | {"pair": Row("d", "vv", "alu", 2, lambda x, low, high: x.join([low, high]))}


_INTEGER: dict[str, Row] = {
    "add": Row("v", "vv", "alu", 1, lambda x, a, b: x.add(a, b)),
    "sub": Row("v", "vv", "alu", 1, lambda x, a, b: x.sub(a, b)),
    "mul": Row("v", "vv", "mul", 3, lambda x, a, b: x.mul(a, b)),
    "mulh.u": Row("v", "vv", "mul", 3, lambda x, a, b: x.mul_high(a, b, False)),
    "and": Row("v", "vv", "alu", 1, lambda x, a, b: x.and_(a, b)),
    "or": Row("v", "vv", "alu", 1, lambda x, a, b: x.or_(a, b)),
    "xor": Row("v", "vv", "alu", 1, lambda x, a, b: x.xor(a, b)),
    "shl": Row("v", "vv", "alu", 1, lambda x, a, b: x.shl(a, b)),
    "shr.u": Row("v", "vv", "alu", 1, lambda x, a, b: x.shr(a, b, False)),
    "shr.s": Row("v", "vv", "alu", 1, lambda x, a, b: x.shr(a, b, True)),
    "cmp.eq": Row("p", "vv", "alu", 1, lambda x, a, b: x.compare(a, b, "eq", False)),
    "cmp.lt.s": Row("p", "vv", "alu", 1, lambda x, a, b: x.compare(a, b, "lt", True)),
    "cmp.lt.u": Row("p", "vv", "alu", 1, lambda x, a, b: x.compare(a, b, "lt", False)),
    "sel": Row("v", "pvv", "alu", 1, lambda x, p, a, b: x.select(p, a, b)),
    "and.p": Row("p", "pp", "alu", 1, lambda x, a, b: x.and_(a, b)),
    "or.p": Row("p", "pp", "alu", 1, lambda x, a, b: x.or_(a, b)),
    "xor.p": Row("p", "pp", "alu", 1, lambda x, a, b: x.xor(a, b)),
    "any": Row("p", "p", "alu", 2, _any),  # whether it holds in any lane of the wave
}

_FLOAT: dict[str, Row] = {
    "fadd": Row("v", "vv", "fpu", 4, lambda x, a, b: x.fadd(a, b, "f32")),
    "fsub": Row("v", "vv", "fpu", 4, lambda x, a, b: x.fsub(a, b, "f32")),
    "fmul": Row("v", "vv", "fpu", 4, lambda x, a, b: x.fmul(a, b, "f32")),
    "ffma": Row("v", "vvv", "fpu", 4, lambda x, a, b, c: x.ffma(a, b, c, "f32")),
    "fdiv": Row("v", "vv", "fpu", 16, lambda x, a, b: x.fdiv(a, b, "f32")),
    "fcmp.eq": Row("p", "vv", "fpu", 2, lambda x, a, b: x.fcompare(a, b, "eq", "f32")),
    "fcmp.lt": Row("p", "vv", "fpu", 2, lambda x, a, b: x.fcompare(a, b, "lt", "f32")),
    "fcmp.le": Row("p", "vv", "fpu", 2, lambda x, a, b: x.fcompare(a, b, "le", "f32")),
    "cvt.f": Row("v", "v", "fpu", 4, lambda x, a: x.int_to_float(a, True, "f32")),
    "cvt.s": Row("v", "v", "fpu", 4, lambda x, a: x.float_to_int(a, "f32", 32, True)),  # toward zero, clamped; NaN gives 0
}


def _memory() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for bits in (8, 16, 32):
        rows[f"param{bits}"] = Row("v", "i", "memory", 4, _parameter(bits))
        rows[f"ld{bits}"] = Row("v", "di", "memory", 20, _load(bits), InstructionTraits(memory="global"))
        rows[f"st{bits}"] = Row("", "div", "memory", 1, _store(bits), EFFECT)
        rows[f"lds{bits}"] = Row("v", "vi", "shared", 6, _load_shared(bits), InstructionTraits(memory="shared"))
        rows[f"sts{bits}"] = Row("", "viv", "shared", 1, _store_shared(bits), EFFECT)
    rows["cas32"] = Row("v", "divv", "memory", 40, _compare_swap, EFFECT)
    rows["cas64"] = Row("d", "didd", "memory", 40, _compare_swap, EFFECT)
    scopes: tuple[Scope, ...] = ("device", "system")  # whose waves see what was stored, or have stored what is seen
    for scope in scopes:
        rows[f"flush.{scope}"] = Row("", "", "memory", 40, _flush(scope), EFFECT)
        rows[f"refresh.{scope}"] = Row("", "", "memory", 40, _refresh(scope), EFFECT)
    return rows


def _ids() -> dict[str, Row]:
    rows = {"thread": Row("v", "", "alu", 1, lambda x: x.thread_id(0))}
    for axis, letter in enumerate("xyz"):
        rows[f"group.{letter}"] = Row("v", "", "alu", 1, lambda x, axis=axis: x.workgroup_id(axis))
        rows[f"groups.{letter}"] = Row("v", "", "alu", 1, lambda x, axis=axis: x.grid_size(axis))
    return rows


_CONTROL: dict[str, Row] = {
    "jump": Row("", "", "control", 2, traits=JUMP, control="jump"),
    "barrier": Row("", "i", "control", 8, traits=EFFECT, control="barrier"),  # its number
    "end": Row("", "", "control", 1, traits=JUMP, control="end"),
}


def _matrix(row: MatrixRow) -> Row:
    """The operands are the registers of A, then of B, then of C; C's count is D's."""
    a, b, d = row.registers

    def multiply(x: Algebra, *v: Any) -> Any:
        return x.matrix_multiply(v[:a], v[a : a + b], v[a + b :], row.a, row.b, row.d, row.accumulation)

    return Row("v" * d, "v" * (a + b + d), "matrix", 4 * row.cost, multiply)


_WAVE: dict[str, Row] = {
    "lane": Row("v", "", "alu", 1, lambda x: x.lane_id()),
    "shuffle": Row("v", "vv", "shared", 6, lambda x, a, lane: x.read_lane(a, lane)),  # of that lane, modulo the lanes of a wave
}

_X1: dict[str, Row] = _moves() | _INTEGER | _FLOAT | _memory() | _ids() | _CONTROL
ROWS: dict[str, dict[str, Row]] = {"x1": _X1, "x2": _X1 | _WAVE | {name: _matrix(row) for name, row in MATRICES.items()}}


def table(target: TargetInfo) -> InstructionTable:
    """What passes on machine code must know of a chip: its instructions and its registers."""
    counts = {"v": target.limits["registers_per_thread"], "p": target.limits["predicates_per_thread"]}
    classes = [RegisterClass(cls, BITS[cls], count) for cls, count in counts.items()]
    return from_dict(target.name, {name: row.traits for name, row in ROWS[target.chip].items()}, classes)
