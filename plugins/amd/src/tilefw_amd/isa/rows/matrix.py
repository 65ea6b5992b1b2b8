"""Matrix products of a wave, and moves to and from the accumulation registers (CDNA3 ISA, "Matrix arithmetic instructions").

A product takes all 64 lanes, whatever EXEC holds. `fragments` says where elements lie and how sums round; a row is made
from each shape there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tilefw.api.integers import log2
from tilefw_amd.isa.meaning.fragments import SHAPES, MatrixShape, accumulation, accumulator, operand_a, operand_b, sparse_index
from tilefw_amd.isa.meaning.results import limited_sums
from tilefw_amd.isa.row import Chapter, Modifiers

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "VOP3P-MAI"
Move = Callable[[Any, Any], Any]

# blgp: which lane a lane's element of B comes from, as (bits of the lane number that are kept, bits that are set); 3 rotates by 16
# (the calculator, `_get_blgp_transformed_lane`).
_B_LANES = {1: (0x1F, 0x00), 2: (0x1F, 0x20), 4: (0x0F, 0x00), 5: (0x0F, 0x10), 6: (0x0F, 0x20), 7: (0x0F, 0x30)}
_ROTATED = 3


def _unsupported(shape: MatrixShape, modifier: str) -> ValueError:
    """The encoding has these fields for all products, and assemblers take them; what the chip makes of them is not documented."""
    return ValueError(f"{shape.name} has no {modifier}: its effect on the chip is not documented")


def _from_lane(keep: int, put: int) -> Move:
    """Lane l takes the value of lane (l & keep) | put."""

    def move(lanes: Any, a: Any) -> Any:
        lane = lanes.and_(lanes.lane_id(), lanes.const(keep, 32))
        return lanes.read_lane(a, lanes.or_(lane, lanes.const(put, 32)), "value")

    return move


def _rotated(lanes: Any, a: Any) -> Any:
    return lanes.read_lane(a, lanes.add(lanes.lane_id(), lanes.const(16, 32)), "value")


def _broadcast(m: Modifiers, shape: MatrixShape) -> Move | None:
    """cbsz: groups of 2**cbsz blocks of A all take that of number abid in the group."""
    if not m.cbsz and not m.abid:
        return None
    several = log2(shape.blocks) if shape.swizzles else 0
    if m.cbsz > several or m.abid >> m.cbsz:
        raise _unsupported(shape, f"cbsz:{m.cbsz} abid:{m.abid}")
    first = log2(shape.m)
    return _from_lane(63 & ~(((1 << m.cbsz) - 1) << first), m.abid << first)


def _swizzle(m: Modifiers, shape: MatrixShape) -> Move | None:
    """blgp: lanes of B take the elements of other lanes."""
    if not m.blgp:
        return None
    if not shape.swizzles:
        raise _unsupported(shape, f"blgp:{m.blgp}")
    return _rotated if m.blgp == _ROTATED else _from_lane(*_B_LANES[m.blgp])


def _registers(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _moved(lanes: Any, registers: Any, move: Move | None) -> tuple[Any, ...]:
    registers = _registers(registers)
    return registers if move is None else tuple(move(lanes, register) for register in registers)


def _need_modelled(m: Modifiers, shape: MatrixShape) -> None:
    """ValueError in a mode that the models of the sums leave out: CDNA3 ISA 7.3 lets products of f32 follow MODE's subnormals. All
    other products round to nearest and keep subnormals."""
    if shape.a == "f32" and m.mode.flush32:
        raise ValueError(f"{shape.name} in a mode that flushes subnormals of f32 is not simulated")


def _limited(m: Modifiers, shape: MatrixShape, multiply: Callable[..., Any]) -> Callable[..., Any]:
    return limited_sums(m.mode, shape.name, multiply) if shape.d == "f32" else multiply


_PARTS = (operand_a, operand_b, accumulator, accumulation)


def _multiply(m: Modifiers, shape: MatrixShape):
    """D = A x B + C, in each block; see `fragments` for where elements lie and how sums are rounded."""
    _need_modelled(m, shape)
    a_map, b_map, c_map, rule = (of(shape, m.chip) for of in _PARTS)
    broadcast, swizzle = _broadcast(m, shape), _swizzle(m, shape)

    def meaning(lanes, a, b, c):
        a, b = _moved(lanes, a, broadcast), _moved(lanes, b, swizzle)
        return lanes.matrix_multiply(a, b, c, a_map, b_map, c_map, rule)

    return _limited(m, shape, meaning)


def _multiply_doubles(m: Modifiers, shape: MatrixShape):
    """D = A x B + C of f64, in each block, with signs of A, B and C flipped as neg says."""
    a_map, b_map, c_map, rule = (of(shape, m.chip) for of in _PARTS)
    _broadcast(m, shape)  # refuses it
    negated = m.neg or (0, 0, 0)

    def meaning(lanes, *operands):
        a, b, c = (_negated(lanes, side) if flip else side for flip, side in zip(negated, operands, strict=True))
        return lanes.matrix_multiply(a, b, c, a_map, b_map, c_map, rule)

    return meaning


def _negated(lanes: Any, registers: Sequence[Any]) -> tuple[Any, ...]:
    """Doubles as pairs of registers: the sign is the highest bit of the second."""
    sign = lanes.const(1 << 31, 32)
    return tuple(lanes.xor(value, sign) if i % 2 else value for i, value in enumerate(registers))


def _multiply_sparse(m: Modifiers, shape: MatrixShape):
    """D = A x B + D, where A has two of every four k. The index has two bits for each element of A; abid chooses one of several
    sets of them in the register, unless cbsz is set."""
    _need_modelled(m, shape)
    a_map, b_map, c_map, rule = (of(shape, m.chip) for of in _PARTS)
    index_map = sparse_index(shape)
    bits = index_map.register_bits
    chosen = 0 if m.cbsz else m.abid
    if chosen >= 32 // bits:
        raise _unsupported(shape, f"abid:{m.abid}")

    def meaning(lanes, a, b, index, old):
        index = lanes.truncate(lanes.shr(index, lanes.const(chosen * bits, 32), False), bits)
        return lanes.sparse_matrix_multiply(a, index, b, old, a_map, index_map, b_map, c_map, rule)

    return _limited(m, shape, meaning)


def _kind(shape: MatrixShape) -> str:
    return {"f32": "sgemm", "f64": "dgemm"}.get(shape.a, "xdl")


for _shape in SHAPES:
    _a, _b, _d = _shape.a_type.name, _shape.b_type.name, _shape.d_type.name
    if _shape.sparse:
        _pattern, _modifiers, _build = f"+d:{_d}=va, a:{_a}=va, b:{_b}=va, index:b32=v", "cbsz abid", _multiply_sparse
    else:
        _pattern = f"d:{_d}=va, a:{_a}=va, b:{_b}=va, c:{_d}=vac"
        _modifiers = "cbsz abid matrix_neg" if _shape.d == "f64" else "cbsz abid blgp"
        _build = _multiply_doubles if _shape.d == "f64" else _multiply
    row(
        f"{_shape.name} {_pattern}",
        mai=_shape.opcode,
        unit="matrix",
        section=SECTION,
        modifiers=_modifiers,
        passes=_shape.passes,
        since=_shape.since,
        until=_shape.until,
        facts=f"ignores exec, {_kind(_shape)}",
        aliases=" ".join(_shape.aliases),
    )(functools.partial(_build, shape=_shape))


@row("v_accvgpr_read_b32 d:b32=v, a:b32=a", vop3p=0x58, unit="valu", section=SECTION, aliases="v_accvgpr_read")
def v_accvgpr_read_b32(m):
    """d = a, from an accumulation register."""
    return lambda lanes, a: a


@row("v_accvgpr_write_b32 d:b32=a, a:b32=vsc", vop3p=0x59, unit="valu", section=SECTION, aliases="v_accvgpr_write")
def v_accvgpr_write_b32(m):
    """d = a, to an accumulation register."""
    return lambda lanes, a: a


@row("v_accvgpr_mov_b32 d:b32=a, a:b32=a", vop1=0x52, unit="valu", section="VOP1", without="vop3 sdwa dpp")
def v_accvgpr_mov_b32(m):
    """d = a, between accumulation registers."""
    return lambda lanes, a: a
