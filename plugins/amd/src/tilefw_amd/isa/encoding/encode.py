"""Instructions to bytes: the inverse of `decode`, canonical where the hardware ignores bits."""

from __future__ import annotations

import functools

from tilefw.api.errors import CodeError
from tilefw_amd.isa.encoding.codes import LITERAL
from tilefw_amd.isa.encoding.pieces import mask, put, take, width_of
from tilefw_amd.isa.model import BranchTarget, Form, FormModifier, FormOperand, Literal32, MCInst, Modifier, Operand
from tilefw_amd.isa.text.source import OPERANDS, RANGE


def encode(inst: MCInst) -> bytes:
    """The bytes, `inst.size` of them. Raises CodeError: TFW0721 for an operand that cannot stand where it does, TFW0722 for a
    number beyond its field; TFW0721 too when the operands disagree on a bit that they share."""
    form = inst.form
    word, literal = form.value | form.ignored | _default_bits(form), -1
    for operand, of in zip(inst.operands, form.operands, strict=True):
        if type(operand) is Literal32:
            literal = _literal(form, of, operand, literal)
            if not of.pieces:
                continue
            code = LITERAL
        elif of.codes is not None:
            found = of.codes.encode.get(operand)
            if found is None:
                raise _unfit(form, of, operand)
            code = found
        else:
            code = _number(form, of, operand)
        word |= put(of.pieces, code)
    for name, value in inst.modifiers.items():
        word = _with_modifier(form, word, name, value)
    if form.format.name in ("mai", "mai_scaled"):
        _check_shared(inst, word)
    code = word.to_bytes(form.size, "little")
    return code if literal < 0 else code + literal.to_bytes(4, "little")


def _literal(form: Form, of: FormOperand, operand: Literal32, before: int) -> int:
    if "l" not in of.kinds:
        raise _unfit(form, of, operand)
    if before not in (-1, operand.bits):
        raise CodeError(f"{form.mnemonic}: {before:#x} and {operand.bits:#x} are two literals, and there is room for one", OPERANDS)
    return operand.bits


def _number(form: Form, of: FormOperand, operand: Operand) -> int:
    """An immediate or a branch's distance as the content of its field; a label's is for the assembler to fill in."""
    if isinstance(operand, BranchTarget):
        value, signed = operand.offset, True
    elif isinstance(operand, int):
        value, signed = operand, of.signed
    else:
        raise _unfit(form, of, operand)
    width = of.pieces[0][1]
    low, high = (-(1 << (width - 1)), 1 << (width - 1)) if signed else (0, 1 << width)
    if not low <= value < high:
        raise CodeError(f"{form.mnemonic}: {of.name} goes from {low} to {high - 1}, not {value}", RANGE)
    return value & (1 << width) - 1


def _with_modifier(form: Form, word: int, name: str, value: Modifier) -> int:
    if name in form.fixed:
        if value != form.fixed[name]:
            raise CodeError(f"{form.mnemonic}: {name} selects this form, and cannot be {value}", OPERANDS)
        return word
    modifier = form.modifier.get(name)
    if modifier is None:
        raise CodeError(f"{form.mnemonic} has no modifier {name}", OPERANDS)
    extent, bits = _modifier_bits(form, modifier, value)
    return word & ~extent | bits


@functools.lru_cache(maxsize=4096)
def _modifier_bits(form: Form, modifier: FormModifier, value: Modifier) -> tuple[int, int]:
    """(Mask of the modifier's bits in the word, their content)."""
    extent = mask(modifier.pieces)
    if modifier.count:
        if not isinstance(value, tuple) or len(value) != modifier.count or any(bit not in (0, 1) for bit in value):
            raise CodeError(f"{form.mnemonic}: {modifier.name} is {modifier.count} bits, not {value}", RANGE)
        return extent, sum(bit << low for bit, (low, _) in zip(value, modifier.pieces, strict=True))
    width = width_of(modifier.pieces)
    first, end = (-(1 << (width - 1)), 1 << (width - 1)) if modifier.signed else (0, 1 << width)
    if not isinstance(value, int) or not first <= value < end:
        raise CodeError(f"{form.mnemonic}: {modifier.name} goes from {first} to {end - 1}, not {value}", RANGE)
    return extent, put(modifier.pieces, value)


@functools.lru_cache(maxsize=4096)
def _default_bits(form: Form) -> int:
    found = functools.reduce(lambda bits, m: bits | _modifier_bits(form, m, m.default)[1], form.modifiers, 0)
    if form.format.name == "vop3p":
        # LLVM sets those bits of op_sel_hi that an instruction does not have, and ignores them when it decodes.
        pieces = form.format.fields["op_sel_hi"].pieces
        own = form.modifier["op_sel_hi"].pieces if "op_sel_hi" in form.modifier else ()
        found |= sum(1 << low for low, _ in pieces if (low, 1) not in own)
    return found


def _check_shared(inst: MCInst, word: int) -> None:
    """One bit says of D and of C that they are accumulation registers: each operand must read back as itself."""
    for operand, of in zip(inst.operands, inst.form.operands, strict=True):
        if of.codes is None or len(of.pieces) < 2:
            continue
        if of.codes.decode[take(of.pieces, word)] != operand:
            which = "vector registers or both in accumulation registers"
            raise CodeError(f"{inst.form.mnemonic}: D and C are both in {which}", OPERANDS)


def _unfit(form: Form, of: FormOperand, operand: Operand) -> CodeError:
    return CodeError(f"{form.mnemonic}: {operand} cannot be its operand {of.name}", OPERANDS)
