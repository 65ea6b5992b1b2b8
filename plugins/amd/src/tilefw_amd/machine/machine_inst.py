"""Machine code with physical registers to instructions of the table: one `Inst` of the machine layer is one `MCInst`.

The operands of an instruction are LLVM's, in its order: definitions first, then uses. Among the uses,

- a `Slice` is a physical register or a tuple; classes that share a file stand in it (`traits`);
- an `int` holds the bits of a constant, as many as the operand has, or an immediate field;
- a `str` is a name (`off`, `vcc`, `0.5`, `vmcnt(0)`) or, behind all operands, a modifier (`offset:16`, `offen`, `sc0`);
  `neg:[1,0]`, `abs:[0,1]` and `sext:[1,0]` are bits by source, also where LLVM writes them as signs of the operands;
- a use that is tied to a definition is that register, and is not written twice.

The encoding is chosen as LLVM's assembler does: the shortest that takes the operands.
"""

from __future__ import annotations

import functools

from tilefw.api.errors import InternalError
from tilefw.api.machine import Inst as MachineInst
from tilefw.api.machine import Operand, Slice
from tilefw_amd.isa import constants
from tilefw_amd.isa.model import File, FormOperand, Literal32, MCInst, RegisterTuple
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import parser
from tilefw_amd.isa.text.expression import SymbolExpression
from tilefw_amd.isa.text.parsed_operand import ABS, LIT, NEG, SEXT, Written, register_written, simple, together

# Where the registers of a class stand: a lane mask is a pair of scalar registers.
FILES: dict[str, File] = {"v": "v", "a": "a", "s": "s", "m": "s"}
_SIGNS = {"neg": NEG, "abs": ABS, "sext": SEXT}
_LARGEST_INLINE = 64


def instruction(isa: InstructionSet, inst: MachineInst) -> MCInst:
    """The table's instruction; a branch goes to the label `targets[0]`. Raises InternalError where no encoding takes it."""
    uses = written_uses(isa, inst)
    signs = _signs(isa, inst.opcode, uses)
    items = [_written(definition, 0) for definition in inst.defs]
    for place, use in enumerate(uses):
        if not (signs and _is_signs(use)):
            _add(items, _written(use, signs.get(place, 0) if signs else 0))
    items += [_label(target) for target in inst.targets]
    found = _with_negative_halves(isa, inst.opcode, items) or parser.chosen(isa, inst.opcode, items)
    wide = any([isinstance(use, int) and not is_inline(use) for use in uses])
    if wide and (found is None or not _exact(found, uses)):
        found = parser.chosen(isa, inst.opcode, [_high_half(item) for item in items])
        found = found if found is not None and _exact(found, uses) else None
    if found is None or inst.predicate is not None:
        raise InternalError(f"no encoding of {isa.chip.name} takes {inst}")
    return found


def written_uses(isa: InstructionSet, inst: MachineInst) -> tuple[Operand, ...]:
    """The uses that are written: those tied to a definition are it."""
    if not inst.tied or _writes_addend(isa, inst.opcode):
        return inst.uses
    tied = {use for _, use in inst.tied}
    return tuple(use for i, use in enumerate(inst.uses) if i not in tied)


def lone_operand(operand: Operand) -> Written | None:
    """What an operand or modifier says whatever stands beside it; None where that matters: calls and signs are parts of others, and
    16 bits may be a negative number (`_with_negative_halves`)."""
    if isinstance(operand, Slice):
        return _register(operand.reg.cls, operand.first, operand.count, 0)
    if isinstance(operand, int):
        return None if 0xFFF0 <= operand <= 0xFFFF else _number(operand, 0)
    found = None if _is_signs(operand) else simple(operand)
    return None if found is None or found.kind == "call" else found


def is_inline(value: int) -> bool:
    """Whether every operand of integers has this constant without a literal: CDNA3 ISA, "Inline constants"."""
    return -16 <= value <= _LARGEST_INLINE


def _add(items: list[Written], item: Written) -> None:
    """Calls that follow one another are one operand: vmcnt(0) lgkmcnt(0)."""
    if item.kind == "call" and items and items[-1].kind == "call":
        item = together((items.pop(), item))
    items.append(item)


@functools.cache
def _writes_addend(isa: InstructionSet, opcode: str) -> bool:
    """Whether a source that is the destination itself is written all the same: C of a matrix product."""
    row = isa.row(opcode)
    return row.passes > 0 and not any(operand.read for operand in row.destinations)


