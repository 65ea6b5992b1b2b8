"""THE TABLE: every instruction of the Acme M1, with what passes must know of it and what it does in a lane.

Registers are 32 bits (`r`) or one bit (`p`); a 64-bit address or value is an even pair of `r`. The last operand of memory
instructions is a byte offset. Float arithmetic is IEEE 754 binary32, rounded to nearest even, with subnormals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilefw.api.machine import EFFECT, JUMP, MOVE, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.api.sim import Algebra, Barrier, Exit, Flow
from tilefw_acme.target import PREDICATES, REGISTERS

Meaning = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction: its unit, its meaning or its flow, the bits of its immediates. Branches get their flow at decode."""

    unit: str
    meaning: Meaning | None = None
    traits: InstructionTraits = PURE
    immediate_bits: int = 32
    flow: Flow | None = None


def _compare(op: str, signed: bool) -> Meaning:
    return lambda lanes, a, b: lanes.compare(a, b, op, signed)


def _fcompare(op: str) -> Meaning:
    return lambda lanes, a, b: lanes.fcompare(a, b, op, "f32")


def _parameter(bits: int) -> Meaning:
    def read(lanes: Algebra, offset: Any) -> Any:
        (value,) = lanes.load("param", offset, bits)
        return value if bits >= 32 else lanes.zero_extend(value, 32)

    return read


def _load(bits: int) -> Meaning:
    def load(lanes: Algebra, base: Any, offset: Any) -> Any:
        (value,) = lanes.load("global", lanes.add(base, lanes.sign_extend(offset, 64)), bits)
        return value if bits == 32 else lanes.zero_extend(value, 32)

    return load


def _store(bits: int) -> Meaning:
    def store(lanes: Algebra, base: Any, offset: Any, value: Any) -> None:
        part = value if bits == 32 else lanes.truncate(value, bits)
        lanes.store("global", lanes.add(base, lanes.sign_extend(offset, 64)), [part])

    return store


ROWS: dict[str, Row] = {
    # moves
    "mov": Row("alu", lambda lanes, a: a, MOVE),
    "mov2": Row("alu", lambda lanes, a: a, MOVE),
    "pmov": Row("alu", lambda lanes, a: a, MOVE, immediate_bits=1),
    "pair": Row("alu", lambda lanes, low, high: lanes.join([low, high])),
    # 32-bit integers
    "add": Row("alu", lambda lanes, a, b: lanes.add(a, b)),
    "sub": Row("alu", lambda lanes, a, b: lanes.sub(a, b)),
    "mul": Row("alu", lambda lanes, a, b: lanes.mul(a, b)),
    "mulh": Row("alu", lambda lanes, a, b: lanes.mul_high(a, b, False)),
    "and": Row("alu", lambda lanes, a, b: lanes.and_(a, b)),
    "or": Row("alu", lambda lanes, a, b: lanes.or_(a, b)),
    "xor": Row("alu", lambda lanes, a, b: lanes.xor(a, b)),
    "shl": Row("alu", lambda lanes, a, b: lanes.shl(a, b)),
    "sra": Row("alu", lambda lanes, a, b: lanes.shr(a, b, True)),
    "srl": Row("alu", lambda lanes, a, b: lanes.shr(a, b, False)),
    "eq": Row("alu", _compare("eq", False)),
    "lts": Row("alu", _compare("lt", True)),
    "ltu": Row("alu", _compare("lt", False)),
    "sel": Row("alu", lambda lanes, p, a, b: lanes.select(p, a, b)),
    # predicates
    "pand": Row("alu", lambda lanes, a, b: lanes.and_(a, b), immediate_bits=1),
    "por": Row("alu", lambda lanes, a, b: lanes.or_(a, b), immediate_bits=1),
    "pxor": Row("alu", lambda lanes, a, b: lanes.xor(a, b), immediate_bits=1),
    # binary32
    "fadd": Row("fpu", lambda lanes, a, b: lanes.fadd(a, b, "f32")),
    "fsub": Row("fpu", lambda lanes, a, b: lanes.fsub(a, b, "f32")),
    "fmul": Row("fpu", lambda lanes, a, b: lanes.fmul(a, b, "f32")),
    "fma": Row("fpu", lambda lanes, a, b, c: lanes.ffma(a, b, c, "f32")),
    "fdiv": Row("fpu", lambda lanes, a, b: lanes.fdiv(a, b, "f32")),
    "feq": Row("fpu", _fcompare("eq")),
    "flt": Row("fpu", _fcompare("lt")),
    "fle": Row("fpu", _fcompare("le")),
    "itof": Row("fpu", lambda lanes, a: lanes.int_to_float(a, True, "f32")),
    "ftoi": Row("fpu", lambda lanes, a: lanes.float_to_int(a, "f32", 32, True)),
    # memory and parameters
    **{f"ldp{bits}": Row("memory", _parameter(bits)) for bits in (8, 16, 32, 64)},
    **{f"ld{bits}": Row("memory", _load(bits)) for bits in (8, 16, 32)},
    **{f"st{bits}": Row("memory", _store(bits), EFFECT) for bits in (8, 16, 32)},
    # where the lane is
    "tid": Row("alu", lambda lanes: lanes.thread_id(0)),
    **{f"group{axis}": Row("alu", lambda lanes, axis=i: lanes.workgroup_id(axis)) for i, axis in enumerate("xyz")},
    **{f"groups{axis}": Row("alu", lambda lanes, axis=i: lanes.grid_size(axis)) for i, axis in enumerate("xyz")},
    # control
    "br": Row("control", traits=JUMP),
    "bar": Row("control", traits=EFFECT, flow=Barrier()),
    "end": Row("control", traits=JUMP, flow=Exit()),
}

CLASSES = [RegisterClass("r", 32, REGISTERS), RegisterClass("p", 1, PREDICATES)]
TABLE = from_dict("acme", {name: row.traits for name, row in ROWS.items()}, CLASSES)
