"""Constants and scalar registers as operands: what an instruction takes as it is, and what has to stand in a register first.

CDNA3 ISA, "Scalar operands": a vector instruction reads at most one scalar register (any number of times) or literal; a literal
follows the short encodings only, as their first source. The table's forms say which sources take what.

A constant that an instruction cannot hold goes to a scalar register, which costs vector arithmetic nothing; made before any loop,
as it depends on nothing. Only where the one scalar operand is taken it stands in a vector register.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from tilefw.api import PluginError
from tilefw.api.machine import Inst, Operand, Slice
from tilefw.api.simt import Code, Const, Element
from tilefw_amd.isa import constants
from tilefw_amd.isa.constants import is_inline, is_small
from tilefw_amd.isa.model import Form, FormOperand
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine import pseudo

# What rules hand over as a source: an element, the bits of a constant, or what has a name.
Source = Element | int | str

# Vector instructions whose first two sources may change places.
_COMMUTES = frozenset({
    "v_add_f32", "v_mul_f32", "v_min_f32", "v_max_f32", "v_add_u32", "v_mul_i32_i24", "v_mul_u32_u24", "v_and_b32", "v_or_b32",
    "v_xor_b32", "v_min_i32", "v_max_i32", "v_min_u32", "v_max_u32", "v_add_f16", "v_mul_f16", "v_min_f16", "v_max_f16",
    "v_add_u16", "v_mul_lo_u16", "v_min_u16", "v_max_u16", "v_min_i16", "v_max_i16", "v_xnor_b32",
})
_SCALAR = ("s", "m")  # classes that stand in the scalar file


@dataclass(frozen=True, slots=True)
class _SourceRules:
    """`width` of its constants in bits; whether it takes scalar registers and inline constants. Of the latter `packed` ones take
    zero alone: all others would be the low element's (CDNA3 ISA, section "VOP3P"), and integers of 16 bits no floats, which
    LLVM's syntax has no words for there. A lane `mask` stands nowhere else."""

    width: int
    scalar: bool
    constant: bool
    packed: bool
    mask: bool
    half: bool  # an integer of 16 bits

    def holds(self, value: int) -> bool:
        """Whether `value`, of `width` bits, is an inline constant here."""
        if self.packed:
            return self.constant and value == 0
        return self.constant and (is_small if self.half else is_inline)(value, self.width)


@dataclass(frozen=True, slots=True)
class _Shape:
    """`literal`: there is a short encoding whose first source may be a literal and whose others are vector registers."""

    sources: tuple[_SourceRules, ...]
    literal: bool
    commutes: bool
    vcc: bool


def _check_served(isa: InstructionSet, *opcodes: str) -> None:
    for opcode in opcodes:
        if opcode not in isa.forms_by_mnemonic:
            raise PluginError(f"{isa.chip.name} has no {opcode}", code="TFW0512")


@functools.cache
def _shape(isa: InstructionSet, opcode: str) -> _Shape:
    _check_served(isa, opcode)
    forms = [form for form in isa.forms_by_mnemonic[opcode] if not form.encoding.endswith(("sdwa", "dpp"))]
    short, long = forms[0], forms[-1]
    sources = tuple(_source(o) for o in long.operands if o.role == "source")
    masks = any(o.role == "destination" and "s" in o.kinds for o in short.operands)
    vcc = any(o.name == "vcc" and o.role == "implicit source" for o in long.row.operands)
    return _Shape(sources, short.literal and not masks and not _reads_mask(short), opcode in _COMMUTES, vcc)


def _source(of: FormOperand) -> _SourceRules:
    kind = of.constants or of.type
    packed = kind is not None and kind.packed
    width = kind.bits if packed and kind is not None else constants.width(kind)
    mask = of.type is not None and of.type.kind == "mask"
    half = width == 16 and kind is not None and kind.format != "f16"
    return _SourceRules(width, "s" in of.kinds, "c" in of.kinds, packed, mask, half)


def _reads_mask(form: Form) -> bool:
    """Whether a source is a lane mask, which the short encoding has in VCC only."""
    return any(o.role == "source" and o.type is not None and o.type.kind == "mask" for o in form.operands)


class _HasInstructionSet(Protocol):
    isa: InstructionSet


def instruction_set_of(code: Code) -> InstructionSet:
    """The instruction set of the chip that code is made for."""
    return cast(_HasInstructionSet, code.chip).isa


def vector(code: Code, opcode: str, form: str, *operands: Source) -> Slice:
    """A pure vector instruction with one result."""
    return code.inst(opcode, form, *legal(code, opcode, operands))


def vectors(code: Code, opcode: str, forms: Sequence[str], *operands: Source) -> tuple[Slice, ...]:
    """A pure vector instruction with several results."""
    return code.insts(opcode, forms, *legal(code, opcode, operands))