# --- operands ----------------------------------------------------------------------------------------------------------------


def _written(operand: Operand, sign: int) -> Written:
    if isinstance(operand, Slice):
        return _register(operand.reg.cls, operand.first, operand.count, sign)
    if isinstance(operand, int):
        return _number(operand, sign)
    found = simple(operand)
    if found is None:
        raise InternalError(f"{operand!r} is not an operand or modifier of LLVM's syntax")
    return _signed(found, sign) if sign else found


@functools.lru_cache(maxsize=65536)
def _register(cls: str, first: int, count: int, sign: int) -> Written:
    return register_written(RegisterTuple(FILES[cls], first, count), sign)


@functools.lru_cache(maxsize=65536)
def _number(value: int, sign: int) -> Written:
    return Written("integer", value, sign, ("integer", sign))


def _signed(found: Written, sign: int) -> Written:
    if found.kind == "register":
        return register_written(found.value, sign)
    return Written(found.kind, found.value, sign, (found.kind, sign))


@functools.lru_cache(maxsize=4096)
def _label(name: str) -> Written:
    return Written("symbol", SymbolExpression(name), 0, "symbol")


# --- signs -------------------------------------------------------------------------------------------------------------------


def _is_signs(use: Operand) -> bool:
    return isinstance(use, str) and use.partition(":")[0] in _SIGNS


def _signs(isa: InstructionSet, opcode: str, uses: tuple[Operand, ...]) -> dict[int, int]:
    """The signs of the uses by their place; nothing where the instruction has none or writes them as modifiers of its own."""
    found: dict[int, int] = {}
    for use in uses:
        if _is_signs(use) and _inline_signs(isa, opcode):
            assert isinstance(use, str)
            word, _, bits = use.partition(":")
            for place, bit in enumerate(bits.strip("[]").split(",")):
                found[place] = found.get(place, 0) | (_SIGNS[word] if bit == "1" else 0)
    return found


@functools.cache
def _inline_signs(isa: InstructionSet, opcode: str) -> bool:
    """Whether LLVM writes neg and abs at the operands: all but the matrix instructions of f64."""
    forms = isa.forms_by_mnemonic.get(opcode, ())
    return all(m.spelling.kind == "inline" for form in forms for m in form.modifiers if m.name == "neg")


# --- constants of 16 bits ----------------------------------------------------------------------------------------------------


def _with_negative_halves(isa: InstructionSet, opcode: str, items: list[Written]) -> MCInst | None:
    """The instruction with -16 to -1 of 16 bits as inline constants: LLVM reads 0xfffe as 65534 there (isInlinableLiteralI16)."""
    negative = [i for i, item in enumerate(items) if item.kind == "integer" and 0xFFF0 <= item.value <= 0xFFFF]
    if not negative:
        return None
    signed = list(items)
    for i in negative:
        signed[i] = _number(items[i].value - 0x10000, items[i].sign)
    found = parser.chosen(isa, opcode, signed)
    operands = () if found is None else found.form.operands
    return found if all(i < len(operands) and width(operands[i]) == 16 for i in negative) else None


# --- constants of 64 bits ----------------------------------------------------------------------------------------------------


def _high_half(item: Written) -> Written:
    """A float of 64 bits whose low half is zero as the literal that says its high half (CDNA3 ISA, "Literal constants")."""
    if item.kind != "integer" or item.value & 0xFFFFFFFF or is_inline(item.value):
        return item
    return Written("integer", item.value >> 32 & 0xFFFFFFFF, item.sign | LIT, ("integer", item.sign | LIT))


def _exact(found: MCInst, uses: tuple[Operand, ...]) -> bool:
    """Whether every literal is the constant that was meant: of 64 bits it holds only half of them."""
    meant = {use & (1 << 64) - 1 for use in uses if isinstance(use, int)}
    for operand, of in zip(found.operands, found.form.operands, strict=True):
        if isinstance(operand, Literal32) and width(of) == 64 and _meaning(operand, of) not in meant:
            return False
    return True


def _meaning(literal: Literal32, of: FormOperand) -> int:
    return constants.literal_bits(literal.bits, of.constants or of.type) & (1 << 64) - 1


def width(of: FormOperand) -> int:
    """The bits of an operand's constants."""
    return constants.width(of.constants or of.type)
