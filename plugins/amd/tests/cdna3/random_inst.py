"""Random instructions of a form: every kind of operand that it takes, every modifier, each drawn from (seed, form, number) alone.

What no assembler accepts is not drawn: the rules between operands hold, immediates are in range, 16-bit literals have 16 bits.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator

from tilefw_amd.isa.constants import INLINE, INVERSE_2PI
from tilefw_amd.isa.encoding.modifiers import ROW_NEWBCAST
from tilefw_amd.isa.encoding.shape_modifiers import takes_sext, takes_sign
from tilefw_amd.isa.model import (
    BranchTarget,
    Form,
    FormModifier,
    FormOperand,
    InlineConstant,
    Literal32,
    MCInst,
    Modifier,
    Operand,
    RegisterTuple,
)
from tilefw_amd.isa.registers import READ_ONLY
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import immediates
from tilefw_amd.isa.text.restrictions import RANGES, restrictions_of

TRIES = 40


def random_instructions(isa: InstructionSet, seed: int, each: int) -> Iterator[MCInst]:
    """`each` instructions of every form of the set that has a text of its own."""
    for form in filter(_has_own_text, isa.forms):
        for number in range(each):
            yield random_inst(form, random.Random(f"{seed} {form.mnemonic} {form.encoding} {len(form.operands)} {number}"))


def _has_own_text(form: Form) -> bool:
    """v_nop and v_clrexcp of VOP3 are written like those of VOP1, a scalar offset in its other field as in the first."""
    return form.encoding != "smem_soffset" and (form.encoding != "vop3" or bool(form.operands))


def random_inst(form: Form, rng: random.Random) -> MCInst:
    """One instruction that keeps the rules between operands; with each failure vector registers become likelier."""
    for attempt in range(TRIES):
        literal: list[Literal32] = []
        operands = tuple(_operand(form, operand, rng, attempt / TRIES, literal) for operand in form.operands)
        inst = MCInst(form, operands, _modifiers(form, rng), form.size + 4 * bool(literal))
        if not _cut_off(inst) and not any(rule(inst) for rule in restrictions_of(form, tuple(map(_key, operands)))):
            return inst
    raise AssertionError(f"no instruction of {form} found")


def _cut_off(inst: MCInst) -> bool:
    """LLVM's disassembler reads eight registers of an operand before it looks at the format, and refuses the last tuples."""
    return inst.form.row.mnemonic.endswith("_f8f6f4") and any(
        isinstance(operand, RegisterTuple) and operand.index > 256 - 8
        for operand, of in zip(inst.operands, inst.form.operands, strict=True) if of.name in ("a", "b")
    )


def _key(operand: Operand) -> Hashable:
    """The parser's key of an operand, as far as the rules ask for it."""
    if isinstance(operand, RegisterTuple):
        return operand.file, operand.count, 0, ""
    return "off" if operand is None else ("integer", 0)


def _operand(form: Form, operand: FormOperand, rng: random.Random, plain: float, literal: list[Literal32]) -> Operand:
    if "t" in operand.kinds:
        return BranchTarget(rng.choice([0, 1, -1, 0x7FFF, -0x8000, rng.randrange(-0x8000, 0x8000)]))
    if operand.kinds == "l":
        literal.append(_literal(operand, rng))
        return literal[-1]
    if operand.immediate or operand.kinds == "i":
        return _immediate(form, operand, rng)
    assert operand.codes is not None
    if "l" in operand.kinds and not literal and rng.random() < 0.15 * (1 - plain):
        literal.append(_literal(operand, rng))
        return literal[-1]
    groups = _groups(operand)
    names = [name for name in groups if name in "va" or rng.random() >= plain]
    return rng.choice(groups[rng.choice(names or list(groups))])


def _groups(operand: FormOperand) -> dict[str, list[Operand]]:
    """The operands that may stand here, by kind, so that the rare ones are drawn as often as the many."""
    assert operand.codes is not None
    found: dict[str, list[Operand]] = {}
    for choice in operand.codes.decode:
        if isinstance(choice, str):
            continue
        if isinstance(choice, InlineConstant) and choice.code >= 240 and _half_integer(operand):
            continue  # LLVM writes them as numbers that it reads as literals
        if isinstance(choice, InlineConstant) and choice.code == INVERSE_2PI and operand.constants is not None:
            continue  # LLVM's SDWA writes it and does not read it
        if isinstance(choice, RegisterTuple):
            if choice.index in READ_ONLY and choice.file == "s" and operand.kinds == "s":
                continue
            special = choice.file == "s" and choice.index >= 102
            found.setdefault("special" if special else choice.file, []).append(choice)
        else:
            found.setdefault("off" if choice is None else "constant", []).append(choice)
    return found