def legal(code: Code, opcode: str, operands: Sequence[Source]) -> list[Operand]:
    """The operands of a vector instruction as it takes them: sources first, then whatever has a name."""
    shape = _shape(instruction_set_of(code), opcode)
    sources, names = list(operands[: len(shape.sources)]), list(operands[len(shape.sources) :])
    if all([_in_vector(source) for source in sources]):
        return list(operands)  # type: ignore[arg-type]  # as most are: nothing to place
    if shape.commutes and _wants_second_place(sources):
        sources[:2] = sources[1], sources[0]
    bus = _Bus(shape.vcc)
    # A mask has no other place, and registers that are there go before constants that would need one.
    order = sorted(range(len(sources)), key=lambda i: _rank(sources[i], shape.sources[i]))
    found: list[Operand] = [0] * len(sources)
    for i in order:
        alone = shape.literal and i == 0 and all(_in_vector(s) for s in sources[1:])
        found[i] = bus.operand(code, sources[i], shape.sources[i], alone and not names)
    return [*found, *names]  # type: ignore[list-item]


def _rank(source: Source, place: _SourceRules) -> int:
    if place.mask:
        return 0
    return 1 if isinstance(source, Slice) else 2


def _in_vector(source: Source) -> bool:
    return isinstance(source, Slice) and source.reg.cls == "v"


def _wants_second_place(sources: Sequence[Source]) -> bool:
    """A constant or scalar register in the second place, beside a vector register: the short encodings take it in the first."""
    first, second = sources[:2]
    return _in_vector(first) and not _in_vector(second)


class _Bus:
    """The one scalar register or literal that a vector instruction reads."""

    def __init__(self, vcc: bool) -> None:
        self.taken: Operand | None = "vcc" if vcc else None
        self.constant: tuple[int, int] | None = None  # that `taken` is, with its width

    def operand(self, code: Code, source: Source, place: _SourceRules, literal: bool) -> Operand:
        if isinstance(source, str):
            return source
        if isinstance(source, Slice):
            return self._register(code, source, place)
        value = (source if isinstance(source, int) else constant_bits(source)) & (1 << place.width) - 1
        if place.holds(value):
            return value
        if self.taken is not None and self.constant == (value, place.width):
            return self.taken
        if self.taken is not None or not (place.scalar or literal):
            return vector_constant(code, value, place.width)
        self.constant = value, place.width
        self.taken = value if literal and place.width <= 32 else scalar_constant(code, value, place.width)
        return self.taken

    def _register(self, code: Code, source: Slice, place: _SourceRules) -> Operand:
        if source.reg.cls not in _SCALAR:
            return source
        if place.scalar and self.taken in (None, source):
            self.taken = source
            return source
        return in_vector(code, source)


def scalar(code: Code, opcode: str, form: str, *operands: Element | int) -> Slice:
    """A pure scalar instruction, which takes one literal of 32 bits."""
    return code.inst(opcode, form, *scalar_operands(code, opcode, operands))


def scalar_operands(code: Code, opcode: str, operands: Sequence[Element | int]) -> list[Operand]:
    """Operands of a scalar instruction: inline constants as they are, one literal, the others in registers."""
    found: list[Operand] = []
    literal: int | None = None
    halves = pseudo.by_halves(opcode)
    for operand, width in zip(operands, _scalar_widths(instruction_set_of(code), opcode, len(operands)), strict=True):
        if isinstance(operand, Slice):
            found.append(operand)
            continue
        value = (operand if isinstance(operand, int) else constant_bits(operand)) & (1 << width) - 1
        if is_inline(value, width):
            found.append(value)
        elif (width == 32 or halves) and literal in (None, value):
            literal = value
            found.append(value)
        else:
            found.append(scalar_constant(code, value, width))
    return found


@functools.cache
def _scalar_widths(isa: InstructionSet, opcode: str, count: int) -> tuple[int, ...]:
    """How many bits each operand of a scalar instruction or pseudo-instruction has."""
    _check_served(isa, *(pseudo.opcodes(opcode) or (opcode,)))
    widths = pseudo.widths(isa, opcode)
    if widths:
        return widths
    return tuple(constants.width(o.constants or o.type) for o in isa.row(opcode).sources)[:count]


def constant_bits(const: Const) -> int:
    """The bits of a constant as registers hold it: a mask of all lanes is -1."""
    return -(const.bits & 1) & 0xFFFFFFFFFFFFFFFF if const.type == "i1" else const.bits


def scalar_constant(code: Code, value: int, width: int) -> Slice:
    """A constant in scalar registers, made where the function begins when a loop or branch is open."""
    return _constant(code, "s_mov_b64" if width == 64 else "s_mov_b32", "uw64" if width == 64 else "uw32", value)


def vector_constant(code: Code, value: int, width: int) -> Slice:
    """A constant in vector registers."""
    return code.inst("v_mov_b64" if width == 64 else "v_mov_b32", "w64" if width == 64 else "w32", value)


def _constant(code: Code, opcode: str, form: str, value: int) -> Slice:
    key = (opcode, (value,), ())
    for scope in reversed(code.scopes):
        if key in scope:
            return scope[key][0]
    register = code.new_register(form)
    inst = Inst(opcode, [register], [value], place=code.place)
    if code.block is code.home:
        code.home.insts.append(inst)
    else:
        code.home.insts.insert(0, inst)
    code.scopes[0][key] = (register,)
    return register


def in_vector(code: Code, register: Slice) -> Slice:
    """A scalar register's value in vector registers."""
    return code.inst("move.v", "w64" if register.count == 2 else "w32", register)