def _half_integer(operand: FormOperand) -> bool:
    kind = operand.constants or operand.type
    return kind is not None and kind.bits == 16 and kind.kind != "float"


def _literal(operand: FormOperand, rng: random.Random) -> Literal32:
    bits = 16 if operand.type is not None and operand.type.bits == 16 else 32
    bits_drawn = rng.choice([rng.randrange(1 << bits), rng.randrange(256), (1 << bits) - 1, 1 << (bits - 1)])
    # LLVM's disassembler writes the constant of v_fmaak and the like as the inline constant of that code, and small literals
    # of f64 as the inline constant that its assembler then takes.
    odd = bits_drawn in INLINE if operand.kinds == "l" else operand.registers == 2 and bits_drawn <= 64
    return Literal32(bits_drawn + 256 if odd else bits_drawn)


def _immediate(form: Form, operand: FormOperand, rng: random.Random) -> int:
    width = sum(bits for _, bits in operand.pieces)
    match operand.immediate:
        case "waitcnt":
            return rng.randrange(1 << 16) & immediates.NO_WAIT
        case "sendmsg":
            return rng.choice([1, 4, 9, 10, 11, 0x12, 0x22, 0x32, 0x112, 0x13, 3, 0x1F, 0x2F, 0x3F, 0x4F])
        case "gpr_idx":
            return rng.randrange(16)
    if operand.signed:
        return rng.choice([0, 1, -1, rng.randrange(-(1 << (width - 1)), 1 << (width - 1))])
    highest = min((1 << width) - 1, RANGES.get(form.row.name, 1 << width))
    return rng.choice([0, 1, highest, rng.randint(0, highest)])


def _modifiers(form: Form, rng: random.Random) -> dict[str, Modifier]:
    found: dict[str, Modifier] = {}
    for modifier in form.modifiers:
        if rng.random() < 0.5:
            value = _modifier(form, modifier, rng)
            if value != modifier.default and not _misread(form, modifier, value):
                found[modifier.name] = value
    return found


def _misread(form: Form, modifier: FormModifier, value: Modifier) -> bool:
    """Where LLVM does not read what it writes: its assembler drops sc1 of atomics of doubles, refuses sext of bytes and halves
    whose constants are floats, and of swizzle(FFT) it knows 32."""
    if modifier.name == "sext" and form.row.name.endswith(("_fp8", "_bf8", "ldexp_f16")):
        return True
    doubles = form.format.name == "flat" and form.row.name.endswith("_f64") and modifier.name == "sc1"
    return doubles or (form.encoding == "ds_swizzle" and isinstance(value, int) and not _has_pattern(value))


def _has_pattern(offset: int) -> bool:
    """Whether swizzle(…) says all of the offset: of a bit's eight functions (and, or, xor) it has four."""
    kept, set_, inverted = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return offset < 0xE020 if offset >= 0x8000 else not kept & set_ and not inverted & ~kept


def _modifier(form: Form, modifier: FormModifier, rng: random.Random) -> Modifier:
    if modifier.spelling.kind == "inline":
        takes = takes_sext if modifier.name == "sext" else takes_sign
        able = {o.source for o in form.operands if takes(o)}
        return tuple(rng.randrange(2) if source in able else 0 for source in range(modifier.count))
    if modifier.count:
        return tuple(rng.randrange(2) for _ in range(modifier.count))
    spelling = modifier.spelling
    if spelling.kind == "flag":
        return 1
    if spelling.kind == "choice":
        values = list(spelling.choices)
        if modifier.name == "dpp_ctrl":
            if any(o.registers == 2 and o.pieces for o in form.operands):
                return ROW_NEWBCAST + rng.randrange(16)
            return rng.choice([rng.randrange(256), *(v for v in values if v >= 256)])
        return rng.choice(values)
    width = sum(bits for _, bits in modifier.pieces)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if modifier.signed else (0, (1 << width) - 1)
    return rng.choice([1, low, high, rng.randint(low, high)])


